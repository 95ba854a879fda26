"""Make a new key for the ledger after the old one was lost."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from reports.ledger_key import LedgerKeyError
from reports.services.ledger import renew_key


class Command(BaseCommand):
    help = (
        "Make a new key that signs the ledger, after the old one was lost. The ledger says so for ever: "
        "signed heads from before can no longer be compared by their signature, only by their hash."
    )

    def handle(self, **options: Any) -> None:
        try:
            public_key = renew_key(by="command line")
        except LedgerKeyError as error:
            raise CommandError(str(error)) from None
        self.stdout.write(json.dumps({"public_key": public_key}))
