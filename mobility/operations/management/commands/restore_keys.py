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


class Command(BaseCommand):
    help = (
        "Put missing keys back after a restore. Destroyed keys do not come back; present keys are "
        "not replaced."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, help="as printed by escrow_keys")
        parser.add_argument(
            "--private-key", type=Path, required=True, metavar="FILE.pem", help="private key of the recipient"
        )
        parser.add_argument(
            "--password-file", type=Path, metavar="FILE", help="file with the password of that key"
        )
        add_ledger(parser)
        parser.add_argument(
            "--without-asking",
            action="store_true",
            help=("in separate zones: continue if the analyst server does not answer"),
        )

    def handle(self, *, folder: Path, private_key: Path, **options: Any) -> None:
        from mobility.operations.backup import escrow_restore  # noqa: PLC0415 - numba: 0.5 s, not for --help

        file = options["password_file"]
        try:
            password = None if file is None else file.read_bytes().rstrip(b"\r\n")
            key = read_private_key(private_key.read_bytes(), password=password)
            told = escrow_restore.restore_keys(
                folder.resolve(),
                private_key=key,
                by=COMMAND_LINE,
                closed=closings(options).studies(),
                without_asking=options["without_asking"],
            )
        except (OSError, OperationsError) as error:
            raise CommandError(f"no key was put back: {error}") from None
        for key_id in told["refused"]:
            say(f"{key_id} was destroyed and stays so: destroy its copy in the escrow, too.")
        for key_id in told["differs"]:
            say(f"{key_id}: another key is here under that name, and stays.")
        if options["without_asking"]:
            say(
                "Keys were put back whether or not the analysts' server answered: where it was not asked, a "
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
            "the escrow alone calls these keys destroyed, or the analysts' server alone calls their studies "
            f"closed, and they are open here: {', '.join(told['disputed'])}. They were left as they are. "
            "Compare with a ledger kept elsewhere: --ledger destroys the keys of the studies that it names. "
            "Against the server's word alone, --without-asking puts them back"
        )
    if told["unasked"]:
        problems.append(
            "the analysts' server does not answer whether studies were closed, so these keys were not put "
            f"back: {', '.join(told['unasked'])}. Run this again when it does, or with --without-asking"
        )
    return problems
