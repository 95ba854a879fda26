"""Check that the ledger, or an exported one, is complete and unchanged."""

import argparse
import json
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from reports.base.commands import ReadingCommand
from reports.ledger.chain import SignedHead
from reports.ledger.check import Chain, check_lines, read_head
from reports.ledger.checks import check_ledger
from reports.ledger.key import LedgerKeyError, read_public_pem
from reports.management.arguments import refusing


class Command(ReadingCommand):
    help = (
        "Recompute the hash chain of the ledger and check its signed head. Names the first wrong "
        "entry, and exits with 1 if anything is wrong."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--file", type=Path, metavar="LEDGER.jsonl", help="check this export instead of the database"
        )
        parser.add_argument(
            "--head",
            type=Path,
            metavar="FILE",
            help="check that the ledger continues from this earlier signed head",
        )
        parser.add_argument(
            "--public-key",
            type=Path,
            metavar="FILE",
            help="public key in PEM; default: that of this installation",
        )

    def handle(self, **options: Any) -> None:
        with refusing(OSError, ValueError, LedgerKeyError):
            report = _checked(options["file"], head=options["head"], public_key=options["public_key"])
        self.stdout.write(json.dumps(report.to_json(), ensure_ascii=False, indent=1))
        if report.problem is not None:
            where = "" if report.problem.number is None else f"entry {report.problem.number}: "
            raise CommandError(f"the verification of the ledger failed: {where}{report.problem.what}")


def _checked(file: Path | None, *, head: Path | None, public_key: Path | None) -> Chain:
    key = None if public_key is None else read_public_pem(public_key.read_bytes())
    earlier = None if head is None else _head_in(head)
    if file is None:
        return check_ledger(public_key=key, earlier=earlier)
    with file.open("rb") as lines:
        return check_lines(lines, public_key=key, earlier=earlier)


def _head_in(file: Path) -> SignedHead:
    try:
        return read_head(file.read_bytes())
    except ValueError as error:
        raise ValueError(f"--head {file}: {error}") from None
