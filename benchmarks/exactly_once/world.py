"""One installation on PostgreSQL and Redis, driven from this process as the web server would drive it."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import redis

from benchmarks.exactly_once.scenarios import Upload
from benchmarks.ingest_study import write_study
from benchmarks.installation import Installation

if TYPE_CHECKING:
    from mobility.vault.models.batch import Batch

MASTER_KEY: Final = bytes(range(32))
SUBSCRIBERS: Final = 1_000_000  # announced: 16 shards, however few come
SETTINGS: Final = {
    "MOBILITY_BATCH_LEASE_S": "2",
    "MOBILITY_SWEEP_S": "1",
    "MOBILITY_CHUNK_BYTES": str(4 << 20),
    "MOBILITY_TASK_TIME_LIMIT_S": "60",
}
COMPILING_S: Final = 600.0  # the first run on a machine compiles kernels
LONGEST_S: Final = 90.0
REMAINS_S: Final = 10.0
POLL_S: Final = 0.02
SEND_AGAIN: Final = "send the file again"

Answer = TypeVar("Answer")


class HangError(Exception):
    """A step did not end in time."""


class World:
    """Two workers with a process each, a server per database.

    Use it inside `with installation`. It repeats every query while the database is
    down, as a person would.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.installation = Installation(
            folder, is_postgres=True, is_durable=False, workers=2, processes=1, environment=SETTINGS
        )
        self.patience_s = COMPILING_S
        self._n_studies = 0

    def connect(self) -> None:
        """Make Django of this process that of the installation."""
        self.installation.connect()

    def new_study(self) -> str:
        """A study with the key that all of them have, so that tallies can be compared; returns its slug."""
        from mobility.vault.keystore import keystore
        from mobility.vault.queries import find_study

        self._n_studies += 1
        slug = f"soak-{self._n_studies}"
        path = write_study(self.folder / "studies", slug=slug, subscribers=SUBSCRIBERS)
        self.patiently(lambda: create(path))
        study = self.patiently(lambda: find_study(slug))
        (keystore().folder / f"{study.key_id}.key").write_bytes(MASTER_KEY)
        return slug

    def send(self, slug: str, upload: Upload) -> "Batch":
        """Send a file, and again if it could not be received."""
        return self.patiently(lambda: receive(slug, upload))

    def settle(self, slug: str, uploads: Sequence[Upload]) -> None:
        """Wait until every batch has ended; files that were not received whole are sent again."""
        while lost := self._not_received(slug):
            for name in lost:
                self.send(slug, next(upload for upload in uploads if upload.path.name == name))

    def _not_received(self, slug: str) -> list[str]:
        """Wait for the end of all batches; files of which no batch is done, as they asked for them again."""
        from mobility.vault.models.batch import Batch

        self.wait_until(lambda: not unfinished(slug), what="batches that do not end")
        batches = self.patiently(lambda: list(Batch.objects.filter(study__slug=slug)))
        received = {batch.filename for batch in batches if batch.state == Batch.State.DONE}
        broken = {batch.filename for batch in batches if is_broken_upload(batch)}
        return sorted(broken - received)

    def tallies(self, slug: str) -> dict[str, bytes]:
        """Everything the analyst zone has counted, byte for byte."""
        return self.patiently(lambda: tallies(slug))

    def problems(self, slug: str, expected: dict[str, bytes]) -> list[str]:
        """Differences from a run without faults."""
        found = []
        counted = self.tallies(slug)
        if counted != expected:
            names = sorted(name for name in expected if counted.get(name) != expected[name])
            found.append(f"other tallies: {', '.join(names)}")
        deadline = time.monotonic() + REMAINS_S
        # The sweep removes leftovers of killed processes.
        while (left := self.patiently(lambda: remains(slug))) and time.monotonic() < deadline:
            time.sleep(POLL_S)
        return found + left

    def wait_until(self, holds: Callable[[], bool], *, what: str) -> None:
        """Ask until it holds.

        Raises
        ------
        HangError : it does not
        """
        deadline = time.monotonic() + self.patience_s
        while not self.patiently(holds):
            if time.monotonic() > deadline:
                raise HangError(f"{what} within {self.patience_s:.0f} s")
            time.sleep(POLL_S)

    def patiently(self, ask: Callable[[], Answer]) -> Answer:
        """Ask again while a server is unavailable.

        Raises
        ------
        HangError : it stays away
        """
        from django.db import InterfaceError, OperationalError, connections

        from mobility.base.errors import UploadBrokenError

        deadline = time.monotonic() + self.patience_s
        while True:
            try:
                return ask()
            except (OperationalError, InterfaceError, UploadBrokenError, redis.RedisError, OSError) as error:
                if time.monotonic() > deadline:
                    raise HangError(f"{type(error).__name__} for {self.patience_s:.0f} s") from error
                connections.close_all()
                time.sleep(POLL_S)


def create(path: Path) -> None:
    """Create a study as the command does; one that is there already is left alone."""
    from mobility.plans.studies import create_study
    from reports.studies.studyfile import parse_study
    from reports.transfer.studies import StudyExistsError

    definition = parse_study(
        path.read_bytes(), filename=path.name, read=lambda name: (path.parent / name).read_bytes()
    )
    try:
        create_study(definition, by="soak")
    except StudyExistsError:
        return


def receive(slug: str, upload: Upload) -> "Batch":
    """Take a file in, as every way in does."""
    from mobility.uploads import actions as uploads
    from mobility.vault.queries import find_study

    with upload.path.open("rb") as stream:
        return uploads.receive(
            stream,
            study=find_study(slug),
            filename=upload.path.name,
            by="soak",
            more_to_come=upload.more_to_come,
            bytes_total=upload.path.stat().st_size,
        )


def unfinished(slug: str) -> bool:
    """Return whether a batch of the study has not ended."""
    from mobility.vault.models.batch import Batch

    return Batch.objects.filter(study__slug=slug).exclude(state__in=Batch.FINAL).exists()


def is_broken_upload(batch: "Batch") -> bool:
    """Return whether it failed because its file did not arrive, and says so."""
    return batch.state == batch.State.FAILED and batch.started_at is None and SEND_AGAIN in batch.failure


def tallies(slug: str) -> dict[str, bytes]:
    """Totals of the study by name."""
    from reports.studies.tally_models import Tally, VisitorTally

    visitors = VisitorTally.objects.get(study__slug=slug)
    found = {"visitors": bytes(visitors.counts), "stays": bytes(visitors.stays)}
    for tally in Tally.objects.filter(plan__study__slug=slug).select_related("indicator"):
        found[tally.indicator.slug] = bytes(tally.counts)
        found[f"{tally.indicator.slug}, reports"] = bytes(tally.n_reports)
    return found


def remains(slug: str) -> list[str]:
    """Leftovers forbidden in a finished study: failed batches, waiting deltas, staged files, batch keys."""
    from mobility.batches import staging
    from mobility.vault.keystore import keystore
    from mobility.vault.models.batch import Batch
    from mobility.vault.models.outbox import OutboxDelta
    from mobility.vault.models.subscribers import VaultStudy

    failed = Batch.objects.filter(study__slug=slug).exclude(state=Batch.State.DONE)
    found = [f"{batch.state}: {batch.failure}" for batch in failed if not is_broken_upload(batch)]
    if count := OutboxDelta.objects.filter(batch__study__slug=slug).count():
        found.append(f"{count} deltas in the outbox")
    if VaultStudy.objects.get(slug=slug).active_batch_id is not None:
        found.append("a batch is active still")
    if staged := list(staging.staged_batches()):
        found.append(f"{len(staged)} batches in staging")
    if keys := [path for path in keystore().folder.iterdir() if path.name.startswith("batch-")]:
        found.append(f"{len(keys)} keys of batches")
    return found
