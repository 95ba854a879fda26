"""A study with its vault, and batches that run in this process, one after the other, as a worker would."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pytest_django.fixtures import Settings

from ldp.tallies import union
from mobility.demo.extract import write_extract
from mobility.keystore import keystore
from mobility.models import Batch, VaultStudy
from mobility.readers import chunks
from mobility.services import dispatching, intake, running, uploads
from mobility.services.studies import create_study
from mobility.services.vault import find_study
from reports.models import Tally, VisitorTally
from reports.studyfile import StudyDefinition, parse_study

STUDY_FILE = Path(__file__).parents[3] / "mobility" / "demo" / "study.toml"
MASTER_KEY = bytes(range(32))
N_SUBSCRIBERS = 1_500


@pytest.fixture(scope="session")
def extract(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Seven daily files of a part of the demo's population."""
    folder = tmp_path_factory.mktemp("extract")
    write_extract(folder, seed=5, n_subscribers=N_SUBSCRIBERS)
    return sorted(folder.glob("*.csv"))


@pytest.fixture
def definition() -> StudyDefinition:
    read = lambda name: (STUDY_FILE.parent / name).read_bytes()  # noqa: E731
    return parse_study(STUDY_FILE.read_bytes(), filename=STUDY_FILE.name, read=read)


@dataclass
class Pipeline:
    """The operator zone of one study."""

    study: VaultStudy
    queue: deque[tuple[str, ...]] = field(default_factory=deque)

    def upload(self, *paths: Path, **options: Any) -> list[Batch]:
        """Take files in and run their batches to the end."""
        return [self.finished(self.receive(path, **options)) for path in paths]

    def receive(self, path: Path, **options: Any) -> Batch:
        """Stage a file; its batch waits, and nobody has been asked to run it."""
        given = {"more_to_come": False, "bytes_total": path.stat().st_size} | options
        with path.open("rb") as stream:
            batch = uploads.receive(stream, study=self.study, filename=path.name, by="test", **given)
        self.queue.clear()
        return batch

    def close_days(self, through: int) -> Batch:
        return self.finished(intake.request_close_days(self.study, through=through, by="test"))

    def void_day(self, day: int) -> Batch:
        return self.finished(intake.request_void_day(self.study, day=day, by="test"))

    def finished(self, batch: Batch) -> Batch:
        """Run the batch, and whatever is asked for meanwhile."""
        self.queue.append(("advance", str(batch.pk)))
        self.work()
        batch.refresh_from_db()
        return batch

    def work(self) -> None:
        """Do what is asked for, one task after the other."""
        while self.queue:
            task, *ids = self.queue.popleft()
            getattr(running, task)(*ids)

    def visitors(self, first: int, last: int) -> int:
        return int(union(self.visitor_tally(), first_day=first, last_day=last))

    def visitor_tally(self) -> np.ndarray:
        days = self.study.definition["days"] + 1
        stored = VisitorTally.objects.get(study__slug=self.study.slug).counts
        return np.frombuffer(stored, "<i8").reshape(days, days)

    def answers(self, slug: str, first: int, last: int) -> int:
        """Subscribers who answer an indicator in a window."""
        days = self.study.definition["days"] + 1
        tally = Tally.objects.get(plan__study__slug=self.study.slug, indicator__slug=slug)
        return int(
            union(np.frombuffer(tally.n_reports, "<i8").reshape(days, days), first_day=first, last_day=last)
        )

    def tallies(self) -> dict[str, bytes]:
        """Everything the analyst zone has counted, byte for byte."""
        found = {"visitors": bytes(VisitorTally.objects.get(study__slug=self.study.slug).counts)}
        for tally in Tally.objects.filter(plan__study__slug=self.study.slug).select_related("indicator"):
            found[tally.indicator.slug] = bytes(tally.counts)
            found[f"{tally.indicator.slug}/n_reports"] = bytes(tally.n_reports)
        return found


@pytest.fixture
def make_pipeline(
    db: None, data_dir: Path, definition: StudyDefinition, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Pipeline]]:
    """Make a study with a known key, so that tallies of two runs can be compared byte for byte."""
    queue: deque[tuple[str, ...]] = deque()
    # The broker's place is taken by a queue in this process; the real one is in tests/e2e and test_embedded.
    monkeypatch.setattr(dispatching, "send", lambda task, *ids: queue.append((task, *ids)))

    def make(**changes: object) -> Pipeline:
        create_study(replace(definition, **changes), by="test")
        study = find_study(str(changes.get("slug", definition.slug)))
        (keystore().folder / f"{study.key_id}.key").write_bytes(MASTER_KEY)
        return Pipeline(study=study, queue=queue)

    yield make


@pytest.fixture
def pipeline(make_pipeline: Callable[..., Pipeline]) -> Pipeline:
    return make_pipeline()


@pytest.fixture
def small_chunks(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small files have chunks too."""
    monkeypatch.setattr(chunks, "GRAIN_BYTES", 30_000)
    settings.MOBILITY_CHUNK_BYTES = 30_000
