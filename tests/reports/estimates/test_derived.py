"""Totals and figures per category that follow from the tallies: those of the people, and the blanks."""

from datetime import date
from decimal import Decimal

import numpy as np
import pytest

import ldp
from ldp.estimation import windows
from reports.base.status import Status
from reports.estimates import queries
from reports.estimates.coverage import Coverage, coverage_of
from reports.estimates.derived import KeyFigures, key_figures
from reports.estimates.notes import note_day
from reports.estimates.queries import Window, visitor_unions
from reports.estimates.small_cells import ShownVisitors
from reports.estimates.texts import key_facts
from reports.models import DayNote, Indicator, Study
from reports.movement.figures import Movement, Show, Unit
from reports.movement.queries import available_shows, movement
from reports.scenario.population import synthesise
from reports.scenario.queries import refusal
from tests.reports import report_factory as factory
from tests.reports.page_texts import words

pytestmark = pytest.mark.django_db


def of(study: Study, slug: str = "age") -> Indicator:
    return study.indicators.get(slug=slug)


@pytest.fixture
def crowded(db) -> tuple[Study, factory.People]:
    study = factory.create(epsilon="6")  # hardly any noise: an estimate that is off shows at once
    people = factory.crowd(study, n=12_000)
    factory.publish(study, people)
    return study, people


def check(found: Movement, truths: list[np.ndarray]) -> None:
    """Every interval, at 95%, may miss one or two of its cells, but never by far."""
    assert len(found.points) == len(truths)
    cells = missed = 0
    for point, truth in zip(found.points, truths, strict=True):
        for estimate, true in zip(point.estimates, truth, strict=True):
            half = (estimate.ci_high - estimate.ci_low) / 2
            if point.status == Status.OK and half:
                assert estimate.ci_low - 1.5 * half < true < estimate.ci_high + 1.5 * half
                cells += 1
                missed += not estimate.ci_low <= true <= estimate.ci_high
    assert missed <= max(2, 0.25 * cells)


def count(people: factory.People, chosen: np.ndarray) -> np.ndarray:
    return np.bincount(people.static["age"][chosen], minlength=3)


def test_arrivals_returns_and_departures_are_those_of_the_people(crowded) -> None:
    study, people = crowded
    nobody = people.bitmaps == 0
    today = [people.present(day, day) for day in range(1, 5)]
    before = [nobody, *(people.present(1, day) for day in range(1, 4))]
    after = [*(people.present(day, 4) for day in range(2, 5)), nobody]
    truths = {
        Show.ARRIVALS: [there & ~been for there, been in zip(today, before, strict=True)],
        Show.RETURNING: [there & been for there, been in zip(today, before, strict=True)],
        Show.DEPARTURES: [there & ~comes for there, comes in zip(today, after, strict=True)],
    }
    for show, truth in truths.items():
        found = movement(of(study), show=show)
        assert found.is_exact
        assert [point.total for point in found.points] == [chosen.sum() for chosen in truth]
        assert [getattr(day, show.value) for day in found.totals] == [chosen.sum() for chosen in truth]
        check(found, [count(people, chosen) for chosen in truth])
    told = [(day.coverage.visitors, day.coverage.first_time) for day in movement(of(study)).totals]
    new = truths[Show.ARRIVALS]
    assert told == [(there.sum(), first.sum()) for there, first in zip(today, new, strict=True)]
    # no one returns to the first day
    assert [e.ci_high for e in movement(of(study), show=Show.RETURNING).points[0].estimates] == [0, 0, 0]


def test_shares_that_come_back_and_days_present_are_those_of_the_people(crowded) -> None:
    study, people = crowded
    cohort = people.present(2, 2)
    found, of_cohort = movement(of(study), show=Show.BACK_WITHIN, cohort=2), count(people, cohort)
    assert (found.unit, found.cohort, found.is_exact) == (Unit.SHARE, 2, True)
    check(found, [count(people, cohort & people.present(3, day)) / of_cohort for day in (3, 4)])
    for point in found.points:
        assert point.total == (cohort & people.present(3, point.day)).sum() / cohort.sum()
    again = movement(of(study), show=Show.THERE_AGAIN, cohort=2)
    check(again, [count(people, cohort & people.present(day, day)) / of_cohort for day in (3, 4)])
    exact, apart = again.points
    assert (exact.is_exact, apart.is_exact, apart.total) == (True, False, None)
    assert apart.low < (cohort & people.present(4, 4)).sum() / cohort.sum() < apart.high
    days = np.array([int(bits).bit_count() for bits in people.bitmaps])
    found = movement(of(study), show=Show.DAYS_PRESENT)
    assert (found.unit, found.points[0].total) == (Unit.DAYS, pytest.approx(days.mean()))
    check(found, [np.bincount(people.static["age"], weights=days) / np.bincount(people.static["age"])])
    window = movement(of(study), show=Show.WINDOW, window=Window(3, 4))
    new = people.present(3, 4) & ~people.present(1, 2)
    check(window, [count(people, new), count(people, people.present(3, 4) & ~new)])


def test_daily_indicator_counts_who_comes_by_the_value_of_the_day(crowded) -> None:
    study, people = crowded
    stay = of(study, "stay")
    assert available_shows(stay) == (Show.ARRIVALS, Show.RETURNING, Show.WINDOW)
    found = movement(stay)
    truth = []
    for day in range(1, 5):
        new = people.present(day, day) & ~(people.present(1, day - 1) if day > 1 else people.bitmaps == 0)
        truth.append(np.bincount(people.daily["stay"][new, day - 1], minlength=2))
    check(found, truth)
    # Missing figures are not shown under another name.
    assert movement(stay, show=Show.DEPARTURES).show == Show.ARRIVALS


def test_renewed_reports_tell_who_comes_but_not_who_was_there_before(reader) -> None:
    """Each day has its own report: what needs the same one twice is not shown, and pages say why."""
    study = factory.create(epsilon="12", mechanism="smp-allomfree")
    people = factory.crowd(study, n=12_000)
    factory.publish(study, people)
    age = of(study)
    assert available_shows(age) == (Show.ARRIVALS, Show.RETURNING, Show.WINDOW)
    found, back = movement(age), movement(age, show=Show.RETURNING)
    new = [
        people.present(day, day) & ~(people.present(1, day - 1) if day > 1 else people.bitmaps == 0)
        for day in range(1, 5)
    ]
    check(found, [count(people, each) for each in new])
    returned = [people.present(day, day) & ~new[day - 1] for day in range(1, 5)]
    check(back, [count(people, each) for each in returned][-len(back.points) :])
    assert movement(age, show=Show.DEPARTURES).show == Show.ARRIVALS
    (report,), tallies = queries.reports_with_tallies([age], [[Window(2, 3)]])[0]
    truth = count(people, people.present(2, 3))
    assert report.n_reports == pytest.approx(truth.sum() / 3, rel=0.05)  # one of three indicators each
    for estimate, share in zip(report.estimates, truth / truth.sum(), strict=True):
        assert abs(estimate.frequency - share) < 0.04
    assert not windows.window_difference(
        tallies, first=Window(1, 2), second=Window(2, 3), of="frequency"
    ).is_exact
    page = reader.get("/studies/fair-2024/age/movement/").content.decode()
    assert "is reported again on each day" in page
    assert "is reported again on each day" in refusal(study, age)
    assert refusal(study) == ""
    assert synthesise(study, people=2_000).left_out["age"] == "is reported again each day"


def test_visitors_of_categories_are_scaled_and_totals_are_not(fair) -> None:
    small = factory.published(slug="small", market_share=Decimal("0.25"))
    scaled, plain = (movement(of(study)).points[1] for study in (small, fair))
    assert scaled.total == plain.total
    for one, other in zip(scaled.estimates, plain.estimates, strict=True):
        expected = [4 * other.value, 4 * other.ci_low, 4 * other.ci_high]
        assert [one.value, one.ci_low, one.ci_high] == pytest.approx(expected)
    scaled, plain = (movement(of(study), show=Show.BACK_WITHIN).points[0] for study in (small, fair))
    assert scaled.estimates[0].value == plain.estimates[0].value


@pytest.mark.parametrize("show", list(Show))
def test_without_answers_there_are_totals_and_without_data_blanks_only(show) -> None:
    study, empty = factory.create(), factory.create(slug="empty")
    factory.publish(study, factory.unanswered(factory.crowd(study, n=200)))
    found = movement(of(study), show=show)
    assert found.points[-1].low is not None
    for estimate in (each for point in found.points for each in point.estimates):
        assert (estimate.value, estimate.status) in {(None, Status.NOT_COLLECTED), (0, Status.OK)}
    for point in movement(of(empty), show=show).points:
        assert (point.status, point.low) == (Status.NOT_COLLECTED, None)
        assert {estimate.value for estimate in point.estimates} == {None}


def test_day_without_data_is_blank_and_the_days_beside_it_are_not() -> None:
    study = factory.published(gap=3)
    DayNote.objects.create(study=study, day=3, kind="outage", text="mast down", by="olga")
    for show in (Show.ARRIVALS, Show.RETURNING, Show.DEPARTURES):
        points = movement(of(study), show=show).points
        assert [point.status for point in points] == [Status.OK, Status.OK, Status.OUTAGE, Status.OK]
        assert points[2].low is None
    again = movement(of(study), show=Show.THERE_AGAIN, cohort=1).points
    assert [point.status for point in again] == [Status.OK, Status.OUTAGE, Status.OK]
    study = factory.create(slug="two-days")  # no one is said to stay away from days without data
    factory.publish(study, factory.absent_on(factory.absent_on(factory.crowd(study), day=4), day=3))
    back = movement(of(study), show=Show.BACK_WITHIN, cohort=1).points
    assert [point.status for point in back] == [Status.OK, Status.OK, Status.OK]  # day 2 counts
    for show in (Show.BACK_WITHIN, Show.THERE_AGAIN):
        points = movement(of(study), show=show, cohort=2).points
        assert {(point.status, point.low) for point in points} == {(Status.NOT_COLLECTED, None)}


def test_few_who_come_back_are_suppressed_and_wide_intervals_are_not_reliable() -> None:
    study = factory.create(small_cell=100)
    factory.publish(study, factory.of_days(study, {0b0001: 450, 0b0011: 40, 0b0101: 510}))
    back = movement(of(study), show=Show.BACK_WITHIN, cohort=1).points
    assert [point.status for point in back] == [Status.SUPPRESSED, Status.OK, Status.OK]
    assert {back[0].low, *(estimate.ci_low for estimate in back[0].estimates)} == {None}
    wide = movement(of(factory.published(slug="wide", n=300, epsilon="0.3")), show=Show.ARRIVALS).points[-1]
    assert {estimate.status for estimate in wide.estimates} == {Status.NOT_RELIABLE}


def test_indicator_of_some_days_and_study_of_one_day_have_totals_only() -> None:
    some = factory.published(factory.GENDER, factory.HALF_STAY, slug="some")
    for study, slug in ((some, "stay"), (factory.published(factory.GENDER, slug="one", days=1), "gender")):
        found = movement(of(study, slug))
        assert (found.show, found.points, found.available) == (None, (), ())
        assert sum(day.arrivals for day in found.totals) == 4000


def test_choices_out_of_range_fall_back_and_a_movement_takes_few_queries(fair, django_assert_num_queries):
    assert movement(of(fair), show=Show.BACK_WITHIN, cohort=4).cohort == 1
    assert movement(of(fair), show=Show.WINDOW, window=Window(1, 2)).window == Window(2, 4)
    fresh = Indicator.objects.select_related("study").get(pk=of(fair).pk)
    with django_assert_num_queries(3):  # notes, twice; tally with plan and visitors
        movement(fresh, show=Show.THERE_AGAIN)
    unions = visitor_unions(fair)
    with django_assert_num_queries(0):
        given = key_figures(fair, visitors=unions)  # totals that are there are not read again
    with django_assert_num_queries(1):
        assert key_figures(fair) == given


def test_work_grows_with_the_days_and_not_with_their_pairs(monkeypatch) -> None:
    """62 days and 100 categories: a few estimates per day."""
    many = factory.indicator("region", *(f"Region {code}" for code in range(100)))
    study = factory.published(many, days=62, n=20_000)
    calls = []
    estimate = windows.pure_frequencies
    counted = lambda *args, **kw: calls.append(1) or estimate(*args, **kw)  # noqa: E731
    monkeypatch.setattr(windows, "pure_frequencies", counted)
    for show in Show:
        calls.clear()
        found = movement(of(study, "region"), show=show)
        assert len(calls) <= 5 * 62, show
        assert len(found.points) in (1, 2, 61, 62), show


def test_no_figure_tells_of_a_day_that_the_small_cell_rule_hides() -> None:
    study = factory.create(small_cell=100)
    # 40 on day 1 only, 20 on both; everyone else from day 2 on; day 4 has 30 of them.
    factory.publish(study, factory.of_days(study, {0b0001: 40, 0b0011: 20, 0b0110: 910, 0b1110: 30}))
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
    assert (mean.status, {mean.low, *(each.ci_low for each in mean.estimates)}) == (Status.SUPPRESSED, {None})
    back = movement(of(study), show=Show.THERE_AGAIN, cohort=2).points
    assert [point.status for point in back] == [Status.SUPPRESSED, Status.SUPPRESSED]  # 20 stay away on day 3


def test_a_difference_with_a_small_complement_is_hidden() -> None:
    for people, is_new_hidden, is_last_hidden in (
        ({0b0011: 50, 0b0010: 50, 0b0110: 50}, False, False),
        ({0b0011: 50, 0b0010: 5, 0b0101: 50}, True, False),  # few are new on day 2
        ({0b0011: 5, 0b0001: 50, 0b0010: 50, 0b0100: 50}, True, False),  # few return: the complement
        ({0b0001: 5, 0b0010: 50, 0b0100: 50}, True, False),  # few were there before
        ({0b0011: 50, 0b0010: 50, 0b1000: 5}, False, True),  # few come later: the complement
        ({0b0111: 50, 0b0110: 50, 0b0010: 5}, False, True),  # few leave
        ({0b0010: 50, 0b0110: 5, 0b0100: 50}, False, True),  # few come back: the rest of those of day 2
        ({0b0011: 50, 0b0001: 5, 0b0010: 50}, True, False),  # few stay away: the rest of those of day 1
        ({0b0010: 50, 0b0100: 50}, False, False),  # no one is not few
    ):
        study = Study(days=4, small_cell=10)
        counts = np.zeros((5, 5), np.int64)
        bitmaps = np.repeat(np.array(list(people), np.uint64), list(people.values()))
        ldp.tally_visitors(bitmaps, counts, sign=1)
        shown = ShownVisitors(study, ldp.all_unions(counts))
        found = (shown.first_time(2) is None, shown.last_time(2) is None)
        assert found == (is_new_hidden, is_last_hidden), people


def test_key_figures_are_those_of_the_people(fair) -> None:
    presence = factory.crowd(fair).bitmaps[:, np.newaxis] >> np.arange(4, dtype=np.uint64) & np.uint64(1)
    daily = presence.sum(axis=0)
    found = key_figures(fair)
    assert found.n_visitors == 4000
    assert (found.n_visits, found.return_visits) == (presence.sum(), presence.sum() - 4000)
    assert found.return_share == pytest.approx(1 - 4000 / presence.sum())
    assert found.mean_days == pytest.approx(presence.sum(axis=1).mean())
    assert (found.busiest_visitors, found.busiest_day) == (daily.max(), fair.date_of(int(daily.argmax()) + 1))
    assert found.days_with_visitors == 4
    part = key_figures(fair, window=Window(2, 3))
    assert part.n_visitors == presence[:, 1:3].any(axis=1).sum()
    assert (part.n_visits, part.busiest_visitors) == (daily[1:3].sum(), daily[1:3].max())
    study = factory.create(slug="even", days=3)  # the first of equally busy days is named
    factory.publish(study, factory.of_days(study, {0b110: 50}))
    found = key_figures(study)
    assert (found.busiest_day, found.busiest_visitors, found.mean_days) == (date(2024, 5, 31), 50, 2)


def test_returning_visitors_are_exact_for_two_days_and_between_bounds_for_more(fair, reader) -> None:
    presence = factory.crowd(fair).bitmaps[:, np.newaxis] >> np.arange(4, dtype=np.uint64) & np.uint64(1)
    weekend, all_days = key_figures(fair, window=Window(3, 4)), key_figures(fair)
    both = int((presence[:, 2:].sum(axis=1) > 1).sum())
    assert (weekend.several_days.least, weekend.several_days.most) == (both, both)
    before = int((presence[:, :2].any(axis=1) & presence[:, 2:].any(axis=1)).sum())
    assert (weekend.before.least, weekend.before.most) == (before, before)
    found = all_days.several_days
    assert found.least < (presence.sum(axis=1) > 1).sum() < found.most and all_days.before is None
    page = "/studies/fair-2024/"
    text = words(reader.get(f"{page}?from=2024-06-01&to=2024-06-02"))
    n = weekend.n_visitors
    assert f"Present on more than one day {both:,} {both / n:.1%} of visitors" in text
    assert f"Returning (present before these days) {before:,} {before / n:.1%} of visitors" in text
    assert "the exact number is not known" not in text
    assert f"Present on more than one day {found.least:,} to {found.most:,}" in words(reader.get(page))
    text = words(reader.get(f"{page}?from=2024-05-30&to=2024-05-30"))
    assert "Present on more than one day" not in text and "Returning (present" not in text


def test_few_returning_visitors_are_suppressed() -> None:
    study = factory.create(slug="few", days=3, small_cell=10)
    factory.publish(study, factory.of_days(study, {0b011: 5, 0b001: 50, 0b010: 50, 0b110: 50}))
    few, enough, longer = (key_figures(study, window=Window(*days)) for days in ((1, 2), (2, 3), (1, 3)))
    assert (few.several_days.least, enough.several_days.least) == (None, 50)
    assert key_facts(few)[4].status == Status.SUPPRESSED
    assert longer.several_days is None  # the rule does not say that they are few
    assert enough.before.least is None  # 5 of them


def test_key_figures_of_few_visitors_are_suppressed_and_a_study_without_data_has_none() -> None:
    study = factory.create(slug="empty")
    found = key_figures(study)
    assert found == KeyFigures(status=Status.NOT_COLLECTED, days_with_visitors=0)
    assert (found.return_visits, found.return_share) == (None, None)
    days = coverage(study)
    assert (days.published, days.next_missing.day) == (0, 1)
    study = factory.published(n=50, small_cell=60)
    assert key_figures(study) == KeyFigures(status=Status.SUPPRESSED, days_with_visitors=4)
    study.small_cell = 45  # all of them are enough, those of each day are not
    found = key_figures(study)
    assert (found.n_visitors, found.busiest_day, found.busiest_visitors) == (50, None, None)
    study.small_cell = 20
    assert [day.first_time is None for day in coverage(study).days] == [False, True, True, True]


def coverage(study: Study) -> Coverage:
    return coverage_of(study, visitors=queries.visitor_unions(study), notes=study.day_notes.all())


def test_each_day_has_its_own_kind_of_blank() -> None:
    study = factory.published(small_cell=2000, gap=3)
    note_day(study, day=date(2024, 6, 2), kind=DayNote.Kind.OUTAGE, text="Power cut", by="adam")
    note_day(study, day=date(2024, 5, 30), kind=DayNote.Kind.EVENT, text="Opening", by="adam")
    assert key_figures(study).days_with_visitors == 3
    found = coverage(study)
    assert [day.status for day in found.days] == [Status.OK, Status.OK, Status.NOT_COLLECTED, Status.OUTAGE]
    assert [day.visitors is None for day in found.days] == [False, False, True, True]
    assert [note.text for note in found.days[0].notes] == ["Opening"]
    assert (found.published, found.next_missing) == (2, found.days[2])
    assert found.counts == [(Status.OK, 2), (Status.NOT_COLLECTED, 1), (Status.OUTAGE, 1)]


def test_weeks_start_on_monday_and_hold_every_day_once() -> None:
    study = factory.create(days=12)  # from Thursday 30 May
    weeks = coverage(study).weeks
    assert [len(week) for week in weeks] == [7, 7, 7]
    days = [day for week in weeks for day in week]
    assert [day and day.day for day in days] == [None] * 3 + list(range(1, 13)) + [None] * 6
    assert (days[3].date, days[7].date) == (date(2024, 5, 30), date(2024, 6, 3))
