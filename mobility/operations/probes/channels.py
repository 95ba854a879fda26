"""Check the alert channels: do they accept messages."""

from collections.abc import Iterator
from typing import Final

from django.conf import settings
from django.utils import timezone

from mobility.operations.alerts.channels import channels
from mobility.operations.findings import Fact, Finding, Level, finding
from mobility.operations.models import AlertChannel

FAILURES_IN_A_ROW: Final = 2  # one alone is a server that starts again


def telling() -> Iterator[Finding]:
    """Return whether each channel that is set up took what it was last told."""
    rows = {row.name: row for row in AlertChannel.objects.filter(zone=settings.MOBILITY_ZONE)}
    for channel in channels():
        row = rows.get(channel.name)
        if row is not None and row.failures >= FAILURES_IN_A_ROW and row.failing_since is not None:
            failing_s = round((timezone.now() - row.failing_since).total_seconds())
            facts: dict[str, Fact] = {"error": row.error, "failures": row.failures, "failing_s": failing_s}
            yield finding("alert_untold", Level.ERROR, channel.name, **facts)
        else:
            yield finding("alert_untold", subject=channel.name)
