"""Contents of the form of a draft, as tables of a study file: the same parser reads both.

Names of fields are keys of the study file, so that each problem finds its field: plan.epsilon, and for the
third indicator indicator-2.epsilon; for the first class class-0.epsilon.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from reports.studies.studyfile import StudyDefinition
from reports.studies.studyfile.lookups import LOOKUP_KEYS
from reports.studies.studyfile.numbers import NUMBER
from reports.studies.studyfile.origins import VISITOR_CATEGORY
from reports.studies.studyfile.redraft import Tables, tables_of

STATIC, DAILY = "static", "daily"
JOINT: Final = "joint"  # in the form only: an indicator that has parts, and is daily if one of these is
# In the form only, too: a static indicator that is derived from two columns.
ORIGIN: Final = VISITOR_CATEGORY
INDICATOR, CLASS = "indicator", "class"  # arrays of a study file
ROW: Final = "row"  # field that names the indicators and classes there are, in their order
_WHOLE = re.compile(r"[+-]?\d{1,18}")
_COMMA = re.compile(r"(\d+),(\d+)")


@dataclass(slots=True)
class Typed:
    """Contents of the form: text by the name of its field, and the keys of indicators and of classes."""

    values: dict[str, str]
    rows: list[str] = field(default_factory=list)
    classes: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, definition: StudyDefinition) -> "Typed":
        """The form of a draft as it is."""
        return cls.of_tables(tables_of(definition), sections=("study", "plan", "slots"))

    @classmethod
    def of_tables(cls, tables: Tables, *, sections: Iterable[str]) -> "Typed":
        """The form of the tables of a study file, right or wrong; a section may be study.visitor."""
        typed = cls({})
        for section in sections:
            typed.values |= {
                f"{section}.{key}": _text(value) for key, value in section_of(tables, section).items()
            }
        typed.values["plan.tallies"] = typed.values.get("plan.tallies", "").replace("\n", " ")
        for array in (INDICATOR, CLASS):
            for place, table in enumerate(rows_of(tables, array)):
                row = f"{array}-{place}"
                typed.rows_in(array).append(row)
                typed.values |= {f"{row}.{key}": _text(value) for key, value in table.items()}
        for row, indicator in zip(typed.rows, rows_of(tables), strict=True):
            if (kind := kind_of_table(indicator)) in FORM_ONLY:
                typed.values[f"{row}.kind"] = kind
        return typed

    @classmethod
    def sent(cls, data: Mapping[str, list[str]]) -> "Typed":
        """Submitted form."""
        values = {
            name: texts[-1].replace("\r\n", "\n") for name, texts in data.items() if "." in name and texts
        }
        rows = [
            [row for row in data.get(ROW, []) if re.fullmatch(rf"{array}-\d{{1,4}}", row)]
            for array in (INDICATOR, CLASS)
        ]
        return cls(values, *rows)

    def rows_in(self, array: str) -> list[str]:
        """Keys of INDICATOR or CLASS."""
        return self.rows if array == INDICATOR else self.classes

    def add(self, kind: str) -> str:
        """One more indicator or class, empty; returns its key."""
        array = CLASS if kind == CLASS else INDICATOR
        taken = [int(row.rpartition("-")[2]) for row in self.rows_in(array)]
        row = f"{array}-{max(taken, default=-1) + 1}"
        self.rows_in(array).append(row)
        if array == INDICATOR:
            self.values[f"{row}.kind"] = kind
        return row

    def remove(self, row: str) -> None:
        """Drop an indicator or a class, by its key."""
        self.rows, self.classes = (
            [each for each in rows if each != row] for rows in (self.rows, self.classes)
        )

    def tables(self, definition: StudyDefinition) -> Tables:
        """The tables that the form describes; what it has no field for stays as in `definition`."""
        tables = tables_of(definition)
        lookups = {
            (each["slug"], each.get("column")): {key: each[key] for key in LOOKUP_KEYS if key in each}
            for each in tables["indicator"]
        }
        for section, keys in (("study", STUDY), ("plan", PLAN), ("slots", SLOTS)):
            for key, read in keys.items() if section in tables else ():
                _put(tables[section], key, self.values.get(f"{section}.{key}", ""), read)
        if definition.slug and "study.slug" not in self.values:
            tables["study"]["slug"] = definition.slug
        tables[INDICATOR] = [self._indicator(row) for row in self.rows]
        tables.pop(CLASS, None)
        if self.classes:
            tables[CLASS] = [self.table_of(row) for row in self.classes]
        for row, table in zip(self.rows, tables["indicator"], strict=True):
            if self.kind_of(row) == STATIC:
                table.update(lookups.get((table.get("slug"), table.get("column")), {}))
        daily = {table.get("slug") for table in tables["indicator"] if table["kind"] == DAILY}
        for table in tables["indicator"]:
            if daily.intersection(table.get("parts", [])):
                table["kind"] = DAILY
        return tables

    def _indicator(self, row: str) -> dict[str, Any]:
        kind = self.kind_of(row)
        table = {"kind": kind, **FORM_ONLY.get(kind, {}), **self.table_of(row)}
        if kind == JOINT:  # without any it would be another kind of indicator
            table.setdefault("parts", [])
        return table

    def table_of(self, row: str) -> dict[str, Any]:
        """Keys and values of an indicator or a class; empty fields are absent keys."""
        texts = {key: self.values.get(f"{row}.{key}", "").strip() for key in self.keys_of(row)}
        return {key: read(texts[key]) for key, read in self.keys_of(row).items() if texts[key]}

    def kind_of(self, row: str) -> str:
        """Return STATIC, DAILY, JOINT, ORIGIN or NUMBER."""
        kind = self.values.get(f"{row}.kind", STATIC)
        return kind if kind in KEYS else STATIC

    def keys_of(self, row: str) -> "Keys":
        """Keys of an indicator or a class, each with what reads its text."""
        return CLASS_KEYS if row in self.classes else KEYS[self.kind_of(row)]


def kind_of_table(row: Mapping[str, Any]) -> str:
    """Kind in the form of an indicator of a study file, right or wrong."""
    if "parts" in row:
        return JOINT
    kind = ORIGIN if row.get("derive") == VISITOR_CATEGORY else row.get("kind")
    return kind if isinstance(kind, str) and kind in KEYS else STATIC


def section_of(tables: Tables, section: str) -> dict[str, Any]:
    """The table of a section such as study.visitor; empty where there is none."""
    found: Any = tables
    for part in section.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def rows_of(tables: Tables, array: str = INDICATOR) -> list[dict[str, Any]]:
    """The tables of the indicators or classes; none where the text has something else in their place."""
    found = tables.get(array, [])
    is_list = isinstance(found, list) and all(isinstance(each, dict) for each in found)
    return list(found) if is_list else []


def _put(table: dict[str, Any], key: str, text: str, read: Callable[[str], Any]) -> None:
    """An empty field is an absent key: its default, or a key that is missing."""
    if text.strip():
        table[key] = read(text.strip())
    else:
        table.pop(key, None)


def _number(text: str) -> Any:
    """The number, or the text for the parser to complain of; a decimal comma is one."""
    try:
        return Decimal(_COMMA.sub(r"\1.\2", text) if _COMMA.fullmatch(text) else text)
    except InvalidOperation:
        return text


def _yes(text: str) -> Any:
    """True or False as TOML writes them, or the text for the parser to complain of."""
    return {"true": True, "false": False}.get(text, text)


def whole(text: str) -> Any:
    return int(text) if _WHOLE.fullmatch(text) else text


def _day(text: str) -> Any:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return text


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _groups(text: str) -> dict[str, list[str]]:
    """Groups of lines such as "North: Lille"; a line without a category is a group without one."""
    found: dict[str, list[str]] = {}
    for line in lines(text):
        name, _, category = line.partition(": ")
        found.setdefault(name.strip(), []).extend([category.strip()] if category.strip() else [])
    return found


Keys = Mapping[str, Callable[[str], Any]]
STUDY: Final[Keys] = {
    "name": str,
    "name_fr": str,
    "slug": str,
    "first_day": _day,
    "days": whole,
    "market_share": _number,
    "min_publication": whole,
    "small_cell": whole,
    "small_category": whole,
    "population": str,
    "key_until": _day,
}
PLAN: Final[Keys] = {
    "mechanism": str,
    "unit": str,
    "epsilon": _number,
    "epsilon_profile": _number,
    "presence_epsilon": _number,
    "presence_days": whole,
    "tallies": str.split,
    "epsilon_first": _number,
    "hash_cells": str,
    "window_days": whole,
    "class_column": str,
    "discloses_values": _yes,
}
SLOTS: Final[Keys] = {
    "minutes": whole,
    "hold_minutes": whole,
    "slots_per_day": whole,
    "noise": str,
    "epsilon_day": _number,
    "delta": _number,
    "close_after_minutes": whole,
}
_OF_BOTH: Final[Keys] = {
    "name": str,
    "name_fr": str,
    "slug": str,
    "epsilon": _number,
    "weight": _number,
}
STATIC_KEYS: Final[Keys] = {
    **_OF_BOTH,
    "column": str,
    "categories": lines,
    "categories_fr": lines,
    "groups": _groups,
    "protect": str,
    "sensitive": lines,
}
DAILY_KEYS: Final[Keys] = {
    **_OF_BOTH,
    "derive": str,
    "categories_fr": lines,
    "groups": _groups,
    "protect": str,
    "sensitive": lines,
    "max_values": whole,
    "max_moves": whole,
    "max_visits": whole,
    "night_from": str,
    "night_to": str,
}


ORIGIN_KEYS: Final[Keys] = {
    **_OF_BOTH,
    "column": str,
    "operator_column": str,
    "home": lines,
    "countries": lines,
    "categories_fr": lines,
    "groups": _groups,
}
NUMBER_KEYS: Final[Keys] = {
    **_OF_BOTH,
    "column": str,
    "derive": str,
    "max_values": whole,
    "unit": str,
    "minimum": whole,
    "report": str,
    "cuts": lambda text: [whole(each) for each in text.replace(",", " ").split()],
    "night_from": str,
    "night_to": str,
}
KEYS: Final[Mapping[str, Keys]] = {
    STATIC: STATIC_KEYS,
    DAILY: DAILY_KEYS,
    JOINT: {**_OF_BOTH, "parts": lines, "max_values": whole},
    ORIGIN: ORIGIN_KEYS,
    NUMBER: NUMBER_KEYS,
}
CLASS_KEYS: Final[Keys] = {"name": str, "name_fr": str, "slug": str, "value": str, "epsilon": _number}
# Keys of a study file that make an indicator one of these kinds, which only the form has.
FORM_ONLY: Final[Mapping[str, Mapping[str, Any]]] = {
    JOINT: {"kind": STATIC},
    ORIGIN: {"kind": STATIC, "derive": VISITOR_CATEGORY},
}


def _text(value: Any) -> str:
    if isinstance(value, dict):
        groups = ((name, of) for name, of in value.items() if isinstance(of, list))
        return "\n".join(f"{name}: {category}" for name, of in groups for category in of)
    if isinstance(value, list):
        return "\n".join(map(str, value))
    if isinstance(value, bool):
        return str(value).lower()
    return format(value.normalize(), "f") if isinstance(value, Decimal) else str(value)
