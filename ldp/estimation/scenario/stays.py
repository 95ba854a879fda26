"""Exact answers from the further tallies of presence that a plan may ask for (`ldp.estimation.tallies`).

A row of `visits` sums up to the people with at least k days, a row of `runs` to the stays of at least k days.
A stay is a run of days between days of absence. Someone can have several, so of people with a stay of at
least k days bounds are known, and their number where no two such stays fit into the study.

With a limit of small cells only these sums are used. Numbers of many days, or of long stays, are often few:
from the first one that is, all are hidden, and at least three. Fewer would follow from the numbers of all
people, stays and visits. Both tallies count who came on all days: if one hides it, so does the other.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp.estimation.overlaps import is_few

Counts = NDArray[np.int64]
_LEAST_HIDDEN: Final = 3


@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    """People by number of days present, or stays by length in days.

    Parameters
    ----------
    at_least : ndarray of int64, shape (days + 2,); [k]: with k days or more; [0] means nothing
    through : int; largest k of which the number with exactly k days is shown
    """

    at_least: Counts
    through: int

    def exactly(self, k: int) -> int | None:
        """Number with exactly k days; None where it is hidden."""
        return int(self.at_least[k] - self.at_least[k + 1]) if k <= self.through else None

    def reaching(self, k: int) -> int | None:
        """Number with k days or more; None where it is hidden."""
        return int(self.at_least[k]) if k <= self.through + 1 else None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PresenceTallies:
    """The further tallies of presence of a study that hides no window.

    Parameters
    ----------
    visits, runs : ndarray of int64, shape (days + 1, days + 1); None where the plan does not ask for them
    people : int; all people of the study
    small_cell : int; 0 = all is shown
    """

    visits: Counts | None
    runs: Counts | None
    people: int
    small_cell: int = 0

    @property
    def people_by_days(self) -> Classes | None:
        """People by number of days present; None without `visits`."""
        return self._classes(self.visits, self.runs, is_of_stays=False)

    @property
    def stays_by_length(self) -> Classes | None:
        """Stays by length; None without `runs`."""
        return self._classes(self.runs, self.visits, is_of_stays=True)

    def people_in_a_row(self, k: int) -> tuple[int, int] | None:
        """Least and most people with k days in a row; None where these tallies show nothing of them."""
        stays = None if self.stays_by_length is None else self.stays_by_length.reaching(k)
        if self.runs is None or stays is None:
            return None
        least = -(-stays // (len(self.runs) // (k + 1)))
        if not self.small_cell:  # stays of one person reach k days at least k + 1 days apart
            least = max(least, int(np.convolve(self.runs[k], np.ones(k + 1, np.int64)).max()))
        return least, stays

    def people_on(self, *, present: Collection[int], absent: Collection[int]) -> int | None:
        """People present on some days and absent on others; None where these tallies do not determine them.

        They do for days in a row, with or without the days next to them.
        """
        first, last = min(present, default=0), max(present, default=0)
        if not present or len(set(present)) <= last - first or set(absent) - {first - 1, last + 1}:
            return None
        for tally, classes in ((self.visits, self.people_by_days), (self.runs, self.stays_by_length)):
            if tally is not None and classes is not None and last - first + 2 == len(tally):
                return classes.exactly(last)
        if self.runs is None or self.small_cell:
            return None
        is_start = first - 1 in absent
        people = _on_run(self.runs, first, last, is_start=is_start)
        return (
            people - _on_run(self.runs, first, last + 1, is_start=is_start) if last + 1 in absent else people
        )

    def _classes(self, tally: Counts | None, other: Counts | None, *, is_of_stays: bool) -> Classes | None:
        if tally is None:
            return None
        days = len(tally) - 1
        is_cut = other is not None and self._through(other, is_of_stays=not is_of_stays) < days
        return Classes(_at_least(tally), self._through(tally, is_of_stays=is_of_stays, is_cut=is_cut))

    def _through(self, tally: Counts, *, is_of_stays: bool, is_cut: bool = False) -> int:
        """Largest k whose number is shown, as all before it; 0 = none.

        Parameters
        ----------
        is_cut : whether the last ones are hidden in any case
        """
        at_least, days = _at_least(tally), len(tally) - 1
        most_of_one = (
            np.maximum((days + 1) // np.arange(1, days + 3), 1) if is_of_stays else np.ones(days + 2)
        )
        limit = self.small_cell * most_of_one
        # Where each person has one at most, those without are people, too.
        few_others = (most_of_one == 1) & is_few(self.people - at_least, small_cell=self.small_cell)
        is_hidden = (few_others | is_few(-np.diff(at_least, append=0), small_cell=limit))[1:-1]
        if not (is_hidden.any() or is_cut):
            return days
        first = int(is_hidden.argmax()) if is_hidden.any() else days
        few_rest = few_others | is_few(at_least, small_cell=limit)
        shown = range(min(first, days - _LEAST_HIDDEN), 0, -1)
        return next((k for k in shown if not few_rest[k + 1]), 0)


def _at_least(tally: Counts) -> Counts:
    """Return how many reach k days, [k], shape (days + 2,)."""
    return np.append(tally.sum(axis=1), 0)


def _on_run(runs: Counts, first: int, last: int, *, is_start: bool) -> int:
    """People present on all of first..last; if `is_start`, the first is the first day of their stay."""
    length = last - first + 1
    return int(runs[length, last] if is_start else runs[length:, last].sum())
