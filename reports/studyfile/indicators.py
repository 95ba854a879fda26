"""The list [[indicator]]."""

from decimal import Decimal
from typing import Any, cast

from ldp.params import Kind
from reports.studyfile.definition import (
    VISIT_DURATION,
    VISIT_DURATION_BANDS,
    IndicatorDefinition,
    PlanDefinition,
)
from reports.studyfile.sections import EPSILON, WEIGHT
from reports.studyfile.table import Table, text_problem

MAX_INDICATORS = 255
MAX_CATEGORIES = 65_534
MAX_TALLY_CELLS = 8_000_000  # of one indicator: 64 MB, read and written whole
# Pages of a study that stand where an indicator's page would.
RESERVED_INDICATORS = frozenset({"statement", "days", "export", "maps", "notes"})


def read_indicators(
    root: Table, *, days: int, plan: PlanDefinition | None
) -> tuple[IndicatorDefinition, ...]:
    """Return the indicators in file order; `days` bounds max_values, and not every plan suits every one."""
    items = root.raw("indicator")
    if items is None:
        return ()
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items) or not items:
        root.add("indicator", "must be a list of tables: write [[indicator]]", items)
        return ()
    if len(items) > MAX_INDICATORS:
        root.add("indicator", f"must be at most {MAX_INDICATORS}", len(items))
        return ()
    return tuple(_read_indicator(table, days=days, plan=plan) for table in _tables(root, items=items))


def _tables(root: Table, *, items: list[dict[str, Any]]) -> list[Table]:
    """Name each indicator by its slug, or by its place while it has none of its own."""
    tables: list[Table] = []
    seen: set[str] = set()
    for position, item in enumerate(items, start=1):
        slug = item.get("slug")
        usable = isinstance(slug, str) and slug != "" and slug not in seen
        table = Table(item, f"indicator[{slug if usable else position}]", root.problems)
        if isinstance(slug, str):
            if slug in seen:
                table.add("slug", "must be unique in the study", slug)
            seen.add(slug)
        tables.append(table)
    return tables


def _read_indicator(table: Table, *, days: int, plan: PlanDefinition | None) -> IndicatorDefinition:
    slug = table.slug("slug", reserved=RESERVED_INDICATORS) or "unknown"
    kind = cast(Kind, table.choice("kind", ("static", "daily")))
    epsilon = table.decimal("epsilon", EPSILON, required=False)
    weight = table.decimal("weight", WEIGHT, required=False)
    if plan is not None:
        _check_suits(table, plan, kind=kind, epsilon=epsilon)
    name = table.text("name", default=slug.replace("_", " ").replace("-", " ").capitalize())
    reader = _read_static if kind == "static" else _read_daily
    # An unknown kind says nothing about the other keys.
    specific = reader(table, days=days) if table.values.get("kind") == kind else _unread(table)
    table.finish()
    return IndicatorDefinition(slug=slug, name=name, kind=kind, epsilon=epsilon, weight=weight, **specific)


def _check_suits(table: Table, plan: PlanDefinition, *, kind: Kind, epsilon: Decimal | None) -> None:
    """Note what the plan's mechanism cannot do for an indicator."""
    mechanism = plan.mechanism
    if epsilon is not None and mechanism == "spl-grr":
        table.add("epsilon", "must be absent: spl-grr shares the epsilon of the plan equally", epsilon)
    if epsilon is not None and mechanism.startswith("rsfd-"):
        rule = f"must be absent: {mechanism} has one for all, since every report may be the answer"
        table.add("epsilon", rule, epsilon)
    if not mechanism.startswith("smp-"):
        table.refuse("weight", f"must be absent: under {mechanism} every indicator is asked alike")
    if kind == "daily" and mechanism.startswith("rsfd-") and plan.unit == "attribute":
        rule = (
            f"must be static under {mechanism} with the unit attribute: a made-up report does not change "
            "with the value, so one that changes would be the answer (choose the unit profile, or smp)"
        )
        table.add("kind", rule, kind)


def _unread(table: Table) -> dict[str, Any]:
    for key in ("column", "categories", "derive", "max_values"):
        table.has(key)
    return {"column": None, "derive": None, "categories": (), "max_values": None}


def _read_static(table: Table, *, days: int) -> dict[str, Any]:
    table.refuse("derive", "must be absent: a static indicator reads a column")
    table.refuse("max_values", "must be absent: only a daily indicator has several values")
    return {
        "column": table.text("column"),
        "derive": None,
        "categories": _read_categories(table, days=days),
        "max_values": None,
    }


def _read_daily(table: Table, *, days: int) -> dict[str, Any]:
    rule = f'must be "{VISIT_DURATION}", the only one available now'
    derive = table.raw("derive", required=False)
    if derive is None:
        table.add("derive", f"is missing, {rule}")
    elif derive != VISIT_DURATION:
        table.add("derive", rule, derive)
    table.refuse("column", "must be absent: a daily indicator is derived from the events of the day")
    table.refuse("categories", "must be absent: the bands of a derived indicator are fixed")
    has_limit = table.has("max_values")
    return {
        "column": None,
        "derive": VISIT_DURATION,
        "categories": VISIT_DURATION_BANDS,
        "max_values": table.integer("max_values", low=1, high=days) if has_limit else None,
    }


def _read_categories(table: Table, *, days: int) -> tuple[str, ...]:
    values = table.raw("categories")
    if values is None:
        return ()
    most = min(MAX_CATEGORIES, MAX_TALLY_CELLS // (days + 1) ** 2)
    if not isinstance(values, list) or not 2 <= len(values) <= most:
        found = len(values) if isinstance(values, list) else values
        table.add("categories", f"must be a list of 2 to {most} texts in a study of {days} days", found)
        return ()
    seen: set[str] = set()
    for position, value in enumerate(values, start=1):
        problem = text_problem(value)
        if problem is None and value in seen:
            problem = "must be unique in the indicator"
        if problem:
            table.add(f"categories[{position}]", problem, value)
        elif isinstance(value, str):
            seen.add(value)
    return tuple(str(value) for value in values)
