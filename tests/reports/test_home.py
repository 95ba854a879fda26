"""The first page, and the pages for when something is wrong."""

import pytest
from django.contrib.auth.models import User
from django.template.loader import render_to_string
from django.test import Client
from django.urls import reverse

pytestmark = pytest.mark.django_db


def home_of(client: Client, user: User) -> str:
    client.force_login(user)
    return client.get(reverse("home")).content.decode()


def test_analyst_is_sent_to_the_studies_and_not_to_uploads(client: Client, analyst: User) -> None:
    page = home_of(client, analyst)
    assert f'href="{reverse("reports:studies")}"' in page
    assert reverse("operator:studies") not in page
    assert reverse("administrator:studies") not in page


def test_operator_is_sent_to_uploads_only(client: Client, operator: User) -> None:
    page = home_of(client, operator)
    assert f'href="{reverse("operator:studies")}"' in page
    assert reverse("reports:studies") not in page


def test_administrator_finds_studies_and_their_reports(client: Client, administrator: User) -> None:
    page = home_of(client, administrator)
    assert f'href="{reverse("administrator:studies")}"' in page
    assert f'href="{reverse("reports:studies")}"' in page


def test_stranger_is_told_whom_to_ask(client: Client, stranger: User) -> None:
    page = home_of(client, stranger)
    assert "ask the administrator" in page
    assert reverse("reports:studies") not in page


def test_anonymous_signs_in_and_comes_back(client: Client, analyst: User, password: str) -> None:
    wanted = reverse("reports:studies")
    form = client.get(wanted, follow=True)
    assert "Sign in" in form.content.decode()
    address = form.redirect_chain[-1][0]
    answer = client.post(address, {"username": analyst.username, "password": password, "next": wanted})
    assert answer["Location"] == wanted


def test_wrong_password_is_said(client: Client, analyst: User) -> None:
    page = client.post(reverse("login"), {"username": analyst.username, "password": "wrong"}).content.decode()
    assert 'role="alert"' in page


def test_lost_pages_are_found_again(client: Client, analyst: User) -> None:
    client.force_login(analyst)
    answer = client.get("/nothing-here/")
    assert answer.status_code == 404
    assert "Page not found" in answer.content.decode()


def test_forged_form_is_explained() -> None:
    client = Client(enforce_csrf_checks=True)
    answer = client.post(reverse("login"), {"username": "x", "password": "y"})
    assert answer.status_code == 403
    assert "load the page again" in answer.content.decode()


def test_page_for_faults_needs_no_request() -> None:
    assert "Something went wrong" in render_to_string("500.html")
