"""Create a study from its file, and print what it is."""

import errno
import json
import os
from argparse import ArgumentParser
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from mobility.base.errors import MobilityError
from mobility.plans.studies import create_study
from reports.management.arguments import naming_files, refusing
from reports.privacy.budget.actions import BudgetExceededError
from reports.privacy.location_texts import noise_words
from reports.privacy.statement.locations import location_protection
from reports.studies.studyfile import StudyFileError, parse_study
from reports.transfer.studies import StudyExistsError


class Command(BaseCommand):
    help = "Create a study from a TOML file. The files that it names must be in the same folder."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)

    @refusing(StudyFileError, StudyExistsError, BudgetExceededError, MobilityError)
    @naming_files()
    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        definition = parse_study(
            file.read_bytes(),
            filename=file.name,
            read=partial(_beside, file),
            default_min_publication=settings.MOBILITY_MIN_PUBLICATION,
            note=lambda text: self.stderr.write(f"note: {text}", self.style.WARNING),
        )
        created = create_study(definition, by="command line")
        located = location_protection(definition.plan_spec())
        for sentence in [] if located is None else noise_words(located):
            self.stderr.write(f"note: {sentence}")
        self.stdout.write(json.dumps(created))


def _beside(study_file: Path, name: str) -> bytes:
    """Content of a file in the study file's folder or below it; links that lead elsewhere are not followed.

    Raises
    ------
    FileNotFoundError : there is none
    """
    folder = study_file.parent.resolve()
    path = (folder / name).resolve()
    if not path.is_relative_to(folder):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    return path.read_bytes()
