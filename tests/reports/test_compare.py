"""Comparisons: the right difference of the right numbers, judged row by row and as a table."""

from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from ldp import windows
from ldp.contrasts import day_difference, sample_of, value_difference
from ldp.windows import window_difference
from reports import compare, selectors
from reports.compare import Comparison, NotComparableError, Reason, Verdict
from reports.models import Indicator, Study
from reports.selectors import UnionNotAvailableError, Window
from reports.status import Status
from tests.reports import report_factory as factory

pytestmark = pytest.mark.django_db

CALM = Window(1, 2)
BUSY = Window(2, 4)
MANY = factory.indicator("region", *(f"Region {letter}" for letter in "ABCDEFGHIJKL"))


@pytest.fixture
def age(fair: Study) -> Indicator:
    return fair.indicators.get(slug="age")


def tallies_of(indicator: Indicator) -> windows.IndicatorTallies:
    ((_, tallies),) = selectors.reports_with_tallies([indicator], [[]])
    return tallies


def numbers(comparison: Comparison) -> list[list[float]]:
    return [[row.difference, row.low, row.high] for row in comparison.rows]


def columns(found: windows.WindowEstimate) -> list[Any]:
    rows = zip(found.value, found.ci_low, found.ci_high, strict=True)
    return [pytest.approx(list(row), abs=1e-9) for row in rows]


@pytest.mark.parametrize("of", ["frequency", "visitors"])
def test_windows_are_compared_per_category_with_their_published_values(age: Indicator, of: Any) -> None:
    found = compare.compare_windows(age, BUSY, CALM, of=of)
    first, second = windows.Window(1, 2), windows.Window(2, 4)
    assert numbers(found) == columns(window_difference(tallies_of(age), first=first, second=second, of=of))
    assert [row.category for row in found.rows] == age.categories
    busy, calm = (selectors.window_report(age, window) for window in (BUSY, CALM))
    for row, now, then in zip(found.rows, busy.estimates, calm.estimates, strict=True):
        suffix = {"frequency": "ci", "visitors": "visitors_ci"}[of]
        for value, estimate in ((row.value, now), (row.reference, then)):
            assert value.value == getattr(estimate, of)
            assert (value.low, value.high) == (
                getattr(estimate, f"{suffix}_low"),
                getattr(estimate, f"{suffix}_high"),
            )
    assert found.is_exact


def test_the_other_way_round_is_the_negative(age: Indicator) -> None:
    forth = compare.compare_windows(age, BUSY, CALM, of="frequency")
    back = compare.compare_windows(age, CALM, BUSY, of="frequency")
    for one, other in zip(forth.rows, back.rows, strict=True):
        assert one.difference == pytest.approx(-other.difference)
        assert (one.low, one.high) == (pytest.approx(-other.high), pytest.approx(-other.low))


def test_windows_apart_are_bounded(age: Indicator) -> None:
    assert not compare.compare_windows(age, Window(1, 1), Window(4, 4), of="frequency").is_exact


def test_verdicts_are_what_the_intervals_say() -> None:
    study = factory.create(MANY, days=4, epsilon="2")
    factory.publish(study, factory.crowd(study))
    region = study.indicators.get()
    found = compare.compare_categories(region, Window(1, 4), reference=5, category=None, of="frequency")
    verdicts = {Verdict.HIGHER: 0, Verdict.LOWER: 0, Verdict.NOT_SHOWN: 0}
    for row in found.rows:
        expected = Verdict.HIGHER if row.low > 0 else Verdict.LOWER if row.high < 0 else Verdict.NOT_SHOWN
        assert row.alone == expected
        assert row.held in (row.alone, Verdict.NOT_SHOWN)
        verdicts[row.alone] += 1
    assert all(verdicts.values())
    assert 0 < found.n_held < found.n_alone
    assert found.largest.held != Verdict.NOT_SHOWN
    weakest = min((row for row in found.rows if row.held == row.alone != Verdict.NOT_SHOWN), key=span)
    lost = [row for row in found.rows if row.held != row.alone]
    assert all(span(row) < span(weakest) for row in lost)


def span(row: compare.Row) -> float:
    """Distance from 0 in half widths: above 1 the row differs."""
    return abs(row.difference) / (row.high - row.low)


def test_a_row_alone_needs_no_correction(age: Indicator) -> None:
    found = compare.compare_categories(age, Window(1, 4), reference=2, category=0, of="frequency")
    assert [row.category for row in found.rows] == ["<18"]
    assert found.rows[0].held == found.rows[0].alone == Verdict.HIGHER
    assert found.category == "25 & older"


@pytest.mark.parametrize("of", ["frequency", "visitors"])
def test_categories_share_their_reports(age: Indicator, of: Any) -> None:
    found = compare.compare_categories(age, BUSY, reference=1, category=None, of=of)
    sample = sample_of(tallies_of(age), windows.Window(2, 4))
    expected = columns(value_difference(sample, reference=1, of=of).estimate())
    assert numbers(found) == [expected[0], expected[2]]
    estimates = selectors.window_report(age, BUSY).estimates
    assert {row.reference.value for row in found.rows} == {getattr(estimates[1], of)}
    assert [row.value.value for row in found.rows] == [getattr(estimates[code], of) for code in (0, 2)]


def test_baseline_is_all_other_days_unless_chosen(age: Indicator) -> None:
    found = compare.compare_baseline(age, 2, baseline=None, of="frequency")
    assert found.baseline == (1, 3, 4)
    contrast = day_difference(tallies_of(age), day=2, baseline=[1, 3, 4], of="frequency")
    assert numbers(found) == columns(contrast.estimate())
    assert not found.is_exact
    days = [selectors.window_report(age, Window(day, day)).estimates for day in (1, 3, 4)]
    for code, row in enumerate(found.rows):
        assert row.reference.value == pytest.approx(sum(day[code].frequency for day in days) / 3)
        assert row.difference == pytest.approx(row.value.value - row.reference.value)
    chosen = compare.compare_baseline(age, 2, baseline=[2, 4, 9], of="frequency")
    assert chosen.baseline == (4,)


def test_baseline_of_the_day_before_is_exact(age: Indicator) -> None:
    found = compare.compare_baseline(age, 2, baseline=[1], of="visitors")
    assert found.is_exact
    assert numbers(found) == numbers(compare.compare_windows(age, Window(2, 2), Window(1, 1), of="visitors"))


def test_baseline_leaves_out_days_without_numbers() -> None:
    study = factory.create(days=4)
    factory.publish(study, factory.absent_on(factory.crowd(study), day=3))
    gender = study.indicators.get(slug="gender")
    found = compare.compare_baseline(gender, 1, baseline=None, of="frequency")
    assert (found.baseline, found.left_out) == ((2, 4), (3,))
    with pytest.raises(NotComparableError) as caught:
        compare.compare_baseline(gender, 1, baseline=[3], of="frequency")
    assert caught.value.reason == Reason.NO_BASELINE
    with pytest.raises(NotComparableError) as caught:
        compare.compare_baseline(gender, 3, baseline=None, of="frequency")
    assert (caught.value.reason, caught.value.report.window) == (Reason.BLANK, Window(3, 3))


def test_visitors_are_scaled_to_the_population() -> None:
    def differences(share: str, slug: str) -> list[Comparison]:
        study = factory.create(slug=slug, market_share=Decimal(share))
        factory.publish(study, factory.crowd(study))
        age = study.indicators.get(slug="age")
        return [
            compare.compare_windows(age, BUSY, CALM, of="visitors"),
            compare.compare_categories(age, BUSY, reference=0, category=None, of="visitors"),
            compare.compare_baseline(age, 1, baseline=None, of="visitors"),
        ]

    for whole, half in zip(differences("1", "all"), differences("0.5", "half"), strict=True):
        for one, two in zip(whole.rows, half.rows, strict=True):
            assert two.difference == pytest.approx(2 * one.difference)
            assert (two.low, two.high) == (pytest.approx(2 * one.low), pytest.approx(2 * one.high))
            assert two.value.value == pytest.approx(2 * one.value.value)
            assert two.reference.value == pytest.approx(2 * one.reference.value)
            assert two.alone == one.alone


def second_study(*categories: str, **changes: Any) -> Indicator:
    made = factory.create(
        factory.indicator("band", *categories), slug="fair-2025", first_day=date(2025, 5, 29), **changes
    )
    factory.publish(made, factory.crowd(made, seed=2), key=bytes(15) + b"\1")
    return made.indicators.get()


def test_studies_are_compared_by_the_names_of_categories(age: Indicator) -> None:
    band = second_study("25 & older", "<18", "18-24", market_share=Decimal("0.25"))
    found = compare.compare_studies(age, BUSY, other=band, other_window=CALM, of="visitors")
    here, there = selectors.window_report(age, BUSY), selectors.window_report(band, CALM)
    theirs = {estimate.category: estimate for estimate in there.estimates}
    for row, estimate in zip(found.rows, here.estimates, strict=True):
        other = theirs[row.category]
        assert row.category == estimate.category
        assert row.reference.value == other.visitors
        assert row.difference == pytest.approx(estimate.visitors - other.visitors)
        width = (estimate.visitors - estimate.visitors_ci_low) ** 2
        width += (other.visitors_ci_high - other.visitors) ** 2
        assert row.low == pytest.approx(row.difference - width**0.5)
    assert found.is_exact


def test_other_categories_are_refused(age: Indicator) -> None:
    band = second_study("<18", "18-24", "older")
    with pytest.raises(NotComparableError) as caught:
        compare.compare_studies(age, BUSY, other=band, other_window=CALM, of="frequency")
    assert caught.value.reason == Reason.OTHER_CATEGORIES


def test_indicators_of_other_studies_with_the_same_categories_are_offered(age: Indicator) -> None:
    assert compare.comparable_indicators(age, among=Study.objects.all()) == []
    band = second_study("25 & older", "<18", "18-24")
    assert compare.comparable_indicators(age, among=Study.objects.all()) == [band]
    assert (
        compare.comparable_indicators(age.study.indicators.get(slug="gender"), among=Study.objects.all())
        == []
    )


def test_what_is_the_same_is_not_compared(age: Indicator) -> None:
    with pytest.raises(NotComparableError) as caught:
        compare.compare_windows(age, BUSY, BUSY, of="frequency")
    assert caught.value.reason == Reason.SAME_WINDOWS
    with pytest.raises(NotComparableError) as caught:
        compare.compare_categories(age, BUSY, reference=1, category=1, of="frequency")
    assert caught.value.reason == Reason.SAME_CATEGORIES


def test_suppressed_window_is_not_compared() -> None:
    study = factory.create(days=4)
    people = factory.absent_on(factory.crowd(study), day=3)
    people.bitmaps[:5] = 4  # five people on the third day
    factory.publish(study, people)
    Study.objects.update(small_cell=10)
    gender = Indicator.objects.get(slug="gender")
    for call in (
        lambda: compare.compare_windows(gender, CALM, Window(3, 3), of="visitors"),
        lambda: compare.compare_categories(gender, Window(3, 3), reference=0, category=1, of="visitors"),
        lambda: compare.compare_baseline(gender, 3, baseline=None, of="visitors"),
    ):
        with pytest.raises(NotComparableError) as caught:
            call()
        assert (caught.value.reason, caught.value.report.status) == (Reason.BLANK, "suppressed")
    assert compare.compare_baseline(gender, 1, baseline=None, of="visitors").left_out == (3,)


def test_union_of_an_indicator_with_few_answers_is_refused() -> None:
    study = factory.create(replace(factory.STAY, max_values=2))
    factory.publish(study, factory.crowd(study))
    stay = study.indicators.get()
    with pytest.raises(UnionNotAvailableError):
        compare.compare_windows(stay, CALM, Window(3, 3), of="frequency")
    assert not compare.compare_windows(stay, Window(1, 1), Window(2, 2), of="frequency").is_exact
    assert len(compare.compare_baseline(stay, 2, baseline=None, of="frequency").rows) == 2


@pytest.mark.parametrize("mechanism", ["spl-grr", "smp-oue", "smp-adp", "rsfd-grr", "rsfd-ouez", "rsfd-adp"])
def test_every_mechanism_can_be_compared(mechanism: str) -> None:
    study = factory.create(factory.GENDER, factory.AGE, mechanism=mechanism)
    factory.publish(study, factory.crowd(study))
    gender = study.indicators.get(slug="gender")
    for found in (
        compare.compare_windows(gender, BUSY, CALM, of="frequency"),
        compare.compare_categories(gender, BUSY, reference=2, category=None, of="frequency"),
        compare.compare_baseline(gender, 2, baseline=None, of="frequency"),
    ):
        assert all(row.low < row.difference < row.high for row in found.rows)


@pytest.fixture
def few() -> Indicator:
    """Of 400 people: a single day is not reliable, windows are."""
    study = factory.create()
    factory.publish(study, factory.crowd(study, n=400))
    gender = study.indicators.get(slug="gender")
    day, window = (selectors.window_report(gender, each) for each in (Window(1, 1), Window(1, 4)))
    assert (day.status, window.status) == (Status.NOT_RELIABLE, Status.OK)
    return gender


def not_judged(found: Comparison) -> bool:
    verdicts = {verdict for row in found.rows for verdict in (row.alone, row.held)}
    return found.status == Status.NOT_RELIABLE and verdicts == {Verdict.NOT_SHOWN}


def test_a_difference_is_as_reliable_as_both_of_its_sides(
    few: Indicator, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Even where an interval leaves out 0.
    monkeypatch.setattr(compare, "excludes_zero", lambda found: np.ones(found.value.size, np.bool_))
    monkeypatch.setattr(compare, "holm", lambda _, rows, **__: np.ones(rows.size, np.bool_))
    day, window = Window(1, 1), Window(1, 4)
    for first, second in ((day, window), (window, day)):
        found = compare.compare_windows(few, first, second, of="frequency")
        assert not_judged(found)
        assert all(row.low < row.difference < row.high for row in found.rows)
    assert not_judged(compare.compare_categories(few, day, reference=0, category=None, of="visitors"))
    both = compare.compare_windows(few, window, Window(2, 4), of="frequency")
    assert (both.status, both.n_held) == (Status.OK, 3)


@pytest.mark.parametrize("of", ["frequency", "visitors"])
def test_the_mean_of_a_baseline_is_judged_by_its_own_intervals(few: Indicator, of: Any) -> None:
    """Three days that are not reliable have a mean that is; a single one has not."""
    days = [selectors.window_report(few, Window(day, day)).status for day in range(1, 5)]
    assert days == [Status.NOT_RELIABLE] * 4
    mean = compare.compare_baseline(few, 1, baseline=None, of=of)
    assert {row.reference.status for row in mean.rows} == {Status.OK}
    assert not_judged(mean)  # the day itself is not reliable
    single = compare.compare_baseline(few, 1, baseline=[3], of=of)
    assert {row.reference.status for row in single.rows} == {Status.NOT_RELIABLE}
