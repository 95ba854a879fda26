"""Back up the databases of this zone."""

import argparse
import json
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from mobility.base.errors import OperationsError
from mobility.operations.backup.making import make_backup
from reports.accounts.actions import COMMAND_LINE
from reports.management.arguments import refusing


class Command(BaseCommand):
    help = (
        "Back up the databases of this zone while it runs, and remove old backups. Keys are not "
        "included: see escrow_keys."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        out = "folder to write the backup to; default: MOBILITY_BACKUP_DIR"
        parser.add_argument("--out", type=Path, metavar="FOLDER", help=out)
        keep = "number of backups to keep at any age, including this one"
        parser.add_argument("--keep", type=_at_least_one, metavar="N", help=keep)

    def handle(self, *, out: Path | None, keep: int | None, **options: Any) -> None:
        with refusing(OperationsError, after="the backup failed: "):
            made = make_backup((out or settings.MOBILITY_BACKUP_DIR).resolve(), by=COMMAND_LINE, keep=keep)
        self.stdout.write(json.dumps(made.to_json()))
        if made.problem:
            raise CommandError(f"the backup was made but could not be recorded in the ledger: {made.problem}")


def _at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, got {text!r}")
    return int(text)
