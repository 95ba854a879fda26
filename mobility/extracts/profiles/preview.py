"""Preview of the first rows of a file: the shown form and the result of each value."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.utils.translation import gettext

from mobility.extracts.profiles.aliases import IDENTIFIERS, plain
from mobility.extracts.profiles.definition import NO_ANSWER, ValueTable, class_fields, own_table
from mobility.extracts.profiles.instants import BAD, NONEXISTENT, OUTSIDE_PERIOD, VALID, Instant, instants_of
from mobility.extracts.profiles.masking import DOT, is_identifier, shape, shows_people
from mobility.extracts.profiles.parse import INDICATOR
from mobility.extracts.profiles.parse_rules import read_rule
from mobility.extracts.profiles.sample import Sample
from mobility.extracts.rows.counts import REJECTED
from reports.base.formats import colon, day_title
from reports.studies.studyfile import IndicatorDefinition, StudyDefinition
from reports.studies.studyfile.formats import ISO, timestamp_problem
from reports.studies.studyfile.origins import FOREIGN, NATIONAL
from reports.studies.studyfile.problems import Problems
from reports.studies.studyfile.table import Table

ROWS_SHOWN: Final = 6
TEXTS_LISTED: Final = 40
DOTS_AFTER: Final = 12  # the beginning of a text, at most
# Names of reasons in REJECTED.
_MISSHAPEN: Final = "wrong_columns"
_EMPTY: Final = {"subscriber": "empty_subscriber", "cell": "empty_cell"}
_TIMES: Final = {BAD: "bad_timestamp", NONEXISTENT: "nonexistent_time"}
_UNKNOWN: Final = "unknown_value"
# Of the operator's column of an indicator.
OPERATOR: Final = "operator:%s"
# Of the column of the class, which the study names; no slug has a colon.
CLASS: Final = "plan:class"
_IDENTIFIERS: Final = frozenset(map(plain, IDENTIFIERS))


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownValue:
    """One value: what may be shown of it, what it becomes, and whether its row would be lost."""

    text: str
    meaning: str = ""
    is_bad: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownColumn:
    """One column: `role` is a role, the slug of an indicator, one of OPERATOR, CLASS, or empty.

    Roles are subscriber, person, timestamp and cell.

    reasons : why each row of the sample would be rejected, empty where this column rejects it not; of no row
        where the column rejects none
    """

    name: str
    role: str
    values: tuple[ShownValue, ...]
    fact: str = ""
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """Rows of a sample that share their first reason against them, and the columns that have it."""

    reason: str
    rows: int
    columns: tuple[str, ...] = ()


def preview(
    sample: Sample, draft: Mapping[str, Any], *, definition: StudyDefinition
) -> tuple[ShownColumn, ...]:
    """Every column of the first rows as a draft reads it; the columns that it uses come first.

    Parameters
    ----------
    draft : in the shape of a profile's file, perhaps unfinished
    """
    roles = roles_of(draft, definition)
    subscribers = sample.column(roles.get("subscriber", ""))
    shown = [
        _shown(role, name, sample, draft, definition)
        for role, name in roles.items()
        if sample.names.count(name) == 1
    ]
    used = {column.name for column in shown}
    others = [name for name in sample.names if name and name not in used and sample.names.count(name) == 1]
    return (*shown, *(_unused(name, sample.column(name), subscribers) for name in others))


def rejections(sample: Sample, columns: Sequence[ShownColumn]) -> list[Rejection]:
    """Rows of a sample that would be rejected, by reason, most first; each row counts once, as in a batch."""
    judged = [each for each in columns if each.reasons]
    found: Counter[str] = Counter({_MISSHAPEN: sample.misshapen} if sample.misshapen else {})
    names: dict[str, dict[str, None]] = {}
    for row in zip(*(each.reasons for each in judged), strict=True):
        reason = min(filter(None, row), key=REJECTED.index, default="")
        if reason:
            found[reason] += 1
            same = (each.name for each, its in zip(judged, row, strict=True) if its == reason)
            names.setdefault(reason, {}).update(dict.fromkeys(same))
    return [
        Rejection(reason=reason, rows=rows, columns=tuple(names.get(reason, ())))
        for reason, rows in found.most_common()
    ]


def roles_of(draft: Mapping[str, Any], definition: StudyDefinition) -> dict[str, str]:
    """Column of each role and of each indicator, where the draft has one, and of the class."""
    roles: dict[str, str] = dict(draft.get("columns", {})) | {CLASS: definition.plan.class_column or ""}
    indicators = draft.get(INDICATOR, {})
    for indicator in definition.static_indicators:
        rule = indicators.get(indicator.slug, {})
        roles[indicator.slug] = rule.get("column", "")
        if indicator.origin is not None:
            roles[OPERATOR % indicator.slug] = rule.get("operator_column", "")
    return {role: name for role, name in roles.items() if name}


def table_of(rule: Mapping[str, Any], indicator: IndicatorDefinition) -> ValueTable | None:
    """The rule of a draft as the readers would use it; None while it has problems."""
    if (decided := own_table(indicator)) is not None:
        return decided
    problems = Problems("")
    read = read_rule(Table(dict(rule), "", problems), indicator.categories)
    return None if problems.found else read.compiled(indicator.categories)


def texts_seen(
    texts: Sequence[str], *, prefix: int, known: Mapping[str, str], most: int = TEXTS_LISTED
) -> tuple[list[tuple[str, int]], int]:
    """Distinct texts with their rows, most frequent first, and how many are not listed.

    Parameters
    ----------
    prefix : leading characters that count; 0 = all
    known : texts that have a meaning already; of others, those that look like identifiers are left out
    most : texts that are listed
    """
    counted = Counter(text[: prefix or None] for text in texts if text)
    listed = [(text, n) for text, n in counted.most_common() if text in known or not is_identifier(text)]
    return listed[:most], len(counted) - min(len(listed), most)


def _shown(
    role: str, name: str, sample: Sample, draft: Mapping[str, Any], definition: StudyDefinition
) -> ShownColumn:
    texts = sample.column(name)
    if role == "timestamp":
        return _timestamps(name, texts, draft.get("profile", {}).get("timestamp_format", ISO), definition)
    if role == "cell":
        return _cells(name, texts, definition)
    if role == CLASS:
        return _classes(name, texts, definition)
    for indicator in definition.static_indicators:
        rule = draft.get(INDICATOR, {}).get(indicator.slug, {})
        if role == indicator.slug:
            operators = sample.column(rule.get("operator_column", ""))
            return _attribute(name, texts, rule, indicator, operators=operators)
        if role == OPERATOR % indicator.slug:
            return _operators(role, name, texts, indicator)
    return _people(role, name, texts)


def _people(role: str, name: str, texts: list[str]) -> ShownColumn:
    """Identifiers of subscribers, or of the people of events, which may be empty."""
    is_needed = role != "person"
    empty = (
        gettext("empty value: row rejected")
        if is_needed
        else gettext("empty value: counted, but not answered")
    )
    values = tuple(
        ShownValue(text=shape(text), meaning="" if text else empty, is_bad=is_needed and not text)
        for text in texts[:ROWS_SHOWN]
    )
    fact = gettext("%(n)s different values in %(rows)s rows") % {
        "n": len(set(filter(None, texts))),
        "rows": len(texts),
    }
    reasons = _where_empty(role, texts) if is_needed else ()
    return ShownColumn(name=name, role=role, values=values, fact=fact, reasons=reasons)


def _where_empty(role: str, texts: Sequence[str]) -> tuple[str, ...]:
    return tuple("" if text else _EMPTY[role] for text in texts)


def _timestamps(name: str, texts: list[str], form: str, definition: StudyDefinition) -> ShownColumn:
    if timestamp_problem(form):
        masked = tuple(ShownValue(text=shape(text)) for text in texts[:ROWS_SHOWN])
        return ShownColumn(name=name, role="timestamp", values=masked)
    instants = instants_of(texts, form=form, definition=definition)
    counts = Counter(instant.outcome for instant in instants)
    fact = gettext(
        "%(good)s of %(rows)s values are readable, and %(inside)s of those are within the study period"
    ) % {
        "good": len(texts) - counts[BAD] - counts[NONEXISTENT],
        "rows": len(texts),
        "inside": counts[VALID],
    }
    values = tuple(
        _timestamp(text, instant)
        for text, instant in zip(texts[:ROWS_SHOWN], instants[:ROWS_SHOWN], strict=True)
    )
    reasons = tuple(_TIMES.get(instant.outcome, "") for instant in instants)
    return ShownColumn(name=name, role="timestamp", values=values, fact=fact, reasons=reasons)


def _timestamp(text: str, instant: Instant) -> ShownValue:
    if instant.local is None:
        skipped = instant.outcome == NONEXISTENT
        meaning = (
            gettext("time skipped when the clocks went forward") if skipped else gettext("unreadable time")
        )
        rejected = gettext("row rejected")
        return ShownValue(text=shape(text), meaning=f"{meaning}{colon()} {rejected}", is_bad=True)
    is_outside = instant.outcome == OUTSIDE_PERIOD
    # A number could as well be a telephone's: then what it says would tell it.
    shown = shape(text) if text.isdigit() else text
    if is_outside and text.isdigit():
        return ShownValue(text=shown, meaning=gettext("time outside the study period"))
    read = f"{day_title(instant.local.date())}, {instant.local:%H:%M}"
    if is_outside:
        read = gettext("%(read)s, outside the study period") % {"read": read}
    return ShownValue(text=shown, meaning=read)


def _cells(name: str, texts: list[str], definition: StudyDefinition) -> ShownColumn:
    if definition.area is None:  # cells cannot be distinguished from other columns
        masked = tuple(ShownValue(text=shape(text)) for text in texts[:ROWS_SHOWN])
        return ShownColumn(name=name, role="cell", values=masked)
    known = {cell.cell_id for cell in definition.area.cells}
    outside, empty = gettext("cell outside the area: row ignored"), gettext("empty value: row rejected")
    values = tuple(
        ShownValue(text=text, meaning=gettext("in the area"))
        if text in known
        else ShownValue(
            text=shape(text),
            meaning=outside if text else empty,
            is_bad=not text,
        )
        for text in texts[:ROWS_SHOWN]
    )
    fact = gettext("%(n)s of %(rows)s rows are in the area of the study") % {
        "n": sum(text in known for text in texts),
        "rows": len(texts),
    }
    reasons = _where_empty("cell", texts)
    return ShownColumn(name=name, role="cell", values=values, fact=fact, reasons=reasons)


def _attribute(
    name: str,
    texts: list[str],
    rule: Mapping[str, Any],
    indicator: IndicatorDefinition,
    *,
    operators: list[str],
) -> ShownColumn:
    table = table_of(rule, indicator)
    if table is None:
        unread = tuple(ShownValue(text=shape(text)) for text in texts[:ROWS_SHOWN])
        fact = gettext("map the values of this column below")
        return ShownColumn(name=name, role=indicator.slug, values=unread, fact=fact)
    codes = [
        table.code_of(text.encode(), operator=operator.encode())
        for text, operator in zip(texts, operators or [""] * len(texts), strict=True)
    ]
    values = tuple(
        ShownValue(text=_attribute_text(text, table), meaning=_category(code, indicator), is_bad=code is None)
        for text, code in zip(texts[:ROWS_SHOWN], codes[:ROWS_SHOWN], strict=True)
    )
    fact = gettext(
        "%(rows)s values: %(n)s with a category, %(none)s meaning “no answer”, %(bad)s unknown (row rejected)"
    ) % {
        "n": sum(code not in (None, NO_ANSWER) for code in codes),
        "rows": len(texts),
        "none": codes.count(NO_ANSWER),
        "bad": codes.count(None),
    }
    reasons = tuple(_UNKNOWN if code is None else "" for code in codes)
    return ShownColumn(name=name, role=indicator.slug, values=values, fact=fact, reasons=reasons)


def _operators(role: str, name: str, texts: list[str], indicator: IndicatorDefinition) -> ShownColumn:
    """The operators of a visitor category; the resulting category is shown with the home code."""
    decided = own_table(indicator)
    table = None if decided is None else decided.operator
    if table is None:
        return ShownColumn(name=name, role=role, values=())
    meanings = {
        NATIONAL: gettext("operator of the study's country"),
        FOREIGN: gettext("foreign operator"),
        NO_ANSWER: gettext("no answer"),
        None: gettext("unknown value: row rejected"),
    }
    codes = [table.code_of(text.encode()) for text in texts]
    values = tuple(
        ShownValue(text=_attribute_text(text, table), meaning=meanings[code], is_bad=code is None)
        for text, code in zip(texts[:ROWS_SHOWN], codes[:ROWS_SHOWN], strict=True)
    )
    reasons = tuple(_UNKNOWN if code is None else "" for code in codes)
    return ShownColumn(name=name, role=role, values=values, reasons=reasons)


def _classes(name: str, texts: list[str], definition: StudyDefinition) -> ShownColumn:
    """Classes of subscribers, which every row must name."""
    table: ValueTable = class_fields(definition)["classes"]
    names: dict[int | None, str] = {code: each.shown_name for code, each in enumerate(definition.classes)}
    rejected = gettext("unknown value: row rejected")  # an empty one, too
    found = [names.get(table.code_of(text.encode())) for text in texts]
    values = tuple(
        ShownValue(text=_attribute_text(text, table), meaning=name or rejected, is_bad=name is None)
        for text, name in zip(texts[:ROWS_SHOWN], found[:ROWS_SHOWN], strict=True)
    )
    reasons = tuple("" if name else _UNKNOWN for name in found)
    return ShownColumn(name=name, role=CLASS, values=values, reasons=reasons)


def _attribute_text(text: str, table: ValueTable) -> str:
    """Return the part of a text that the table lists: all of it, its beginning, or only its shape."""
    key = text.encode()[: table.prefix_bytes or None]
    if key not in table.codes or is_identifier(key.decode()):
        return shape(text)
    listed = key.decode()
    return listed + DOT * min(len(text) - len(listed), DOTS_AFTER)


def _category(code: int | None, indicator: IndicatorDefinition) -> str:
    if code is None:
        return gettext("unknown value: row rejected")
    if code == NO_ANSWER:
        return gettext("no answer")
    if indicator.scale is None:
        return indicator.categories[code]
    if code == 0:
        values = {"number": indicator.scale.cuts[0], "unit": indicator.scale.unit}
        return gettext("below %(number)s %(unit)s") % values
    return indicator.shown_categories[code - 1]


def _unused(name: str, texts: list[str], subscribers: list[str]) -> ShownColumn:
    """An unused column is shown only if it distinguishes no one."""
    is_masked = plain(name) in _IDENTIFIERS or shows_people(texts, subscribers)
    values = tuple(ShownValue(text=shape(text) if is_masked else text) for text in texts[:ROWS_SHOWN])
    return ShownColumn(name=name, role="", values=values)
