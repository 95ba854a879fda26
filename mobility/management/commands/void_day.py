"""Undo everything uploaded for a day, before it is closed."""

from argparse import ArgumentParser
from datetime import date
from typing import Any

from mobility.batches import requests
from mobility.management.batch_command import BatchCommand
from reports.management.arguments import day_of


class Command(BatchCommand):
    help = (
        "Undo everything uploaded for a day that is not closed, so that you can upload its files "
        "again. If this raises epsilon above the approved value, the command only requests approval "
        "by a second person, and exits with an error."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("study", help="slug of the study")
        parser.add_argument("day", type=day_of)

    def handle(self, *args: Any, study: str, day: date, **options: Any) -> None:
        self.run_for_day(study, requests.request_void_day, name="day", day=day)
