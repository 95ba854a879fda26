"""Crowded zones: published counts and forecasts against the number of people that a zone holds.

A zone may exceed its limit when the upper end of the 95% interval does, and exceeds it when the lower end
does. A state ends only when its end of the interval is clearly below the limit, so that no alert comes and
goes with the noise. Published figures only: it costs no epsilon.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from django.db import transaction
from django.utils import timezone

from reports.forecasts.models import CrowdLimit
from reports.forecasts.queries import SlotForecast, slot_forecast
from reports.forecasts.series import longer_clock
from reports.slots.queries import SlotStatus, SlotZone, has_slots, presence
from reports.studies.models import Study
from reports.studies.names import in_language

State = CrowdLimit.State
CLEARLY_BELOW: Final = 0.95  # of the limit
LASTS: Final = timedelta(days=1)  # without newer slots, nothing more is known of now
Ends = tuple[float, float]


def state_after(before: str, *, low: float, high: float, capacity: int) -> CrowdLimit.State:
    """State of a zone whose people are between low and high, after an earlier state."""

    def is_above(end: float, *, was: bool) -> bool:
        return end > capacity * (CLEARLY_BELOW if was else 1)

    if is_above(low, was=before == State.EXCEEDS):
        return State.EXCEEDS
    return State.MAY_EXCEED if is_above(high, was=before != State.BELOW) else State.BELOW


@transaction.atomic
def judge(study: Study, *, now: datetime | None = None) -> None:
    """Compare what is published and forecast with all limits of a study."""
    limits = list(CrowdLimit.objects.select_for_update().filter(slots__study=study))
    if not limits:
        return
    ahead = slot_forecast(study, days=1)
    for limit in limits:
        slot, ends = _ends(ahead, limit)
        if slot is None:
            continue  # no figures: what was known before may still be so
        if slot != limit.slot:  # a forecast may be computed again for the same slot
            limit.slot, limit.judged_at = slot, now or timezone.now()
        limit.low, limit.high = ends or (None, None)
        if ends is None:
            limit.state = State.BELOW
        else:
            limit.state = state_after(limit.state, low=ends[0], high=ends[1], capacity=limit.capacity)
        limit.save()


def set_limit(study: Study, *, zone: SlotZone, ahead: int, capacity: int | None, by: str) -> None:
    """Set, change or (None) remove the limit of a zone; a changed one starts again."""
    if not has_slots(study):
        raise ValueError(f"study {study.slug!r} must have slots")
    wanted = CrowdLimit.objects.filter(slots__study=study, zone=zone.place, ahead=ahead)
    if capacity is None:
        wanted.delete()
        return
    if wanted.filter(capacity=capacity).exists():
        return
    CrowdLimit.objects.update_or_create(
        slots=study.slots,
        zone=zone.place,
        ahead=ahead,
        defaults={
            "capacity": capacity, "set_by": by, "state": State.BELOW,
            "slot": None, "low": None, "high": None, "judged_at": None,
        },
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowded:
    """A limit that is or may be exceeded; `starts_at` in local time."""

    study: Study
    zone: str
    zone_fr: str | None
    limit: CrowdLimit
    starts_at: datetime

    @property
    def shown_zone(self) -> str:
        """Name of the zone in the active language."""
        return in_language(self.zone, self.zone_fr)

    @property
    def is_certain(self) -> bool:
        return self.limit.state == State.EXCEEDS


def crowded(studies: Sequence[Study] | None = None, *, now: datetime | None = None) -> list[Crowded]:
    """Limits of open studies (by default all) that are or may be exceeded by what was published lately."""
    since = (now or timezone.now()) - LASTS
    found = CrowdLimit.objects.filter(judged_at__gte=since, slots__study__state=Study.State.OPEN)
    found = found.exclude(state=State.BELOW).select_related("slots__study")
    if studies is not None:
        found = found.filter(slots__study__in=studies)
    return [_crowded(limit) for limit in found.order_by("slots__study__slug", "zone", "ahead")]


def _crowded(limit: CrowdLimit) -> Crowded:
    study, spec = limit.slots.study, limit.slots.plan
    zone = presence(study, first_day=study.days).zones[limit.zone]  # one day: only their names are needed
    second = longer_clock(study, minutes=spec.minutes).start[limit.slot or 0]
    return Crowded(
        study=study,
        zone=zone.name,
        zone_fr=zone.name_fr,
        limit=limit,
        starts_at=datetime.fromtimestamp(int(second), ZoneInfo(study.timezone)),
    )


def _ends(ahead: SlotForecast, limit: CrowdLimit) -> tuple[int | None, Ends | None]:
    """The slot that a limit is about, and the interval of its people; a forecast may have none."""
    zone = ahead.found.zones[limit.zone]
    last = ahead.found.first_slot + len(ahead.found.counts) - 1
    if limit.ahead == 0:
        if last < ahead.found.first_slot or ahead.found.status(last) != SlotStatus.OK:
            return None, None
        figure = ahead.found.figure(last, zone)
        return (None, None) if figure is None else (last, (figure.low, figure.high))
    if not ahead.targets or ahead.last_slot != last or limit.ahead > len(ahead.targets):
        return None, None  # the forecast is of earlier slots: judged again with the next one
    return last + limit.ahead, ahead.expected(limit.ahead - 1, zone).ends[-1]
