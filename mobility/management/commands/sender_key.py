"""Print what an analyst server has to know of this operator zone."""

import json
import sys
from base64 import b64encode
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from mobility.base.errors import MobilityError
from mobility.batches.publication.analyst_server import sender_key
from reports.base.commands import ReadingCommand
from reports.management.arguments import refusing


class Command(ReadingCommand):
    help = "Print the name and public key of this operator zone, for register_sender on the analyst server."

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.HANDS_OVER:
            raise CommandError(
                "this installation does not hand over totals: set MOBILITY_ZONE to operator and "
                "MOBILITY_ANALYST_URL to the address of the analyst server"
            )
        with refusing(MobilityError):
            public_key = b64encode(sender_key().public_key().public_bytes_raw()).decode()
        sys.stderr.write("on the analyst server: manage.py register_sender NAME PUBLIC_KEY\n")
        self.stdout.write(json.dumps({"sender": settings.MOBILITY_SENDER_NAME, "public_key": public_key}))
