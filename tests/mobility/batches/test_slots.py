"""Slots from files to publications: exact, each once with its noise, in any order, under any kill."""

import random
import time
from contextlib import nullcontext
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from ldp.keyed.noise.slots import slot_noise_counts
from mobility.base.errors import DayStateError, StudyStoppedError
from mobility.batches import outcomes, requests
from mobility.batches.publication import merging
from mobility.batches.publication.publishing import catch_up
from mobility.batches.publication.slots import waiting_days
from mobility.management import batch_command
from mobility.models import Batch, OutboxSlots, VaultPublication, VaultStudy
from mobility.operations.doctor import tallies
from mobility.operations.findings import Level
from mobility.operations.sweeping import sweep
from mobility.plans.closing import Leave, StudyNotClosedError, close_study
from mobility.vault.consistency import stop_noisy
from mobility.vault.studies import open_study
from reports.studies.slot_models import SlotDay, StudySlots
from reports.studies.tally_models import Publication
from tests.mobility.batches.killing import ON_POSTGRES, check_deaths
from tests.mobility.commands import printed
from tests.mobility.extracts.rows.night_study import night_study
from tests.mobility.pipeline import Pipeline, fresh, raising
from tests.mobility.slot_study import with_slots
from tests.mobility.vault.test_slots import Recount

pytestmark = pytest.mark.django_db(databases=["default", "vault"], transaction=True)

PARIS = ZoneInfo("Europe/Paris")
FIRST_DAY = date(2017, 10, 28)  # the clocks go back in the first night
DAYS, N_SLOTS, ZONES = 3, 48 + 50 + 48, 4
CELLS = ["cell-9", "cell-8", "cell-7", "cell-6"]  # in the registry's order
START = datetime.combine(FIRST_DAY, datetime.min.time(), PARIS).timestamp()

Row = tuple[str, int, int]  # person, seconds since the study began, cell


@pytest.fixture
def make_slots(make_pipeline):
    def make(*, slug="slots", n_shards=1, **changes: Any) -> Pipeline:
        definition = with_slots(night_study(first_day=FIRST_DAY.isoformat(), days=DAYS), **changes)
        names = ("indicators", "extract", "area", "timezone", "first_day", "days", "plan", "visitor", "slots")
        same = {name: getattr(definition, name) for name in names}
        return make_pipeline(slug=slug, n_shards=n_shards, min_publication=1, **same)

    return make


def at_slot(slot: int) -> datetime:
    return datetime.fromtimestamp(START + slot * 1800, PARIS)


def some_rows(*, seed=1, people=30, n=600) -> list[Row]:
    rng = random.Random(seed)
    starts = range(0, N_SLOTS * 1800, 300)
    return [
        (f"33{rng.randrange(people):04d}", rng.choice(starts) + rng.choice([0, 299]), rng.randrange(4))
        for _ in range(n)
    ]


def day_of(row: Row) -> int:
    return 1 + (row[1] >= 48 * 1800) + (row[1] >= 98 * 1800)


def write(folder, rows, name="rows"):
    path = folder / f"{name}-{len(list(folder.iterdir()))}.csv"
    lines = [
        f"{who},{datetime.fromtimestamp(START + second, PARIS).isoformat()},{CELLS[cell]},F\n"
        for who, second, cell in rows
    ]
    path.write_text("who,when,where,gender\n" + "".join(lines))
    return path


def recount(rows, *, cap=48) -> np.ndarray:
    """Counts of all slots, one person after the other."""
    by_hand = Recount(FIRST_DAY, per_day=cap)
    start = by_hand.slots[0][1]
    return by_hand.counts([(who, start + second, cell) for who, second, cell in rows], 0, N_SLOTS)


def close_slots(pipeline, through):
    return pipeline.finished(
        requests.request_close_slots(pipeline.study, through=at_slot(through), by="test")
    )


def noise_of(pipeline: Pipeline) -> np.ndarray:
    study = open_study(pipeline.study)
    of, zone = (each.ravel() for each in np.indices((N_SLOTS, ZONES)))
    assert study.plan.slots and study.plan.slots.noise
    drawn = slot_noise_counts(study.plan.slots.noise, prf=study.prf, slots=of, zones=zone, plan_version=1)
    return drawn.reshape(N_SLOTS, ZONES)


def published(pipeline: Pipeline) -> np.ndarray:
    """All counts that analysts have, with their noise."""
    of_study = StudySlots.objects.get(study__slug=pipeline.study.slug)
    found = [day.array(zones=ZONES) for day in of_study.days.order_by("day")]
    counts = np.concatenate([np.empty((0, ZONES), np.int64), *found])
    assert len(counts) == of_study.closed == VaultStudy.objects.get(pk=pipeline.study.pk).slots_closed
    return counts


def test_counts_cross_once_with_the_noise_of_their_slot_and_zone(make_slots, tmp_path):
    rows = some_rows()
    at_once, stepwise = make_slots(slug="at-once"), make_slots(slug="stepwise", n_shards=2)
    at_once.upload(write(tmp_path, rows[::-1]))
    assert outcomes.is_published(close_slots(at_once, N_SLOTS))
    counts = published(at_once) - noise_of(at_once)
    assert np.array_equal(counts, recount(rows))
    assert counts[:, :2].sum() > 500
    assert np.count_nonzero(noise_of(at_once)) > N_SLOTS * ZONES // 2
    # Days without a file are as noisy as others: whether anyone was there stays hidden.
    nobody = make_slots(slug="nobody")
    close_slots(nobody, 60)
    assert np.array_equal(published(nobody), noise_of(nobody)[:60])
    # The same rows by halves and days, closed bit by bit before later ones come, over midnights.
    for day in range(1, DAYS + 1):
        of_day = [row for row in rows if day_of(row) == day]
        stepwise.upload(*(write(tmp_path, of_day[part::2]) for part in range(2)))
        for through in (48 * day - 30, 48 * day - 3):
            close_slots(stepwise, through)
        if day < DAYS:
            stepwise.close_days(through=day)
    stepwise.close_days(through=DAYS)
    assert np.array_equal(published(stepwise), published(at_once))
    assert not OutboxSlots.objects.exists()


def test_late_rows_change_no_closed_slot_and_carry_on(make_slots, tmp_path):
    study, rows = make_slots(epsilon_day=None, delta=None), some_rows(seed=2)
    early = [row for row in rows if row[1] < 20 * 1800]
    study.upload(write(tmp_path, early))
    close_slots(study, 20)
    first = published(study)
    late = [("330099", 19 * 1800 + second, 0) for second in (10, 20, 1500)]
    late.append(("330099", 21 * 1800, 1))
    (batch,) = study.upload(write(tmp_path, late))
    assert batch.notes == {"conflicting_value": 0, "late_change": 0, "slot_closed": 3}
    assert batch.rows_accepted == 4
    close_slots(study, 23)
    assert np.array_equal(published(study)[:20], first)
    expected = recount([*early, *late])[20:23]
    assert np.array_equal(published(study)[20:], expected)
    assert (expected - recount(early)[20:23]).tolist() == [[1, 0, 1, 0], [0, 1, 0, 0], [0, 1, 0, 0]]


def test_first_slots_of_a_person_count_also_after_the_day_was_undone(make_slots, tmp_path):
    """A person stays in no more slots of a day than count, before and after the undoing together."""
    study = make_slots(epsilon_day=None, delta=None, slots_per_day=5)
    rows = [(who, slot * 1800, 0) for who in ("331", "332") for slot in range(4, 30, 2)]
    study.upload(write(tmp_path, rows[:13]))
    close_slots(study, 7)  # three of the first person
    study.void_day(1)
    study.upload(write(tmp_path, rows))
    close_slots(study, 30)
    counts = published(study)
    assert counts[:7, 0].tolist() == [0, 0, 0, 0, 1, 1, 1]
    assert counts[:, 0].sum() == 3 + 2 + 5
    assert counts[7:, 0].tolist() == [2, 2, 1, 1, 1, *[0] * 18]


def test_slots_take_no_number_from_totals_that_wait(make_slots, tmp_path):
    """Changes of too few people wait for the next publication of totals, also while slots are closed."""
    study = make_slots()
    study.study.definition["min_publication"] = 10
    study.study.save(update_fields=["definition"])
    rows = [(f"33{who}", 20 * 1800 + second, 0) for who in range(9) for second in (0, 4000)]
    study.upload(write(tmp_path, rows))
    assert study.visitors(1, 1) == 0
    close_slots(study, 30)
    study.upload(write(tmp_path, [("33999", 20 * 1800, 0), ("33999", 24 * 1800, 0)]))
    assert study.visitors(1, 1) == 10


def test_refused_with_a_reason(make_slots, pipeline):
    slots, midnight = make_slots(), datetime.combine(FIRST_DAY, datetime.min.time())
    for study, closed, after, words in (
        (slots, 0, timedelta(minutes=29), "had ended by 2017-10-28 00:29"),
        (slots, 10, timedelta(hours=5), "all time slots up to 2017-10-28 05:00 are already closed"),
        (slots, 10, timedelta(days=36500), "is in the future"),
        (pipeline, 0, timedelta(0), "does not count people by time slot"),
    ):
        VaultStudy.objects.update(slots_closed=closed)
        with pytest.raises(DayStateError, match=words):
            requests.request_close_slots(fresh(study.study), through=midnight + after, by="test")


def test_clock_closes_slots_that_ended_long_enough_ago(make_slots):
    minutes = int(time.time() - START - 3 * 1800) // 60  # since the end of the third slot
    settings = (minutes, minutes + 2, None)
    studies = [make_slots(slug=f"s{n}", close_after_minutes=each) for n, each in enumerate(settings)]
    for _ in range(2):
        sweep()
        studies[0].work()
    assert [len(published(each)) for each in studies] == [3, 2, 0]
    assert Batch.objects.filter(kind=Batch.Kind.CLOSE_SLOTS, created_by="slot clock").count() == 2


def test_batch_that_failed_half_way_publishes_nothing_and_the_next_counts_anew(
    make_slots, tmp_path, monkeypatch
):
    study = make_slots(n_shards=2, epsilon_day=None, delta=None, slots_per_day=5)
    rows = some_rows(seed=4)
    study.upload(write(tmp_path, rows))
    real = merging._store
    with monkeypatch.context() as patch:
        patch.setattr(merging, "_store", lambda *args: raising(ValueError)() if args[2] else real(*args))
        batch = close_slots(study, 40)
    assert batch.state == Batch.State.FAILED
    assert OutboxSlots.objects.count() == 1
    assert not len(published(study))
    study.upload(write(tmp_path, [("330001", 5, 1)]))
    close_slots(study, 60)
    assert np.array_equal(published(study), recount([*rows, ("330001", 5, 1)], cap=5)[:60])
    assert not OutboxSlots.objects.exists()


def test_no_slot_crosses_twice_after_a_restore(make_slots):
    """With the same noise, and without those who opted out, it would show who they are."""
    noisy, exact = make_slots(), make_slots(slug="exact", epsilon_day=None, delta=None)
    for study in (noisy, exact):
        close_slots(study, 30)
    assert stop_noisy() == ["slots"]
    for study in (noisy, exact):
        study.study.refresh_from_db()
    with pytest.raises(StudyStoppedError, match="--no-day-closed-since"):
        close_slots(noisy, 31)
    close_slots(exact, 31)
    VaultStudy.objects.update(stopped="")
    noisy.study.refresh_from_db()
    close_slots(noisy, N_SLOTS)  # then no slot is left that could cross
    assert stop_noisy() == []


def test_analysts_get_again_what_a_restore_has_lost_and_the_doctor_sees_gaps(make_slots, tmp_path):
    study, rows = make_slots(), some_rows()
    study.upload(write(tmp_path, rows))
    for through in (20, 50, 70):
        close_slots(study, through)
    expected, levels = published(study), lambda: [each.level for each in tallies.slots()]
    assert levels() == [Level.OK]
    known = VaultPublication.objects.exclude(slots=None).order_by("slots_through")
    Publication.objects.filter(publication_id__in=[each.pk for each in known[1:]]).delete()
    SlotDay.objects.filter(day__gte=2).delete()
    day = SlotDay.objects.get()
    day.counts = bytes(day.counts)[: 20 * ZONES * 8]
    day.save()
    StudySlots.objects.update(closed=20)
    assert levels() == [Level.OK]  # it is on its way
    catch_up()
    assert np.array_equal(published(study), expected)
    StudySlots.objects.update(closed=50)
    assert levels() == [Level.ERROR]
    StudySlots.objects.update(closed=70)
    known.last().delete()
    assert levels() == [Level.ERROR]


def test_command_closes_slots_and_says_so(make_slots, monkeypatch):
    study = make_slots()
    monkeypatch.setattr(batch_command, "workers", lambda: nullcontext(study.work))
    told = printed("close_slots", "slots", "--through", "2017-10-29")
    assert told.pop("batch")
    assert told == {
        "study": "slots", "through": "2017-10-30T00:00:00+01:00", "slots_closed": 98, "published": True,
    }  # fmt: skip
    for through, words in (("2017-10-29T18:00", "already closed"), ("noon", "must be a time such as")):
        with pytest.raises(CommandError, match=words):
            call_command("close_slots", "slots", "--through", through)


def test_study_is_not_closed_while_slots_of_its_days_are_open(make_slots, tmp_path):
    study = make_slots()
    study.upload(write(tmp_path, [("331", 20 * 1800, 0), ("331", 23 * 1800, 0)]))
    study.close_days(through=1)
    study.upload(write(tmp_path, [("331", 70 * 1800, 0)]))
    close_slots(study, 90)
    study.study.refresh_from_db()
    assert waiting_days(study.study) == {2}
    with pytest.raises(StudyNotClosedError, match=r"never published \(2017-10-29\)"):
        close_study(study.study, by="test", leave=Leave())
    close_slots(study, 98)
    study.study.refresh_from_db()
    assert waiting_days(study.study) == set()


# To close days closes their slots, too: on PostgreSQL one way is enough.
@pytest.mark.parametrize(
    ("way", "n_deaths"),
    [pytest.param("days", 3, marks=[pytest.mark.database, ON_POSTGRES]),
     *(pytest.param(way, None, marks=pytest.mark.long) for way in ("slots", "days"))],
)  # fmt: skip
def test_a_death_at_any_statement_of_a_closing_changes_nothing(make_slots, tmp_path, way, n_deaths):
    rows = some_rows(seed=5, n=200)

    def begun(slug):
        study = make_slots(slug=slug, n_shards=2, slots_per_day=9)
        study.upload(write(tmp_path, rows))
        close_slots(study, 11)
        if way == "slots":
            batch = requests.request_close_slots(study.study, through=at_slot(60), by="test")
        else:
            batch = requests.request_close_days(study.study, through=1, by="test")
        study.queue.clear()
        study.queue.append(("advance", str(batch.pk)))
        return study, batch

    def result_of(study):
        crossed = VaultPublication.objects.exclude(slots=None).filter(study=study.study).count()
        waiting = OutboxSlots.objects.filter(batch__study=study.study).exists()
        return published(study).tolist(), crossed, waiting

    check_deaths(begun, result_of, n_deaths=n_deaths)
