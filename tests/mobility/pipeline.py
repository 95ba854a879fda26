"""A study with its vault, and batches that run in this process, one after the other, as a worker would."""

import json
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from django.db import OperationalError
from django.utils import timezone

from ldp.estimation.unions import union
from mobility.batches import dispatching, requests, running
from mobility.batches.publication.handover import deliver_what_waits
from mobility.batches.publication.undoing import UndoWaitsError
from mobility.models import Batch, DayUndo, VaultStudy
from mobility.operations.sweeping import sweep
from mobility.plans.studies import create_study
from mobility.uploads import actions as uploads
from mobility.vault.keystore import keystore
from mobility.vault.queries import find_study
from mobility.workers import app as workers_app
from reports.studies.studyfile import StudyDefinition
from reports.studies.tally_models import Publication, Tally, VisitorTally
from reports.transfer.studies import ON_SERVER, Approval

SCHEMA = json.loads((Path(__file__).parents[2] / "docs/certificate.schema.json").read_text())
MASTER_KEY = bytes(range(32))
N_SUBSCRIBERS = 1_000
SMALL = {"min_publication": 10}


def only(path: Path, is_kept: Callable[[str], bool], folder: Path) -> Path:
    header, *rows = path.read_text().splitlines(keepends=True)
    kept = folder / path.name
    kept.write_text(header + "".join(row for row in rows if is_kept(row.split(",")[0])))
    return kept


def some_people(path: Path, folder: Path, *, n: int = 20) -> Path:
    people = sorted({row.split(",")[0] for row in path.read_text().splitlines()[1:]})
    listed = folder / "people.txt"
    listed.write_text("\n".join(people[:n]))
    return listed


def halves_of(path: Path, folder: Path) -> Iterator[Path]:
    header, *rows = path.read_text().splitlines(keepends=True)
    for part in (0, 1):
        half = folder / f"{part}-{path.name}"
        half.write_text(header + "".join(rows[part::2]))
        yield half


@dataclass
class Pipeline:
    study: VaultStudy
    queue: deque[tuple[str, ...]] = field(default_factory=deque)

    def upload(self, *paths: Path, **options: Any) -> list[Batch]:
        return [self.finished(self.receive(path, **options)) for path in paths]

    def receive(self, path: Path, **options: Any) -> Batch:
        given = {"more_to_come": False, "bytes_total": path.stat().st_size} | options
        with path.open("rb") as stream:
            batch = uploads.receive(stream, study=self.study, filename=path.name, by="test", **given)
        self.queue.clear()
        return batch

    def ask_for(self, path: Path) -> Batch:
        waiting = list(self.queue)
        batch = self.receive(path)
        self.queue.extend([*waiting, ("advance", str(batch.pk))])
        return batch

    def bring_to(self, batch: Batch, state: str) -> list[tuple[str, ...]]:
        self.queue.append(("advance", str(batch.pk)))
        while fresh(batch).state != state:
            task, *ids = self.queue.popleft()
            getattr(running, task)(*ids)
        return list(self.queue)

    def close_days(self, through: int) -> Batch:
        return self.finished(requests.request_close_days(self.study, through=through, by="test"))

    def void_day(self, day: int) -> Batch:
        return self.finished(self.request_void_day(day))

    def request_void_day(self, day: int) -> Batch:
        """Ask for a day to be undone, and let a second person approve it where one is needed."""
        try:
            return requests.request_void_day(self.study, day=day, by="test")
        except UndoWaitsError:
            asked = DayUndo.objects.get(study=self.study, day=day, is_approved=None)
            return requests.approve_undo(asked, voided_days=asked.study.voided_days + 1, by="petra")

    def finished(self, batch: Batch) -> Batch:
        self.queue.append(("advance", str(batch.pk)))
        self.work()
        return fresh(batch)

    def work(self, *, retries: bool = False) -> None:
        """Do what is asked for, one task after the other; with retries as `mobility.tasks` tries again."""
        while self.queue:
            task, *ids = self.queue.popleft()
            try:
                {"hand_over": deliver_what_waits}.get(task, getattr(running, task, None))(*ids)
            except OperationalError:
                if not retries:
                    raise
                self.queue.append((task, *ids))

    def visitors(self, first: int, last: int) -> int:
        return int(union(self.visitor_tally(), first_day=first, last_day=last))

    def visitor_tally(self) -> np.ndarray:
        days = self.study.definition["days"] + 1
        stored = VisitorTally.objects.get(study__slug=self.study.slug).counts
        return np.frombuffer(stored, "<i8").reshape(days, days)

    def answers(self, slug: str, first: int, last: int) -> int:
        days = self.study.definition["days"] + 1
        tally = Tally.objects.get(plan__study__slug=self.study.slug, indicator__slug=slug)
        n_reports = np.frombuffer(tally.n_reports, "<i8").reshape(days, days)
        return int(union(n_reports, first_day=first, last_day=last))

    def tallies(self) -> dict[str, bytes]:
        visitors = VisitorTally.objects.get(study__slug=self.study.slug)
        found = {"visitors": bytes(visitors.counts), "stays": bytes(visitors.stays)}
        for tally in Tally.objects.filter(plan__study__slug=self.study.slug).select_related("indicator"):
            slug = tally.indicator.slug
            found |= {slug: bytes(tally.counts), f"{slug}/n_reports": bytes(tally.n_reports)}
        return found


@contextmanager
def pipelines(definition: StudyDefinition) -> Iterator[Callable[..., Pipeline]]:
    """Make studies with a known key, so that tallies of two runs can be compared byte for byte."""
    queue: deque[tuple[str, ...]] = deque()

    def make(*, n_shards: int = 2, approval: Approval = ON_SERVER, **changes: object) -> Pipeline:
        create_study(replace(definition, **changes), by="test", approval=approval)
        study = find_study(str(changes.get("slug", definition.slug)))
        # As few as show that there are several: each costs a batch two dozen statements.
        study.n_shards = n_shards
        study.save(update_fields=["n_shards"])
        (keystore().folder / f"{study.key_id}.key").write_bytes(MASTER_KEY)
        return Pipeline(study=study, queue=queue)

    with pytest.MonkeyPatch.context() as patch:
        # A queue in this process takes the broker's place; the real one is in tests/e2e and test_embedded.
        patch.setattr(dispatching, "send", lambda task, *ids, **_: queue.append((task, *ids)))
        patch.setattr(workers_app, "send", lambda *_, **__: None)  # tasks of the analyst zone
        yield make


def fresh(row: Any) -> Any:
    row.refresh_from_db()
    return row


def resume(pipeline: Pipeline, batch: Batch) -> None:
    """The queue is lost with the worker; a sweep finds the batch when it has shown no life for a while."""
    pipeline.queue.clear()
    looks_abandoned(batch)
    sweep()
    pipeline.work()
    batch.refresh_from_db()


def looks_abandoned(batch: Batch) -> None:
    Batch.objects.filter(pk=batch.pk).update(alive_until=timezone.now() - timedelta(seconds=1))


def raising(error: BaseException | type[BaseException]) -> Callable[..., NoReturn]:
    def fails(*_, **__):
        raise error

    return fails


def lose_totals() -> None:
    """The main database is one of before every publication."""
    Publication.objects.all().delete()
    for tally in (*Tally.objects.all(), *VisitorTally.objects.all()):
        tally.counts = bytes(len(tally.counts))
        if isinstance(tally, Tally):
            tally.n_reports = bytes(len(tally.n_reports))
        tally.save()
