"""A small study whose extracts are a few lines of CSV; batches run when the test says so."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mobility.models import VaultStudy
from mobility.services import intake, running
from mobility.services.studies import create_study
from reports.studyfile import parse_study
from tests.mobility.views.small_study import STUDY


@pytest.fixture
def study(data_dir: Path) -> VaultStudy:
    definition = parse_study(STUDY.encode(), filename="study.toml", read=lambda _: b"")
    create_study(definition, by="adam")
    return VaultStudy.objects.get(slug="fair")


@pytest.fixture(autouse=True)
def run_batches(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Do what a worker does with every batch that waits; until it is called, they wait."""
    asked: list[str] = []
    monkeypatch.setattr(intake, "dispatch", lambda batch, **_: asked.append(str(batch.pk)))

    def run() -> None:
        while asked:
            running.run(asked.pop(0))

    yield run
