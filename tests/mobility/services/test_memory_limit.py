"""A task that needs more memory than it may have ends its batch, with that reason."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mobility import memory
from mobility.models import Batch
from mobility.readers import parquet
from mobility.services import reading
from tests.mobility.services.conftest import Pipeline

pytestmark = pytest.mark.django_db(databases=["default", "vault"])


def too_much(*_: Any, **__: Any) -> None:
    np.ones(1 << 60, np.uint8)


def test_a_chunk_that_needs_too_much_fails_its_batch(
    pipeline: Pipeline, extract: list[Path], settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    lifted = []
    monkeypatch.setattr(memory, "lift_limit", lambda: lifted.append(True))
    monkeypatch.setattr(reading, "parts_of", too_much)
    (batch,) = pipeline.upload(extract[0])
    assert batch.state == Batch.State.FAILED
    assert (
        "stopped while reading: it needs more memory than 2,048 MB (MOBILITY_TASK_MEMORY_MB)" in batch.failure
    )
    assert lifted == [True]


def test_what_is_taken_for_a_damaged_file_is_not_too_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "_blocks", too_much)
    with pytest.raises(MemoryError):
        list(parquet.read_parquet(None, layout=None))  # type: ignore[arg-type]
