"""Presence by slot of an address: which days, zones and view go into a file."""

from collections.abc import Sequence
from urllib.parse import urlencode

from django.http import QueryDict
from django.utils.translation import gettext

from reports.estimates.queries import WindowError
from reports.exports.presence.tables import SlotTable
from reports.slots.queries import Presence, SlotZone, presence, slots_of
from reports.slots.query import LEVEL_NAME, NAMES, ZONE, day_of, view_of
from reports.studies.models import Study


def asked_days(study: Study, first: str, last: str) -> tuple[int, int]:
    """First and last study day of two dates; without any, from the first to the last with a published slot.

    Raises
    ------
    WindowError : the study has no slots, a date is not in the study, or the last is before the first
    """
    slots = slots_of(study)
    closed_through = int(slots.clock.day[max(slots.closed - 1, 0)])
    first_day = day_of(first, study) if first else 1
    last_day = day_of(last, study) if last else first_day if first else closed_through
    if last_day < first_day:
        raise WindowError(gettext("The last day must not be before the first day."))
    return first_day, last_day


def asked_zones(names: Sequence[str], found: Presence, *, level: str | None) -> tuple[SlotZone, ...]:
    """Zones with these names, at one level or at any; without names all. WindowError for an unknown name."""
    zones = [zone for zone in found.zones if level is None or zone.level == level]
    if level is not None and level not in found.levels:
        raise WindowError(gettext("There is no zone level named “%s”.") % level[:40])
    known = {zone.name for zone in zones}
    for name in names:
        if name not in known:
            raise WindowError(gettext("There is no zone named “%s”.") % name[:40])
    return tuple(zone for zone in zones if not names or zone.name in names)


def options_of(query: QueryDict, *, is_drawn: bool) -> str:
    """Options of a recipe: of a drawing the view, of data the zones."""
    names = NAMES if is_drawn else (LEVEL_NAME, ZONE)
    kept = [(name, value) for name in names for value in query.getlist(name) if value]
    return urlencode(kept)


def select_presence(
    study: Study, *, first_day: int, last_day: int, options: str, is_drawn: bool
) -> SlotTable:
    """Return the contents of a file; WindowError if the study has no such slots."""
    query = QueryDict(options)
    if is_drawn:
        found = presence(study)
        return SlotTable(found=found, zones=found.zones, view=view_of(query, found))
    found = presence(study, first_day=first_day, last_day=last_day)
    zones = asked_zones(query.getlist(ZONE), found, level=query.get(LEVEL_NAME))
    return SlotTable(found=found, zones=zones)
