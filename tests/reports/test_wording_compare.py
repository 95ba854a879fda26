"""What is said of differences: signs, whole sentences, and nothing where nothing is shown."""

from dataclasses import replace

import pytest
from django.utils import translation

from reports import compare, wording_compare
from reports.compare import Comparison, Kind, Verdict
from reports.models import Study
from reports.selectors import Window

pytestmark = pytest.mark.django_db

HIGHER, LOWER, NOT_SHOWN = Verdict.HIGHER, Verdict.LOWER, Verdict.NOT_SHOWN


@pytest.fixture
def comparison(fair: Study) -> Comparison:
    """Three rows of made-up differences: +4.1, -2.0 and 0.0 points."""
    gender = fair.indicators.get(slug="gender")
    found = compare.compare_windows(gender, Window(2, 2), Window(1, 1), of="frequency")
    numbers = [(0.041, 0.012, 0.07), (-0.02, -0.05, -0.001), (0.0004, -0.02, 0.02)]
    return replace(
        found,
        rows=tuple(
            replace(row, difference=value, low=low, high=high)
            for row, (value, low, high) in zip(found.rows, numbers, strict=True)
        ),
    )


def judged(comparison: Comparison, *verdicts: tuple[Verdict, Verdict]) -> Comparison:
    """The same with verdicts (alone, held) of each row."""
    rows = [
        replace(row, alone=alone, held=held)
        for row, (alone, held) in zip(comparison.rows, verdicts, strict=True)
    ]
    return replace(comparison, rows=tuple(rows))


def test_differences_have_a_sign_and_a_unit(comparison: Comparison) -> None:
    shares = [wording_compare.change(row, "frequency") for row in comparison.rows]
    assert shares == ["+4.1 points", "\u22122.0 points", "0.0 points"]
    assert wording_compare.change_range(comparison.rows[0], "frequency") == "+1.2 to +7.0"
    people = replace(comparison.rows[0], difference=-1234.4, low=-2000.0, high=0.3)
    assert wording_compare.change(people, "visitors") == "\u22121\u202f234 visitors"
    assert wording_compare.change_range(people, "visitors") == "\u22122\u202f000 to 0"


def test_sentence_names_the_largest_difference_that_holds(comparison: Comparison) -> None:
    text = wording_compare.summary(
        judged(comparison, (HIGHER, HIGHER), (LOWER, LOWER), (NOT_SHOWN, NOT_SHOWN))
    )
    assert text == (
        "More F than on Thu 30 May 2024: +4.1 points (+1.2 to +7.0). It is the largest of 2 differences that "
        "hold in the table as a whole, of 3."
    )
    text = wording_compare.summary(
        judged(comparison, (HIGHER, NOT_SHOWN), (LOWER, LOWER), (NOT_SHOWN, NOT_SHOWN))
    )
    assert text == (
        "Fewer M than on Thu 30 May 2024: \u22122.0 points (\u22125.0 to \u22120.1). It is the only "
        "difference of 3 that holds in the table as a whole."
    )


def test_what_does_not_hold_is_not_named(comparison: Comparison) -> None:
    alone = judged(comparison, (HIGHER, NOT_SHOWN), (NOT_SHOWN, NOT_SHOWN), (NOT_SHOWN, NOT_SHOWN))
    assert wording_compare.summary(alone).startswith(
        "No difference holds in the table as a whole. 1 of 3 categories differs by itself"
    )
    nothing = judged(comparison, *[(NOT_SHOWN, NOT_SHOWN)] * 3)
    assert wording_compare.summary(nothing) == (
        "No difference can be shown in any of the 3 categories: all intervals include 0."
    )


def test_one_row_needs_no_correction(comparison: Comparison) -> None:
    one = replace(judged(comparison, *[(HIGHER, HIGHER)] * 3), kind=Kind.CATEGORIES, category="M")
    one = replace(one, rows=one.rows[:1])
    assert wording_compare.summary(one) == "More F than M: +4.1 points (+1.2 to +7.0)."
    assert wording_compare.correction(one) == ""
    assert "Holm" in wording_compare.correction(comparison)
    nothing = replace(one, rows=(replace(one.rows[0], alone=NOT_SHOWN, held=NOT_SHOWN),))
    assert wording_compare.summary(nothing) == "No difference can be shown: the interval includes 0."


def test_reference_is_named_by_its_kind(comparison: Comparison) -> None:
    mean = replace(comparison, kind=Kind.BASELINE, baseline=(1, 3, 4))
    assert wording_compare.reference_title(mean) == "Mean of 3 other days"
    assert wording_compare.reference_title(replace(mean, baseline=(1,))) == "Thu 30 May 2024"
    studies = replace(comparison, kind=Kind.STUDIES)
    assert wording_compare.reference_title(studies) == "The fair, Thu 30 May 2024"


def test_every_verdict_has_a_word_and_a_sign_of_its_own() -> None:
    assert len({wording_compare.verdict_word(verdict) for verdict in Verdict}) == len(Verdict)
    assert len({wording_compare.verdict_sign(verdict) for verdict in Verdict}) == len(Verdict)


def test_numbers_follow_the_language(comparison: Comparison) -> None:
    with translation.override("fr"):
        assert wording_compare.change(comparison.rows[0], "frequency").startswith("+4,1")
