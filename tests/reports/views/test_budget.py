"""The page of the budget: what is shown, who may set a cap, who may confirm one."""

import re
from collections.abc import Callable
from decimal import Decimal

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from reports.budget import caps_in_force
from reports.models import BudgetCap, CapDecision
from reports.policies import Role
from reports.services.budgets import propose_cap
from reports.services.studies import mark_closed
from tests.reports import report_factory as factory

pytestmark = pytest.mark.django_db
PAGE = "/budget/"


@pytest.fixture
def officer(person: Callable[..., User]) -> User:
    return person("petra", Role.PRIVACY_OFFICER)


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def shown(client: Client, address: str = PAGE) -> str:
    response = client.get(address)
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


def cap(epsilon: str, *, by: str = "adam", unit: str = "profile") -> BudgetCap:
    return propose_cap(population="subscribers", unit=unit, period="year", epsilon=Decimal(epsilon), by=by)


def test_without_studies_and_caps_the_page_says_so(administrator: User) -> None:
    page = shown(signed_in(administrator))
    assert "There is no study of this population yet." in page
    assert "no cap" in page
    assert "None yet." in page


def test_sums_caps_and_what_is_left_are_shown(administrator: User) -> None:
    factory.create(factory.GENDER, slug="one", name="Fair one")
    factory.create(factory.GENDER, slug="two", name="Fair two", epsilon="0.5")
    empty = factory.create(factory.GENDER, slug="three", name="Never held")
    mark_closed(study_slug=empty.slug, closed_at=timezone.now())
    cap("1.6")
    page = shown(signed_in(administrator))
    row = re.search(r">2024</td>(.*?)</tr>", page)
    assert row is not None
    assert re.findall(r'class="number">([^<]+)<', row[1]) == ["1.5", "1.6", "0.1"]
    assert "94 % spent" in page
    assert "closed without data: not counted" in page
    assert page.index("Fair one") < page.index("Never held")


def test_over_a_cap_is_said_in_words(administrator: User) -> None:
    factory.create(factory.GENDER, slug="one")
    cap("0.3")
    assert "over the cap" in shown(signed_in(administrator))


def test_an_administrator_sets_a_first_cap_at_once(administrator: User) -> None:
    client = signed_in(administrator)
    answer = client.post(PAGE, {"unit": "attribute", "period": "ever", "epsilon": "3"}, follow=True)
    assert "The cap is in force." in answer.content.decode()
    assert caps_in_force("subscribers")["attribute", "ever"].epsilon == 3
    assert BudgetCap.objects.get().set_by == "adam"


@pytest.mark.parametrize("epsilon", ["0", "-1", "x", "NaN", "1.123456789"])
def test_a_cap_that_is_none_changes_nothing(administrator: User, epsilon: str) -> None:
    answer = signed_in(administrator).post(PAGE, {"unit": "profile", "period": "ever", "epsilon": epsilon})
    assert answer.status_code == 422
    assert "errorlist" in answer.content.decode()
    assert "No cap was changed: what is wrong is marked below." in answer.content.decode()
    assert "1E-8" not in re.sub("<input[^>]*>", "", answer.content.decode())
    assert not BudgetCap.objects.exists()


def test_what_stands_against_a_change_is_shown_with_what_was_typed(administrator: User) -> None:
    cap("3")
    answer = signed_in(administrator).post(PAGE, {"unit": "profile", "period": "year", "epsilon": "3"})
    assert answer.status_code == 422
    assert "must differ from the one in force, got 3" in answer.content.decode()


def test_a_larger_cap_waits_and_another_person_confirms_it(administrator: User, officer: User) -> None:
    cap("3")
    adam, petra = signed_in(administrator), signed_in(officer)
    answer = adam.post(PAGE, {"unit": "profile", "period": "year", "epsilon": "4"}, follow=True)
    assert "waits for a second person" in answer.content.decode()
    decide = reverse("budget:decide", args=[BudgetCap.objects.latest("pk").pk])
    assert "Somebody else has to confirm it." in shown(adam)
    assert ">Confirm<" not in shown(adam)
    assert "somebody else than adam" in adam.post(decide, {"answer": "confirm"}, follow=True).content.decode()
    assert not CapDecision.objects.exists()
    assert ">Confirm<" in shown(petra)
    assert "The cap is in force." in petra.post(decide, {"answer": "confirm"}, follow=True).content.decode()
    assert caps_in_force("subscribers")["profile", "year"].epsilon == 4
    assert "confirmed by petra" in shown(petra)


def test_a_privacy_officer_sees_and_confirms_but_sets_nothing(officer: User) -> None:
    client = signed_in(officer)
    assert "Set a cap" not in shown(client)
    assert client.post(PAGE, {"unit": "profile", "period": "year", "epsilon": "4"}).status_code == 404
    assert not BudgetCap.objects.exists()


def test_each_population_has_its_page(administrator: User) -> None:
    factory.create(factory.GENDER, slug="one", name="Fair one")
    factory.create(factory.GENDER, slug="guests", name="Guests only", population="guests")
    client = signed_in(administrator)
    page = shown(client, PAGE + "?population=guests")
    assert "Guests only" in page
    assert "Fair one" not in page
    assert client.get(PAGE + "?population=nobody").status_code == 404
    client.post(PAGE + "?population=guests", {"unit": "profile", "period": "ever", "epsilon": "1"})
    assert BudgetCap.objects.get().population_id == "guests"


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.ANALYST, Role.VIEWER])
def test_nobody_else_sees_it(person: Callable[..., User], role: Role) -> None:
    client = signed_in(person("somebody", role))
    waiting = reverse("budget:decide", args=[1])
    assert client.get(PAGE).status_code == client.post(waiting).status_code == 404
    assert Client().get(PAGE)["Location"].startswith(reverse("login"))
