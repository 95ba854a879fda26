"""Main zone and night zone from files to totals: exact, and the same whatever way the files come."""

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from django.apps import apps
from django.db import connections

from ldp.entropy import derive_subkey
from ldp.geo.grid import Grid
from ldp.geo.sanitiser import LocationSanitiser
from ldp.tallies import union
from mobility.ingest.events import NO_VALUE
from mobility.models import Batch, DayState, PresenceShard
from mobility.profiles import OPT_OUT
from mobility.services.closing import Leave, StudyNotClosedError, close_study, unpublished_days
from mobility.services.vault import open_study
from reports.models import Plan, Tally
from reports.studyfile import StudyDefinition
from reports.studyfile.definition import LocationDefinition
from tests.mobility.ingest.night_study import night_study
from tests.mobility.ingest.small_extract import asked_of, pseudonym_of
from tests.mobility.services.conftest import MASTER_KEY, Pipeline
from tests.mobility.services.night_days import (
    CELLS,
    DAYS,
    FIRST_DAY,
    Row,
    Truth,
    some_rows,
    truth_of,
    write_dates,
    write_file,
)

pytestmark = [pytest.mark.database, pytest.mark.django_db(databases=["default", "vault"])]
PEOPLE = 120
INDICATORS = ["gender", "stayed_in", "slept_in", "duration"]
ZONES = ("South", "North")


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return some_rows(seed=11, people=PEOPLE)


@pytest.fixture(scope="module")
def truth(rows: list[Row]) -> Truth:
    return truth_of(rows)


@pytest.fixture
def files(rows: list[Row], tmp_path: Path) -> dict[int, Path]:
    return write_dates(tmp_path / "dates", rows)


@pytest.fixture
def definition() -> StudyDefinition:
    """With epsilon 20 one answer in half a billion is another value: what is counted is what was true."""
    return night_study(first_day=FIRST_DAY, days=DAYS)


def who_answers(slug: str) -> set[str]:
    pseudonym_key = derive_subkey(MASTER_KEY, purpose="pseudonym")
    key = derive_subkey(MASTER_KEY, purpose="sanitise")
    names = {f"33{person:04d}" for person in range(PEOPLE)}
    index = INDICATORS.index(slug)
    return {name for name in names if asked_of(pseudonym_of(name, key=pseudonym_key), d=4, key=key) == index}


def counted(pipeline: Pipeline, slug: str, day: int) -> dict[str, int]:
    """Answers of one day by zone."""
    tally = Tally.objects.get(plan__study__slug=pipeline.study.slug, indicator__slug=slug)
    counts = np.frombuffer(tally.counts, "<i8").reshape(len(ZONES), DAYS + 1, DAYS + 1)
    of_day = union(counts, first_day=day, last_day=day)
    return {zone: int(n) for zone, n in zip(ZONES, of_day, strict=True) if n}


def location_of(places: tuple[int, ...]) -> LocationDefinition:
    """Of cells that stand in these squares, in the registry's order."""
    return LocationDefinition(
        level=Decimal("1.4"),
        radius_m=200,
        max_values=None,
        grid=Grid(x0_m=0, y0_m=0, step_m=500, n_x=4, n_y=3),
        places=places,
    )


def upload_all(pipeline: Pipeline, files: dict[int, Path]) -> list[Batch]:
    """By date, but what follows the last night comes before it ends."""
    return pipeline.upload(files[DAYS + 1], *(files[day] for day in files if day != DAYS + 1))


def check(pipeline: Pipeline, truth: Truth, *, nights: range = range(1, DAYS + 1)) -> None:
    for day in range(1, DAYS + 1):
        assert pipeline.visitors(day, day) == sum(of_day == day for _, of_day in truth.visitors)
        stayed = truth.counts(truth.stayed_in, day=day, who=who_answers("stayed_in"))
        assert counted(pipeline, "stayed_in", day) == stayed
        slept = truth.counts(truth.slept_in, day=day, who=who_answers("slept_in"))
        assert counted(pipeline, "slept_in", day) == (slept if day in nights else {})
        assert sum(stayed.values()) and sum(slept.values())


def test_totals_are_exact(pipeline: Pipeline, files: dict[int, Path], truth: Truth) -> None:
    batches = upload_all(pipeline, files)
    check(pipeline, truth)
    assert [batch.notes["late_change"] for batch in batches] == [0] * len(batches)


def test_rows_add_up(pipeline: Pipeline, rows: list[Row], truth: Truth, tmp_path: Path) -> None:
    """Rows of the night are used, so accepted; nobody is a visitor by them."""
    (batch,) = pipeline.upload(write_file(tmp_path / "all.csv", [*rows, *rows[:50]]))
    repeated = sum(batch.rows_ignored.values()) - sum(truth.ignored.values())
    assert batch.rows_read == len(rows) + 50 == batch.rows_accepted + sum(batch.rows_ignored.values())
    unique = len(dict.fromkeys(rows))
    outside = sum(truth.ignored.values())
    assert batch.rows_accepted == unique - outside
    assert repeated == len(rows) + 50 - unique
    assert batch.subscriber_days == len(truth.visitors)
    check(pipeline, truth)


@pytest.mark.parametrize("mechanism", ["smp-grr", "spl-grr", "rsfd-grr"])
def test_order_repeats_and_splits_change_nothing(
    make_pipeline: Callable[..., Pipeline],
    definition: StudyDefinition,
    files: dict[int, Path],
    rows: list[Row],
    tmp_path: Path,
    mechanism: str,
) -> None:
    plan = replace(definition.plan, mechanism=mechanism)
    plain = make_pipeline(plan=plan)
    upload_all(plain, files)

    shuffled = [files[DAYS + 1], *random.Random(8).sample([files[day] for day in range(1, DAYS + 1)], DAYS)]
    mixed = make_pipeline(plan=plan, slug="mixed", expected_subscribers=3_000_000)
    header, *lines = shuffled[2].read_text().splitlines(keepends=True)
    halves = [tmp_path / "even.csv", tmp_path / "odd.csv"]
    for number, half in enumerate(halves):
        half.write_text(header + "".join(lines[number::2]))
    mixed.upload(*shuffled[:2], halves[1], more_to_come=True)
    mixed.upload(*shuffled[:2])
    mixed.upload(halves[0], *shuffled[3:], shuffled[1])
    assert mixed.study.n_shards > 1
    assert mixed.tallies() == plain.tallies()

    closed = make_pipeline(plan=plan, slug="closed")
    closed.upload(*reversed(files.values()), more_to_come=True)
    closed.close_days(through=DAYS)
    assert closed.tallies() == plain.tallies()

    whole = make_pipeline(plan=plan, slug="whole")
    whole.upload(write_file(tmp_path / "all.csv", rows))
    assert whole.tallies() == plain.tallies()


def test_a_night_is_answered_once_the_next_date_has_come(
    pipeline: Pipeline, files: dict[int, Path], truth: Truth
) -> None:
    """With the evening alone most people would be where they were not, for ever."""
    pipeline.upload(files[1])
    assert counted(pipeline, "stayed_in", 1)
    assert counted(pipeline, "slept_in", 1) == {}
    pipeline.upload(files[2])
    who = who_answers("slept_in")
    assert counted(pipeline, "slept_in", 1) == truth.counts(truth.slept_in, day=1, who=who)
    assert counted(pipeline, "slept_in", 2) == {}


def test_a_night_ends_for_everyone_also_in_shards_that_the_batch_says_nothing_of(
    make_pipeline: Callable[..., Pipeline], files: dict[int, Path], rows: list[Row], tmp_path: Path
) -> None:
    pipeline = make_pipeline(expected_subscribers=3_000_000)
    assert pipeline.study.n_shards > 1
    pipeline.upload(files[1], files[2])
    visitors = truth_of(rows).visitors
    somebody = min(who for who, day in visitors if day == 2 and (who, 3) in visitors)
    days = [(row, (row.local.date() - FIRST_DAY).days + 1) for row in rows]
    (batch,) = pipeline.upload(
        write_file(tmp_path / "one.csv", (row for row, day in days if row.who == somebody and day in (2, 3)))
    )
    assert batch.days_touched == [2, 3]
    known = truth_of(row for row, day in days if day < 3 or (row.who == somebody and day == 3))
    who = who_answers("slept_in")
    assert counted(pipeline, "slept_in", 2) == known.counts(known.slept_in, day=2, who=who) != {}


def test_a_night_that_nobody_waits_for_is_answered_when_its_day_is_closed(
    pipeline: Pipeline, files: dict[int, Path], rows: list[Row]
) -> None:
    pipeline.upload(files[1])
    pipeline.close_days(through=1)
    of_evening = truth_of(row for row in rows if row.local.date() == FIRST_DAY)
    who = who_answers("slept_in")
    assert counted(pipeline, "slept_in", 1) == of_evening.counts(of_evening.slept_in, day=1, who=who) != {}
    (batch,) = pipeline.upload(files[2])
    assert batch.rows_ignored["day_closed"] > 0
    assert not DayState.objects.filter(day=1).exists()
    assert counted(pipeline, "slept_in", 1) == of_evening.counts(of_evening.slept_in, day=1, who=who)


def test_a_night_that_waits_for_its_next_date_stands_against_the_end_of_the_study(
    pipeline: Pipeline, files: dict[int, Path]
) -> None:
    """Else its rows would be erased, and nobody told that they never reached a report."""
    pipeline.upload(files[1], files[2], files[4])
    second = FIRST_DAY + timedelta(days=1)
    assert unpublished_days(pipeline.study) == (second,)  # the last day has no next date to wait for
    with pytest.raises(StudyNotClosedError, match=rf"never published \({second}\)"):
        close_study(pipeline.study, by="ada", leave=Leave())
    pipeline.close_days(through=2)
    assert unpublished_days(pipeline.study) == ()


def test_visits_in_the_small_hours_do_not_bring_a_closed_night_back(
    make_pipeline: Callable[..., Pipeline], definition: StudyDefinition, files: dict[int, Path]
) -> None:
    pipeline = make_pipeline(visitor=replace(definition.visitor, from_minute=0))
    pipeline.upload(files[1])
    pipeline.close_days(through=1)
    before = counted(pipeline, "slept_in", 1)
    pipeline.upload(files[2], more_to_come=True)
    pipeline.upload(files[3])
    assert not DayState.objects.filter(day=1).exists()
    assert counted(pipeline, "slept_in", 1) == before
    assert pipeline.visitors(3, 3) > 0


def test_rows_of_a_night_that_come_late(
    pipeline: Pipeline, files: dict[int, Path], rows: list[Row], tmp_path: Path
) -> None:
    """Answers that were given stay; who had none gives one."""
    late = [row for row in rows if row.who > "330060"]
    by_night = lambda row: row.local.hour < 6  # noqa: E731
    first = [row for row in rows if not (by_night(row) and row in late)]
    pipeline.upload(write_file(tmp_path / "first.csv", first))
    known = truth_of(first)
    who = who_answers("slept_in")
    assert counted(pipeline, "slept_in", 2) == known.counts(known.slept_in, day=2, who=who)
    (batch,) = pipeline.upload(write_file(tmp_path / "late.csv", filter(by_night, late)))
    full = truth_of(rows)
    expected = known.counts({**full.slept_in, **known.slept_in}, day=2, who=who)
    assert counted(pipeline, "slept_in", 2) == expected
    assert sum(expected.values()) > sum(known.counts(known.slept_in, day=2, who=who).values())
    changed = {key for key, zone in known.slept_in.items() if zone and full.slept_in[key] not in (zone, None)}
    assert batch.notes["late_change"] == sum(person in who for person, _ in changed) > 0


def test_voided_day_comes_again_with_its_night(
    make_pipeline: Callable[..., Pipeline], files: dict[int, Path]
) -> None:
    plain, other = make_pipeline(), make_pipeline(slug="other")
    upload_all(plain, files)
    upload_all(other, files)
    other.void_day(2)
    assert counted(other, "slept_in", 2) == {}
    # The rest of its night is in the file of the next date.
    other.upload(files[3], files[2])
    assert other.tallies() == plain.tallies()


def test_voided_last_day_comes_again_with_its_night(
    make_pipeline: Callable[..., Pipeline], files: dict[int, Path]
) -> None:
    """The file of the date after the study touches no day of it, but tells of that night."""
    plain, other = make_pipeline(), make_pipeline(slug="other")
    upload_all(plain, files)
    upload_all(other, files)
    other.void_day(DAYS)
    (batch, _) = other.upload(files[DAYS + 1], files[DAYS])
    assert batch.days_touched == []
    assert other.tallies() == plain.tallies()


def test_a_published_day_that_is_undone_may_add_a_place_without_any_daily_indicator(
    make_pipeline: Callable[..., Pipeline], definition: StudyDefinition, files: dict[int, Path]
) -> None:
    """Its visitors may have reported another place before: the statement has to count it."""
    pipeline = make_pipeline(indicators=definition.static_indicators, location=location_of((7, 11, 7, 0)))
    pipeline.upload(files[1])
    pipeline.void_day(1)
    pipeline.upload(files[1])
    assert Plan.objects.get(study__slug=pipeline.study.slug).voided_days == 1


def test_whoever_opts_out_was_nowhere(
    make_pipeline: Callable[..., Pipeline], files: dict[int, Path], rows: list[Row], tmp_path: Path
) -> None:
    gone = {f"33{person:04d}" for person in range(40)}
    pipeline, without = make_pipeline(), make_pipeline(slug="without")
    upload_all(pipeline, files)
    listed = tmp_path / "gone.csv"
    listed.write_text("".join(f"{name}\n" for name in sorted(gone)))
    pipeline.upload(listed, profile=OPT_OUT)
    upload_all(without, write_dates(tmp_path / "left", [row for row in rows if row.who not in gone]))
    assert pipeline.tallies() == without.tallies()
    study = open_study(pipeline.study)
    names = {pseudonym_of(name, key=study.pseudonym_key) for name in gone}
    states = [study.unseal_day(row) for row in DayState.objects.filter(study=pipeline.study)]
    assert any(len(state.stays) for state in states)
    assert any(len(state.nights) for state in states)
    for state in states:
        assert not names & set(state.stays.pseudonym.tolist())
        assert not names & set(state.nights.pseudonym.tolist())


def test_only_places_that_are_asked_for_are_kept_and_only_while_the_day_is_open(
    pipeline: Pipeline, files: dict[int, Path]
) -> None:
    upload_all(pipeline, files)
    study = open_study(pipeline.study)
    states = [study.unseal_day(row) for row in DayState.objects.all()]
    for slug, places in (("stayed_in", [s.stays for s in states]), ("slept_in", [s.nights for s in states])):
        asked = {pseudonym_of(name, key=study.pseudonym_key) for name in who_answers(slug)}
        kept = {name for seen in places for name in seen.pseudonym.tolist()}
        assert kept
        assert kept <= asked
    pipeline.close_days(through=DAYS)
    assert not DayState.objects.exists()


def test_everyone_reports_where_the_main_cell_of_the_day_is(
    make_pipeline: Callable[..., Pipeline], files: dict[int, Path], truth: Truth
) -> None:
    places = (7, 11, 7, 0)  # of the four cells; two stand in one square
    pipeline = make_pipeline(location=location_of(places))
    upload_all(pipeline, files)
    study = open_study(pipeline.study)
    assert study.plan.location is not None
    sanitiser = LocationSanitiser(study.plan.location, study.prf, study.plan.version)
    expected: dict[tuple[int, int], int] = {}
    for (who, day), cell in truth.main_cell.items():
        person = np.array([pseudonym_of(who, key=study.pseudonym_key)], np.uint64)
        (report,) = sanitiser.reports(person, np.array([places[cell]], np.uint16)).tolist()
        expected[int(person[0]), day] = report
    found: dict[tuple[int, int], int] = {}
    for row in PresenceShard.objects.filter(study=pipeline.study):
        presence = study.unseal_presence(row)
        for person, reports in zip(
            presence.pseudonym.tolist(), presence.daily[:, -1, :].tolist(), strict=True
        ):
            found |= {(person, day): code for day, code in enumerate(reports, start=1) if code != NO_VALUE}
    assert found == expected


def test_no_cell_reaches_the_main_database(pipeline: Pipeline, files: dict[int, Path]) -> None:
    upload_all(pipeline, files)
    assert counted(pipeline, "stayed_in", 1)
    found = b"".join(_everything("default"))
    assert b"South" in found  # a category, so the search finds what is there
    assert not [cell for cell in CELLS if cell.encode() in found]
    state = DayState.objects.filter(day=1).first()
    assert state is not None
    seen = open_study(pipeline.study).unseal_day(state)
    assert seen.stays.pseudonym[0].tobytes() not in bytes(state.blob)


def _everything(database: str) -> list[bytes]:
    """Every value of every table, as bytes."""
    found = []
    tables = set(connections[database].introspection.table_names())
    for model in apps.get_models():
        if model._meta.db_table in tables and model._meta.app_label == "reports":
            for values in model._default_manager.using(database).values_list():
                found += [bytes(v) if isinstance(v, bytes | memoryview) else str(v).encode() for v in values]
    return found
