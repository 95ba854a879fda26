"""Rows of a figure of movements that differ: of categories and days, all tested together.

Visitors who arrive, return or leave on a day are a part of its visitors, and the others are the rest of it.
Both parts have their own people, so their shares are independent, with exact errors (`sides_difference`). A
share or a mean of one day's visitors is compared with that of all, which is exact or has exact bounds. One
bar for all rows (Bonferroni): at most 5 in 100 such tables have even one false difference.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ldp import Interval, WindowEstimate, day_pair_share, mean_days_present, shared_share
from ldp.errors import LdpError
from ldp.estimation.movement import leaving_part, new_part
from ldp.estimation.multiple import smallest_found
from ldp.estimation.strata import Strata, sides_difference
from ldp.estimation.windows import IndicatorTallies, Part, Window, part_of
from reports.base.status import Status
from reports.estimates.queries import LEVEL
from reports.movement.figures import Difference, Findings, Movement, Point, Proposal, Show, Unit

Floats = NDArray[np.float64]
_WITH_WINDOWS = (Show.ARRIVALS, Show.RETURNING, Show.WINDOW)


def findings_of(found: Movement, strata: Strata) -> Findings | None:
    """Test all rows of a figure; None where it has none to test."""
    places = [place for place, point in enumerate(found.points) if _is_read(point)]
    if found.show == Show.WINDOW:
        places = places[:1]
    tests = [(place, test) for place in places if (test := _test(found, strata, place)) is not None]
    if not tests:
        return None
    k = len(found.points[0].estimates)
    level = 1 - (1 - LEVEL) / (len(tests) * k)
    differences = [
        Difference(place=place, code=code, value=value, low=low, high=high)
        for place, test in tests
        for code, (value, low, high) in enumerate(zip(*test(level), strict=True))
        if low > 0 or high < 0
    ]
    differences.sort(key=lambda each: -abs(each.value))
    proposal = None if differences or found.unit != Unit.VISITORS else _proposal(found, strata, tests)
    return Findings(n_tests=len(tests) * k, differences=tuple(differences), proposal=proposal)


_Rows = tuple[list[float], list[float], list[float]]
_Sides = tuple[Part, Part]
_Test = Callable[[float], _Rows]


def _is_read(point: Point) -> bool:
    return point.low is not None and all(each.status == Status.OK for each in point.estimates)


def _test(found: Movement, strata: Strata, place: int) -> _Test | None:
    """Return the differences of a place, by the level of their intervals; None where a side has none."""
    point = found.points[place]
    if found.unit != Unit.VISITORS:
        return lambda level: _from_all(point, _of_all(found, strata, point.day, level=level))
    sides = _sides_of(found, strata, point.day)
    if sides is None:
        return None
    return lambda level: _columns(sides_difference(strata, sides, level=level))


def _columns(found: WindowEstimate) -> _Rows:
    return found.value.tolist(), found.ci_low.tolist(), found.ci_high.tolist()


def _of_all(found: Movement, strata: Strata, day: int, *, level: float) -> Interval:
    (tallies,) = strata
    if found.show == Show.DAYS_PRESENT:
        return mean_days_present(tallies, level=level)
    first = found.cohort or 1
    if found.show == Show.THERE_AGAIN:
        return day_pair_share(tallies, days=(first, day), level=level)
    return shared_share(tallies, first=Window(first, first), second=Window(first + 1, day), level=level)


def _from_all(point: Point, found: Interval) -> _Rows:
    """Differences from all visitors, whose figure has bounds; from the nearer one."""
    low, high = found.ci_low - float(point.high or 0), found.ci_high - float(point.low or 0)
    value = np.where(np.isnan(found.value), (low + high) / 2, found.value - float(point.low or 0))
    return value.tolist(), low.tolist(), high.tolist()


def _sides_of(found: Movement, strata: Strata, day: int) -> list[_Sides] | None:
    window = Window(*found.window) if found.window else Window(day, day)
    return _sides(strata, window, show=found.show)


def _sides(strata: Strata, window: Window, *, show: Show | None) -> list[_Sides] | None:
    """The others of a window, and those of the figure, of each class; None where a side is empty or few."""
    found = [_of_class(each, window, show=show) for each in strata]
    sides = [each for each in found if each is not None]
    is_whole = len(sides) == len(found) and all(any(pair[at].n_visitors for pair in sides) for at in (0, 1))
    return sides if is_whole else None


def _of_class(tallies: IndicatorTallies, window: Window, *, show: Show | None) -> _Sides | None:
    """Both sides of a class; None where one has no reports, or few visitors."""
    days = tallies.visitors.shape[-1] - 1
    try:
        everyone = part_of(tallies, window)
        if show == Show.DEPARTURES:
            part = leaving_part(tallies, window, until=days)
        else:
            part = new_part(tallies, window, since=1)
        rest = everyone.minus(part)
    except LdpError:
        return None
    sides = (part, rest) if show == Show.RETURNING else (rest, part)
    is_told = all(
        not side.n_visitors or (side.n_reports > 0 and not tallies.is_few(side.n_visitors)) for side in sides
    )
    return sides if is_told else None


def _proposal(found: Movement, strata: Strata, tests: Sequence[tuple[int, _Test]]) -> Proposal | None:
    """Return the first longer window of new and returning visitors that would tell the largest difference."""
    if found.show not in _WITH_WINDOWS:
        return None
    days, k = strata[0].visitors.shape[-1] - 1, strata[0].counts.shape[0]
    observed = np.array([test(LEVEL)[0] for _, test in tests])
    row, code = np.unravel_index(int(np.abs(observed).argmax()), observed.shape)
    day = found.points[tests[int(row)][0]].day
    first, last = found.window or (day, day)
    best: Proposal | None = None
    for power in range((days - 1).bit_length() + 1):
        window = Window(max(first - 2**power, 2), min(last + 2**power, days))
        sides = _sides(strata, window, show=Show.WINDOW)
        if sides is None or (window.first_day, window.last_day) == (first, last):
            continue
        error = sides_difference(strata, sides).std_error
        smallest = float(smallest_found(error, n_tests=k)[code])
        if best is None or smallest < best.smallest:
            best = Proposal(
                window=window, code=int(code), observed=float(abs(observed[row, code])), smallest=smallest
            )
        if best.tells:
            break
    return best
