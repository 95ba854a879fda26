"""One TOML table, read key by key: strict, and continuing after a problem so that all are reported together.

A reader that notes a problem returns a substitute that breaks no further rule; nothing is built from it,
because a file with problems ends in StudyFileError.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from django.utils.translation import gettext_noop as _

from reports.base.reasons import Reason
from reports.studies.studyfile.problems import Problems, unknown

MAX_DECIMALS = 8  # limit of the database columns
MAX_TEXT = 200
SLUG_RULE = _("must be 1 to 64 lower-case letters, digits, - and _, with a letter or digit at both ends")
SLUG = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,62}[a-z0-9])?")
_CLOCK = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")
_MISSING = object()
_HARD_SPACES = str.maketrans("\u00a0\u202f", "  ")  # of French typography: in guillemets, before a colon


@dataclass(frozen=True, slots=True)
class NumberRule:
    """Rule of a number, in words and as a check."""

    text: str
    accepts: Callable[[Decimal], bool]


@dataclass(slots=True)
class Table:
    """A table of the study file; `name` is its place, as in `study.visitor`."""

    values: dict[str, Any]
    name: str
    problems: Problems
    known: list[str] = field(default_factory=list)

    def key(self, key: str) -> str:
        return f"{self.name}.{key}" if self.name else key

    def add(self, key: str, rule: str, value: object = None) -> None:
        """Note a problem of `key`."""
        self.problems.add(self.key(key), rule, value)

    def has(self, key: str) -> bool:
        self._note(key)
        return key in self.values

    def raw(self, key: str, *, required: bool = True) -> Any:
        """Return the value unchanged; None when it is missing."""
        self._note(key)
        value = self.values.get(key, _MISSING)
        if value is not _MISSING:
            return value
        if required:
            self.add(key, _("is missing"))
        return None

    def refuse(self, key: str, rule: str) -> None:
        """Note a problem if an unexpected key exists."""
        if self.has(key):
            self.add(key, rule, self.values[key])

    def finish(self) -> None:
        """Note every key that no one asked for."""
        for key in self.values:
            if key not in self.known:
                self.add(key, unknown(key, known=self.known))

    def table(self, key: str, *, required: bool = True) -> "Table | None":
        """Return the table below `key`, or None when there is none."""
        value = self.raw(key, required=required)
        if value is None:
            return None
        if not isinstance(value, dict):
            self.add(key, _("must be a table"), value)
            return None
        return Table(value, self.key(key), self.problems)

    def text(self, key: str, *, default: str | None = None) -> str:
        """Return a text of one line; `default` makes it optional."""
        value = self.raw(key, required=default is None)
        if value is None:
            return default or ""
        problem = text_problem(value)
        if problem:
            self.add(key, problem, value)
            return default or ""
        return str(value)

    def slug(self, key: str, *, reserved: frozenset[str]) -> str | None:
        """Return a slug, or None when it breaks a rule."""
        value = self.raw(key)
        if value is None:
            return None
        if not isinstance(value, str) or not SLUG.fullmatch(value):
            self.add(key, SLUG_RULE, value)
            return None
        if value in reserved:
            self.add(key, _("is a reserved address of this site: choose another"), value)
            return None
        return value

    def choice(self, key: str, known: Sequence[str]) -> str:
        """Return one of `known`."""
        value = self.raw(key)
        if value in known or value is None:
            return value or known[0]
        self.add(key, Reason(_("must be one of %(names)s"), names=", ".join(known)), value)
        return known[0]

    def integer(self, key: str, *, low: int, high: int, default: int | None = None) -> int:
        """Return an integer in [low, high]; `default` makes it optional."""
        value = self.raw(key, required=default is None)
        if value is None:
            return high if default is None else default
        rule = Reason(_("must be a whole number from %(low)s to %(high)s"), low=str(low), high=str(high))
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            self.add(key, rule, value)
            return high
        return value

    def decimal(
        self, key: str, rule: "NumberRule", *, required: bool = True, decimals: int = MAX_DECIMALS
    ) -> Decimal | None:
        """Return a number that keeps `rule`, with few decimals; None when it is missing or wrong."""
        value = self.raw(key, required=required)
        if value is None:
            return None
        number = Decimal(value) if isinstance(value, int) and not isinstance(value, bool) else value
        if not isinstance(number, Decimal) or not number.is_finite() or not rule.accepts(number):
            self.add(key, rule.text, value)
            return None
        if not _has_few_decimals(number, decimals):
            self.add(key, Reason(_("must have at most %(n)s decimals"), n=decimals), value)
            return None
        return number

    def day(self, key: str, *, low: date, high: date) -> date:
        """Return a date in [low, high]."""
        value = self.raw(key)
        if value is None:
            return low
        if not isinstance(value, date) or isinstance(value, datetime):
            self.add(key, _("must be a date without quotes, such as 2017-05-31"), value)
            return low
        if not low <= value <= high:
            self.add(key, Reason(_("must be from %(low)s to %(high)s"), low=str(low), high=str(high)), value)
            return low
        return value

    def clock(self, key: str) -> int | None:
        """Return the minute of the day of "HH:MM", or None when it is not one."""
        value = self.raw(key)
        if value is None:
            return None
        match = _CLOCK.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            self.add(key, _('must be a time such as "06:00", from "00:00" to "23:59"'), value)
            return None
        return int(match[1]) * 60 + int(match[2])

    def _note(self, key: str) -> None:
        if key not in self.known:
            self.known.append(key)


def _has_few_decimals(number: Decimal, most: int) -> bool:
    """Return whether at most `most` digits after the point differ from zero; exact for any exponent."""
    _sign, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int) or exponent >= -most or not number:
        return True
    # Only trailing zeros may follow, and there are no more of them than digits.
    beyond = -most - exponent
    return beyond < len(digits) and not any(digits[-beyond:])


def text_problem(value: object) -> str | None:
    """Return the rule that a name breaks, or None."""
    if not isinstance(value, str):
        return _("must be a text in quotes")
    if not value.strip():
        return _("must not be empty")
    if value != value.strip():
        return _("must not start or end with spaces")
    if len(value) > MAX_TEXT:
        return Reason(_("must have at most %(n)s characters"), n=MAX_TEXT)
    if not is_one_line(value):
        return _("must be one line of printable characters")
    return None


def with_plain_spaces(text: str) -> str:
    """The text as it looks: hard spaces as plain ones."""
    return text.translate(_HARD_SPACES)


def is_one_line(text: str) -> bool:
    """Return whether a text is printable and of one line; hard spaces are, other than in Python."""
    return with_plain_spaces(text).isprintable()


def degrees_problem(value: object, *, limit: int) -> str | None:
    """Return the rule that a longitude or latitude breaks, or None."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    # The comparison comes first: it also holds for whole numbers that no float can hold, and fails for NaN.
    if not is_number or not abs(value) <= limit:  # type: ignore[arg-type]
        return Reason(_("must be a number of degrees from -%(limit)s to %(limit)s"), limit=limit)
    return None


def utf8_text(data: bytes, problems: Problems) -> str | None:
    """Return the text of a file, without byte order mark; None when it is not UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problems.add(f"line {line}", _("must be UTF-8 text"), f"byte 0x{data[error.start]:02x}")
        return None


def date_of(text: str, key: str, problems: Problems) -> date | None:
    """Return the date that a text of a table says; None when it is empty or none."""
    if not text:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        problems.add(key, _("must be a date such as 2017-05-31, or empty"), text)
        return None
