"""Main zone, night zone, what joins them and moves, from files to totals: exact, in any order of files."""

import random
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import pairwise, product
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from django.apps import apps
from django.db import connections

from ldp import derive_subkey, union
from ldp.geo.grid import Grid
from ldp.kernels.entropy import CHOOSE_SLOT, KeyedPrf
from ldp.keyed.designs.threshold import choose_cut
from ldp.keyed.noise.locations import LocationSanitiser
from mobility.extracts.rows.events import NO_VALUE
from mobility.models import DayState, PresenceShard
from mobility.plans.closing import Leave, StudyNotClosedError, close_study, unpublished_days
from mobility.vault.studies import open_study
from reports.models import Indicator, Plan, Tally
from reports.studies.studyfile import StudyDefinition
from reports.studies.studyfile.definition import LocationDefinition
from tests.ldp.exact import reference_below
from tests.mobility.extracts.rows.night_study import night_study
from tests.mobility.extracts.rows.small_extract import asked_of, pseudonym_of
from tests.mobility.pipeline import MASTER_KEY, halves_of
from tests.study_text import daily, joint

pytestmark = pytest.mark.django_db(databases=["default", "vault"])
PEOPLE = 120
INDICATORS = ["gender", "stayed_in", "slept_in", "duration", "trip"]
ZONES, GENDERS = ("South", "North"), ("F", "M")
NONE = "no value"
TRIP = joint("trip", "slept_in", "gender", "stayed_in").replace("static", "daily")
TRIPS = [" / ".join(each) for each in product((*ZONES, NONE), (*GENDERS, NONE), (*ZONES, NONE))]
PLACES = (*ZONES, "outside")
MOVES = [" / ".join(each) for each in product(PLACES, PLACES)]
PER_DAY = 3
PSEUDONYM_KEY, SANITISE_KEY = (derive_subkey(MASTER_KEY, purpose=each) for each in ("pseudonym", "sanitise"))
PARIS = ZoneInfo("Europe/Paris")
FIRST_DAY = date(2017, 3, 25)  # the clocks go forward in the first night
DAYS = 4
ZONE_OF = {"cell-9": "South", "cell-8": "North", "cell-7": "South", "cell-6": None}
CELLS = list(ZONE_OF)  # in the registry's order, which decides ties
MIN_STAY = timedelta(minutes=60)
QUARTER_S = 900
NIGHT_FROM, NIGHT_TO = 22, 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    who: str
    at: datetime  # UTC
    cell: str

    @property
    def gender(self):
        """Every third person has none, and every fourth is a man."""
        return ["", "M", "F", "M", "F", "F"][int(self.who) % 6]

    @property
    def local(self):
        return self.at.astimezone(PARIS)

    @property
    def day(self):
        """Day of the study, counted from one; adjacent dates continue in both directions."""
        return (self.local.date() - FIRST_DAY).days + 1

    def text(self):
        return f"{self.who},{self.at:%Y-%m-%dT%H:%M:%S}Z,{self.cell},{self.gender}\n"


def some_rows(*, seed):
    rng = random.Random(seed)
    start = datetime.combine(FIRST_DAY - timedelta(days=1), datetime.min.time(), UTC)
    rows = []
    for person, day in product(range(PEOPLE), range(DAYS + 3)):
        for _ in range(rng.choice([0, 2, 4, 8])):
            # Few minutes, so that seconds and quarter-hours are shared.
            at = start + timedelta(days=day, seconds=rng.randrange(288) * 300 + rng.choice([0, 1, 299]))
            rows.append(Row(who=f"33{person:04d}", at=at, cell=rng.choice([*CELLS, *CELLS, "zz"])))
    return rows


def write_file(path, rows):
    path.write_text("who,when,where,gender\n" + "".join(row.text() for row in rows))
    return path


def write_dates(folder, rows):
    """A file for each local date, as operators send them; by study day, also of adjacent dates."""
    folder.mkdir(exist_ok=True)
    days = sorted({row.day for row in rows})
    return {day: write_file(folder / f"{day}.csv", [row for row in rows if row.day == day]) for day in days}


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """True values by (person, study day); a zone is None without an answer. `main_cell`: place in CELLS."""

    visitors: set[tuple[str, int]]
    main_cell: dict[tuple[str, int], int]
    stayed_in: dict[tuple[str, int], str | None]
    slept_in: dict[tuple[str, int], str | None]
    trip: dict[tuple[str, int], str]
    ignored: Counter[str]

    def counts(self, what, *, day, who):
        zones = (zone for (person, of_day), zone in what.items() if of_day == day and person in who)
        return Counter(zone for zone in zones if zone)


def truth_of(rows):
    by_day, by_night, ignored = defaultdict(list), defaultdict(list), Counter()
    for row in dict.fromkeys(rows):
        day = row.day
        night = day if row.local.hour >= NIGHT_FROM else day - 1 if row.local.hour < NIGHT_TO else 0
        is_night = 1 <= night <= DAYS
        is_visit = 1 <= day <= DAYS and row.local.hour >= 6
        if not is_night and not 1 <= day <= DAYS:
            ignored["outside_period"] += 1
        elif row.cell not in ZONE_OF:
            ignored["outside_area"] += 1
        elif not is_night and not is_visit:
            ignored["outside_hours"] += 1
        else:
            if is_visit:
                by_day[row.who, day].append(row)
            if is_night:
                by_night[row.who, night].append(row)
    times = {key: [row.at for row in mine] for key, mine in by_day.items()}
    visitors = {key for key, at in times.items() if max(at) - min(at) >= MIN_STAY}
    main_cell = {key: _longest(by_day[key], until=None) for key in visitors}
    dates = {day: FIRST_DAY + timedelta(days=day) for day in range(1, DAYS + 1)}
    end_of_night = {day: datetime.combine(dates[day], time(NIGHT_TO), PARIS).astimezone(UTC) for day in dates}
    slept_in = {
        key: ZONE_OF[CELLS[_longest(by_night[key], until=end_of_night[key[1]])]]
        for key in visitors & by_night.keys()
    }
    stayed_in = {key: ZONE_OF[CELLS[cell]] for key, cell in main_cell.items()}
    parts = {key: (slept_in.get(key), by_day[key][0].gender, stayed_in[key]) for key in visitors}
    trip = {key: " / ".join(part or NONE for part in each) for key, each in parts.items()}
    zones = {"stayed_in": stayed_in, "slept_in": slept_in, "trip": trip}
    return Truth(visitors=visitors, main_cell=main_cell, ignored=ignored, **zones)


def last_in_quarters(rows):
    """The last event of each quarter-hour, with its place in CELLS, negative: the first one decides ties."""
    last = {}
    for row in rows:
        quarter = int(row.at.timestamp()) // QUARTER_S
        place = -CELLS.index(row.cell)
        last[quarter] = max(last.get(quarter, (row.at, place)), (row.at, place))
    return [last[quarter] for quarter in sorted(last)]


def _longest(rows, *, until):
    """Each quarter-hour's last event lasts until the next one's; the place in CELLS."""
    kept = last_in_quarters(rows)
    ends = [*(at for at, _ in kept[1:]), until or kept[-1][0]]
    stays = Counter()
    for (at, place), end in zip(kept, ends, strict=True):
        stays[-place] += int((end - at).total_seconds())
    return min(stays, key=lambda cell: (-stays[cell], cell))


@pytest.fixture(scope="module")
def rows():
    return some_rows(seed=11)


@pytest.fixture(scope="module")
def truth(rows):
    return truth_of(rows)


@pytest.fixture
def files(rows, tmp_path):
    return write_dates(tmp_path / "dates", rows)


@pytest.fixture
def definition() -> StudyDefinition:
    """Return a study of epsilon 20, where one answer in 500 million is wrong: counts are true."""
    return night_study(first_day=FIRST_DAY, days=DAYS, more=TRIP)


def pseudonym(name):
    return pseudonym_of(name, key=PSEUDONYM_KEY)


def who_answers(slug, *, indicators=INDICATORS):
    names = {f"33{person:04d}" for person in range(PEOPLE)}
    asked = {name: asked_of(pseudonym(name), d=len(indicators), key=SANITISE_KEY) for name in names}
    return {name for name in names if asked[name] == indicators.index(slug)}


def counted(pipeline, slug, day, *, values=None):
    tally = Tally.objects.get(plan__study__slug=pipeline.study.slug, indicator__slug=slug)
    values = values or {"trip": TRIPS, "trips": MOVES}.get(slug, ZONES)
    counts = np.frombuffer(tally.counts, "<i8").reshape(len(values), DAYS + 1, DAYS + 1)
    of_day = union(counts, first_day=day, last_day=day)
    return {value: int(n) for value, n in zip(values, of_day, strict=True) if n}


def upload_all(pipeline, files):
    return pipeline.upload(files[DAYS + 1], *(files[day] for day in files if day != DAYS + 1))


def check(pipeline, truth):
    for day in range(1, DAYS + 1):
        assert pipeline.visitors(day, day) == sum(of_day == day for _, of_day in truth.visitors)
        for slug in ("stayed_in", "slept_in", "trip"):
            expected = truth.counts(getattr(truth, slug), day=day, who=who_answers(slug))
            assert counted(pipeline, slug, day) == expected
            assert sum(expected.values()), (slug, day)


def test_totals_are_exact_and_no_cell_reaches_the_main_database(pipeline, files, truth):
    batches = upload_all(pipeline, files)
    check(pipeline, truth)
    assert [batch.notes["late_change"] for batch in batches] == [0] * len(batches)
    found = b"".join(_everything("default"))
    assert b"South" in found  # a category, so the search works
    assert not [cell for cell in CELLS if cell.encode() in found]
    state = DayState.objects.filter(day=1).first()
    seen = open_study(pipeline.study).unseal_day(state)
    assert seen.stays.pseudonym[0].tobytes() not in bytes(state.blob)


WINDOW = 3  # of streams
OF_STREAM = ("stayed_in", "slept_in", "trip")


@pytest.fixture
def make_stream(make_pipeline, definition):
    plan = replace(definition.plan, mechanism="smp-stream", window_days=WINDOW)
    return lambda **settings: make_pipeline(plan=plan, **settings)


def who_answers_on(slug, day):
    """Return the people whose slot it is: each has one for the whole study, other days have the others."""
    fields = {"purpose": CHOOSE_SLOT, "indicator": INDICATORS.index(slug), "plan_version": 0, "value": 0}
    return {
        name
        for name in who_answers(slug)
        if reference_below(SANITISE_KEY, WINDOW, pseudonym=pseudonym(name), **fields) == day % WINDOW
    }


def test_streams_count_answers_on_one_day_of_each_window(make_stream, files, truth):
    pipeline = make_stream()
    upload_all(pipeline, files)
    for slug in OF_STREAM:
        for day in range(1, DAYS + 1):
            expected = truth.counts(getattr(truth, slug), day=day, who=who_answers_on(slug, day))
            assert counted(pipeline, slug, day) == expected
            assert pipeline.answers(slug, day, day) == expected.total()
        assert sum(pipeline.answers(slug, day, day) for day in range(1, DAYS + 1)) > 0
        assert Indicator.objects.get(study__slug=pipeline.study.slug, slug=slug).max_values == 2


def test_a_day_of_a_stream_in_two_files_counts_as_in_one(make_stream, files, rows, tmp_path):
    plain, mixed = make_stream(), make_stream(slug="mixed")
    plain.upload(write_file(tmp_path / "all.csv", rows))
    mixed.upload(files[3], *halves_of(files[2], tmp_path), more_to_come=True)
    mixed.upload(files[DAYS + 1], files[4], files[1], files[3], files[0], files[2])
    assert mixed.tallies() == plain.tallies()


def test_a_late_file_causes_no_second_answer_of_a_stream(make_stream, files, rows, tmp_path):
    """Only those who had none on their day give one. A published answer stays."""
    pipeline, late = make_stream(), [row for row in rows if row.day == 2 and row.local.hour >= 16]
    first = [row for row in rows if row not in late]
    pipeline.upload(write_file(tmp_path / "first.csv", first))
    known, full = truth_of(first), truth_of(rows)
    who = who_answers_on("stayed_in", 2)
    before = known.counts(known.stayed_in, day=2, who=who)
    assert counted(pipeline, "stayed_in", 2) == before
    (batch,) = pipeline.upload(write_file(tmp_path / "late.csv", late))
    expected = known.counts({**full.stayed_in, **known.stayed_in}, day=2, who=who)
    assert counted(pipeline, "stayed_in", 2) == expected
    assert expected.total() > before.total() and batch.notes["late_change"] > 0
    assert max(answers_in_windows(pipeline)) == 1
    given = pipeline.tallies()
    pipeline.upload(tmp_path / "late.csv", tmp_path / "first.csv")
    assert pipeline.tallies() == given


def answers_in_windows(pipeline):
    """Answers of each person to each stream on any days of a window, by the vault."""
    study, found = open_study(pipeline.study), set()
    for presence in map(study.unseal_presence, PresenceShard.objects.filter(study=pipeline.study)):
        is_given = presence.daily != NO_VALUE
        for first in range(DAYS - WINDOW + 1):
            found |= set(is_given[:, :, first : first + WINDOW].sum(axis=2).ravel().tolist())
    return found


def test_rows_add_up(pipeline, rows, truth, tmp_path):
    """Rows of the night are used, so accepted; no one is a visitor by them."""
    (batch,) = pipeline.upload(write_file(tmp_path / "all.csv", [*rows, *rows[:50]]))
    n_ignored, unique, outside = sum(batch.rows_ignored.values()), len(set(rows)), truth.ignored.total()
    assert batch.rows_read == len(rows) + 50 == batch.rows_accepted + n_ignored
    assert (batch.rows_accepted, n_ignored - outside) == (unique - outside, len(rows) + 50 - unique)
    assert batch.subscriber_days == len(truth.visitors)
    check(pipeline, truth)


def test_order_repeats_splits_and_closing_change_nothing(make_pipeline, files, rows, tmp_path):
    plain = make_pipeline()
    plain.upload(write_file(tmp_path / "all.csv", rows))
    shuffled = [files[DAYS + 1], *random.Random(8).sample([files[day] for day in range(1, DAYS + 1)], DAYS)]
    mixed = make_pipeline(slug="mixed", n_shards=4)
    halves = [*halves_of(shuffled[2], tmp_path)]
    mixed.upload(*shuffled[:2], halves[1], more_to_come=True)
    mixed.upload(*shuffled[:2])
    mixed.upload(halves[0], *shuffled[3:], shuffled[1])
    closed = make_pipeline(slug="closed")
    closed.upload(*reversed(files.values()), more_to_come=True)
    closed.close_days(through=DAYS)
    assert mixed.tallies() == closed.tallies() == plain.tallies()


def test_a_night_is_answered_once_the_next_date_has_come(pipeline, files, truth):
    """With the evening alone most people would be where they were not, permanently."""
    pipeline.upload(files[1])
    assert counted(pipeline, "stayed_in", 1)
    assert counted(pipeline, "slept_in", 1) == {}
    pipeline.upload(files[2])
    known = truth.counts(truth.slept_in, day=1, who=who_answers("slept_in"))
    assert [counted(pipeline, "slept_in", day) for day in (1, 2)] == [known, {}]


def test_a_night_ends_for_everyone_also_in_other_shards(make_pipeline, files, rows, tmp_path):
    """Shards that the batch says nothing of."""
    pipeline = make_pipeline(n_shards=4)
    pipeline.upload(files[1], files[2])
    visitors = truth_of(rows).visitors
    somebody = min(who for who, day in visitors if day == 2 and (who, 3) in visitors)
    theirs = [row for row in rows if row.who == somebody]
    (batch,) = pipeline.upload(write_file(tmp_path / "one.csv", [r for r in theirs if r.day in (2, 3)]))
    assert batch.days_touched == [2, 3]
    known = truth_of([*(row for row in rows if row.day < 3), *(row for row in theirs if row.day == 3)])
    who = who_answers("slept_in")
    assert counted(pipeline, "slept_in", 2) == known.counts(known.slept_in, day=2, who=who) != {}


def test_a_night_that_nobody_waits_for_is_answered_when_its_day_is_closed(pipeline, files, rows):
    pipeline.upload(files[1])
    pipeline.close_days(through=1)
    evening = truth_of(row for row in rows if row.day == 1)
    known = evening.counts(evening.slept_in, day=1, who=who_answers("slept_in"))
    assert counted(pipeline, "slept_in", 1) == known != {}
    (batch,) = pipeline.upload(files[2])
    assert batch.rows_ignored["day_closed"] > 0
    assert not DayState.objects.filter(day=1).exists()
    assert counted(pipeline, "slept_in", 1) == known


def test_a_night_that_waits_for_its_next_date_stands_against_the_end_of_the_study(pipeline, files):
    """Else its rows would be erased, and no one told that they never reached a report."""
    pipeline.upload(files[1], files[2], files[4])
    second = FIRST_DAY + timedelta(days=1)
    assert unpublished_days(pipeline.study) == (second,)  # the last day has no next date to wait for
    with pytest.raises(StudyNotClosedError, match=rf"never published \({second}\)"):
        close_study(pipeline.study, by="ada", leave=Leave())
    pipeline.close_days(through=2)
    assert unpublished_days(pipeline.study) == ()


def test_visits_in_the_small_hours_do_not_bring_a_closed_night_back(make_pipeline, definition, files):
    pipeline = make_pipeline(visitor=replace(definition.visitor, from_minute=0))
    pipeline.upload(files[1])
    pipeline.close_days(through=1)
    before = counted(pipeline, "slept_in", 1)
    pipeline.upload(files[2], more_to_come=True)
    pipeline.upload(files[3])
    assert (DayState.objects.filter(day=1).exists(), counted(pipeline, "slept_in", 1)) == (False, before)
    assert pipeline.visitors(3, 3) > 0


def test_rows_of_a_night_that_come_late(pipeline, files, rows, tmp_path):
    """Answers that were given stay; who had none gives one."""
    late = [row for row in rows if row.who > "330060" and row.local.hour < 6]
    first = [row for row in rows if row not in late]
    pipeline.upload(write_file(tmp_path / "first.csv", first))
    known, full, who = truth_of(first), truth_of(rows), who_answers("slept_in")
    before = known.counts(known.slept_in, day=2, who=who)
    trips = known.counts(known.trip, day=2, who=who_answers("trip"))
    assert (counted(pipeline, "slept_in", 2), counted(pipeline, "trip", 2)) == (before, trips)
    (batch,) = pipeline.upload(write_file(tmp_path / "late.csv", late))
    expected = known.counts({**full.slept_in, **known.slept_in}, day=2, who=who)
    assert (counted(pipeline, "slept_in", 2), counted(pipeline, "trip", 2)) == (expected, trips)
    assert expected.total() > before.total()
    changed = {key for key, zone in known.slept_in.items() if zone and full.slept_in[key] not in (zone, None)}
    others = {key for key, trip in known.trip.items() if full.trip[key] != trip}
    n_changed = [sum(key[0] in who for key in changed), sum(key[0] in who_answers("trip") for key in others)]
    assert min(n_changed) > 0
    assert batch.notes["late_change"] == sum(n_changed)


def test_voided_day_comes_again_with_its_night(make_pipeline, files, rows, tmp_path):
    """The rest of its night is in the file of the next date, also if it touches no day of the study."""
    plain, other = make_pipeline(), make_pipeline(slug="other")
    plain.upload(write_file(tmp_path / "all.csv", rows))
    upload_all(other, files)
    for day in (2, DAYS):
        other.void_day(day)
        assert counted(other, "slept_in", day) == {}
        (next_date, _) = other.upload(files[day + 1], files[day])
        assert next_date.days_touched == ([] if day == DAYS else [day + 1])
        assert other.tallies() == plain.tallies()


def test_only_what_is_asked_for_is_kept_and_only_while_the_day_is_open(pipeline, files):
    upload_all(pipeline, files)
    study = open_study(pipeline.study)
    states = [study.unseal_day(row) for row in DayState.objects.all()]
    kept = {
        ("stayed_in", "trip"): [state.stays.pseudonym for state in states],
        ("slept_in", "trip"): [state.nights.pseudonym for state in states],
        ("trip",): [state.pseudonym[state.parts[:, 0] <= len(GENDERS)] for state in states],
    }
    for slugs, people in kept.items():
        asked = set().union(*map(who_answers, slugs))
        theirs = {pseudonym_of(name, key=study.pseudonym_key) for name in asked}
        assert set() < set(np.concatenate(people).tolist()) <= theirs
    pipeline.close_days(through=DAYS)
    assert not DayState.objects.exists()


def test_everyone_reports_where_the_main_cell_of_the_day_is(make_pipeline, files, truth):
    places = (7, 11, 7, 0)  # of the four cells; two are in one square
    grid = {"grid": Grid(x0_m=0, y0_m=0, step_m=500, n_x=4, n_y=3), "places": places}
    location = LocationDefinition(level=Decimal("1.4"), radius_m=200, max_values=None, **grid)
    pipeline = make_pipeline(location=location)
    upload_all(pipeline, files)
    study = open_study(pipeline.study)
    sanitiser = LocationSanitiser(study.plan.location, study.prf, study.plan.version)
    expected, found = {}, {}
    for (who, day), cell in truth.main_cell.items():
        person = np.array([pseudonym_of(who, key=study.pseudonym_key)], np.uint64)
        (report,) = sanitiser.reports(person, np.array([places[cell]], np.uint16)).tolist()
        expected[int(person[0]), day] = report
    for presence in map(study.unseal_presence, PresenceShard.objects.filter(study=pipeline.study)):
        for person, codes in zip(presence.pseudonym.tolist(), presence.daily[:, -1, :].tolist(), strict=True):
            found |= {(person, day): code for day, code in enumerate(codes, start=1) if code != NO_VALUE}
    assert found == expected
    pipeline.void_day(1)  # visitors of it may have reported another place, which counts
    assert Plan.objects.get(study__slug=pipeline.study.slug).voided_days == 1


def _everything(database):
    found = []
    tables = set(connections[database].introspection.table_names())
    for model in apps.get_models():
        if model._meta.db_table in tables and model._meta.app_label == "reports":
            for values in model._default_manager.using(database).values_list():
                found += [bytes(v) if isinstance(v, bytes | memoryview) else str(v).encode() for v in values]
    return found


# --- moves: one of each visitor's day, the same in any order of files, another one on each day


def moves_of(rows):
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


def picked(moves, *, day):
    """Count the moves that are reported on a day, by the keyed block written out."""
    reported = Counter()
    asked = who_answers("trips", indicators=["gender", "stayed_in", "duration", "trips"])
    for (who, of_day), mine in moves.items():
        if of_day == day and who in asked:
            fields = {"pseudonym": pseudonym(who), "indicator": 3, "plan_version": 0, "value": 0}
            among = [*mine, *["outside / outside"] * (PER_DAY - len(mine))]
            place = reference_below(SANITISE_KEY, len(among), purpose=14, counter=256 * day, **fields)
            reported[among[place]] += 1
    return reported


class TestMoves:
    @pytest.fixture
    def definition(self) -> StudyDefinition:
        """Return a study of epsilon 20, where one answer in 50 million is wrong: counts are true."""
        trips = daily("trips", derive="moves", more=f"max_moves = {PER_DAY}\n")
        return night_study(first_day=FIRST_DAY, days=DAYS, night_from="", more=trips)

    def test_each_visitor_reports_one_of_the_day(self, make_pipeline, definition, files, rows, tmp_path):
        """In any order of files, with repeated ones, with a day in two files, and with attributes apart."""
        plain, moves = make_pipeline(), moves_of(rows)
        plain.upload(write_file(tmp_path / "all.csv", rows))
        assert Indicator.objects.get(slug="trips").categories == MOVES
        assert {len(each) > PER_DAY for each in moves.values()} == {True, False}
        assert [] in moves.values()
        expected = {day: picked(moves, day=day) for day in range(1, DAYS + 1)}
        assert {day: counted(plain, "trips", day) for day in expected} == expected
        assert len(set().union(*expected.values())) == 7  # no one moves from a zone to itself
        mixed, of_day = make_pipeline(slug="mixed"), [row for row in rows if row.day == 2]
        some = write_file(tmp_path / "some.csv", [row for row in of_day if row.local.hour % 2])
        others = write_file(tmp_path / "others.csv", [row for row in of_day if not row.local.hour % 2])
        mixed.upload(files[3], some, more_to_come=True)
        mixed.upload(files[DAYS + 1], files[4], files[1], files[3], others, files[0], files[2])
        assert mixed.tallies() == plain.tallies()
        apart = make_pipeline(slug="apart", extract=replace(definition.extract, attributes="subscribers"))
        apart.upload(tmp_path / "all.csv")
        assert apart.tallies()["trips"] == plain.tallies()["trips"]

    def test_late_rows_change_none_and_an_undone_day_has_them_again(self, pipeline, files, rows, tmp_path):
        late = [row for row in rows if row.day == 2 and row.local.hour >= 16]
        first = [row for row in rows if row not in late]
        pipeline.upload(write_file(tmp_path / "first.csv", first))
        (batch,) = pipeline.upload(write_file(tmp_path / "late.csv", late))
        known, full = moves_of(first), moves_of(rows)
        assert counted(pipeline, "trips", 2) == picked(full | known, day=2)
        assert batch.notes["late_change"] > 0
        assert counted(pipeline, "trips", 3) == picked(full, day=3)
        before = pipeline.tallies()
        pipeline.void_day(3)
        assert counted(pipeline, "trips", 3) == {}
        pipeline.upload(files[3])
        assert pipeline.tallies() == before  # the same day, the same bits


# --- visited zones, and pairs of them: one of each visitor's day


ITEMS = {"visited_zones": [*ZONES, "no zone"], "visited_pairs": ["South / North", "no zone"]}


def visits_of(rows, derive):
    """Return all items of each visitor on each day, in the order of their codes."""
    found = {}
    for key, moves in moves_of(rows).items():
        seen = {end for move in moves for end in move.split(" / ")} & {*ZONES}
        zones = [zone for zone in ZONES if zone in seen]
        found[key] = zones if derive == "visited_zones" else [" / ".join(zones)] * (len(zones) == 2)
    return found


def picked_visits(visits, *, day, most):
    """Count the visits that are reported on a day, by the keyed block written out."""
    reported = Counter()
    asked = who_answers("trips", indicators=["gender", "stayed_in", "duration", "trips"])
    for (who, of_day), mine in visits.items():
        if of_day == day and who in asked:
            among = [*mine, *["no zone"] * (most - len(mine))]
            fields = {"pseudonym": pseudonym(who), "indicator": 3, "plan_version": 0, "value": 0}
            place = reference_below(SANITISE_KEY, len(among), purpose=14, counter=256 * day, **fields)
            reported[among[place]] += 1
    return reported


class TestVisits:
    @pytest.fixture(params=[("visited_zones", 6, 2), ("visited_zones", 1, 1), ("visited_pairs", 3, 1)])
    def asked(self, request) -> tuple[str, int]:
        """Return what is asked, how many keep their weight by the file, and how many there can be."""
        return request.param

    @pytest.fixture
    def definition(self, asked) -> StudyDefinition:
        trips = daily("trips", derive=asked[0], more=f"max_visits = {asked[1]}\n")
        return night_study(first_day=FIRST_DAY, days=DAYS, night_from="", more=trips)

    def test_each_visitor_reports_one_of_the_day(self, make_pipeline, asked, files, rows, tmp_path):
        plain, (derive, _, most) = make_pipeline(), asked
        plain.upload(write_file(tmp_path / "all.csv", rows))
        visits = visits_of(rows, derive)
        assert Indicator.objects.get(slug="trips").categories == ITEMS[derive]
        assert {len(each) for each in visits.values()} >= {0, 1}
        expected = {day: picked_visits(visits, day=day, most=most) for day in range(1, DAYS + 1)}
        of_days = {day: counted(plain, "trips", day, values=ITEMS[derive]) for day in expected}
        assert of_days == expected

    @pytest.mark.parametrize("asked", [("visited_zones", 6, 2)], indirect=True)
    def test_the_order_of_files_and_repeats_change_nothing(self, make_pipeline, files, rows, tmp_path):
        plain = make_pipeline()
        plain.upload(write_file(tmp_path / "all.csv", rows))
        mixed = make_pipeline(slug="mixed")
        mixed.upload(*(files[place] for place in (3, DAYS + 1, 4, 1, 3, 0, 2)))
        assert mixed.tallies() == plain.tallies()


# --- numbers of a day: quarter-hours with an event, and the distance from where a person sleeps


def kilometres(one, other):
    """Return the distance of two cells on the sphere by its chord, another way than the product's."""
    ends = [np.radians(POSITIONS[each]) for each in (one, other)]
    a, b = (
        np.array([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)]) for lon, lat in ends
    )
    return 2 * 6371.0088 * np.arcsin(np.linalg.norm(a - b) / 2)


POSITIONS = {"cell-9": (6.8, 47.6), "cell-8": (6.9, 47.6), "cell-7": (6.9, 47.7), "cell-6": (6.9, 47.8)}
CUTS = {"events": (2, 4), "far": (10, 20)}
NUMBERED = ["gender", "stayed_in", "slept_in", "duration", "events", "far", "by_zone"]
SIDES = [" / ".join(each) for each in product((*ZONES, NONE), ("below", "reached", NONE))]


def numbers_of(rows):
    """Return both numbers of each visitor on each day; a distance only where a night is known."""
    by_day, by_night = defaultdict(list), defaultdict(list)
    for row in dict.fromkeys(rows):
        if row.cell in ZONE_OF and 1 <= row.day <= DAYS and row.local.hour >= 6:
            by_day[row.who, row.day].append(row)
        if row.cell in ZONE_OF and not 6 <= row.local.hour < 22:
            by_night[row.who, row.day - (row.local.hour < NIGHT_TO)].append(row)
    found = {"events": {}, "far": {}}
    for key in truth_of(rows).visitors:
        cells = [CELLS[-place] for _, place in last_in_quarters(by_day[key])]
        found["events"][key] = len(cells)
        if key in by_night:
            morning = FIRST_DAY + timedelta(days=key[1])
            until = datetime.combine(morning, time(NIGHT_TO), PARIS).astimezone(UTC)
            home = CELLS[_longest(by_night[key], until=until)]
            found["far"][key] = max(kilometres(home, cell) for cell in cells)
    return found


SIDE = {False: "below", True: "reached"}


def cuts_of(definition, slug, people):
    """Return the cut of a number that each of some people has."""
    place = NUMBERED.index(slug)
    asked = {"indicator": place, "channel": definition.plan_spec().answer_channel(place)}
    named = sorted(people)
    found = choose_cut(
        np.array([pseudonym(who) for who in named], np.uint64), prf=KeyedPrf(SANITISE_KEY), **asked
    )
    return dict(zip(named, found.tolist(), strict=True))


class TestNumbers:
    @pytest.fixture
    def definition(self) -> StudyDefinition:
        """Return a study of epsilon 20, where one answer in 500 million is wrong: counts are true."""
        ask = '[[indicator]]\nslug = "{}"\nkind = "number"\nderive = "{}"\nunit = "{}"\ncuts = {}\n'
        names = {"events": ("event_count", "events"), "far": ("distance_from_home", "km")}
        more = "".join(ask.format(slug, *each, list(CUTS[slug])) for slug, each in names.items())
        by = joint("by_zone", "stayed_in", "events").replace("static", "daily")
        return night_study(first_day=FIRST_DAY, days=DAYS, more=more + by)

    def test_each_visitor_reports_whether_it_reaches_a_cut(
        self, make_pipeline, definition, files, rows, tmp_path
    ):
        """In any order of files and with repeated ones: of each quarter-hour one event counts."""
        plain, numbers = make_pipeline(), numbers_of(rows)
        plain.upload(write_file(tmp_path / "all.csv", [*rows, *rows[:50]]))
        mixed = make_pipeline(slug="mixed")
        mixed.upload(files[3], more_to_come=True)
        mixed.upload(
            *(files[day] for day in (DAYS + 1, 4, 1, 0, 2)), write_file(tmp_path / "re.csv", rows[:9])
        )
        assert mixed.tallies() == plain.tallies()
        for slug, cuts in CUTS.items():
            cut_of = cuts_of(definition, slug, who_answers(slug, indicators=NUMBERED))
            for day in range(1, DAYS + 1):
                expected = Counter(
                    int(2 * cut_of[who] + (n >= cuts[cut_of[who]]))
                    for (who, of_day), n in numbers[slug].items()
                    if of_day == day and who in cut_of
                )
                assert counted(plain, slug, day, values=range(2 * len(cuts))) == expected
                assert len(expected) > 1
        # Both together: the zone of the day, and the side of the cut of "events".
        truth, cut_of = (
            truth_of(rows),
            cuts_of(definition, "events", who_answers("by_zone", indicators=NUMBERED)),
        )
        for day in range(1, DAYS + 1):
            expected = Counter(
                f"{truth.stayed_in[who, day] or NONE} / {SIDE[n >= CUTS['events'][cut_of[who]]]}"
                for (who, of_day), n in numbers["events"].items()
                if of_day == day and who in cut_of
            )
            assert counted(plain, "by_zone", day, values=SIDES) == expected
            assert len(expected) > 2
