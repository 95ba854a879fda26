"""A profile's file (TOML), or the same as plain values, to a typed profile: all problems at once."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, cast, get_args

from django.utils.translation import gettext_noop as _

from mobility.extracts.profiles.definition import BUILT_IN, own_table
from mobility.extracts.profiles.errors import ProfileFileError
from mobility.extracts.profiles.parse_rules import read_rule
from mobility.extracts.profiles.rules import ValueRule
from mobility.extracts.profiles.typed import TypedKind, TypedProfile
from reports.studies.studyfile import StudyDefinition, StudyFileError
from reports.studies.studyfile.formats import ISO
from reports.studies.studyfile.parse import check_used_once
from reports.studies.studyfile.problems import Problems, unknown
from reports.studies.studyfile.sections import read_bad_share, read_delimiter, read_timestamp_format
from reports.studies.studyfile.table import Table
from reports.studies.studyfile.toml import parse_toml

KINDS: tuple[TypedKind, ...] = get_args(TypedKind)
MORE_TO_COME = "more-to-come"  # the watched folder gives it a meaning
RESERVED_NAMES = frozenset({"new"})
INDICATOR = "indicator"


def parse_profile(text: bytes, *, filename: str, definition: StudyDefinition) -> TypedProfile:
    """Read a profile's file.

    Parameters
    ----------
    text : bytes; the file
    filename : str; its name, for messages
    definition : of the study that the profile is for

    Raises
    ------
    ProfileFileError : with all problems
    """
    problems = Problems(filename)
    try:
        values = parse_toml(text, problems)
    except StudyFileError as error:
        raise ProfileFileError(error.problems) from None
    return read_profile(values, filename=filename, definition=definition)


def read_profile(values: Mapping[str, Any], *, filename: str, definition: StudyDefinition) -> TypedProfile:
    """Read what a profile's file holds.

    Raises
    ------
    ProfileFileError : with all problems
    """
    problems = Problems(filename)
    root = Table(dict(values), "", problems)
    facts = _read_profile(root, definition)
    columns, operators, rules = _read_indicators(root, definition)
    if facts.get("kind") == "subscribers" and not columns:
        root.add(
            INDICATOR,
            (
                "must name a column for at least one indicator, because a subscriber "
                "extract contains nothing else"
            ),
        )
    _check_columns(problems, facts, columns, operators, class_column=definition.plan.class_column)
    root.finish()
    if problems.found:
        raise ProfileFileError(problems.all())
    return TypedProfile(**facts, columns=columns, rules=rules, operators=operators)


def _read_profile(root: Table, definition: StudyDefinition) -> dict[str, Any]:
    """Return what [profile] and [columns] say; not all of it after a problem."""
    facts: dict[str, Any] = {"kind": "events"}
    profile, columns = root.table("profile"), root.table("columns")
    if profile:
        facts |= {"name": _read_name(profile), "kind": cast(TypedKind, profile.choice("kind", KINDS))}
        is_events = facts["kind"] == "events"
        facts["delimiter"] = read_delimiter(profile)
        facts["max_bad_share"] = read_bad_share(
            profile, default=bad_share_of(definition, is_events=is_events)
        )
        if not is_events and definition.classes:
            rule = _("must be events in a study with classes, because each row must say the class")
            profile.add("kind", rule, facts["kind"])
        if is_events:
            facts["timestamp_format"] = read_timestamp_format(profile, default=ISO)
        else:
            profile.refuse(
                "timestamp_format", "must be absent, because subscriber extracts have no timestamps"
            )
        profile.finish()
    if columns:
        facts |= _read_roles(columns, definition, is_events=facts["kind"] == "events")
    return facts


def bad_share_of(definition: StudyDefinition, *, is_events: bool) -> Decimal:
    """Return the share of rejected rows that a study allows the files of a profile that names none."""
    extract = definition.extract if is_events else definition.subscribers or definition.extract
    return extract.max_bad_share


def _read_name(table: Table) -> str | None:
    name = table.slug("name", reserved=RESERVED_NAMES)
    if name in BUILT_IN:
        table.add("name", "is the name of a built-in profile: choose another name", name)
    if name == MORE_TO_COME:
        table.add("name", "is a reserved folder name in the watched folder: choose another name", name)
    return name


def _read_roles(table: Table, definition: StudyDefinition, *, is_events: bool) -> dict[str, str | None]:
    roles: dict[str, str | None] = {"subscriber": table.text("subscriber"), "timestamp": None, "cell": None}
    has_area = definition.area is not None
    if definition.extract.person is None:
        table.refuse("person", "must be absent: only a study with max_events has it")
    elif is_events:
        roles["person"] = table.text("person")
    if is_events:
        roles["timestamp"] = table.text("timestamp")
        roles["cell"] = table.text("cell") if has_area or table.has("cell") else None
    else:
        for role in ("timestamp", "cell"):
            table.refuse(role, "must be absent: a subscriber extract has one row per person and no events")
    table.finish()
    return roles


def _read_indicators(
    root: Table, definition: StudyDefinition
) -> tuple[dict[str, str], dict[str, str], dict[str, ValueRule]]:
    """Return columns, operators' columns and rule of the static indicators that the files hold, in order."""
    columns: dict[str, str] = {}
    operators: dict[str, str] = {}
    rules: dict[str, ValueRule] = {}
    tables = root.table(INDICATOR, required=False)
    if tables is None:
        return columns, operators, rules
    for indicator in definition.static_indicators:
        table = tables.table(indicator.slug, required=False)
        if table:
            columns[indicator.slug] = table.text("column")
            if indicator.origin is not None:
                operators[indicator.slug] = table.text("operator_column")
            is_decided = own_table(indicator) is not None
            rules[indicator.slug] = ValueRule() if is_decided else read_rule(table, indicator.categories)
            table.finish()
    for slug in tables.values:
        if slug not in tables.known:
            tables.add(slug, unknown(slug, known=tables.known, noun="static indicator"))
    return columns, operators, rules


def _check_columns(
    problems: Problems,
    facts: Mapping[str, Any],
    columns: Mapping[str, str],
    operators: Mapping[str, str],
    *,
    class_column: str | None,
) -> None:
    """One source, one meaning: else an identifier could be an answer, or a value be answered twice."""
    roles = [(f"columns.{role}", facts.get(role)) for role in ("subscriber", "person", "timestamp", "cell")]
    attributes = [(f"{INDICATOR}.{slug}.column", column) for slug, column in columns.items()]
    attributes += [
        (f"{INDICATOR}.{slug}.operator_column", column) for slug, column in operators.items() if column
    ]
    own = (
        "plan.class_column",
        class_column,
    )  # of the study: first, so that problems are those of the profile
    check_used_once(
        problems, [own, *roles, *attributes], rule=_("must be its own column, but %(first)s uses it")
    )
