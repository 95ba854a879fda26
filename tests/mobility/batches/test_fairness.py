"""Batches take turns: with any sizes, each gets its share of the workers' processes."""

import gzip
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from itertools import count
from threading import Barrier, BrokenBarrierError
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from django.db import InterfaceError, OperationalError, connections
from django.utils import timezone

from mobility.base.errors import BatchFormatError, StagingUnavailableError
from mobility.batches import fairness, reading, running
from mobility.batches.finalisation import cancel
from mobility.batches.publication import merging
from mobility.batches.states import next_sign
from mobility.operations import sweeping
from mobility.vault.models.batch import Batch, Chunk, ShardRun
from mobility.vault.studies import open_study
from mobility.workers.models import WorkerSign
from mobility.workers.signs import SILENT_S
from tests.mobility.pipeline import Pipeline, fresh, raising

pytestmark = pytest.mark.django_db(databases=["default", "vault"])


@pytest.fixture(autouse=True)
def _main_database_answers(monkeypatch):
    """Facts learned by an earlier test do not count."""
    monkeypatch.setitem(fairness._known, "until", 0.0)


@pytest.fixture
def huge_file(extract, tmp_path):
    path = tmp_path / "huge.csv"
    rest = [path.read_bytes().partition(b"\n")[2] for path in extract[1:3]]
    path.write_bytes(b"".join([extract[0].read_bytes(), *rest]))
    return path


@pytest.fixture
def small_file(extract, tmp_path):
    path = tmp_path / "small.csv"
    path.write_bytes(b"".join(extract[0].read_bytes().splitlines(keepends=True)[:200]))
    return path


@pytest.fixture
def two(make_pipeline, small_chunks, settings):
    settings.MOBILITY_WORKER_PROCESSES = 1
    return make_pipeline(slug="first"), make_pipeline(slug="second")


def take_one(pipeline: Pipeline) -> tuple[str, ...]:
    """Do as a worker with one process: what is short first, the rest in its order."""
    messages = list(pipeline.queue)
    found = next((message for message in messages if message[0] == "advance"), messages[0])
    pipeline.queue.remove(found)
    getattr(running, found[0])(*found[1:])
    return found


def take_until(pipeline: Pipeline, batch: Batch, state: str) -> None:
    while state_of(batch) != state:
        take_one(pipeline)


def in_queue(pipeline: Pipeline, batch: Batch) -> int:
    return sum(ids[0] == str(batch.pk) for task, *ids in pipeline.queue if task != "advance")


def state_of(batch: Batch) -> str:
    return fresh(batch).state


def test_a_small_batch_ends_long_before_a_huge_one_that_came_first(two, huge_file, small_file):
    first, second = two
    huge = first.ask_for(huge_file)
    take_one(first)
    for expected in ([0, 1], [0, 1, 0]):  # running work is not requested twice, unless it seems lost
        fairness.ask_for_chunks(huge)
        assert [ids[1] for _, *ids in first.queue] == expected
        Chunk.objects.filter(batch=huge, index=0).update(alive_until=timezone.now())
    first.queue.pop()
    while Chunk.objects.filter(batch=huge, is_done=True).count() < 3:
        take_one(first)
    n_chunks = Chunk.objects.filter(batch=huge).count()
    small = second.ask_for(small_file)
    take_until(second, small, Batch.State.DONE)
    read = Chunk.objects.filter(batch=huge, is_done=True).count()
    assert 3 < read < 10  # it continued meanwhile, and the small one did not wait for it
    assert n_chunks > 15
    first.work()
    assert state_of(huge) == Batch.State.DONE


def test_two_huge_batches_take_turns_and_one_alone_keeps_all_busy_but_floods_nobody(two, settings, huge_file):
    first, second = two
    batches = [first.ask_for(huge_file), second.ask_for(huge_file)]
    taken: Counter[str] = Counter()
    while sum(taken.values()) < 12:
        task, batch, *_ = take_one(first)
        taken[batch] += task == "read_chunk"
        assert all(in_queue(first, each) <= 2 for each in batches)
    assert min(taken[str(batch.pk)] for batch in batches) >= 5
    cancel(batches[1], by="olga")
    settings.MOBILITY_WORKER_PROCESSES = 3
    seen = []
    while first.queue:
        take_one(first)
        seen.append(in_queue(first, batches[0]))
    assert max(seen) == 6
    assert seen.count(6) > len(seen) / 4
    assert state_of(batches[0]) == Batch.State.DONE


def test_outages_multiply_and_fail_nothing(make_pipeline, small_chunks, settings, huge_file, monkeypatch):
    """Each round is a lease: all that is asked for fails, is tried again, and the sweep looks."""
    pipeline = make_pipeline(n_shards=4)
    settings.MOBILITY_WORKER_PROCESSES = 2
    batch = pipeline.ask_for(huge_file)
    for state, module, work in (("reading", reading, "read_chunk"), ("merging", merging, "apply_shard")):
        take_until(pipeline, batch, state)
        with monkeypatch.context() as patch:
            patch.setattr(module, work, raising(StagingUnavailableError("no answer")))
            for _ in range(fairness.MAX_ATTEMPTS + 3):
                for rows in (Batch.objects.filter(pk=batch.pk), batch.chunks.all(), batch.shard_runs.all()):
                    rows.update(alive_until=timezone.now() - timedelta(seconds=1))
                take_all_that_fail(pipeline)
                sweeping.sweep()
                asked = [message for message in pipeline.queue if message[0] == work]
                assert len(asked) == len(set(asked)) == len(pipeline.queue) == 4
        assert not Chunk.objects.filter(batch=batch, attempts__gt=0, is_done=False).exists()
        assert not ShardRun.objects.filter(batch=batch, attempts__gt=0).exists()
    pipeline.work()
    assert state_of(batch) == Batch.State.DONE


def test_who_reads_a_chunk_for_long_shows_that_it_is_at_work(pipeline, small_file, monkeypatch):
    batch = pipeline.receive(small_file)
    study = open_study(batch.study)
    reading.begin(batch, study)
    began = timezone.now()
    Chunk.objects.filter(batch=batch).update(alive_until=began)
    minutes = count(step=60)
    monkeypatch.setattr(reading, "time", SimpleNamespace(monotonic=lambda: next(minutes)))
    reading.read_chunk(batch, batch.chunks.get(), study)
    assert batch.chunks.get().alive_until > began


@pytest.mark.database
def test_of_tasks_that_wait_for_the_same_only_the_last_is_tried_again(pipeline, huge_file, monkeypatch):
    """Messages may double, also during outages of the database: those in flight at once are no deaths."""
    batch = pipeline.ask_for(huge_file)
    take_until(pipeline, batch, Batch.State.READING)
    ends, began = [], []

    def slow(*_):
        """Others begin while this one hangs."""
        began.append(1)
        if len(began) < 4:
            begin()
        raise StagingUnavailableError("no answer")

    def begin():
        try:
            running.read_chunk(str(batch.pk), 0)
            ends.append("dropped")
        except StagingUnavailableError:
            ends.append("tried again")

    monkeypatch.setattr(reading, "read_chunk", slow)
    begin()
    assert ends == ["tried again", "dropped", "dropped", "dropped"]
    assert (Chunk.objects.get(batch=batch, index=0).attempts, state_of(batch)) == (0, Batch.State.READING)


def take_all_that_fail(pipeline: Pipeline) -> None:
    """Do each message once; what has to wait comes back, as by `retry`."""
    for task, *ids in [pipeline.queue.popleft() for _ in range(len(pipeline.queue))]:
        try:
            getattr(running, task)(*ids)
        except StagingUnavailableError:
            pipeline.queue.append((task, *ids))


@pytest.fixture
def long(make_pipeline, settings, small_file, tmp_path, monkeypatch):
    """Two batches with compressed text, which is one task however long it takes; and two processes."""
    settings.MOBILITY_WORKER_PROCESSES = 2
    packed = tmp_path / "day.csv.gz"
    packed.write_bytes(gzip.compress(small_file.read_bytes()))
    monkeypatch.setattr(fairness, "LONG_BYTES", 1000)
    pipelines = [make_pipeline(slug=slug) for slug in ("first", "second")]
    return pipelines[0], [pipeline.ask_for(packed) for pipeline in pipelines]


@pytest.mark.parametrize("end", ["done", "failed", "cancelled"])
def test_long_tasks_leave_a_process_to_all_others_and_wake_the_next_however_they_end(long, monkeypatch, end):
    pipeline, (first, second) = long
    take_one(pipeline)
    take_until(pipeline, second, Batch.State.READING)
    assert (state_of(first), [*pipeline.queue]) == ("reading", [("read_chunk", str(first.pk), 0)])
    if end == "cancelled":
        cancel(first, by="olga")
    else:
        if end == "failed":
            monkeypatch.setattr(reading, "read_chunk", raising(BatchFormatError("no such column")))
        take_one(pipeline)
    assert ("advance", str(second.pk)) in pipeline.queue
    if end == "done":
        pipeline.work()
        assert state_of(second) == "done"
    assert state_of(first) == end


@pytest.mark.database
@pytest.mark.django_db(databases=["default", "vault"], transaction=True)
def test_of_two_long_batches_that_ask_at_the_same_time_one_waits(long, monkeypatch):
    """A task that has counted waits for the other before it claims: both would find no one at work."""
    pipeline, batches = long
    for batch in batches:
        reading.begin(batch, open_study(batch.study))
    count_long = fairness._long_at_work
    pipeline.queue.clear()
    both = Barrier(2, timeout=1)

    def slowly(batch: Batch) -> int:
        found = count_long(batch)
        with suppress(BrokenBarrierError):
            both.wait()
        return found

    def ask(batch: Batch) -> None:
        for _ in range(100):  # as a task tries again what a database in memory refuses, instead of waiting
            with suppress(OperationalError):
                fairness.ask_for_chunks(batch)
                break
            time.sleep(0.05)
        connections.close_all()

    monkeypatch.setattr(fairness, "_long_at_work", slowly)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(ask, batches))
    assert len(pipeline.queue) == 1


@pytest.mark.django_db(databases=["default", "vault"], transaction=True)
def test_what_was_claimed_by_a_database_that_goes_away_before_it_says_so_is_asked_for(pipeline, small_file):
    batch = pipeline.ask_for(small_file)

    def without_answer(execute, sql, *rest):
        done = execute(sql, *rest)
        if sql.startswith('UPDATE "mobility_chunk"'):
            raise OperationalError
        return done

    with connections["vault"].execute_wrapper(without_answer), pytest.raises(OperationalError):
        pipeline.work()
    assert list(pipeline.queue) == [("read_chunk", str(batch.pk), 0)]
    pipeline.work()
    assert state_of(batch) == Batch.State.DONE


def test_shards_are_shared_too(pipeline, extract, settings):
    settings.MOBILITY_WORKER_PROCESSES = 2
    batch = pipeline.receive(extract[0])
    Batch.objects.filter(pk=batch.pk).update(state=Batch.State.MERGING, shards=list(range(100)))
    assert fairness.ask_for_shards(batch)
    assert [ids[1] for _, *ids in pipeline.queue] == [0, 1, 2, 3]
    ShardRun.objects.filter(batch=batch, shard__in=(0, 1)).update(alive_until=timezone.now())
    other = Batch.objects.create(study=pipeline.study, state=Batch.State.READING, alive_until=next_sign())
    assert fairness.share() == 1
    fairness.ask_for_shards(batch)
    assert len(pipeline.queue) == 4
    other.delete()
    fairness.ask_for_shards(batch)
    assert [ids[1] for _, *ids in pipeline.queue] == [0, 1, 2, 3, 0, 1]


def test_processes_are_those_of_workers_that_live(db, settings, monkeypatch):
    settings.MOBILITY_WORKER_PROCESSES = 5
    assert fairness.processes() == 5
    now, silent = timezone.now(), timezone.now() - timedelta(seconds=SILENT_S + 1)
    for name, zone, n, seen in (("a", "all", 4, now), ("b", "all", 8, now), ("c", "all", 16, silent),
                                ("d", "operator", 32, now)):  # fmt: skip
        WorkerSign.objects.create(name=name, zone=zone, processes=n, started_at=now, seen_at=seen)
    assert fairness.processes() == 5  # as it was a moment ago
    later = time.monotonic() + fairness.KNOWN_S
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert fairness.processes() == 12


def test_a_main_database_that_is_away_is_not_asked_each_time(db, monkeypatch):
    asked = Mock(side_effect=OperationalError("no answer after five seconds"))
    with connections["default"].execute_wrapper(asked):
        for _ in range(3):
            assert fairness.processes() >= 1
        assert asked.call_count == 1
        later = time.monotonic() + fairness.AWAY_S
        monkeypatch.setattr(time, "monotonic", lambda: later)
        fairness.processes()
        assert asked.call_count == 2


@pytest.mark.parametrize("problem", [OperationalError, InterfaceError])
def test_a_batch_is_read_and_merged_while_the_main_database_is_away(pipeline, small_file, problem):
    batch = pipeline.ask_for(small_file)
    take_until(pipeline, batch, Batch.State.READING)
    with connections["default"].execute_wrapper(raising(problem("a host that nobody should read"))):
        while state_of(batch) in (Batch.State.READING, Batch.State.MERGING):
            try:
                take_one(pipeline)
            except problem:  # only its publication waits
                assert state_of(batch) == Batch.State.PUBLISHING
    assert pipeline.finished(batch).state == Batch.State.DONE
