"""A first draft of a profile, from the names of a file's columns and from its first rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from mobility.extracts.profiles.aliases import OPERATORS, ROLES, attribute_names, plain
from mobility.extracts.profiles.definition import own_table
from mobility.extracts.profiles.parse import INDICATOR
from mobility.extracts.profiles.sample import Sample
from mobility.extracts.profiles.timestamp_guess import timestamp_formats
from mobility.extracts.profiles.value_guess import rule_draft
from reports.studies.studyfile import IndicatorDefinition, StudyDefinition

Reason = Literal["name", "values"]
MOST_MATCH = 0.5  # share of a column's texts that must be known cells
BY_NAME: Reason = "name"
BY_VALUES: Reason = "values"


@dataclass(slots=True)
class Proposal:
    """A draft in the shape of a profile's file.

    draft : sections [profile], [columns] and [indicator]; what could not be found is missing
    reasons : why a column was chosen, by the key of the draft
    formats : of the timestamps; two where someone must choose
    """

    draft: dict[str, Any]
    reasons: dict[str, Reason] = field(default_factory=dict)
    formats: tuple[str, ...] = ()


def propose(sample: Sample, *, definition: StudyDefinition) -> Proposal:
    """Draft a profile for files that begin like `sample`; every column serves once, that of a class never."""
    search = _Search(sample, taken={definition.plan.class_column or ""})
    columns = {
        role: search.by_name(f"columns.{role}", map(plain, aliases)) for role, aliases in ROLES.items()
    }
    attributes = {
        indicator.slug: search.by_name(
            f"{INDICATOR}.{indicator.slug}.column",
            attribute_names(indicator.slug, indicator.name, indicator.column or ""),
        )
        for indicator in definition.static_indicators
    }
    operators = {
        each.slug: search.by_name(
            f"{INDICATOR}.{each.slug}.operator_column", map(plain, (each.origin.operator_column, *OPERATORS))
        )
        for each in definition.static_indicators
        if each.origin is not None
    }
    _find_by_values(search, columns, attributes, definition)
    formats = timestamp_formats(sample.column(columns["timestamp"] or ""), definition=definition)
    kind = "subscribers" if columns["timestamp"] is None and any(attributes.values()) else "events"
    if kind == "subscribers":
        columns = {"subscriber": columns["subscriber"]}
    profile: dict[str, Any] = {"kind": kind}
    if sample.delimiter:
        profile["delimiter"] = sample.delimiter
    if kind == "events" and len(formats) == 1:
        profile["timestamp_format"] = formats[0]
    draft = {
        "profile": profile,
        "columns": {role: name for role, name in columns.items() if name},
        INDICATOR: _indicators(sample, attributes, operators, definition),
    }
    return Proposal(draft=draft, reasons=search.reasons, formats=formats)


def _find_by_values(
    search: "_Search",
    columns: dict[str, str | None],
    attributes: dict[str, str | None],
    definition: StudyDefinition,
) -> None:
    """Fill what names did not tell."""
    if columns["timestamp"] is None:
        columns["timestamp"] = search.by_values(
            "columns.timestamp", lambda texts: bool(timestamp_formats(texts, definition=definition))
        )
    cells = {cell.cell_id for cell in definition.area.cells} if definition.area else set()
    if columns["cell"] is None and cells:
        columns["cell"] = search.by_values(
            "columns.cell", lambda texts: sum(text in cells for text in texts) >= MOST_MATCH * len(texts)
        )
    for indicator in definition.static_indicators:
        if attributes[indicator.slug] is None and own_table(indicator) is None:
            attributes[indicator.slug] = search.by_values(
                f"{INDICATOR}.{indicator.slug}.column", _holds_categories(indicator)
            )


def _holds_categories(indicator: IndicatorDefinition) -> Callable[[Sequence[str]], bool]:
    known = {plain(name) for name in indicator.categories}

    def holds(texts: Sequence[str]) -> bool:
        found = {plain(text) for text in texts}
        return len(found) > 1 and found <= known

    return holds


def _indicators(
    sample: Sample,
    attributes: dict[str, str | None],
    operators: dict[str, str | None],
    definition: StudyDefinition,
) -> dict[str, dict[str, Any]]:
    return {
        indicator.slug: {
            "column": column,
            **({"operator_column": operator} if (operator := operators.get(indicator.slug)) else {}),
            **(
                {}
                if own_table(indicator)
                else rule_draft(sample.column(column), indicator.categories, reference=definition.first_day)
            ),
        }
        for indicator in definition.static_indicators
        if (column := attributes[indicator.slug])
    }


@dataclass(slots=True)
class _Search:
    """The columns that no one has taken yet."""

    sample: Sample
    taken: set[str] = field(default_factory=set)
    reasons: dict[str, Reason] = field(default_factory=dict)

    def by_name(self, key: str, wanted: "Sequence[str] | map[str]") -> str | None:
        """The column with the first of the names, in plain letters."""
        free = {plain(name): name for name in reversed(self._free())}
        for name in wanted:
            if name in free:
                return self._take(key, free[name], BY_NAME)
        return None

    def by_values(self, key: str, fits: Callable[[Sequence[str]], bool]) -> str | None:
        """The first column whose texts fit."""
        for name in self._free():
            texts = [text for text in self.sample.column(name) if text]
            if texts and fits(texts):
                return self._take(key, name, BY_VALUES)
        return None

    def _free(self) -> list[str]:
        names = self.sample.names
        return [name for name in names if name and names.count(name) == 1 and name not in self.taken]

    def _take(self, key: str, name: str, reason: Reason) -> str:
        self.taken.add(name)
        self.reasons[key] = reason
        return name
