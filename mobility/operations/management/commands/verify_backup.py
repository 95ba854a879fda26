"""Check a backup without restoring it."""

import argparse
import json
from pathlib import Path
from typing import Any

from mobility.base.errors import OperationsError
from mobility.operations.backup.making import verify_backup
from reports.base.commands import ReadingCommand
from reports.management.arguments import refusing


class Command(ReadingCommand):
    help = "Check that a backup is complete, unchanged and readable."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, help="backup folder, as printed by backup")

    def handle(self, *, folder: Path, **options: Any) -> None:
        with refusing(OperationsError, after="the backup is not valid: "):
            manifest = verify_backup(folder.resolve())
        told = {
            "ok": True,
            "made_at": manifest.made_at.isoformat(),
            "zone": manifest.zone,
            "installation": manifest.installation,
            "software": dict(manifest.software),
            "rows": {part.alias: sum(part.rows.values()) for part in manifest.parts},
            "keys": manifest.keys,
            "ledger_head": manifest.ledger_head,
        }
        self.stdout.write(json.dumps(told))
