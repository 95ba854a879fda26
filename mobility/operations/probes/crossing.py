"""Totals that wait to be handed over. Only where they are handed over: MOBILITY_ANALYST_URL."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from django.db.models import Count, Min
from django.utils import timezone

from mobility.operations.findings import Finding, Level, finding
from mobility.vault.models.handover import Handover
from mobility.vault.models.outbox import VaultPublication

LATE_AFTER: Final = timedelta(hours=1)
ERROR_AFTER: Final = timedelta(days=1)


def waiting() -> Iterator[Finding]:
    """Publications that the analysts' server has not taken, or claims although they were never sent."""
    now = timezone.now()
    waits = VaultPublication.objects.filter(handed_over_at=None).order_by()
    rows = waits.values_list("study__slug").annotate(n=Count("pk"), oldest=Min("created_at"))
    ahead = Handover.objects.filter(is_ahead=True, study__certificate__isnull=True).order_by("study__slug")
    slugs = list(ahead.values_list("study__slug", flat=True))
    found = [finding("handover_waiting", Level.ERROR, slug, why="ahead") for slug in slugs]
    for slug, n, oldest in rows.order_by("study__slug"):
        if now - oldest > LATE_AFTER and slug not in slugs:
            level = Level.ERROR if now - oldest > ERROR_AFTER else Level.WARNING
            oldest_s = round((now - oldest).total_seconds())
            found.append(finding("handover_waiting", level, slug, publications=n, oldest_s=oldest_s))
    yield from found or [finding("handover_waiting")]
