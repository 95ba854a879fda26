"""A copy of a profile: its choices as a draft that the form shows, under a name that is free."""

import re
from collections.abc import Collection, Mapping
from dataclasses import fields
from itertools import count
from typing import Any, Final

from mobility.extracts.profiles.ages import BIRTH_YEAR as YEAR_PATTERN
from mobility.extracts.profiles.ages import BirthRule
from mobility.extracts.profiles.definition import Profile
from mobility.extracts.profiles.parse import INDICATOR
from mobility.extracts.profiles.proposals import Proposal
from mobility.extracts.profiles.rules import ValueRule
from mobility.extracts.profiles.sample import Sample
from mobility.extracts.profiles.typed import TypedProfile
from mobility.uploads.profile_pages.draft import BIRTH_DATE, BIRTH_YEAR, ROLES, Draft

NAME_LENGTH: Final = 64
_NUMBERED: Final = re.compile(r"-\d+$")


def copy_of(profile: TypedProfile, *, taken: Collection[str]) -> Proposal:
    """Draft of a profile that reads files as `profile` does, under the first name that is not taken."""
    facts: Draft = {"name": free_name(profile.name, taken=taken), "kind": profile.kind}
    if profile.delimiter:
        facts["delimiter"] = profile.delimiter
    if profile.kind == "events":
        facts["timestamp_format"] = profile.timestamp_format
    draft = {
        "profile": facts | {"max_bad_share": profile.max_bad_share},
        "columns": {role: name for role in ROLES if (name := getattr(profile, role))},
        INDICATOR: {
            slug: _rule(column, profile.rules[slug], operator=profile.operators.get(slug))
            for slug, column in profile.columns.items()
        },
    }
    return Proposal(draft=draft)


def built_in_as_typed(profile: Profile) -> TypedProfile:
    """Return a profile of events or subscribers that comes with the study, as one that someone typed."""
    names = {each.name for each in fields(TypedProfile)} - {"rules"}
    facts = {name: getattr(profile, name) for name in names}
    return TypedProfile(**facts, rules={slug: ValueRule() for slug in profile.columns})


def free_name(name: str, *, taken: Collection[str]) -> str:
    """Return the name with the first number from 2 on that is free: operator-x, operator-x-2."""
    stem = _NUMBERED.sub("", name)
    ends = (f"-{number}" for number in count(2))
    return next(free for end in ends if (free := stem[: NAME_LENGTH - len(end)] + end) not in taken)


def without_rows(profile: TypedProfile) -> Sample:
    """A file of no rows that has the columns of a profile: what its copy offers before a file is chosen."""
    roles = [name for role in ROLES if (name := getattr(profile, role))]
    names = (*roles, *profile.columns.values(), *profile.operators.values())
    return Sample(names=names, rows=(), misshapen=0, format="")


def _rule(column: str, rule: ValueRule, *, operator: str | None) -> Mapping[str, Any]:
    found: Draft = {"column": column}
    if operator:
        found["operator_column"] = operator
    if rule.prefix:
        found["prefix"] = rule.prefix
    if rule.values or rule.prefix:
        found["values"] = dict(rule.values)
    if rule.birth is not None:
        found |= _birth(rule.birth)
    if rule.ignore_case:
        found["ignore_case"] = True
    if rule.otherwise is not None:
        found["otherwise"] = rule.otherwise
    return found


def _birth(birth: BirthRule) -> Draft:
    bands = {name: [age for age in band if age is not None] for name, band in birth.bands.items()}
    if birth.pattern == YEAR_PATTERN:
        return {BIRTH_YEAR: {"reference": birth.reference, "bands": bands}}
    return {BIRTH_DATE: {"reference": birth.reference, "pattern": birth.pattern, "bands": bands}}
