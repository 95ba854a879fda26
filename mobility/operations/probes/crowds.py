"""Zones that hold, or may hold, more people than their limit, by published figures and forecasts.

Only where there are reports. A zone is found until it is clearly below its limit, or until nothing was
published for a day.
"""

from collections.abc import Iterator

from mobility.operations.findings import Finding, Level, finding
from reports.forecasts.crowds import Crowded, crowded
from reports.forecasts.models import CrowdLimit


def full() -> Iterator[Finding]:
    """Limits that are or may be exceeded."""
    found = crowded()
    for each in found:
        yield _full(each)
    if not found:
        yield finding("zone_crowded", limits=CrowdLimit.objects.count())


def _full(each: Crowded) -> Finding:
    limit = each.limit
    ahead = f" (+{limit.ahead})" if limit.ahead else ""
    return finding(
        "zone_crowded",
        Level.ERROR if each.is_certain else Level.WARNING,
        f"{each.study.slug}: {each.zone}{ahead}",
        why="exceeds" if each.is_certain else "may_exceed",
        study=each.study.slug,
        zone=each.zone,
        time=f"{each.starts_at:%Y-%m-%d %H:%M}",
        slots_ahead=limit.ahead,
        capacity=limit.capacity,
        low=max(round(limit.low or 0), 0),
        high=max(round(limit.high or 0), 0),
    )
