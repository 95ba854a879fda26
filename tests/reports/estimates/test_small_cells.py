"""The small-cell rule: no one can solve for a hidden window from all that is said."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from functools import lru_cache
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from django.http import QueryDict
from django.test import Client

import ldp
from ldp.privacy.plans import PRESENCE_TALLIES
from reports.compare.queries import NotComparableError, compare_baseline, compare_windows
from reports.compare.texts import error_words
from reports.estimates import queries
from reports.estimates.loading import load, tallies_of
from reports.estimates.queries import Window, study_reports, windows_of
from reports.exports.bundle import bundle_of
from reports.exports.errors import ExportError
from reports.exports.findings.movements import movement_findings
from reports.exports.findings.tables import Findings
from reports.exports.records import to_json
from reports.models import Indicator, LedgerEntry, Study, Tally, VisitorTally
from reports.movement.figures import OF_A_DAY, Show
from reports.movement.queries import movement
from reports.scenario import queries as scenarios
from reports.scenario.population import synthesise
from reports.scenario.population_files import population_files
from reports.scenario.query import question_of
from reports.studies.queries import visitors_of
from tests.reports import report_factory as factory

pytestmark = pytest.mark.django_db
LIMIT = 10
Counts = np.ndarray

# 5 people on day 2, 4 on day 3, 7 on either: three hidden windows between busy days.
BETWEEN = {0b01001: 60, 0b00001: 100, 0b01000: 80, 0b11000: 50, 0b10001: 50} | {
    0b00101: 2, 0b01010: 2, 0b00110: 2, 0b10010: 1,
}  # fmt: skip


@contextmanager
def read_once() -> Iterator[None]:
    """Read the tallies of an indicator once for all questions: thousands of them take most of the time."""
    with pytest.MonkeyPatch.context() as patch:
        kept = lru_cache(maxsize=None)(load)
        patch.setattr(queries, "load", lambda indicators: kept(tuple(indicators)))
        yield


def published(people: Mapping[int, int], *asked: Any, **changes: Any) -> Study:
    study = factory.create(*asked, **{"small_cell": LIMIT, "epsilon": "2"} | changes)
    crowd = factory.of_days(study, people)
    static = {slug: values * 0 for slug, values in crowd.static.items()}
    daily = {slug: values * 0 for slug, values in crowd.daily.items()}
    factory.publish(study, replace(crowd, static=static, daily=daily))
    return Study.objects.get(pk=study.pk)


# --- anyone who is on a hidden day, all that is said stays the same ------------------------------


def figures_of(indicator: Indicator) -> Iterator[Any]:
    windows, days = windows_of(indicator.study), range(1, indicator.study.days + 1)
    for one, other in combinations(windows, 2):
        yield one, other, compared(compare_windows, indicator, one, other, of="visitors")
    for day, other in product(days, (*days, None)):
        baseline = None if other is None else [other]
        yield day, other, compared(compare_baseline, indicator, day, baseline=baseline, of="frequency")
    for found in movements_of(indicator):
        yield found.name, found.words, found.rows


def compared(compare: Callable[..., Any], *args: Any, **changes: Any) -> Any:
    try:
        found = compare(*args, **changes)
    except NotComparableError as error:
        return error.reason
    return found.rows, found.is_exact


def movements_of(indicator: Indicator) -> Iterator[Findings]:
    days = range(1, indicator.study.days)
    for show in Show:
        asked: list[dict[str, Any]] = [{}]
        if show in OF_A_DAY:
            asked = [{"cohort": day} for day in days]
        elif show == Show.WINDOW:
            asked = [{"window": window} for window in windows_of(indicator.study) if window.first_day > 1]
        for each in asked:
            yield movement_findings(movement(indicator, show=show, **each))


def pages_of(study: Study, *, reader: Client) -> Iterator[tuple[str, str]]:
    base, api = f"studies/{study.slug}/", f"api/v1/studies/{study.slug}"
    paths = ["studies/", base, f"{base}export.csv", api, f"{api}/visitors"]
    paths += [f"{api}/indicators/gender/windows"]
    paths += [f"{base}gender/{page}" for page in (
        "", "?from=2024-05-31", "days/?show=cumulative", "movement/?show=returning",
        "compare/?from=2024-06-02&with_from=2024-05-30",
    )]  # fmt: skip
    asked = ("/?exactly=2", ".json?present=2024-05-31", ".csv?nights=1")
    paths += [f"{base}{where}scenario{end}" for where in ("", "gender/") for end in asked]
    for path in paths:
        response = reader.get(f"/{path}")
        assert response.status_code == 200, path
        yield path, re.sub(r'csrf\w+" value="\w+"|nonce-[\w-]+', "", response.content.decode())


def all_that_is_said(study: Study, *, reader: Client) -> list[Any]:
    indicators = list(study.indicators.all())
    said: list[Any] = [*pages_of(study, reader=reader), to_json(study_reports(indicators, None))]
    with read_once():
        for indicator in indicators:
            said += figures_of(indicator)
    said += population_files(synthesise(study)).items()
    return [repr(each) for each in said]


def with_one_more(stored: bytes, shape: tuple[int, ...]) -> bytes:
    """Tally in which one more is in each hidden window, and in every other one as many as before."""
    counts = np.frombuffer(stored, "<i8").reshape(shape).copy()
    of_first = counts if counts.ndim == 2 else counts[0]
    for first, last in ((2, 2), (3, 3), (2, 3)):
        of_first[first - 1, last] += 1
        of_first[first - 1, last + 1] -= 1
        of_first[first, last + 1] += 1
        if first < last:
            of_first[first, last] -= 1
    return counts.tobytes()


def test_all_that_is_said_is_the_same_with_one_more_in_a_hidden_window(reader, monkeypatch) -> None:
    monkeypatch.setattr(scenarios, "AT_ONCE_S", 60)  # kept answers would hide a difference
    study = published(BETWEEN, factory.GENDER, factory.STAY, days=5, tallies=PRESENCE_TALLIES)
    before = all_that_is_said(study, reader=reader)
    tallies = Tally.objects.select_related("indicator")
    stored = [(VisitorTally.objects.get(), "counts", (6, 6))]
    VisitorTally.objects.update(stays=bytes(len(stored[0][0].stays)))  # nothing is made of them either
    stored += [(tally, "n_reports", (6, 6)) for tally in tallies]
    stored += [(tally, "counts", (len(tally.indicator.categories), 6, 6)) for tally in tallies]
    for row, field, shape in stored:
        type(row).objects.filter(pk=row.pk).update(**{field: with_one_more(getattr(row, field), shape)})
    after = all_that_is_said(Study.objects.get(), reader=reader)
    assert [each for each in zip(before, after, strict=True) if each[0] != each[1]] == []
    with pytest.raises(ExportError, match="small-cell rule"):
        bundle_of(study)


# --- statements, as equations about the people of each set of days ----------------------------


class Equations:
    """Numbers that a study says, each a sum over people by the set of their days."""

    def __init__(self, study: Study, people: Mapping[int, int]) -> None:
        self.sets = np.arange(2**study.days)
        self.numbers = np.array([people.get(bits, 0) for bits in self.sets])
        self.rows: list[Counts] = []
        self.few: list[Any] = []

    def on(self, first: int, last: int) -> Counts:
        """Return the sets that have one of these days; day 0 is no one's."""
        return (self.sets << 1 & sum(1 << day for day in range(first, last + 1))) != 0

    def add(self, value: float | None, counted: Counts, *, among: Counts, name: Any) -> None:
        """A number that is said (None: it is not): it must be right, and neither it nor the rest be few."""
        if value is None:
            return
        number, rest = (int(self.numbers[which].sum()) for which in (counted & among, among & ~counted))
        assert value == pytest.approx(number), name
        self.rows.append((counted & among).astype(float))
        self.few += [(name, each) for each in (number, rest) if 0 < each < LIMIT]

    def tell(self, wanted: Counts) -> bool:
        """Return whether the wanted number is a combination of what is said."""
        ranks = [np.linalg.matrix_rank(np.stack(rows)) for rows in (self.rows, [*self.rows, wanted])]
        return bool(ranks[0] == ranks[1])


def add_windows(said: Equations, indicator: Indicator) -> None:
    everybody = said.on(1, indicator.study.days)
    for report in study_reports([indicator], None):
        window = report.window
        if report.n_visitors is not None:
            there = said.on(window.first_day, window.last_day)
            said.add(report.n_visitors, there, among=there, name=window)
    key = movement(indicator).key
    said.add(key.n_visitors, everybody, among=everybody, name="all")
    if key.n_visits is not None:
        said.rows.append(np.array([int(bits).bit_count() for bits in said.sets], float))
        said.few += [("returns", n) for n in [key.return_visits] if 0 < n < LIMIT]


def add_movements(said: Equations, indicator: Indicator) -> None:
    study = indicator.study
    day_of = {study.date_of(day).isoformat(): day for day in range(1, study.days + 1)}
    for row in (row for found in movements_of(indicator) for row in found.rows if row["category"] is None):
        name, day = row["figure"], day_of.get(row["day"], 0)
        today, before, later = said.on(day, day), said.on(1, day - 1), said.on(day + 1, study.days)
        parts = {"arrivals": ~before, "returning": before, "departures": later == 0, "visitors": today}
        if name in parts:
            said.add(row["value"], parts[name], among=today, name=(name, day))
        elif name.startswith("window"):
            first, last = (day_of[row[end]] for end in ("window_first_day", "window_last_day"))
            there, before = said.on(first, last), said.on(1, first - 1)
            asked = ~before if name == "window_new" else before
            said.add(row["value"], asked, among=there, name=(name, first, last))
        elif row["cohort_day"]:
            cohort = day_of[row["cohort_day"]]
            there, n = said.on(cohort, cohort), int(said.numbers[said.on(cohort, cohort)].sum())
            again = said.on(cohort + 1, day) if name == "back_within" else today
            value = None if row["value"] is None else row["value"] * n
            said.add(value, again, among=there, name=(name, cohort, day))


def add_comparisons(said: Equations, indicator: Indicator) -> None:
    """Least number of visitors common to two separate windows, read off the errors of their difference.

    An attacker knows how errors are computed. The shown number is of those who go straight to the other;
    the other bound, by Frechet's inequality, is made of windows.
    """
    channel = tallies_of(load([indicator])[0]).channel
    noise = ldp.pure_variance([0, 1], n_reports=1, n_population=1, channel=channel).min()
    for one, other in combinations(windows_of(indicator.study), 2):
        if other.first_day <= one.last_day + 1:
            continue
        try:
            found = compare_windows(indicator, other, one, of="frequency")
        except NotComparableError:
            continue
        sides = [[each.std_error for each in side.estimates] for side in (found.report, found.reference)]
        covariance = np.sum(np.square(sides), axis=0) - np.square([row.std_error for row in found.rows])
        shared = covariance.mean() / 2 * found.report.n_reports * found.reference.n_reports / noise
        first, second = (said.on(each.first_day, each.last_day) for each in (one, other))
        between = said.on(one.last_day + 1, other.first_day - 1)
        surely = (first & second).astype(int) - (between & ~first & ~second)
        if shared > 0.5 and shared != pytest.approx(said.numbers @ surely):
            said.add(shared, first & second & ~between, among=first, name=("straight", one, other))


def add_scenarios(said: Equations, study: Study) -> list[Counts]:
    """Add what scenarios say beyond the windows; returns numbers that these hide, too, since they are few."""
    everybody, few, tally = said.on(1, study.days), [], visitors_of(VisitorTally.objects.get())
    runs, said_before = [[len(run) for run in f"{bits:b}".split("0")] for bits in said.sets], copy(said)
    said_before.rows = said.rows.copy()
    for k in range(1, study.days + 1):
        days = np.array([sum(each) == k for each in runs])
        stays = np.array([each.count(k) for each in runs])
        reaching = np.array([sum(length >= k for length in each) for each in runs])
        for name, counted in (("exactly", days), ("in_a_row", reaching > 0)):
            question = question_of(QueryDict(f"{name}={k}"), study=study)
            found, by_windows = scenarios.answer(question), ldp.scenario_people(tally, question.scenario)
            if by_windows.least < by_windows.most:
                value = found.people.most if found.people.is_determined else None
                said.add(value, counted, among=everybody, name=(name, k))
                few += [counted] if 0 < said.numbers[counted].sum() < LIMIT else []
        if found.people.most == said.numbers @ reaching < by_windows.most:
            said.rows.append(reaching.astype(float))
        if found.stays is None:
            few += [stays] if 0 < said.numbers @ stays < LIMIT else []
            continue
        assert found.stays == said.numbers @ stays
        said.rows.append(stays.astype(float))
        said.few += [("stays", k, n) for n in [said.numbers[stays > 0].sum()] if 0 < n < LIMIT]
    return [each for each in few if not said_before.tell(each.astype(float))]


def some_people(seed: int) -> dict[int, int]:
    numbers = np.random.default_rng(seed)
    return {bits: int(numbers.choice([0, 0, 2, 4, 15, 60])) for bits in range(1, 16)}


# All of day 1 but two come again; no one of day 2 is there on another day.
TWO_LEAVE, APART = {0b0001: 2, 0b0011: 30, 0b1111: 68}, {0b0101: 60, 0b0001: 100, 0b0010: 6, 0b0100: 80}


# Busy days, of which each window is shown; few people have many days, or long stays.
BUSY = {1 << day: 60 for day in range(6)} | {0b11: 40, 0b101: 40, 0b1010: 40, 0b110000: 40}
FEW_LONG = [BUSY | more for more in (
    {0b11111: 3}, {0b111111: 3}, {0b111: 3, 0b101010: 4}, {0b111: 30, 0b11111: 30, 0b111111: 3},
    {0b1111: 700},
)]  # fmt: skip


@pytest.mark.parametrize(
    ("people", "days"),
    [(each, 4) for each in (TWO_LEAVE, APART, *map(some_people, range(8)))]
    + [(each, 6) for each in FEW_LONG],
)
def test_nobody_can_solve_for_a_hidden_number_and_no_figure_is_about_few(people, days) -> None:
    study = published(people, factory.GENDER, days=days, tallies=PRESENCE_TALLIES)
    indicator = study.indicators.get()
    said = Equations(study, people)
    with read_once():
        for add in (add_windows, add_movements, add_comparisons):
            add(said, indicator)
    secret = add_scenarios(said, study)
    windows = [said.on(window.first_day, window.last_day) for window in windows_of(study)]
    hidden = [there for there in windows if 0 < said.numbers[there].sum() < LIMIT]
    assert not any(said.tell(there.astype(float)) for there in (*hidden, *secret))
    assert said.few == []
    assert len(said.rows) > len(windows) - len(hidden)  # there are more statements than windows


def test_the_ledger_has_no_digest_that_hidden_counts_could_be_tried_on() -> None:
    for small_cell in (0, LIMIT):
        published({0b0001: 9, 0b0010: 60}, slug=f"s{small_cell}", small_cell=small_cell)
    entries = LedgerEntry.objects.filter(kind="publication.applied").order_by("number")
    assert [len(entry.facts.get("delta_sha256", "")) for entry in entries] == [64, 0]


def test_what_the_rule_does_not_touch_and_why_an_error_is_a_bound_are_said() -> None:
    study = published({0b0001: 10, 0b0011: 10, 0b0010: 10, 0b1100: 20}, factory.GENDER)
    found = movement(study.indicators.get(), show=Show.BACK_WITHIN, cohort=1)
    assert [(day.arrivals, day.returning, day.departures) for day in found.totals] == [
        (20, 0, 10), (10, 10, 20), (20, 0, 0), (0, 20, 20),
    ]  # fmt: skip
    assert [point.total for point in found.points] == [0.5, 0.5, 0.5]
    assert found.key.n_visits == 80
    few = published({0b0001: 40, 0b0011: 4, 0b0010: 40}, factory.GENDER, slug="few").indicators.get()
    bound = compare_windows(few, Window(2, 2), Window(1, 1), of="frequency")
    assert not bound.is_exact
    assert "suppresses counts of fewer than 10 visitors" in error_words(bound)
