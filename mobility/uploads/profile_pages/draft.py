"""Contents of the form of a profile, in the shape of a profile's file: the same parser reads both."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any

from django.utils.translation import gettext

from mobility.extracts.profiles.definition import own_table
from mobility.extracts.profiles.parse import INDICATOR
from mobility.extracts.profiles.value_guess import PREFIX as DEFAULT_PREFIX
from reports.studies.studyfile import IndicatorDefinition, StudyDefinition
from reports.studies.studyfile.problems import Problems

# Other values in a select of categories; the name of a category could be anything.
AS_OTHERS, NONE, CATEGORY = "", "none", "="
TEXTS, PREFIX, BIRTH_YEAR, BIRTH_DATE = "texts", "prefix", "birth_year", "birth_date"
PATTERN_FORM = "pattern"  # of timestamps: written into its own field
_BAND = re.compile(r"(\d{1,3})\s*(?:-|\u2013)\s*(\d{1,3})|(\d{1,3})\s*\+")

Draft = dict[str, Any]
ROLES = ("subscriber", "person", "timestamp", "cell")


def draft_of(data: Mapping[str, list[str]], *, definition: StudyDefinition, problems: Problems) -> Draft:
    """Return the sections of a profile's file; notes what cannot even be put into them.

    Parameters
    ----------
    data : values by field, as `QueryDict.lists` gives them
    """
    sent = _Sent(data)
    kind = sent.first("kind") or "events"
    roles = ROLES if kind == "events" else ROLES[:1]
    return {
        "profile": _profile(sent, kind),
        "columns": {role: sent.first(f"role-{role}") for role in roles if sent.first(f"role-{role}")},
        INDICATOR: {
            indicator.slug: _indicator(sent, indicator, problems)
            for indicator in definition.static_indicators
            if sent.first(f"column-{indicator.slug}")
        },
    }


def name_of_category(sent: str) -> str | None:
    """Category that a select sends, empty for no answer; None where the text is like all others."""
    if sent == AS_OTHERS:
        return None
    return "" if sent == NONE else sent.removeprefix(CATEGORY)


def sent_for(category: str | None) -> str:
    """Return a category's value in a select; the inverse of `name_of_category`."""
    if category is None:
        return AS_OTHERS
    return CATEGORY + category if category else NONE


def band_text(band: Sequence[int]) -> str:
    """Ages as they are typed: 18-24, or 65+."""
    return f"{band[0]}-{band[1]}" if len(band) > 1 else f"{band[0]}+"


@dataclass(frozen=True, slots=True)
class _Sent:
    """Fields of a form."""

    values: Mapping[str, list[str]]

    def all(self, name: str) -> list[str]:
        return self.values.get(name, [])

    def first(self, name: str) -> str:
        """The trimmed value of a field; empty if there is none."""
        return next(iter(self.all(name)), "").strip()


def _profile(sent: _Sent, kind: str) -> Draft:
    profile: Draft = {"kind": kind}
    for key in ("name", "delimiter"):
        if sent.first(key):
            profile[key] = sent.first(key)
    if kind == "events":
        form = sent.first("timestamp_format")
        # Empty when no one has chosen: then the parser must complain.
        profile["timestamp_format"] = sent.first("timestamp_pattern") if form == PATTERN_FORM else form
    if sent.first("max_bad_share"):
        profile["max_bad_share"] = _or_text(Decimal, sent.first("max_bad_share"))
    return profile


def _indicator(sent: _Sent, indicator: IndicatorDefinition, problems: Problems) -> Draft:
    slug = indicator.slug
    rule: Draft = {"column": sent.first(f"column-{slug}")}
    if operator := sent.first(f"operator-{slug}"):
        rule["operator_column"] = operator
    if own_table(indicator) is not None:
        return rule
    kind = sent.first(f"rule-{slug}") or TEXTS
    if kind == PREFIX:
        rule["prefix"] = _or_text(int, sent.first(f"prefix-{slug}") or str(DEFAULT_PREFIX))
    values = _values(sent, slug, rule.get("prefix"), problems)
    if values or kind == PREFIX:
        rule["values"] = values
    if kind in (BIRTH_YEAR, BIRTH_DATE):
        rule[kind] = _birth(sent, indicator, kind, problems)
    if sent.first(f"ignore_case-{slug}"):
        rule["ignore_case"] = True
    otherwise = name_of_category(sent.first(f"otherwise-{slug}"))
    if otherwise is not None:
        rule["otherwise"] = otherwise
    return rule


def _values(sent: _Sent, slug: str, prefix: Any, problems: Problems) -> dict[str, str]:
    """Texts of the first rows, each with its choice, and the lines that someone wrote."""
    values: dict[str, str] = {}
    for text, choice in zip(sent.all(f"text-{slug}"), sent.all(f"meaning-{slug}"), strict=False):
        category = name_of_category(choice)
        # After another length was typed, the choices are those of beginnings that count no more.
        if category is not None and category != text and prefix in (None, len(text)):
            values[text] = category
    for line in sent.first(f"more-{slug}").splitlines():
        text, sign, category = line.partition("=")
        if sign:
            values[text.strip()] = category.strip()
        elif line.strip():
            problems.add(
                f"{INDICATOR}.{slug}.values",
                gettext("must have the form “value = category” on every line"),
                line,
            )
    return values


def _birth(sent: _Sent, indicator: IndicatorDefinition, kind: str, problems: Problems) -> Draft:
    slug = indicator.slug
    birth: Draft = {"bands": {}}
    if sent.first(f"reference-{slug}"):
        birth["reference"] = _or_text(date.fromisoformat, sent.first(f"reference-{slug}"))
    if kind == BIRTH_DATE:
        birth["pattern"] = sent.first(f"pattern-{slug}")
    for name, text in zip(indicator.categories, sent.all(f"band-{slug}"), strict=False):
        found = _BAND.fullmatch(text.strip())
        if found:
            birth["bands"][name] = [int(age) for age in found.groups() if age is not None]
        elif text.strip():
            rule = gettext("must be an age range such as 18-24, a minimum age such as 65+, or empty")
            problems.add(f'{INDICATOR}.{slug}.{kind}.bands."{name}"', rule, text)
    return birth


def _or_text(read: Callable[[str], Any], text: str) -> Any:
    """The value, or the text for the parser to complain of."""
    try:
        return read(text)
    except (ValueError, InvalidOperation):
        return text
