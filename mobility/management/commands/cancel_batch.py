"""Cancel a batch that has changed nothing yet."""

import json
from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from mobility.errors import MobilityError
from mobility.management.batch_command import ACTOR
from mobility.models import Batch
from mobility.services.endings import cancel


class Command(BaseCommand):
    help = "Cancel a batch that is being received, waits, or is being read; nothing of it is kept."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("batch", type=UUID)

    def handle(self, *args: Any, batch: UUID, **options: Any) -> None:
        found = Batch.objects.filter(pk=batch).first()
        if found is None:
            raise CommandError(f"there is no batch {batch}")
        try:
            cancel(found, by=ACTOR)
        except MobilityError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(json.dumps({"batch": str(batch), "state": Batch.State.CANCELLED.value}))
