"""Age bands of dates and years of birth at a reference date."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

FIRST_YEAR: Final = 1880  # no one who was born before is alive
OLDEST: Final = 120
BIRTH_YEAR: Final = "%Y"
DEFAULT_PATTERN: Final = "%Y-%m-%d"
NEEDED: Final = ("%Y", "%m", "%d")
PATTERN_RULE: Final = (
    'must be a date format such as "%Y-%m-%d" or "%d/%m/%Y": %Y, %m and %d once each, separated '
    "by . - / _ or nothing"
)

Bands = Mapping[str, tuple[int, int | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class BirthRule:
    """Age bands of people by when they were born.

    reference : the day on which the ages hold
    bands : first and last age of each category, both included; None = and older
    pattern : of dates, with numbers of full width (01/06/1990); BIRTH_YEAR = a year of four digits
    """

    reference: date
    bands: Bands
    pattern: str = BIRTH_YEAR

    def texts(self) -> Iterator[tuple[str, str]]:
        """Every text of someone who is in a band, and that band's category.

        Notes
        -----
        A year says only which age is reached in the reference date's year; that age counts. A date says the
        exact age: the birthday itself is a day of the new age; that of 29 February is 1 March in other years.
        """
        band_of = {age: name for name, band in self.bands.items() for age in _ages(band)}
        form = self.pattern  # strftime would take five times as long
        for directive, place in (("%Y", "{0:04}"), ("%m", "{1:02}"), ("%d", "{2:02}")):
            form = form.replace(directive, place)
        for born in self._days():
            before_birthday = (self.reference.month, self.reference.day) < (born.month, born.day)
            is_exact = self.pattern != BIRTH_YEAR
            age = self.reference.year - born.year - (before_birthday and is_exact)
            if age in band_of:
                yield form.format(born.year, born.month, born.day), band_of[age]

    def _days(self) -> Iterator[date]:
        years = range(FIRST_YEAR, self.reference.year + 1)
        if self.pattern == BIRTH_YEAR:
            yield from (date(year, 1, 1) for year in years)
            return
        first = date(FIRST_YEAR, 1, 1)
        yield from (first + timedelta(days=n) for n in range((self.reference - first).days + 1))


def pattern_problem(pattern: str) -> str | None:
    """Return the rule that a pattern of birth dates breaks, or None."""
    rest = pattern
    for directive in NEEDED:
        if rest.count(directive) != 1:
            return PATTERN_RULE
        rest = rest.replace(directive, "")
    return None if len(rest) <= len(NEEDED) - 1 and set(rest) <= set(".-/_") else PATTERN_RULE


def bands_problem(bands: Bands) -> str | None:
    """Return what is wrong with the bands together: an age must have exactly one."""
    expected, previous = 0, ""
    for name, (first, last) in sorted(bands.items(), key=lambda item: item[1][0]):
        if first > expected:
            return (
                f"must cover every age from 0 to {OLDEST}: no age range contains {_span(expected, first - 1)}"
            )
        if first < expected:
            upto = expected - 1 if last is None else min(expected - 1, last)
            return f'must not overlap: "{previous}" and "{name}" both contain {_span(first, upto)}'
        expected, previous = (OLDEST if last is None else last) + 1, name
    if expected <= OLDEST:
        return f"must cover every age from 0 to {OLDEST}: no age range contains {_span(expected, OLDEST)}"
    return None


def _ages(band: tuple[int, int | None]) -> range:
    first, last = band
    return range(first, (date.max.year if last is None else last) + 1)


def _span(first: int, last: int) -> str:
    return f"age {first}" if first == last else f"ages {first} to {last}"
