"""Put a backup in place of the databases of this zone."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from mobility.base.errors import OperationsError
from mobility.base.messages import say
from mobility.operations.backup.folder import read_manifest
from mobility.operations.management.settling import add_ledger, closings, say_settled
from reports.accounts.actions import COMMAND_LINE
from reports.management.arguments import refusing


class Command(BaseCommand):
    help = (
        "Restore all databases of this zone from a backup while all services are stopped. Studies "
        "closed since then stay closed. Print JSON on standard output and the remaining steps on "
        "standard error."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, help="backup folder, as printed by backup")
        parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")
        parser.add_argument(
            "--replace", action="store_true", help="overwrite the current contents of the databases"
        )
        parser.add_argument(
            "--other-installation",
            action="store_true",
            help="the installation that made the backup continues to run elsewhere",
        )
        parser.add_argument(
            "--revoke-tokens", action="store_true", help="revoke all restored tokens and share links"
        )
        parser.add_argument(
            "--no-day-closed-since",
            action="store_true",
            help=(
                "confirm that no day of a study with presence noise was closed after the backup, so "
                "that these studies can continue"
            ),
        )
        add_ledger(parser)

    @refusing(OperationsError)
    def handle(self, *, folder: Path, **options: Any) -> None:
        from mobility.operations.backup.restore import restore  # noqa: PLC0415 - numba: 0.5 s, not for --help

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
        _say_lost(told)
        say_settled(told)
        self.stdout.write(json.dumps(told, ensure_ascii=False))


def _say_lost(told: dict[str, Any]) -> None:
    """Problems for people to act on now."""
    since, openings = told["backup_of"], told["openings"]
    say(f"The databases are restored to their state of {since}. Later changes are lost.")
    say(
        f"Access rights are also from that time. {len(openings['accounts'])} accounts, "
        f"{len(openings['api_tokens'])} API tokens, {openings['share_links']} share links and "
        f"{openings.get('feed_tokens', 0)} feed tokens are active, including any that were ended "
        "later. Review them. Everyone must sign in again."
    )
    if told["opt_outs_missing_since"]:
        say(
            f"PEOPLE WHO OPTED OUT AFTER {since} ARE COUNTED AGAIN: send every later opt-out list "
            "again before you upload anything else."
        )
    if told["waits_for"]:
        say("The ledger's signing key is missing. Run restore_keys before you start any service.")


def _ask(folder: Path) -> None:
    if not sys.stdin.isatty():
        raise OperationsError("nothing was restored: use --yes when there is no terminal to confirm on")
    if input(f"Replace the databases of this zone with {folder.name}? Type yes: ").strip() != "yes":
        raise OperationsError("nothing was restored")
