"""Common parts of commands that start a batch: workers, progress, one JSON value at the end."""

import json
import sys
from collections.abc import Callable
from datetime import date
from typing import Any
from uuid import UUID, uuid4

from django.core.management.base import BaseCommand, CommandError
from django.utils.translation import gettext_noop as _

from mobility.base.errors import MobilityError
from mobility.base.messages import say, say_progress
from mobility.batches import finalisation, outcomes, requests
from mobility.embedded.shared import workers
from mobility.management.patience import patiently
from mobility.vault.models.batch import Batch
from mobility.vault.queries import find_study
from mobility.vault.unlocking import unlock
from reports.base.commands import INSTALLATION
from reports.management.arguments import naming_files, refusing

ACTOR = "command line"


class BatchCommand(BaseCommand):
    """Run a batch and wait for its end, also during outages of a database; exit 0 only if it is done."""

    requires_system_checks = (INSTALLATION,)  # others load all pages

    def run_for_day(self, slug: str, request: Callable[..., Batch], *, name: str, day: date) -> None:
        """Run the batch that `request` makes for a day of a study; `name` is what it calls the day."""
        with refusing(MobilityError):
            study = patiently(lambda: find_study(slug))
            number = unlock(study).definition.day_of(day)
        self.run_batch(
            lambda batch_id: request(study, **{name: number}, by=ACTOR, batch_id=batch_id),
            result=lambda batch: {"study": slug, name: day.isoformat(), **outcomes.change(batch)},
        )

    @naming_files()
    @refusing(MobilityError)
    def run_batch(
        self,
        start: Callable[[UUID], Batch],
        *,
        result: Callable[[Batch], dict[str, Any]] = outcomes.summary,
        refuse: Callable[[Batch], str] | None = None,
    ) -> None:
        """Start a batch, wait, and print `result` of it; notes for the reader go to standard error.

        Parameters
        ----------
        start : makes the batch of that id

        Raises
        ------
        CommandError : the batch failed, or `refuse` says, after the result, why it is not what was meant
        """
        try:
            with workers() as check_workers:

                def progress(batch: Batch) -> None:
                    check_workers()
                    _show(batch)

                batch = started(start)
                batch = patiently(lambda: requests.wait_for(batch, progress=progress))
            notes = patiently(lambda: list(outcomes.notes_for_reader(batch)))
            printed = patiently(lambda: json.dumps(result(batch)))
            problem = "" if refuse is None else patiently(lambda: refuse(batch))
        except KeyboardInterrupt:
            say("\ninterrupted: the next command continues any batch that was received in full")
            sys.exit(130)
        for note in notes:
            say(note)
        self.stdout.write(printed)
        if problem:
            raise CommandError(f"{problem} Use --allow-empty if this is intended")


def started(start: Callable[[UUID], Batch]) -> Batch:
    """Return the batch that `start` makes; after an outage of a database, one of its tries."""
    tries: list[UUID] = []

    def begun() -> Batch:
        mine = Batch.objects.filter(pk__in=tries)
        for broken in mine.filter(state=Batch.State.RECEIVING):
            finalisation.fail(
                broken, _("a database was unavailable before the command started: restarting the command")
            )
        # A database that failed while queueing the batch may have done so.
        waiting = mine.exclude(state__in=(Batch.State.FAILED, Batch.State.CANCELLED)).first()
        if waiting is not None:
            return waiting
        tries.append(uuid4())
        return start(tries[-1])

    return patiently(begun)


def _show(batch: Batch) -> None:
    share = f" ({100 * batch.bytes_read // batch.bytes_total} %)" if batch.bytes_total else ""
    say_progress("" if batch.is_final else f"{batch.state}: {batch.rows_read:,} rows{share}")
