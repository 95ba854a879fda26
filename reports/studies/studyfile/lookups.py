"""Lookup files of static indicators: which category each code of a column stands for."""

import csv
import hashlib
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any, Final, Self

from django.utils.translation import gettext_noop as _

from reports.base.reasons import Reason
from reports.studies.studyfile.problems import Problem, Problems, unknown
from reports.studies.studyfile.table import Table, text_problem, utf8_text

LOOKUP_KEYS: Final = ("lookup", "prefix", "otherwise")
LOOKUP_HEADER: Final = ["code", "category"]
MAX_CODES: Final = 40_000
MAX_PREFIX: Final = 16
NO_ANSWER: Final = ""  # in the place of a category
NOT_GIVEN: Final = _("must name a file that is given together with the study file")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """Meaning of the codes of a column, from a file.

    file : its name in the study file
    sha256 : of its bytes; part of the plan, so that every plan says by which file people were classified
    prefix : how many leading characters of a text count; 0 = all
    otherwise : category of other texts, NO_ANSWER for none; None = their rows are rejected
    codes : codes by category, NO_ANSWER for codes that are no answer
    """

    file: str
    sha256: str = ""
    prefix: int = 0
    otherwise: str | None = None
    codes: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def category_of(self) -> dict[str, str]:
        """Return the category by code."""
        return {code: category for category, codes in self.codes for code in codes}

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | None) -> Self | None:
        """Rebuild a lookup from plain values; None where there is none."""
        if data is None:
            return None
        codes = tuple((category, tuple(codes)) for category, codes in data["codes"])
        return cls(**{**data, "codes": codes})


def read_lookup(table: Table, categories: Sequence[str]) -> Lookup | None:
    """Read the keys of a lookup; its file is read by `lookup_of_file`."""
    if not table.has("lookup"):
        for key in LOOKUP_KEYS[1:]:
            table.refuse(key, _("must be absent without lookup"))
        return None
    otherwise = table.raw("otherwise", required=False)
    if otherwise not in (None, NO_ANSWER, *categories):
        table.add(
            "otherwise",
            Reason(
                _("must be one of the categories, or empty for no answer, got %(found)s"),
                found=repr(otherwise),
            ),
        )
        otherwise = None
    prefix = table.integer("prefix", low=1, high=MAX_PREFIX) if table.has("prefix") else 0
    return Lookup(file=table.text("lookup"), prefix=prefix, otherwise=otherwise)


def file_content(table: Table, key: str, name: str, *, read: Callable[[str], bytes]) -> bytes | None:
    """Return the content of the file that `key` names; None after a problem, which is noted."""
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or ":" in path.parts[0]:
        table.add(key, _("must name a file in the folder of the study file, or below it"), name)
        return None
    try:
        return read(name)
    except FileNotFoundError:
        table.add(key, NOT_GIVEN, name)
        return None


def lookup_of_file(
    table: Table, lookup: Lookup, categories: Sequence[str], *, read: Callable[[str], bytes]
) -> tuple[Lookup, list[Problem]]:
    """Return the lookup with what its file holds, and the problems of the file."""
    data = file_content(table, "lookup", lookup.file, read=read) if lookup.file else None
    if data is None:
        return lookup, []
    problems = Problems(lookup.file)
    codes = _codes(data, problems, categories=categories, prefix=lookup.prefix)
    by_category = (
        (each, tuple(code for code, of in codes.items() if of == each)) for each in (*categories, NO_ANSWER)
    )
    filled = tuple((category, of) for category, of in by_category if of)
    return replace(lookup, sha256=hashlib.sha256(data).hexdigest(), codes=filled), problems.all()


def _codes(data: bytes, problems: Problems, *, categories: Sequence[str], prefix: int) -> dict[str, str]:
    """Category by code; notes what is no row of such a file."""
    text = utf8_text(data, problems)
    rows = csv.reader(io.StringIO(text or "", newline=""), strict=True)
    found: dict[str, str] = {}
    known = {*categories, NO_ANSWER}
    try:
        if text is not None and next(rows, None) != LOOKUP_HEADER:
            problems.add("line 1", Reason(_("must be %(text)s"), text=",".join(LOOKUP_HEADER)))
            return found
        for row in rows:
            where = f"line {rows.line_num}"
            if len(found) == MAX_CODES:
                problems.add(where, Reason(_("must be at most %(most)s codes"), most=MAX_CODES))
                break
            if len(row) != len(LOOKUP_HEADER):
                problems.add(where, Reason(_("must have %(n)s columns"), n=len(LOOKUP_HEADER)), len(row))
                continue
            code, category = row
            if problem := _code_problem(code, prefix=prefix):
                problems.add(f"{where}, code", problem, code)
            elif code in found:
                problems.add(f"{where}, code", _("must be unique"), code)
            elif category not in known:
                problems.add(f"{where}, category", unknown(category, known=categories, noun="category"))
            found[code] = category
    except csv.Error as error:
        problems.add(f"line {rows.line_num}", Reason(_("must be CSV: %(problem)s"), problem=str(error)))
    if not found and not problems.found:
        problems.add("line 2", _("must list at least one code"))
    return found


def _code_problem(code: str, *, prefix: int) -> str | None:
    if prefix and (len(code) != prefix or not code.isascii()):
        return Reason(_("must have %(n)s ASCII characters, as set by prefix"), n=prefix)
    return text_problem(code)
