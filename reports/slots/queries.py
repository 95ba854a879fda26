"""Published counts of slots by zone, with their intervals and what is known of each slot.

The noise of the plan is the only error of a count: its interval reaches 1.96 standard errors to each side,
scaled by the market share afterwards. Without noise it has no width.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from statistics import NormalDist
from typing import Final
from zoneinfo import ZoneInfo

import numpy as np
from django.db.models import QuerySet
from django.utils.translation import gettext
from numpy.typing import NDArray

from ldp.privacy.slots import SlotSpec
from reports.estimates.models import DayNote
from reports.estimates.queries import LEVEL, WindowError, visitor_unions
from reports.studies.models import Area, Study
from reports.studies.names import in_language
from reports.studies.slot_models import SlotDay, StudySlots
from reports.studies.slots import SlotClock

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]
_SEEN: Final = 4.0  # standard errors above none from which on the counts of a day show that there was a file


class SlotStatus(StrEnum):
    """State of a slot; exports write the value. `reports.base.status` has most of these values, too.

    ok : published
    not_yet : not published yet
    not_collected : published, but there was no file of the day: its counts are noise or 0
    outage : people marked the day as an outage of the source
    """

    OK = "ok"
    NOT_YET = "not_yet"
    NOT_COLLECTED = "not_collected"
    OUTAGE = "outage"


class NoSlotsError(WindowError):
    """A study without slots; the text says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotZone:
    """A zone that is counted; `level` is "" for zones of the area, else the name of their larger ones."""

    name: str
    level: str
    place: int
    name_fr: str | None = None

    @property
    def shown_name(self) -> str:
        """Name in the active language."""
        return in_language(self.name, self.name_fr)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotFigure:
    """People in a zone during a slot, scaled to the population; may be below 0."""

    people: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Presence:
    """Slots of some days of a study, and the counts of those that are published.

    first_day, last_day : study days, from 1
    counts : int64 (published slots of these days, zones), as published, not scaled
    statuses : of each day, as far as its slots are published
    """

    study: Study
    slots: StudySlots
    spec: SlotSpec
    clock: SlotClock
    zones: tuple[SlotZone, ...]
    first_day: int
    last_day: int
    counts: Counts
    statuses: tuple[SlotStatus, ...]

    @cached_property
    def first_slot(self) -> int:
        """Number in the study of the first slot of these days."""
        return int(self.clock.of_day(self.first_day).start)

    @cached_property
    def last_slot(self) -> int:
        """Number in the study of the last slot of these days."""
        return int(self.clock.of_day(self.last_day).stop) - 1

    @cached_property
    def scale(self) -> float:
        """People for each subscriber counted."""
        return 1 / float(self.study.market_share)

    @cached_property
    def std_error(self) -> float:
        """Standard error of each count, scaled; 0 without noise."""
        variance = self.spec.variance
        return 0.0 if variance is None else float(variance) ** 0.5 * self.scale

    @cached_property
    def half_width(self) -> float:
        """Half of the interval of each figure, scaled."""
        return self.half_width_of(1)

    def half_width_of(self, n: int) -> float:
        """Half of the intervals that hold n true figures at once with probability LEVEL."""
        return z_of(n) * self.std_error

    def status(self, slot: int) -> SlotStatus:
        """State of a slot of these days."""
        if slot >= self.first_slot + len(self.counts):
            return SlotStatus.NOT_YET
        return self.statuses[int(self.clock.day[slot]) - self.first_day]

    def figure(self, slot: int, zone: SlotZone) -> SlotFigure | None:
        """People of a zone in a slot; None unless it is published."""
        place = slot - self.first_slot
        if not 0 <= place < len(self.counts):
            return None
        people, half = float(self.counts[place, zone.place]) * self.scale, self.half_width
        return SlotFigure(people=people, low=people - half, high=people + half)

    def people(self, zone: SlotZone, *, day: int) -> Floats:
        """Scaled counts of a zone in the slots of a day; NaN where there is none to rely on."""
        of_day = self.clock.of_day(day)
        found = np.full(of_day.stop - of_day.start, np.nan)
        if self.statuses[day - self.first_day] == SlotStatus.OK:
            here = self.counts[of_day.start - self.first_slot : of_day.stop - self.first_slot, zone.place]
            found[: len(here)] = here * self.scale
        return found

    @cached_property
    def zone_info(self) -> ZoneInfo:
        """Time zone of the study."""
        return ZoneInfo(self.study.timezone)

    def starts_at(self, slot: int) -> datetime:
        """Begin of a slot in local time."""
        return datetime.fromtimestamp(int(self.clock.start[slot]), self.zone_info)

    def ends_at(self, slot: int) -> datetime:
        """End of a slot in local time; it does not belong to it."""
        return datetime.fromtimestamp(int(self.clock.end[slot]), self.zone_info)

    def at_level(self, level: str) -> tuple[SlotZone, ...]:
        """Zones of a level."""
        return tuple(zone for zone in self.zones if zone.level == level)

    @property
    def levels(self) -> tuple[str, ...]:
        """Names of the levels, "" for the zones of the area first."""
        return "", *(level["name"] for level in self.slots.levels)


def has_slots(study: Study) -> bool:
    """Return whether a study counts presence by slot."""
    return StudySlots.objects.filter(study=study).exists()


def slots_of(study: Study) -> StudySlots:
    """The slots of a study; NoSlotsError if it has none."""
    found = StudySlots.objects.filter(study=study).first()
    if found is None:
        raise NoSlotsError(gettext("This study does not count presence by time slot."))
    found.study = study
    return found


def presence(study: Study, *, first_day: int = 1, last_day: int | None = None) -> Presence:
    """Read slots of some days, by default of all.

    Raises
    ------
    NoSlotsError : the study has no slots
    """
    slots, last = slots_of(study), last_day or study.days
    zones = _zones(slots)
    rows = slots.days.filter(day__gte=first_day, day__lte=last)
    counts, spec = _counts(rows, zones=len(zones)), slots.plan
    clock = slots.clock
    return Presence(
        study=study,
        slots=slots,
        spec=spec,
        clock=clock,
        zones=zones,
        first_day=first_day,
        last_day=last,
        counts=counts,
        statuses=_statuses(study, counts, clock=clock, spec=spec, days=range(first_day, last + 1)),
    )


def z_of(n: int) -> float:
    """Standard errors within which n independent figures are all at once with probability LEVEL."""
    return NormalDist().inv_cdf((1 + LEVEL ** (1 / n)) / 2)


def _zones(slots: StudySlots) -> tuple[SlotZone, ...]:
    """All zones in the order of the counts, in both languages."""
    area = Area.objects.filter(study=slots.study).first()
    in_french = area.zones_fr if area is not None else None
    n_area = len(slots.zones) - sum(len(level["zones"]) for level in slots.levels)
    level_of = [""] * n_area + [level["name"] for level in slots.levels for _ in level["zones"]]
    return tuple(
        SlotZone(
            name=name,
            level=level,
            place=place,
            name_fr=in_french[place] if in_french and place < n_area else None,
        )
        for place, (name, level) in enumerate(zip(slots.zones, level_of, strict=True))
    )


def _counts(rows: QuerySet[SlotDay], *, zones: int) -> Counts:
    blobs = rows.order_by("day").values_list("counts", flat=True)
    arrays = [np.frombuffer(blob, "<i8").reshape(-1, zones) for blob in blobs]
    return np.concatenate(arrays).astype(np.int64, copy=False) if arrays else np.zeros((0, zones), np.int64)


def _statuses(
    study: Study, counts: Counts, *, clock: SlotClock, spec: SlotSpec, days: Sequence[int]
) -> tuple[SlotStatus, ...]:
    outages = set(DayNote.objects.filter(study=study, kind=DayNote.Kind.OUTAGE).values_list("day", flat=True))
    first = clock.of_day(days[0]).start
    parts = [counts[clock.of_day(day).start - first : clock.of_day(day).stop - first] for day in days]
    doubtful = [day for day, part in zip(days, parts, strict=True) if len(part) and not _is_seen(part, spec)]
    without = _days_without_file(study, doubtful)
    return tuple(
        SlotStatus.OUTAGE if day in outages else SlotStatus.NOT_COLLECTED if day in without else SlotStatus.OK
        for day in days
    )


def _is_seen(counts: Counts, spec: SlotSpec) -> bool:
    """Return whether counts of a day are so large that noise alone does not make them."""
    sd = 0.0 if spec.variance is None else (float(spec.variance) * counts.size) ** 0.5
    return bool(counts.sum() > _SEEN * sd)


def _days_without_file(study: Study, days: Sequence[int]) -> set[int]:
    """Days among these without a visitor; with presence noise no one can tell."""
    if not days or study.presence is not None:
        return set()
    visitors = visitor_unions(study)
    return {day for day in days if not visitors[day, day]}
