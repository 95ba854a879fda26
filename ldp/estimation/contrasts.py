"""Differences that are not between two windows: of two values, of a day and a mean of days, of two studies.

A contrast is a sum of factors times estimated frequencies. Each frequency has its exact variance and score
interval (`ldp.estimation.estimators`); what is added here is how the errors of two of them go together.

*Two values x, y of one window.* Both come from the same reports. Let j1 be the probability that a report
supports both values if its subscriber has one of them, j0 if she has neither. Given who reports, the reports
of different subscribers are independent, and those who report are a simple random sample of V visitors, so

    Cov(f_x, f_y) = [(f_x + f_y) (j1 - p q) + (1 - f_x - f_y) (j0 - q^2)] / (n (p - q)^2)
                    - f_x f_y (V - n) / ((V - 1) n).

A code supports one value: j1 = j0 = 0 (GRR). Bits are independent: j1 = p q, j0 = q^2, and only the sample
couples them (unary encoding). Fakes mix in what a fake supports.

*A day and the mean of other days*, each with its published frequency. A value that lasts: the days of a pair
that touch share n_c reports and v_c visitors, of whom g have the value, and

    Cov(f_a, f_b) = n_c noise(g) / (n_a n_b) + (1 - n_c / v_c) (v_c^2 / n_c) h / (v_a v_b),
    h = g (1 - f_a) (1 - f_b) + (1 - g) f_a f_b,

with the noise of one report. The second term is that of ratios, to first order; it is never negative. Pairs
of days apart share between `least` and `largest` reports (`shared_reports`), each pair bounded on the side
that makes the error larger. Three days never touch each other all, so the whole is a bound.

*Two studies* have independent keys: variances add, anyone who is in both.

Intervals put together the score intervals of the terms: MOVER, Zou and Donner, Statistics in Medicine 2008.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations, compress
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldp.errors import LdpError
from ldp.estimation.estimators import Estimates, pure_frequencies, pure_variance
from ldp.estimation.joint.linear import PairChannel, both_supported, linear_covariances
from ldp.estimation.movement import day_pair_bounds
from ldp.estimation.overlaps import overlap_of, tells_of_few
from ldp.estimation.windows import (
    IndicatorTallies,
    Quantity,
    Window,
    WindowEstimate,
    least_noise,
    part_of,
)
from ldp.protocols.channels import PureChannel
from ldp.protocols.projective_space import DesignChannel

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sample:
    """Reports of one indicator in one window, each subscriber once.

    Parameters
    ----------
    counts : ndarray of int64, shape (domain_size,); reports that support each value
    n_reports, n_population : int; reports, and visitors of the window
    channel : PureChannel; as used for the reports
    """

    counts: Counts
    n_reports: int
    n_population: int
    channel: PureChannel
    _found: dict[float, Estimates] = field(default_factory=dict, init=False, repr=False)

    def estimates(self, *, level: float = 0.95) -> Estimates:
        """Frequencies of the values: `pure_frequencies`, computed once: contrasts ask again and again."""
        if level not in self._found:
            self._found[level] = pure_frequencies(
                self.counts,
                n_reports=self.n_reports,
                n_population=self.n_population,
                channel=self.channel,
                level=level,
            )
        return self._found[level]

    def variance(self, f: ArrayLike) -> Floats:
        """Exact variance of the estimates of true frequencies f: `pure_variance`."""
        return pure_variance(
            f, n_reports=self.n_reports, n_population=self.n_population, channel=self.channel
        )

    def sampling_variance(self, f: ArrayLike) -> Floats:
        """The part of it that comes from asking some visitors only."""
        of_noise = pure_variance(
            f, n_reports=self.n_reports, n_population=self.n_reports, channel=self.channel
        )
        return self.variance(f) - of_noise


class _Term(NamedTuple):
    """`factor` times the frequency of each value, or of the one value `only`."""

    factor: float
    sample: Sample
    only: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Contrast:
    """A sum of frequencies, which can be estimated at several levels.

    Parameters
    ----------
    terms : tuple of J terms
    correlation : ndarray of float64, shape (J, J, domain_size); of the estimates, on the side that makes the
        error of the sum larger where only bounds are known
    is_exact : bool; False: the error is an upper bound
    """

    terms: tuple[_Term, ...]
    correlation: Floats
    is_exact: bool

    def estimate(self, *, level: float = 0.95) -> WindowEstimate:
        """Per value, the sum with its error and interval; cost O(J^2 domain_size).

        LdpError if level is not in (0, 1).
        """
        if not self.terms:
            zeros = np.zeros(self.correlation.shape[-1])
            return WindowEstimate(value=zeros, std_error=zeros, ci_low=zeros, ci_high=zeros, is_exact=True)
        columns = [_columns(term, level=level) for term in self.terms]
        factors = np.array([term.factor for term in self.terms])
        value, error, down, up = (np.stack(column) for column in zip(*columns, strict=True))
        signs = np.sign(factors)
        total = np.asarray(factors @ value, np.float64)
        return WindowEstimate(
            value=total,
            std_error=_length(factors[:, np.newaxis] * error, self.correlation),
            ci_low=total - _length(signs[:, np.newaxis] * down, self.correlation),
            ci_high=total + _length(signs[:, np.newaxis] * up, self.correlation),
            is_exact=self.is_exact,
        )


def value_covariance(f_x: ArrayLike, f_y: ArrayLike, *, sample: Sample) -> Floats:
    """Exact covariance of the estimates of two values from the same reports; arguments broadcast.

    The formula of the module. LdpError if it is not known how the channel's reports support two values at
    once.

    Parameters
    ----------
    f_x, f_y : array_like of float; true frequencies of two different values, in [0, 1]
    sample : Sample; of its counts nothing is used
    """
    channel, n, population = sample.channel, sample.n_reports, sample.n_population
    p, q = channel.p, channel.q
    if not isinstance(channel, PairChannel):
        raise LdpError(f"how two values go together must not depend on a third, as it may with {channel}")
    one_of_them, neither = both_supported(channel)
    slope = (p - q) ** 2
    here, elsewhere = float((one_of_them - p * q) / slope), float((neither - q * q) / slope)
    f_x, f_y = np.asarray(f_x, np.float64), np.asarray(f_y, np.float64)
    noise = (f_x + f_y) * here + (1 - f_x - f_y) * elsewhere
    sampling = (population - n) / max(population - 1, 1)
    return np.asarray((noise - sampling * f_x * f_y) / n, np.float64)


def value_difference(sample: Sample, *, reference: int, of: Quantity, total: int | None = None) -> Contrast:
    """Each value less the value `reference`, in the same window; exact.

    Parameters
    ----------
    sample : Sample
    reference : int; a value, in [0, domain_size); its own entry has the value and the error 0
    of : "frequency" or "visitors" (persons, unscaled)
    total : visitors that frequencies are shares of, where the sample is of some of them

    Raises
    ------
    LdpError : a rule above is broken, or the covariance of two values is not known
    """
    k = sample.channel.domain_size
    if not 0 <= reference < k:
        raise LdpError(f"reference must be in [0, {k}), got {reference}")
    f = np.clip(sample.estimates().frequency, 0, 1)
    variance = sample.variance(f)
    channel = sample.channel
    if isinstance(channel, DesignChannel):
        # How often two values are supported together depends on the third that is true.
        covariance = linear_covariances(
            sample.estimates().consistent,
            weights=(np.arange(k) == reference).astype(np.float64),
            channel=channel,
            n_reports=sample.n_reports,
            n_population=sample.n_population,
        )
    else:
        covariance = value_covariance(f, f[reference], sample=sample)
    together = _as_correlation(covariance, variance, variance[reference])
    together[reference] = 1  # a value and itself
    scale = sample.n_population / (1 if of == "visitors" else total or sample.n_population)
    return Contrast(
        terms=(_Term(scale, sample), _Term(-scale, sample, reference)),
        correlation=_of_two(together),
        is_exact=True,
    )


def day_difference(
    tallies: IndicatorTallies,
    *,
    day: int,
    baseline: Sequence[int],
    of: Quantity,
    totals: Sequence[int] | None = None,
) -> Contrast:
    """A day less the mean of other days, as published; a bound.

    Parameters
    ----------
    tallies : IndicatorTallies
    day : int; from 1, not in the baseline
    baseline : sequence of int; all different, at least one
    of : "frequency" or "visitors" (persons a day, unscaled)
    totals : visitors of the day and of each day of the baseline that frequencies are shares of, where these
        tallies are of some of them; then a day may be empty

    Raises
    ------
    LdpError : a day is not in the study, twice in the list or without reports; or there is no other day

    Notes
    -----
    For a single other day that touches, `window_difference` is exact.
    """
    days = [day, *baseline]
    if len(days) < 2 or len(set(days)) < len(days):
        raise LdpError(f"day and baseline must be at least two different days, got {days}")
    factors = [1.0, *[-1 / len(baseline)] * len(baseline)]
    if totals is not None:
        there = [part_of(tallies, Window(each, each)).n_visitors > 0 for each in days]
        days, totals = list(compress(days, there)), list(compress(totals, there))
        factors = list(compress(factors, there))
    samples = [sample_of(tallies, Window(each, each)) for each in days]
    sizes = totals or [each.n_population for each in samples]
    return Contrast(
        terms=tuple(
            _Term(factor * each.n_population / (1 if of == "visitors" else size), each)
            for factor, size, each in zip(factors, sizes, samples, strict=True)
        ),
        correlation=_day_correlations(tallies, days, samples, is_in_mean=np.array(factors) < 0),
        is_exact=False,
    )


def baseline_mean(difference: Contrast) -> Contrast:
    """The mean that a day was compared with: what `day_difference` takes away; a bound but for one day."""
    places = [place for place, term in enumerate(difference.terms) if term.factor < 0]
    taken = [difference.terms[place] for place in places]
    terms = tuple(term._replace(factor=-term.factor) for term in taken)
    correlation = difference.correlation[np.ix_(places, places)]
    return Contrast(terms=terms, correlation=correlation, is_exact=len(terms) == 1)


def independent_difference(
    first: Sample, second: Sample, *, of: Quantity, scales: tuple[float, float] = (1.0, 1.0)
) -> Contrast:
    """The second sample less the first, of studies with their own keys; exact.

    Parameters
    ----------
    first, second : Sample; of the same values in the same order
    of : "frequency" or "visitors"
    scales : of visitors only; what one visitor of each study stands for (1 / market share)

    Raises
    ------
    LdpError : the numbers of values differ
    """
    return classes_difference([first], [second], of=of, scales=scales)


def classes_difference(
    first: Sequence[Sample],
    second: Sequence[Sample],
    *,
    of: Quantity,
    scales: tuple[float, float] = (1.0, 1.0),
) -> Contrast:
    """Difference like `independent_difference` of studies with a sample of each of their classes."""
    k = first[0].channel.domain_size
    terms = []
    for sign, scale, samples in zip((-1, 1), scales, (first, second), strict=True):
        weight = scale if of == "visitors" else 1 / sum(each.n_population for each in samples)
        terms += [_Term(sign * each.n_population * weight, each) for each in samples]
    for term in terms:
        if term.sample.channel.domain_size != k:
            raise LdpError(f"second must have {k} values as the first, got {term.sample.channel.domain_size}")
    apart = np.broadcast_to(np.eye(len(terms))[..., np.newaxis], (len(terms), len(terms), k))
    return Contrast(terms=tuple(terms), correlation=apart, is_exact=True)


def sample_of(tallies: IndicatorTallies, window: Window) -> Sample:
    """Reports of a window; LdpError if it is not in the study, or has no reports."""
    part = part_of(tallies, window)
    if part.n_reports < 1:
        raise LdpError(f"window {window.first_day}..{window.last_day} must have reports, got 0")
    counts, n_reports, n_visitors = part
    return Sample(counts=counts, n_reports=n_reports, n_population=n_visitors, channel=tallies.channel)


def _day_correlations(
    tallies: IndicatorTallies,
    days: Sequence[int],
    samples: Sequence[Sample],
    *,
    is_in_mean: NDArray[np.bool_],
) -> Floats:
    """Correlations of a day and its baseline, shape (J, J, domain_size), on the side that widens the error.

    That is the least one of the day with one of the mean, and the largest one of two of these.
    """
    if not samples:
        return np.zeros((0, 0, tallies.channel.domain_size))
    f = np.stack([np.clip(each.estimates().frequency, 0, 1) for each in samples])
    variance = np.stack([each.variance(row) for each, row in zip(samples, f, strict=True)])
    sampled = np.stack([each.sampling_variance(row) for each, row in zip(samples, f, strict=True)])
    is_sum = np.logical_and.outer(is_in_mean, is_in_mean)
    least, largest = _shared_reports(tallies, days, samples)
    noise = pure_variance([0, 1], n_reports=1, n_population=1, channel=tallies.channel)
    n_reports = np.array([each.n_reports for each in samples], np.float64)
    apart = least * noise.min() + (largest - least) * least_noise(tallies.channel)
    shared = np.where(is_sum, largest * noise.max(), apart) / np.outer(n_reports, n_reports)
    # The shared sample of a value that lasts can only make a difference more certain: left out there.
    sign = np.where(is_sum, 1.0, -1.0 if tallies.kind == "daily" else 0.0)
    root = np.sqrt(np.maximum(sampled, 0))
    covariance = shared[..., np.newaxis] + sign[..., np.newaxis] * root[:, np.newaxis] * root
    if tallies.kind == "static":
        for i, j in combinations(range(len(days)), 2):
            if abs(days[i] - days[j]) == 1 and not _touch_in_few(tallies, days[i], days[j]):
                pair = samples[i], samples[j]
                touching = _touching_covariance(tallies, (days[i], days[j]), (f[i], f[j]), samples=pair)
                covariance[i, j] = covariance[j, i] = touching
    correlation = _as_correlation(covariance, variance[:, np.newaxis], variance)
    correlation[np.arange(len(days)), np.arange(len(days))] = 1
    return correlation


def _shared_reports(
    tallies: IndicatorTallies, days: Sequence[int], samples: Sequence[Sample]
) -> tuple[Counts, Counts]:
    """Least and largest number that two days share, for all pairs; shape (J, J)."""
    if tallies.kind == "daily":
        n_reports = np.array([each.n_reports for each in samples])
        return np.zeros((len(days), len(days)), np.int64), np.minimum.outer(n_reports, n_reports)
    pairs = np.minimum.outer(days, days), np.maximum.outer(days, days)
    least, largest = day_pair_bounds(
        tallies.n_reports, visitors=tallies.visitors, small_cell=tallies.small_cell
    )
    return least[pairs], largest[pairs]


def _touch_in_few(tallies: IndicatorTallies, one: int, other: int) -> bool:
    found = overlap_of(tallies.visitors, (one, one), (other, other))
    return bool(tells_of_few(found, found.surely, small_cell=tallies.small_cell))


def _touching_covariance(
    tallies: IndicatorTallies,
    days: tuple[int, int],
    frequencies: tuple[Floats, Floats],
    *,
    samples: tuple[Sample, Sample],
) -> Floats:
    """Covariance of two days in a row of a value that lasts; see the module."""
    early = min(days)
    span = Window(early, early + 1)
    one, other = samples
    together = sample_of(tallies, span)
    n_shared = one.n_reports + other.n_reports - together.n_reports
    v_shared = one.n_population + other.n_population - together.n_population
    if n_shared == 0:
        return np.zeros_like(frequencies[0])
    shared = Sample(
        counts=one.counts + other.counts - together.counts,
        n_reports=n_shared,
        n_population=v_shared,
        channel=tallies.channel,
    )
    g = np.clip(shared.estimates().frequency, 0, 1)
    noise = pure_variance(g, n_reports=1, n_population=1, channel=tallies.channel)
    f_one, f_other = frequencies
    spread = g * (1 - f_one) * (1 - f_other) + (1 - g) * f_one * f_other
    sampled = (1 - n_shared / v_shared) * v_shared**2 / n_shared * spread
    return np.asarray(
        n_shared * noise / (one.n_reports * other.n_reports)
        + sampled / (one.n_population * other.n_population),
        np.float64,
    )


def _as_correlation(covariance: Floats, one: Floats, other: Floats) -> Floats:
    variance = np.maximum(one * other, np.finfo(np.float64).tiny)
    return np.asarray(np.clip(covariance / np.sqrt(variance), -1, 1), np.float64)


def _of_two(correlation: Floats) -> Floats:
    """Matrix of two terms, shape (2, 2, domain_size)."""
    itself = np.ones_like(correlation)
    return np.array([[itself, correlation], [correlation, itself]])


def _columns(term: _Term, *, level: float) -> tuple[Floats, Floats, Floats, Floats]:
    """Frequency, standard error, and how far the interval moves the sum down and up."""
    found = term.sample.estimates(level=level)
    below = abs(term.factor) * (found.frequency - found.ci_low)
    above = abs(term.factor) * (found.ci_high - found.frequency)
    down, up = (below, above) if term.factor > 0 else (above, below)
    columns = (found.frequency, found.std_error, down, up)
    if term.only is None:
        return columns
    value, error, down, up = (np.full_like(column, column[term.only]) for column in columns)
    return value, error, down, up


def _length(signed: Floats, correlation: Floats) -> Floats:
    """Root of the sum over all pairs of terms; `signed` has shape (J, domain_size)."""
    square = np.einsum("jk,jlk,lk->k", signed, correlation, signed, optimize=True)
    return np.asarray(np.sqrt(np.maximum(square, 0)), np.float64)
