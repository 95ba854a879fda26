"""Sums and differences over windows: subscribers present in both answer once, so errors are shared.

Two windows A, B that overlap or touch cut their visitors into three parts: of A only, of both, of B only.
Their union is a window too, so for a static indicator the counts of each part are known exactly,

    both = U(A) + U(B) - U(A or B),

per category, for reports and for visitors. Given how many reports each part has, those who report are a
simple random sample of it, drawn independently of the other parts, and the noise of different subscribers is
independent. Hence the estimates f_s of the parts s are unbiased and independent, each with the exact
variance of `pure_variance` (noise, and sampling from a finite population). With v_s visitors in part s, a
window has the frequency sum of (v_s / V) f_s, and

    Cov(f_A, f_B) = v_both^2 / (V_A V_B) Var(f_both),

which holds the shared noise and the shared sampling (who is asked is drawn once, too). Every sum or
difference is a sum of c_s f_s with the exact variance sum of c_s^2 Var(f_s); in a difference of visitors the
shared ones cancel. The parts weigh as much as their visitors, not as their reports, which removes the
error of an unequal draw. So a difference is not quite that of the published frequencies: they are apart by a
part of the sampling error of these, and equal where everyone answers.

A daily indicator counts the value on the first day in a window, so a subscriber may answer differently in
both. Exact: windows with the same first day; new and returning visitors (`ldp.estimation.movement`).
Everything else is bounded.

Intervals put together the (score) intervals of the parts, and so hold near 0 as those do: MOVER, Zou and
Donner, Statistics in Medicine 2008.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import add, sub
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ldp.errors import FewVisitorsError, NoReportsError
from ldp.estimation.estimators import Estimates, pure_frequencies, pure_variance
from ldp.estimation.overlaps import is_few, overlap_of, shared_bounds
from ldp.estimation.unions import union
from ldp.privacy.plans import Kind
from ldp.protocols.channels import PureChannel
from ldp.protocols.repeated.question import QuestionChannel

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]
Quantity = Literal["frequency", "visitors"]


class Window(NamedTuple):
    """Consecutive days, from 1, both included."""

    first_day: int
    last_day: int

    @property
    def days(self) -> int:
        return self.last_day - self.first_day + 1

    def touches(self, later: "Window") -> bool:
        """Return whether no day lies between this window and one that does not begin earlier."""
        return later.first_day <= self.last_day + 1

    def until(self, later: "Window") -> "Window":
        """This window and one that does not begin earlier, with all days between."""
        return Window(self.first_day, max(self.last_day, later.last_day))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IndicatorTallies:
    """Gap tallies of one indicator whose answers last, and how they were given.

    Parameters
    ----------
    counts : ndarray of int64, shape (domain_size, days + 1, days + 1); reports that support each value
    n_reports : ndarray of int64, shape (days + 1, days + 1)
    visitors : ndarray of int64, shape (days + 1, days + 1)
    kind : "static" or "daily"
    channel : PureChannel; as used for the reports
    small_cell : int; figures are made of no window or part with fewer visitors, unless it has none
    """

    counts: Counts
    n_reports: Counts
    visitors: Counts
    kind: Kind
    channel: PureChannel
    small_cell: int = 0

    def is_few(self, n_visitors: int) -> bool:
        """Return whether these are too few to be shown."""
        return bool(is_few(n_visitors, small_cell=self.small_cell))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WindowEstimate:
    """A sum or difference, per category; frequencies (1 = all visitors) or visitors (persons, unscaled).

    Parameters
    ----------
    value : ndarray of float64, shape (domain_size,); unbiased
    std_error, ci_low, ci_high : same shape
    is_exact : bool; False: the error is an upper bound, and the interval conservative
    """

    value: Floats
    std_error: Floats
    ci_low: Floats
    ci_high: Floats
    is_exact: bool


class Part(NamedTuple):
    """A set of subscribers: their reports by value, reports and visitors."""

    counts: Counts
    n_reports: int
    n_visitors: int

    def plus(self, other: "Part") -> "Part":
        return Part(*map(add, self, other))

    def minus(self, other: "Part") -> "Part":
        return Part(*map(sub, self, other))


class _Term(NamedTuple):
    """One independent or correlated term `factor * frequency` of a sum."""

    factor: float
    estimates: Estimates


def window_difference(
    tallies: IndicatorTallies,
    *,
    first: Window,
    second: Window,
    of: Quantity,
    level: float = 0.95,
    totals: tuple[int, int] | None = None,
) -> WindowEstimate:
    """Per category, the second window less the first.

    Parameters
    ----------
    tallies : IndicatorTallies
    first, second : Window; in any order, may overlap
    of : "frequency" or "visitors"
    level : float; of the interval, in (0, 1)
    totals : visitors of both windows that frequencies are shares of, where these tallies are of some of them

    Raises
    ------
    NoReportsError : a window has no reports
    LdpError : a window lies outside the study, or a rule above is broken

    Notes
    -----
    Exact where the windows overlap or touch (a daily indicator: where they begin on the same day), every part
    has reports and none has few visitors; see the module. Otherwise the published estimates are subtracted,
    and shared noise is only counted on for subscribers known to be in both (`shared_reports`). The shared
    sampling error of a static indicator can only make a difference more certain, so it is left out; that of a
    daily one may do the opposite, and is counted in full (Cauchy and Schwarz).
    """
    return _combine(tallies, (first, second), factors=(-1, 1), of=of, level=level, totals=totals)


def window_sum(
    tallies: IndicatorTallies, *, first: Window, second: Window, of: Quantity, level: float = 0.95
) -> WindowEstimate:
    """Per category, the sum of two windows; subscribers of both count twice.

    Parameters, Raises : as in `window_difference`

    Exact under the same conditions. Otherwise as many subscribers share their noise as can be, and the
    sampling errors add up; never above the sum of both standard errors.
    """
    return _combine(tallies, (first, second), factors=(1, 1), of=of, level=level)


def shared_reports(tallies: IndicatorTallies, first: Window, second: Window) -> tuple[int, int]:
    """Least and largest number of reports that two windows can have in common.

    For a static indicator whose windows overlap or touch both are equal. For separated ones: those who go
    straight from one to the other are known from the gaps; of those seen between, too, only the bounds of
    Frechet. For a daily indicator the least is the number with the same first day in both. Bounds that would
    reveal few visitors are left out (`ldp.estimation.overlaps`).
    """
    early, late = sorted((first, second))
    overlaps = [overlap_of(tally, early, late) for tally in (tallies.n_reports, tallies.visitors)]
    if tallies.kind == "daily":
        most = int(min(overlaps[0].early, overlaps[0].late))
        return _same_first_day(tallies, early, late), most
    least, most = shared_bounds(overlaps[0], visitors=overlaps[1], small_cell=tallies.small_cell)
    return int(least), int(most)


def _same_first_day(tallies: IndicatorTallies, early: Window, late: Window) -> int:
    """Return reports of subscribers with the same first day in two windows; 0 where it would reveal few."""
    if late.first_day > early.last_day:
        return 0
    try:
        same = part_of(tallies, Window(early.first_day, min(early.last_day, late.last_day)))
        if early.first_day < late.first_day:
            same = same.minus(part_of(tallies, Window(early.first_day, late.first_day - 1)))
        for part in (same, part_of(tallies, late).minus(same)):
            check_shown(tallies, part)
    except FewVisitorsError:
        return 0
    return same.n_reports


def _combine(
    tallies: IndicatorTallies,
    windows: tuple[Window, Window],
    *,
    factors: tuple[int, int],
    of: Quantity,
    level: float,
    totals: tuple[int, int] | None = None,
) -> WindowEstimate:
    pieces, is_exact = pieces_of(tallies, windows, factors=factors, of=of, totals=totals)
    terms = [_term(tallies, scale, part, level=level) for scale, part in pieces]
    if is_exact:
        return _total(terms, correlation=np.zeros(tallies.counts.shape[0]), is_exact=True)
    parts = [part for _, part in pieces]
    correlation = _bounded_correlation(tallies, windows, parts, is_sum=factors[0] == factors[1])
    return _total(terms, correlation=correlation, is_exact=False)


def pieces_of(
    tallies: IndicatorTallies,
    windows: tuple[Window, Window],
    *,
    factors: tuple[int, int],
    of: Quantity,
    is_split: bool = True,
    totals: tuple[int, int] | None = None,
) -> tuple[list[tuple[float, Part]], bool]:
    """Independent parts that a sum is made of, each with its factor; else both windows, and False.

    Parameters
    ----------
    factors : of the windows in the sum
    is_split : False = both windows in any case
    totals : as of `window_difference`

    Raises
    ------
    NoReportsError : a window has no reports; with totals, it has visitors all the same
    """
    parts = [part_of(tallies, window) for window in windows]
    for window, part in zip(windows, parts, strict=True):
        if part.n_reports < 1 and (part.n_visitors or totals is None):
            raise NoReportsError(f"window {window.first_day}..{window.last_day} must have reports, got 0")
    sizes = (1, 1) if of == "visitors" else totals or [part.n_visitors for part in parts]
    scales = [factor / size for factor, size in zip(factors, sizes, strict=True)]
    if not all(part.n_visitors for part in parts):  # nothing is shared
        return [(scale, part) for scale, part in zip(scales, parts, strict=True) if part.n_visitors], True
    early, late = sorted(windows)
    is_known = tallies.kind == "static" or early.first_day == late.first_day
    if is_split and is_known and early.touches(late):
        shared = parts[0].plus(parts[1]).minus(part_of(tallies, early.until(late)))
        pieces = [
            (scales[0], parts[0].minus(shared)),
            (sum(scales), shared),
            (scales[1], parts[1].minus(shared)),
        ]
        is_told = not any(tallies.is_few(part.n_visitors) for _, part in pieces)
        pieces = [(scale, part) for scale, part in pieces if scale and part.n_visitors]
        if is_told and all(part.n_reports for _, part in pieces):
            return pieces, True
    return list(zip(scales, parts, strict=True)), False


def _bounded_correlation(
    tallies: IndicatorTallies, windows: tuple[Window, Window], parts: Sequence[Part], *, is_sum: bool
) -> Floats:
    """Least (for a difference) or largest (for a sum) correlation of the windows' estimates."""
    channel = tallies.channel
    # Noise of one report, for a value that its subscriber does not have, and for the one that she has.
    noise = pure_variance([0, 1], n_reports=1, n_population=1, channel=channel)
    variances, samplings = [], []
    for part in parts:
        f = np.clip(_estimates(tallies, part).frequency, 0, 1)
        variance = pure_variance(f, n_reports=part.n_reports, n_population=part.n_visitors, channel=channel)
        of_noise = pure_variance(f, n_reports=part.n_reports, n_population=part.n_reports, channel=channel)
        variances.append(variance)
        samplings.append(variance - of_noise)
    least, largest = shared_reports(tallies, *windows)
    size = parts[0].n_reports * parts[1].n_reports
    sampling = np.sqrt(np.maximum(samplings[0] * samplings[1], 0))
    if is_sum:
        covariance = largest * noise.max() / size + sampling
    else:
        noisy = least * noise.min() + (largest - least) * least_noise(channel)
        covariance = noisy / size - (sampling if tallies.kind == "daily" else 0)
    return np.asarray(np.clip(covariance / np.sqrt(variances[0] * variances[1]), -1, 1), np.float64)


def least_noise(channel: PureChannel) -> float:
    """Least covariance of the noise of two reports of one person on different values; 0 or less.

    Their noise is independent, but for a permanent question, which both answer.
    """
    if not isinstance(channel, QuestionChannel):
        return 0.0
    return float(channel.least_covariance / (channel.p - channel.q) ** 2)


def _total(terms: Sequence[_Term], *, correlation: Floats, is_exact: bool) -> WindowEstimate:
    """Sum of terms; only the first two may be correlated."""
    value = np.zeros_like(correlation)
    for term in terms:
        value += term.factor * term.estimates.frequency
    down = [abs(t.factor) * (_near(t, up=False)) for t in terms]
    up = [abs(t.factor) * (_near(t, up=True)) for t in terms]
    signs = [1 if t.factor > 0 else -1 for t in terms]
    return WindowEstimate(
        value=value,
        std_error=_length([abs(t.factor) * t.estimates.std_error for t in terms], signs, correlation),
        ci_low=value - _length(down, signs, correlation),
        ci_high=value + _length(up, signs, correlation),
        is_exact=is_exact,
    )


def _near(term: _Term, *, up: bool) -> Floats:
    """Return the reach of the interval of a term's frequency, on the side that moves the sum up or down."""
    estimates = term.estimates
    if up == (term.factor > 0):
        return estimates.ci_high - estimates.frequency
    return estimates.frequency - estimates.ci_low


def _length(lengths: Sequence[Floats], signs: Sequence[int], correlation: Floats) -> Floats:
    square = np.zeros_like(correlation)
    for length in lengths:
        square += length**2
    if len(lengths) > 1:
        square += 2 * signs[0] * signs[1] * correlation * lengths[0] * lengths[1]
    return np.asarray(np.sqrt(np.maximum(square, 0)), np.float64)


def independent_sum(found: Sequence[WindowEstimate]) -> WindowEstimate:
    """Sum of one or more estimates about different people; its interval is put together as in the module."""
    if len(found) == 1:
        return found[0]

    def length(reaches: list[Floats]) -> Floats:
        return np.asarray(np.sqrt(np.sum(np.square(reaches), axis=0)), np.float64)

    value = np.asarray(np.sum([each.value for each in found], axis=0), np.float64)
    return WindowEstimate(
        value=value,
        std_error=length([each.std_error for each in found]),
        ci_low=value - length([each.value - each.ci_low for each in found]),
        ci_high=value + length([each.ci_high - each.value for each in found]),
        is_exact=all(each.is_exact for each in found),
    )


def visitors_of_part(tallies: IndicatorTallies, part: Part, *, name: str, level: float) -> WindowEstimate:
    """Visitors of a part, per category; exact. NoReportsError, with the name, if none of them reported."""
    zeros = np.zeros(tallies.counts.shape[0])
    if part.n_visitors == 0:
        return _total([], correlation=zeros, is_exact=True)
    if part.n_reports < 1:
        raise NoReportsError(f"{name} must have reports, got 0 of {part.n_visitors} visitors")
    return _total([_term(tallies, 1.0, part, level=level)], correlation=zeros, is_exact=True)


def parts_difference(
    tallies: IndicatorTallies,
    *,
    parts: tuple[Part, Part],
    level: float,
    totals: tuple[int, int] | None = None,
) -> WindowEstimate:
    """Per category, the share in the second part less that in the first, which has other people; exact.

    totals : visitors that these are shares of, where the parts are some of them; then a part may be empty

    NoReportsError if a part has none; FewVisitorsError if it has too few visitors to be shown.
    """
    sizes = totals or tuple(part.n_visitors for part in parts)
    signed = list(zip((-1, 1), sizes, parts, strict=True))
    if totals is not None:
        signed = [each for each in signed if each[2].n_visitors]
    if any(part.n_reports < 1 for _, _, part in signed):
        raise NoReportsError("both parts must have reports, got 0 of one")
    terms = [_term(tallies, sign / size, part, level=level) for sign, size, part in signed]
    return _total(terms, correlation=np.zeros(tallies.counts.shape[0]), is_exact=True)


def part_of(tallies: IndicatorTallies, window: Window) -> Part:
    """All visitors of a window; FewVisitorsError if they are too few to be shown."""
    days = window._asdict()
    counts, *totals = (union(each, **days) for each in (tallies.counts, tallies.n_reports, tallies.visitors))
    part = Part(counts, *(int(total) for total in totals))
    check_shown(tallies, part)
    return part


def check_shown(tallies: IndicatorTallies, part: Part) -> None:
    """Raise FewVisitorsError if a part has so few visitors that no figure may be made of it."""
    if tallies.is_few(part.n_visitors):
        raise FewVisitorsError(f"visitors must be 0 or at least {tallies.small_cell}, got fewer")


def _term(tallies: IndicatorTallies, scale: float, part: Part, *, level: float) -> _Term:
    """Visitors of a part times a scale, as a multiple of the part's frequency."""
    return _Term(scale * part.n_visitors, _estimates(tallies, part, level=level))


def _estimates(tallies: IndicatorTallies, part: Part, *, level: float = 0.95) -> Estimates:
    check_shown(tallies, part)
    return pure_frequencies(
        part.counts,
        n_reports=part.n_reports,
        n_population=part.n_visitors,
        channel=tallies.channel,
        level=level,
    )
