"""Put keys back from an escrow, but none that was destroyed."""

import argparse
import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from mobility.base.errors import OperationsError
from mobility.base.messages import say
from mobility.operations.backup.escrow import read_private_key
from mobility.operations.management.settling import add_ledger, closings, say_settled
from reports.accounts.actions import COMMAND_LINE
from reports.management.arguments import refusing


class Command(BaseCommand):
    help = (
        "Restore missing keys after a restore. Destroyed keys are not restored; existing keys are "
        "not replaced."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, help="escrow folder, as printed by escrow_keys")
        parser.add_argument(
            "--private-key", type=Path, required=True, metavar="FILE.pem", help="the recipient's private key"
        )
        parser.add_argument(
            "--password-file", type=Path, metavar="FILE", help="file with the password of the private key"
        )
        add_ledger(parser)
        parser.add_argument(
            "--without-asking",
            action="store_true",
            help="in separate zones: continue if the analyst server is not responding",
        )

    def handle(self, *, folder: Path, private_key: Path, **options: Any) -> None:
        from mobility.operations.backup import escrow_restore  # noqa: PLC0415 - numba: 0.5 s, not for --help

        file = options["password_file"]
        with refusing(OSError, OperationsError, after="no key was restored: "):
            password = None if file is None else file.read_bytes().rstrip(b"\r\n")
            key = read_private_key(private_key.read_bytes(), password=password)
            told = escrow_restore.restore_keys(
                folder.resolve(),
                private_key=key,
                by=COMMAND_LINE,
                closed=closings(options).studies(),
                without_asking=options["without_asking"],
            )
        for key_id in told["refused"]:
            say(f"{key_id} was destroyed and is not restored. Destroy its copy in the escrow, too.")
        for key_id in told["differs"]:
            say(f"{key_id}: a different key with this name exists here and was kept.")
        if options["without_asking"]:
            say(
                "Keys were restored without asking the analyst server where it did not respond. A "
                "study that was closed there may be open again here."
            )
        say_settled(told)
        self.stdout.write(json.dumps(told, ensure_ascii=False))
        if problems := _problems(told):
            raise CommandError(". ".join(problems))


def _problems(told: dict[str, Any]) -> list[str]:
    """Return why the command fails."""
    problems = []
    if told["disputed"]:
        problems.append(
            "only the escrow lists these keys as destroyed, or only the analyst server reports their "
            f"studies as closed, but they are open here: {', '.join(told['disputed'])}. They were not "
            "changed. Compare them with a ledger kept elsewhere: --ledger destroys the keys of the "
            "studies that it names. To restore keys although the server reports their studies as "
            "closed, use --without-asking"
        )
    if told["unasked"]:
        problems.append(
            "the analyst server did not report whether studies were closed, so these keys were not "
            f"restored: {', '.join(told['unasked'])}. Run the command again when the server responds, "
            "or use --without-asking"
        )
    return problems
