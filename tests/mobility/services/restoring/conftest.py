"""A small study, and what takes the place of its workers while it is restored."""

from collections.abc import Callable
from pathlib import Path

import pytest

from mobility.operations import restore as restoring
from tests.mobility.services.conftest import Pipeline
from tests.mobility.services.restoring.restored import SMALL, tenth_of_the_people


@pytest.fixture(autouse=True)
def _nobody_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether workers answer is for tests/e2e/test_restore_drill.py, which has some."""
    monkeypatch.setattr(restoring, "_check_nobody_works", lambda: None)


@pytest.fixture
def few(extract: list[Path], tmp_path: Path) -> list[Path]:
    return tenth_of_the_people(extract, tmp_path)


@pytest.fixture
def pipeline(make_pipeline: Callable[..., Pipeline]) -> Pipeline:
    return make_pipeline(**SMALL)
