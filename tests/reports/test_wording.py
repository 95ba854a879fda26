"""How numbers are written; a narrow no-break space is written as _ here."""

from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import get_args

import pytest

from ldp.channels import Unit
from ldp.params import Mechanism
from reports import wording
from tests.ldp.exact import make_plan


def spaced(text: str) -> str:
    return text.replace(wording.SPACE, "_")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (999.6, "1_000"),
        (62440, "62_440"),
        (1234567, "1_234_567"),
        (-1234, "\u22121_234"),
        (None, "\u2013"),
    ],
)
def test_number(value: float | None, text: str) -> None:
    assert spaced(wording.number(value)) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, wording.MISSING),
        (999, "999"),
        (1000, "1.0k"),
        (9949, "9.9k"),
        (9951, "10k"),
        (62440, "62k"),
        (999_499, "999k"),
        (999_501, "1.0M"),
    ],
)
def test_compact_number_never_has_more_than_four_characters(value: int, text: str) -> None:
    assert wording.compact(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.12345, "12.3_%"), (-0.004, "\u22120.4_%"), (-0.0001, "0.0_%"), (1.0421, "104.2_%"), (None, "\u2013")],
)
def test_percent(value: float | None, text: str) -> None:
    assert spaced(wording.percent(value)) == text


def test_range_prints_both_bounds() -> None:
    assert spaced(wording.percent_range(-0.013, 0.111)) == "\u22121.3 to 11.1_%"
    assert spaced(wording.number_range(-12, 1234)) == "\u221212 to 1_234"
    assert wording.percent_range(None, None) == wording.number_range(None, None) == "\u2013"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Decimal("0.99999999999999999"), "1"),
        (Decimal("1.00000000000000001"), "1.0001"),
        (Fraction(1, 7), "0.1429"),
        (Decimal("31.5"), "31.5"),
        (Decimal(7), "7"),
        (Decimal(10), "10"),
        (0.5, "0.5"),
    ],
)
def test_epsilon_is_rounded_up(value: Decimal | Fraction | float, text: str) -> None:
    assert wording.epsilon(value) == text


@pytest.mark.parametrize(
    ("epsilon", "text"),
    [("0", "1.00"), ("1", "2.72"), ("0.5", "1.65"), ("7", "1_097"), ("31.46", "e^31.5")],
)
def test_odds_are_rounded_up(epsilon: str, text: str) -> None:
    assert spaced(wording.odds(Decimal(epsilon))) == text


def test_window_title() -> None:
    assert wording.window_title(date(2017, 5, 31), date(2017, 5, 31)) == "Wed 31 May 2017"
    title = wording.window_title(date(2017, 5, 31), date(2017, 6, 6))
    assert title == "Wed 31 May 2017 to Tue 6 Jun 2017 (7 days)"


@pytest.mark.parametrize("mechanism", get_args(Mechanism))
@pytest.mark.parametrize("unit", get_args(Unit))
@pytest.mark.parametrize("d", [1, 3])
def test_plan_words_name_who_answers_how_and_what_is_hidden(mechanism: str, unit: str, d: int) -> None:
    words = wording.plan_words(make_plan(*[("static", 20)] * d, mechanism=mechanism, unit=unit))
    family, oracle = mechanism.split("-")
    has_fakes = family == "rsfd" and d > 1
    assert "%" not in words
    assert ("the one indicator" in words) == (family != "spl" and d == 1)
    assert (f"one of the {d} indicators" in words) == (family != "spl" and d > 1)
    assert (f"all {d} indicators, which share the epsilon" in words) == (family == "spl")
    assert ("made-up reports on the others" in words) == has_fakes
    assert ("does not hide all values of a person together" in words) == (has_fakes and unit == "attribute")
    assert ("that hides nothing" in words) == (has_fakes and unit == "profile")
    assert ("(GRR)" in words, "OUE)" in words) == (oracle in ("grr", "adp"), oracle in ("oue", "ouez", "adp"))
    assert "the same value never gets a second answer." in words


def test_answer_words_are_those_of_the_channel() -> None:
    """At epsilon 1: e / (e + 1) and the rest of two values; 1/2 and 1 / (e + 1)."""
    codes, bits = (make_plan(("static", 2), mechanism=m).channel(0) for m in ("smp-grr", "smp-oue"))
    assert spaced(wording.answer_words(codes)) == (
        "True in 73.1_% of cases; each other category takes its place in 26.9_%."
    )
    assert spaced(wording.answer_words(bits)) == (
        "Marks the true category in 50.0_% of cases, and each other category in 26.9_%."
    )
    faked = make_plan(*[("static", 2)] * 4, mechanism="rsfd-ouez").channel(0)
    assert spaced(wording.answer_words(faked)) == (
        "Marks the true category in 50.0_% of cases, and each other category in 26.9_%. "
        "Only 25.0_% of the reports are answers; the others are made up."
    )
