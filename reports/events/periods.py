"""Calendar periods of a study; those at its ends may be cut short."""

from datetime import date, timedelta
from typing import Final, Literal, NamedTuple, get_args

from reports.estimates.queries import Window
from reports.studies.models import Study

PeriodKind = Literal["day", "week", "month", "quarter", "year"]
PERIODS: Final[tuple[PeriodKind, ...]] = get_args(PeriodKind)


class Period(NamedTuple):
    """Days of a study that lie in one period of the calendar.

    name : as files write it: 2024-05-01, 2024-W18, 2024-05, 2024-Q2, 2024
    is_whole : whether the study has all of its days
    """

    name: str
    window: Window
    is_whole: bool


def period_start(day: date, kind: PeriodKind) -> date:
    """First day of the period in which a day lies; weeks begin on Monday."""
    if kind == "week":
        return day - timedelta(days=day.weekday())
    if kind == "month":
        return day.replace(day=1)
    if kind == "quarter":
        return day.replace(month=3 * ((day.month - 1) // 3) + 1, day=1)
    return day.replace(month=1, day=1) if kind == "year" else day


def next_period(start: date, kind: PeriodKind) -> date:
    """First day of the period after the one that begins on `start`."""
    longest = {"day": 1, "week": 7, "month": 31, "quarter": 92, "year": 366}
    return period_start(start + timedelta(days=longest[kind]), kind)


def period_name(start: date, kind: PeriodKind) -> str:
    """Name of the period that begins on `start`, without a language."""
    if kind == "week":
        year, week, _ = start.isocalendar()
        return f"{year}-W{week:02d}"
    if kind == "quarter":
        return f"{start.year}-Q{(start.month + 2) // 3}"
    return start.isoformat()[: {"day": 10, "month": 7, "year": 4}[kind]]


def periods_of(study: Study, kind: PeriodKind, *, last: int | None = None) -> list[Period]:
    """Periods of a study in their order, up to study day `last`, by default its last one."""
    end = study.date_of(study.days if last is None else last)
    found = []
    start = period_start(study.first_day, kind)
    while start <= end:
        after = next_period(start, kind)
        first_day, last_day = max(start, study.first_day), min(after - timedelta(days=1), end)
        is_whole = (first_day, last_day) == (start, after - timedelta(days=1))
        window = Window(study.day_of(first_day), study.day_of(last_day))
        found.append(Period(period_name(start, kind), window, is_whole))
        start = after
    return found
