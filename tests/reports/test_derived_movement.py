"""Figures per category: those of the people within their errors, totals without any, and the blanks."""

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from reports.models import DayNote, Indicator, Study
from reports.movement import available_shows, movement
from reports.movement_figures import Movement, Show, Unit
from reports.selectors import Window
from reports.status import Status
from tests.reports import report_factory as factory

pytestmark = pytest.mark.django_db

HALF_STAY = replace(factory.STAY, max_values=2)
EPSILON = "6"  # hardly any noise: an estimate that is off shows at once


def of(study: Study, slug: str = "age") -> Indicator:
    return study.indicators.get(slug=slug)


@pytest.fixture
def crowded(db: None) -> tuple[Study, factory.People]:
    study = factory.create(epsilon=EPSILON)
    people = factory.crowd(study, n=12_000)
    factory.publish(study, people)
    return study, people


def check(found: Movement, truths: list[np.ndarray]) -> None:
    """Every interval, at 95 %, may miss one or two of its cells, but never by far."""
    assert len(found.points) == len(truths)
    cells = missed = 0
    for point, truth in zip(found.points, truths, strict=True):
        for estimate, true in zip(point.estimates, truth, strict=True):
            assert estimate.ci_low is not None
            assert estimate.ci_high is not None
            half = (estimate.ci_high - estimate.ci_low) / 2
            if point.status == Status.OK and half:
                assert estimate.ci_low - 1.5 * half < true < estimate.ci_high + 1.5 * half
                cells += 1
                missed += not estimate.ci_low <= true <= estimate.ci_high
    assert missed <= max(2, 0.25 * cells)


def count(people: factory.People, chosen: np.ndarray) -> np.ndarray:
    return np.bincount(people.static["age"][chosen], minlength=3)


def test_arrivals_returns_and_departures_are_those_of_the_people(
    crowded: tuple[Study, factory.People],
) -> None:
    study, people = crowded
    nobody = people.bitmaps == 0
    arrivals, returning, departures = [], [], []
    for day in range(1, 5):
        today = people.present(day, day)
        before = people.present(1, day - 1) if day > 1 else nobody
        after = people.present(day + 1, 4) if day < 4 else nobody
        arrivals.append(today & ~before)
        returning.append(today & before)
        departures.append(today & ~after)
    for show, truth in (
        (Show.ARRIVALS, arrivals),
        (Show.RETURNING, returning),
        (Show.DEPARTURES, departures),
    ):
        found = movement(of(study), show=show)
        assert found.is_exact
        assert [point.total for point in found.points] == [chosen.sum() for chosen in truth]
        check(found, [count(people, chosen) for chosen in truth])
    totals = movement(of(study)).totals
    assert [(day.arrivals, day.returning, day.departures) for day in totals] == [
        tuple(int(each[day].sum()) for each in (arrivals, returning, departures)) for day in range(4)
    ]
    # everybody arrives on the first day and leaves on the last one; nobody returns to the first
    assert [e.ci_high for e in movement(of(study), show=Show.RETURNING).points[0].estimates] == [0, 0, 0]


def test_shares_that_come_back_are_those_of_the_people(crowded: tuple[Study, factory.People]) -> None:
    study, people = crowded
    cohort = people.present(2, 2)
    of_cohort = count(people, cohort)
    found = movement(of(study), show=Show.BACK_WITHIN, cohort=2)
    assert (found.unit, found.cohort, found.is_exact) == (Unit.SHARE, 2, True)
    check(found, [count(people, cohort & people.present(3, day)) / of_cohort for day in (3, 4)])
    for point in found.points:
        assert point.total == (cohort & people.present(3, point.day)).sum() / cohort.sum()
    again = movement(of(study), show=Show.THERE_AGAIN, cohort=2)
    assert [point.is_exact for point in again.points] == [True, False]
    truth = [count(people, cohort & people.present(day, day)) / of_cohort for day in (3, 4)]
    check(again, truth)
    apart = again.points[1]
    assert apart.total is None
    assert apart.low < (cohort & people.present(4, 4)).sum() / cohort.sum() < apart.high
    assert all(estimate.value is None for estimate in apart.estimates)
    assert all(estimate.value is not None for estimate in again.points[0].estimates)


def test_days_present_and_new_in_a_window_are_those_of_the_people(
    crowded: tuple[Study, factory.People],
) -> None:
    study, people = crowded
    days = np.array([int(bits).bit_count() for bits in people.bitmaps])
    means = np.bincount(people.static["age"], weights=days) / np.bincount(people.static["age"])
    found = movement(of(study), show=Show.DAYS_PRESENT)
    assert (found.unit, found.is_exact) == (Unit.DAYS, False)
    assert found.points[0].total == pytest.approx(days.mean())
    check(found, [means])
    window = movement(of(study), show=Show.WINDOW, window=Window(3, 4))
    there, before = people.present(3, 4), people.present(1, 2)
    assert [point.total for point in window.points] == [(there & ~before).sum(), (there & before).sum()]
    check(window, [count(people, there & ~before), count(people, there & before)])


def test_daily_indicator_counts_who_comes_by_the_value_of_the_day(
    crowded: tuple[Study, factory.People],
) -> None:
    study, people = crowded
    stay = of(study, "stay")
    assert available_shows(stay) == (Show.ARRIVALS, Show.RETURNING, Show.WINDOW)
    found = movement(stay)
    truth = []
    for day in range(1, 5):
        before = people.present(1, day - 1) if day > 1 else people.bitmaps == 0
        new = people.present(day, day) & ~before
        truth.append(np.bincount(people.daily["stay"][new, day - 1], minlength=2))
    check(found, truth)
    # What it does not have is not shown under another name.
    assert movement(stay, show=Show.DEPARTURES).show == Show.ARRIVALS


def test_visitors_of_categories_are_scaled_and_totals_are_not() -> None:
    small, whole = (
        factory.create(slug=f"share-{share}", market_share=Decimal(share)) for share in ("0.25", "1")
    )
    for study in (small, whole):
        factory.publish(study, factory.crowd(study))
    scaled, plain = (movement(of(study)).points[1] for study in (small, whole))
    assert scaled.total == plain.total
    for one, other in zip(scaled.estimates, plain.estimates, strict=True):
        assert (one.value, one.ci_low, one.ci_high) == pytest.approx(
            (4 * other.value, 4 * other.ci_low, 4 * other.ci_high)
        )
    shares = [
        movement(of(study), show=Show.BACK_WITHIN).points[0].estimates[0].value for study in (small, whole)
    ]
    assert shares[0] == shares[1]


@pytest.mark.parametrize("show", list(Show))
def test_visitors_without_answers_have_totals_and_no_figures(show: Show) -> None:
    study = factory.create()
    people = factory.crowd(study, n=200)
    unknown = {slug: values * 0 - 1 for slug, values in people.static.items()}
    factory.publish(study, replace(people, static=unknown))
    found = movement(of(study), show=show)
    assert found.points[-1].low is not None
    for estimate in (each for point in found.points for each in point.estimates):
        assert (estimate.value, estimate.status) in {(None, Status.NOT_COLLECTED), (0, Status.OK)}


@pytest.mark.parametrize("show", list(Show))
def test_study_without_data_has_blanks_only(show: Show) -> None:
    found = movement(of(factory.create()), show=show)
    for point in found.points:
        assert point.status == Status.NOT_COLLECTED
        assert point.low is None
        assert {estimate.value for estimate in point.estimates} == {None}


def test_day_without_data_is_blank_and_the_days_beside_it_are_not() -> None:
    study = factory.create()
    factory.publish(study, factory.absent_on(factory.crowd(study), day=3))
    DayNote.objects.create(study=study, day=3, kind="outage", text="mast down", by="olga")
    for show in (Show.ARRIVALS, Show.RETURNING, Show.DEPARTURES):
        points = movement(of(study), show=show).points
        assert [point.status for point in points] == [Status.OK, Status.OK, Status.OUTAGE, Status.OK]
        assert points[2].low is None
    again = movement(of(study), show=Show.THERE_AGAIN, cohort=1).points
    assert [point.status for point in again] == [Status.OK, Status.OUTAGE, Status.OK]


def test_nobody_is_said_to_stay_away_from_days_without_data() -> None:
    study = factory.create()
    people = factory.crowd(study)
    factory.publish(study, factory.absent_on(factory.absent_on(people, day=4), day=3))
    back = movement(of(study), show=Show.BACK_WITHIN, cohort=1).points
    assert [point.status for point in back] == [Status.OK, Status.OK, Status.OK]  # day 2 counts
    for show in (Show.BACK_WITHIN, Show.THERE_AGAIN):
        points = movement(of(study), show=show, cohort=2).points
        assert {(point.status, point.low) for point in points} == {(Status.NOT_COLLECTED, None)}


def test_few_who_come_back_are_suppressed_and_the_others_are_not() -> None:
    study = factory.create(small_cell=100)
    people = factory.crowd(study, n=1000)
    bitmaps = np.array([0b0001] * 450 + [0b0011] * 40 + [0b0101] * 510, np.uint64)
    factory.publish(study, replace(people, bitmaps=bitmaps))
    back = movement(of(study), show=Show.BACK_WITHIN, cohort=1).points
    assert [point.status for point in back] == [Status.SUPPRESSED, Status.OK, Status.OK]
    assert back[0].low is None
    assert {estimate.ci_low for estimate in back[0].estimates} == {None}


def test_few_visitors_are_suppressed_by_the_small_cell_rule() -> None:
    study = factory.create(small_cell=1000)
    people = factory.crowd(study)
    factory.publish(study, people)
    found = movement(of(study), show=Show.ARRIVALS)
    for point in found.points:
        truth = (people.present(point.day, point.day)).sum() - (
            (people.present(1, point.day - 1) & people.present(point.day, point.day)).sum()
            if point.day > 1
            else 0
        )
        assert (point.status == Status.SUPPRESSED) == (truth < 1000)
        assert (point.low is None) == (truth < 1000)
        assert all((e.ci_low is None) == (truth < 1000) for e in point.estimates)
    assert {point.status for point in found.points} == {Status.OK, Status.SUPPRESSED}
    assert found.totals[3].arrivals is None


def test_wide_intervals_are_not_reliable() -> None:
    study = factory.create(epsilon="0.3")
    factory.publish(study, factory.crowd(study, n=300))
    estimates = movement(of(study), show=Show.ARRIVALS).points[-1].estimates
    assert {estimate.status for estimate in estimates} == {Status.NOT_RELIABLE}


def test_indicator_of_some_days_and_study_of_one_day_have_totals_only() -> None:
    some = factory.create(factory.GENDER, HALF_STAY, slug="some")
    one = factory.create(factory.GENDER, slug="one", days=1)
    for study, slug in ((some, "stay"), (one, "gender")):
        factory.publish(study, factory.crowd(study))
        found = movement(of(study, slug))
        assert (found.show, found.points, found.available) == (None, (), ())
        assert sum(day.arrivals for day in found.totals) == 4000


def test_choices_out_of_range_fall_back(crowded: tuple[Study, factory.People]) -> None:
    study, _ = crowded
    assert movement(of(study), show=Show.BACK_WITHIN, cohort=4).cohort == 1
    assert movement(of(study), show=Show.WINDOW, window=Window(1, 2)).window == Window(2, 4)


def test_movement_takes_few_queries(fair: Study, django_assert_num_queries) -> None:
    indicator = of(fair)
    fresh = Indicator.objects.select_related("study").get(pk=indicator.pk)
    with django_assert_num_queries(3):  # notes, twice; tally with plan and visitors
        movement(fresh, show=Show.THERE_AGAIN)


@pytest.mark.parametrize("show", list(Show))
def test_work_grows_with_the_days_and_not_with_their_pairs(
    show: Show, monkeypatch: pytest.MonkeyPatch
) -> None:
    """62 days and 100 categories: a few estimates per day."""
    from ldp import windows

    many = factory.indicator("region", *(f"Region {code}" for code in range(100)))
    study = factory.create(many, days=62)
    factory.publish(study, factory.crowd(study, n=20_000))
    calls = []
    estimate = windows.pure_frequencies
    monkeypatch.setattr(
        windows, "pure_frequencies", lambda *args, **kw: calls.append(1) or estimate(*args, **kw)
    )
    found = movement(study.indicators.get(slug="region"), show=show)
    assert len(calls) <= 5 * 62
    assert len(found.points) in (1, 2, 61, 62)


def test_no_figure_tells_of_a_day_that_the_small_cell_rule_hides() -> None:
    study = factory.create(small_cell=100)
    people = factory.crowd(study, n=1000)
    # 40 on day 1 only, 20 on both; everybody else from day 2 on; day 4 has 30 of them.
    bitmaps = np.array([0b0001] * 40 + [0b0011] * 20 + [0b0110] * 910 + [0b1110] * 30, np.uint64)
    factory.publish(study, replace(people, bitmaps=bitmaps))
    found = movement(of(study), show=Show.ARRIVALS)
    assert [day.coverage.visitors for day in found.totals] == [None, 960, 940, None]
    # Visitors of days 1 to 2 (1,000) less who is new on day 2 (940) would be those of day 1.
    assert (found.totals[1].arrivals, found.totals[1].returning) == (None, None)
    assert found.totals[1].coverage.first_time is None
    assert [point.status for point in found.points][:2] == [Status.SUPPRESSED, Status.SUPPRESSED]
    # Visitors of days 3 to 4 less the last visits on day 3 would be those of day 4.
    assert [day.departures for day in found.totals] == [None, None, None, None]
    # All visits less those of the days that are shown would be those of the hidden days.
    assert (found.key.n_visits, found.key.mean_days, found.key.return_visits) == (None, None, None)
    [mean] = movement(of(study), show=Show.DAYS_PRESENT).points
    assert (mean.status, mean.low) == (Status.SUPPRESSED, None)
    assert {estimate.ci_low for estimate in mean.estimates} == {None}
    back = movement(of(study), show=Show.THERE_AGAIN, cohort=2).points
    assert [point.status for point in back] == [Status.OK, Status.SUPPRESSED]


def test_that_nobody_came_back_does_not_tell_how_many_came_later() -> None:
    study = factory.create(small_cell=100)
    people = factory.crowd(study, n=1000)
    # Visitors of days 1 and 2 less those of day 1, if nobody was on both, would be those of day 2.
    factory.publish(study, replace(people, bitmaps=np.array([0b0001] * 960 + [0b0010] * 40, np.uint64)))
    back = movement(of(study), show=Show.BACK_WITHIN, cohort=1).points
    assert {(point.status, point.low) for point in back} == {(Status.SUPPRESSED, None)}


def test_few_who_are_new_hide_who_returns_too() -> None:
    study = factory.create(small_cell=100)
    people = factory.crowd(study, n=1000)
    factory.publish(study, replace(people, bitmaps=np.array([0b0011] * 960 + [0b0110] * 40, np.uint64)))
    day = movement(of(study)).totals[1]
    assert (day.coverage.visitors, day.arrivals, day.returning) == (1000, None, None)
    returning = movement(of(study), show=Show.RETURNING).points[1]
    assert (returning.status, returning.low) == (Status.SUPPRESSED, None)
