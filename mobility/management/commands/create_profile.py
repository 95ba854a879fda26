"""Create an extract profile from its file, and print what it is."""

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from mobility.base.errors import MobilityError
from mobility.extracts.profiles.parse import parse_profile
from mobility.uploads.profiles import create_profile
from mobility.vault.queries import find_study
from reports.management.arguments import naming_files, refusing
from reports.studies.studyfile import StudyDefinition


class Command(BaseCommand):
    help = "Create an extract profile, which describes how to read the files of a source, from a TOML file."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("study", help="slug of the study")
        parser.add_argument("file", type=Path)

    @refusing(MobilityError)
    @naming_files()
    def handle(self, *args: Any, study: str, file: Path, **options: Any) -> None:
        row = find_study(study)
        definition = StudyDefinition.from_json(row.definition)
        typed = parse_profile(file.read_bytes(), filename=file.name, definition=definition)
        create_profile(typed, study=row, by="command line")
        roles = {"subscriber": typed.subscriber, "timestamp": typed.timestamp, "cell": typed.cell}
        columns = {role: column for role, column in roles.items() if column}
        columns |= {f"indicator.{slug}": column for slug, column in typed.columns.items()}
        columns |= {f"indicator.{slug}.operator": column for slug, column in typed.operators.items()}
        made = {"study": row.slug, "profile": typed.name, "kind": typed.kind, "columns": columns}
        self.stdout.write(json.dumps(made))
