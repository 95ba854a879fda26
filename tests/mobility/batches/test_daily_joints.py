"""Daily joint indicators from files to totals: a code a day of that day's values, in any order of files."""

from collections import Counter
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from ldp import derive_subkey, union
from mobility.models import DayState
from mobility.vault.studies import open_study
from reports.models import Tally
from reports.studies.studyfile import StudyDefinition
from tests.mobility.batches.test_daily_places import (
    DAYS,
    FIRST_DAY,
    PEOPLE,
    Row,
    some_rows,
    truth_of,
    write_dates,
    write_file,
)
from tests.mobility.extracts.rows.night_study import night_study
from tests.mobility.extracts.rows.small_extract import asked_of, pseudonym_of
from tests.mobility.pipeline import MASTER_KEY, Pipeline
from tests.study_text import joint

pytestmark = pytest.mark.django_db(databases=["default", "vault"])
PARTS = ("slept_in", "gender", "stayed_in")
ZONES = ("South", "North", "no value")
GENDERS = ("F", "M", "no value")
CATEGORIES = [" / ".join(each) for each in product(ZONES, GENDERS, ZONES)]
Cells = dict[tuple[str, int], str]


@pytest.fixture
def definition() -> StudyDefinition:
    """Return a study of epsilon 20, where one answer in 500 million is wrong: counts are true."""
    trip = joint("trip", *PARTS).replace("static", "daily")
    return night_study(first_day=FIRST_DAY, days=DAYS, more=trip)


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    """Every third person has no gender, and every fourth is a man."""
    genders = ["", "M", "F", "M", "F", "F"]
    return [
        Row(who=row.who, at=row.at, cell=row.cell, gender=genders[int(row.who) % 6])
        for row in some_rows(seed=12, people=PEOPLE)
    ]


@pytest.fixture(scope="module")
def asked() -> set[str]:
    """People who answer the joint indicator, the last of five."""
    pseudonym_key, key = (derive_subkey(MASTER_KEY, purpose=each) for each in ("pseudonym", "sanitise"))
    names = {f"33{person:04d}" for person in range(PEOPLE)}
    return {name for name in names if asked_of(pseudonym_of(name, key=pseudonym_key), d=5, key=key) == 4}


def values_of(rows: list[Row]) -> Cells:
    """Combination of each visitor on each day."""
    truth, genders = truth_of(rows), {row.who: row.gender or "no value" for row in rows}
    return {
        key: " / ".join(
            each or "no value" for each in (truth.slept_in.get(key), genders[key[0]], truth.stayed_in[key])
        )
        for key in truth.visitors
    }


def expected_on(values: Cells, *, day: int, asked: set[str]) -> Counter[str]:
    return Counter(value for (who, of_day), value in values.items() if of_day == day and who in asked)


def counted(pipeline: Pipeline, day: int) -> dict[str, int]:
    tally = Tally.objects.get(plan__study__slug=pipeline.study.slug, indicator__slug="trip")
    counts = np.frombuffer(tally.counts, "<i8").reshape(len(CATEGORIES), DAYS + 1, DAYS + 1)
    of_day = union(counts, first_day=day, last_day=day)
    return {name: int(n) for name, n in zip(CATEGORIES, of_day, strict=True) if n}


def test_everyone_present_reports_the_values_of_the_day(make_pipeline, rows, asked, tmp_path: Path) -> None:
    """Also people who lack one; in any order of files, and with repeated ones."""
    plain, values = make_pipeline(), values_of(rows)
    plain.upload(write_file(tmp_path / "all.csv", rows))
    for day in range(1, DAYS + 1):
        found = counted(plain, day)
        assert found == expected_on(values, day=day, asked=asked)
        assert any("no value" in name for name in found)
    dates = write_dates(tmp_path / "dates", rows)
    day_by_day = make_pipeline(
        slug="day-by-day"
    )  # a night is over with the next date, and the last one with its day
    day_by_day.upload(dates[DAYS + 1], *(dates[day] for day in range(DAYS + 1)), dates[2])
    assert day_by_day.tallies() == plain.tallies()
    mixed, of_day = make_pipeline(slug="mixed"), [row for row in rows if row.day == 2]
    some = write_file(tmp_path / "some.csv", [row for row in of_day if row.who < "330060"])
    others = write_file(tmp_path / "others.csv", [row for row in of_day if row.who >= "330060"])
    mixed.upload(dates[DAYS + 1], dates[3], some, more_to_come=True)
    mixed.upload(dates[4], dates[1], dates[3], others, dates[2])
    assert mixed.tallies() == plain.tallies()


def test_late_rows_change_no_answer_that_was_given(make_pipeline, rows, asked, tmp_path: Path) -> None:
    pipeline = make_pipeline()
    late = [row for row in rows if row.day == 2 and row.local.hour >= 16]
    first = [row for row in rows if row not in late]
    pipeline.upload(write_file(tmp_path / "first.csv", first))
    (batch,) = pipeline.upload(write_file(tmp_path / "late.csv", late))
    known, full = values_of(first), values_of(rows)
    assert counted(pipeline, 2) == expected_on(full | known, day=2, asked=asked)
    of_others = {who for who, day in full if day == 2 and (who, 2) not in known}
    assert batch.subscriber_days == len(of_others) > 0
    changed = {key for key in known if key[0] in asked and known[key] != full[key]}
    assert batch.notes["late_change"] >= len(changed) > 0
    assert counted(pipeline, 3) == expected_on(full, day=3, asked=asked)


def test_raw_values_of_static_parts_are_kept_of_those_who_answer_and_only_while_the_day_is_open(
    make_pipeline, rows, asked, tmp_path: Path
) -> None:
    pipeline = make_pipeline()
    pipeline.upload(write_file(tmp_path / "all.csv", rows))
    study = open_study(pipeline.study)
    states = [study.unseal_day(row) for row in DayState.objects.all()]
    kept = {who for seen in states for who in seen.pseudonym[seen.parts[:, 0] <= len(GENDERS)].tolist()}
    assert set() < kept <= {pseudonym_of(name, key=study.pseudonym_key) for name in asked}
    pipeline.close_days(through=DAYS)
    assert not DayState.objects.exists()
