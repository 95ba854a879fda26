"""Coming, leaving and coming back: figures that follow from the gap tallies alone.

People seen first or last in a window, or in both of two windows that overlap or touch, are a part of the
visitors whose reports are known exactly (see `ldp.estimation.windows`): its interval is that of any window.
New and returning visitors have it for a daily indicator, too; all the rest needs a static one.

Every figure raises NoReportsError if it has visitors, but none of them reported, and LdpError if a rule is
broken: the indicator is not static, a day is outside the study, or level outside (0, 1).

Of two days apart from each other the tallies know who goes straight from one to the other, but not who is
seen between, and on both. With U for a union of days and V for a day, those of both days a < b number

    at least    max(those who go straight, V(a) + V(b) - U[a, b])
    at most     min(those of a seen on a+1..b, those of b seen on a..b-1),

the first by Frechet's inequality. The totals tell, without error, which side of each is sharper; that side
is then estimated per category. The interval runs from the lower limit of the one to the upper limit of the
other, so it holds the truth at least as often as stated.

Mean days: with y = (support - q) / (p - q) of a report and d its subscriber's days, the mean is the ratio of
the sums of d y and of y over all reports, and both are known: each day's tally has every report of that day.
The interval has all m for which the sum of (d - m) y is within z standard deviations of 0. Its variance needs
the sum of d^2, which the tallies do not tell; it is at most the sum of the largest overlaps of all pairs of
days, and at most what Bhatia and Davis allow for d between 1 and the number of days (American Mathematical
Monthly 2000). Within a category only the latter holds.
"""

from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError, NoReportsError
from ldp.estimation.overlaps import day_overlaps, is_few, overlap_of, shared_bounds, tells_of_few
from ldp.estimation.ratios import (
    Interval,
    Limits,
    difference_low,
    quadratic_range,
    quotient,
    ratio_of,
    share_of,
)
from ldp.estimation.windows import (
    IndicatorTallies,
    Part,
    Window,
    WindowEstimate,
    check_shown,
    part_of,
    visitors_of_part,
)
from ldp.protocols.channels import noise_at_zero

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]


def window_visitors(tallies: IndicatorTallies, *, window: Window, level: float = 0.95) -> WindowEstimate:
    """Visitors of a window, per category: the published frequency times all visitors; exact."""
    return visitors_of_part(tallies, part_of(tallies, window), name="visitors", level=level)


def new_visitors(
    tallies: IndicatorTallies, *, window: Window, since: int, level: float = 0.95
) -> WindowEstimate:
    """Visitors of a window, per category, who were not there from day `since` until it began; exact.

    The arrivals of day b, after a..b-1, are those of the window (b, b) since a: U[a,b] - U[a,b-1].
    They are their own part, whose reports are U[since, last] - U[since, first - 1] for static and for
    daily indicators alike: variance V^2 Var(f) of that part, nothing is shared. Day 1 is the least `since`.
    """
    return visitors_of_part(tallies, new_part(tallies, window, since=since), name="new visitors", level=level)


def returning_visitors(
    tallies: IndicatorTallies, *, window: Window, since: int, level: float = 0.95
) -> WindowEstimate:
    """Visitors of a window, per category, who were there before, on day `since` or later; exact.

    All of the window but the new ones; of a daily indicator, by the value on the first day in it.
    """
    returning = part_of(tallies, window).minus(new_part(tallies, window, since=since))
    return visitors_of_part(tallies, returning, name="returning visitors", level=level)


def leaving_visitors(
    tallies: IndicatorTallies, *, window: Window, until: int, level: float = 0.95
) -> WindowEstimate:
    """Visitors of a window, per category, who were not there after it, until a later day; exact.

    The departures of day a are those of the window (a, a) until the last day: U[a,n] - U[a+1,n].
    """
    left = leaving_part(tallies, window, until=until)
    return visitors_of_part(tallies, left, name="leaving visitors", level=level)


def leaving_part(tallies: IndicatorTallies, window: Window, *, until: int) -> Part:
    """Visitors of a window who were not there after it, until a later day; of a static indicator."""
    _check_static(tallies)
    days = tallies.visitors.shape[-1] - 1
    if not window.last_day < until <= days:
        raise LdpError(f"until must be in ({window.last_day}, {days}], got {until}")
    later = Window(window.last_day + 1, until)
    return part_of(tallies, Window(window.first_day, until)).minus(part_of(tallies, later))


def shared_visitors(
    tallies: IndicatorTallies, *, first: Window, second: Window, level: float = 0.95
) -> WindowEstimate:
    """Visitors, per category, who were there in both of two windows that overlap or touch; exact."""
    return visitors_of_part(tallies, _shared(tallies, first, second), name="shared visitors", level=level)


def shared_share(
    tallies: IndicatorTallies, *, first: Window, second: Window, level: float = 0.95
) -> Interval:
    """Return the share of the first window's visitors who are in the second too, per category; exact.

    Those of both windows and those of the first one only are disjoint, so their estimates are independent.
    If all reports are of the one part, the other one may be anything: then there is a bound only.
    """
    both = _shared(tallies, first, second)
    _check_reports(part_of(tallies, first))
    rest = part_of(tallies, first).minus(both)
    return share_of(_limits(tallies, both, level=level), _limits(tallies, rest, level=level))


def day_pair_visitors(tallies: IndicatorTallies, *, days: tuple[int, int], level: float = 0.95) -> Interval:
    """Visitors, per category, who were there on both of two days, the earlier first.

    Exact for adjacent days, else bounds.
    """
    pair = _pair(tallies, days)
    most = _limits(tallies, pair.most, level=level)
    if pair.is_exact and most.is_known:
        return Interval(value=most.value, ci_low=most.low, ci_high=most.high, is_exact=True)
    low = np.zeros_like(most.low)
    if pair.straight is not None:
        low = _limits(tallies, pair.straight, level=level).low
    elif pair.missing is not None:
        day, missing = (_limits(tallies, part, level=level) for part in (pair.early, pair.missing))
        low = difference_low(day, missing)
    low = np.maximum(low, 0)
    return Interval(
        value=np.full_like(low, np.nan), ci_low=low, ci_high=np.maximum(most.high, low), is_exact=False
    )


def day_pair_share(tallies: IndicatorTallies, *, days: tuple[int, int], level: float = 0.95) -> Interval:
    """Return the share of the earlier day's visitors who are there on the later one too, per category.

    Where numerator and denominator share reports whose number is not known, they count as independent:
    shared noise only makes their ratio more certain.
    """
    pair = _pair(tallies, days)
    early = _limits(tallies, pair.early, level=level)
    most = _limits(tallies, pair.most, level=level)
    if pair.most_is_of_early:
        rest = _limits(tallies, pair.early.minus(pair.most), level=level)
        highest = share_of(most, rest)
    else:
        highest = ratio_of(most, early)
    if pair.is_exact and highest.is_exact:
        return highest
    low = np.zeros_like(highest.ci_low)
    if pair.straight is not None:
        rest = _limits(tallies, pair.early.minus(pair.straight), level=level)
        low = share_of(_limits(tallies, pair.straight, level=level), rest).ci_low
    elif pair.missing is not None:
        low = 1 - ratio_of(_limits(tallies, pair.missing, level=level), early).ci_high
    return Interval(
        value=np.full_like(low, np.nan), ci_low=low, ci_high=np.maximum(highest.ci_high, low), is_exact=False
    )


def day_pair_bounds(
    tally: Counts, *, visitors: Counts | None = None, small_cell: int = 0
) -> tuple[Counts, Counts]:
    """Least and largest number that two days can have in common, for every pair of days at once.

    Parameters
    ----------
    tally : ndarray of int64, shape (days + 1, days + 1); of visitors or of reports
    visitors : the tally of the visitors, if that is another one
    small_cell : int; bounds that would reveal fewer visitors are left out (`ldp.estimation.overlaps`)

    Returns
    -------
    two ndarrays of int64, shape (days + 1, days + 1); [a, b] for days a < b, else 0. Equal where b = a + 1.
    """
    counts = day_overlaps(tally)
    deciding = counts if visitors is None else day_overlaps(visitors)
    least, most = shared_bounds(counts, visitors=deciding, small_cell=small_cell)
    pairs = np.triu(np.ones_like(least), 1)
    pairs[0] = 0
    return least * pairs, most * pairs


def mean_days_present(tallies: IndicatorTallies, *, level: float = 0.95) -> Interval:
    """Days on which a visitor of a category was there, on average over the whole study; conservative."""
    _check_static(tallies)
    if not 0 < level < 1:
        raise LdpError(f"level must be in (0, 1), got {level}")
    days = tallies.visitors.shape[-1] - 1
    whole = part_of(tallies, Window(1, days))
    if whole.n_reports < 1:
        raise NoReportsError(f"visitors must have reports, got 0 of {whole.n_visitors} visitors")
    daily = [part_of(tallies, Window(day, day)) for day in range(1, days + 1)]
    n_days = sum(part.n_reports for part in daily)
    busy = sum(part.n_visitors > 0 for part in daily)
    sum_y = _sum_y(tallies, whole.counts, whole.n_reports)
    sum_dy = _sum_y(tallies, sum((part.counts for part in daily), np.zeros_like(whole.counts)), n_days)
    # variance(m) = constant * (squares - 2 m n_days + m^2 n) + within * (m - 1) (busy - m), by powers of m.
    constant, within = _spread(tallies, whole, share=np.clip(sum_y / whole.n_reports, 0, 1))
    squares = _most_squares(tallies, n=whole.n_reports, total=n_days, most=busy)
    variance = (
        constant * squares - within * busy,
        within * (busy + 1) - 2 * constant * n_days,
        constant * whole.n_reports - within,
    )
    low, high = _mean_range(sum_dy, sum_y, variance, level=level, busy=busy)
    mean = np.clip(quotient(sum_dy, sum_y), low, high)
    return Interval(value=mean, ci_low=low, ci_high=high, is_exact=False)


class _Pair(NamedTuple):
    """Two days: what bounds their common visitors on each side.

    `straight` bounds from below where it is not None; otherwise `early` less `missing`; if that is None, too,
    nothing does.
    """

    early: Part
    most: Part
    most_is_of_early: bool
    straight: Part | None
    missing: Part | None
    is_exact: bool


def _pair(tallies: IndicatorTallies, days: tuple[int, int]) -> _Pair:
    _check_static(tallies)
    first, last = days
    if not first < last:
        raise LdpError(f"days must be the earlier and the later one, got {first} and {last}")
    early, late = (part_of(tallies, Window(day, day)) for day in days)
    _check_reports(early)
    span = part_of(tallies, Window(first, last))
    seen_later = early.plus(part_of(tallies, Window(first + 1, last))).minus(span)
    seen_before = late.plus(part_of(tallies, Window(first, last - 1))).minus(span)
    straight, missing = _from_below(tallies, days, span.minus(late))
    of_early = seen_later.n_visitors <= seen_before.n_visitors
    return _Pair(
        early=early,
        most=seen_later if of_early else seen_before,
        most_is_of_early=of_early,
        straight=straight,
        missing=missing,
        is_exact=last == first + 1,
    )


def _from_below(
    tallies: IndicatorTallies, days: tuple[int, int], missing: Part
) -> tuple[Part | None, Part | None]:
    """Return the sharper bound, of people who go straight or at most are missing; None if both reveal few."""
    first, last = days
    found = overlap_of(tallies.visitors, (first, first), (last, last))
    limit = tallies.small_cell
    counts = tallies.counts[:, first, last]
    straight = Part(counts, int(tallies.n_reports[first, last]), int(found.straight))
    is_hidden = is_few(found.between, small_cell=limit) or tells_of_few(
        found, found.straight, small_cell=limit
    )
    says_less = tells_of_few(found, found.surely, small_cell=limit)
    if not is_hidden and (says_less or found.straight >= found.surely):
        return straight, None
    return None, None if says_less else missing


def new_part(tallies: IndicatorTallies, window: Window, *, since: int) -> Part:
    """Visitors of a window who were not there from day `since` until it began."""
    if not 1 <= since < window.first_day:
        raise LdpError(f"since must be in [1, {window.first_day}), got {since}")
    past = Window(since, window.first_day - 1)
    return part_of(tallies, past.until(window)).minus(part_of(tallies, past))


def _shared(tallies: IndicatorTallies, first: Window, second: Window) -> Part:
    _check_static(tallies)
    early, late = sorted((first, second))
    if not early.touches(late):
        raise LdpError(
            f"windows must overlap or touch, got {early.first_day}..{early.last_day} and "
            f"{late.first_day}..{late.last_day}"
        )
    span = part_of(tallies, early.until(late))
    return part_of(tallies, early).plus(part_of(tallies, late)).minus(span)


def _check_static(tallies: IndicatorTallies) -> None:
    if tallies.kind != "static":
        raise LdpError(
            "indicator must be static: a daily one may have another value on each day, "
            f"got a {tallies.kind} one"
        )


def _check_reports(part: Part) -> None:
    if part.n_visitors and not part.n_reports:
        raise NoReportsError(f"visitors must have reports, got 0 of {part.n_visitors} visitors")


def _limits(tallies: IndicatorTallies, part: Part, *, level: float) -> Limits:
    check_shown(tallies, part)
    if part.n_visitors and not part.n_reports:  # of any category, as far as we know
        zeros = np.zeros(tallies.counts.shape[0])
        return Limits(zeros + part.n_visitors / 2, zeros, zeros + part.n_visitors, is_known=False)
    found = visitors_of_part(tallies, part, name="a part of the visitors", level=level)
    return Limits(found.value, found.ci_low, found.ci_high)


def _mean_range(
    sum_dy: Floats, sum_y: Floats, variance: tuple[Floats, Floats, Floats], *, level: float, busy: int
) -> tuple[Floats, Floats]:
    """All m in [1, busy] with (sum_dy - m sum_y)^2 <= z^2 variance(m), given by its powers of m."""
    z2 = NormalDist().inv_cdf((1 + level) / 2) ** 2
    return quadratic_range(
        # Fewer visitors than none tell nothing of their days: a <= 0 says so.
        sum_y * np.maximum(sum_y, 0) - z2 * variance[2],
        -2 * sum_dy * sum_y - z2 * variance[1],
        sum_dy**2 - z2 * variance[0],
        low=1.0,
        high=float(busy),
    )


def _sum_y(tallies: IndicatorTallies, counts: Counts, n_reports: int) -> Floats:
    """Sum of (support - q) / (p - q) over reports."""
    p, q = float(tallies.channel.p), float(tallies.channel.q)
    return np.asarray((counts - q * n_reports) / (p - q), np.float64)


def _spread(tallies: IndicatorTallies, whole: Part, *, share: Floats) -> tuple[float, Floats]:
    """Variance of y: of every report, and what is on top within the category (its sum over the reports
    of the category, at most)."""
    p, q = tallies.channel.p, tallies.channel.q
    on_top = max(float((1 - p - q) / (p - q)), 0.0)
    n, population = whole.n_reports, whole.n_visitors
    drawn = (population - n) / max(population - 1, 1)
    return float(noise_at_zero(tallies.channel)), np.asarray((on_top + drawn) * n * share, np.float64)


def _most_squares(tallies: IndicatorTallies, *, n: int, total: int, most: int) -> float:
    """Upper bound of the sum of d^2 over all reports, from the overlaps of days and from 1 <= d <= most."""
    _, largest = day_pair_bounds(tallies.n_reports, visitors=tallies.visitors, small_cell=tallies.small_cell)
    return float(min(total + 2 * int(largest.sum()), (most + 1) * total - most * n))
