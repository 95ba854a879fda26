"""The list [[indicator]]."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from functools import partial
from itertools import combinations, product
from math import isqrt
from typing import Any

from django.utils.translation import gettext_noop as _

from ldp.privacy.joint import joint_size
from ldp.privacy.moves import DEFAULT_MOVES, MOST_MOVES
from ldp.privacy.plans import MAX_PARTS, MAX_TALLY_CELLS, STREAM
from reports.base.reasons import Reason
from reports.studies.studyfile.definition import (
    DERIVED,
    EVENT_ZONE,
    HOME_DISTANCE,
    MOVES,
    OF_ZONES,
    ONE_A_DAY,
    VISIT_DURATION,
    VISIT_DURATION_BANDS,
    VISITED_PAIRS,
    VISITED_ZONES,
    AreaDefinition,
    Groups,
    IndicatorDefinition,
    PlanDefinition,
)
from reports.studies.studyfile.hours import HOURS, HOURS_FR, OF_HOURS
from reports.studies.studyfile.lookups import LOOKUP_KEYS, lookup_of_file, read_lookup
from reports.studies.studyfile.nights import NIGHT_KEYS, read_night, refuse_night
from reports.studies.studyfile.numbers import NUMBER, read_number
from reports.studies.studyfile.origins import (
    ORIGIN_KEYS,
    VISITOR_CATEGORIES,
    VISITOR_CATEGORIES_FR,
    VISITOR_CATEGORY,
    read_origin,
)
from reports.studies.studyfile.problems import Problem, unknown
from reports.studies.studyfile.protection import check_protect, read_protect, refuse_protected_parts
from reports.studies.studyfile.sections import EPSILON, NO_CELLS, NO_ZONES, WEIGHT
from reports.studies.studyfile.table import Table, text_problem, with_plain_spaces

MAX_INDICATORS = 255
# Keys of how many of a day's items keep their full weight, and the rule of what has them.
MAX_MOVES, MAX_VISITS = "max_moves", "max_visits"
_MOST_KEYS = {
    MAX_MOVES: Reason(_("must be absent: only %(one)s have it"), one=MOVES),
    MAX_VISITS: Reason(
        _("must be absent: only %(one)s and %(other)s have it"), one=VISITED_ZONES, other=VISITED_PAIRS
    ),
}
MAX_CATEGORIES = 65_534
# Of a part without a value, in the names of combinations; and of all that is no zone, in those of moves.
NO_VALUE_NAME, NO_VALUE_NAME_FR = "no value", "sans valeur"
OUTSIDE_NAME, OUTSIDE_NAME_FR = "outside", "hors zones"
# Of a report on visited zones that names none.
NO_ZONE_NAME, NO_ZONE_NAME_FR = "no zone", "aucune zone"
# Of a number as a part: the sides of a person's cut.
SIDE_NAMES, SIDE_NAMES_FR = ("below", "reached"), ("en dessous", "atteint")
# Pages of a study with the address of an indicator's page.
RESERVED_INDICATORS = frozenset(
    {
        "statement",
        "boards",
        "crosstab",
        "days",
        "dpia",
        "export",
        "flows",
        "forecast",
        "maps",
        "notes",
        "presence",
        "questions",
        "scenario",
    }
)


def read_indicators(
    root: Table, *, days: int, plan: PlanDefinition | None, of_events: bool = False
) -> tuple[IndicatorDefinition, ...]:
    """Return the indicators in file order; `days` bounds max_values, and not every plan suits every one."""
    items = root.raw("indicator")
    if items is None:
        return ()
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items) or not items:
        root.add("indicator", _("must be a list of tables: write [[indicator]]"), items)
        return ()
    if len(items) > MAX_INDICATORS:
        root.add("indicator", Reason(_("must be at most %(most)s"), most=str(MAX_INDICATORS)), len(items))
        return ()
    tables = _tables(root, items=items)
    return tuple(_read_indicator(table, days=days, plan=plan, of_events=of_events) for table in tables)


def _tables(root: Table, *, items: list[dict[str, Any]]) -> list[Table]:
    """Name each indicator by its slug, or by its place while it has no slug."""
    tables: list[Table] = []
    seen: set[str] = set()
    for position, item in enumerate(items, start=1):
        slug = item.get("slug")
        usable = isinstance(slug, str) and slug != "" and slug not in seen
        table = Table(item, f"indicator[{slug if usable else position}]", root.problems)
        if isinstance(slug, str):
            if slug in seen:
                table.add("slug", _("must be unique in the study"), slug)
            seen.add(slug)
        tables.append(table)
    return tables


def _read_indicator(
    table: Table, *, days: int, plan: PlanDefinition | None, of_events: bool
) -> IndicatorDefinition:
    slug = table.slug("slug", reserved=RESERVED_INDICATORS) or "unknown"
    kind = table.choice("kind", ("static", "daily", NUMBER))
    epsilon = table.decimal("epsilon", EPSILON, required=False)
    weight = table.decimal("weight", WEIGHT, required=False)
    if plan is not None:
        _check_suits(table, plan, kind=kind, epsilon=epsilon)
    _check_suits_events(table, kind=kind, of_events=of_events)
    name = table.text("name", default=slug.replace("_", " ").replace("-", " ").capitalize())
    name_fr = table.text("name_fr", default="") or None
    room = 0 if of_events else days  # rows of a tally beyond the first
    readers: dict[str, Callable[..., dict[str, Any]]] = {
        "static": partial(_read_static, room=room),
        "daily": _read_daily,
        NUMBER: read_number,
    }
    reader = _read_joint if table.has("parts") and kind != NUMBER else readers[kind]
    # An unknown kind says nothing about the other keys.
    specific = reader(table, days=days) if table.values.get("kind") == kind else _unread(table)
    groups = _read_groups(table)
    protected = read_protect(table, groups)
    table.finish()
    return IndicatorDefinition(
        slug=slug,
        name=name,
        name_fr=name_fr,
        epsilon=epsilon,
        weight=weight,
        groups=groups,
        **protected,
        **{"kind": kind, **specific},
    )


def _check_suits(table: Table, plan: PlanDefinition, *, kind: str, epsilon: Decimal | None) -> None:
    """Note what the plan's mechanism cannot do for an indicator."""
    mechanism = plan.mechanism
    if epsilon is not None and mechanism == "spl-grr":
        table.add("epsilon", _("must be absent: spl-grr shares the epsilon of the plan equally"), epsilon)
    if epsilon is not None and mechanism.startswith("rsfd-"):
        rule = Reason(
            _("must be absent: %(mechanism)s has one for all, since every report may be the answer"),
            mechanism=mechanism,
        )
        table.add("epsilon", rule, epsilon)
    if not mechanism.startswith("smp-"):
        table.refuse(
            "weight",
            Reason(
                _("must be absent: under %(mechanism)s every indicator is asked equally often"),
                mechanism=mechanism,
            ),
        )
        table.refuse(
            "parts",
            Reason(
                _("must be absent under %(mechanism)s: only smp plans have joint indicators"),
                mechanism=mechanism,
            ),
        )
        if (derive := table.values.get("derive")) in ONE_A_DAY:
            moves = _("must not be %(derive)s under %(mechanism)s: only smp plans have moves")
            zones = _("must not be %(derive)s under %(mechanism)s: only smp plans have visited zones")
            rule = Reason(moves if derive == MOVES else zones, derive=derive, mechanism=mechanism)
            table.add("derive", rule, derive)
        if kind == NUMBER:
            table.add(
                "kind",
                Reason(
                    _("must not be %(number)s under %(mechanism)s: only smp plans have numbers"),
                    number=NUMBER,
                    mechanism=mechanism,
                ),
                kind,
            )
    if mechanism == STREAM:
        _check_suits_stream(table, kind=kind)
    if kind == "daily" and mechanism.startswith("rsfd-") and plan.unit == "attribute":
        text = _(
            "must be static under %(mechanism)s with the unit attribute: a made-up report does not change "
            "with the value, so one that changes would be the answer (choose the unit profile, or smp)"
        )
        rule = Reason(text, mechanism=mechanism)
        table.add("kind", rule, kind)


def _check_suits_events(table: Table, *, kind: str, of_events: bool) -> None:
    """Note what only events have, or only people."""
    derive = table.values.get("derive")
    if not of_events:
        if derive == EVENT_ZONE:
            table.add(
                "derive",
                Reason(
                    _('must not be %(derive)s: only a study with kind = "events" has it'), derive=EVENT_ZONE
                ),
                derive,
            )
        return
    if kind != "static":
        table.add("kind", _("must be static in a study of events: each is there on one day"), kind)
    table.refuse("parts", _("must be absent in a study of events"))


def _check_suits_stream(table: Table, *, kind: str) -> None:
    table.refuse(
        "max_values",
        Reason(
            _("must be absent under %(mechanism)s: it follows from window_days of [plan]"), mechanism=STREAM
        ),
    )
    derive = table.values.get("derive")
    if derive in ONE_A_DAY:
        rule = Reason(
            _(
                "must not be %(derive)s under %(mechanism)s: moves and visits are reported on every day of "
                "presence"
            ),
            derive=derive,
            mechanism=STREAM,
        )
        table.add("derive", rule, derive)
    if kind == NUMBER and derive is not None:
        text = _(
            "must not be %(number)s with derive under %(mechanism)s: the answer to a daily number is kept, "
            "and shows for certain when the number crosses the person's cut"
        )
        rule = Reason(text, number=NUMBER, mechanism=STREAM)
        table.add("kind", rule, kind)


def _unread(table: Table) -> dict[str, Any]:
    for key in ("column", "categories", "categories_fr", "derive", "max_values", *NIGHT_KEYS, "cuts"):
        table.has(key)
    for key in ("minimum", "unit", "report", *_MOST_KEYS, *ORIGIN_KEYS, *LOOKUP_KEYS):
        table.has(key)
    return {"column": None, "derive": None, "categories": (), "max_values": None}


def _read_static(table: Table, *, days: int, room: int) -> dict[str, Any]:
    table.refuse("max_values", _("must be absent: only a daily indicator has several values"))
    _refuse_of_days(table)
    if table.values.get("derive") == EVENT_ZONE:
        for key in ("column", "categories", "categories_fr", *ORIGIN_KEYS, *LOOKUP_KEYS):
            table.refuse(key, _("must be absent: the categories are the zones of [area]"))
        return {"column": None, "derive": table.raw("derive"), "categories": (), "max_values": None}
    if table.values.get("derive") == VISITOR_CATEGORY:
        return _read_visitor_category(table)
    table.refuse(
        "derive",
        Reason(
            _("must be absent, or %(derive)s: a static indicator reads a column"), derive=VISITOR_CATEGORY
        ),
    )
    for key in ORIGIN_KEYS:
        table.refuse(key, Reason(_("must be absent: only %(derive)s has it"), derive=VISITOR_CATEGORY))
    categories = _read_categories(table, days=days, room=room)
    return {
        "column": table.text("column"),
        "derive": None,
        "categories": categories,
        "categories_fr": _read_french(table, categories),
        "max_values": None,
        "lookup": read_lookup(table, categories),
    }


def with_lookups(
    root: Table, indicators: tuple[IndicatorDefinition, ...], *, read: Callable[[str], bytes]
) -> tuple[tuple[IndicatorDefinition, ...], list[Problem]]:
    """Read the lookup files; returns the problems of these files, too."""
    found, problems = [], []
    for each in indicators:
        if each.lookup is not None:
            table = Table({}, f"indicator[{each.slug}]", root.problems)
            lookup, of_file = lookup_of_file(table, each.lookup, each.categories, read=read)
            found.append(replace(each, lookup=lookup))
            problems += of_file
        else:
            found.append(each)
    return tuple(found), problems


def _read_visitor_category(table: Table) -> dict[str, Any]:
    table.refuse("categories", _("must be absent: the categories of a derived indicator are fixed"))
    return {
        "column": table.text("column"),
        "derive": table.raw("derive"),
        "categories": VISITOR_CATEGORIES,
        "categories_fr": _read_french(table, VISITOR_CATEGORIES) or VISITOR_CATEGORIES_FR,
        "max_values": None,
        "origin": read_origin(table),
    }


def _read_joint(table: Table, *, days: int) -> dict[str, Any]:
    for key in ("column", "categories", "categories_fr", "derive"):
        table.refuse(key, _("must be absent: an indicator with parts combines their values"))
    _refuse_of_days(table)
    parts = table.raw("parts")
    has_limit = table.has("max_values")
    if has_limit and table.values.get("kind") == "static":
        table.refuse("max_values", _("must be absent: only a daily indicator has several values"))
        has_limit = False
    is_list = isinstance(parts, list) and all(isinstance(part, str) for part in parts)
    if not is_list or not 2 <= len(parts) <= MAX_PARTS:
        if parts == []:  # of a form in which none is chosen yet
            table.add("parts", _("is missing"), None)
        else:
            rule = _("must be the short names (slugs) of 2 to %(most)s indicators, in brackets")
            table.add("parts", Reason(rule, most=str(MAX_PARTS)), parts)
        parts = []
    return {
        "column": None,
        "derive": None,
        "categories": (),  # known once all are read
        "max_values": table.integer("max_values", low=1, high=days) if has_limit else None,
        "parts": tuple(parts),
    }


def _with_parts(
    root: Table, indicators: tuple[IndicatorDefinition, ...], *, days: int
) -> tuple[IndicatorDefinition, ...]:
    """Give joint indicators the combinations of their parts as categories, or note why that cannot be."""
    whole = {each.slug: each for each in indicators if not (each.parts or each.max_moves)}
    first_with: dict[frozenset[str], str] = {}
    found = []
    for each in indicators:
        table = Table({}, f"indicator[{each.slug}]", root.problems)
        if each.parts and _are_parts(table, each, whole):
            other = first_with.setdefault(frozenset(each.parts), each.slug)
            if other != each.slug:
                table.add(
                    "parts", Reason(_("must not be those of %(other)s again"), other=other), list(each.parts)
                )
            parts = [whole[part] for part in each.parts]
            if all(part.categories for part in parts):  # else a problem of theirs is noted
                found.append(_combination(table, each, parts, days=days))
                continue
        found.append(each)
    return tuple(found)


def _are_parts(table: Table, indicator: IndicatorDefinition, whole: dict[str, IndicatorDefinition]) -> bool:
    """Return whether a joint indicator can combine what it names; notes why not."""
    for part in indicator.parts:
        if indicator.parts.count(part) > 1:
            table.add("parts", _("must name each indicator once"), part)
            return False
        if part not in whole:
            text = _(
                "must name indicators of this study that have categories or cuts, no parts, no moves and no "
                "visited zones"
            )
            table.add("parts", text, part)
            return False
    if refuse_protected_parts(table, [whole[part] for part in indicator.parts]):
        return False
    kind = "daily" if any(whole[part].kind == "daily" for part in indicator.parts) else "static"
    if indicator.kind != kind:
        rule: str = Reason(
            _("must be %(kind)s: a joint indicator is daily if one of its parts is, and static otherwise"),
            kind=kind,
        )
        table.add("kind", rule, indicator.kind)
    numbers = [part for part in indicator.parts if whole[part].scale]
    if numbers and (len(numbers), len(indicator.parts)) != (1, 2):
        rule = _("must be two where one is a number: its mean is asked for each category of the other")
        table.add("parts", rule, list(indicator.parts))
        return False
    waves = [part for part in numbers if (scale := whole[part].scale) and scale.is_wave]
    if waves:
        rule = _('must not name a number with report = "wave": its reports tell no side of a cut')
        table.add("parts", rule, waves[0])
        return False
    if numbers and whole[numbers[0]].kind != kind:
        table.add(
            "parts",
            _("must not join a number of a column with values of a day"),
            list(indicator.parts),
        )
        return False
    return indicator.kind == kind


def _combination(
    table: Table, indicator: IndicatorDefinition, parts: list[IndicatorDefinition], *, days: int
) -> IndicatorDefinition:
    """Give one joint indicator its categories."""
    names = [part.categories if part.scale is None else SIDE_NAMES for part in parts]
    french = [
        (part.categories_fr or part.categories) if part.scale is None else SIDE_NAMES_FR for part in parts
    ]
    size, most = joint_size([len(each) for each in names]), _most_categories(days, room=days)
    if size > most:
        text = _(
            "must have at most %(most)s combinations in a study of %(days)s days; a part of k categories has "
            'k + 1 values, since "%(none)s" is one of them'
        )
        table.add("parts", Reason(text, most=str(most), days=days, none=NO_VALUE_NAME), size)
        return indicator
    combined = _combined(table, names, none=NO_VALUE_NAME)
    combined_fr = _combined(table, french, none=NO_VALUE_NAME_FR)
    return replace(indicator, categories=combined, categories_fr=combined_fr)


def _combined(
    table: Table, names: list[tuple[str, ...]], *, none: str, key: str = "parts"
) -> tuple[str, ...]:
    """Names of all combinations, in the order of their codes; notes two that look the same."""
    found = tuple(" / ".join(each) for each in product(*((*of_part, none) for of_part in names)))
    seen: set[str] = set()
    for name in map(with_plain_spaces, found):
        if name in seen:
            rule = Reason(
                _('must not have two combinations of one name: rename categories with " / " or "%(none)s"'),
                none=none,
            )
            table.add(key, rule, name)
            break
        seen.add(name)
    return found


def _read_daily(table: Table, *, days: int) -> dict[str, Any]:
    if table.has("derive"):
        derive = table.choice("derive", DERIVED)
    else:
        derive = VISIT_DURATION
        table.add("derive", Reason(_("is missing, must be one of %(names)s"), names=", ".join(DERIVED)))
    is_of_zones, bands = derive in OF_ZONES, HOURS if derive in OF_HOURS else VISIT_DURATION_BANDS
    table.refuse("column", _("must be absent: a daily indicator is derived from the events of the day"))
    zones, fixed = (
        _("must be absent: they are the zones of [area]"),
        _("must be absent: the bands of a derived indicator are fixed"),
    )
    table.refuse("categories", zones if is_of_zones else fixed)
    if is_of_zones:
        table.refuse("categories_fr", _("must be absent: zones have French names as name_fr in their file"))
    has_limit = table.has("max_values")
    return {
        "column": None,
        "derive": derive,
        # Those of zones are known once the area is read.
        "categories": () if is_of_zones else bands,
        "categories_fr": None if is_of_zones else _read_french(table, bands) or _default_french(bands),
        "max_values": table.integer("max_values", low=1, high=days) if has_limit else None,
        **read_night(table, known=DERIVED),
        **_read_moves(table),
    }


def _default_french(bands: tuple[str, ...]) -> tuple[str, ...] | None:
    return HOURS_FR if bands == HOURS else None


def _read_moves(table: Table) -> dict[str, int | None]:
    """Return how many moves or visits of a day keep their full weight."""
    derive = table.values.get("derive")
    own = None
    if derive in ONE_A_DAY:
        own = MAX_MOVES if derive == MOVES else MAX_VISITS
    if derive in DERIVED:
        _refuse_moves(table, but=own)
    for key in _MOST_KEYS:
        table.has(key)
    most = None if own is None else table.integer(own, low=1, high=MOST_MOVES, default=DEFAULT_MOVES)
    return {"max_moves": most}


def _refuse_moves(table: Table, *, but: str | None = None) -> None:
    for key, rule in _MOST_KEYS.items():
        if key != but:
            table.refuse(key, rule)


def _refuse_of_days(table: Table) -> None:
    """Refuse what only some values of a day have."""
    refuse_night(table)
    _refuse_moves(table)


def with_zones(
    root: Table,
    indicators: tuple[IndicatorDefinition, ...],
    area: AreaDefinition | None,
    *,
    days: int,
    of_events: bool = False,
) -> tuple[IndicatorDefinition, ...]:
    """Give the categories that others decide on, or note why that cannot be.

    Those that are derived from zones have the area's zones or pairs of them, and joint ones the combinations
    of their parts.
    """
    room, has_zones = 0 if of_events else days, (*OF_ZONES, EVENT_ZONE)
    of_zones = tuple(
        _with_zones_of(root, indicator, area, days=days, room=room)
        if indicator.derive in has_zones
        else indicator
        for indicator in indicators
    )
    for each in of_zones:
        if each.groups and each.categories:
            _check_groups(Table({}, f"indicator[{each.slug}].groups", root.problems), each)
        if each.protect and each.categories:
            check_protect(Table({}, f"indicator[{each.slug}]", root.problems), each)
        if each.derive == HOME_DISTANCE and area is None:
            root.problems.add(f"indicator[{each.slug}].derive", NO_CELLS, each.derive)
    return _with_parts(root, of_zones, days=days)


def _read_groups(table: Table) -> Groups:
    """Return groups of categories as written; `_check_groups` compares them with the categories."""
    if table.has("parts") or table.values.get("kind") == NUMBER or table.values.get("derive") in ONE_A_DAY:
        table.refuse("groups", _("must be absent: only a single indicator with categories has groups"))
        return ()
    groups = table.table("groups", required=False)
    if groups is None:
        return ()
    found = []
    for name, members in groups.values.items():
        problem = text_problem(name)
        if problem:
            groups.add(name, problem)
        elif not isinstance(members, list) or not all(isinstance(each, str) for each in members):
            groups.add(name, _("must be a list of categories of this indicator"), members)
        else:
            found.append((name, tuple(members)))
    return tuple(found)


def _check_groups(table: Table, indicator: IndicatorDefinition) -> None:
    """Note groups of unknown categories, and categories of two groups."""
    group_of: dict[str, str] = {}
    for name, members in indicator.groups:
        if name in indicator.categories:
            table.add(name, _("must differ from the categories"))
        if not members:
            table.add(name, _("must have at least one category"), [])
        for member in members:
            if member not in indicator.categories:
                table.add(name, unknown(member, known=indicator.categories))
            elif member in group_of:
                table.add(
                    name,
                    Reason(
                        _("must not have a category of the group %(group)s again"), group=group_of[member]
                    ),
                    member,
                )
            group_of[member] = name


def _with_zones_of(
    root: Table, indicator: IndicatorDefinition, area: AreaDefinition | None, *, days: int, room: int
) -> IndicatorDefinition:
    """Give one indicator its categories."""
    table = Table({}, f"indicator[{indicator.slug}]", root.problems)
    zones, zones_fr = (area.zones, area.zones_fr) if area is not None else ((), None)
    most = _most_categories(days, room=room)
    if indicator.derive == MOVES:
        most = isqrt(most) - 1  # pairs, with outside as one more zone
    elif indicator.derive == VISITED_PAIRS:
        most = isqrt(2 * most)  # n (n - 1) / 2 of n zones, and none
    elif indicator.derive == VISITED_ZONES:
        most -= 1  # and none
    if not zones:
        table.add("derive", NO_ZONES, indicator.derive)
    elif not 2 <= len(zones) <= most:
        table.add(
            "derive",
            Reason(
                _("needs an area of 2 to %(most)s zones in a study of %(days)s days"),
                most=str(most),
                days=days,
            ),
            len(zones),
        )
    elif indicator.derive == MOVES:
        pairs = _combined(table, [zones, zones], none=OUTSIDE_NAME, key="derive")
        zones_fr = zones_fr or zones
        pairs_fr = _combined(table, [zones_fr, zones_fr], none=OUTSIDE_NAME_FR, key="derive")
        return replace(indicator, categories=pairs, categories_fr=pairs_fr)
    elif indicator.derive in ONE_A_DAY:
        return _with_visits(table, indicator, zones, zones_fr or zones)
    return replace(indicator, categories=zones, categories_fr=zones_fr)


def _with_visits(
    table: Table, indicator: IndicatorDefinition, zones: tuple[str, ...], zones_fr: tuple[str, ...]
) -> IndicatorDefinition:
    """Give visited zones, or pairs of them, their categories; no one has more of them than there are."""
    names = _visit_names(table, indicator, zones, none=NO_ZONE_NAME)
    french = _visit_names(table, indicator, zones_fr, none=NO_ZONE_NAME_FR)
    most = min(indicator.max_moves or DEFAULT_MOVES, len(names) - 1)
    return replace(indicator, categories=names, categories_fr=french, max_moves=most)


def _visit_names(
    table: Table, indicator: IndicatorDefinition, zones: tuple[str, ...], *, none: str
) -> tuple[str, ...]:
    """Names of visited zones or pairs in the order of their codes; notes two that look the same."""
    in_pairs = indicator.derive == VISITED_PAIRS
    names = tuple(" / ".join(pair) for pair in combinations(zones, 2)) if in_pairs else zones
    seen = [with_plain_spaces(name) for name in (*names, none)]
    if len({*seen}) < len(seen):
        twice = next(name for name in seen if seen.count(name) > 1)
        rule = Reason(
            _('must not have two visits of one name: rename zones with " / " or "%(none)s"'), none=none
        )
        table.add("derive", rule, twice)
    return (*names, none)


def _most_categories(days: int, *, room: int) -> int:
    """Return how many fit; `room` is how many rows a tally has beyond the first."""
    return min(MAX_CATEGORIES, MAX_TALLY_CELLS // ((room + 1) * (days + 1)))


def _read_categories(table: Table, *, days: int, room: int) -> tuple[str, ...]:
    values = table.raw("categories")
    if values is None:
        return ()
    most = _most_categories(days, room=room)
    if not isinstance(values, list) or not 2 <= len(values) <= most:
        found = len(values) if isinstance(values, list) else values
        table.add(
            "categories",
            Reason(
                _("must be a list of 2 to %(most)s texts in a study of %(days)s days"),
                most=str(most),
                days=days,
            ),
            found,
        )
        return ()
    return _read_names(table, "categories", values)


def _read_french(table: Table, categories: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the French names of the categories, in their order; None where there are none."""
    values = table.raw("categories_fr", required=False)
    if values is None or not categories:  # without a valid list there is nothing to compare with
        return None
    if not isinstance(values, list) or len(values) != len(categories):
        found = len(values) if isinstance(values, list) else values
        rule = Reason(
            _("must be a list of %(n)s texts: a French name for each category, in their order"),
            n=str(len(categories)),
        )
        table.add("categories_fr", rule, found)
        return None
    return _read_names(table, "categories_fr", values)


def _read_names(table: Table, key: str, values: list[Any]) -> tuple[str, ...]:
    """Return a list of names, of which no two look the same."""
    seen: dict[str, str] = {}  # how it is written, by how it looks
    for position, value in enumerate(values, start=1):
        problem = text_problem(value)
        if problem is None:
            written = seen.get(with_plain_spaces(value))
            if written == value:
                problem = _("must be unique in the indicator")
            elif written is not None:
                problem = _("must differ from the others by more than the kind of its spaces")
            else:
                seen[with_plain_spaces(value)] = value
        if problem:
            table.add(f"{key}[{position}]", problem, value)
    return tuple(str(value) for value in values)
