"""Make a token with which a program may send files of a study."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from mobility.base.errors import MobilityError
from mobility.management.batch_command import ACTOR
from mobility.uploads.feeds.actions import create_token
from mobility.vault.queries import find_study
from reports.management.arguments import refusing


class Command(BaseCommand):
    help = "Create a token for automatic uploads to a study. The token is shown once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("study", help="slug of the study")
        parser.add_argument("name", help="program that uses the token")
        parser.add_argument("--days", type=int, default=365, help="days until the token expires")

    def handle(self, *args: Any, study: str, name: str, days: int, **options: Any) -> None:
        with refusing(MobilityError):
            token, text = create_token(find_study(study), name=name, days=days, by=ACTOR)
        made = {"study": study, "name": token.name, "token": text, "expires_at": token.expires_at.isoformat()}
        self.stdout.write(json.dumps(made))
