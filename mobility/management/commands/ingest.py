"""Take an extract in, wait for the workers, and print what it did."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from mobility.errors import MobilityError
from mobility.management.batch_command import ACTOR, BatchCommand
from mobility.models import Batch
from mobility.services import intake
from mobility.services.vault import find_study


class Command(BatchCommand):
    help = "Take an extract (CSV with a header, plain or gzip) into a study and wait for the workers."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("study", help="slug of the study")
        parser.add_argument("file", type=Path)
        parser.add_argument(
            "--more-to-come",
            action="store_true",
            help="the days of this file stay open until a later file or close_days",
        )

    def handle(self, *args: Any, study: str, file: Path, more_to_come: bool, **options: Any) -> None:
        try:
            row = find_study(study)
        except MobilityError as error:
            raise CommandError(str(error)) from error
        if not file.is_file():
            raise CommandError(f"{file}: there is no such file")

        def start() -> Batch:
            with file.open("rb") as stream:
                return intake.receive(
                    stream,
                    study=row,
                    filename=file.name,
                    by=ACTOR,
                    more_to_come=more_to_come,
                    bytes_total=file.stat().st_size,
                )

        self.run_batch(start)
