"""Print the privacy statement of a study."""

import argparse
import json
from typing import Any

from django.core.management.base import CommandError

from reports.base.commands import ReadingCommand
from reports.privacy.statement.document import privacy_statement
from reports.studies.models import Study


class Command(ReadingCommand):
    help = "Print the privacy statement of a study (docs/statement.schema.json)."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("study", help="slug of the study")

    def handle(self, **options: Any) -> None:
        try:
            study = Study.objects.get(slug=options["study"])
        except Study.DoesNotExist:
            known = ", ".join(Study.objects.values_list("slug", flat=True)) or "none"
            raise CommandError(
                f"STUDY must be the slug of a study ({known}), got {options['study']}"
            ) from None
        self.stdout.write(json.dumps(privacy_statement(study, with_names=True), ensure_ascii=False, indent=1))
