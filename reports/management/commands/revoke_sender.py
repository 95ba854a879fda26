"""Take nothing more of an operator zone that runs apart."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from reports.management.arguments import refusing
from reports.transfer.actions import IntakeError, revoke_sender


class Command(BaseCommand):
    help = "Refuse further data from a sender. Its studies stay, and its name cannot be used again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")

    def handle(self, *, name: str, **options: Any) -> None:
        with refusing(IntakeError):
            sender = revoke_sender(name, by="command line")
        self.stdout.write(json.dumps({"sender": sender.name, "is_revoked": True}))
