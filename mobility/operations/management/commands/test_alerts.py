"""Send a test message through each channel, and say what happened."""

import json
import secrets
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from mobility.operations.alerts.channels import ChannelError, Message, channels
from mobility.operations.alerts.sending import runbook_of, status_url


class Command(BaseCommand):
    help = "Send a test message through every alert channel that is set up."
    requires_migrations_checks = False

    def handle(self, *args: Any, **options: Any) -> None:
        found = channels()
        if not found:
            raise CommandError(
                "no channel is set up: name addresses in MOBILITY_ALERT_EMAIL_TO, or a server in "
                "MOBILITY_ALERT_WEBHOOK_URL"
            )
        results = []
        for channel in found:
            error = ""
            try:
                list(channel.send([_test_message()]))
            except ChannelError as problem:
                error = str(problem)
            results.append({"channel": channel.name, "told": not error, "error": error})
        self.stdout.write(json.dumps({"channels": results}))
        if failed := [str(result["channel"]) for result in results if not result["told"]]:
            raise CommandError(f"not told by {', '.join(failed)}: see docs/runbook/alert-untold.md")


def _test_message() -> Message:
    now = timezone.now().isoformat(timespec="seconds")
    return Message(
        id=secrets.token_hex(16),
        kind="test",
        at=now,
        zone=settings.MOBILITY_ZONE,
        code="alert_untold",
        level="ok",
        subject="",
        since=now,
        title="A test of alerts",
        what="Nothing is wrong: somebody ran test_alerts.",
        todo="",
        status_url=status_url(),
        runbook=runbook_of("alert_untold"),
    )
