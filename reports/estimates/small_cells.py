"""The small-cell rule, in the one place where figures get numbers of visitors from.

A window is hidden if it has visitors, but fewer than the limit of its study. Every other figure is made of
windows that are shown, and of nothing else. So all that pages and files say follows from these. No equation
among them gives a hidden one; bounds may (docs/exports.md). A part of a window and the rest of it
are hidden, too, if either has so few.

`ldp.estimation.windows.IndicatorTallies` keeps the same rule for estimates, which are made of the same parts.
"""

from dataclasses import dataclass
from typing import NamedTuple

from ldp.estimation.overlaps import overlap_of, several_days_bounds, shared_bounds, tells_of_few
from ldp.estimation.unions import Counts
from reports.base.status import Status, is_suppressed, window_status
from reports.studies.models import Study

Days = tuple[int, int]  # first and last one, from 1; none if the last one is before the first


class Cut(NamedTuple):
    """Visitors of two windows side by side: of the first only, of both, of the second only."""

    only_first: int
    both: int
    only_second: int


@dataclass(frozen=True, slots=True, eq=False)
class ShownVisitors:
    """Visitors of the windows of a study, and of parts of them, that may be shown.

    `unions` are those of every window, as `visitor_unions` returns them.
    """

    study: Study
    unions: Counts

    def of(self, first_day: int, last_day: int) -> int | None:
        """Visitors of a window; None where the rule hides them."""
        if last_day < first_day:
            return 0
        n_visitors = int(self.unions[first_day, last_day])
        return None if self._is_few(n_visitors) else n_visitors

    def cut(self, first: Days, second: Days) -> Cut | None:
        """Split the visitors of two windows, of which the second begins where the first ends.

        None where a window is hidden, or a part has few visitors: each part is the rest of another one.
        """
        one, other, whole = self.of(*first), self.of(*second), self.of(first[0], second[1])
        if one is None or other is None or whole is None:
            return None
        cut = Cut(only_first=whole - other, both=one + other - whole, only_second=whole - one)
        return None if any(self._is_few(part) for part in cut) else cut

    def first_time(self, day: int) -> int | None:
        """Return a day's visitors who were on no earlier one; noisy where totals are."""
        cut = self.cut((1, day - 1), (day, day))
        return None if cut is None else cut.only_second

    def last_time(self, day: int) -> int | None:
        """Return a day's visitors who were on no later one."""
        cut = self.cut((day, day), (day + 1, self.study.days))
        return None if cut is None else cut.only_first

    def visits(self) -> int | None:
        """Visitors of all days added up; None where one is hidden, or few visits are returns."""
        daily = [self.of(day, day) for day in range(1, self.study.days + 1)]
        shown, everyone = [each for each in daily if each is not None], self.of(1, self.study.days)
        if len(shown) < len(daily) or everyone is None or self._is_few(sum(shown) - everyone):
            return None
        return sum(shown)

    def several_days(self, first_day: int, last_day: int) -> tuple[int | None, int | None] | None:
        """Least and largest number of visitors of more than one day of a window, equal for two days in a row.

        None of a single day, and under the rule of a window of more than two, whose bounds it hides in any
        case; (None, None) where they are few.
        """
        if last_day == first_day or (self.study.small_cell and last_day > first_day + 1):
            return None
        if self.study.small_cell:
            cut = self.cut((first_day, first_day), (last_day, last_day))
            return (None, None) if cut is None else (cut.both, cut.both)
        return several_days_bounds(self.unions, (first_day, last_day))

    def on_both(self, tally: Counts, early: int, late: int) -> tuple[int, int] | None:
        """Least and largest number of visitors whom two days have in common; None where they are few.

        `tally` is that of the visitors, by gap, from which `unions` come.
        """
        if self.of(early, early) is None or self.of(late, late) is None:
            return None
        visitors, limit = overlap_of(tally, (early, early), (late, late)), self.study.small_cell
        if tells_of_few(visitors, shared_bounds(visitors, visitors=visitors)[1], small_cell=limit):
            return None
        least, most = shared_bounds(visitors, visitors=visitors, small_cell=limit)
        return int(least), int(most)

    def status(self, first_day: int, last_day: int, *, is_outage: bool) -> Status:
        """Return the status of a number of visitors, which is exact or has its own interval."""
        n_visitors = int(self.unions[first_day, last_day])
        is_here = self.study.presence is not None and first_day <= self.study.noisy_through
        return window_status(
            n_visitors=n_visitors,
            n_reports=int(is_here) if self.study.presence is not None else n_visitors,
            small_cell=self.study.small_cell,
            is_outage=is_outage,
        )

    def _is_few(self, n_visitors: int) -> bool:
        return is_suppressed(n_visitors, small_cell=self.study.small_cell)
