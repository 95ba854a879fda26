"""A definition as the tables of its study file, and such tables back to a definition.

Changes of a form go through the readers of a study file: the same rules, in the same words. The area, the
places and the larger zones of a study come from their own files and stay as they are.
"""

from dataclasses import fields, replace
from typing import Any

from django.utils.translation import gettext_noop as _

from ldp.privacy.plans import MAX_TALLY_CELLS
from reports.base.reasons import Reason
from reports.studies.studyfile.definition import (
    EVENT_ZONE,
    MOVES,
    OF_ZONES,
    IndicatorDefinition,
    LocationDefinition,
    StudyDefinition,
)
from reports.studies.studyfile.indicators import MAX_MOVES, MAX_VISITS, with_zones
from reports.studies.studyfile.numbers import NUMBER
from reports.studies.studyfile.parse import DEFAULT_MIN_PUBLICATION, check_plan, read_sections
from reports.studies.studyfile.problems import Problems, StudyFileError
from reports.studies.studyfile.sections import MAX_DAYS, SLOT_NOISES, check_slots
from reports.studies.studyfile.slots_definition import SlotsDefinition
from reports.studies.studyfile.table import Table

Tables = dict[str, Any]
# Parts of a definition with separate tables or files; all else is in [study].
_APART = ("visitor", "extract", "plan", "indicators", "area", "subscribers", "location", "slots", "classes")
STUDY_KEYS = tuple(each.name for each in fields(StudyDefinition) if each.name not in _APART)
_CLOCKS = ("night_from", "night_to")


def tables_of(definition: StudyDefinition) -> Tables:
    """Write a study file, without [area], [location] and slots.levels; defaults are written out."""
    tables: Tables = {
        "study": {key: getattr(definition, key) for key in STUDY_KEYS},
        "extract": _plain(definition.extract),
        "plan": _plain(definition.plan),
        "indicator": [_indicator(each) for each in definition.indicators],
        "class": [_plain(each) for each in definition.classes] or None,
    }
    shares = [each.to_table() for each in definition.category_shares]
    tables["study"]["category_shares"] = shares or None
    tables["study"]["kind"] = tables["study"].pop("units")
    if definition.of_events:
        tables["extract"]["event"] = tables["extract"].pop("subscriber") or None
    else:
        tables["study"]["visitor"] = {
            "min_minutes": definition.visitor.min_minutes,
            "from": _clock(definition.visitor.from_minute),
            "to": _clock(definition.visitor.to_minute),
        }
    if definition.subscribers is not None:
        tables["subscribers"] = _plain(definition.subscribers)
    if definition.slots is not None:
        tables["slots"] = _slots(definition.slots)
    written: Tables = _without_none(tables)
    return written


def read_tables(tables: Tables, *, like: StudyDefinition) -> StudyDefinition:
    """Return the definition that `tables` describe, in the area of `like` and with its places.

    StudyFileError has all problems; the file of each is empty, its key as in a study file.
    """
    problems = Problems("")
    root = Table(tables, "", problems)
    parts = read_sections(root, has_area=like.area is not None, min_publication=DEFAULT_MIN_PUBLICATION)
    days = parts.get("days", MAX_DAYS)
    of_events = parts.get("units") is not None
    parts["indicators"] = with_zones(root, parts["indicators"], like.area, days=days, of_events=of_events)
    parts["indicators"] = _with_lookups(problems, parts["indicators"], like)
    if like.location is not None:
        _check_places(problems, like.location, days=days)
    if "slots" in parts:
        levels = like.slots.levels if like.slots is not None else ()
        parts["slots"] = replace(parts["slots"], levels=levels)
        n_zones = len(like.area.zones) if like.area is not None else 0
        check_slots(Table({}, "slots", problems), parts["slots"], n_zones=n_zones, days=days)
    if problems.found:
        raise StudyFileError(problems.all())
    definition = StudyDefinition(**parts, area=like.area, location=like.location)
    check_plan(definition, filename="")
    return definition


def _with_lookups(
    problems: Problems, indicators: tuple[IndicatorDefinition, ...], like: StudyDefinition
) -> tuple[IndicatorDefinition, ...]:
    """Give lookups what was read of their files; notes those that need another file."""
    read = {each.lookup.file: each.lookup for each in like.indicators if each.lookup is not None}
    found = []
    for each in indicators:
        if each.lookup is not None:
            known, key = read.get(each.lookup.file), f"indicator[{each.slug}]"
            if known is None or known.prefix != each.lookup.prefix:
                problems.add(
                    f"{key}.lookup",
                    _("must be as in the study file, which names it"),
                    each.lookup.file,
                )
                continue
            missing = [category for category, _ in known.codes if category not in ("", *each.categories)]
            if missing:
                problems.add(
                    f"{key}.categories", _("must have all categories of the lookup file"), missing[0]
                )
            lookup = replace(each.lookup, sha256=known.sha256, codes=known.codes)
            found.append(replace(each, lookup=lookup))
        else:
            found.append(each)
    return tuple(found)


def _check_places(problems: Problems, location: LocationDefinition, *, days: int) -> None:
    """The grid was laid for the days of the study: with more days it may no longer fit."""
    most = MAX_TALLY_CELLS // (days + 1) ** 2
    if location.grid.n_cells > most:
        rule = Reason(
            _("must leave room for places: over this number of days, their grid can have %(most)s squares"),
            most=str(most),
        )
        problems.add("study.days", rule, days)
    if location.max_values is not None and location.max_values > days:
        rule = Reason(
            _("must be at least %(least)s: the days on which a subscriber reports a place"),
            least=location.max_values,
        )
        problems.add("study.days", rule, days)


def _slots(slots: SlotsDefinition) -> dict[str, Any]:
    table = _plain(slots) | {"noise": SLOT_NOISES[0] if slots.epsilon_day is not None else SLOT_NOISES[1]}
    del table["levels"]  # of files
    return table


def _indicator(indicator: IndicatorDefinition) -> dict[str, Any]:
    table = _plain(indicator)
    del table["scale"]
    del table["origin"]
    del table["lookup"]
    if indicator.lookup is not None:
        lookup = indicator.lookup
        table |= {"lookup": lookup.file, "prefix": lookup.prefix or None, "otherwise": lookup.otherwise}
    if indicator.origin is not None:
        table |= _plain(indicator.origin)
    if indicator.scale is not None:
        table |= {"kind": NUMBER, **_plain(indicator.scale)}
    table["groups"] = {name: list(members) for name, members in indicator.groups} or None
    table["sensitive"] = table["sensitive"] or None
    if not indicator.parts:
        del table["parts"]
    if indicator.derive is not None or indicator.parts or indicator.scale:
        del table["categories"]  # of the area's zones, of the parts, of the cuts, or fixed
    if indicator.derive in (*OF_ZONES, EVENT_ZONE) or indicator.parts or indicator.scale:
        del table["categories_fr"]  # of the area's zones, or of the parts
    if indicator.derive != MOVES:
        table[MAX_VISITS] = table.pop(MAX_MOVES)
    for key in _CLOCKS:
        if table[key] is not None:
            table[key] = _clock(table[key])
    return table


def _plain(value: Any) -> dict[str, Any]:
    return {each.name: _listed(getattr(value, each.name)) for each in fields(value)}


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(each) for key, each in value.items() if each is not None}
    if isinstance(value, list):
        return [_without_none(each) for each in value]
    return value


def _clock(minute: int) -> str:
    return f"{minute // 60:02d}:{minute % 60:02d}"
