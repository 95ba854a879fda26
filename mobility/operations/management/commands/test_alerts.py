"""Send a test message through each channel, and say what happened."""

import json
import secrets
from dataclasses import replace
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from mobility.operations.alerts.channels import ChannelError, Message, channels
from mobility.operations.alerts.sending import message
from mobility.operations.findings import finding


class Command(BaseCommand):
    help = "Send a test message through every configured alert channel."
    requires_migrations_checks = False

    def handle(self, *args: Any, **options: Any) -> None:
        found = channels()
        if not found:
            raise CommandError(
                "no alert channel is configured: set MOBILITY_ALERT_EMAIL_TO or MOBILITY_ALERT_WEBHOOK_URL"
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
            raise CommandError(f"not sent by {', '.join(failed)}: see docs/runbook/alert-untold.md")


def _test_message() -> Message:
    now, text = timezone.now(), "This is a test sent with test_alerts. No action is needed."
    usual = message(finding("alert_untold"), kind="test", since=now, now=now, name=secrets.token_hex(16))
    return replace(usual, title="Test alert", what=text)
