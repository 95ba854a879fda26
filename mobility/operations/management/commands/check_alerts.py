"""Check once, and send the messages due: for a timer, in case that no worker does."""

import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand


class Command(BaseCommand):
    help = "Check for problems and send the alerts that are due."
    # It must report a database that does not answer, and settings that keep servers from starting.
    requires_migrations_checks = False
    requires_system_checks: tuple[str, ...] = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--now", action="store_true", help="check even if another process has just checked"
        )

    def handle(self, *args: Any, now: bool, **options: Any) -> None:
        from mobility.operations.alerts import rules as alerts  # noqa: PLC0415 - Celery: 0.3 s, not for --help

        after_s = 0 if now else settings.MOBILITY_ALERT_EVERY_S * 0.9
        outcome = alerts.check() if alerts.take_turn(after_s=after_s) else None
        answer = {"looked": outcome is not None} | (asdict(outcome) if outcome else {})
        self.stdout.write(json.dumps(answer))
