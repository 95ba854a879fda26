"""Publish the counts of slots that have ended; later rows change them no more."""

from argparse import ArgumentParser, ArgumentTypeError
from datetime import date, datetime, time, timedelta
from typing import Any

from mobility.base.errors import MobilityError
from mobility.batches import outcomes, requests
from mobility.management.batch_command import ACTOR, BatchCommand
from mobility.management.patience import patiently
from mobility.vault.queries import find_study
from reports.management.arguments import refusing


class Command(BatchCommand):
    help = "Close all time slots of a study that end at or before a given time. This publishes their counts."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("study", help="slug of the study")
        parser.add_argument(
            "--through",
            required=True,
            type=time_of,
            metavar="TIME",
            help="local time of the study, such as 2026-11-28T18:00; a date means the end of that day",
        )

    def handle(self, *args: Any, study: str, through: datetime, **options: Any) -> None:
        with refusing(MobilityError):
            row = patiently(lambda: find_study(study))
        self.run_batch(
            lambda batch_id: requests.request_close_slots(row, through=through, by=ACTOR, batch_id=batch_id),
            result=lambda batch: {"study": study, **outcomes.closed_slots(batch)},
        )


def time_of(text: str) -> datetime:
    """Return the time that an argument names; a date is its end, which is the next one's midnight."""
    try:
        if len(text) == len("2026-11-28"):
            return datetime.combine(date.fromisoformat(text) + timedelta(days=1), time())
        return datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise ArgumentTypeError(
            f"must be a time such as 2026-11-28T18:00, or a date, got {text[:40]!r}"
        ) from None
