"""Put a backup in place of the databases of this zone."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from mobility.embedded.messages import say
from mobility.operations.backup_folder import read_manifest
from mobility.operations.errors import OperationsError
from mobility.operations.restore import restore
from mobility.operations.restore_closings import NONE, closed_in, known_keys

ACTOR = "command line"


class Command(BaseCommand):
    help = (
        "Restore all databases of this zone from one backup, while nothing works on them. Studies that were "
        "closed since stay closed. Prints JSON; what people have to do, it says in words."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, help="as backup printed it")
        parser.add_argument("--yes", action="store_true", help="do not ask")
        parser.add_argument("--replace", action="store_true", help="lose what the databases hold now")
        parser.add_argument(
            "--revoke-tokens", action="store_true", help="end all tokens and share links that it brings back"
        )
        parser.add_argument(
            "--no-day-closed-since",
            action="store_true",
            help="no day of any study with presence noise was closed since the backup: such studies go on",
        )
        parser.add_argument(
            "--ledger",
            type=Path,
            metavar="LEDGER.jsonl",
            help="export of a ledger that knows more, as of the analysts' server: which studies were closed",
        )
        parser.add_argument(
            "--ledger-key",
            type=Path,
            metavar="FILE.pem",
            help="public key of that ledger, if another installation signs it",
        )

    def handle(self, *, folder: Path, ledger: Path | None, **options: Any) -> None:
        try:
            closed = NONE
            if ledger:
                head = read_manifest(folder).ledger_head
                closed = closed_in(ledger, known=known_keys(head=head, pem=options["ledger_key"]))
            if not options["yes"]:
                _ask(folder)
            told = restore(
                folder.resolve(),
                by=ACTOR,
                replaces=options["replace"],
                revokes=options["revoke_tokens"],
                closed=closed,
                no_day_closed=options["no_day_closed_since"],
            )
        except OperationsError as error:
            raise CommandError(str(error)) from None
        for line in words(told):
            say(line)
        self.stdout.write(json.dumps(told, ensure_ascii=False))


def words(told: dict[str, Any]) -> list[str]:
    """What people have to know and do now."""
    since, openings = told["backup_of"], told["openings"]
    lines = [
        f"The databases are as they were on {since}: what was done since then is lost.",
        f"Rights are those of that time: {len(openings['accounts'])} accounts, {len(openings['api_tokens'])} "
        f"API tokens, {openings['share_links']} share links and {openings.get('feed_tokens', 0)} feed tokens "
        "work that may have been ended since. Go through them. Everybody has to sign in again.",
    ]
    if told["opt_outs_missing_since"]:
        lines.append(
            f"PEOPLE WHO OPTED OUT AFTER {since} ARE COUNTED AGAIN: send every opt-out list since then once "
            "more, before anything else is taken in."
        )
    if told["waits_for"]:
        lines.append("The key that signs the ledger is missing: run restore_keys before anything is started.")
    return lines + settled_words(told)


def settled_words(told: dict[str, Any]) -> list[str]:
    """What was settled, and what was not."""
    lines = []
    if told.get("studies_closed_again"):
        lines.append(f"Closed before, and closed again: {', '.join(told['studies_closed_again'])}.")
    lines += [
        f"{slug}: {n} batches were under way: send their files again."
        for slug, n in told.get("batches_ended", {}).items()
    ]
    lines += [
        f"{slug}: {why}"
        for slug, why in {**told.get("studies_stopped", {}), **told.get("not_handed_over", {})}.items()
    ]
    if told.get("keys_missing"):
        lines.append(
            f"Keys of open studies are missing ({', '.join(told['keys_missing'])}): run restore_keys."
        )
    return lines


def _ask(folder: Path) -> None:
    if not sys.stdin.isatty():
        raise OperationsError("nothing was restored: say --yes where nobody can be asked")
    if input(f"Put {folder.name} in place of the databases of this zone? Type yes: ").strip() != "yes":
        raise OperationsError("nothing was restored")
