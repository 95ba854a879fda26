"""Print the privacy statement of a study."""

import argparse
import json
from typing import Any

from reports.base.commands import ReadingCommand
from reports.management.arguments import study_named
from reports.privacy.statement.document import privacy_statement


class Command(ReadingCommand):
    help = "Print the privacy statement of a study (docs/statement.schema.json)."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("study", help="slug of the study")

    def handle(self, **options: Any) -> None:
        statement = privacy_statement(study_named(options["study"]), with_names=True)
        self.stdout.write(json.dumps(statement, ensure_ascii=False, indent=1))
