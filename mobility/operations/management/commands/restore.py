"""Put a backup in place of the databases of this zone."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from mobility.base.errors import OperationsError
from mobility.base.messages import say
from mobility.operations.backup.folder import read_manifest
from mobility.operations.management.settling import add_ledger, closings, say_settled
from reports.accounts.actions import COMMAND_LINE


class Command(BaseCommand):
    help = (
        "Restore all databases of this zone from a backup, with everything stopped. Studies "
        "closed since then stay closed. Prints JSON, and the remaining steps on standard error."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, help="as printed by backup")
        parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")
        parser.add_argument(
            "--replace", action="store_true", help="overwrite the present contents of the databases"
        )
        parser.add_argument(
            "--other-installation",
            action="store_true",
            help="the installation of the backup keeps running elsewhere",
        )
        parser.add_argument(
            "--revoke-tokens", action="store_true", help="revoke all restored tokens and share links"
        )
        parser.add_argument(
            "--no-day-closed-since",
            action="store_true",
            help=(
                "confirm that no day of a study with presence noise was closed since the backup, so that "
                "these studies continue"
            ),
        )
        add_ledger(parser)

    def handle(self, *, folder: Path, **options: Any) -> None:
        from mobility.operations.backup.restore import restore  # noqa: PLC0415 - numba: 0.5 s, not for --help

        try:
            closed = closings(options, head=read_manifest(folder).ledger_head)
            if not options["yes"]:
                _ask(folder)
            told = restore(
                folder.resolve(),
                by=COMMAND_LINE,
                replaces=options["replace"],
                stays_other=options["other_installation"],
                revokes=options["revoke_tokens"],
                closed=closed,
                no_day_closed=options["no_day_closed_since"],
            )
        except OperationsError as error:
            raise CommandError(str(error)) from None
        _say_lost(told)
        say_settled(told)
        self.stdout.write(json.dumps(told, ensure_ascii=False))


def _say_lost(told: dict[str, Any]) -> None:
    """Problems for people to act on now."""
    since, openings = told["backup_of"], told["openings"]
    say(f"The databases are as they were on {since}: what was done since then is lost.")
    say(
        f"Rights are those of that time: {len(openings['accounts'])} accounts, {len(openings['api_tokens'])} "
        f"API tokens, {openings['share_links']} share links and {openings.get('feed_tokens', 0)} feed tokens "
        "work that may have been ended since. Go through them. Everybody has to sign in again."
    )
    if told["opt_outs_missing_since"]:
        say(
            f"PEOPLE WHO OPTED OUT AFTER {since} ARE COUNTED AGAIN: send every opt-out list since then once "
            "more, before anything else is taken in."
        )
    if told["waits_for"]:
        say("The key that signs the ledger is missing: run restore_keys before anything is started.")


def _ask(folder: Path) -> None:
    if not sys.stdin.isatty():
        raise OperationsError("nothing was restored: say --yes where nobody can be asked")
    if input(f"Put {folder.name} in place of the databases of this zone? Type yes: ").strip() != "yes":
        raise OperationsError("nothing was restored")
