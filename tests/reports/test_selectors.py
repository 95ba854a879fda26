"""From tallies to estimates: exact totals, honest errors, and windows that do or do not exist."""

from dataclasses import replace
from datetime import date
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from django.utils import timezone, translation

import ldp
from reports import selectors
from reports.models import Indicator, Plan, Study, Tally
from reports.selectors import UnionNotAvailableError, Window, WindowError
from tests.reports import report_factory as factory

pytestmark = [pytest.mark.django_db, pytest.mark.database]

HALF_STAY = factory.indicator(
    "stay", "short", "long", kind="daily", column=None, derive="visit_duration", max_values=2
)


def of(study: Study, slug: str) -> Indicator:
    return study.indicators.get(slug=slug)


def frequencies(values: np.ndarray, k: int) -> np.ndarray:
    return np.bincount(values, minlength=k) / values.size


def test_windows_are_all_unions_of_consecutive_days() -> None:
    study = factory.create(days=3)
    assert selectors.windows_of(study) == [
        Window(1, 1), Window(1, 2), Window(1, 3), Window(2, 2), Window(2, 3), Window(3, 3),
    ]  # fmt: skip


def test_window_from_dates_counts_days_from_one() -> None:
    study = factory.create()
    assert selectors.window_from_dates(study, date(2024, 5, 31), date(2024, 6, 2)) == Window(2, 4)


@pytest.mark.parametrize(
    ("first", "last"),
    [
        (date(2024, 5, 29), date(2024, 5, 30)),
        (date(2024, 6, 2), date(2024, 6, 3)),
        (date(2024, 6, 1), date(2024, 5, 31)),
    ],
)
def test_window_outside_the_study_is_refused(first: date, last: date) -> None:
    with pytest.raises(WindowError, match=rf"2024-05-30 to 2024-06-02.*got {first} to {last}"):
        selectors.window_from_dates(factory.create(), first, last)


def test_visitors_of_every_window_are_exact() -> None:
    study = factory.create()
    people = factory.crowd(study)
    factory.publish(study, people)
    unions = selectors.visitor_unions(study)
    for window in selectors.windows_of(study):
        truth = np.count_nonzero(people.present(window.first_day, window.last_day))
        assert unions[window.first_day, window.last_day] == truth
        report = selectors.window_report(of(study, "gender"), window)
        assert report.n_visitors == truth


def test_reports_of_all_indicators_add_up_to_the_visitors_when_each_answers_one() -> None:
    study = factory.create()
    factory.publish(study, factory.crowd(study))
    for window in selectors.windows_of(study):
        reports = selectors.study_reports(list(study.indicators.all()), window)
        assert sum(report.n_reports for report in reports) == reports[0].n_visitors
        for report in reports:
            assert sum(estimate.reports for estimate in report.estimates) == report.n_reports


@pytest.mark.parametrize("mechanism", ["smp-grr", "spl-grr"])
def test_estimates_lie_within_their_errors_of_the_truth(mechanism: str) -> None:
    study = factory.create(mechanism=mechanism, epsilon="4")
    people = factory.crowd(study, n=8000)
    factory.publish(study, people)
    for window in selectors.windows_of(study):
        present = people.present(window.first_day, window.last_day)
        for slug in ("gender", "age"):
            report = selectors.window_report(of(study, slug), window)
            truth = frequencies(people.static[slug][present], len(report.estimates))
            for estimate, true in zip(report.estimates, truth, strict=True):
                assert abs(estimate.frequency - true) < 5 * estimate.std_error
                assert estimate.ci_low < estimate.frequency < estimate.ci_high
            assert sum(estimate.consistent for estimate in report.estimates) == pytest.approx(1)


def test_union_of_a_daily_indicator_is_the_value_of_the_first_day_there() -> None:
    study = factory.create(factory.STAY, epsilon="8")
    people = factory.crowd(study, n=8000)
    # Only the first day is long: a union is then far from the mean of its days.
    first_days = np.array([(int(b) & -int(b)).bit_length() - 1 for b in people.bitmaps])
    values = np.zeros((people.bitmaps.size, study.days), np.int32)
    values[np.arange(first_days.size), first_days] = 1
    factory.publish(study, replace(people, daily={"stay": values}))
    whole = selectors.window_report(of(study, "stay"), Window(1, 4)).estimates[1]
    assert abs(whole.frequency - 1) < 5 * whole.std_error + 1e-3
    last = selectors.window_report(of(study, "stay"), Window(4, 4)).estimates[1]
    truth = np.count_nonzero(first_days == 3) / np.count_nonzero(people.present(4, 4))
    assert abs(last.frequency - truth) < 5 * last.std_error


def test_numbers_are_those_of_the_library_for_the_same_counts() -> None:
    study = factory.create(market_share=Decimal("0.4"))
    delta = factory.publish(study, factory.crowd(study))
    window = {"first_day": 2, "last_day": 3}
    counts = ldp.union(delta.counts[1], **window)
    n_reports = int(ldp.union(delta.n_reports[1], **window))
    n_visitors = int(ldp.union(delta.visitors, **window))
    expected = ldp.grr_frequencies(
        counts,
        n_reports=n_reports,
        n_population=n_visitors,
        channel=ldp.grr_channel(epsilon=Fraction(1), domain_size=3),
    )
    report = selectors.window_report(of(study, "age"), Window(2, 3))
    assert (report.n_visitors, report.n_reports) == (n_visitors, n_reports)
    for code, estimate in enumerate(report.estimates):
        assert estimate.reports == counts[code]
        assert estimate.frequency == expected.frequency[code]
        assert estimate.std_error == expected.std_error[code]
        assert (estimate.ci_low, estimate.ci_high) == (expected.ci_low[code], expected.ci_high[code])
        assert estimate.visitors == pytest.approx(expected.frequency[code] * n_visitors / 0.4)
        assert estimate.visitors_ci_low == pytest.approx(expected.ci_low[code] * n_visitors / 0.4)
        assert estimate.visitors_ci_high == pytest.approx(expected.ci_high[code] * n_visitors / 0.4)


def test_report_names_its_plan() -> None:
    study = factory.create(mechanism="spl-grr", unit="attribute", epsilon="3")
    report = selectors.window_report(of(study, "age"), Window(1, 1))
    assert (report.plan_version, report.mechanism, report.unit) == (1, "spl-grr", "attribute")
    assert report.epsilon == 1.0  # 3 shared by three indicators
    assert (report.first_date, report.last_date) == (date(2024, 5, 30), date(2024, 5, 30))


def test_newest_plan_is_read() -> None:
    study = factory.create(factory.GENDER)
    factory.publish(study, factory.crowd(study))
    old = Plan.objects.get(study=study)
    Plan.objects.filter(pk=old.pk).update(superseded_at=timezone.now())
    spec = replace(ldp.PlanSpec.from_json(old.spec), version=2)
    new = Plan.objects.create(
        study=study,
        version=2,
        mechanism="smp-grr",
        unit="profile",
        epsilon=1,
        spec=spec.to_json(),
        spec_hash="x",
    )
    zero = ldp.Delta.zero(spec)
    Tally.objects.create(
        plan=new,
        indicator=of(study, "gender"),
        counts=zero.counts[0].tobytes(),
        n_reports=zero.n_reports[0].tobytes(),
    )
    assert selectors.current_plan(study) == new
    report = selectors.window_report(of(study, "gender"), Window(1, 1))
    assert (report.plan_version, report.n_reports) == (2, 0)


def test_window_without_answers_has_zeros_and_nothing_else() -> None:
    study = factory.create()
    report = selectors.window_report(of(study, "gender"), Window(1, 4))
    assert (report.n_visitors, report.n_reports) == (0, 0)
    assert [estimate.category for estimate in report.estimates] == ["F", "M", "NR"]
    for estimate in report.estimates:
        assert estimate == selectors.Estimate(category=estimate.category, reports=0)


def test_indicator_answered_on_some_days_has_no_unions() -> None:
    study = factory.create(factory.GENDER, HALF_STAY)
    people = factory.crowd(study)
    factory.publish(study, people)
    stay = of(study, "stay")
    assert selectors.windows_of_indicator(stay) == [Window(day, day) for day in range(1, 5)]
    with pytest.raises(UnionNotAvailableError, match="2 of 4 days, got days 1 to 2"):
        selectors.window_report(stay, Window(1, 2))
    with translation.override("fr"), pytest.raises(UnionNotAvailableError, match="doit être un seul jour"):
        selectors.window_report(stay, Window(1, 2))
    left_out = selectors.study_reports(list(study.indicators.all()), Window(1, 2))
    assert [report.indicator.slug for report in left_out] == ["gender"]
    single = selectors.window_report(stay, Window(2, 2))
    truth = frequencies(people.daily["stay"][people.present(2, 2), 1], 2)
    for estimate, true in zip(single.estimates, truth, strict=True):
        assert abs(estimate.frequency - true) < 5 * estimate.std_error


def test_daily_indicator_answered_on_all_days_has_unions() -> None:
    every_day = replace(HALF_STAY, max_values=4)
    assert selectors.has_unions(of(factory.create(every_day), "stay"))


def test_summaries_are_newest_first_with_their_visitors() -> None:
    old = factory.create(slug="old", first_day=date(2020, 1, 1))
    factory.publish(old, factory.crowd(old, n=100))
    factory.create(slug="new", first_day=date(2021, 1, 1))
    summaries = selectors.study_summaries(Study.objects.all())
    assert [(each.study.slug, each.n_visitors, each.n_indicators) for each in summaries] == [
        ("new", 0, 3),
        ("old", 100, 3),
    ]


def test_all_reports_of_a_study_take_three_queries(django_assert_num_queries) -> None:
    study = factory.create()
    factory.publish(study, factory.crowd(study, n=50))
    fresh = Study.objects.get(pk=study.pk)
    with django_assert_num_queries(3):  # indicators; tallies with plans and visitors; notes
        reports = selectors.study_reports(list(fresh.indicators.all()), None)
    assert len(reports) == 30
