"""From files to totals: the 28 windows, for any order and repetition of files."""

import random
from dataclasses import replace
from decimal import Decimal
from itertools import combinations_with_replacement

import numpy as np
import pytest

from ldp import NO_ANSWER, KeyedPrf, PlanSpec, Sanitiser, derive_subkey
from ldp.estimation.unions import union
from mobility.base.errors import DayStateError
from mobility.batches import outcomes
from mobility.models import Batch, DayState, VaultDay
from reports.studies.plan_models import Plan
from tests.demo_study import STUDY_FILE
from tests.mobility.extracts.rows.small_extract import pseudonym_of
from tests.mobility.pipeline import MASTER_KEY, Pipeline, halves_of, only
from tests.reference import read_extract, read_study

pytestmark = pytest.mark.django_db(databases=["default", "vault"])
DAYS = 7


@pytest.fixture(scope="module")
def truth(extract):
    return read_extract(extract, read_study(STUDY_FILE))


def present_on(extract, *, days, n: int) -> set[str]:
    presence = read_extract(extract[: max(days)], read_study(STUDY_FILE))["presence"]
    people = sorted(who for who, when in presence.items() if set(days) <= when)[:n]
    assert len(people) == n
    return set(people)


def test_counts_and_window_totals_are_exact(pipeline, extract, truth):
    batches = pipeline.upload(*extract)
    for path, batch in zip(extract[:2], batches, strict=False):
        expected = read_extract([path], read_study(STUDY_FILE))
        assert batch.state == Batch.State.DONE
        assert (batch.rows_read, batch.rows_accepted) == (expected["rows_read"], expected["accepted"])
        assert (batch.rows_ignored, batch.rows_rejected) == (expected["ignored"], expected["rejected"])
    present = truth["presence"].values()
    for first, last in combinations_with_replacement(range(1, DAYS + 1), 2):
        in_window = [any(first <= day <= last for day in days) for days in present]
        assert pipeline.visitors(first, last) == sum(in_window)
    assert sum(batch.subscriber_days for batch in batches) == sum(map(len, present))
    assert sum(batch.subscribers_new for batch in batches) == sum(map(bool, present))
    # Under sampling everyone answers one question.
    answers = [np.frombuffer(blob, "<i8") for name, blob in pipeline.tallies().items() if "/" in name]
    assert (len(answers), sum(answers).tolist()) == (7, pipeline.visitor_tally().ravel().tolist())


def test_order_repeats_and_undoing_change_nothing(make_pipeline, definition, extract, tmp_path):
    plan = replace(definition.plan, mechanism="rsfd-ouez", tallies=("visits", "runs"))
    plain = make_pipeline(plan=plan, n_shards=1)
    plain.upload(*extract[:4])
    assert plain.tallies()["stays"] == stays_of(read_extract(extract[:4], read_study(STUDY_FILE))["presence"])
    other = make_pipeline(plan=plan, slug="other")
    shuffled = random.Random(3).sample(extract[:4], 4)
    first_half, second_half = halves_of(shuffled[2], tmp_path)
    other.upload(*shuffled[:2], shuffled[0])
    other.upload(first_half, more_to_come=True)
    other.upload(shuffled[3])
    undone = extract.index(shuffled[1]) + 1
    assert other.void_day(undone).subscriber_days == -plain.visitors(undone, undone)
    assert other.visitors(undone, undone) == 0
    (again, _) = other.upload(shuffled[1], second_half)
    assert (again.duplicate_of, other.tallies()) == (None, plain.tallies())
    assert Plan.objects.get(study__slug="other").voided_days == 1


def test_renewed_reports_are_of_each_day_in_any_order(make_pipeline, definition, extract, tmp_path):
    """The vault keeps an answer of each person; what is counted on a day follows from both alone."""
    plan = replace(definition.plan, mechanism="smp-allomfree")
    plain, other = (make_pipeline(plan=plan, slug=slug, n_shards=n) for slug, n in (("one", 1), ("two", 3)))
    plain.upload(*extract[:4])
    truth = read_extract(extract[:4], read_study(STUDY_FILE))
    assert plain.tallies() | recounted(plain, truth) == plain.tallies()
    shuffled = random.Random(5).sample(extract[:4], 4)
    first_half, second_half = halves_of(shuffled[2], tmp_path)
    other.upload(*shuffled[:2], shuffled[0])
    other.upload(first_half, more_to_come=True)
    other.upload(shuffled[3])
    undone = extract.index(shuffled[1]) + 1
    other.void_day(undone)
    other.upload(shuffled[1], second_half)
    assert other.tallies() == plain.tallies()


def recounted(pipeline: Pipeline, truth) -> dict[str, bytes]:
    """Tallies of static indicators, person by person and day by day, straight from the library."""
    plan, categories = PlanSpec.from_json(pipeline.study.plan), read_study(STUDY_FILE).static
    keys = (derive_subkey(MASTER_KEY, purpose=each) for each in ("pseudonym", "sanitise"))
    pseudonym_key, sanitise_key = keys
    people = sorted(who for who, days in truth["presence"].items() if days)
    pseudonyms = np.array([pseudonym_of(who, key=pseudonym_key) for who in people], np.uint64)
    sanitiser, found = Sanitiser(plan, KeyedPrf(sanitise_key)), {}
    asked, n_bits = sanitiser.asked(pseudonyms), 0
    for slug, (_, names) in categories.items():
        index = plan.index(slug)
        assert plan.is_renewed(index)
        n_bits += plan.is_unary(index)
        values = np.array([names.index(truth["static"][who][slug]) for who in people], np.int32)
        values[asked != index] = -1
        counts = np.zeros((len(names), DAYS + 1, DAYS + 1), "<i8")
        for day in range(1, DAYS + 1):
            words = sanitiser.report(index, pseudonyms, values, day=day)
            for who, report in zip(people, words.tolist(), strict=True):
                days = truth["presence"][who]
                if day in days and report[0] != NO_ANSWER:
                    before = max({each for each in days if each < day}, default=0)
                    if plan.is_unary(index):
                        bits = [report[v // 15] >> v % 15 & 1 for v in range(len(names))]
                        counts[:, before, day] += bits
                    else:
                        counts[report[0], before, day] += 1
        found[slug] = counts.tobytes()
    assert 0 < n_bits < len(categories)  # reports of both kinds
    return found


def stays_of(presence) -> bytes:
    """Recount: people by number of days so far, and by days in a row so far, on each day."""
    found = np.zeros((2, DAYS + 1, DAYS + 1), "<i8")
    for days in presence.values():
        for k, day in enumerate(sorted(days), start=1):
            found[0, k, day] += 1
            found[1, day - max({0, *range(1, day)} - days), day] += 1
    return found.tobytes()


def test_file_held_back_is_published_when_sent_without_the_flag_and_then_says_so(pipeline, extract):
    pipeline.upload(extract[0], more_to_come=True)
    assert pipeline.visitors(1, 1) == 0
    (again,) = pipeline.upload(extract[0])
    assert again.duplicate_of is None
    assert pipeline.visitors(1, 1) > 0
    before = pipeline.tallies()
    for is_held_back in (True, False):  # there is nothing left to hold back
        (repeated,) = pipeline.upload(extract[0], more_to_come=is_held_back)
        assert (outcomes.summary(repeated)["duplicate"], repeated.rows_read) == (True, 0)
    assert pipeline.tallies() == before


def test_late_rows_add_presence_and_keep_answers(make_pipeline, extract, truth, tmp_path):
    """The first half is published: visits get longer with the second, but daily answers are final."""
    pipeline = make_pipeline(min_publication=10)
    first, second = halves_of(extract[3], tmp_path)
    pipeline.upload(first)
    early, answers = pipeline.visitors(4, 4), daily_answers(pipeline)
    (late,) = pipeline.upload(second)
    assert pipeline.visitors(4, 4) == sum(4 in days for days in truth["presence"].values()) > early
    assert late.notes["late_change"] > 0
    assert (daily_answers(pipeline) >= answers).all()


def test_late_changes_are_said_above_a_share_of_the_subscriber_days():
    """Days that are closed have no file to speak of."""
    for late, is_said in {0: False, 10: False, 11: True}.items():
        batch = Batch(notes={"late_change": late}, checks={"day_subscribers": {"1": 400, "2": 600}})
        assert bool(list(outcomes._late_changes(batch))) == is_said
    assert list(outcomes._late_changes(Batch(kind=Batch.Kind.CLOSE_DAYS, notes={"late_change": 5}))) == []


def daily_answers(pipeline: Pipeline) -> np.ndarray:
    counts = np.frombuffer(pipeline.tallies()["visit_duration"], "<i8").reshape(-1, DAYS + 1, DAYS + 1)
    return union(counts, first_day=4, last_day=4)


@pytest.mark.database
def test_close_days_publishes_what_is_open_and_ends_it(pipeline, extract, truth, tmp_path):
    first, second = halves_of(extract[0], tmp_path)
    pipeline.upload(first, second, more_to_come=True)
    assert pipeline.visitors(1, 1) == 0
    assert DayState.objects.exists()
    pipeline.close_days(through=2)
    assert pipeline.visitors(1, 1) == sum(1 in days for days in truth["presence"].values())
    assert not DayState.objects.exists()
    (late,) = pipeline.upload(extract[1])
    assert (late.rows_accepted, pipeline.visitors(2, 2)) == (0, 0)
    assert late.rows_ignored["day_closed"] > 0
    for day, reason in ((1, "closed"), (3, "nothing was uploaded")):
        with pytest.raises(DayStateError, match=reason):
            pipeline.void_day(day)


def test_void_day_respects_the_cap_of_the_plan(make_pipeline, definition, few):
    capped = make_pipeline(plan=replace(definition.plan, epsilon_profile=Decimal("7.5")))
    capped.upload(few[0])
    with pytest.raises(DayStateError, match="epsilon_profile"):
        capped.void_day(1)


def test_small_changes_wait_and_subscribers_count_once(make_pipeline, extract, tmp_path):
    """40 people on two days are 40, not 80: nothing crosses before `min_publication` are covered."""
    waiting, enough = make_pipeline(slug="w", min_publication=41), make_pipeline(slug="e", min_publication=40)
    people = present_on(extract, days=(1, 2), n=40)
    for day in (1, 2):
        part = only(extract[day - 1], people.__contains__, tmp_path)
        (batch,) = waiting.upload(part)
        assert (batch.waiting_subscribers, waiting.visitors(day, day)) == (40, 0)
        enough.upload(part)
        assert enough.visitors(1, 1) == 40
    (batch,) = waiting.upload(extract[2])
    assert (batch.waiting_subscribers, waiting.visitors(1, 2)) == (0, 40)


def test_bad_file_is_refused_whole(pipeline, extract, tmp_path):
    header, *rows = extract[0].read_text().splitlines(keepends=True)
    bad = tmp_path / "bad.csv"
    bad.write_text(header + "".join(rows[:900]) + "33600000001,yesterday,here,,,,,,\n" * 60)
    (batch,) = pipeline.upload(bad)
    assert batch.state == Batch.State.FAILED
    told = [words in batch.failure for words in ("limit 5%", "902", "33600000001")]
    assert told == [True, True, False]  # 902 is the first line of them
    assert (VaultDay.objects.count(), pipeline.visitors(1, DAYS)) == (0, 0)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_answer_of_a_day_without_a_visit_counts_in_any_cut(make_pipeline, extract, tmp_path, order):
    """One event with values on day 1, and a visit without values on day 2."""
    people = present_on(extract, days=(1, 2), n=150)
    header, *rows = only(extract[0], people.__contains__, tmp_path).read_text().splitlines(keepends=True)
    firsts = {row.split(",")[0]: row for row in reversed(rows)}
    later = [row.replace("2017-05-31", "2017-06-01").split(",")[:3] for row in rows]
    blank = "," * (header.count(",") - 2)
    parts = ["".join(firsts.values()), "".join(f"{','.join(fields)}{blank}\n" for fields in later)]
    at_once, cut = make_pipeline(slug="at-once", n_shards=1), make_pipeline(slug="cut")
    (tmp_path / "both.csv").write_text(header + "".join(parts))
    (batch,) = at_once.upload(tmp_path / "both.csv")
    for part in order:
        (tmp_path / f"{part}.csv").write_text(header + parts[part])
        cut.upload(tmp_path / f"{part}.csv")
    assert batch.reports > batch.subscriber_days / 2
    assert cut.tallies() == at_once.tallies()


def test_visitors_of_a_day_are_seen_for_the_least_minutes_or_longer(pipeline, extract, tmp_path):
    names, row = (line.split(",") for line in extract[0].read_text().splitlines()[:2])
    day = row[names.index("timestamp")][:10]
    lines = [",".join(names)]
    for person in range(240):
        for time in ("08:00:00", "09:00:00" if person < 120 else "08:59:59"):
            changed = {"msisdn": f"33600000{person:03}", "timestamp": f"{day}T{time}"}
            lines.append(",".join(changed.get(name, value) for name, value in zip(names, row, strict=True)))
    path = tmp_path / "an-hour.csv"
    path.write_text("\n".join([*lines, ""]))
    pipeline.upload(path)
    assert pipeline.visitors(1, 1) == 120
