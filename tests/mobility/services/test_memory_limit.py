"""A task that needs more memory than it may have ends its batch, with that reason."""

import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mobility import memory
from mobility.models import Batch
from mobility.readers import parquet
from mobility.services import reading
from mobility.services.endings import memory_problem
from tests.mobility.services.conftest import Pipeline

pytestmark = pytest.mark.django_db(databases=["default", "vault"])


@pytest.fixture(autouse=True)
def _limit(settings: Any) -> Iterator[None]:
    """This process has a limit, as one of a worker has."""
    settings.MOBILITY_TASK_MEMORY_MB = 400
    memory.limit(settings.MOBILITY_TASK_MEMORY_MB)
    yield
    memory.lift_limit()
    memory._limit.clear()


def too_much(*_: Any, **__: Any) -> Iterator[Any]:
    np.empty(1 << 30, np.uint8)  # what every machine gives that sets no limit
    return iter(())


def test_a_chunk_that_needs_too_much_fails_its_batch(
    pipeline: Pipeline, extract: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "parts_of", too_much)
    (batch,) = pipeline.upload(extract[0])
    assert batch.state == Batch.State.FAILED
    assert (
        "stopped while reading: it needs more memory than 400 MB (MOBILITY_TASK_MEMORY_MB)" in batch.failure
    )
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    assert soft == hard  # to say so takes memory, too


def test_a_process_without_a_limit_names_none() -> None:
    """As a web server, whatever MOBILITY_TASK_MEMORY_MB says: that is for workers."""
    memory._limit.clear()
    assert memory_problem() == "it needs more memory than this machine has"


def test_what_is_taken_for_a_damaged_file_is_not_too_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "_blocks", too_much)
    with pytest.raises(MemoryError):
        list(parquet.read_parquet(None, layout=None))  # type: ignore[arg-type]
