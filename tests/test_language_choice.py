"""Which language a page has, and how numbers and dates look in it."""

from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import translation

from mobility.wording import megabytes
from reports import wording

MINUS, SPACE = "\u2212", "\u202f"


@pytest.fixture
def client(db: None) -> Iterator[Client]:
    yield Client()
    translation.deactivate()  # the last request's language stays active in the thread of the tests


def heading(client: Client, **headers: str) -> str:
    return client.get(reverse("login"), headers=headers).content.decode()


def test_english_is_what_everybody_gets_who_asks_for_nothing(client: Client) -> None:
    page = heading(client)
    assert '<html lang="en">' in page
    assert "<h1>Sign in</h1>" in page


@pytest.mark.parametrize("asked", ["fr", "fr-CA, en;q=0.5", "de, fr;q=0.8, en;q=0.3"])
def test_a_browser_is_asked_which_language_it_wants(client: Client, asked: str) -> None:
    page = heading(client, accept_language=asked)
    assert '<html lang="fr">' in page
    assert "<h1>Se connecter</h1>" in page


def test_a_choice_goes_before_what_the_browser_wants_and_lasts(client: Client) -> None:
    answer = client.post(reverse("set_language"), {"language": "fr", "next": reverse("login")})
    assert (answer.status_code, answer["Location"]) == (302, reverse("login"))
    cookie = answer.cookies["django_language"]
    assert cookie["httponly"]
    assert (cookie["samesite"], cookie["max-age"]) == ("Lax", 365 * 24 * 3600)
    assert "<h1>Se connecter</h1>" in heading(client, accept_language="en")


def test_a_language_that_is_not_there_changes_nothing(client: Client) -> None:
    client.post(reverse("set_language"), {"language": "xx", "next": "/"})
    assert '<html lang="en">' in heading(client)


def test_the_switch_leads_to_no_other_site(client: Client) -> None:
    answer = client.post(reverse("set_language"), {"language": "fr", "next": "https://example.org/"})
    assert answer["Location"] == "/"


def test_a_look_changes_no_language(client: Client) -> None:
    client.get(reverse("set_language"), {"language": "fr"})
    assert '<html lang="en">' in heading(client)


def test_every_page_offers_the_other_language_by_its_own_name(client: Client) -> None:
    assert 'value="fr" lang="fr">Français</button>' in heading(client)
    assert 'value="en" lang="en">English</button>' in heading(client, accept_language="fr")


@pytest.mark.parametrize(
    ("words", "english", "french"),
    [
        (lambda: wording.percent(0.1234), f"12.3{SPACE}%", f"12,3{SPACE}%"),
        (lambda: wording.percent(-0.00001), f"0.0{SPACE}%", f"0,0{SPACE}%"),
        (
            lambda: wording.percent_range(-0.02, 0.5),
            f"{MINUS}2.0 to 50.0{SPACE}%",
            f"{MINUS}2,0 à 50,0{SPACE}%",
        ),
        (lambda: wording.number(62440), f"62{SPACE}440", f"62{SPACE}440"),
        (lambda: wording.decimal(1234.56, decimals=1), f"1{SPACE}234.6", f"1{SPACE}234,6"),
        (lambda: wording.compact(1240), "1.2k", "1,2k"),
        (lambda: wording.epsilon(Decimal("0.5")), "0.5", "0,5"),
        (lambda: wording.odds(Decimal(1)), "2.72", "2,72"),
        (lambda: wording.points(0.037), "3.7 points", "3,7 points"),
        (lambda: megabytes(3_300_000), "3.3", "3,3"),
        (lambda: wording.day_title(date(2017, 6, 6)), "Tue 6 Jun 2017", "mar 6 juin 2017"),
        (lambda: wording.short_day(date(2017, 7, 1)), "1 Jul", "1 juil."),
        (
            lambda: wording.window_title(date(2017, 5, 31), date(2017, 6, 6)),
            "Wed 31 May 2017 to Tue 6 Jun 2017 (7 days)",
            "mer 31 mai 2017 au mar 6 juin 2017 (7 jours)",
        ),
    ],
)
def test_numbers_and_dates_are_those_of_the_language(
    words: Callable[[], str], english: str, french: str
) -> None:
    with translation.override("en"):
        assert words() == english
    with translation.override("fr"):
        assert words() == french


def test_no_two_months_are_written_alike() -> None:
    for language in ("en", "fr"):
        with translation.override(language):
            assert len({wording.short_month(date(2017, month, 1)) for month in range(1, 13)}) == 12
