"""Close a study permanently: destroy its key and what the key sealed, and print the erasure certificate."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from mobility.base.errors import MobilityError
from mobility.management.batch_command import ACTOR
from mobility.management.patience import patiently
from mobility.vault.queries import find_study
from reports.management.arguments import refusing


class Command(BaseCommand):
    help = (
        "Close a study: destroy its key and data, keep its reports, and print the erasure "
        "certificate (docs/certificate.schema.json). Run the command again to print the certificate "
        "again."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("study", help="slug of the study")
        parser.add_argument(
            "--cancel-batches", action="store_true", help="cancel batches that have changed nothing yet"
        )
        parser.add_argument(
            "--drop-unpublished", action="store_true", help="discard days that were never published"
        )
        parser.add_argument(
            "--key-is-lost",
            action="store_true",
            help="close the study even if its key is missing from the keystore",
        )
        parser.add_argument(
            "--after-restore",
            action="store_true",
            help=(
                "after a restore, if the study was already closed or does not match its totals: hand "
                "over the matching data and erase the rest"
            ),
        )

    @refusing(MobilityError)
    def handle(self, *args: Any, study: str, **options: Any) -> None:
        from mobility.plans.closing import Leave, close_study  # noqa: PLC0415 - numba: 0.5 s, not for --help

        leave = Leave(
            cancel_batches=options["cancel_batches"],
            drop_unpublished=options["drop_unpublished"],
            lost_key=options["key_is_lost"],
            came_back=options["after_restore"],
        )
        certificate = patiently(lambda: close_study(find_study(study), by=ACTOR, leave=leave))
        self.stdout.write(json.dumps(certificate, ensure_ascii=False, indent=1))
