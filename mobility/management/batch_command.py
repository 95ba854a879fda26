"""What commands that start a batch share: workers, progress, one JSON value at the end."""

import json
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable
from datetime import date
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from mobility.embedded import workers
from mobility.embedded.messages import say, say_progress
from mobility.errors import MobilityError
from mobility.models import Batch
from mobility.services import intake, outcomes

ACTOR = "command line"


def calendar_day(text: str) -> date:
    """Argument type of a day."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ArgumentTypeError(f"must be a date as in 2017-05-31, got {text!r}") from None


class BatchCommand(BaseCommand):
    """Run a batch and wait for its end; exit 0 only if it is done."""

    def run_batch(
        self, start: Callable[[], Batch], *, result: Callable[[Batch], dict[str, Any]] = outcomes.summary
    ) -> None:
        """Start a batch, wait, and print `result` of it; notes for the reader go to standard error."""
        try:
            with workers() as check_workers:

                def progress(batch: Batch) -> None:
                    check_workers()
                    _show(batch)

                batch = intake.wait_for(start(), progress=progress)
        except MobilityError as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt:
            say("\ninterrupted: a batch that was received whole goes on with the next command")
            sys.exit(130)
        except OSError as error:
            raise CommandError(f"{error.filename}: {error.strerror}") from error
        for note in outcomes.notes_for_reader(batch):
            say(note)
        self.stdout.write(json.dumps(result(batch)))


def _show(batch: Batch) -> None:
    share = f" ({100 * batch.bytes_read // batch.bytes_total} %)" if batch.bytes_total else ""
    say_progress("" if batch.is_final else f"{batch.state}: {batch.rows_read:,} rows{share}")
