"""Make the study, or the draft, that export_study wrote on another installation."""

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from mobility.base.errors import MobilityError
from mobility.management.batch_command import ACTOR
from mobility.plans.study_files import import_study
from reports.management.arguments import naming_files, refusing
from reports.privacy.budget.actions import BudgetExceededError
from reports.transfer.studies import StudyExistsError


class Command(BaseCommand):
    help = "Create an empty study from a file written by export_study."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--slug", default="", help="slug to use instead of the one in the file")
        parser.add_argument(
            "--as-draft",
            action="store_true",
            help="create a draft for approval and publication by a second person",
        )

    @refusing(StudyExistsError, BudgetExceededError, MobilityError)
    @naming_files()
    def handle(self, *args: Any, file: Path, slug: str, as_draft: bool, **options: Any) -> None:
        made = import_study(file.read_bytes(), by=ACTOR, slug=slug, as_draft=as_draft)
        self.stdout.write(json.dumps(made))
