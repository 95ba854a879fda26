"""Make a new key for the ledger after the old one was lost."""

import json
from typing import Any

from django.core.management.base import BaseCommand

from reports.ledger.actions import renew_key
from reports.ledger.key import LedgerKeyError
from reports.management.arguments import refusing


class Command(BaseCommand):
    help = (
        "Create a new signing key for the ledger after the old one was lost. The ledger records "
        "this. Earlier signed heads can then be compared by hash only."
    )

    def handle(self, **options: Any) -> None:
        with refusing(LedgerKeyError):
            public_key = renew_key(by="command line")
        self.stdout.write(json.dumps({"public_key": public_key}))
