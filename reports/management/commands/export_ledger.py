"""Write the ledger, with its signed head, for anyone who wants to check it elsewhere."""

import argparse
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from reports.audit.export import ledger_lines
from reports.base.commands import ReadingCommand
from reports.ledger.key import LedgerKeyError, own_public_key, public_pem
from reports.ledger.models import LedgerEntry
from reports.management.arguments import refusing


class Command(ReadingCommand):
    help = (
        "Write the ledger as JSON Lines, ending with the signed head; docs/ledger.md explains how "
        "to check it."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--study",
            metavar="SLUG",
            help="of entries of other studies, write only the hash",
        )
        parser.add_argument(
            "--out", type=Path, metavar="FILE", help="file to write; default: standard output"
        )
        parser.add_argument(
            "--public-key",
            type=Path,
            metavar="FILE",
            help="also write the public key that verifies the signatures",
        )

    def handle(self, **options: Any) -> None:
        study = options["study"]
        if study is not None and not LedgerEntry.objects.filter(study=study).exists():
            raise CommandError(f"--study must be a study with entries in the ledger, got {study}")
        with refusing(OSError, LedgerKeyError):
            self._write(study, out=options["out"], public_key=options["public_key"])

    def _write(self, study: str | None, *, out: Path | None, public_key: Path | None) -> None:
        if public_key is not None:
            key = own_public_key()
            if key is None:
                raise CommandError("there is no key yet: it is created with the first entry of the ledger")
            public_key.write_bytes(public_pem(key))
        with ExitStack() as stack:
            file = stack.enter_context(out.open("w", encoding="utf-8")) if out else self.stdout
            for line in ledger_lines(study=study):
                file.write(line)
