"""The view in an address: a day, a time, zones of a level, and another day to compare with."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final
from urllib.parse import urlencode

import numpy as np
from django.http import QueryDict
from django.utils.translation import gettext

from reports.estimates.options import MAX_LINES
from reports.estimates.queries import WindowError
from reports.slots.queries import Presence, SlotStatus, SlotZone
from reports.studies.models import Study

DAY, AT, LEVEL_NAME, ZONE, WITH = "day", "at", "level", "zone", "with"
NAMES: Final = (DAY, AT, LEVEL_NAME, ZONE, WITH)
MEDIAN: Final = "weekday"  # of `with`: the median of the other days with the same weekday
FIRST_ZONES: Final = 4  # without a choice
_EVENING: Final = "18:00"  # of a whole day, without a choice
_SHOWN: Final = 40  # characters of a parameter in a refusal


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class View:
    """Contents of the page.

    slot : number in the study
    zones : the first one is that of the sentence
    other : study day to compare with; 0 = none, -1 = the median of the other days with the same weekday
    """

    found: Presence
    day: int
    slot: int
    level: str
    zones: tuple[SlotZone, ...]
    other: int = 0

    OF_WEEKDAY = -1

    @property
    def date(self) -> date:
        return self.found.study.date_of(self.day)

    @property
    def day_slots(self) -> range:
        """Numbers of the slots of the day."""
        of_day = self.found.clock.of_day(self.day)
        return range(of_day.start, of_day.stop)

    @property
    def weekday_days(self) -> list[int]:
        """Other study days with the same weekday that have figures in all of their slots."""
        found = self.found
        n_published = len(found.counts)
        return [
            day
            for day in range(found.first_day, found.last_day + 1)
            if day != self.day
            and (day - self.day) % 7 == 0
            and found.statuses[day - 1] == SlotStatus.OK
            and found.clock.of_day(day).stop <= n_published
        ]

    def query(self, **changes: str | Sequence[str]) -> str:
        """The view as a part of an address, with changes; "" leaves a name out."""
        study, other = self.found.study, {0: "", self.OF_WEEKDAY: MEDIAN}
        values: dict[str, str | Sequence[str]] = {
            DAY: self.date.isoformat(),
            AT: time_text(self.found, self.slot),
            LEVEL_NAME: self.level,
            ZONE: [str(zone.place) for zone in self.zones],
            WITH: other[self.other] if self.other in other else study.date_of(self.other).isoformat(),
        }
        kept = {name: value for name, value in (values | changes).items() if value}
        return urlencode(kept, doseq=True, safe=":")


def time_text(found: Presence, slot: int) -> str:
    """Local time at which a slot begins: "18:00"; with its offset where the same time comes twice."""
    start = found.starts_at(slot)
    return f"{start:%H:%M}" + (_offset(start) if start.fold else "")


def view_of(query: QueryDict, found: Presence) -> View:
    """The view that an address asks for; by default the latest published slot.

    Parameters
    ----------
    found : all days of the study

    Raises
    ------
    WindowError : there is no such day, time, level or zone
    """
    day = _day(query.get(DAY, ""), found.study) or _latest_day(found)
    level = query.get(LEVEL_NAME, "")
    if level not in found.levels:
        known = ", ".join(each or gettext("none") for each in found.levels)
        raise WindowError(
            gettext("There is no zone level named “%(name)s”. Levels: %(known)s.")
            % {"name": level[:_SHOWN], "known": known}
        )
    view = View(
        found=found,
        day=day,
        slot=_slot(query.get(AT, ""), found, day=day),
        level=level,
        zones=_zones(query.getlist(ZONE), found, level=level),
        other=_other(query.get(WITH, ""), found.study),
    )
    if view.other == view.day:
        raise WindowError(gettext("Choose a different day to compare with."))
    return view


def default_view(found: Presence) -> View:
    """Return the view without a choice."""
    return view_of(QueryDict(), found)


def day_of(text: str, study: Study) -> int:
    """Study day of a date; WindowError if it is none, or not one of the study."""
    try:
        day = study.day_of(date.fromisoformat(text)) if len(text) == len("2017-05-31") else 0
    except ValueError:
        day = 0
    if not 1 <= day <= study.days:
        raise WindowError(
            gettext("A day must be a date from %(first)s to %(last)s, not “%(text)s”.")
            % {"first": study.first_day, "last": study.last_day, "text": text[:_SHOWN]}
        )
    return day


def _day(text: str, study: Study) -> int:
    return day_of(text, study) if text else 0


def _other(text: str, study: Study) -> int:
    return View.OF_WEEKDAY if text == MEDIAN else _day(text, study)


def _latest_day(found: Presence) -> int:
    """Day of the last published slot; the first day if there is none."""
    return int(found.clock.day[len(found.counts) - 1]) if len(found.counts) else 1


def _slot(text: str, found: Presence, *, day: int) -> int:
    """Slot that begins at a local time; by default the last published one, of a whole day that of 18:00."""
    of_day, n_published = found.clock.of_day(day), len(found.counts)
    if not text:
        if of_day.start < n_published < of_day.stop:
            return n_published - 1
        text = _EVENING
    wanted = {time_text(found, slot): slot for slot in range(of_day.start, of_day.stop)}
    if text not in wanted:
        raise WindowError(
            gettext(
                "No time slot on this day begins at “%(text)s”. Time slots begin every %(minutes)d minutes."
            )
            % {"text": text[:_SHOWN], "minutes": found.spec.minutes}
        )
    return wanted[text]


def _zones(places: Sequence[str], found: Presence, *, level: str) -> tuple[SlotZone, ...]:
    """Chosen zones, by their places in the counts; by default those with most people on all days."""
    zones = found.at_level(level)
    if places:
        by_place = {str(zone.place): zone for zone in zones}
        for place in places:
            if place not in by_place:
                raise WindowError(
                    gettext("There is no zone with the number “%s” at this level.") % place[:_SHOWN]
                )
        return tuple(by_place[place] for place in dict.fromkeys(places))[:MAX_LINES]
    people = found.counts.sum(axis=0) if len(found.counts) else np.zeros(len(found.zones))
    return tuple(sorted(zones, key=lambda zone: -people[zone.place])[:FIRST_ZONES])


def _offset(moment: datetime) -> str:
    minutes = (moment.utcoffset() or timedelta()) // timedelta(minutes=1)
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"
