"""A study with its vault, and batches that run in this process, one after the other, as a worker would."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

from ldp.tallies import union
from mobility.demo.extract import write_extract
from mobility.keystore import keystore
from mobility.models import Batch, VaultStudy
from mobility.services import intake, running
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
    queue: deque[str] = field(default_factory=deque)

    def upload(self, *paths: Path, more_to_come: bool = False) -> list[Batch]:
        """Take files in and run their batches to the end."""
        batches = []
        for path in paths:
            batches.append(self.finished(self.receive(path, more_to_come=more_to_come)))
        return batches

    def receive(self, path: Path, *, more_to_come: bool = False) -> Batch:
        """Stage a file; its batch waits, and nobody has been asked to run it."""
        with path.open("rb") as stream:
            batch = intake.receive(
                stream,
                study=self.study,
                filename=path.name,
                by="test",
                more_to_come=more_to_come,
                bytes_total=path.stat().st_size,
            )
        self.queue.clear()
        return batch

    def close_days(self, through: int) -> Batch:
        return self.finished(intake.request_close_days(self.study, through=through, by="test"))

    def void_day(self, day: int) -> Batch:
        return self.finished(intake.request_void_day(self.study, day=day, by="test"))

    def finished(self, batch: Batch) -> Batch:
        """Run the batch, and those that are asked for at its end."""
        self.queue.append(str(batch.pk))
        while self.queue:
            running.run(self.queue.popleft())
        batch.refresh_from_db()
        return batch

    def visitors(self, first: int, last: int) -> int:
        return int(union(self.visitor_tally(), first_day=first, last_day=last))

    def visitor_tally(self) -> np.ndarray:
        days = self.study.definition["days"] + 1
        stored = VisitorTally.objects.get(study__slug=self.study.slug).counts
        return np.frombuffer(stored, "<i8").reshape(days, days)

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
    queue: deque[str] = deque()
    # The broker's place is taken by a queue in this process; the real one is in tests/e2e and test_embedded.
    monkeypatch.setattr(intake, "dispatch", lambda batch, **_: queue.append(str(batch.pk)))

    def make(**changes: object) -> Pipeline:
        create_study(replace(definition, **changes), by="test")
        study = find_study(str(changes.get("slug", definition.slug)))
        (keystore().folder / f"{study.key_id}.key").write_bytes(MASTER_KEY)
        return Pipeline(study=study, queue=queue)

    yield make


@pytest.fixture
def pipeline(make_pipeline: Callable[..., Pipeline]) -> Pipeline:
    return make_pipeline()
