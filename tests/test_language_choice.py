"""Language of a page, and its formats of numbers and dates."""

from datetime import date
from decimal import Decimal

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import translation

from mobility.batches.texts import megabytes
from reports.base import formats

MINUS, SPACE = "\u2212", "\u202f"
ENGLISH, FRENCH = "<h1>Sign in</h1>", "<h1>Se connecter</h1>"


@pytest.fixture
def client(db):
    yield Client()
    translation.deactivate()  # the last request's language stays active in the thread of the tests


def page(client, **headers):
    return client.get(reverse("login"), headers=headers).content.decode()


def test_a_browser_is_asked_which_language_it_wants_and_each_page_offers_the_other(client):
    for asked, language, heading, switch in (
        ("", "en", ENGLISH, 'value="fr" lang="fr">Français</button>'),
        ("fr", "fr", FRENCH, 'value="en" lang="en">English</button>'),
        ("fr-CA, en;q=0.5", "fr", FRENCH, "English"),
        ("de, fr;q=0.8, en;q=0.3", "fr", FRENCH, "English"),
    ):
        text = page(client, accept_language=asked)
        parts = (f'<html lang="{language}">', heading, switch)
        assert [part for part in parts if part not in text] == [], asked


def test_a_choice_lasts_goes_before_the_browser_and_leads_to_no_other_site_and_a_look_changes_nothing(client):
    client.get(reverse("set_language"), {"language": "fr"})
    client.post(reverse("set_language"), {"language": "xx", "next": "/"})
    assert ENGLISH in page(client)
    answer = client.post(reverse("set_language"), {"language": "fr", "next": "https://example.org/"})
    assert answer["Location"] == "/"
    answer = client.post(reverse("set_language"), {"language": "fr", "next": reverse("login")})
    assert (answer.status_code, answer["Location"]) == (302, reverse("login"))
    cookie = answer.cookies["django_language"]
    assert cookie["httponly"]
    assert (cookie["samesite"], cookie["max-age"]) == ("Lax", 365 * 24 * 3600)
    assert FRENCH in page(client, accept_language="en")


def test_numbers_and_dates_are_those_of_the_language():
    for words, english, french in (
        (lambda: formats.percent(0.1234), "12.3%", f"12,3{SPACE}%"),
        (lambda: formats.percent(-0.00001), "0.0%", f"0,0{SPACE}%"),
        (
            lambda: formats.percent_range(-0.02, 0.5),
            f"{MINUS}2.0 to 50.0%", f"{MINUS}2,0 à 50,0{SPACE}%",
        ),
        (lambda: formats.number(62440), "62,440", f"62{SPACE}440"),
        (lambda: formats.decimal(1234.56, decimals=1), "1,234.6", f"1{SPACE}234,6"),
        (lambda: formats.compact(1240), "1.2k", "1,2k"),
        (lambda: formats.epsilon(Decimal("0.5")), "0.5", "0,5"),
        (lambda: formats.odds(Decimal(1)), "2.72", "2,72"),
        (lambda: formats.plus_minus("3 m"), "±3 m", f"±{SPACE}3 m"),
        (lambda: formats.points(0.037), "3.7 points", "3,7 points"),
        (lambda: megabytes(3_300_000), "3.3", "3,3"),
        (lambda: formats.day_title(date(2017, 6, 6)), "Tue 6 Jun 2017", "mar 6 juin 2017"),
        (lambda: formats.short_day(date(2017, 7, 1)), "1 Jul", "1 juil."),
        (
            lambda: formats.window_title(date(2017, 5, 31), date(2017, 6, 6)),
            "Wed 31 May 2017 to Tue 6 Jun 2017 (7 days)", "mer 31 mai 2017 au mar 6 juin 2017 (7 jours)",
        ),
        # No two months are written alike.
        (lambda: len({formats.short_month(date(2017, month, 1)) for month in range(1, 13)}), 12, 12),
    ):  # fmt: skip
        for language, expected in (("en", english), ("fr", french)):
            with translation.override(language):
                assert words() == expected
