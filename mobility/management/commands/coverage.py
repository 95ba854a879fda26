"""Show the days that each source of a study has covered."""

import json
from argparse import ArgumentParser
from typing import Any

from mobility.base.errors import MobilityError
from mobility.batches.quality.coverage import coverage_of
from mobility.batches.quality.records import coverage_record
from mobility.batches.queries import study_head
from mobility.vault.queries import find_study
from reports.base.commands import ReadingCommand
from reports.management.arguments import refusing


class Command(ReadingCommand):
    help = "Print the days that each source of a study delivered, and the missing and failed days."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("study", help="slug of the study")

    def handle(self, *args: Any, study: str, **options: Any) -> None:
        with refusing(MobilityError):
            row = find_study(study)
        timezone = study_head(row.pk).timezone
        record = coverage_record(coverage_of(row.pk), study=row.slug, timezone=timezone)
        self.stdout.write(json.dumps(record))
