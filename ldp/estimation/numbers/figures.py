"""Figures of a number from its reports of either kind: shares above cuts, mean, difference of means."""

from collections.abc import Sequence
from math import prod, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError, NoReportsError
from ldp.estimation.estimators import Estimates
from ldp.estimation.joint.linear import LinearEstimate
from ldp.estimation.numbers.threshold import (
    normal_estimate,
    threshold_mean,
    threshold_noise,
    threshold_survival,
)
from ldp.estimation.numbers.wave import wave_query, wave_survival
from ldp.estimation.windows import IndicatorTallies, Part, Window, pieces_of
from ldp.protocols.numbers.threshold import Scale, ThresholdChannel
from ldp.protocols.numbers.wave import WaveChannel

Counts = NDArray[np.int64]
NumberChannel = ThresholdChannel | WaveChannel


def number_survival(
    counts: Counts, *, channel: NumberChannel, n_population: int, level: float = 0.95
) -> Estimates:
    """Share of the visitors whose number reaches each cut: `threshold_survival` or `wave_survival`."""
    asked: dict[str, Any] = {"n_population": n_population, "level": level}
    if isinstance(channel, WaveChannel):
        return wave_survival(counts, channel=channel, **asked)
    return threshold_survival(counts, channel=channel, **asked)


def number_mean(
    counts: Counts, *, scale: Scale, channel: NumberChannel, n_population: int, level: float = 0.95
) -> LinearEstimate:
    """Mean of the numbers, rounded down to the minimum and the cuts, with its normal interval.

    Parameters, Raises : as of `number_survival`
    """
    if isinstance(channel, ThresholdChannel):
        return threshold_mean(counts, scale=scale, channel=channel, n_population=n_population, level=level)
    ends = np.array([scale.ends], np.float64)
    value, variance = wave_query(counts, weights=ends, channel=channel, n_population=n_population)
    return normal_estimate(float(value[0]), sqrt(variance[0]), level=level)


def mean_difference(
    tallies: IndicatorTallies, *, scale: Scale, first: Window, second: Window, level: float = 0.95
) -> tuple[LinearEstimate, bool]:
    """Mean of the second window less that of the first, and whether its error is exact, else an upper bound.

    Parameters
    ----------
    tallies : IndicatorTallies; counts by code, of a number
    first, second : Window; in any order, may overlap

    Raises
    ------
    NoReportsError : no one reported in a window, or on some cut
    LdpError : a window lies outside the study, or has few visitors

    Notes
    -----
    As `window_difference`: exact where the windows overlap or touch (of a daily number: where they begin on
    the same day), since the parts of the union are then known. Otherwise shared noise is left out, which can
    only make a difference of static numbers more certain; of a daily number, sampling errors of the two are
    added up in full (Cauchy and Schwarz).
    """
    pieces, is_exact = pieces_of(tallies, (first, second), factors=(-1, 1), of="frequency")
    try:
        terms = _terms(pieces, tallies=tallies, scale=scale)
    except NoReportsError:  # on some cut, in a small part
        pieces, is_exact = pieces_of(
            tallies, (first, second), factors=(-1, 1), of="frequency", is_split=False
        )
        terms = _terms(pieces, tallies=tallies, scale=scale)
    value = sum(weight * found.value for weight, found, _ in terms)
    variance = sum(weight**2 * found.std_error**2 for weight, found, _ in terms)
    if not is_exact and tallies.kind == "daily":
        variance += 2 * prod(abs(weight) * sampling for weight, _, sampling in terms)
    return normal_estimate(value, sqrt(variance), level=level), is_exact


def _terms(
    pieces: Sequence[tuple[float, Part]], *, tallies: IndicatorTallies, scale: Scale
) -> list[tuple[float, LinearEstimate, float]]:
    """Weight of each part's mean, the mean, and its sampling error."""
    channel = tallies.channel
    if not isinstance(channel, NumberChannel):
        raise LdpError(f"channel must be one of a number, got {type(channel).__name__}")
    terms = []
    for factor, part in pieces:
        found = number_mean(part.counts, scale=scale, channel=channel, n_population=part.n_visitors)
        noise = _noise(part.counts, scale=scale, channel=channel)
        terms.append((factor * part.n_visitors, found, sqrt(max(found.std_error**2 - noise, 0.0))))
    return terms


def _noise(counts: Counts, *, scale: Scale, channel: NumberChannel) -> float:
    """Variance of a mean by the noise alone; of waves as of a census, whose sample has no error."""
    if isinstance(channel, ThresholdChannel):
        return threshold_noise(counts, scale=scale, channel=channel)
    ends, n = np.array([scale.ends], np.float64), int(counts.sum())
    return float(wave_query(counts, weights=ends, channel=channel, n_population=n)[1][0])
