"""Make days final: what is open is published, day state dies, later rows are ignored."""

from argparse import ArgumentParser
from datetime import date
from typing import Any

from mobility.batches import requests
from mobility.management.batch_command import BatchCommand
from reports.management.arguments import day_of


class Command(BatchCommand):
    help = "Close all days of a study through a given day, which makes them final."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("study", help="slug of the study")
        parser.add_argument("--through", required=True, type=day_of, metavar="DAY")

    def handle(self, *args: Any, study: str, through: date, **options: Any) -> None:
        self.run_for_day(study, requests.request_close_days, name="through", day=through)
