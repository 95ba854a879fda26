"""Other windows for a comparison that finds no difference: those that would tell the one observed.

Two windows tell a difference d of a category if they find it in 80% of cases, at the level of the table's
test: d >= (z(1 - 0.05 / 2k) + z(0.8)) s, as in the simulator (`smallest_difference`), with the exact
standard error s of their difference (`windows_difference`) and k categories. Only errors of other windows are
looked at, never what they differ by: so it is not a search for a difference.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.estimation.multiple import smallest_found
from ldp.estimation.strata import Strata, window_shares, windows_difference
from reports.base.status import Status, estimates_status
from reports.compare.queries import Comparison, Kind
from reports.estimates.queries import Estimate, Window, reports_with_strata
from reports.studies.names import category_name

Floats = NDArray[np.float64]
Pair = tuple[Window, Window]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """Two windows, and what they would tell.

    Parameters
    ----------
    windows, dates : what to compare, and with what
    category, category_fr : the category whose observed difference they tell best
    observed : float or None; that difference as a share, below 0 if lower; None: it is not reliable
    smallest : float; the difference of this category that they find in 80% of cases, or of any if unreliable
    """

    windows: Pair
    dates: tuple[tuple[date, date], tuple[date, date]]
    category: str
    category_fr: str | None
    observed: float | None
    smallest: float

    @property
    def tells(self) -> bool:
        """Return whether the windows would tell the observed difference, if it persists."""
        return self.observed is None or abs(self.observed) >= self.smallest

    @property
    def shown_category(self) -> str:
        """Name of the category in the active language."""
        return category_name(self.category, self.category_fr)


def better_windows(comparison: Comparison) -> Proposal | None:
    """The first windows, growing, that would tell; else those that come closest, which `tells` says.

    Shares are looked at, also of a comparison of visitors: those of longer windows are other numbers. None
    where a row differs, or the study has no other reliable windows.
    """
    if comparison.kind != Kind.WINDOWS or comparison.n_held:
        return None
    [(_, strata)] = reports_with_strata([comparison.report.indicator], [[]])
    found: list[Proposal] = []
    for windows in _candidates(comparison):
        smallest = _smallest(strata, windows)
        if smallest is None:
            continue
        found.append(_proposal(comparison, windows, smallest))
        if found[-1].tells:
            return found[-1]
    return min(found, key=lambda each: each.smallest / abs(each.observed or 1), default=None)


def _smallest(strata: Strata, windows: Pair) -> Floats | None:
    """Return what each category must differ by; None where a window has no figures that are reliable."""
    try:
        for window in windows:
            shares = window_shares(strata, window)
            ends = {"ci_low": shares.ci_low.tolist(), "ci_high": shares.ci_high.tolist()}
            if estimates_status(Status.OK, **ends) != Status.OK:
                return None
        error = windows_difference(strata, first=windows[1], second=windows[0], of="frequency").std_error
    except LdpError:
        return None
    return smallest_found(error, n_tests=len(error))


def _proposal(comparison: Comparison, windows: Pair, smallest: Floats) -> Proposal:
    study, estimates = comparison.report.study, comparison.report.estimates
    observed = np.array(list(map(_apart, estimates, comparison.reference.estimates)))
    is_read = comparison.status == Status.OK
    code = int(np.argmax(np.abs(observed) / smallest if is_read else smallest))
    first, second = ((study.date_of(each.first_day), study.date_of(each.last_day)) for each in windows)
    return Proposal(
        windows=windows,
        dates=(first, second),
        category=estimates[code].category,
        category_fr=estimates[code].category_fr,
        observed=float(observed[code]) if is_read else None,
        smallest=float(smallest[code]),
    )


def _apart(one: Estimate, other: Estimate) -> float:
    """Difference of two shares; 0 where one is hidden."""
    if one.frequency is None or other.frequency is None:
        return 0.0
    return one.frequency - other.frequency


def _candidates(comparison: Comparison) -> Iterator[Pair]:
    """Both windows grown on all sides by 1, 2, 4, ... days until they meet; last the halves of the study."""
    days = comparison.report.study.days
    asked = comparison.report.window, comparison.reference.window
    early, late = sorted(asked)
    halves = Window(1, days // 2), Window(days // 2 + 1, days)
    pairs = [halves] if days > 1 else []
    if early.last_day < late.first_day:
        middle = (early.last_day + late.first_day) // 2
        steps = [2**power for power in range((days - 1).bit_length() + 1)]
        pairs = [
            (
                Window(max(early.first_day - step, 1), min(early.last_day + step, middle)),
                Window(max(late.first_day - step, middle + 1), min(late.last_day + step, days)),
            )
            for step in steps
        ] + pairs
    for one, other in dict.fromkeys(pairs):
        if (one, other) != (early, late):
            yield (one, other) if asked[0] == early else (other, one)
