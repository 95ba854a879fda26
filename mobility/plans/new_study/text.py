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

from mobility.plans.pages.draft_fields import derived_words
from mobility.plans.pages.draft_typed import (
    CLASS,
    CLASS_KEYS,
    DAILY,
    FORM_ONLY,
    INDICATOR,
    JOINT,
    KEYS,
    PLAN,
    SLOTS,
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

ARRAYS: Final = (INDICATOR, CLASS)
FORM_BYTES: Final = 100_000  # longer texts are edited as text: every change is parsed again
# Keys with a field, by section.
FIELDS: Final[Mapping[str, Mapping[str, Callable[[str], Any]]]] = {
    "study": {**STUDY, "timezone": str, "expected_subscribers": whole},
    "study.visitor": {"min_minutes": whole, "from": str, "to": str},
    "extract": {"subscriber": str, "timestamp": str, "timestamp_format": str, "cell": str},
    "area": {"cells": str, "zones": str, "zone_column": str, "layers": lines, "water": str, "land": str},
    "plan": PLAN,
    "slots": {key: SLOTS[key] for key in ("epsilon_day", "slots_per_day")},
}
_SLUG: Final = re.compile(r"[^a-z0-9_-]+")
_ONE_LINE: Final = 80
KIND_IN_TEXT: Final = "kind_in_text"  # no field: a joint indicator has another kind there


class FormTextError(ValueError):
    """The form cannot change this text; it has to be edited as text."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One key with another value; None takes the key away.

    place : a section, or an array and the number of the table in it
    """

    place: str | tuple[str, int]
    key: str
    value: Any


@dataclass(frozen=True, slots=True)
class Rows:
    """Changes of an array: places of removed tables, and new ones."""

    array: str
    removed: list[int]
    added: list[dict[str, Any]]


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
    rows = [_rows(typed, before, array) for array in ARRAYS]
    if not edits and not any(each.removed or each.added for each in rows):
        return text
    for each in rows:
        is_changed = (
            each.removed
            or (each.added and each.array == INDICATOR)
            or any(edit.place[0] == each.array for edit in edits)
        )
        if is_changed and len(rows_of(tables, each.array)) != len(before.rows_in(each.array)):
            raise FormTextError  # the text has others by now
    try:
        document = tomlkit.parse(text)
        _change(document, edits, rows, item=_item)
        changed = tomlkit.dumps(document)
        found = tables_of_text(changed, filename=filename)
    except (TOMLKitError, LookupError, TypeError, AttributeError, ValueError):
        raise FormTextError from None
    expected = deepcopy(tables)
    _change(expected, edits, rows, item=lambda value: value)
    # The library may have misread an unusual text: it must say what the form says, and nothing else.
    if found != expected:
        raise FormTextError
    return changed


def with_names(typed: Typed) -> Typed:
    """Give what has a name and no short name one that is made from it, and what is derived a name."""
    for row in typed.rows:
        derived, own = typed.values.get(f"{row}.derive", ""), (f"{row}.name", f"{row}.slug")
        if derived and not any(typed.values.get(key, "").strip() for key in own):
            words = derived_words(derived)
            typed.values |= {own[0]: words[:1].upper() + words[1:], own[1]: derived}
    for owner in ("study", *typed.rows, *typed.classes):
        name, slug = typed.values.get(f"{owner}.name", ""), typed.values.get(f"{owner}.slug", "")
        if name.strip() and not slug.strip():
            typed.values[f"{owner}.slug"] = short_name(name)
    return typed


def short_name(name: str) -> str:
    """A slug of a name."""
    return _SLUG.sub("-", slugify(name))[:64].strip("-_")


def without_field(tables: Tables) -> list[str]:
    """Keys of a text that have no field, as they are called there."""
    found = [key for key in tables if key not in (*FIELDS, *ARRAYS)]
    for section, keys in FIELDS.items():
        known = {*keys, *(other.rpartition(".")[2] for other in FIELDS if other.startswith(f"{section}."))}
        found += [f"{section}.{key}" for key in section_of(tables, section) if key not in known]
    for array in ARRAYS:
        for place, row in enumerate(rows_of(tables, array), start=1):
            name, kind = f"{array}[{row.get('slug') or place}]", kind_of_table(row)
            own = {*CLASS_KEYS} if array == CLASS else {*FORM_ONLY.get(kind, ("kind",)), *KEYS[kind]}
            found += [f"{name}.{key}" for key in row if key not in own]
    return found


def _edits(typed: Typed, before: Typed) -> Iterator[Edit]:
    """Changes between two states of the form."""
    for section, keys in FIELDS.items():
        for key, read in keys.items():
            yield from _edit(typed, before, f"{section}.{key}", Edit(section, key, None), read)
    for array in ARRAYS:
        for place, row in enumerate(before.rows_in(array)):
            if row in typed.rows_in(array):
                for key, read in typed.keys_of(row).items():
                    yield from _edit(typed, before, f"{row}.{key}", Edit((array, place), key, None), read)
    for place, row in enumerate(before.rows):
        if row in typed.rows and typed.kind_of(row) == JOINT:
            kind = _kind_in_text(typed, row)
            if kind != before.values[f"{row}.{KIND_IN_TEXT}"]:
                yield Edit((INDICATOR, place), "kind", kind)


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


def _rows(typed: Typed, before: Typed, array: str) -> Rows:
    """Places of the indicators or classes that were removed, and the new ones as tables."""
    old, new = before.rows_in(array), typed.rows_in(array)
    return Rows(
        array,
        removed=[place for place, row in enumerate(old) if row not in new],
        added=[_new_table(typed, row) for row in new if row not in old],
    )


def _new_table(typed: Typed, row: str) -> dict[str, Any]:
    filled = {key: _plain(value) for key, value in typed.table_of(row).items()}
    if row in typed.classes:
        return filled
    kind = typed.kind_of(row)
    parts: dict[str, Any] = {"parts": []} if kind == JOINT else {}
    return {**FORM_ONLY.get(kind, {}), "kind": _kind_in_text(typed, row), **parts, **filled}


def _change(document: Any, edits: list[Edit], rows: list[Rows], *, item: Callable[[Any], Any]) -> None:
    """Change a document of the library, or plain tables: both are dictionaries."""
    for edit in edits:
        if isinstance(edit.place, str):
            table = _section(document, edit.place)
        else:
            array, place = edit.place
            table = document[array][place]
        if edit.value is None:
            table.pop(edit.key, None)
        else:
            table[edit.key] = item(edit.value)
    for section in ("area", "slots"):  # an empty one would lack its cells, or need zones
        if section in document and not document[section]:
            del document[section]
    for each in rows:
        _change_rows(document, each, item=item)


def _change_rows(document: Any, rows: Rows, *, item: Callable[[Any], Any]) -> None:
    """Remove and add tables; a new class that the text has already, by its slug, is changed there."""
    for place in reversed(rows.removed):
        del document[rows.array][place]
    if rows.removed and not document[rows.array]:
        del document[rows.array]
    is_text = isinstance(document, tomlkit.TOMLDocument)
    if rows.added and rows.array not in document:
        document[rows.array] = tomlkit.aot() if is_text else []
    for new in rows.added:
        slug = new.get("slug") if rows.array == CLASS else None
        same = next((each for each in document[CLASS] if each.get("slug") == slug), None) if slug else None
        if same is not None:
            same.update({key: item(value) for key, value in new.items()})
        else:
            document[rows.array].append(_new_row(new) if is_text else new)


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
