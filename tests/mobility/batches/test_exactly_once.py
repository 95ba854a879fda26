"""After a worker's death at any statement the batch resumes, and every tally ends as without it."""

from functools import partial
from random import Random

import pytest
from celery.exceptions import SoftTimeLimitExceeded
from django.core import serializers
from django.db import OperationalError
from django.forms.models import model_to_dict
from django.utils import timezone

from ldp.errors import LdpError
from ldp.estimation.tallies import Delta
from mobility.base.errors import CancelError, SupersededError
from mobility.batches import finalisation, reading, running
from mobility.batches.finalisation import cancel, fail, stopped
from mobility.batches.publication import day_transitions, merging, publishing, receipts
from mobility.batches.states import activate
from mobility.extracts.profiles.definition import OPT_OUT
from mobility.models import Applied, Batch, Chunk, DayState, OutboxDelta, PresenceShard, VaultDay, VaultStudy
from mobility.operations.sweeping import sweep
from mobility.vault.blobs import store, successor
from mobility.vault.keystore import keystore
from mobility.vault.studies import open_study
from reports.models import LedgerEntry, Publication, Tally, VisitorTally
from tests.mobility.batches.killing import (
    ON_POSTGRES,
    KillAt,
    Killed,
    check_deaths,
    run,
    spread,
    statements_of,
)
from tests.mobility.pipeline import SMALL, fresh, halves_of, raising, resume

# Real transactions: a death inside one must roll back nothing else.
pytestmark = pytest.mark.django_db(databases=["default", "vault"], transaction=True)
State = Batch.State


@pytest.mark.parametrize(
    "n_deaths",
    [pytest.param(4, marks=[pytest.mark.database, ON_POSTGRES]), pytest.param(None, marks=pytest.mark.long)],
)
def test_a_death_at_any_statement_of_a_second_day_changes_nothing(make_pipeline, few, n_deaths):
    def begun(slug):
        pipeline = make_pipeline(slug=slug, **SMALL)
        pipeline.upload(few[0])
        return pipeline, pipeline.ask_for(few[1])

    check_deaths(begun, n_deaths=n_deaths, least=50)


def test_an_outage_of_a_moment_holds_nothing_up(make_pipeline, few):
    """One statement meets no database: its task is tried again, and no sweep and no lease is needed."""
    undisturbed = make_pipeline(slug="undisturbed", **SMALL)
    undisturbed.ask_for(few[0])
    n_statements, expected = statements_of(undisturbed.work), undisturbed.tallies()
    assert undisturbed.visitors(1, 1) > 0
    for n in spread(8, over=n_statements):
        pipeline = make_pipeline(slug=f"without-answer-{n}", **SMALL)
        batch = pipeline.ask_for(few[0])
        run(partial(pipeline.work, retries=True), KillAt(n, OperationalError))
        assert (fresh(batch).state, pipeline.tallies()) == (State.DONE, expected), n
        assert LedgerEntry.objects.filter(event_id=f"batch.ended/{batch.pk}").count() == 1, n
        assert not VaultStudy.objects.exclude(active_batch=None).exists(), n


@pytest.mark.parametrize(("module", "step"), [(finalisation, "deactivate"), (receipts, "record")])
def test_a_batch_that_met_no_database_as_it_ended_makes_room_and_is_recorded(
    pipeline, few, monkeypatch, module, step
):
    batch, real, fails = pipeline.ask_for(few[0]), getattr(module, step), [OperationalError]

    def once(*given, **options):
        if fails:
            raise fails.pop()
        return real(*given, **options)

    monkeypatch.setattr(module, step, once)
    pipeline.work(retries=True)
    assert (fresh(batch).state, fails, VaultStudy.objects.get().active_batch) == (State.DONE, [], None)
    assert LedgerEntry.objects.filter(event_id=f"batch.ended/{batch.pk}").count() == 1


@pytest.mark.database
def test_tasks_in_any_order_and_more_than_once_count_once(make_pipeline, extract, small_chunks):
    expected = make_pipeline(slug="in-order")
    expected.upload(extract[0])
    assert Chunk.objects.count() > 5
    order = Random(7)
    pipeline = make_pipeline(slug="any-order")
    pipeline.ask_for(extract[0])
    while pipeline.queue:
        asked = [task for task in pipeline.queue for _ in range(order.choice((1, 1, 2, 3)))]
        order.shuffle(asked)
        pipeline.queue.clear()
        for task, *ids in asked:
            getattr(running, task)(*ids)
    assert set(Batch.objects.values_list("state", flat=True)) == {State.DONE}
    assert pipeline.tallies() == expected.tallies()


def test_main_database_restored_from_an_older_dump_catches_up(make_pipeline, few):
    """By a file that changes nothing, or when a worker starts."""
    pipeline = make_pipeline(**SMALL)
    pipeline.upload(few[0])
    totals = [*Publication.objects.all(), *VisitorTally.objects.all(), *Tally.objects.all()]
    dump = serializers.serialize("json", totals)
    pipeline.upload(few[1])
    expected = pipeline.tallies()
    assert pipeline.visitors(2, 2) > 0
    for catch_up in (partial(pipeline.upload, few[1]), publishing.catch_up):
        Publication.objects.all().delete()
        for row in serializers.deserialize("json", dump):
            row.save()
        assert pipeline.visitors(2, 2) == 0
        catch_up()
        assert pipeline.tallies() == expected


@pytest.mark.database
def test_a_shard_takes_a_batch_once_also_from_two_that_have_computed_it(pipeline, extract, monkeypatch):
    """The second one is past every check: its write is refused as a whole."""
    batch = pipeline.receive(extract[0])
    compute, apply, computed, told = merging.outcome_of, merging.apply_shard, [], []

    def computed_twice(*given):
        outcome = compute(*given)
        if not computed:
            computed.append(True)
            merging.apply_shard(*given)  # another worker, a moment faster
        return outcome

    def noted(*given):
        try:
            apply(*given)
        except SupersededError as error:
            told.append(str(error))
            raise

    monkeypatch.setattr(merging, "outcome_of", computed_twice)
    monkeypatch.setattr(merging, "apply_shard", noted)
    pipeline.finished(batch)
    resume(pipeline, batch)
    assert [text.partition(" batch")[0] for text in told] == ["shard 0 has taken"]
    assert (batch.state, Applied.objects.filter(batch=batch).count()) == (State.DONE, 2)
    assert pipeline.visitors(1, 1) == batch.subscriber_days > 0
    assert not OutboxDelta.objects.exists()


def test_deltas_wait_sealed_and_a_state_is_replaced_only_by_a_worker_that_has_read_it(pipeline, few):
    pipeline.upload(few[0])
    waiting = OutboxDelta.objects.first()
    with pytest.raises(LdpError):
        Delta.unpack(bytes(waiting.delta))
    assert not open_study(pipeline.study).unseal_delta(waiting).is_zero
    row = PresenceShard.objects.first()
    given = {"seal": lambda version: bytes([version]) * 40, "study": row.study, "shard": 0}
    first, second = (successor(PresenceShard, row, **given) for _ in range(2))
    store([first])
    with pytest.raises(SupersededError, match="was changed by another worker"):
        store([second])
    assert PresenceShard.objects.get(pk=row.pk).version == row.version + 1


def test_one_batch_of_a_study_at_a_time(pipeline, few):
    batches = [pipeline.receive(path) for path in few[:2]]
    assert activate(batches[0])
    assert pipeline.finished(batches[1]).state == State.QUEUED
    pipeline.finished(batches[0])  # the end of the first asks for the second
    assert fresh(batches[1]).state == State.DONE


def test_the_first_reason_of_a_failure_counts_and_what_others_have_ended_stays(pipeline, few):
    """Also where the batch has not ended yet: its worker may have died in between."""
    done, batch = pipeline.finished(pipeline.receive(few[1])), pipeline.receive(few[0])
    late = Batch.objects.get(pk=done.pk)
    late.state = State.MERGING  # as it was when a task began
    fail(late, "too late")
    assert (fresh(done).state, done.failure) == (State.DONE, "")
    Batch.objects.filter(pk=batch.pk).update(failure="no such column")
    fail(batch, "a second task has met another one")
    assert fresh(batch).failure == "no such column"
    fail(pipeline.finished(batch), "too late")
    assert (fresh(batch).state, batch.failure) == (State.FAILED, "no such column")


@pytest.mark.parametrize("noted", ["", "noted before its process died"])
def test_upload_whose_server_died_fails(pipeline, few, data_dir, noted):
    batch = pipeline.receive(few[0])
    Batch.objects.filter(pk=batch.pk).update(state=State.RECEIVING, failure=noted)
    resume(pipeline, batch)
    assert (batch.state, (noted or "send the file again") in batch.failure) == (State.FAILED, True)
    assert list((data_dir / "staging").iterdir()) == []


ENDLESS = {
    Killed: "tried 5 times, and each time the worker stopped unexpectedly",
    SoftTimeLimitExceeded: "longer than 3,240 s, nine tenths of MOBILITY_TASK_TIME_LIMIT_S",
}


@pytest.mark.parametrize("at", [(reading, "read_chunk"), (merging, "apply_shard")])
@pytest.mark.parametrize("end", ENDLESS)
def test_work_that_kills_every_worker_or_takes_too_long_ends_and_says_so(pipeline, few, monkeypatch, at, end):
    batch = pipeline.receive(few[0])
    monkeypatch.setattr(*at, raising(end))
    for _ in range(running.MAX_ATTEMPTS - (end is SoftTimeLimitExceeded)):
        with pytest.raises(end):
            resume(pipeline, batch)
    resume(pipeline, batch)
    assert (batch.state, "stopped unexpectedly" in batch.failure) == (State.FAILED, end is Killed)
    assert ENDLESS[end] in batch.failure


@pytest.mark.parametrize("state", Batch.CANCELLABLE)
def test_cancelled_batch_leaves_nothing(make_pipeline, few, data_dir, state):
    pipeline = make_pipeline(**SMALL)
    batch = pipeline.receive(few[0])
    if state == State.READING:
        running.advance(str(batch.pk))
    for later in (State.MERGING, State.PUBLISHING, State.DONE):
        Batch.objects.filter(pk=batch.pk).update(state=later)
        with pytest.raises(CancelError, match="can no longer be cancelled"):
            cancel(batch, by="Ada")
    Batch.objects.filter(pk=batch.pk).update(state=state)
    cancel(batch, by="Ada")
    assert pipeline.finished(batch).state == State.CANCELLED
    assert batch.failure == "cancelled by Ada: none of its data was published or kept"
    assert (list((data_dir / "staging").iterdir()), keystore().exists(batch.key_id)) == ([], False)
    assert pipeline.visitors(1, 1) == 0
    pipeline.upload(few[0])
    assert pipeline.visitors(1, 1) > 0


def test_a_check_counts_everything_and_keeps_nothing(make_pipeline, extract, data_dir):
    real = make_pipeline(slug="real")
    (uploaded,) = real.upload(extract[0])
    pipeline = make_pipeline(slug="only-checked")
    broken = pipeline.receive(extract[0], validate_only=True)
    pipeline.bring_to(broken, State.MERGING)
    fail(broken, stopped(fresh(broken), "MemoryError"))
    assert "Nothing was published" in fresh(broken).failure
    (checked,) = pipeline.upload(extract[0], validate_only=True)
    for name in ("rows_read", "rows_accepted", "rows_ignored", "rows_rejected", "subscriber_days", "checks"):
        assert getattr(checked, name) == getattr(uploaded, name)
    assert pipeline.visitors(1, 7) == 0
    for model in (PresenceShard, DayState, VaultDay):
        assert not model.objects.filter(study=pipeline.study).exists()
    assert (OutboxDelta.objects.exists(), list((data_dir / "staging").iterdir())) == (False, [])
    pipeline.upload(extract[0])
    assert pipeline.tallies() == real.tallies()
    (checked,) = pipeline.upload(extract[0], validate_only=True)  # of rows that the study has
    assert (checked.duplicate_of, checked.rows_read) == (None, uploaded.rows_read)


def test_a_check_says_the_same_whoever_the_vault_holds(make_pipeline, extract, tmp_path):
    """Also of those who have opted out: else a check could ask for single people."""
    empty, full = make_pipeline(slug="empty"), make_pipeline(slug="full")
    full.upload(extract[0])
    rows = extract[0].read_text().splitlines()[1:50]
    (tmp_path / "gone.txt").write_text("".join(row.split(",")[0] + "\n" for row in rows))
    full.upload(tmp_path / "gone.txt", profile=OPT_OUT)
    told = [model_to_dict(each.upload(extract[0], validate_only=True)[0]) for each in (empty, full)]
    rows = ("rows_accepted", "rows_ignored", "rows_rejected")
    for name in (*merging.COUNTED, *rows, "notes", "checks", "days_touched"):
        assert told[0][name] == told[1][name], name
    assert told[0]["subscribers_new"] > 0


def test_batch_that_failed_while_merging_is_published_by_close_days(pipeline, extract, monkeypatch):
    """Day state holds its rows, presence does not yet: they may not be forgotten."""
    batch = pipeline.receive(extract[0], more_to_come=True)
    with monkeypatch.context() as patch:
        patch.setattr(day_transitions, "make", raising(ZeroDivisionError))
        assert pipeline.finished(batch).state == State.FAILED
    assert pipeline.visitors(1, 1) == 0
    pipeline.close_days(through=1)
    assert pipeline.visitors(1, 1) > 0


class TestOrder:
    """Files count in the order in which they came in, also when the queue has lost the request for one."""

    def test_part_that_was_not_asked_for_comes_before_the_last_one(self, pipeline, extract, tmp_path):
        """The other way round the days would be published with half of their rows."""
        first_half, second_half = halves_of(extract[0], tmp_path)
        first = pipeline.receive(first_half, more_to_come=True)
        (last,) = pipeline.upload(second_half)
        assert (fresh(first).state, last.state, last.notes["late_change"]) == (State.DONE, State.DONE, 0)
        assert first.finished_at < last.started_at
        assert pipeline.visitors(1, 1) == last.subscriber_days > 0

    def test_batch_that_is_still_received_or_behind_an_active_one_holds_up_nobody(self, pipeline, few):
        """The worker of an active one died before it began to read, and an earlier upload ended meanwhile."""
        first, second = (pipeline.receive(path) for path in few[:2])
        Batch.objects.filter(pk=first.pk).update(state=State.RECEIVING, alive_until=timezone.now())
        assert pipeline.finished(second).state == State.DONE
        Batch.objects.filter(pk=first.pk).update(state=State.QUEUED, alive_until=None)
        third = pipeline.receive(few[2])
        assert activate(third)
        pipeline.finished(third)
        assert fresh(first).state == third.state == State.DONE

    def test_a_sweep_asks_for_one_batch_of_each_study(self, make_pipeline, few):
        """Later batches are requested when it ends: a thousand waiting ones are one message."""
        first, second = make_pipeline(slug="first"), make_pipeline(slug="second")
        waiting = [pipeline.receive(path) for pipeline in (first, second) for path in few]
        sweep()
        assert sorted(first.queue) == sorted(("advance", str(waiting[index].pk)) for index in (0, 3))
        first.queue.clear()
        assert activate(waiting[1])
        Batch.objects.filter(study=first.study).update(alive_until=None)
        sweep()
        assert list(first.queue) == [("advance", str(waiting[1].pk))]
        first.work()
        assert set(first.study.batches.values_list("state", flat=True)) == {State.DONE}


def merge_half(pipeline, batch):
    """Work on the batch until the first of its two shards is merged."""
    pipeline.bring_to(batch, State.MERGING)
    running.apply_shard(*pipeline.queue.popleft()[1:])


def test_slow_publication_of_an_earlier_batch_cuts_nothing_of_the_next(make_pipeline, extract):
    expected = make_pipeline(slug="undisturbed")
    expected.upload(*extract[:2])
    pipeline = make_pipeline(slug="slow")
    (first,) = pipeline.upload(extract[0])
    merge_half(pipeline, pipeline.receive(extract[1]))
    publishing.publish(open_study(fresh(pipeline.study)), batch=first)
    assert pipeline.visitors(2, 2) == 0
    pipeline.work()
    assert pipeline.tallies() == expected.tallies()


def test_undoing_a_day_that_was_published_by_half_counts(pipeline, extract):
    """Daily answers of it may have crossed: the certified loss has to know."""
    batch = pipeline.receive(extract[0])
    merge_half(pipeline, batch)
    finalisation.fail(batch, finalisation.stopped(fresh(batch), "MemoryError"))
    pipeline.queue.clear()
    pipeline.upload(extract[1])
    assert pipeline.visitors(1, 1) > 0
    pipeline.void_day(1)
    assert (pipeline.visitors(1, 1), VaultStudy.objects.get(pk=pipeline.study.pk).voided_days) == (0, 1)
