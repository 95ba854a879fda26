"""A small study whose extracts are a few lines of CSV; batches run when the test says so."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mobility.models import VaultStudy
from mobility.services import dispatching, running
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
    asked: list[tuple[str, ...]] = []
    monkeypatch.setattr(dispatching, "send", lambda task, *ids: asked.append((task, *ids)))

    def run() -> None:
        while asked:
            task, *ids = asked.pop(0)
            getattr(running, task)(*ids)

    yield run
