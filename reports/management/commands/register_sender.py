"""Let an operator zone that runs apart hand its totals over to this server."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from reports.management.arguments import refusing
from reports.transfer.actions import IntakeError, register_sender


class Command(BaseCommand):
    help = "Register the public key of an operator zone (printed there by sender_key)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="MOBILITY_SENDER_NAME of the operator zone")
        parser.add_argument("public_key", help="Ed25519, 32 bytes in base64")
        parser.add_argument("--replace", action="store_true", help="replace the key of a registered sender")

    def handle(self, *, name: str, public_key: str, **options: Any) -> None:
        with refusing(IntakeError):
            sender = register_sender(
                name, public_key=public_key, by="command line", replaces=options["replace"]
            )
        self.stdout.write(json.dumps({"sender": sender.name, "public_key": sender.public_key}))
