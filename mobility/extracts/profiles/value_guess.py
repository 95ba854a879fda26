"""Guess the meaning of the texts of a column: the rule of an indicator, as in a profile's file."""

import re
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any, Final

from mobility.extracts.profiles.ages import FIRST_YEAR, bands_problem
from mobility.extracts.profiles.aliases import plain
from mobility.extracts.profiles.rules import ValueRule, case_problem

# Ways of saying male and female; ISO 5218 has the digits.
GENDERS: Final = (
    frozenset(
        {"m", "h", "male", "man", "homme", "masculin", "masculine", "hombre", "mann", "maennlich", "1"}
    ),
    frozenset(
        {"f", "w", "female", "woman", "femme", "feminin", "feminine", "mujer", "frau", "weiblich", "2"}
    ),
)
DATE_PATTERNS: Final = (
    "%Y-%m-%d",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d.%m.%Y",
    "%d-%m-%Y",
    "%Y/%m/%d",
    "%Y%m%d",
    "%d%m%Y",
)
PREFIX: Final = 2  # of a postcode: the department in France, the region in most of Europe
_POSTCODE = re.compile(r"(?=.*\d)[0-9A-Z]{4,6}|[0-9A-Z]{2,4} ?[0-9A-Z]{3}")
_BELOW = re.compile(r"(?:<|-|under|moins de|0-)\s*(\d{1,3})")
_BETWEEN = re.compile(r"(\d{1,3})\s*(?:-|\u2013|to|à|a)\s*(\d{1,3})")
_ABOVE = re.compile(r"(>=?|≥)?\s*(\d{1,3})\s*(\+|and (?:over|above|older)|et plus|ans et plus)?")

Draft = dict[str, Any]


def rule_draft(texts: Sequence[str], categories: Sequence[str], *, reference: date) -> Draft:
    """Return the keys of a rule without its column; an empty one where categories stand for themselves.

    Parameters
    ----------
    texts : of the first rows
    reference : day on which ages hold
    """
    distinct = list(dict.fromkeys(text for text in texts if text))
    if not distinct or set(distinct) <= set(categories):
        return {}
    bands = bands_of(categories)
    are_years = all(_is_year(text, reference) for text in distinct)
    if bands and are_years:
        return {"birth_year": {"reference": reference, "bands": bands}}
    patterns = date_patterns(distinct, reference=reference)
    if bands and patterns:
        # Where day and month could be either, someone must say.
        pattern = patterns[0] if len(patterns) == 1 else ""
        return {"birth_date": {"reference": reference, "bands": bands, "pattern": pattern}}
    values = _values(distinct, categories)
    could_be_codes = not (values or bands or are_years or set(distinct) & set(categories))
    if could_be_codes and all(_POSTCODE.fullmatch(text) for text in distinct):
        return {"prefix": PREFIX, "values": {}}
    return _plainest(values, categories)


def bands_of(categories: Sequence[str]) -> dict[str, list[int]]:
    """Ages of the categories that read like age bands; nothing unless they cover every age once."""
    bands: dict[str, list[int]] = {}
    above: dict[str, tuple[int, bool]] = {}
    for name in categories:
        text = name.casefold().strip()
        if found := _BETWEEN.fullmatch(text):
            bands[name] = [int(found[1]), int(found[2])]
        elif found := _BELOW.fullmatch(text):
            bands[name] = [0, int(found[1]) - 1]
        elif (found := _ABOVE.fullmatch(text)) and (found[1] or found[3]):
            above[name] = int(found[2]), found[1] == ">"
    for name, (age, is_strict) in above.items():
        # ">65" next to "55-64" means 65 and more, despite the sign.
        after = max((last for _, last in bands.values()), default=age) + 1
        bands[name] = [after if is_strict and after in (age, age + 1) else age + is_strict]
    whole = {name: (band[0], band[1] if len(band) > 1 else None) for name, band in bands.items()}
    return {} if bands_problem(whole) else bands


def date_patterns(texts: Sequence[str], *, reference: date) -> list[str]:
    """Patterns under which every text is a day on which someone can be born."""
    return [
        pattern for pattern in DATE_PATTERNS if all(_is_birthday(text, pattern, reference) for text in texts)
    ]


def _is_birthday(text: str, pattern: str, reference: date) -> bool:
    try:
        day = datetime.strptime(text, pattern).date()
    except ValueError:
        return False
    return date(FIRST_YEAR, 1, 1) <= day <= reference and day.strftime(pattern) == text


def _is_year(text: str, reference: date) -> bool:
    return len(text) == 4 and text.isdecimal() and FIRST_YEAR <= int(text) <= reference.year


def _values(distinct: Sequence[str], categories: Sequence[str]) -> dict[str, str]:
    """Categories that texts stand for, by the same letters or as ways of saying male and female."""
    by_plain = {plain(name): name for name in categories}
    gender_of: dict[str, str] = {}
    for words in GENDERS:
        named = [name for name in categories if plain(name) in words]
        if len(named) == 1:
            gender_of |= dict.fromkeys(words, named[0])
    values = {}
    for text in distinct:
        category = text if text in categories else by_plain.get(plain(text)) or gender_of.get(plain(text))
        if category and category != text:
            values[text] = category
    return values


def _plainest(values: dict[str, str], categories: Sequence[str]) -> Draft:
    """Ignoring case says the same as a list in which nothing but case differs."""
    folded = {name.casefold(): name for name in categories}
    only_case = bool(values) and all(folded.get(text.casefold()) == name for text, name in values.items())
    if only_case and case_problem(ValueRule(ignore_case=True), categories) is None:
        return {"ignore_case": True}
    return {"values": values} if values else {}
