"""Whatever statement a worker dies at, the batch resumes and every tally ends as if nothing had happened."""

import errno
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core import serializers
from django.db import OperationalError, connections
from django.utils import timezone

from ldp.errors import LdpError
from ldp.tallies import Delta
from mobility.errors import LeaseLostError
from mobility.models import Batch, OutboxDelta, VaultPublication
from mobility.services import publishing, running, staging
from mobility.services.leases import Lease, activate
from mobility.services.vault import open_study
from reports.models import Publication, Tally, VisitorTally
from reports.services.publications import apply_publication
from tests.mobility.services.conftest import Pipeline

# Real transactions: a death inside one must roll back nothing else.
pytestmark = [
    pytest.mark.database,
    pytest.mark.django_db(databases=["default", "vault"], transaction=True),
]


class Killed(BaseException):
    """The process is gone: no handler runs."""


class KillAt:
    """Dies at the n-th statement of either database."""

    def __init__(self, n: int) -> None:
        self.left = n

    def __call__(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        # Closing a savepoint is the database's own doing after a death.
        if not sql.startswith(("ROLLBACK", "RELEASE")):
            self.left -= 1
            if self.left == 0:
                raise Killed
        return execute(sql, params, many, context)


def run_killed_at(n: int, batch_id: str) -> bool:
    """Whether the run died before its end."""
    kill = KillAt(n)
    with connections["default"].execute_wrapper(kill), connections["vault"].execute_wrapper(kill):
        try:
            running.run(batch_id)
        except Killed:
            return True
    return False


def lease_runs_out(batch_id: str) -> None:
    Batch.objects.filter(pk=batch_id).update(lease_until=timezone.now() - timedelta(seconds=1))


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


def test_death_at_any_statement_changes_nothing(
    make_pipeline: Callable[..., Pipeline], few: list[Path]
) -> None:
    small = {"expected_subscribers": 100, "min_publication": 10}
    undisturbed = make_pipeline(slug="undisturbed", **small)
    undisturbed.upload(*few)
    expected = undisturbed.tallies()
    assert undisturbed.visitors(1, 2) > 0
    deaths = 0
    for n in range(1, 1000):
        pipeline = make_pipeline(slug=f"killed-at-{n}", **small)
        pipeline.upload(few[0])
        batch = pipeline.receive(few[1])
        died = run_killed_at(n, str(batch.pk))
        lease_runs_out(str(batch.pk))
        running.run(str(batch.pk))
        batch.refresh_from_db()
        assert batch.state == Batch.State.DONE, f"killed at statement {n}"
        assert pipeline.tallies() == expected, f"killed at statement {n}"
        deaths += died
        if not died:
            break
    assert not died, "the run has more statements than the test tries"
    assert deaths > 20


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


def test_main_database_restored_from_an_older_dump_catches_up(
    pipeline: Pipeline, extract: list[Path]
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
    pipeline.upload(extract[1])  # a file that changes nothing: publishing catches up all the same
    assert pipeline.tallies() == expected


def test_worker_that_lost_its_lease_writes_nothing(pipeline: Pipeline, extract: list[Path]) -> None:
    """Another worker has taken over while this one slept."""

    batch = pipeline.receive(extract[0])
    sleeper = Lease(batch)
    assert sleeper.acquire()
    lease_runs_out(str(batch.pk))
    running.run(str(batch.pk))
    with pytest.raises(LeaseLostError):
        sleeper.confirm()


def test_one_batch_of_a_study_at_a_time(pipeline: Pipeline, extract: list[Path]) -> None:

    batches = [pipeline.receive(path) for path in extract[:2]]
    assert activate(batches[0])
    running.run(str(batches[1].pk))
    batches[1].refresh_from_db()
    assert batches[1].state == Batch.State.QUEUED
    running.run(str(batches[0].pk))
    pipeline.finished(batches[1])  # the end of the first has asked for it
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
            running.run(str(batch.pk))
    batch.refresh_from_db()
    assert batch.state == Batch.State.PUBLISHING
    running.run(str(batch.pk))
    batch.refresh_from_db()
    assert batch.state == Batch.State.DONE
    assert pipeline.visitors(1, 1) > 0


def test_batch_that_ends_while_the_next_one_starts_takes_nothing_with_it(
    pipeline: Pipeline, extract: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The study moves on between a worker reading its batch and its turn to change the study."""
    first, second = (pipeline.receive(path) for path in extract[:2])
    real = running.activate

    def late(batch: Batch) -> bool:
        if batch.pk == second.pk and not Batch.objects.get(pk=first.pk).is_final:
            running.run(str(first.pk))
        return real(batch)

    monkeypatch.setattr(running, "activate", late)
    running.run(str(second.pk))
    second.refresh_from_db()
    assert second.state == Batch.State.DONE
    assert not OutboxDelta.objects.exists()
    assert pipeline.visitors(2, 2) == second.subscriber_days > 0


def test_upload_whose_server_died_fails_when_its_lease_has_run_out(
    pipeline: Pipeline, extract: list[Path], data_dir: Path
) -> None:
    batch = pipeline.receive(extract[0])
    Batch.objects.filter(pk=batch.pk).update(state=Batch.State.RECEIVING)
    running.run(str(batch.pk))
    batch.refresh_from_db()
    assert batch.state == Batch.State.FAILED
    assert "send the file again" in batch.failure
    assert list((data_dir / "staging").iterdir()) == []


def test_upload_that_ends_under_the_eyes_of_a_worker_takes_its_turn(
    pipeline: Pipeline, extract: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (pipeline.receive(path) for path in extract[:2])
    assert activate(first)
    Batch.objects.filter(pk=second.pk).update(state=Batch.State.RECEIVING)
    real = Lease.acquire

    def late(lease: Lease) -> bool:
        Batch.objects.filter(pk=second.pk).update(state=Batch.State.QUEUED)
        return real(lease)

    with monkeypatch.context() as patch:
        patch.setattr(Lease, "acquire", late)
        running.run(str(second.pk))
    second.refresh_from_db()
    assert second.state == Batch.State.QUEUED
    pipeline.finished(first)
    second.refresh_from_db()
    assert second.state == Batch.State.DONE


def test_batch_that_kills_every_worker_ends(pipeline: Pipeline, extract: list[Path]) -> None:
    batch = pipeline.receive(extract[0])
    Batch.objects.filter(pk=batch.pk).update(attempts=running.MAX_ATTEMPTS, state=Batch.State.READING)
    running.run(str(batch.pk))
    batch.refresh_from_db()
    assert batch.state == Batch.State.FAILED
    assert f"tried {running.MAX_ATTEMPTS} times" in batch.failure


def test_full_disk_is_named(pipeline: Pipeline, extract: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    batch = pipeline.receive(extract[0])

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "a path that nobody should read")

    monkeypatch.setattr(staging, "write_chunk", full)
    running.run(str(batch.pk))
    batch.refresh_from_db()
    assert "No space left on device" in batch.failure
    assert "MOBILITY_STAGING_DIR" in batch.failure
    assert "nobody should read" not in batch.failure


def test_batch_that_failed_while_merging_is_published_by_close_days(
    pipeline: Pipeline, extract: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Day state holds its rows, presence does not yet: they may not be forgotten."""
    batch = pipeline.receive(extract[0], more_to_come=True)
    with monkeypatch.context() as patch:
        patch.setattr(running, "_move_days", lambda *_: 1 / 0)
        running.run(str(batch.pk))
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
