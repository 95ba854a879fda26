"""The demo: its study and extract, loaded the way a user's are. Every step can be repeated."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime, time, timedelta
from pathlib import Path

from mobility.base.errors import MobilityError
from mobility.base.messages import say, say_progress
from mobility.base.runtime import write_private
from mobility.batches import requests
from mobility.demo.files import folder
from mobility.demo.population import load_study
from mobility.plans.studies import create_study
from mobility.uploads import actions as uploads
from mobility.vault.models.batch import Batch
from mobility.vault.models.subscribers import VaultStudy
from reports.accounts.names import DEMO_ACTOR as ACTOR
from reports.estimates.queries import study_reports, visitor_unions
from reports.exports.records import render
from reports.studies.models import Study
from reports.studies.slot_models import StudySlots

SEED = 1


class DemoError(MobilityError):
    """A step of the demo failed; the text says which and why."""


@contextmanager
def step(title: str) -> Iterator[None]:
    """Say what happens now, and in which step it failed."""
    say(f"- {title}")
    try:
        yield
    except (MobilityError, OSError, ValueError) as error:
        raise DemoError(f"{title}: {error}") from error


def ensure_study() -> VaultStudy:
    """Return the demo study, created from its file when it is new.

    Raises
    ------
    DemoError : another study has its name, and would get the demo's people
    """
    definition = load_study()
    found = Study.objects.filter(slug=definition.slug).first()
    if found is None:
        create_study(definition, by=ACTOR, is_demo=True)
    elif not found.is_demo:
        raise DemoError(
            f'the slug "{definition.slug}" belongs to a study that is not the demo, so nothing was '
            "written. Run the demo with another data folder: set MOBILITY_DATA_DIR"
        )
    return VaultStudy.objects.get(slug=definition.slug)


def ensure_extract(*, subscribers: int | None) -> list[Path]:
    """The seven files, written when they are new.

    Raises
    ------
    DemoError : there is a demo of another size, whose study would mix with this one
    """
    manifest = folder() / "extract.json"
    if not manifest.exists():
        from mobility.demo.extract import write_extract  # noqa: PLC0415 - pyarrow, for what is written once

        written = write_extract(folder() / "extract", seed=SEED, n_subscribers=subscribers)
        write_private(manifest, json.dumps(asdict(written)))
    summary = json.loads(manifest.read_text())
    if subscribers not in (None, summary["subscribers"]):
        raise DemoError(
            f"the demo already exists with {summary['subscribers']:,} subscribers, not "
            f"{subscribers:,}: to start again, remove it with `make clean`"
        )
    return [Path(summary["directory"], name) for name in summary["files"]]


def ingest(study: VaultStudy, file: Path, *, check_workers: Callable[[], None]) -> Batch:
    """Load a file unless that was done; a batch that an earlier run began is waited for."""

    def show(batch: Batch) -> None:
        check_workers()
        say_progress("" if batch.is_final else f"  {batch.state}: {batch.rows_read:,} rows")

    # Parts of a file died with their sender.
    not_loaded = (Batch.State.FAILED, Batch.State.CANCELLED, Batch.State.RECEIVING)
    batch = study.batches.filter(filename=file.name).exclude(state__in=not_loaded).first()
    if batch is None:
        with file.open("rb") as stream:
            batch = uploads.receive(
                stream, study=study, filename=file.name, by=ACTOR, more_to_come=False,
                bytes_total=file.stat().st_size,
            )  # fmt: skip
    return requests.wait_for(batch, progress=show)


def close_slots(study: VaultStudy, *, check_workers: Callable[[], None]) -> Batch | None:
    """Publish presence by slot of all days; None if that was done, or the study has no slots."""
    definition = Study.objects.get(slug=study.slug)
    slots = StudySlots.objects.filter(study=definition).first()
    if slots is None or slots.closed == len(slots.clock):
        return None
    batch = study.batches.filter(kind=Batch.Kind.CLOSE_SLOTS).exclude(state__in=Batch.FINAL).first()
    if batch is None:
        end = datetime.combine(definition.last_day + timedelta(days=1), time())
        batch = requests.request_close_slots(study, through=end, by=ACTOR)
    return requests.wait_for(batch, progress=lambda _: check_workers())


def write_report(slug: str) -> tuple[Path, int]:
    """Export every window of every indicator; returns the file and the visitors of the whole study."""
    study = Study.objects.get(slug=slug)
    file = folder() / "report.json"
    text = render(study_reports(list(study.indicators.all()), None), file_format="json")
    write_private(file, text.rstrip("\n") + "\n")
    return file, int(visitor_unions(study)[1, study.days])
