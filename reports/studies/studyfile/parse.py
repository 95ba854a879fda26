"""Study file (TOML) to study definition."""

from collections.abc import Callable
from datetime import date, timedelta
from typing import Any, get_args

from django.utils.translation import gettext_noop as _

from ldp import LdpError, PlanError, PlanSpec, check_cap
from ldp.privacy.plans import Kind
from ldp.privacy.report_words import plan_words
from reports.base.reasons import Reason
from reports.studies.studyfile.category_shares import KEY, missing_and_unknown
from reports.studies.studyfile.classes import class_problems, read_classes
from reports.studies.studyfile.definition import (
    AreaDefinition,
    ExtractProfile,
    IndicatorDefinition,
    LocationDefinition,
    StudyDefinition,
    SubscriberExtract,
)
from reports.studies.studyfile.indicators import read_indicators, with_lookups, with_zones
from reports.studies.studyfile.nights import check_one_night
from reports.studies.studyfile.problems import Problem, Problems, StudyFileError
from reports.studies.studyfile.protection import protect_problems
from reports.studies.studyfile.sections import (
    DEFAULT_ZONE_COLUMN,
    MAX_DAYS,
    NO_CELLS,
    check_days_of_slots,
    check_person,
    check_slots,
    read_extract,
    read_plan,
    read_slots,
    read_study,
    read_subscribers,
)
from reports.studies.studyfile.slots_definition import SlotsDefinition
from reports.studies.studyfile.table import Table
from reports.studies.studyfile.toml import parse_toml

DEFAULT_MIN_PUBLICATION = 100
MAX_REPORT_WORDS = 256  # of a person: with 100,000 people in a shard, 50 MB in memory


def parse_study(
    text: bytes,
    *,
    filename: str,
    read: Callable[[str], bytes],
    default_min_publication: int = DEFAULT_MIN_PUBLICATION,
    note: Callable[[str], None] = lambda _: None,
) -> StudyDefinition:
    """Read a study file and the files that it names; StudyFileError with all problems of all files.

    Parameters
    ----------
    text : bytes; the study file
    filename : str; its name, for messages
    read : callable; returns the content of a file named by [area], or raises FileNotFoundError
    default_min_publication : int; for a file that does not set `study.min_publication`
    note : callable; takes what a user should know of a study that is created all the same
    """
    problems = Problems(filename)
    root = Table(parse_toml(text, problems), "", problems)
    area_table = root.table("area", required=False)
    location_table = root.table("location", required=False)
    parts = read_sections(root, has_area=area_table is not None, min_publication=default_min_publication)
    area, area_problems, notes = _read_area(area_table, parts, read=read)
    if not area_problems and "days" in parts:
        of_events = parts.get("units") is not None
        parts["indicators"] = with_zones(
            root, parts["indicators"], area, days=parts["days"], of_events=of_events
        )
    parts["indicators"], lookup_problems = with_lookups(root, parts["indicators"], read=read)
    if location_table and not area_problems and parts.get("units") is None:
        parts["location"] = _read_location(location_table, area, days=parts.get("days", MAX_DAYS))
    # The problems of an area that cannot be read are said already.
    if "slots" in parts and not area_problems and (area is not None or area_table is None):
        parts["slots"], level_problems, level_notes = _read_levels(root, parts, area, read=read)
        area_problems, notes = level_problems, [*notes, *level_notes]
    if problems.found or area_problems or lookup_problems:
        raise StudyFileError([*problems.all(), *area_problems, *lookup_problems])
    definition = StudyDefinition(**parts, area=area)
    check_plan(definition, filename=filename)
    for each in notes:
        note(str(each))
    return definition


def _read_area(
    table: Table | None, parts: dict[str, Any], *, read: Callable[[str], bytes]
) -> tuple[AreaDefinition | None, list[Problem], list[Problem]]:
    """Return the area, the problems of its files, and notes on them."""
    if table is None:
        return None, [], []
    from reports.studies.studyfile.area import read_area  # noqa: PLC0415 - GeoPandas: 1 s, which few studies need

    area, files = read_area(table, read=read, study_days=_study_days(parts))
    return area, files.problems, files.notes


def _study_days(parts: dict[str, Any]) -> tuple[date, date] | None:
    first_day, days = parts.get("first_day"), parts.get("days", 1)
    return (first_day, first_day + timedelta(days=days - 1)) if first_day else None


def _read_levels(
    root: Table, parts: dict[str, Any], area: AreaDefinition | None, *, read: Callable[[str], bytes]
) -> tuple[SlotsDefinition, list[Problem], list[Problem]]:
    """Return presence by slot with its larger zones, the problems of their files, and notes on them."""
    table, slots = Table(root.values["slots"], "slots", root.problems), parts["slots"]
    zones = () if area is None else area.zones
    if area is None or not zones:
        check_slots(table, slots, n_zones=0, days=1)
        return slots, [], []
    from reports.studies.studyfile.slots import with_levels  # noqa: PLC0415 - as above

    column = root.values["area"].get("zone_column")
    column = column if isinstance(column, str) else DEFAULT_ZONE_COLUMN
    slots, files = with_levels(
        slots, table, area, zone_column=column, study_days=_study_days(parts), read=read
    )
    check_slots(table, slots, n_zones=len(zones), days=parts.get("days", MAX_DAYS))
    if {"timezone", "first_day", "days"} <= parts.keys():
        check_days_of_slots(table, **{name: parts[name] for name in ("timezone", "first_day", "days")})
    return slots, files.problems, files.notes


def _read_location(table: Table, area: AreaDefinition | None, *, days: int) -> LocationDefinition | None:
    from reports.studies.studyfile.location import read_location  # noqa: PLC0415 - as above

    if area is None:
        table.add("grid_m", NO_CELLS)
    return read_location(table, area, days=days)


def read_sections(root: Table, *, has_area: bool, min_publication: int) -> dict[str, Any]:
    """Return the fields of a StudyDefinition; not all of them after a problem."""
    parts: dict[str, Any] = {}
    study, extract, plan = root.table("study"), root.table("extract"), root.table("plan")
    subscribers = root.table("subscribers", required=False)
    if study:
        parts |= read_study(study, default_min_publication=min_publication)
    of_events = parts.get("units") is not None
    if of_events:
        for name in ("subscribers", "slots", "location"):
            root.refuse(name, _("must be absent in a study of events: it is about people"))
    if extract:
        parts["extract"] = read_extract(extract, has_area=has_area, of_events=of_events)
    parts["subscribers"] = read_subscribers(subscribers) if subscribers else None
    if plan:
        parts["plan"] = read_plan(plan)
    parts["classes"] = read_classes(root)
    parts["indicators"] = read_indicators(
        root, days=parts.get("days", MAX_DAYS), plan=parts["plan"] if plan else None, of_events=of_events
    )
    if extract and plan:
        person, most = parts["extract"].person, parts["plan"].max_events
        check_person(root, person=person, max_events=most, of_events=of_events)
    if extract:
        _check_columns(
            root.problems,
            parts["extract"],
            parts["subscribers"],
            parts["indicators"],
            class_column=parts["plan"].class_column if plan else None,
        )
        if parts["extract"].attributes != "inline":
            _check_daily_parts(root.problems, parts["indicators"])
    if slots := root.table("slots", required=False):
        parts["slots"] = read_slots(slots)
    root.finish()
    return parts


def _check_columns(
    problems: Problems,
    extract: ExtractProfile,
    subscribers: SubscriberExtract | None,
    indicators: tuple[IndicatorDefinition, ...],
    *,
    class_column: str | None,
) -> None:
    """One source, one meaning: else an identifier could be an answer, or a value be answered twice."""
    of_events = [
        ("extract.subscriber", extract.subscriber),
        ("extract.person", extract.person),
        ("extract.timestamp", extract.timestamp),
        ("extract.cell", extract.cell),
    ]
    attributes = [(f"indicator[{each.slug}].column", each.column) for each in indicators]
    attributes += [
        (f"indicator[{each.slug}].operator_column", each.origin.operator_column)
        for each in indicators
        if each.origin is not None
    ]
    attributes.append(("plan.class_column", class_column))
    if extract.attributes == "inline":
        of_events += attributes
    derived = [(f"indicator[{indicator.slug}].derive", indicator.derive) for indicator in indicators]
    before = len(problems.found)
    shared = _("must be its own column, but %(first)s uses it")
    check_used_once(problems, of_events, rule=shared)
    if len(problems.found) == before:  # else what the files share would be named twice
        of_people = ("subscribers.subscriber", subscribers.subscriber if subscribers else extract.subscriber)
        check_used_once(problems, [of_people, *attributes], rule=shared)
    check_used_once(problems, derived, rule=_("must be derived only once, but %(first)s already is"))
    check_one_night(problems, indicators)


def _check_daily_parts(problems: Problems, indicators: tuple[IndicatorDefinition, ...]) -> None:
    """Static values that come apart from the events of a day cannot be combined with them."""
    static = {each.slug for each in indicators if each.kind == "static"}
    for each in indicators:
        if each.kind == "daily" and static.intersection(each.parts):
            rule = _('needs extract.attributes = "inline" to combine static indicators with daily ones')
            problems.add(f"indicator[{each.slug}].parts", rule, list(each.parts))


def check_used_once(problems: Problems, uses: list[tuple[str, str | None]], *, rule: str) -> None:
    """Note every key whose source is another's too; `rule` has a place for the `first` that has it."""
    first_use: dict[str, str] = {}
    for key, source in uses:
        if not source:
            continue
        if source in first_use:
            problems.add(key, Reason(rule, first=first_use[source]), source)
        first_use.setdefault(source, key)


def check_plan(definition: StudyDefinition, *, filename: str) -> None:
    """Raise StudyFileError if the plan as a whole cannot be kept."""
    cap = definition.plan.epsilon_profile
    key = "plan"
    check_category_shares(definition, filename=filename)
    problems = Problems(filename)
    class_problems(definition, problems)
    protect_problems(definition, problems)
    if problems.found:
        raise StudyFileError(problems.all())
    try:
        spec = definition.plan_spec()
        _check_room(spec)
        check_small_cells(definition)
        if cap is not None:
            key = "plan.epsilon_profile"
            check_cap(spec, cap)
    except LdpError as error:
        raise StudyFileError([Problem(file=filename, key=key, rule=str(error))]) from error


def check_category_shares(definition: StudyDefinition, *, filename: str) -> None:
    """Raise StudyFileError for shares that are not those of all categories of a static indicator."""
    problems, of_slug = Problems(filename), {each.slug: each for each in definition.indicators}
    for place, shares in enumerate(definition.category_shares, start=1):
        key, indicator = f"study.{KEY}[{place}]", of_slug.get(shares.indicator)
        if indicator is None or indicator.kind != "static" or indicator.scale is not None:
            rule = _("must name a static indicator with categories")
            problems.add(f"{key}.indicator", rule, shares.indicator)
            continue
        for rule in missing_and_unknown(shares, indicator.categories):
            problems.add(f"{key}.shares", rule)
    if definition.category_shares and definition.plan.presence_epsilon is not None:
        problems.add(f"study.{KEY}", _("must be absent with presence_epsilon, which makes visitors noisy"))
    if problems.found:
        raise StudyFileError(problems.all())


def check_small_cells(definition: StudyDefinition) -> None:
    """Raise PlanError for a limit on totals that are noisy, or next to counts that it does not hide."""
    _check_small_categories(definition)
    if not definition.small_cell:
        return
    if definition.slots is not None and definition.slots.epsilon_day is None:
        raise PlanError(
            'slots.noise must not be "none" with study.small_cell: exact counts by slot would show the small '
            f"numbers that the rule hides; got small_cell = {definition.small_cell}"
        )
    if definition.plan.presence_epsilon is not None:
        raise PlanError(
            "presence_epsilon must be absent with study.small_cell: a small noisy total is noise, and "
            f"says nothing about so few people; got small_cell = {definition.small_cell}"
        )


def _check_small_categories(definition: StudyDefinition) -> None:
    """Raise PlanError for figures that the rule of small categories does not hide."""
    if not definition.small_category:
        return
    kinds = {
        "presence_epsilon": definition.plan.presence_epsilon is not None,
        "[slots]": definition.slots is not None,
        "[location]": definition.location is not None,
        "an indicator of numbers": any(each.scale is not None for each in definition.indicators),
        **{f'derive = "{each.derive}"': True for each in definition.indicators if each.moves is not None},
    }
    for name, is_there in kinds.items():
        if is_there:
            raise PlanError(
                f"{name} must be absent with study.small_category, which hides categories of other figures "
                f"only; got small_category = {definition.small_category}"
            )


def _check_room(spec: PlanSpec) -> None:
    """Raise PlanError if what is kept of a subscriber would be too large: a bit for every category."""
    for kind in get_args(Kind):
        words = plan_words(spec, kind=kind)
        if words > MAX_REPORT_WORDS:
            raise PlanError(
                f"reports of a person on {kind} indicators must fit into {MAX_REPORT_WORDS} words, "
                f"got {words}: {spec.mechanism} needs a bit per category, and GRR one word per indicator"
            )
