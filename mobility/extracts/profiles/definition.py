"""Rules of a profile for the readers: names of columns, and the meaning of every text in them."""

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from types import MappingProxyType
from typing import Final, Literal

from reports.studies.studyfile import IndicatorDefinition, StudyDefinition
from reports.studies.studyfile.formats import ISO, Delimiter

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
    """

    codes: Mapping[bytes, int]
    prefix_bytes: int = 0
    otherwise: int | None = None
    cuts: tuple[int, ...] = ()

    def code_of(self, text: bytes) -> int | None:
        """Code of one text; None = its row is rejected. Kernels do the same for whole columns."""
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
    columns : column of each static indicator that these files hold, by slug
    tables : what the texts of these columns mean, by slug
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


def default_profile(definition: StudyDefinition) -> Profile:
    """Return the profile of events that [extract] describes."""
    extract = definition.extract
    static = definition.static_indicators if extract.attributes == "inline" else ()
    return Profile(
        name=DEFAULT,
        kind="events",
        subscriber=extract.subscriber,
        timestamp=extract.timestamp,
        cell=extract.cell,
        timestamp_format=extract.timestamp_format,
        delimiter=extract.delimiter,
        max_bad_share=extract.max_bad_share,
        columns=_columns(static),
        tables=_tables(static),
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


def _columns(static: tuple[IndicatorDefinition, ...]) -> dict[str, str]:
    return {indicator.slug: indicator.column or "" for indicator in static}


def _tables(static: tuple[IndicatorDefinition, ...]) -> dict[str, ValueTable]:
    """Categories stand for themselves, and so do numbers."""
    return {
        indicator.slug: number_table(indicator)
        or ValueTable(codes={name.encode(): code for code, name in enumerate(indicator.categories)})
        for indicator in static
    }


def number_table(indicator: IndicatorDefinition) -> ValueTable | None:
    """Meaning of the column of a number; None for categories."""
    return None if indicator.scale is None else ValueTable(codes={}, cuts=indicator.scale.cuts)


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
