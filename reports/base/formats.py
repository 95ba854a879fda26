"""Formats of numbers, days and epsilons: the same on pages, in charts and in texts for screen readers.

Numbers are written as readers of the active language write them: "22,000" and "95.5%" in English, `22 000`
and `95,5 %` in French.
"""

from collections.abc import Callable, Iterable
from datetime import date, datetime
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from functools import lru_cache, wraps
from typing import Protocol, TypeVarTuple

from django.utils.formats import date_format, get_format
from django.utils.translation import get_language, gettext, ngettext, override, pgettext

from ldp.estimation.noisy_estimators import NoisyTotal
from reports.base.status import Status

SPACE = "\u202f"  # of French between thousands and before a sign: narrow, and no line break
MINUS = "\u2212"
MISSING = "\u2013"
_LEAST_P = 0.001  # smaller p-values are shown as "below"
Ts = TypeVarTuple("Ts")


def _remembered(words: Callable[[*Ts], str]) -> Callable[[*Ts], str]:
    """Words kept for each language: a page says the same days again and again."""

    @lru_cache(maxsize=1 << 10)
    def of_language(_language: str | None, *args: *Ts) -> str:
        return words(*args)

    @wraps(words)
    def said(*args: *Ts) -> str:
        return of_language(get_language(), *args)

    return said


def number(value: float | None) -> str:
    """Whole number, with its thousands separated: 62440 -> "62,440", in French "62 440"."""
    return numbers([value])[0]


def numbers(values: Iterable[float | None]) -> list[str]:
    """Whole numbers as `number` writes them: a map of a day has thousands."""
    language = get_language()
    return [MISSING if value is None else _in(language, f"{round(value):,}") for value in values]


def compact(value: int | None) -> str:
    """Visitors in few characters, for small cells: 62440 -> "62k"; the sign of a blank, also for none."""
    if not value:
        return status_sign(Status.SUPPRESSED if value is None else Status.NOT_COLLECTED)
    if value < 1000:
        return str(value)
    if value < 9950:
        return f"{decimal(value / 1000, decimals=1)}k"
    return f"{value / 1000:.0f}k" if value < 999_500 else f"{decimal(value / 1_000_000, decimals=1)}M"


def decimal(value: float, *, decimals: int) -> str:
    """Number with a fixed count of decimals: 1234.56, 1 -> "1,234.6", in French "1 234,6"."""
    return _localised(_rounded(value, decimals=decimals))


def p_value(value: float) -> str:
    """A p-value with its sign: "= 0.042" or "< 0.001"."""
    if value < _LEAST_P:
        return f"< {decimal(_LEAST_P, decimals=3)}"
    return f"= {decimal(value, decimals=3)}"


def colon() -> str:
    """Return the sign between a name and what is said of it; in French with a space before it."""
    return ":" if _is_english() else "\u00a0:"


def labelled(name: str, words: str) -> str:
    """Write a name and what is said of it: "Gender: 3 categories"."""
    return f"{name}{colon()} {words}"


def listed(items: Iterable[str]) -> str:
    """Join longer parts of a sentence with semicolons; in French with a space before each."""
    return ("; " if _is_english() else "\u00a0; ").join(items)


def decimal_sign() -> str:
    """Return the decimal sign of the active language."""
    return _decimal_sign(get_language())


def thousands_sign() -> str:
    """Separator of thousands in the active language: a comma, or a narrow space."""
    return "," if _is_english() else SPACE


def percent_sign() -> str:
    """Sign after a percentage, with the space that the active language puts before it."""
    return "%" if _is_english() else f"{SPACE}%"


def plus_minus(text: str) -> str:
    """Half a width: "2.4 points" -> "±2.4 points", in French "± 2,4 points"."""
    return f"±{text}" if _is_english() else f"±{SPACE}{text}"


@lru_cache(maxsize=16)
def _decimal_sign(language: str | None) -> str:
    return str(get_format("DECIMAL_SEPARATOR", lang=language))


def with_decimal_sign(text: str) -> str:
    """The point of a number as Python writes it, in the active language."""
    return text.replace(".", decimal_sign()) if "." in text else text


def percent(value: float | None) -> str:
    """Share with one decimal: 0.1234 -> "12.3%", in French `12,3 %`."""
    return percents([value])[0]


def percents(values: Iterable[float | None]) -> list[str]:
    """Shares as `percent` writes them: charts of all days have thousands."""
    language = get_language()
    return [
        MISSING if value is None else _in(language, f"{_rounded(value * 100, decimals=1)}%")
        for value in values
    ]


def amount(value: float | None, measure: str) -> str:
    """A share as "12.3%" where the measure is "frequency", else visitors as a whole number."""
    return percent(value) if measure == "frequency" else number(value)


def amount_range(low: float | None, high: float | None, measure: str) -> str:
    """Both bounds of an `amount`."""
    return percent_range(low, high) if measure == "frequency" else number_range(low, high)


def points(value: float) -> str:
    """Difference of two shares, in percentage points: 0.037 -> "3.7 points"."""
    return gettext("%(number)s points") % {"number": decimal(value * 100, decimals=1)}


def percent_range(low: float | None, high: float | None) -> str:
    """Both bounds, never a width: "11.1 to 13.5%"."""
    return percent_ranges([(low, high)])[0]


def percent_ranges(bounds: Iterable[tuple[float | None, float | None]]) -> list[str]:
    """Bounds as `percent_range` writes them."""
    language = get_language()
    words = _range_words(language)
    return [
        MISSING
        if low is None or high is None
        else words
        % {
            "low": _in(language, _rounded(low * 100, decimals=1)),
            "high": _in(language, f"{_rounded(high * 100, decimals=1)}%"),
        }
        for low, high in bounds
    ]


def number_range(low: float | None, high: float | None) -> str:
    """Both bounds of a number of visitors."""
    return number_ranges([(low, high)])[0]


def number_ranges(bounds: Iterable[tuple[float | None, float | None]]) -> list[str]:
    """Bounds as `number_range` writes them: a table of flows has thousands."""
    language = get_language()
    words = _range_words(language)
    return [
        MISSING
        if low is None or high is None
        else words % {"low": _in(language, f"{round(low):,}"), "high": _in(language, f"{round(high):,}")}
        for low, high in bounds
    ]


def people_bounds(low: float, high: float) -> tuple[float, float]:
    """Bounds of a noisy number of people, not below none.

    Noise can push a number below none. Readers see none instead, with the interval of that: the bounds alone
    would be "0 to 0", as if no one could be there.
    """
    raised = max(-(low + high) / 2, 0.0)
    return max(low + raised, 0.0), high + raised


def people_range(low: float, high: float) -> str:
    """Both bounds of a noisy number of people in words."""
    return number_range(*people_bounds(low, high))


def epsilon(value: Decimal | Fraction | float, *, decimals: int = 4) -> str:
    """Rounded up, so that no text promises more than is kept; without trailing zeros."""
    step = Fraction(1, 10**decimals)
    steps = -(-Fraction(value) // step)
    text = f"{Decimal(int(steps)).scaleb(-decimals):f}"
    return with_decimal_sign(text.rstrip("0").rstrip(".") if "." in text else text)


def odds(epsilon_value: Decimal) -> str:
    """Factor by which odds can change, exp(epsilon), rounded up: 1 -> "2.72", 7 -> "1,097"."""
    ratio = epsilon_value.exp()
    if ratio >= 1_000_000:
        return f"e^{epsilon(epsilon_value, decimals=1)}"
    if ratio < 100:
        return with_decimal_sign(f"{ratio.quantize(Decimal('0.01'), rounding=ROUND_CEILING)}")
    return number(int(ratio.to_integral_value(rounding=ROUND_CEILING)))


@_remembered
def day_title(day: date) -> str:
    """Day with its weekday: "Wed 31 May 2017"."""
    return _date(day, pgettext("pattern of a date, as Django writes it", "D j M Y"))


@_remembered
def time_title(at: datetime) -> str:
    """Time of a day with its weekday: "Wed 31 May 2017 18:00"."""
    return f"{day_title(at.date())} {at:%H:%M}"


@_remembered
def short_day(day: date) -> str:
    """Day without its year: "31 May"."""
    return _date(day, pgettext("pattern of a date, as Django writes it", "j M"))


def long_day(day: date) -> str:
    """Day with the whole name of its month: "31 May 2017"."""
    return _date(day, "j F Y")


def _date(day: date, pattern: str) -> str:
    """Write a date by a pattern of Django; in French, the first of a month is "1er"."""
    is_ordinal = day.day == 1 and not _is_english()
    return date_format(day, pattern.replace("j", r"j\e\r") if is_ordinal else pattern)


@_remembered
def short_month(day: date) -> str:
    """Month of a day in a narrow column: "May"."""
    return date_format(day, pgettext("pattern of a date, as Django writes it", "M"))


def window_title(first: date, last: date) -> str:
    """Days in words: "Wed 31 May 2017 to Tue 6 Jun 2017 (7 days)"."""
    if first == last:
        return day_title(first)
    days = (last - first).days + 1
    return ngettext("%(first)s to %(last)s (%(days)d day)", "%(first)s to %(last)s (%(days)d days)", days) % {
        "first": day_title(first),
        "last": day_title(last),
        "days": days,
    }


def status_word(status: str) -> str:
    """Return why a number is unreliable, in a word or two; a reliable one has none."""
    words = {
        Status.NOT_RELIABLE: pgettext("status", "not reliable"),
        Status.NOT_COLLECTED: pgettext("status", "not collected"),
        Status.SUPPRESSED: pgettext("status", "suppressed"),
        Status.SMALL: pgettext("status", "too few visitors"),
        Status.OUTAGE: pgettext("status", "outage"),
    }
    return words.get(Status(status), "")


def status_sign(status: str) -> str:
    """Return one character next to the word: no colour is needed; the policies share "<"."""
    signs = {
        Status.NOT_RELIABLE: "?",
        Status.NOT_COLLECTED: MISSING,
        Status.SUPPRESSED: "<",
        Status.SMALL: "<",
        Status.OUTAGE: "\u00d7",
    }
    return signs.get(Status(status), "")


def blank_words(status: str) -> str:
    """Why there is no number, as a sign and a word; nothing where there is one."""
    return f"{status_sign(status)} {status_word(status)}".strip()


class Blankable(Protocol):
    """A figure that may have no number; `below` is the limit of one that is small."""

    @property
    def status(self) -> Status: ...
    @property
    def below(self) -> int | None: ...


def reason_words(figure: Blankable) -> str:
    """Why a figure has no number, in its place: a small one is "<20 visitors"."""
    if figure.below is None:
        return blank_words(figure.status)
    return gettext("<%(n)s visitors") % {"n": number(figure.below)}


def counted(value: int | None) -> str:
    """A count, which presence noise alone can make negative: no one is there less than not at all."""
    return number(None if value is None else max(value, 0))


def noisy_number(total: NoisyTotal) -> str:
    """A noisy number of visitors; no one has less than none."""
    return number(max(total.value, 0))


def noisy_range(total: NoisyTotal) -> str:
    """Both bounds of a noisy number of visitors; no one has less than none."""
    return people_range(total.ci_low, total.ci_high)


def _is_english() -> bool:
    return decimal_sign() == "."


def _localised(text: str) -> str:
    """A number as Python writes it with commas between thousands, in the active language."""
    return _in(get_language(), text)


def _in(language: str | None, text: str) -> str:
    for sign, own in _signs(language):
        text = text.replace(sign, own)
    return text


@lru_cache(maxsize=16)
def _signs(language: str | None) -> tuple[tuple[str, str], ...]:
    """Signs of Python and those of a language, in an order in which none is replaced twice."""
    with override(language):
        own = ((",", thousands_sign()), (".", decimal_sign()), ("-", MINUS), ("%", percent_sign()))
    return tuple((sign, other) for sign, other in own if sign != other)


@lru_cache(maxsize=16)
def _range_words(language: str | None) -> str:
    with override(language):
        return gettext("%(low)s to %(high)s")


def _rounded(value: float, *, decimals: int) -> str:
    """A number as Python writes it with commas between thousands; zero after rounding has no sign."""
    text = f"{value:,.{decimals}f}"
    return text.lstrip("-") if text[0] == "-" and not text.strip("-0.,") else text
