"""Main zone, night zone, what joins them and moves, from files to totals: exact, in any order of files."""

import random
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import cache, partial
from itertools import pairwise, product
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from django.apps import apps

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
INDICATORS = ("gender", "stayed_in", "slept_in", "duration", "trip")
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
    n_quarters: dict[tuple[str, int], int]
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
    n_quarters = {key: len(last_in_quarters(by_day[key])) for key in visitors}
    return Truth(visitors=visitors, main_cell=main_cell, n_quarters=n_quarters, ignored=ignored, **zones)


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


@pytest.fixture
def make_pipeline(make_pipeline):
    """Make studies of one shard, but where a test says otherwise."""
    return partial(make_pipeline, n_shards=1)


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


@cache
def pseudonym(name):
    return pseudonym_of(name, key=PSEUDONYM_KEY)


@cache
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


def upload_in_any_order(pipeline, files, folder):
    """Dates that are held back and come again, one of them in halves; and one that comes twice."""
    first, second = halves_of(files[2], folder)
    batches = pipeline.upload(files[DAYS + 1], files[3], second, more_to_come=True)
    batches += pipeline.upload(files[DAYS + 1], files[3], first, files[4], files[1], files[0], files[3])
    return batches


def check(pipeline, truth):
    for day in range(1, DAYS + 1):
        assert pipeline.visitors(day, day) == sum(of_day == day for _, of_day in truth.visitors)
        for slug in ("stayed_in", "slept_in", "trip"):
            expected = truth.counts(getattr(truth, slug), day=day, who=who_answers(slug))
            assert counted(pipeline, slug, day) == expected
            assert sum(expected.values()), (slug, day)


def test_totals_are_exact_in_any_order_and_no_cell_reaches_the_main_database(
    make_pipeline, files, truth, tmp_path
):
    pipeline = make_pipeline(n_shards=4)
    batches = upload_in_any_order(pipeline, files, tmp_path)
    check(pipeline, truth)
    assert {batch.notes.get("late_change", 0) for batch in batches} == {0}
    models = [model for model in apps.get_models() if model._meta.app_label == "reports"]
    found = str([[*model._default_manager.values_list()] for model in models])
    assert "South" in found  # a category, so the search works
    assert not [cell for cell in CELLS if cell in found]
    state = DayState.objects.filter(day=1).first()
    seen = open_study(pipeline.study).unseal_day(state)
    assert seen.stays.pseudonym[0].tobytes() not in bytes(state.blob)


WINDOW = 3  # of streams
OF_STREAM = ("stayed_in", "slept_in", "trip")


@pytest.fixture
def make_stream(make_pipeline, definition):
    plan = replace(definition.plan, mechanism="smp-stream", window_days=WINDOW)
    return lambda **settings: make_pipeline(plan=plan, **settings)


@cache
def who_answers_on(slug, day):
    """Return the people whose slot it is: each has one for the whole study, other days have the others."""
    fields = {"purpose": CHOOSE_SLOT, "indicator": INDICATORS.index(slug), "plan_version": 0, "value": 0}
    return {
        name
        for name in who_answers(slug)
        if reference_below(SANITISE_KEY, WINDOW, pseudonym=pseudonym(name), **fields) == day % WINDOW
    }


def test_streams_count_answers_on_one_day_of_each_window_in_any_order(make_stream, files, truth, tmp_path):
    pipeline = make_stream()
    upload_in_any_order(pipeline, files, tmp_path)
    for slug in OF_STREAM:
        for day in range(1, DAYS + 1):
            expected = truth.counts(getattr(truth, slug), day=day, who=who_answers_on(slug, day))
            assert counted(pipeline, slug, day) == expected
            assert pipeline.answers(slug, day, day) == expected.total()
        assert sum(pipeline.answers(slug, day, day) for day in range(1, DAYS + 1)) > 0
        assert Indicator.objects.get(study__slug=pipeline.study.slug, slug=slug).max_values == 2


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


def test_a_night_is_answered_once_the_next_date_has_come_and_stands_against_the_end_until_then(
    pipeline, files, truth
):
    """With the evening alone most people would be where they were not; at the end its rows would go."""
    pipeline.upload(files[1])
    assert counted(pipeline, "stayed_in", 1)
    assert counted(pipeline, "slept_in", 1) == {}
    pipeline.upload(files[2])
    known = truth.counts(truth.slept_in, day=1, who=who_answers("slept_in"))
    assert [counted(pipeline, "slept_in", day) for day in (1, 2)] == [known, {}]
    pipeline.upload(files[4])
    second = FIRST_DAY + timedelta(days=1)
    assert unpublished_days(pipeline.study) == (second,)  # the last day has no next date to wait for
    with pytest.raises(StudyNotClosedError, match=rf"never published \({second}\)"):
        close_study(pipeline.study, by="ada", leave=Leave())
    pipeline.close_days(through=2)
    assert unpublished_days(pipeline.study) == ()


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


def test_voided_day_comes_again_with_its_night(pipeline, files):
    """The rest of its night is in the file of the next date, also if it touches no day of the study."""
    pipeline.upload(*(files[day] for day in range(DAYS + 1, 0, -1)))
    before = pipeline.tallies()
    for day in (2, DAYS):
        pipeline.void_day(day)
        assert counted(pipeline, "slept_in", day) == {}
        (next_date, _) = pipeline.upload(files[day + 1], files[day])
        assert next_date.days_touched == ([] if day == DAYS else [day + 1])
        assert pipeline.tallies() == before


def test_only_what_is_asked_for_is_kept_until_the_day_is_closed_and_counts(pipeline, files, truth):
    pipeline.upload(*reversed(files.values()), more_to_come=True)
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
    check(pipeline, truth)
    assert not DayState.objects.exists()


def test_everyone_reports_where_the_main_cell_of_the_day_is(make_pipeline, files, truth):
    places = (7, 11, 7, 0)  # of the four cells; two are in one square
    grid = {"grid": Grid(x0_m=0, y0_m=0, step_m=500, n_x=4, n_y=3), "places": places}
    location = LocationDefinition(level=Decimal("1.4"), radius_m=200, max_values=None, **grid)
    pipeline = make_pipeline(location=location)
    pipeline.upload(*files.values())
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


def picked(items, *, day, most=PER_DAY, none="outside / outside"):
    """Count the moves or visits that are reported on a day, by the keyed block written out."""
    reported = Counter()
    asked = who_answers("trips", indicators=("gender", "stayed_in", "duration", "trips"))
    for (who, of_day), mine in items.items():
        if of_day == day and who in asked:
            fields = {"pseudonym": pseudonym(who), "indicator": 3, "plan_version": 0, "value": 0}
            among = [*mine, *[none] * (most - len(mine))]
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
        """In any order of files, and with attributes apart."""
        pipeline, moves = make_pipeline(), moves_of(rows)
        upload_in_any_order(pipeline, files, tmp_path)
        assert Indicator.objects.get(slug="trips").categories == MOVES
        assert {len(each) > PER_DAY for each in moves.values()} == {True, False}
        assert [] in moves.values()
        expected = {day: picked(moves, day=day) for day in range(1, DAYS + 1)}
        assert len(set().union(*expected.values())) == 7  # no one moves from a zone to itself
        apart = make_pipeline(slug="apart", extract=replace(definition.extract, attributes="subscribers"))
        apart.upload(write_file(tmp_path / "all.csv", rows))
        for each in (pipeline, apart):
            assert {day: counted(each, "trips", day) for day in expected} == expected

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


class TestVisits:
    @pytest.fixture(params=[("visited_zones", 6, 2), ("visited_zones", 1, 1), ("visited_pairs", 3, 1)])
    def asked(self, request) -> tuple[str, int]:
        """Return what is asked, how many keep their weight by the file, and how many there can be."""
        return request.param

    @pytest.fixture
    def definition(self, asked) -> StudyDefinition:
        trips = daily("trips", derive=asked[0], more=f"max_visits = {asked[1]}\n")
        return night_study(first_day=FIRST_DAY, days=DAYS, night_from="", more=trips)

    def test_each_visitor_reports_one_of_the_day_in_any_order(self, pipeline, asked, files, rows, tmp_path):
        derive, _, most = asked
        upload_in_any_order(pipeline, files, tmp_path)
        visits = visits_of(rows, derive)
        assert Indicator.objects.get(slug="trips").categories == ITEMS[derive]
        assert {len(each) for each in visits.values()} >= {0, 1}
        for day in range(1, DAYS + 1):
            expected = picked(visits, day=day, most=most, none="no zone")
            assert counted(pipeline, "trips", day, values=ITEMS[derive]) == expected


# --- numbers of a day: quarter-hours with an event; others of them: tests/mobility/vault/test_days.py

CUTS = (2, 4)
NUMBERED = ("gender", "stayed_in", "slept_in", "duration", "events", "by_zone")
SIDES = [" / ".join(each) for each in product((*ZONES, NONE), ("below", "reached", NONE))]


class TestNumbers:
    @pytest.fixture
    def definition(self) -> StudyDefinition:
        """Return a study of epsilon 20, where one answer in 500 million is wrong: counts are true."""
        ask = '[[indicator]]\nslug = "events"\nkind = "number"\nderive = "event_count"\nunit = "events"\n'
        by = joint("by_zone", "stayed_in", "events").replace("static", "daily")
        return night_study(first_day=FIRST_DAY, days=DAYS, more=f"{ask}cuts = {list(CUTS)}\n{by}")

    def test_each_visitor_reports_whether_it_reaches_a_cut(self, pipeline, definition, files, rows, tmp_path):
        """In any order of files and with repeated rows: of each quarter-hour one event counts."""
        upload_in_any_order(pipeline, files, tmp_path)
        pipeline.upload(write_file(tmp_path / "again.csv", rows[:9]))
        truth, asked = truth_of(rows), {"prf": KeyedPrf(SANITISE_KEY), "indicator": NUMBERED.index("events")}
        asked["channel"] = definition.plan_spec().answer_channel(asked["indicator"])
        # The number alone, and with the zone of the day.
        expected = {slug: defaultdict(Counter) for slug in ("events", "by_zone")}
        for slug, (who, day) in product(expected, truth.visitors):
            if who in who_answers(slug, indicators=NUMBERED):
                (cut,) = choose_cut(np.array([pseudonym(who)], np.uint64), **asked).tolist()
                has = truth.n_quarters[who, day] >= CUTS[cut]
                zone = f"{truth.stayed_in[who, day] or NONE} / {('below', 'reached')[has]}"
                expected[slug][day][2 * cut + has if slug == "events" else zone] += 1
        for day in range(1, DAYS + 1):
            events = counted(pipeline, "events", day, values=range(2 * len(CUTS)))
            assert events == expected["events"][day]
            assert counted(pipeline, "by_zone", day, values=SIDES) == expected["by_zone"][day]
            assert len(events) > 1 and len(expected["by_zone"][day]) > 2
