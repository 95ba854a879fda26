"""Totals that wait to be handed over. Only where they are handed over: MOBILITY_ANALYST_URL."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from django.db.models import Count, Min
from django.utils import timezone

from mobility.models import VaultPublication
from mobility.operations.findings import Finding, Level

LATE_AFTER: Final = timedelta(hours=1)
ERROR_AFTER: Final = timedelta(days=1)


def waiting() -> Iterator[Finding]:
    """Publications that the analysts' server has not taken."""
    now = timezone.now()
    waits = VaultPublication.objects.filter(handed_over_at=None).order_by()
    rows = waits.values_list("study__slug").annotate(n=Count("pk"), oldest=Min("created_at"))
    found = []
    for slug, n, oldest in rows.order_by("study__slug"):
        if now - oldest > LATE_AFTER:
            level = Level.ERROR if now - oldest > ERROR_AFTER else Level.WARNING
            facts = {"publications": n, "oldest_s": round((now - oldest).total_seconds())}
            found.append(Finding(code="handover_waiting", level=level, subject=slug, facts=facts))
    yield from found or [Finding(code="handover_waiting", level=Level.OK)]
