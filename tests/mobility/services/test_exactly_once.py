"""Whatever statement a worker dies at, the batch resumes and every tally ends as if nothing had happened."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from celery.exceptions import SoftTimeLimitExceeded
from django.core import serializers
from django.db import OperationalError, connections
from django.utils import timezone

from ldp.errors import LdpError
from ldp.tallies import Delta
from mobility.errors import BatchFormatError, CancelError
from mobility.keystore import keystore
from mobility.models import Batch, Chunk, DayState, OutboxDelta, PresenceShard, VaultDay, VaultPublication
from mobility.readers.chunks import ChunkPlan
from mobility.services import coding, merging, moves, publishing, reading, running, staging
from mobility.services.endings import cancel
from mobility.services.liveness import activate
from mobility.services.sweeping import sweep
from mobility.services.vault import open_study
from reports.models import Publication, Study, Tally, VisitorTally
from reports.services.publications import apply_publication
from tests.mobility.services.conftest import Pipeline
from tests.mobility.services.killing import KillAt, Killed

# Real transactions: a death inside one must roll back nothing else.
pytestmark = [
    pytest.mark.database,
    pytest.mark.django_db(databases=["default", "vault"], transaction=True),
]


def work_until_killed(pipeline: Pipeline, batch: Batch, *, at: int) -> bool:
    """Whether a worker died at the `at`-th statement, before the batch's end."""
    kill = KillAt(at)
    pipeline.queue.append(("advance", str(batch.pk)))
    with connections["default"].execute_wrapper(kill), connections["vault"].execute_wrapper(kill):
        try:
            pipeline.work()
        except Killed:
            return True
    return False


def resume(pipeline: Pipeline, batch: Batch) -> None:
    """The queue is lost with the worker; a sweep finds the batch when it has shown no life for a while."""
    pipeline.queue.clear()
    looks_abandoned(batch)
    sweep()
    pipeline.work()
    batch.refresh_from_db()


def looks_abandoned(batch: Batch) -> None:
    Batch.objects.filter(pk=batch.pk).update(alive_until=timezone.now() - timedelta(seconds=1))


@pytest.fixture
def few(extract: list[Path], tmp_path: Path) -> list[Path]:
    """Two days of a tenth of the people: small, so that every statement can be tried."""
    files = []
    for path in extract[:2]:
        header, *rows = path.read_text().splitlines(keepends=True)
        file = tmp_path / path.name
        file.write_text(header + "".join(row for row in rows if row.split(",")[0].endswith("3")))
        files.append(file)
    return files


@pytest.mark.long
def test_death_at_any_statement_changes_nothing(
    make_pipeline: Callable[..., Pipeline], few: list[Path]
) -> None:
    small = {"expected_subscribers": 100, "min_publication": 10}
    undisturbed = make_pipeline(slug="undisturbed", **small)
    undisturbed.upload(*few)
    expected = undisturbed.tallies()
    assert undisturbed.visitors(1, 2) > 0
    deaths = 0
    # The statements are the same on both databases; a server takes its time for each of them.
    step = 1 if connections["vault"].vendor == "sqlite" else 5
    for n in range(1, 1000, step):
        pipeline = make_pipeline(slug=f"killed-at-{n}", **small)
        pipeline.upload(few[0])
        batch = pipeline.receive(few[1])
        died = work_until_killed(pipeline, batch, at=n)
        resume(pipeline, batch)
        assert batch.state == Batch.State.DONE, f"killed at statement {n}"
        assert pipeline.tallies() == expected, f"killed at statement {n}"
        deaths += died
        if not died:
            break
    assert not died, "the run has more statements than the test tries"
    assert deaths > 50 // step


def test_tasks_in_any_order_and_more_than_once_count_once(
    make_pipeline: Callable[..., Pipeline], extract: list[Path], small_chunks: None
) -> None:
    expected = make_pipeline(slug="in-order")
    expected.upload(*extract[:2])
    assert Chunk.objects.count() > 10
    order = Random(7)
    pipeline = make_pipeline(slug="any-order")
    for path in extract[:2]:
        pipeline.queue.append(("advance", str(pipeline.receive(path).pk)))
        while pipeline.queue:
            asked = [task for task in pipeline.queue for _ in range(order.choice((1, 1, 2, 3)))]
            order.shuffle(asked)
            pipeline.queue.clear()
            for task, *ids in asked:
                getattr(running, task)(*ids)
    assert set(Batch.objects.values_list("state", flat=True)) == {Batch.State.DONE}
    assert pipeline.tallies() == expected.tallies()


def test_publication_sent_twice_counts_once(pipeline: Pipeline, extract: list[Path]) -> None:
    pipeline.upload(extract[0])
    before = pipeline.tallies()
    publication = VaultPublication.objects.get()
    is_new = apply_publication(
        study_slug=pipeline.study.slug,
        publication_id=publication.pk,
        plan_hash=pipeline.study.plan_hash,
        delta=Delta.unpack(bytes(publication.delta)),
        voided_days=0,
    )
    assert not is_new
    assert pipeline.tallies() == before


@pytest.mark.parametrize("what", ["a file that changes nothing", "a worker that starts"])
def test_main_database_restored_from_an_older_dump_catches_up(
    pipeline: Pipeline, extract: list[Path], what: str
) -> None:
    pipeline.upload(extract[0])
    dump = serializers.serialize(
        "json", [*Publication.objects.all(), *VisitorTally.objects.all(), *Tally.objects.all()]
    )
    pipeline.upload(extract[1])
    expected = pipeline.tallies()
    assert pipeline.visitors(2, 2) > 0
    Publication.objects.all().delete()
    for row in serializers.deserialize("json", dump):
        row.save()
    assert pipeline.visitors(2, 2) == 0
    pipeline.upload(extract[1]) if "file" in what else publishing.catch_up()
    assert pipeline.tallies() == expected


def test_others_catch_up_where_the_main_database_lost_a_study(
    make_pipeline: Callable[..., Pipeline], extract: list[Path]
) -> None:
    lost, kept = make_pipeline(slug="a-lost-one"), make_pipeline(slug="kept")
    for each in (lost, kept):
        each.upload(extract[0])
    expected = kept.tallies()
    Study.objects.filter(slug=lost.study.slug).update(slug="another")
    Publication.objects.filter(study__slug=kept.study.slug).delete()
    Publication.objects.filter(study__slug="another").delete()
    for tally in (*Tally.objects.all(), *VisitorTally.objects.all()):
        tally.counts = bytes(len(tally.counts))
        if isinstance(tally, Tally):
            tally.n_reports = bytes(len(tally.n_reports))
        tally.save()
    assert kept.tallies() != expected
    publishing.catch_up()
    assert kept.tallies() == expected


def test_worker_that_slept_while_its_batch_ended_writes_nothing(
    pipeline: Pipeline, extract: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shard is worked on twice: whoever comes second finds it taken."""
    batch = pipeline.receive(extract[0])
    real, slept = merging.show_life, []

    def slow(of: Batch, **kwargs: Any) -> None:
        if not slept:
            slept.append(True)
            resume(pipeline, batch)  # another worker does everything meanwhile
        real(of, **kwargs)

    monkeypatch.setattr(merging, "show_life", slow)
    pipeline.finished(batch)
    assert batch.state == Batch.State.DONE
    assert pipeline.visitors(1, 1) == batch.subscriber_days > 0
    assert not OutboxDelta.objects.exists()


def test_one_batch_of_a_study_at_a_time(pipeline: Pipeline, extract: list[Path]) -> None:
    batches = [pipeline.receive(path) for path in extract[:2]]
    assert activate(batches[0])
    pipeline.finished(batches[1])
    assert batches[1].state == Batch.State.QUEUED
    pipeline.finished(batches[0])  # the end of the first asks for the second
    batches[1].refresh_from_db()
    assert batches[1].state == Batch.State.DONE
    assert not OutboxDelta.objects.exists()


def test_passing_errors_are_tried_again(
    pipeline: Pipeline, extract: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = pipeline.receive(extract[0])

    def unreachable(*_: Any, **__: Any) -> None:
        raise OperationalError

    with monkeypatch.context() as patch:
        patch.setattr(publishing, "apply_publication", unreachable)
        with pytest.raises(OperationalError):
            pipeline.finished(batch)
    batch.refresh_from_db()
    assert batch.state == Batch.State.PUBLISHING
    pipeline.finished(batch)
    assert batch.state == Batch.State.DONE
    assert pipeline.visitors(1, 1) > 0


def test_worker_that_died_between_two_batches_holds_up_nobody(
    pipeline: Pipeline, extract: list[Path]
) -> None:
    first, second = (pipeline.receive(path) for path in extract[:2])
    assert activate(first)
    Batch.objects.filter(pk=first.pk).update(state=Batch.State.FAILED, failure="its worker died right after")
    sweep()
    pipeline.work()
    second.refresh_from_db()
    assert second.state == Batch.State.DONE


def test_what_a_dead_worker_left_of_an_ended_batch_is_removed(
    pipeline: Pipeline, extract: list[Path], data_dir: Path
) -> None:
    batch = pipeline.receive(extract[0])
    Batch.objects.filter(pk=batch.pk).update(state=Batch.State.FAILED, failure="its worker died right after")
    sweep()
    assert list((data_dir / "staging").iterdir()) == []
    assert not keystore().exists(batch.key_id)


def test_upload_whose_server_died_fails(pipeline: Pipeline, extract: list[Path], data_dir: Path) -> None:
    batch = pipeline.receive(extract[0])
    Batch.objects.filter(pk=batch.pk).update(state=Batch.State.RECEIVING)
    looks_abandoned(batch)
    sweep()
    batch.refresh_from_db()
    assert batch.state == Batch.State.FAILED
    assert "send the file again" in batch.failure
    assert list((data_dir / "staging").iterdir()) == []


@pytest.mark.parametrize("task", ["read_chunk", "apply_shard"])
def test_work_that_kills_every_worker_ends(
    pipeline: Pipeline, extract: list[Path], monkeypatch: pytest.MonkeyPatch, task: str
) -> None:
    batch = pipeline.receive(extract[0])
    module = {"read_chunk": reading, "apply_shard": merging}[task]

    def deadly(*_: Any, **__: Any) -> None:
        raise Killed

    monkeypatch.setattr(module, task, deadly)
    for _ in range(running.MAX_ATTEMPTS):
        with pytest.raises(Killed):
            resume(pipeline, batch)
    resume(pipeline, batch)
    assert batch.state == Batch.State.FAILED
    assert f"tried {running.MAX_ATTEMPTS} times, and each time its worker died" in batch.failure


@pytest.mark.parametrize("task", ["read_chunk", "apply_shard"])
def test_work_that_takes_too_long_each_time_ends_and_says_so(
    pipeline: Pipeline, extract: list[Path], monkeypatch: pytest.MonkeyPatch, task: str
) -> None:
    batch = pipeline.receive(extract[0])
    module = {"read_chunk": reading, "apply_shard": merging}[task]

    def endless(*_: Any, **__: Any) -> None:
        raise SoftTimeLimitExceeded

    monkeypatch.setattr(module, task, endless)
    for _ in range(running.MAX_ATTEMPTS - 1):
        with pytest.raises(SoftTimeLimitExceeded):
            resume(pipeline, batch)
    resume(pipeline, batch)
    assert batch.state == Batch.State.FAILED
    assert "longer than 3,240 s, nine tenths of MOBILITY_TASK_TIME_LIMIT_S" in batch.failure
    assert "died" not in batch.failure


def test_chunk_that_cannot_be_read_alone_is_read_with_all_others(
    make_pipeline: Callable[..., Pipeline],
    extract: list[Path],
    small_chunks: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = make_pipeline(slug="chunks")
    expected.upload(extract[0])
    pipeline = make_pipeline(slug="whole")
    real = coding.read_chunk

    def only_whole(stream: Any, plan: ChunkPlan, **kwargs: Any) -> Any:
        if plan.kind != "whole":
            raise BatchFormatError("line 3 of something: not to be seen by anybody")
        return real(stream, plan, **kwargs)

    monkeypatch.setattr(coding, "read_chunk", only_whole)
    (batch,) = pipeline.upload(extract[0])
    assert batch.reads_whole
    assert batch.state == Batch.State.DONE
    assert pipeline.tallies() == expected.tallies()


@pytest.mark.parametrize("state", Batch.CANCELLABLE)
def test_cancelled_batch_leaves_nothing(
    pipeline: Pipeline, extract: list[Path], data_dir: Path, state: str
) -> None:
    batch = pipeline.receive(extract[0])
    if state == Batch.State.READING:
        running.advance(str(batch.pk))
    Batch.objects.filter(pk=batch.pk).update(state=state)
    cancel(batch, by="Ada")
    pipeline.finished(batch)
    assert batch.state == Batch.State.CANCELLED
    assert batch.failure == "cancelled by Ada: nothing of it was published or kept"
    assert list((data_dir / "staging").iterdir()) == []
    assert not keystore().exists(batch.key_id)
    assert pipeline.visitors(1, 1) == 0
    pipeline.upload(extract[0])
    assert pipeline.visitors(1, 1) > 0


def test_task_at_work_while_its_batch_is_cancelled_leaves_nothing(
    pipeline: Pipeline, extract: list[Path], data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = pipeline.receive(extract[0])
    real = staging.write_chunk

    def cancelled_meanwhile(*args: Any, **kwargs: Any) -> Any:
        places = real(*args, **kwargs)
        if Batch.objects.get(pk=batch.pk).state == Batch.State.READING:
            cancel(batch, by="Ada")
            return real(*args, **kwargs)  # it had the key already
        return places

    monkeypatch.setattr(staging, "write_chunk", cancelled_meanwhile)
    pipeline.finished(batch)
    sweep()
    assert batch.state == Batch.State.CANCELLED
    assert list((data_dir / "staging").iterdir()) == []


@pytest.mark.parametrize("state", [Batch.State.MERGING, Batch.State.PUBLISHING, Batch.State.DONE])
def test_batch_that_changes_the_study_cannot_be_cancelled(
    pipeline: Pipeline, extract: list[Path], state: str
) -> None:
    batch = pipeline.receive(extract[0])
    Batch.objects.filter(pk=batch.pk).update(state=state)
    with pytest.raises(CancelError, match="cannot be cancelled any more"):
        cancel(batch, by="Ada")


def test_validation_counts_everything_and_keeps_nothing(
    make_pipeline: Callable[..., Pipeline], extract: list[Path], data_dir: Path
) -> None:
    real = make_pipeline(slug="real")
    (uploaded,) = real.upload(extract[0])
    pipeline = make_pipeline(slug="only-checked")
    (checked,) = pipeline.upload(extract[0], validate_only=True)
    told = ("rows_read", "rows_accepted", "rows_ignored", "rows_rejected", "subscriber_days", "checks")
    assert [getattr(checked, name) for name in told] == [getattr(uploaded, name) for name in told]
    assert pipeline.visitors(1, 7) == 0
    of_study = {"study": pipeline.study}
    assert not any(model.objects.filter(**of_study).exists() for model in (PresenceShard, DayState, VaultDay))
    assert not OutboxDelta.objects.exists()
    assert list((data_dir / "staging").iterdir()) == []
    pipeline.upload(extract[0])
    assert pipeline.tallies() == real.tallies()


def test_batch_that_failed_while_merging_is_published_by_close_days(
    pipeline: Pipeline, extract: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Day state holds its rows, presence does not yet: they may not be forgotten."""
    batch = pipeline.receive(extract[0], more_to_come=True)
    with monkeypatch.context() as patch:
        patch.setattr(moves, "make", lambda *_: 1 / 0)
        pipeline.finished(batch)
    batch.refresh_from_db()
    assert batch.state == Batch.State.FAILED
    assert pipeline.visitors(1, 1) == 0
    pipeline.close_days(through=1)
    assert pipeline.visitors(1, 1) > 0


def test_deltas_that_wait_are_sealed(make_pipeline: Callable[..., Pipeline], extract: list[Path]) -> None:
    pipeline = make_pipeline(min_publication=100_000)
    pipeline.upload(extract[0])
    waiting = OutboxDelta.objects.first()
    assert waiting is not None
    with pytest.raises(LdpError):
        Delta.unpack(bytes(waiting.delta))
    assert not open_study(pipeline.study).unseal_delta(waiting).is_zero
