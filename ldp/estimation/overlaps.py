"""Number of subscribers that two windows share: known for windows that touch, else between two bounds.

Let E be the earlier window, L the later one, B the days between them, and U(...) the subscribers of several
of them together. The number of subscribers in both E and L is

    at least    those who go straight from one to the other, U(E B) + U(B L) - U(B) - U(E B L),
                and by Frechet's inequality U(E) + U(L) - U(E B L);
    at most     those of E who are seen after it, U(E) + U(B L) - U(E B L),
                and those of L who are seen before it, U(L) + U(E B) - U(E B L).

Where no one is seen between, all four are the exact number. A number of visitors is *few* if it is above 0
and below the small-cell limit of the study. A bound is left out if it is few, if what it leaves of E or L is,
or if it is made of a window B that has few and so is hidden. The rest is made of shown windows,
and tells no more than these.
"""

from typing import Any, NamedTuple

import numpy as np

from ldp.estimation.unions import all_unions, union

Days = tuple[int, int]  # first and last one


class Overlap(NamedTuple):
    """Counts of two windows and of the unions around them: int64, of any shape that all have."""

    early: Any
    late: Any
    between: Any
    until_late: Any
    after_early: Any
    whole: Any

    @property
    def straight(self) -> Any:
        return self.until_late + self.after_early - self.between - self.whole

    @property
    def surely(self) -> Any:
        """Frechet's bound; below 0 where it says nothing. The exact number of windows that touch."""
        return self.early + self.late - self.whole

    @property
    def seen_later(self) -> Any:
        return self.early + self.after_early - self.whole

    @property
    def seen_before(self) -> Any:
        return self.late + self.until_late - self.whole


def overlap_of(tally: Any, first: Days, second: Days) -> Overlap:
    """Two windows, in any order, of a gap tally of shape (..., days + 1, days + 1)."""
    (a, b), (c, d) = sorted((first, second))
    return Overlap(
        early=_count(tally, a, b),
        late=_count(tally, c, d),
        between=_count(tally, b + 1, c - 1),
        until_late=_count(tally, a, max(b, c - 1)),
        after_early=_count(tally, min(c, b + 1), d),
        whole=_count(tally, a, max(b, d)),
    )


def day_overlaps(tally: Any) -> Overlap:
    """All pairs of days a < b at once, [a, b]; other entries mean nothing."""
    unions = all_unions(tally)
    daily = unions.diagonal()
    until_late, after_early, between = (np.zeros_like(unions) for _ in range(3))
    until_late[:, 1:] = unions[:, :-1]
    after_early[:-1] = unions[1:]
    between[:-1] = until_late[1:]
    return Overlap(
        early=np.broadcast_to(daily[:, np.newaxis], unions.shape),
        late=np.broadcast_to(daily, unions.shape),
        between=between,
        until_late=until_late,
        after_early=after_early,
        whole=unions,
    )


def several_days_bounds(unions: Any, days: Days) -> tuple[int, int]:
    """Least and largest number of subscribers who are there on more than one day of a window.

    Parameters
    ----------
    unions : ndarray of int64, shape (days + 1, days + 1); as `all_unions` returns it

    Notes
    -----
    The bounds are sharp: of all studies with the same tallies, one has the least number and one the largest.
    Each of them is first seen on one day of the window, and is seen again after it. Of the subscribers of a
    day the tallies say how many are first seen, and how many are seen again, but not how many are both: there
    Frechet's inequality holds. On each day, any way in can go with any way out, so days do not limit each
    other: all days can have their least, or their largest, number at the same time.
    """
    first_day, last_day = days

    def count(first: int, last: int) -> int:
        return int(unions[first, last]) if first <= last else 0

    least, most = 0, 0
    for day in range(first_day, last_day + 1):
        here = count(day, day)
        new = count(first_day, day) - count(first_day, day - 1)
        again = here + count(day + 1, last_day) - count(day, last_day)
        least += max(new + again - here, 0)
        most += min(new, again)
    return least, most


def is_few(number: Any, *, small_cell: Any) -> Any:
    """Return whether a number of people is above 0 and below the limit of small cells (0 = no limit)."""
    return (number > 0) & (number < small_cell)


def tells_of_few(visitors: Overlap, number: Any, *, small_cell: int) -> Any:
    """Return whether this number in common, or the rest of either window, is few."""
    parts = (number, visitors.early - number, visitors.late - number)
    return np.any([is_few(part, small_cell=small_cell) for part in parts], axis=0)


def shared_bounds(counts: Overlap, *, visitors: Overlap, small_cell: int = 0) -> tuple[Any, Any]:
    """Least and largest number in common, without the bounds that would reveal few visitors.

    Parameters
    ----------
    counts : Overlap; of what is asked for, visitors or reports
    visitors : Overlap; of the same windows: decides which bounds are shown
    small_cell : int; 0 = all are
    """
    is_hidden = is_few(visitors.between, small_cell=small_cell)

    def told(name: str, *, otherwise: Any) -> Any:
        left_out = tells_of_few(visitors, getattr(visitors, name), small_cell=small_cell)
        if name == "straight":
            left_out = left_out | is_hidden
        return np.where(left_out, otherwise, getattr(counts, name))

    most = np.minimum(counts.early, counts.late)
    lower = (told(name, otherwise=0) for name in ("straight", "surely"))
    upper = (told(name, otherwise=most) for name in ("seen_later", "seen_before"))
    return np.maximum(np.maximum(*lower), 0), np.minimum(np.minimum(*upper), most)


def _count(tally: Any, first_day: int, last_day: int) -> Any:
    if last_day < first_day:
        return np.zeros(tally.shape[:-2], np.int64)
    return union(tally, first_day=first_day, last_day=last_day)
