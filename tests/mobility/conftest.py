"""Fixtures of the operator zone's tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.mobility.data_folder import Folder


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    """A data folder for real commands; nothing that they start outlives the test."""
    made = Folder(tmp_path / "var")
    yield made
    made.stop_all()
