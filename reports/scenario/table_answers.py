"""People of a scenario from tables of another provider: do the numbers fit together, and what follows?

Totals of several files are one question: what they say together is the intersection of their limits. Where
there is none, the window is named with the number of each source; nothing is averaged, and nothing follows.
"""

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any, Final

from django.utils.translation import gettext

from ldp import Scenario, TableConflict, UnionTable, fit_unions, merge_tables, table_people
from ldp.errors import LdpError
from reports.scenario.published_tables import PublishedTable, category_table, totals_of
from reports.scenario.query import program_seconds, unsolved

People = dict[str, Any] | None  # least, most and estimate
_PER_STEP_S: Final = 2e-4  # of a fit and two linear programs, for each pair of edge and state


def table_answer(
    tables: Sequence[PublishedTable], scenario: Scenario | None, *, first_day: date, days: int
) -> dict[str, Any]:
    """Answers of tables, as plain values.

    Parameters
    ----------
    tables : of the same people; names differ
    scenario : of the same days; None: only whether the numbers fit
    first_day, days : of all tables, as `days_of` returns them

    Raises
    ------
    TableError : a window of a table lacks a category
    """
    sources = {
        name: found for table in tables for name, found in totals_of(table, first_day=first_day, days=days)
    }
    merged, conflicts = merge_tables(sources)
    of_all = _answer(merged, scenario, first_day=first_day, has_conflict=bool(conflicts))
    categories = {
        table.name: _by_category(table, scenario, first_day=first_day, days=days) for table in tables
    }
    for found in categories.values():
        of_all |= _within_sums(of_all.get("people"), [each.get("people") for each in found.values()])
    return {
        "first_day": first_day.isoformat(),
        "days": days,
        "all": {
            "sources": list(sources),
            "conflicts": [_conflict(each, first_day) for each in conflicts],
            **of_all,
        },
        "categories": categories,
    }


def seconds_of(tables: Sequence[PublishedTable], scenario: Scenario) -> float:
    """Estimate how long an answer takes, in seconds on one core."""
    n_programs = 1 + sum(len(table.categories) for table in tables)
    return n_programs * program_seconds(scenario, per_step_s=_PER_STEP_S)


def _by_category(
    table: PublishedTable, scenario: Scenario | None, *, first_day: date, days: int
) -> dict[str, Any]:
    return {
        category: _answer(
            category_table(table, category, first_day=first_day, days=days), scenario, first_day=first_day
        )
        for category in table.categories
    }


def _within_sums(people: People, parts: Sequence[People]) -> dict[str, Any]:
    """Limits of all people by those of their categories; nothing where a category has none."""
    known = [part for part in parts if part]
    if not people or not known or len(known) < len(parts):
        return {}
    least, most = (sum(part[end] for part in known) for end in ("least", "most"))
    least, most = max(least, people["least"]), min(most, people["most"])
    if least > most:
        text = gettext("The numbers for the categories do not add up to the numbers for all people.")
        return {"consistent": False, "people": None, "problem": text}
    return {"people": {"least": least, "most": most, "estimate": min(max(people["estimate"], least), most)}}


def _answer(
    table: UnionTable, scenario: Scenario | None, *, first_day: date, has_conflict: bool = False
) -> dict[str, Any]:
    """Return whether people exist who fit the table, and those of the scenario."""
    fit = fit_unions(table)
    found: dict[str, Any] = {
        "consistent": not fit.moved and not has_conflict,
        "slack": round(fit.slack, 3),
        "moved": [
            {**_window(window, first_day), "by": round(by, 3)} for window, by in sorted(fit.moved.items())
        ],
    }
    if scenario is None or not found["consistent"]:
        return found
    if (day := table.unlimited_day) is not None:
        text = gettext(
            "%s is not in any date range with a known number of visitors, so the number of visitors on "
            "that day has no upper limit."
        )
        date_of = first_day + timedelta(days=day - 1)
        return found | {"people": None, "problem": text % date_of.isoformat()}
    try:
        people = table_people(table, scenario)
    except LdpError:
        return found | {"people": None, "problem": unsolved()}
    bounds = {"least": people.least, "most": people.most, "estimate": round(people.estimate, 1)}
    return found | {"people": bounds}


def _conflict(conflict: TableConflict, first_day: date) -> dict[str, Any]:
    people = {name: [int(least), int(most)] for name, (least, most) in conflict.people.items() if most < 1e9}
    return {**_window(conflict.window, first_day), "people": people}


def _window(window: tuple[int, int], first_day: date) -> dict[str, str]:
    first, last = (first_day + timedelta(days=day - 1) for day in window)
    return {"first": first.isoformat(), "last": last.isoformat()}
