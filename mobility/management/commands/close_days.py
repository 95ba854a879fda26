"""Make days final: what is open is published, day state dies, later rows are ignored."""

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
    help = "Close all days of a study through a given day, which makes them final."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("study", help="slug of the study")
        parser.add_argument("--through", required=True, type=calendar_day, metavar="DAY")

    def handle(self, *args: Any, study: str, through: date, **options: Any) -> None:
        try:
            row = patiently(lambda: find_study(study))
            day = unlock(row).definition.day_of(through)
        except MobilityError as error:
            raise CommandError(str(error)) from error
        self.run_batch(
            lambda batch_id: requests.request_close_days(row, through=day, by=ACTOR, batch_id=batch_id),
            result=lambda batch: {"study": study, "through": through.isoformat(), **outcomes.change(batch)},
        )
