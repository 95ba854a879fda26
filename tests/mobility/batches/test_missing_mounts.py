"""A host that lacks what the others have: a mount, room on its disk, memory.

It destroys nothing, and its tasks are tried again; but a task that needs too much memory ends its batch.
"""

import errno
import gzip
import resource

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from mobility.base import errors, memory
from mobility.base.errors import KeyAwayError, StagingUnavailableError
from mobility.base.runtime import private_folder
from mobility.batches import finalisation, reading, running, staging
from mobility.batches.states import show_waiting
from mobility.extracts.readers import parquet as parquet_reader
from mobility.plans.closing import Leave, StudyNotClosedError, close_study
from mobility.uploads import actions as uploads
from mobility.uploads.incoming import status_of
from mobility.vault.keystore import keystore
from mobility.vault.models.batch import Batch, Chunk
from tests.mobility.batches.test_formats import parquet, rows_of, zstd
from tests.mobility.commands import printed
from tests.mobility.pipeline import SMALL, fresh

pytestmark = pytest.mark.django_db(databases=["default", "vault"])
State = Batch.State
AWAY = [("keystore", KeyAwayError), ("staging", StagingUnavailableError)]


@pytest.fixture
def pipeline(make_pipeline):
    return make_pipeline(**SMALL)


def files_of_staging(root):
    return {str(path.relative_to(root)) for path in (root / "staging").rglob("*") if path.is_file()}


# Each state with either mount missing, or an empty mount point.
GONE = [
    (State.QUEUED, *AWAY[0], False), (State.QUEUED, *AWAY[1], True), (State.READING, *AWAY[0], True),
    (State.READING, *AWAY[1], False), (State.MERGING, *AWAY[0], False), (State.MERGING, *AWAY[1], True),
]  # fmt: skip


@pytest.mark.parametrize(("state", "name", "error", "is_empty"), GONE)
def test_what_was_accepted_waits_and_goes_on(pipeline, few, data_dir, state, name, error, is_empty):
    pipeline.upload(few[0])
    batch = pipeline.receive(few[1])
    asked = pipeline.bring_to(batch, state)
    before, key = files_of_staging(data_dir), keystore().read(batch.key_id)
    pipeline.queue.clear()
    (data_dir / name).rename(data_dir / "elsewhere")
    if is_empty:
        (data_dir / name).mkdir(mode=0o700)
    for task, *ids in asked * (running.MAX_ATTEMPTS + 1):  # more often than work that fails is tried
        with pytest.raises(error):
            getattr(running, task)(*ids)
    assert (fresh(batch).state, batch.failure) == (state, "")
    if (data_dir / name).exists():
        (data_dir / name).rmdir()
    (data_dir / "elsewhere").rename(data_dir / name)
    assert (files_of_staging(data_dir), keystore().read(batch.key_id)) == (before, key)
    pipeline.queue.extend(asked)
    pipeline.work()
    assert (fresh(batch).state, batch.rows_read) == (State.DONE, few[1].read_text().count("\n") - 1)


@pytest.fixture(params=["csv.gz", "csv.zst", "parquet", "csv"])
def one_file(request, few, tmp_path):
    plain = few[0].read_bytes()
    data = {"csv.gz": gzip.compress(plain), "csv.zst": zstd(plain), "csv": plain,
            "parquet": parquet(*rows_of(few[0]), row_group_size=100)}[request.param]  # fmt: skip
    file = tmp_path / f"day.{request.param}"
    file.write_bytes(data)
    return file


class TestWhileAtWork:
    """A file present at the task's begin disappears before it ends."""

    @pytest.fixture(autouse=True)
    def _short(self, monkeypatch):
        monkeypatch.setattr(staging, "FRAME_BYTES", 1000)

    def test_staging_that_goes_away_is_no_damaged_file(self, pipeline, one_file, data_dir, monkeypatch):
        batch = pipeline.receive(one_file)
        asked = pipeline.bring_to(batch, State.READING)
        how = batch.reads_whole
        read, there, elsewhere = staging.UploadReader._fetch, data_dir / "staging", data_dir / "elsewhere"

        def unmounted_after_some(reader, index, into):
            if index >= 1 and there.exists():
                there.rename(elsewhere)
            return read(reader, index, into)

        monkeypatch.setattr(staging.UploadReader, "_fetch", unmounted_after_some)
        with pytest.raises(StagingUnavailableError):
            running.read_chunk(*asked[0][1:])
        monkeypatch.setattr(staging.UploadReader, "_fetch", read)
        assert not (there / str(batch.pk)).exists()
        elsewhere.rename(there)
        assert (fresh(batch).state, batch.failure, batch.reads_whole) == (State.READING, "", how)
        assert "check that MOBILITY_STAGING_DIR is mounted" in batch.waits_for
        pipeline.work()
        assert (fresh(batch).state, batch.waits_since, batch.waits_for) == (State.DONE, None, "")

    @pytest.mark.parametrize(("name", "error"), AWAY)
    def test_before_what_was_read_is_written(self, pipeline, few, data_dir, monkeypatch, name, error):
        batch = pipeline.receive(few[0])
        asked, write = pipeline.bring_to(batch, State.READING), staging.write_chunk
        away = lambda *given: (data_dir / name).rename(data_dir / "elsewhere") and write(*given)  # noqa: E731
        with monkeypatch.context() as patch, pytest.raises(error):
            patch.setattr(staging, "write_chunk", away)
            running.read_chunk(*asked[0][1:])
        assert not (data_dir / name).exists()  # nothing is written next to it
        (data_dir / "elsewhere").rename(data_dir / name)
        pipeline.work()
        assert fresh(batch).state == State.DONE

    @pytest.mark.parametrize("name", ["keystore", "staging"])
    def test_while_a_file_arrives_its_sender_keeps_it(self, pipeline, few, data_dir, monkeypatch, name):
        store = staging.write_frame

        def unmounted_in_between(batch, index, plain):
            if index == 5:
                (data_dir / name).rename(data_dir / "elsewhere")
            store(batch, index, plain)

        monkeypatch.setattr(staging, "write_frame", unmounted_in_between)
        with pytest.raises(errors.UploadBrokenError) as refused:
            pipeline.receive(few[0])
        assert status_of(refused.value) == 503


def test_a_folder_that_goes_while_it_is_looked_at_is_missing_and_one_that_is_a_file_is_not(
    tmp_path, monkeypatch
):
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        private_folder(tmp_path / "file")

    def is_there(path, mode):
        raise FileExistsError(path, mode)

    monkeypatch.setattr("os.mkdir", is_there)
    with pytest.raises(FileNotFoundError):
        private_folder(tmp_path / "gone")


def test_who_waits_for_a_storage_closes_no_door_to_others(pipeline, monkeypatch):
    monkeypatch.setattr(staging, "free_bytes", lambda: 10**10)
    state = {"kind": Batch.Kind.EXTRACT, "filename": "b.parquet", "bytes_total": 10**10}
    batch = Batch.objects.create(study=pipeline.study, state=State.READING, **state)
    with pytest.raises(errors.NoRoomError):
        uploads.begin(pipeline.study, filename="a.csv", by="olga", bytes_total=1000)
    show_waiting(batch, waits_for="staging")
    uploads.begin(pipeline.study, filename="a.csv", by="olga", bytes_total=1000)


def test_an_object_that_is_lost_alone_still_fails_its_batch(pipeline, few, data_dir, monkeypatch):
    monkeypatch.setattr(staging, "FRAME_BYTES", few[0].stat().st_size // 3 + 1)
    batch = pipeline.receive(few[0])
    (data_dir / "staging" / str(batch.pk) / "upload-000001").unlink()
    assert pipeline.finished(batch).state == State.FAILED
    assert "frame 1 of the staged upload is missing: send the file again" in batch.failure


@pytest.mark.parametrize("name", ["keystore", "staging"])
def test_a_lost_batch_is_given_up_and_its_file_completes_it(pipeline, make_pipeline, few, data_dir, name):
    whole = make_pipeline(slug="whole", n_shards=1, **SMALL)
    whole.upload(few[0])
    batch = pipeline.receive(few[0])
    pipeline.bring_to(batch, State.MERGING)
    running.apply_shard(*pipeline.queue[0][1:])  # a part of it counts
    pipeline.queue.clear()
    (data_dir / name).rename(data_dir / "lost")
    with pytest.raises(CommandError, match="can no longer be cancelled"):
        call_command("cancel_batch", str(batch.pk))
    assert printed("cancel_batch", str(batch.pk), "--give-up") == {"batch": str(batch.pk), "state": "failed"}
    assert fresh(batch).failure == (
        "stopped while merging: given up by command line. Some rows may be merged. Upload the same "
        "file again to complete the batch; no row counts twice"
    )
    with pytest.raises(CommandError, match="it has already ended"):
        call_command("cancel_batch", str(batch.pk), "--give-up")
    if name == "keystore":  # from its escrow
        (data_dir / "lost").rename(data_dir / name)
    (again,) = pipeline.upload(few[0])
    assert (again.state, again.duplicate_of, pipeline.tallies()) == (State.DONE, None, whole.tallies())


@pytest.mark.django_db(databases=["default", "vault"], transaction=True)
def test_a_study_whose_key_is_lost_can_be_closed_when_its_batch_is_given_up(pipeline, few, data_dir):
    batch = pipeline.receive(few[0])
    pipeline.bring_to(batch, State.MERGING)
    (data_dir / "keystore").rename(data_dir / "lost")
    leave = Leave(lost_key=True, drop_unpublished=True, cancel_batches=True)
    with pytest.raises(StudyNotClosedError, match="cancel_batch BATCH --give-up"):
        close_study(pipeline.study, by="olga", leave=leave)
    finalisation.give_up(batch, by="olga")
    assert close_study(pipeline.study, by="olga", leave=leave)["key_was_lost"]


def test_full_disk_is_waited_for(pipeline, few, data_dir, settings, monkeypatch, caplog):
    """However often it is tried; and what was staged by a try that broke off makes room again."""
    batch = pipeline.receive(few[0])
    folder = data_dir / "staging" / str(batch.pk)
    received = sorted(folder.iterdir())
    write, parts_of, staged = staging.write_chunk, reading.parts_of, []

    def filling_up(batch, name, segments):
        if name.endswith("-1"):
            assert len(list(folder.iterdir())) == len(received) + 1
            problem = (errno.ENOSPC, errno.EDQUOT)[len(staged) % 2]
            raise OSError(problem, "a path that nobody should read")
        staged.append(name)
        return write(batch, name, segments)

    monkeypatch.setattr(reading, "parts_of", lambda given: [*parts_of(given), {}])
    monkeypatch.setattr(staging, "write_chunk", filling_up)
    for _ in range(running.MAX_ATTEMPTS + 1):
        with pytest.raises(errors.DiskFullError):
            pipeline.finished(batch)
        assert sorted(folder.iterdir()) == received
        pipeline.queue.clear()
        Chunk.objects.filter(batch=batch).update(alive_until=None)  # the next try
    assert (fresh(batch).state, batch.failure) == (State.READING, "")
    assert "nobody should read" not in caplog.text
    assert len(staged) == running.MAX_ATTEMPTS + 1
    monkeypatch.setattr(staging, "write_chunk", write)
    assert pipeline.finished(batch).state == State.DONE


class TestMemory:
    """A task that needs more memory than it may have ends its batch, with that reason."""

    @pytest.fixture(autouse=True)
    def _limit(self, settings):
        settings.MOBILITY_TASK_MEMORY_MB = 400
        memory.limit(settings.MOBILITY_TASK_MEMORY_MB)
        yield
        memory.lift_limit()
        memory._limit.clear()

    @staticmethod
    def too_much(*_, **__):
        np.empty(1 << 30, np.uint8)  # every machine without a limit gives it
        return iter(())

    def test_a_chunk_that_needs_too_much_fails_its_batch(self, pipeline, few, monkeypatch):
        monkeypatch.setattr(reading, "parts_of", self.too_much)
        (batch,) = pipeline.upload(few[0])
        assert batch.state == State.FAILED
        reason = "the batch needs more memory than 400 MB (MOBILITY_TASK_MEMORY_MB)"
        assert f"stopped while reading: {reason}" in batch.failure
        soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
        assert soft == hard  # to say so takes memory, too

    def test_what_is_taken_for_a_damaged_file_is_not_too_little_memory(self, monkeypatch):
        monkeypatch.setattr(parquet_reader, "_blocks", self.too_much)
        with pytest.raises(MemoryError):
            list(parquet_reader.read_parquet(None, layout=None))  # type: ignore[arg-type]
