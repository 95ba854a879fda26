"""Undo everything uploaded for a day, before it is closed."""

from argparse import ArgumentParser
from datetime import date
from typing import Any

from django.core.management.base import CommandError

from mobility.base.errors import MobilityError
from mobility.batches import outcomes, requests
from mobility.management.batch_command import ACTOR, BatchCommand, calendar_day
from mobility.management.patience import patiently
from mobility.vault.queries import find_study
from mobility.vault.unlocking import unlock


class Command(BatchCommand):
    help = (
        "Undo everything uploaded for a day that is not closed, so that you can upload its files "
        "again. If this raises epsilon above the approved value, the command only requests approval "
        "by a second person, and exits with an error."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("study", help="slug of the study")
        parser.add_argument("day", type=calendar_day)

    def handle(self, *args: Any, study: str, day: date, **options: Any) -> None:
        try:
            row = patiently(lambda: find_study(study))
            number = unlock(row).definition.day_of(day)
        except MobilityError as error:
            raise CommandError(str(error)) from error
        self.run_batch(
            lambda batch_id: requests.request_void_day(row, day=number, by=ACTOR, batch_id=batch_id),
            result=lambda batch: {"study": study, "day": day.isoformat(), **outcomes.change(batch)},
        )
