"""The text of a study file, edited in place: comments, order and keys without a field stay as they are."""

import re
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, Final

import tomlkit
from django.utils.text import slugify
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Item

from mobility.plans.pages.draft_typed import (
    DAILY,
    FORM_ONLY,
    JOINT,
    KEYS,
    PLAN,
    STATIC,
    STUDY,
    Typed,
    kind_of_table,
    lines,
    rows_of,
    section_of,
    whole,
)
from reports.studies.studyfile.category_shares import KEY as SHARES
from reports.studies.studyfile.problems import Problems
from reports.studies.studyfile.redraft import Tables
from reports.studies.studyfile.toml import parse_toml

FORM_BYTES: Final = 100_000  # longer texts are edited as text: every change is parsed again
# Keys with a field, by section.
FIELDS: Final[Mapping[str, Mapping[str, Callable[[str], Any]]]] = {
    "study": {**STUDY, "timezone": str, "expected_subscribers": whole},
    "study.visitor": {"min_minutes": whole, "from": str, "to": str},
    "extract": {"subscriber": str, "timestamp": str, "timestamp_format": str, "cell": str},
    "area": {"cells": str, "zones": str, "zone_column": str, "layers": lines, "water": str, "land": str},
    "plan": PLAN,
}
_SLUG: Final = re.compile(r"[^a-z0-9_-]+")
_ONE_LINE: Final = 80
KIND_IN_TEXT: Final = "kind_in_text"  # no field: a joint indicator has another kind there


class FormTextError(ValueError):
    """The form cannot change this text; it has to be edited as text."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One key with another value; None takes the key away.

    place : a section, or the number of an indicator
    """

    place: str | int
    key: str
    value: Any


def tables_of_text(text: str, *, filename: str) -> Tables:
    """The tables of a text, right or wrong; StudyFileError if it is not TOML."""
    return parse_toml(text.encode(), Problems(filename))


def typed_of_text(tables: Tables) -> Typed:
    """Return the form of a text."""
    typed = Typed.of_tables(tables, sections=FIELDS)
    for row, table in zip(typed.rows, rows_of(tables), strict=True):
        typed.values[f"{row}.{KIND_IN_TEXT}"] = str(table.get("kind"))
    return typed


def merged(text: str, typed: Typed, *, base: Tables, filename: str) -> str:
    """Return the text with what was changed in the form.

    Parameters
    ----------
    base : tables of the text that the form was made from; what was changed in the text since then stays

    Raises
    ------
    StudyFileError : the text is not TOML
    FormTextError : it is written in a way that cannot be edited here
    """
    tables, before = tables_of_text(text, filename=filename), typed_of_text(base)
    edits = list(_edits(typed, before))
    removed, added = _rows(typed, before)
    if not (edits or removed or added):
        return text
    is_of_rows = removed or added or any(isinstance(each.place, int) for each in edits)
    if is_of_rows and len(rows_of(tables)) != len(before.rows):  # the text has others by now
        raise FormTextError
    try:
        document = tomlkit.parse(text)
        _change(document, edits, removed, added, item=_item)
        changed = tomlkit.dumps(document)
        found = tables_of_text(changed, filename=filename)
    except (TOMLKitError, LookupError, TypeError, AttributeError, ValueError):
        raise FormTextError from None
    expected = deepcopy(tables)
    _change(expected, edits, removed, added, item=lambda value: value)
    # The library may have misread an unusual text: it must say what the form says, and nothing else.
    if found != expected:
        raise FormTextError
    return changed


def with_names(typed: Typed) -> Typed:
    """Give what has a name and no short name one that is made from it."""
    for owner in ("study", *typed.rows):
        name, slug = typed.values.get(f"{owner}.name", ""), typed.values.get(f"{owner}.slug", "")
        if name.strip() and not slug.strip():
            typed.values[f"{owner}.slug"] = short_name(name)
    return typed


def short_name(name: str) -> str:
    """A slug of a name."""
    return _SLUG.sub("-", slugify(name))[:64].strip("-_")


def without_field(tables: Tables) -> list[str]:
    """Keys of a text that have no field, as they are called there."""
    found = [key for key in tables if key not in (*FIELDS, "indicator")]
    for section, keys in FIELDS.items():
        known = {*keys, *(other.rpartition(".")[2] for other in FIELDS if other.startswith(f"{section}."))}
        found += [f"{section}.{key}" for key in section_of(tables, section) if key not in known]
    for place, row in enumerate(rows_of(tables), start=1):
        kind = kind_of_table(row)
        name = f"indicator[{row.get('slug') or place}]"
        found += [f"{name}.{key}" for key in row if key not in (*FORM_ONLY.get(kind, ("kind",)), *KEYS[kind])]
    return found


def _edits(typed: Typed, before: Typed) -> Iterator[Edit]:
    """Changes between two states of the form."""
    for section, keys in FIELDS.items():
        for key, read in keys.items():
            yield from _edit(typed, before, f"{section}.{key}", Edit(section, key, None), read)
    for place, row in enumerate(before.rows):
        if row in typed.rows:
            for key, read in KEYS[typed.kind_of(row)].items():
                yield from _edit(typed, before, f"{row}.{key}", Edit(place, key, None), read)
            kind = _kind_in_text(typed, row)
            if typed.kind_of(row) == JOINT and kind != before.values[f"{row}.{KIND_IN_TEXT}"]:
                yield Edit(place, "kind", kind)


def _kind_in_text(typed: Typed, row: str) -> str:
    """Kind of an indicator in the text: a joint one is daily if one of its parts is."""
    kind = typed.kind_of(row)
    if kind != JOINT:
        return str(FORM_ONLY.get(kind, {"kind": kind})["kind"])
    daily = {typed.values.get(f"{each}.slug") for each in typed.rows if typed.kind_of(each) == DAILY}
    parts = lines(typed.values.get(f"{row}.parts", ""))
    return DAILY if daily.intersection(parts) else STATIC


def _edit(typed: Typed, before: Typed, name: str, edit: Edit, read: Callable[[str], Any]) -> Iterator[Edit]:
    text = typed.values.get(name)
    if text is None or text.strip() == before.values.get(name, "").strip():
        return
    yield Edit(edit.place, edit.key, _plain(read(text.strip())) if text.strip() else None)


def _rows(typed: Typed, before: Typed) -> tuple[list[int], list[dict[str, Any]]]:
    """Places of the indicators that were removed, and the new ones as tables."""
    removed = [place for place, row in enumerate(before.rows) if row not in typed.rows]
    added = []
    for row in typed.rows:
        if row not in before.rows:
            kind = typed.kind_of(row)
            filled: dict[str, Any] = {
                key: _plain(read(text))
                for key, read in KEYS[kind].items()
                if (text := typed.values.get(f"{row}.{key}", "").strip())
            }
            parts: dict[str, Any] = {"parts": []} if kind == JOINT else {}
            own = {**FORM_ONLY.get(kind, {}), "kind": _kind_in_text(typed, row)}
            added.append({**own, **parts, **filled})
    return removed, added


def _change(
    document: Any,
    edits: list[Edit],
    removed: list[int],
    added: list[dict[str, Any]],
    *,
    item: Callable[[Any], Any],
) -> None:
    """Change a document of the library, or plain tables: both are dictionaries."""
    for edit in edits:
        is_row = isinstance(edit.place, int)
        table = document["indicator"][edit.place] if is_row else _section(document, str(edit.place))
        if edit.value is None:
            table.pop(edit.key, None)
        else:
            table[edit.key] = item(edit.value)
    if "area" in document and not document["area"]:  # an empty one would lack its cells
        del document["area"]
    for place in reversed(removed):
        del document["indicator"][place]
    if removed and not document["indicator"]:
        del document["indicator"]
    is_text = isinstance(document, tomlkit.TOMLDocument)
    if added and "indicator" not in document:
        document["indicator"] = tomlkit.aot() if is_text else []
    for new in added:
        document["indicator"].append(_new_row(new) if is_text else new)


def _new_row(values: Mapping[str, Any]) -> Any:
    table = _table(values)
    table.trivia.indent = "\n"  # an empty line before it
    return table


def _section(document: Any, name: str) -> Any:
    table = document
    for part in name.split("."):
        if part not in table:
            table[part] = tomlkit.table() if isinstance(document, tomlkit.TOMLDocument) else {}
        table = table[part]
    return table


def _plain(value: Any) -> Any:
    """A value that TOML can hold: what is no number stays the text that was typed."""
    return str(value) if isinstance(value, Decimal) and not value.is_finite() else value


def _item(value: Any) -> Item:
    if isinstance(value, Decimal):
        return tomlkit.value(format(value, "f"))
    if isinstance(value, list):
        array = tomlkit.array()
        array.extend(value)
        array.multiline(sum(len(str(each)) + 4 for each in value) > _ONE_LINE)
        return array
    if isinstance(value, dict):
        table = tomlkit.inline_table()
        for key, each in value.items():
            table[key] = _item(each)
        return table
    item: Item = tomlkit.item(value)
    return item


def text_of(tables: Tables) -> str:
    """A study file of plain tables."""
    document = tomlkit.document()
    for section, table in tables.items():
        document[section] = _array_of(table) if isinstance(table, list) else _table(table)
    return tomlkit.dumps(document)


def _array_of(rows: list[dict[str, Any]]) -> Any:
    array = tomlkit.aot()
    for row in rows:
        array.append(_table(row))
    return array


def _table(values: Mapping[str, Any]) -> Any:
    table = tomlkit.table()
    below = {key: value for key, value in values.items() if _is_below(key, value)}
    for key, value in values.items():
        if key not in below:
            table[key] = _item(value)
    for key, value in below.items():
        table[key] = _array_of(value) if isinstance(value, list) else _table(value)
    return table


def _is_below(key: str, value: Any) -> bool:
    """Return whether a value has its own heading, behind the other keys of the section."""
    return (key == "visitor" and isinstance(value, dict)) or (key == SHARES and isinstance(value, list))


def blank_text(*, timezone: str, first_day: date) -> str:
    """A study file to begin with: what most studies have, and nothing that only the administrator knows."""
    return (
        f'[study]\ntimezone = "{timezone}"\nfirst_day = {first_day}\ndays = 7\n\n'
        '[study.visitor]\nmin_minutes = 60\nfrom = "06:00"\nto = "23:59"\n\n[extract]\n\n'
        '[plan]\nmechanism = "smp-adp"\nunit = "profile"\nepsilon = 1\n'
    )
