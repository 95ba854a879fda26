"""Moves from files to totals: one of each visitor's day, the same in any order of files, new on each day."""

from collections import Counter, defaultdict
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest

from ldp import derive_subkey, union
from reports.models import Indicator, Tally
from reports.studies.studyfile import StudyDefinition
from tests.ldp.exact import reference_below
from tests.mobility.batches.test_daily_places import (
    CELLS,
    DAYS,
    FIRST_DAY,
    PEOPLE,
    ZONE_OF,
    Row,
    last_in_quarters,
    some_rows,
    truth_of,
    write_dates,
    write_file,
)
from tests.mobility.extracts.rows.night_study import night_study
from tests.mobility.extracts.rows.small_extract import asked_of, pseudonym_of
from tests.mobility.pipeline import MASTER_KEY, Pipeline
from tests.study_text import daily

pytestmark = pytest.mark.django_db(databases=["default", "vault"])
PLACES = ("South", "North", "outside")
CATEGORIES = [" / ".join(each) for each in product(PLACES, PLACES)]
NOTHING = "outside / outside"
PER_DAY = 3
KEYS = {purpose: derive_subkey(MASTER_KEY, purpose=purpose) for purpose in ("pseudonym", "sanitise")}
Moves = dict[tuple[str, int], list[str]]


@pytest.fixture
def definition() -> StudyDefinition:
    """Return a study of epsilon 20, where one answer in 50 million is wrong: counts are true."""
    trips = daily("trips", derive="moves", more=f"max_moves = {PER_DAY}\n")
    return night_study(first_day=FIRST_DAY, days=DAYS, night_from="", more=trips)


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return some_rows(seed=12)


@pytest.fixture(scope="module")
def asked() -> set[str]:
    return who_answers(3)


def who_answers(*indicators: int) -> set[str]:
    names = {f"33{person:04d}" for person in range(PEOPLE)}
    return {name for name in names if asked_of(_pseudonym(name), d=4, key=KEYS["sanitise"]) in indicators}


def _pseudonym(name: str) -> int:
    return pseudonym_of(name, key=KEYS["pseudonym"])


def moves_of(rows: list[Row]) -> Moves:
    """All moves of each visitor on each day, in their order."""
    by_day = defaultdict(list)
    for row in dict.fromkeys(rows):
        if 1 <= row.day <= DAYS and row.local.hour >= 6 and row.cell in ZONE_OF:
            by_day[row.who, row.day].append(row)
    found = {}
    for key in truth_of(rows).visitors:
        zones = [ZONE_OF[CELLS[-place]] or "outside" for _, place in last_in_quarters(by_day[key])]
        path = ["outside", *zones, "outside"]
        found[key] = [f"{a} / {b}" for a, b in pairwise(path) if a != b]
    return found


def picked(moves: Moves, *, day: int, asked: set[str]) -> Counter[str]:
    """Count the moves that are reported on a day, by the keyed block written out."""
    reported = Counter[str]()
    for (who, of_day), mine in moves.items():
        if of_day == day and who in asked:
            fields = {"pseudonym": _pseudonym(who), "indicator": 3, "plan_version": 0, "value": 0}
            among = [*mine, *[NOTHING] * (PER_DAY - len(mine))]
            place = reference_below(KEYS["sanitise"], len(among), purpose=14, counter=256 * day, **fields)
            reported[among[place]] += 1
    return reported


def counted(pipeline: Pipeline, day: int) -> dict[str, int]:
    tally = Tally.objects.get(plan__study__slug=pipeline.study.slug, indicator__slug="trips")
    counts = np.frombuffer(tally.counts, "<i8").reshape(len(CATEGORIES), DAYS + 1, DAYS + 1)
    of_day = union(counts, first_day=day, last_day=day)
    return {name: int(n) for name, n in zip(CATEGORIES, of_day, strict=True) if n}


def test_each_visitor_reports_one_move_of_the_day(
    make_pipeline, definition, rows, asked, tmp_path: Path
) -> None:
    """In any order of files, with repeated ones, with a day in two files, and with attributes apart."""
    plain, moves = make_pipeline(), moves_of(rows)
    plain.upload(write_file(tmp_path / "all.csv", rows))
    assert Indicator.objects.get(slug="trips").categories == CATEGORIES
    assert {len(each) > PER_DAY for each in moves.values()} == {True, False}
    assert [] in moves.values()
    reported = Counter[str]()
    for day in range(1, DAYS + 1):
        expected = picked(moves, day=day, asked=asked)
        assert counted(plain, day) == expected
        reported += expected
    assert len(reported) == 7  # no one moves from a zone to itself
    dates = write_dates(tmp_path / "dates", rows)
    day_by_day = make_pipeline(slug="day-by-day")
    day_by_day.upload(dates[DAYS + 1], *(dates[day] for day in range(DAYS, -1, -1)), dates[2])
    assert day_by_day.tallies() == plain.tallies()
    halves, of_day = make_pipeline(slug="halves"), [row for row in rows if row.day == 2]
    some = write_file(tmp_path / "some.csv", [row for row in of_day if row.local.hour % 2])
    others = write_file(tmp_path / "others.csv", [row for row in of_day if not row.local.hour % 2])
    halves.upload(dates[3], some, more_to_come=True)
    halves.upload(dates[DAYS + 1], dates[4], dates[1], dates[3], others, dates[0])
    assert halves.tallies() == plain.tallies()
    apart = make_pipeline(slug="apart", extract=replace(definition.extract, attributes="subscribers"))
    apart.upload(tmp_path / "all.csv")
    assert apart.tallies()["trips"] == plain.tallies()["trips"]


def test_late_rows_change_no_answer_and_an_undone_day_is_answered_again(
    make_pipeline, rows, asked, tmp_path: Path
) -> None:
    pipeline = make_pipeline()
    late = [row for row in rows if row.day == 2 and row.local.hour >= 16]
    first = [row for row in rows if row not in late]
    pipeline.upload(write_file(tmp_path / "first.csv", first))
    (batch,) = pipeline.upload(write_file(tmp_path / "late.csv", late))
    known, full = moves_of(first), moves_of(rows)
    assert counted(pipeline, 2) == picked(full | known, day=2, asked=asked)
    assert batch.notes["late_change"] > 0
    assert counted(pipeline, 3) == picked(full, day=3, asked=asked)
    before = pipeline.tallies()
    pipeline.void_day(3)
    assert counted(pipeline, 3) == {}
    dates = write_dates(tmp_path / "dates", rows)
    pipeline.upload(dates[3])
    assert pipeline.tallies() == before  # the same day, the same bits
