"""Take a file in, wait for the workers, and print what it did."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any
from uuid import UUID

from django.core.management.base import CommandError

from mobility.base.errors import MobilityError
from mobility.batches import outcomes
from mobility.extracts.profiles.definition import DEFAULT
from mobility.management.batch_command import ACTOR, BatchCommand
from mobility.management.patience import patiently
from mobility.uploads import actions as uploads
from mobility.vault.models.batch import Batch
from mobility.vault.profiles import find_profile
from mobility.vault.queries import find_study
from reports.management.arguments import refusing


class Command(BatchCommand):
    help = (
        "Upload a file to a study and wait until it is processed. Formats: CSV, TSV or "
        "pipe-separated text, uncompressed, gzip or zstd; or Parquet."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("study", help="slug of the study")
        parser.add_argument("file", type=Path)
        parser.add_argument(
            "--profile", default=DEFAULT, help="name of a profile of the study, or subscribers, or opt-out"
        )
        parser.add_argument(
            "--more-to-come",
            action="store_true",
            help="keep the days of this file open until a later file or close_days publishes them",
        )
        parser.add_argument(
            "--validate-only",
            action="store_true",
            help="check and count only; no data is kept or published",
        )
        parser.add_argument(
            "--allow-empty",
            action="store_true",
            help="exit with 0 even if no rows are counted, or if the file contains events instead of "
            "subscribers",
        )

    def handle(self, *args: Any, study: str, file: Path, profile: str, **options: Any) -> None:
        with refusing(MobilityError):
            row = patiently(lambda: find_study(study))
            patiently(lambda: find_profile(row, profile))
        if file.is_dir():
            raise CommandError(f"{file} is a folder: name a file")
        if not file.is_file():
            raise CommandError(f"{file} does not exist")

        def start(batch_id: UUID) -> Batch:
            with file.open("rb") as stream:
                return uploads.receive(
                    stream,
                    study=row,
                    filename=file.name,
                    by=ACTOR,
                    profile=profile,
                    more_to_come=options["more_to_come"],
                    validate_only=options["validate_only"],
                    bytes_total=file.stat().st_size,
                    batch_id=batch_id,
                )

        self.run_batch(start, refuse=None if options["allow_empty"] else outcomes.misfit)
