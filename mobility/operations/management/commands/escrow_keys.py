"""Put the keys into escrow, sealed for a public key."""

import argparse
import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from mobility.base.errors import OperationsError
from mobility.operations.backup.escrow import damaged_keys, make_escrow, read_recipient
from reports.accounts.actions import COMMAND_LINE
from reports.management.arguments import refusing


class Command(BaseCommand):
    help = (
        "Copy the study keys and the signing keys into a new folder that only the "
        "recipient's private key can open."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--to", type=Path, required=True, metavar="FOLDER", help="folder to write the escrow to"
        )
        parser.add_argument(
            "--recipient", type=Path, required=True, metavar="PUBLIC.pem", help="X25519 public key"
        )

    def handle(self, *, to: Path, recipient: Path, **options: Any) -> None:
        with refusing(OSError, OperationsError, after="the escrow failed: "):
            key = read_recipient(recipient.read_bytes())
            folder, listed = make_escrow(to.resolve(), recipient=key, by=COMMAND_LINE)
        told: dict[str, Any] = {
            "escrow": str(folder),
            "keys": sorted(listed.keys),
            "destroyed": listed.destroyed,
            "damaged": damaged_keys(),
            "recipient": listed.recipient,
        }
        self.stdout.write(json.dumps(told))
        if told["damaged"]:
            raise CommandError(
                "the escrow was made, but these keys are damaged and not in it: "
                f"{', '.join(told['damaged'])}. Restore them from an older escrow (restore_keys)"
            )
