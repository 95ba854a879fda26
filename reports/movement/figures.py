"""Contents of the page of movements: figures per day and category, as values."""

from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Final

from reports.base.status import Status
from reports.estimates.coverage import DayCoverage
from reports.estimates.derived import KeyFigures
from reports.estimates.models import DayNote
from reports.estimates.queries import Window, WindowReport
from reports.studies.names import category_name


class Show(StrEnum):
    """A figure per category; the values are part of addresses.

    arrivals, returning, departures : visitors of each day who were not there before, who were, who were
        not there after
    back_within, there_again : of the visitors of one day, the share seen again until a later day, and on it
    days_present : mean number of days
    window : visitors of a window who were not there before, and who were
    """

    ARRIVALS = "arrivals"
    RETURNING = "returning"
    DEPARTURES = "departures"
    BACK_WITHIN = "back_within"
    THERE_AGAIN = "there_again"
    DAYS_PRESENT = "days_present"
    WINDOW = "window"


class Unit(StrEnum):
    """Unit of the values of a figure: visitors, shares (1 = all), or days."""

    VISITORS = "visitors"
    SHARE = "share"
    DAYS = "days"


UNITS: Final = {Show.BACK_WITHIN: Unit.SHARE, Show.THERE_AGAIN: Unit.SHARE, Show.DAYS_PRESENT: Unit.DAYS}
OF_A_DAY: Final = (Show.BACK_WITHIN, Show.THERE_AGAIN)


@dataclass(frozen=True, slots=True, kw_only=True)
class DayTotals:
    """All visitors of one day; exact, None where they are unreliable.

    `returning` were there on an earlier day of the study, `arrivals` were not; `departures` were not there
    on a later one (so far).
    """

    coverage: DayCoverage
    arrivals: int | None
    returning: int | None
    departures: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """A figure of one category; `value` is None where only its bounds are known, all of it without data.

    `consistent` is the value of visitors that are 0 or more and add up to their total.
    """

    category: str
    status: Status
    value: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    category_fr: str | None = None
    consistent: float | None = None

    @property
    def shown_category(self) -> str:
        """Name of the category in the active language."""
        return category_name(self.category, self.category_fr)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """All categories at one place of a figure.

    `low` and `high` are the least and the largest total that are possible, equal where it is exact; in
    visitors (unscaled), shares or days. None where there is nothing or where it is suppressed.
    """

    day: int
    date: date
    status: Status
    low: float | None
    high: float | None
    is_exact: bool
    estimates: tuple[Derived, ...]

    @property
    def total(self) -> float | None:
        return self.low if self.low == self.high else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A row that differs, by place of its point and code of its category; as shares or days, signed."""

    place: int
    code: int
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A window whose new and returning visitors differ visibly if they do so by `smallest`, a share.

    `observed` is the largest difference that was seen of this category, a share of 0 or more.
    """

    window: Window
    code: int
    observed: float
    smallest: float

    @property
    def tells(self) -> bool:
        """Return whether the observed difference would be found in 80% of cases, if it persists."""
        return self.observed >= self.smallest


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """Result of all tests of a figure: the rows that differ, largest first; else other days, if any."""

    n_tests: int
    differences: tuple[Difference, ...]
    proposal: Proposal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Movement:
    """Contents of the page of an indicator.

    `points` are days, or for `days_present` one point for the study, for `window` first those who are new
    and then those who return. `cohort` is the day that shares are of. `report` is that of all days, or of the
    first day where days cannot be joined: it says under which plan the answers were collected.
    """

    report: WindowReport
    key: KeyFigures
    totals: tuple[DayTotals, ...]
    available: tuple[Show, ...]
    show: Show | None
    cohort: int | None
    window: Window | None
    points: tuple[Point, ...]
    notes: tuple[DayNote, ...]
    findings: Findings | None = None

    @property
    def unit(self) -> Unit:
        """Unit of the values of the points."""
        return Unit.VISITORS if self.show is None else UNITS.get(self.show, Unit.VISITORS)

    @property
    def is_exact(self) -> bool:
        """Return whether every interval is exact; else some are bounds."""
        return all(point.is_exact for point in self.points)
