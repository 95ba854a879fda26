"""Let a sender continue with studies of a main database that it shared with this server."""

import json
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from reports.management.arguments import refusing
from reports.transfer.actions import IntakeError, adopt_studies


class Command(BaseCommand):
    help = (
        "Assign studies without a sender to a registered sender, once, when zones stop sharing a "
        "main database (docs/upgrading.md). Prints their slugs."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("sender", help="name given to register_sender")

    def handle(self, *, sender: str, **options: Any) -> None:
        if settings.HAS_VAULT:
            raise CommandError(
                "adopt_studies must run where MOBILITY_ZONE is analyst: the vault of this installation "
                "publishes its studies itself"
            )
        with refusing(IntakeError):
            slugs = adopt_studies(sender, by="command line")
        self.stdout.write(json.dumps({"sender": sender, "studies": slugs}))
