"""A host that has not mounted what the others have: it destroys nothing, and its tasks are tried again."""

import errno
import gzip
import json
from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from mobility.errors import (
    KeyAwayError,
    MobilityError,
    NoRoomError,
    StagingUnavailableError,
    UploadBrokenError,
)
from mobility.keystore import Keystore, keystore
from mobility.models import Batch
from mobility.services import endings, reading, running, staging, sweeping, uploads
from mobility.services.closing import Leave, StudyNotClosedError, close_study
from mobility.services.liveness import show_waiting
from mobility.views.incoming import status_of
from tests.mobility.services.conftest import Pipeline
from tests.mobility.services.restoring.restored import SMALL, tenth_of_the_people
from tests.mobility.services.test_formats import parquet, rows_of, zstd

pytestmark = pytest.mark.django_db(databases=["default", "vault"])
State = Batch.State
AWAY = [("keystore", KeyAwayError), ("staging", StagingUnavailableError)]


@pytest.fixture
def pipeline(make_pipeline: Callable[..., Pipeline]) -> Pipeline:
    return make_pipeline(**SMALL)


@pytest.fixture
def few(extract: list[Path], tmp_path: Path) -> list[Path]:
    return tenth_of_the_people(extract, tmp_path)


def brought_to(pipeline: Pipeline, batch: Batch, state: str) -> list[tuple[str, ...]]:
    """Run a batch until it is in a state; what was asked for then."""
    pipeline.queue.append(("advance", str(batch.pk)))
    while batch.state != state:
        task, *ids = pipeline.queue.popleft()
        getattr(running, task)(*ids)
        batch.refresh_from_db()
    return list(pipeline.queue)


def files_of_staging(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in (root / "staging").rglob("*") if path.is_file()}


@pytest.mark.parametrize("state", [State.QUEUED, State.READING, State.MERGING])
@pytest.mark.parametrize(("name", "error"), AWAY)
@pytest.mark.parametrize("is_empty", [False, True], ids=["no folder", "an empty mount point"])
def test_what_was_accepted_waits_and_goes_on(
    pipeline: Pipeline, few: list[Path], data_dir: Path,
    state: str, name: str, error: type[MobilityError], is_empty: bool,
) -> None:  # fmt: skip
    pipeline.upload(few[0])
    batch = pipeline.receive(few[1])
    asked = brought_to(pipeline, batch, state)
    before, key = files_of_staging(data_dir), keystore().read(batch.key_id)
    pipeline.queue.clear()

    (data_dir / name).rename(data_dir / "elsewhere")
    if is_empty:
        (data_dir / name).mkdir(mode=0o700)
    for task, *ids in asked * 4:  # more often than work that fails is tried
        with pytest.raises(error):
            getattr(running, task)(*ids)
    batch.refresh_from_db()
    assert (batch.state, batch.failure) == (state, "")
    if (data_dir / name).exists():
        (data_dir / name).rmdir()
    (data_dir / "elsewhere").rename(data_dir / name)
    assert files_of_staging(data_dir) == before
    assert keystore().read(batch.key_id) == key

    pipeline.queue.extend(asked)
    pipeline.work()
    batch.refresh_from_db()
    assert (batch.state, batch.rows_read) == (State.DONE, len(few[1].read_text().splitlines()) - 1)


@pytest.fixture(params=["csv.gz", "csv.zst", "parquet", "csv"])
def one_file(request: pytest.FixtureRequest, few: list[Path], tmp_path: Path) -> Path:
    """A file in each form that has a reader of its own."""
    header, rows = rows_of(few[0])
    plain = few[0].read_bytes()
    data = {"csv.gz": gzip.compress(plain), "csv.zst": zstd(plain), "csv": plain,
            "parquet": parquet(header, rows, row_group_size=100)}[request.param]  # fmt: skip
    file = tmp_path / f"day.{request.param}"
    file.write_bytes(data)
    return file


class TestWhileAtWork:
    """What was there when the task began goes away before it ends."""

    @pytest.fixture(autouse=True)
    def _short(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(staging, "FRAME_BYTES", 1000)

    def test_staging_that_goes_away_is_no_damaged_file(
        self, pipeline: Pipeline, one_file: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        batch = pipeline.receive(one_file)
        asked = brought_to(pipeline, batch, State.READING)
        (how,) = Batch.objects.filter(pk=batch.pk).values_list("reads_whole", flat=True)
        read, there, elsewhere = staging.UploadReader._fetch, data_dir / "staging", data_dir / "elsewhere"

        def unmounted_after_some(reader: staging.UploadReader, index: int, into: memoryview) -> int:
            if index >= 1 and there.exists():
                there.rename(elsewhere)
            return read(reader, index, into)

        monkeypatch.setattr(staging.UploadReader, "_fetch", unmounted_after_some)
        with pytest.raises(StagingUnavailableError):
            running.read_chunk(*asked[0][1:])
        monkeypatch.setattr(staging.UploadReader, "_fetch", read)
        assert not (there / str(batch.pk)).exists()
        elsewhere.rename(there)
        batch.refresh_from_db()
        assert (batch.state, batch.failure, batch.reads_whole) == (State.READING, "", how)
        assert "is MOBILITY_STAGING_DIR mounted?" in batch.waits_for
        pipeline.work()
        batch.refresh_from_db()
        assert (batch.state, batch.waits_since, batch.waits_for) == (State.DONE, None, "")

    @pytest.mark.parametrize(
        ("name", "error"), [("keystore", KeyAwayError), ("staging", StagingUnavailableError)]
    )
    def test_before_what_was_read_is_written(
        self, pipeline: Pipeline, few: list[Path], data_dir: Path, monkeypatch: pytest.MonkeyPatch,
        name: str, error: type[MobilityError],
    ) -> None:  # fmt: skip
        batch = pipeline.receive(few[0])
        asked, write = brought_to(pipeline, batch, State.READING), staging.write_chunk

        def unmounted_before(*given: Any) -> Any:
            (data_dir / name).rename(data_dir / "elsewhere")
            return write(*given)

        monkeypatch.setattr(staging, "write_chunk", unmounted_before)
        with pytest.raises(error):
            running.read_chunk(*asked[0][1:])
        monkeypatch.setattr(staging, "write_chunk", write)
        assert not (data_dir / name).exists()  # nothing is written beside it
        (data_dir / "elsewhere").rename(data_dir / name)
        pipeline.work()
        batch.refresh_from_db()
        assert batch.state == State.DONE

    @pytest.mark.parametrize("name", ["keystore", "staging"])
    def test_while_a_file_arrives_its_sender_keeps_it(
        self, pipeline: Pipeline, few: list[Path], data_dir: Path, monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        store = staging.write_frame

        def unmounted_in_between(batch: Batch, index: int, plain: memoryview) -> None:
            if index == 5:
                (data_dir / name).rename(data_dir / "elsewhere")
            store(batch, index, plain)

        monkeypatch.setattr(staging, "write_frame", unmounted_in_between)
        with pytest.raises(UploadBrokenError) as refused:
            pipeline.receive(few[0])
        assert status_of(refused.value) == 503


def test_remains_that_cannot_be_destroyed_now_stop_nobody_from_giving_up(
    pipeline: Pipeline, few: list[Path], data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = pipeline.receive(few[0])
    asked = brought_to(pipeline, batch, State.READING)
    destroy = Keystore.destroy

    def read_only(*_: Any, **__: Any) -> None:
        raise OSError(errno.EROFS, "a path that nobody should read")

    monkeypatch.setattr(Keystore, "destroy", read_only)
    monkeypatch.setattr(reading, "read_chunk", refused_by_a_rule)
    with pytest.raises(StagingUnavailableError, match="Read-only file system"):
        running.read_chunk(*asked[0][1:])
    batch.refresh_from_db()
    assert (batch.state, batch.failure) == (State.READING, "no such column")
    endings.give_up(batch, by="olga")
    assert (batch.state, batch.failure) == (State.FAILED, "no such column")
    assert keystore().exists(batch.key_id)
    monkeypatch.setattr(Keystore, "destroy", destroy)
    sweeping.sweep()
    assert not keystore().exists(batch.key_id)
    assert files_of_staging(data_dir) == set()


def refused_by_a_rule(*_: Any) -> None:
    raise MobilityError("no such column")


def test_an_upload_whose_end_is_noted_is_ended_by_the_sweep(pipeline: Pipeline) -> None:
    batch = uploads.begin(pipeline.study, filename="a.csv", by="olga", bytes_total=10)
    past = timezone.now() - timedelta(days=1)
    Batch.objects.filter(pk=batch.pk).update(failure="noted before its process died", alive_until=past)
    sweeping.sweep()
    batch.refresh_from_db()
    assert (batch.state, batch.failure) == (State.FAILED, "noted before its process died")


def test_who_waits_for_a_storage_closes_no_door_to_others(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staging, "free_bytes", lambda: 10**10)
    state = {"kind": Batch.Kind.EXTRACT, "filename": "b.parquet", "bytes_total": 10**10}
    batch = Batch.objects.create(study=pipeline.study, state=State.READING, **state)
    with pytest.raises(NoRoomError):
        uploads.begin(pipeline.study, filename="a.csv", by="olga", bytes_total=1000)
    show_waiting(batch, waits_for="staging")
    uploads.begin(pipeline.study, filename="a.csv", by="olga", bytes_total=1000)


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_an_object_that_is_lost_alone_still_fails_its_batch(
    pipeline: Pipeline, few: list[Path], data_dir: Path, monkeypatch: pytest.MonkeyPatch, lost: int
) -> None:
    monkeypatch.setattr(staging, "FRAME_BYTES", few[0].stat().st_size // 3 + 1)
    batch = pipeline.receive(few[0])
    (data_dir / "staging" / str(batch.pk) / f"upload-{lost:06d}").unlink()
    pipeline.finished(batch)
    assert batch.state == State.FAILED
    assert f"frame {lost} of the staged upload is gone: send the file again" in batch.failure


@pytest.mark.parametrize("name", ["keystore", "staging"])
def test_a_batch_is_given_up_where_it_is_lost_for_good_and_the_same_file_completes_it(
    pipeline: Pipeline, make_pipeline: Callable[..., Pipeline], few: list[Path], data_dir: Path, name: str
) -> None:
    whole = make_pipeline(slug="whole", **SMALL)
    whole.upload(few[0])
    batch = pipeline.receive(few[0])
    brought_to(pipeline, batch, State.MERGING)
    running.apply_shard(*pipeline.queue[0][1:])  # a part of it counts
    pipeline.queue.clear()
    (data_dir / name).rename(data_dir / "lost")
    with pytest.raises(CommandError, match="cannot be cancelled any more"):
        call_command("cancel_batch", str(batch.pk))
    out = StringIO()
    call_command("cancel_batch", str(batch.pk), "--give-up", stdout=out)
    assert json.loads(out.getvalue()) == {"batch": str(batch.pk), "state": "failed"}
    batch.refresh_from_db()
    assert batch.failure == (
        "stopped while merging: given up by command line. Part of it may be merged: upload the same file "
        "again to complete it, nothing counts twice"
    )
    with pytest.raises(CommandError, match="it has ended"):
        call_command("cancel_batch", str(batch.pk), "--give-up")

    if name == "keystore":  # from its escrow
        (data_dir / "lost").rename(data_dir / name)
    (again,) = pipeline.upload(few[0])
    assert (again.state, again.duplicate_of) == (State.DONE, None)
    assert pipeline.tallies() == whole.tallies()


@pytest.mark.django_db(databases=["default", "vault"], transaction=True)
def test_a_study_whose_key_is_lost_can_be_closed_when_its_batch_is_given_up(
    pipeline: Pipeline, few: list[Path], data_dir: Path
) -> None:
    batch = pipeline.receive(few[0])
    brought_to(pipeline, batch, State.MERGING)
    (data_dir / "keystore").rename(data_dir / "lost")
    leave = Leave(lost_key=True, drop_unpublished=True, cancel_batches=True)
    with pytest.raises(StudyNotClosedError, match="cancel_batch BATCH --give-up"):
        close_study(pipeline.study, by="olga", leave=leave)
    endings.give_up(batch, by="olga")
    certificate: Any = close_study(pipeline.study, by="olga", leave=leave)
    assert certificate["key_was_lost"]
