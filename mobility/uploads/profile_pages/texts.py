"""A profile in words: for people who did not make it."""

from collections.abc import Collection, Sequence
from decimal import Decimal
from itertools import islice
from typing import Any, Final

from django.utils.translation import gettext, gettext_lazy, ngettext

from mobility.extracts.profiles.ages import BIRTH_YEAR
from mobility.extracts.profiles.definition import DEFAULT, OPT_OUT, SUBSCRIBERS, Profile, ValueTable
from mobility.extracts.profiles.parse import bad_share_of
from mobility.extracts.profiles.preview import ShownColumn, rejections
from mobility.extracts.profiles.rules import ValueRule
from mobility.extracts.profiles.sample import Sample
from mobility.extracts.profiles.uniqueness import Uniqueness
from mobility.uploads.profile_pages.draft import Draft
from mobility.uploads.profile_pages.fields import DELIMITER_NAMES, ROLE_NAMES, format_words
from reports.base.formats import long_day, number, percent
from reports.studies.studyfile import IndicatorDefinition, StudyDefinition

BUILT_IN = {
    DEFAULT: gettext_lazy("Events, as described in the [extract] section of the study file."),
    SUBSCRIBERS: gettext_lazy(
        "Subscriber attributes, with one person per row. The attributes are matched to events that have "
        "no attributes. Only randomised answers are kept."
    ),
    OPT_OUT: gettext_lazy(
        "List of people who must not be counted, with one subscriber per line. These people are removed "
        "from the vault immediately, and any rows that arrive for them later are ignored. The next "
        "publication removes them from the totals, except from totals that can no longer change."
    ),
}
KINDS = {
    "events": gettext_lazy("events (CDRs)"),
    "subscribers": gettext_lazy("subscriber attributes"),
    "opt_out": gettext_lazy("opt-out list"),
}


CODES_SHOWN: Final = 8


def profile_words(profile: Profile, definition: StudyDefinition) -> dict[str, Any]:
    """Describe a profile for a page; facts are (title, text), columns (what, name)."""
    titles = {indicator.slug: indicator.shown_name for indicator in definition.static_indicators}
    roles = {role: getattr(profile, role) for role in ROLE_NAMES}
    columns = [(str(ROLE_NAMES[role]), name) for role, name in roles.items() if name]
    columns += [(titles[slug], name) for slug, name in profile.columns.items()]
    operator = gettext("%(indicator)s: country of the operator")
    columns += [(operator % {"indicator": titles[slug]}, name) for slug, name in profile.operators.items()]
    if profile.class_column:
        columns.append((gettext("Class of the subscriber"), profile.class_column))
    facts = []
    if profile.kind == "events":
        facts.append((gettext("Time format"), format_words(profile.timestamp_format)))
    delimiter = profile.delimiter
    separated = (
        str(DELIMITER_NAMES[delimiter])
        if delimiter
        else gettext("detected automatically from the header of each file")
    )
    facts.append((gettext("Column separator"), separated))
    most = gettext("Maximum share of rejected rows (the file is refused if it exceeds this share)")
    facts.append((most, f"{profile.max_bad_share:f}"))
    sentence, kind = str(BUILT_IN.get(profile.name, "")), str(KINDS[profile.kind])
    texts = [(titles[slug], _codes_words(table)) for slug, table in profile.tables.items() if table.codes]
    return {
        "name": profile.name, "sentence": sentence, "kind": kind, "facts": facts, "columns": columns,
        "texts": texts,
    }  # fmt: skip


def _codes_words(table: ValueTable) -> str:
    """The first texts that a column may hold."""
    codes = [code.decode(errors="replace") for code in islice(table.codes, CODES_SHOWN)]
    return ", ".join(codes) + (", …" if len(table.codes) > CODES_SHOWN else "")


def rejected_words(
    sample: Sample, columns: Sequence[ShownColumn], *, draft: Draft, definition: StudyDefinition
) -> dict[str, Any]:
    """Warn of rows of a preview that would be rejected, by reason; empty if there is none."""
    found = rejections(sample, columns)
    rejected, rows = sum(each.rows for each in found), len(sample.rows) + sample.misshapen
    if not rejected:
        return {}
    limit = _bad_share(draft, definition)
    sentence = ngettext(
        "With these choices, %(rejected)s of the first %(rows)s rows would be rejected (%(share)s).",
        "With these choices, %(rejected)s of the first %(rows)s rows would be rejected (%(share)s).",
        rejected,
    ) % {"rejected": number(rejected), "rows": number(rows), "share": percent(rejected / rows)}
    is_refused = rejected > limit * rows
    if is_refused:
        limit_text = gettext("A file with such a high share of rejected rows is refused (limit: %(limit)s).")
        sentence += " " + limit_text % {"limit": percent(float(limit))}
    return {"sentence": sentence, "is_refused": is_refused, "reasons": found}


def uniqueness_words(found: Uniqueness | None) -> dict[str, str]:
    """Say how many people of a sample are unique, and what that means; empty if it could not be checked."""
    if found is None:
        return {}
    sentence = ngettext(
        "%(n)s of the %(people)s subscribers in the sample (%(share)s) is unique in these columns: "
        "%(columns)s.",
        "%(n)s of the %(people)s subscribers in the sample (%(share)s) are unique in these columns: "
        "%(columns)s.",
        found.unique,
    ) % {
        "n": number(found.unique),
        "people": number(found.people),
        "share": percent(found.unique / found.people),
        "columns": ", ".join(found.columns),
    }
    meaning = gettext(
        "Anyone who knows a unique subscriber's values in these columns can find that person's rows in "
        "the file, even without the identifier. In the whole file, the share of unique subscribers is "
        "usually lower, because more people have the same values. Reports contain only randomised "
        "answers, not these values."
    )
    return {"sentence": sentence, "meaning": meaning}


def _bad_share(draft: Draft, definition: StudyDefinition) -> Decimal:
    typed = draft["profile"].get("max_bad_share")
    if isinstance(typed, Decimal):
        return typed
    is_events = draft["profile"].get("kind") != "subscribers"
    return bad_share_of(definition, is_events=is_events)


def missing_parts(kind: str, slugs: Collection[str], definition: StudyDefinition) -> list[str]:
    """Warnings about joint indicators of which files lack parts.

    Parameters
    ----------
    kind : of the profile
    slugs : static indicators that its files have a column for
    """
    names = {each.slug: each.shown_name for each in definition.static_indicators}
    warnings = []
    for joint in definition.indicators:
        missing = [names[part] for part in joint.parts if part in names and part not in slugs]
        if not missing or not slugs or (joint.kind == "daily" and kind != "events"):
            continue
        text = (
            gettext(
                "%(joint)s: the files have no column for %(parts)s. In answers for this combination, each "
                "missing part is recorded as “no value”."
            )
            if joint.kind == "daily"
            else gettext(
                "%(joint)s: the files have no column for %(parts)s, so they provide no answers for this "
                "combination."
            )
        )
        warnings.append(text % {"joint": joint.shown_name, "parts": ", ".join(missing)})
    return warnings


def class_warnings(sample: Sample, kind: str, definition: StudyDefinition) -> list[str]:
    """Warning about a file without the column of the class, which all events must have."""
    column = definition.plan.class_column
    if column is None or kind == "opt_out" or not sample.rows or column in sample.names:
        return []
    text = gettext(
        "The file has no column “%(column)s”, which must give the class of each subscriber. Files without "
        "it are refused."
    )
    return [text % {"column": column}]


def rule_words(rule: ValueRule, indicator: IndicatorDefinition) -> list[str]:
    """Say line by line how texts become categories."""
    if indicator.scale is not None:
        read = gettext("the values are read as numbers")
        return [read, gettext("rows with any other value are rejected")]
    if indicator.lookup is not None:
        lines = [
            gettext("codes become categories as in the lookup file %(file)s")
            % {"file": indicator.lookup.file}
        ]
        return [*lines, _otherwise_words(indicator.lookup.otherwise)]
    if indicator.origin is not None:
        return [
            gettext("the study file says which home codes are in the area"),
            gettext("rows whose operator has an unknown country code are rejected"),
        ]
    lines = []
    birth = rule.birth
    if birth is not None:
        by_year = birth.pattern == BIRTH_YEAR
        what = gettext("a year of birth") if by_year else gettext("a date of birth in the format %(pattern)s")
        lines.append(what % {"pattern": birth.pattern})
        lines.append(gettext("ages as of %(day)s") % {"day": long_day(birth.reference)})
        lines += [f"{_ages(first, last)} → {name}" for name, (first, last) in birth.bands.items()]
    elif rule.prefix:
        lines.append(gettext("the first %(n)s characters are matched") % {"n": rule.prefix})
    else:
        lines.append(gettext("values that match a category name are used unchanged"))
    lines += [f"{text} → {name or gettext('no answer')}" for text, name in rule.values.items()]
    if rule.ignore_case:
        lines.append(gettext("case is ignored"))
    return [*lines, _otherwise_words(rule.otherwise)]


def _ages(first: int, last: int | None) -> str:
    return f"{first}+" if last is None else gettext("%(low)s to %(high)s") % {"low": first, "high": last}


def _otherwise_words(otherwise: str | None) -> str:
    if otherwise is None:
        return gettext("rows with any other value are rejected")
    return gettext("any other value → %(name)s") % {"name": otherwise or gettext("no answer")}
