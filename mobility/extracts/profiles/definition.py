"""Rules of a profile for the readers: names of columns, and the meaning of every text in them."""

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final, Literal

from reports.studies.studyfile import IndicatorDefinition, StudyDefinition
from reports.studies.studyfile.formats import ISO, Delimiter
from reports.studies.studyfile.origins import MCC_DIGITS, NATIONAL, RESIDENT

ProfileKind = Literal["events", "subscribers", "opt_out"]
# Profiles that every study has.
DEFAULT: Final = "default"
SUBSCRIBERS: Final = "subscribers"
OPT_OUT: Final = "opt-out"
# Meaning of a text for "no answer", as of an empty one;
# mobility.extracts.rows.events.NO_VALUE.
NO_ANSWER: Final = 0xFFFF
_NUMBER: Final = re.compile(rb"([+-]?)([0-9]{1,18})(?:[.,]([0-9]{0,18}))?")  # a decimal comma is one


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueTable:
    """Every text that a column may hold, and the code of its category.

    codes : code by text, trimmed, in UTF-8; NO_ANSWER for texts that stand for none
    prefix_bytes : how many leading bytes of a text count; 0 = all of it
    otherwise : code of a text that is not empty and not among them; None = its row is rejected
    cuts : of a column of numbers, which has no codes: a number's code is how many of them it reaches
    operator : of a visitor category: what the operator's column says; NATIONAL leaves it to this table
    """

    codes: Mapping[bytes, int]
    prefix_bytes: int = 0
    otherwise: int | None = None
    cuts: tuple[int, ...] = ()
    operator: "ValueTable | None" = None

    def code_of(self, text: bytes, *, operator: bytes = b"") -> int | None:
        """Code of one text; None = its row is rejected. Kernels do the same for whole columns."""
        if self.operator is not None and (found := self.operator.code_of(operator)) != NATIONAL:
            return found
        trimmed = text.strip()
        if not trimmed:
            return NO_ANSWER
        if self.cuts:
            whole = whole_number(trimmed)
            return None if whole is None else bisect_right(self.cuts, whole)
        return self.codes.get(trimmed[: self.prefix_bytes or None], self.otherwise)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Rules for reading the files of one source.

    kind : "events" are CDRs, "subscribers" attributes of people, "opt_out" people who must not be counted
    subscriber, timestamp, cell : names of columns; timestamp and cell only of events
    person : column of the person of an event, in a study that limits the events of each
    columns : column of each static indicator that these files hold, by slug
    tables : what the texts of these columns mean, by slug
    operators : columns of operators' countries, by slug of the visitor category that needs one
    class_column, classes : column of the class of each subscriber, and its texts; None = there are no classes
    """

    name: str
    kind: ProfileKind
    subscriber: str
    timestamp: str | None = None
    cell: str | None = None
    timestamp_format: str = ISO
    delimiter: Delimiter | None = None
    max_bad_share: Decimal = Decimal("0.05")
    columns: Mapping[str, str] = field(default_factory=dict)
    tables: Mapping[str, ValueTable] = field(default_factory=dict)
    operators: Mapping[str, str] = field(default_factory=dict)
    person: str | None = None
    class_column: str | None = None
    classes: ValueTable | None = None

    @property
    def all_columns(self) -> tuple[str, ...]:
        """Columns that are read, each once."""
        names = (self.subscriber, self.person, self.timestamp, self.cell, *self.value_columns)
        return tuple(dict.fromkeys(name for name in names if name))

    @property
    def value_columns(self) -> tuple[str, ...]:
        """All columns of static values, each once."""
        names = (*self.columns.values(), *self.operators.values(), self.class_column)
        return tuple(dict.fromkeys(name for name in names if name))


def default_profile(definition: StudyDefinition) -> Profile:
    """Return the profile of events that [extract] describes."""
    extract = definition.extract
    static = definition.static_indicators if extract.attributes == "inline" else ()
    return Profile(
        name=DEFAULT,
        kind="events",
        subscriber=extract.subscriber,
        person=extract.person,
        timestamp=extract.timestamp,
        cell=extract.cell,
        timestamp_format=extract.timestamp_format,
        delimiter=extract.delimiter,
        max_bad_share=extract.max_bad_share,
        columns=_columns(static),
        tables=_tables(static),
        operators=_operators(static),
        **class_fields(definition),
    )


def subscribers_profile(definition: StudyDefinition) -> Profile:
    """Return the profile of attributes; without [subscribers] its column is that of [extract]."""
    extract = definition.subscribers or definition.extract
    return Profile(
        name=SUBSCRIBERS,
        kind="subscribers",
        subscriber=extract.subscriber,
        delimiter=extract.delimiter,
        max_bad_share=extract.max_bad_share,
        columns=_columns(definition.static_indicators),
        tables=_tables(definition.static_indicators),
        operators=_operators(definition.static_indicators),
    )


def opt_out_profile(definition: StudyDefinition) -> Profile:
    """Return the profile of people who must not be counted: a list of subscribers.

    Notes
    -----
    A list with a line that cannot be used is refused whole: a person on it would be counted.
    """
    return Profile(
        name=OPT_OUT, kind="opt_out", subscriber=definition.extract.subscriber, max_bad_share=Decimal(0)
    )


def class_fields(definition: StudyDefinition) -> dict[str, Any]:
    """Fields of a profile of events on classes: all profiles of a study read them from the same column."""
    if not definition.classes:
        return {}
    codes = {each.value.encode(): code for code, each in enumerate(definition.classes)}
    return {"class_column": definition.plan.class_column, "classes": ValueTable(codes=codes)}


def _columns(static: tuple[IndicatorDefinition, ...]) -> dict[str, str]:
    return {indicator.slug: indicator.column or "" for indicator in static}


def _tables(static: tuple[IndicatorDefinition, ...]) -> dict[str, ValueTable]:
    """Categories stand for themselves, unless the study says what texts mean."""
    return {
        indicator.slug: own_table(indicator)
        or ValueTable(codes={name.encode(): code for code, name in enumerate(indicator.categories)})
        for indicator in static
    }


def _operators(static: tuple[IndicatorDefinition, ...]) -> dict[str, str]:
    return {each.slug: each.origin.operator_column for each in static if each.origin is not None}


def own_table(indicator: IndicatorDefinition) -> ValueTable | None:
    """Meaning of a column that the study alone decides, for all profiles; None where a profile may map it."""
    if indicator.scale is not None:
        return ValueTable(codes={}, cuts=indicator.scale.cuts)
    if (lookup := indicator.lookup) is not None:
        code_of = {name: code for code, name in enumerate(indicator.categories)} | {"": NO_ANSWER}
        return ValueTable(
            codes={code.encode(): code_of[category] for code, category in lookup.category_of().items()},
            prefix_bytes=lookup.prefix,
            otherwise=None if lookup.otherwise is None else code_of[lookup.otherwise],
        )
    if indicator.origin is not None:
        operators = {
            code.encode(): NO_ANSWER if category is None else category
            for code, category in indicator.origin.operators.items()
        }
        return ValueTable(
            codes={code.encode(): RESIDENT for code in indicator.origin.home},
            prefix_bytes=len(indicator.origin.home[0]),
            otherwise=NATIONAL,
            operator=ValueTable(codes=operators, prefix_bytes=MCC_DIGITS),
        )
    return None


def whole_number(text: bytes) -> int | None:
    """Return the largest integer that is not above a decimal number ("-3.5": -4), None if it is no number."""
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    whole = int(found[1] + found[2])
    return whole - 1 if found[1] == b"-" and (found[3] or b"").strip(b"0") else whole


BUILT_IN: Final[Mapping[str, Callable[[StudyDefinition], Profile]]] = MappingProxyType(
    {DEFAULT: default_profile, SUBSCRIBERS: subscribers_profile, OPT_OUT: opt_out_profile}
)
