"""Is this file like those before it? Days are compared with earlier days of the same source, and the file
with earlier files. A comparison warns and never refuses: an event or a strike is no error.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median, median_low
from typing import Literal

from mobility.batches.quality.calendar import StudyCalendar
from mobility.batches.quality.deliveries import Delivery, History, total_hours
from mobility.batches.quality.facts import Hours

# A day is unusual below half and above twice the median: weekends stay inside, a lost half does not.
LOW_FACTOR = 0.5
HIGH_FACTOR = 2.0
# Below it chance alone halves and doubles a number too often.
LEAST_USUAL = 20
# A share is unusual when it is both twice the usual one and a percentage point above it.
SHARE_FACTOR = 2.0
SHARE_POINTS = 0.01
# An hour with usually this many rows is empty by chance in less than one hour of 20,000 (exp(-10)).
LEAST_HOUR_ROWS = 10
# One day that continued until late does not make the silence of another one an outage.
LEAST_DAYS_WITH_HOUR = 2
# With as many earlier days of the same weekday these are compared alone.
LEAST_SAME_WEEKDAY = 2

Basis = Literal["weekday", "days", "files"]
Verdict = Literal["usual", "low", "high", "few"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A figure and its median.

    figure : "rows" and "subscribers" of a day, "rejected" and "empty" are shares of the file's rows
    day : study day, None for figures of the file
    column : of "empty"
    n : days or files behind the median; `basis` says which
    verdict : "few" = the median is too small to judge
    """

    figure: Literal["rows", "subscribers", "rejected", "empty"]
    value: float
    usual: float
    n: int
    basis: Basis
    verdict: Verdict
    day: int | None = None
    column: str = ""

    @property
    def is_warning(self) -> bool:
        return self.verdict in ("low", "high")


@dataclass(frozen=True, slots=True, kw_only=True)
class SilentHours:
    """Local hours [begin, end) of a day without any row, where `usual` rows are the (low) median."""

    day: int
    begin: int
    end: int
    usual: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LookBack:
    """Figures that are compared; days are not (`days_wait`) while more files of them are expected."""

    comparisons: tuple[Comparison, ...]
    silent: tuple[SilentHours, ...]
    days_wait: bool

    @property
    def warnings(self) -> tuple[Comparison, ...]:
        return tuple(each for each in self.comparisons if each.is_warning)

    @property
    def n_warnings(self) -> int:
        return len(self.warnings) + len(self.silent)


def look_back(delivery: Delivery, *, history: History, calendar: StudyCalendar) -> LookBack:
    """Compare a file with what its source had brought before.

    Parameters
    ----------
    history : of the study before the file ended; files of other sources are left out here
    """
    earlier = history.of_source(delivery.source)
    shares = tuple(_shares(delivery, [each for each in earlier.deliveries if each.is_taken_in]))
    if delivery.more_to_come:
        return LookBack(comparisons=shares, silent=(), days_wait=True)
    days = _Days.of(delivery, earlier, calendar)
    return LookBack(comparisons=(*days.comparisons(), *shares), silent=tuple(days.silent()), days_wait=False)


def like_days(day: int, others: Iterable[int], calendar: StudyCalendar) -> tuple[list[int], Basis]:
    """Days to compare `day` with: those of its weekday if there are enough, else all."""
    known = [other for other in others if other != day]
    same = [other for other in known if calendar.same_weekday(day, other)]
    return (same, "weekday") if len(same) >= LEAST_SAME_WEEKDAY else (known, "days")


def silent_hours(
    day: int, hours: Mapping[int, Hours], *, others: Collection[int], calendar: StudyCalendar
) -> list[SilentHours]:
    """Visitor hours of `day` without a row though the days like it have rows then.

    Parameters
    ----------
    hours : rows by local hour, of `day` and of each of `others`
    """
    days, _ = like_days(day, others, calendar)
    found: list[SilentHours] = []
    for hour in calendar.visitor_hours(day) if len(days) >= LEAST_DAYS_WITH_HOUR else ():
        usual = median_low(hours[other][hour] for other in days)
        if hours[day][hour] or usual < LEAST_HOUR_ROWS:
            continue
        if found and found[-1].end == hour:
            last = found.pop()
            found.append(SilentHours(day=day, begin=last.begin, end=hour + 1, usual=last.usual + usual))
        else:
            found.append(SilentHours(day=day, begin=hour, end=hour + 1, usual=usual))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Days:
    """Days of a file, and the days that they may be compared with."""

    of_file: Sequence[int]
    earlier: frozenset[int]
    hours: Mapping[int, Hours]
    subscribers: Mapping[int, int]
    calendar: StudyCalendar

    @classmethod
    def of(cls, delivery: Delivery, earlier: History, calendar: StudyCalendar) -> "_Days":
        before = {day: earlier.taken_in(day) for day in calendar.all_days}
        # A day of which files are still to come says nothing yet.
        complete = frozenset(day for day, files in before.items() if files and not files[-1].more_to_come)
        now = {day: [*files, delivery] if day in delivery.days else files for day, files in before.items()}
        return cls(
            of_file=sorted(delivery.days),
            earlier=complete,
            hours={day: total_hours(files, day) for day, files in now.items()},
            subscribers=_subscribers(now),
            calendar=calendar,
        )

    def others(self, day: int) -> list[int]:
        """Days that came before, and the earlier days of the same file."""
        return sorted(self.earlier.union(other for other in self.of_file if other < day) - {day})

    def comparisons(self) -> Iterable[Comparison]:
        rows = {day: sum(hours) for day, hours in self.hours.items()}
        for day in self.of_file:
            yield from self._compared("rows", rows, day=day)
            yield from self._compared("subscribers", self.subscribers, day=day)

    def _compared(
        self, figure: Literal["rows", "subscribers"], values: Mapping[int, int], *, day: int
    ) -> Iterable[Comparison]:
        others, basis = like_days(day, self.others(day), self.calendar)
        known = [values[other] for other in others if other in values]
        if day in values and known:
            value, usual = values[day], median(known)
            verdict = _verdict_of_count(value, usual)
            yield Comparison(
                figure=figure, day=day, value=value, usual=usual, n=len(known), basis=basis, verdict=verdict
            )

    def silent(self) -> Iterable[SilentHours]:
        for day in self.of_file:
            yield from silent_hours(day, self.hours, others=self.others(day), calendar=self.calendar)


def _subscribers(files: Mapping[int, Sequence[Delivery]]) -> dict[int, int]:
    """Distinct subscribers of days that came in one file: those of several files do not add up."""
    return {
        day: each[0].facts.day_subscribers[day]
        for day, each in files.items()
        if len(each) == 1 and day in each[0].facts.day_subscribers
    }


def _shares(delivery: Delivery, earlier: Sequence[Delivery]) -> Iterable[Comparison]:
    """Rejected rows and empty values of the file; weekdays make no difference to them."""
    read = [each for each in earlier if each.rows_formed]
    if not (read and delivery.rows_formed):
        return
    yield _share(
        "rejected", [each.rows_rejected / each.rows_read for each in read],
        value=delivery.rows_rejected / delivery.rows_read,
    )  # fmt: skip
    for column in sorted(delivery.facts.empty):
        usual = [each.facts.empty[column] / each.rows_formed for each in read if column in each.facts.empty]
        if usual:
            value = delivery.facts.empty[column] / delivery.rows_formed
            yield _share("empty", usual, value=value, column=column)


def _share(
    figure: Literal["rejected", "empty"], earlier: Sequence[float], *, value: float, column: str = ""
) -> Comparison:
    usual = median(earlier)
    is_high = value > SHARE_FACTOR * usual and value - usual > SHARE_POINTS
    return Comparison(
        figure=figure, column=column, value=value, usual=usual, n=len(earlier), basis="files",
        verdict="high" if is_high else "usual",
    )  # fmt: skip


def _verdict_of_count(value: float, usual: float) -> Verdict:
    if usual < LEAST_USUAL:
        return "few"
    if value < LOW_FACTOR * usual:
        return "low"
    return "high" if value > HIGH_FACTOR * usual else "usual"
