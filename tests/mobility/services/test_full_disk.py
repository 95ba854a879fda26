"""A disk that is full, or broken, while a batch is at work."""

import errno
from pathlib import Path
from typing import Any

import pytest

from mobility.errors import DiskFullError, StagingUnavailableError
from mobility.models import Batch, Chunk
from mobility.services import reading, running, staging
from mobility.services.vault import open_study
from tests.mobility.services.conftest import Pipeline

pytestmark = pytest.mark.django_db(databases=["default", "vault"])


@pytest.mark.parametrize("problem", [errno.ENOSPC, errno.EDQUOT])
def test_full_disk_is_waited_for(
    pipeline: Pipeline, extract: list[Path], data_dir: Path, settings: Any,
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, problem: int,
) -> None:  # fmt: skip
    """However often it is tried; and what was staged by a try that broke off makes room again."""
    batch = pipeline.receive(extract[0])
    folder = data_dir / "staging" / str(batch.pk)
    received = sorted(folder.iterdir())
    write, parts_of = staging.write_chunk, reading.parts_of
    staged: list[str] = []

    def filling_up(batch: Batch, name: str, segments: Any) -> Any:
        if name.endswith("-1"):
            assert len(list(folder.iterdir())) == len(received) + 1
            raise OSError(problem, "a path that nobody should read")
        staged.append(name)
        return write(batch, name, segments)

    monkeypatch.setattr(reading, "parts_of", lambda given: [*parts_of(given), {}])
    monkeypatch.setattr(staging, "write_chunk", filling_up)
    for _ in range(running.MAX_ATTEMPTS + 1):
        with pytest.raises(DiskFullError):
            pipeline.finished(batch)
        assert sorted(folder.iterdir()) == received
        pipeline.queue.clear()
        Chunk.objects.filter(batch=batch).update(alive_until=None)  # the next try
    batch.refresh_from_db()
    assert (batch.state, batch.failure) == (Batch.State.READING, "")
    assert "nobody should read" not in caplog.text
    assert len(staged) == running.MAX_ATTEMPTS + 1
    monkeypatch.setattr(staging, "write_chunk", write)
    pipeline.finished(batch)
    assert batch.state == Batch.State.DONE


def test_what_is_read_in_vain_is_removed_as_far_as_can_be(
    pipeline: Pipeline, extract: list[Path], data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two tasks read the same chunk: what the second one staged belongs to nobody."""
    batch = pipeline.receive(extract[0])
    study = open_study(batch.study)
    reading.begin(batch, study)
    chunk, folder = Chunk.objects.get(batch=batch), data_dir / "staging" / str(batch.pk)
    parts_of, delete, kept = reading.parts_of, staging.delete_chunk, []

    def failing_once(batch: Batch, name: str) -> None:
        if name.endswith("-0"):
            kept.append(name)
            raise StagingUnavailableError("no answer")
        delete(batch, name)

    monkeypatch.setattr(reading, "parts_of", lambda given: [*parts_of(given), {}])
    monkeypatch.setattr(staging, "delete_chunk", failing_once)
    reading.read_chunk(batch, chunk, study)
    of_the_first = sorted(path.name for path in folder.iterdir())
    reading.read_chunk(batch, chunk, study)
    assert len(kept) == 1
    assert sorted(path.name for path in folder.iterdir()) == sorted([*of_the_first, *kept])


def test_other_problem_of_a_disk_is_named(
    pipeline: Pipeline, extract: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = pipeline.receive(extract[0])

    def broken(*_: Any, **__: Any) -> None:
        raise OSError(errno.EFBIG, "a path that nobody should read")

    monkeypatch.setattr(staging, "write_chunk", broken)
    pipeline.finished(batch)
    assert "File too large" in batch.failure
    assert "nobody should read" not in batch.failure
