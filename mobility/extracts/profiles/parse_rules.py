"""The tables [indicator.SLUG] of a profile's file: a column, and how its texts become categories."""

from collections.abc import Sequence
from datetime import date

from mobility.extracts.profiles import ages
from mobility.extracts.profiles.rules import NO_ANSWER_TEXT, ValueRule, case_problem
from reports.studies.studyfile.problems import unknown
from reports.studies.studyfile.table import Table, text_problem

MAX_PREFIX = 16
MAX_AGE = 150
BIRTH_KEYS = ("birth_year", "birth_date")
REFERENCE_FROM, REFERENCE_TO = date(1990, 1, 1), date(2199, 12, 31)
BAND_RULE = f"must be two ages from 0 to {MAX_AGE}, such as [18, 24], or a single lower limit, such as [65]"


def read_rule(table: Table, categories: Sequence[str]) -> ValueRule:
    """Return how the texts of an indicator's column become its categories."""
    prefix = table.integer("prefix", low=1, high=MAX_PREFIX) if table.has("prefix") else 0
    rule = ValueRule(
        values=_read_values(table, categories, prefix=prefix),
        ignore_case=_read_ignore_case(table),
        prefix=prefix,
        birth=_read_birth(table, categories),
        otherwise=_read_otherwise(table, categories),
    )
    if rule.birth is not None and prefix:
        table.add("prefix", "must be absent, because the column contains the birth year or date", prefix)
    if prefix and not rule.values:
        table.add("values", f"must give a meaning for each prefix of {prefix} characters")
    problem = case_problem(rule, categories)
    if problem:
        table.add("ignore_case", problem)
    return rule


def _read_ignore_case(table: Table) -> bool:
    value = table.raw("ignore_case", required=False)
    if value is None or isinstance(value, bool):
        return bool(value)
    table.add("ignore_case", "must be true or false", value)
    return False


def _read_otherwise(table: Table, categories: Sequence[str]) -> str | None:
    value = table.raw("otherwise", required=False)
    if value is None or value == NO_ANSWER_TEXT or value in categories:
        return None if value is None else str(value)
    table.add("otherwise", _category_rule(value, categories), value)
    return None


def _read_values(table: Table, categories: Sequence[str], *, prefix: int) -> dict[str, str]:
    values = table.table("values", required=False)
    if values is None:
        return {}
    read: dict[str, str] = {}
    for text, category in values.values.items():
        problem = _text_problem(text, prefix=prefix)
        if problem:
            values.add(f'"{text}"', problem)
        elif category != NO_ANSWER_TEXT and category not in categories:
            values.add(f'"{text}"', _category_rule(category, categories), category)
        else:
            read[text] = category
    return read


def _text_problem(text: str, *, prefix: int) -> str | None:
    if text == NO_ANSWER_TEXT:
        return "must not be listed: an empty value always means no answer"
    if prefix and (len(text) != prefix or not text.isascii()):
        return f"must have {prefix} ASCII characters, as set by prefix"
    return text_problem(text)


def _category_rule(value: object, categories: Sequence[str]) -> str:
    if not isinstance(value, str):
        return "must be a quoted string: a category, or empty for no answer"
    return unknown(value, known=categories, noun="category")


def _read_birth(table: Table, categories: Sequence[str]) -> ages.BirthRule | None:
    """Return birth_year or birth_date; both would contradict each other."""
    found = [(key, table.table(key)) for key in BIRTH_KEYS if table.has(key)]
    if len(found) > 1:
        table.add("birth_date", "must be absent, because birth_year already describes the column")
    for key, birth in found:
        if birth:
            return _read_birth_rule(birth, categories, is_date=key == "birth_date")
    return None


def _read_birth_rule(table: Table, categories: Sequence[str], *, is_date: bool) -> ages.BirthRule:
    pattern = ages.BIRTH_YEAR
    if is_date:
        pattern = table.text("pattern", default=ages.DEFAULT_PATTERN)
        problem = ages.pattern_problem(pattern)
        if problem:
            table.add("pattern", problem, pattern)
            pattern = ages.DEFAULT_PATTERN
    rule = ages.BirthRule(
        reference=table.day("reference", low=REFERENCE_FROM, high=REFERENCE_TO),
        bands=_read_bands(table, categories),
        pattern=pattern,
    )
    table.finish()
    return rule


def _read_bands(table: Table, categories: Sequence[str]) -> dict[str, tuple[int, int | None]]:
    bands = table.table("bands")
    if bands is None:
        return {}
    before = len(bands.problems.found)
    read: dict[str, tuple[int, int | None]] = {}
    for name, value in bands.values.items():
        band = _band_of(value)
        if name not in categories:
            bands.add(f'"{name}"', unknown(name, known=categories, noun="category"))
        elif band is None:
            bands.add(f'"{name}"', BAND_RULE, value if not isinstance(value, list) else str(value))
        else:
            read[name] = band
    problem = ages.bands_problem(read) if len(bands.problems.found) == before else None
    if problem:
        table.add("bands", problem)
    return read


def _band_of(value: object) -> tuple[int, int | None] | None:
    """First and last age, or None when it is no band."""
    if not isinstance(value, list) or not 1 <= len(value) <= 2:
        return None
    if any(isinstance(age, bool) or not isinstance(age, int) or not 0 <= age <= MAX_AGE for age in value):
        return None
    first, last = value[0], value[1] if len(value) == 2 else None
    return (first, last) if last is None or first <= last else None
