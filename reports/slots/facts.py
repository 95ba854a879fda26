"""Facts about slots that their noise can carry: change, peak, fullest zone, person-hours, week."""

from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np

from reports.estimates.queries import LEVEL
from reports.slots.queries import Counts, Floats, Presence, SlotFigure, SlotStatus, SlotZone
from reports.slots.query import View

HOURS, WEEKDAYS = 24, 7
_CLEAR_PEAK: Final = 0.25  # of the slots of a day: a peak that may be in more of them is none
_CLEAR_SHARE: Final = 0.25  # half of an interval, as a share of its figure, up to which hours are a fact
_MOST_FULLEST: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """People in a slot less those of another day, or of the median of n days, whose interval is a bound."""

    n_days: int
    other: SlotFigure
    difference: SlotFigure

    @property
    def is_clear(self) -> bool:
        """Return whether the interval leaves out no change."""
        return self.difference.low > 0 or self.difference.high < 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """Slots in which the most people of a day may have been, and how many: simultaneous intervals."""

    first_slot: int
    last_slot: int
    figure: SlotFigure


def other_people(view: View) -> Floats | None:
    """People of the first zone in each slot of the other day, or the median of the same weekday.

    Aligned with the slots of the day by their places; NaN where there is none. None without another day.
    """
    if not view.other or not view.zones:
        return None
    n_slots, zone = len(view.day_slots), view.zones[0]
    days = view.weekday_days if view.other == view.OF_WEEKDAY else [view.other]
    found = np.full((len(days), n_slots), np.nan)
    for row, day in zip(found, days, strict=True):
        people = view.found.people(zone, day=day)[:n_slots]
        row[: len(people)] = people
    if not days:
        return np.full(n_slots, np.nan)
    median: Floats = np.median(found, axis=0)  # NaN where one of them is
    return median


def change(view: View) -> Change | None:
    """Compare the chosen slot with the same place of the other day; None without figures of both."""
    people, now = other_people(view), figure(view)
    place = view.slot - view.day_slots.start
    if people is None or now is None or np.isnan(people[place]):
        return None
    n = len(view.weekday_days) if view.other == view.OF_WEEKDAY else 1
    median, half = float(people[place]), _median_half(view.found, n)
    less = now.people - median
    apart = 2**0.5 * half if n == 1 else _apart(view.found, n)
    return Change(
        n_days=n,
        other=SlotFigure(people=median, low=median - half, high=median + half),
        difference=SlotFigure(people=less, low=less - apart, high=less + apart),
    )


def figure(view: View) -> SlotFigure | None:
    """People of the first zone in the chosen slot; None where there is no figure to rely on."""
    if not view.zones or view.found.status(view.slot) != SlotStatus.OK:
        return None
    return view.found.figure(view.slot, view.zones[0])


def peak(found: Presence, zone: SlotZone, *, day: int) -> Peak | None:
    """When most people of a day were in a zone; None where noise hides it, or the day is not whole.

    All slots whose figures may be the largest: the true one is among them with probability LEVEL.
    """
    people = found.people(zone, day=day)
    if np.isnan(people).any():
        return None
    half, most = found.half_width_of(len(people)), float(people.max())
    places = np.flatnonzero(people >= most - 2 * half)
    if most - half <= 0 or places[-1] - places[0] + 1 > max(1.0, _CLEAR_PEAK * len(people)):
        return None
    first = found.clock.of_day(day).start
    return Peak(
        first_slot=first + int(places[0]),
        last_slot=first + int(places[-1]),
        figure=SlotFigure(people=most, low=most - half, high=most + half),
    )


def fullest(view: View) -> tuple[SlotZone, ...]:
    """Zones of the level that may have most people in the chosen slot; none where these are many."""
    found, zones = view.found, view.found.at_level(view.level)
    if len(zones) < 2 or found.status(view.slot) != SlotStatus.OK:
        return ()
    people = found.counts[view.slot - found.first_slot, [zone.place for zone in zones]] * found.scale
    half = found.half_width_of(len(zones))
    are = people >= people.max() - 2 * half
    if people.max() - half <= 0 or are.sum() > _MOST_FULLEST:
        return ()
    order = np.argsort(-people, kind="stable")
    return tuple(zones[place] for place in order.tolist() if are[place])


def person_hours(found: Presence, zone: SlotZone, *, day: int) -> SlotFigure | None:
    """Hours that people spent in a zone on a day: each counts for whole slots; None where noise hides it."""
    people = found.people(zone, day=day)
    if np.isnan(people).any():
        return None
    of_day = found.clock.of_day(day)
    hours = (found.clock.end[of_day] - found.clock.start[of_day]) / 3600
    total = float(people @ hours)
    half = found.half_width * float(np.sqrt(hours @ hours))
    if total <= 0 or half > _CLEAR_SHARE * total:
        return None
    return SlotFigure(people=total, low=total - half, high=total + half)


@dataclass(frozen=True, slots=True, kw_only=True)
class Week:
    """Mean people of a zone by local hour and weekday, of all days with figures.

    people : shape (24, 7), Monday first; NaN where there is no slot
    half_width : the largest half of an interval among them
    """

    people: Floats
    half_width: float


def week(found: Presence, zone: SlotZone) -> Week:
    """Mean of the slots that begin in each hour of each weekday."""
    n = len(found.counts)
    days = found.clock.day[found.first_slot : found.first_slot + n].astype(np.int64)
    is_ok = np.array([status == SlotStatus.OK for status in found.statuses], dtype=bool)
    kept = is_ok[days - found.first_day]
    weekday = (found.study.first_day.weekday() + days - 1) % WEEKDAYS
    cell = hours_of(found)[found.first_slot : found.first_slot + n] * WEEKDAYS + weekday
    size = HOURS * WEEKDAYS
    people = found.counts[:, zone.place] * found.scale
    total = np.bincount(cell[kept], weights=people[kept], minlength=size)
    number = np.bincount(cell[kept], minlength=size)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(number > 0, total / number, np.nan)
    fewest = int(number[number > 0].min()) if number.any() else 1
    return Week(people=mean.reshape(HOURS, WEEKDAYS), half_width=found.half_width / fewest**0.5)


def hours_of(found: Presence) -> Counts:
    """Local hour in which each slot of the study begins."""
    clock = found.clock
    hours = np.empty(len(clock), np.int64)
    for day in range(1, found.study.days + 1):
        of_day = clock.of_day(day)
        begin = found.starts_at(of_day.start)
        if begin.utcoffset() == found.starts_at(of_day.stop - 1).utcoffset():  # no clock changes
            hours[of_day] = begin.hour + (clock.start[of_day] - clock.start[of_day.start]) // 3600
        else:
            hours[of_day] = [found.starts_at(slot).hour for slot in range(of_day.start, of_day.stop)]
    return hours


def _median_half(found: Presence, n: int) -> float:
    """Half of an interval that holds the median of n true figures.

    The median of noisy figures is too high by t only if one of the lower half of them, the middle included,
    is: so these many tails bound it.
    """
    if n == 1:
        return found.half_width
    return _z(1 - LEVEL, tails=n // 2 + 1) * found.std_error


def _apart(found: Presence, n: int) -> float:
    """Half of an interval of a figure less such a median: half of the error to each."""
    error = (1 - LEVEL) / 2
    return (_z(error, tails=1) + _z(error, tails=n // 2 + 1)) * found.std_error


def _z(error: float, *, tails: int) -> float:
    return NormalDist().inv_cdf(1 - error / 2 / tails)
