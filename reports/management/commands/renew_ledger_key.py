"""Make a new key for the ledger after the old one was lost."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from reports.ledger.actions import renew_key
from reports.ledger.key import LedgerKeyError


class Command(BaseCommand):
    help = (
        "Create a new signing key for the ledger after the old one was lost. The ledger records "
        "this. Earlier signed heads can then be compared by hash only."
    )

    def handle(self, **options: Any) -> None:
        try:
            public_key = renew_key(by="command line")
        except LedgerKeyError as error:
            raise CommandError(str(error)) from None
        self.stdout.write(json.dumps({"public_key": public_key}))
