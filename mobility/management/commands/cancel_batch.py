"""Cancel a batch that has changed nothing yet."""

import json
from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from mobility.base.errors import MobilityError
from mobility.batches import finalisation
from mobility.management.batch_command import ACTOR
from mobility.management.patience import patiently
from mobility.vault.models.batch import Batch
from reports.management.arguments import refusing


class Command(BaseCommand):
    help = "Cancel a batch before it is merged. No data of the batch is kept."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("batch", type=UUID)
        parser.add_argument(
            "--give-up",
            action="store_true",
            help=(
                "mark a batch as failed if its key or storage is lost, even if it is partly merged. "
                "Merged rows count; sending the file again completes it"
            ),
        )

    @refusing(MobilityError)
    def handle(self, *args: Any, batch: UUID, give_up: bool, **options: Any) -> None:
        end, tries = finalisation.give_up if give_up else finalisation.cancel, 0

        def ended() -> str:
            nonlocal tries
            tries += 1
            found = Batch.objects.filter(pk=batch).first()
            if found is None:
                raise CommandError(f"there is no batch {batch}")
            if tries > 1 and found.is_final and f"by {ACTOR}" in found.failure:
                finalisation.settle(found)  # a database failed while the previous try ended it
            else:
                end(found, by=ACTOR)
                found.refresh_from_db()
            return found.state

        self.stdout.write(json.dumps({"batch": str(batch), "state": patiently(ended)}))
