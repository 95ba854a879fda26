"""The first page, and the pages for when something is wrong."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.template.loader import render_to_string
from django.test import Client
from django.urls import reverse

from tests.reports import report_factory as factory

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


def test_home_shows_state_coverage_and_next_step(client: Client, analyst: User) -> None:
    done, part = factory.create(slug="done-2024", name="Done"), factory.create(slug="part-2024", name="Part")
    factory.create(slug="new-2024", name="New")
    people = factory.crowd(done)
    factory.publish(done, people)
    factory.publish(part, factory.absent_on(people, day=2))
    page = home_of(client, analyst)
    for text in (
        "4 of 4",
        "3 of 4",
        "0 of 4",
        "All days are published",
        "extract of Fri 31 May 2024 is missing",
    ):
        assert page.count(text) == 1, text
    assert "an operator uploads the extract of the first day" in page
    assert "demo" not in page


def test_home_without_a_study_teaches_how_one_comes_about(
    client: Client, analyst: User, administrator: User
) -> None:
    create = reverse("administrator:create")
    assert "No study is open to you yet" in home_of(client, analyst)
    assert create not in home_of(client, analyst)
    assert create in home_of(client, administrator)


def test_operator_sees_no_reports_on_the_first_page(client: Client, operator: User) -> None:
    factory.create()
    assert "The fair" not in home_of(client, operator)


def test_home_takes_as_many_queries_for_many_studies(
    client: Client, analyst: User, django_assert_num_queries: Any
) -> None:
    client.force_login(analyst)
    for n in range(3):
        factory.create(slug=f"fair-{n}")
        with django_assert_num_queries(4 + 3):  # session, user, groups, grants; studies, notes, kept views
            client.get(reverse("home"))
