"""Forecasts of events from randomised answers: unbiased, and intervals hold the true sums as often as stated.

Events of a day are Poisson variables around a rhythm of the week and of the year and a level that moves, and
each is of one of three categories. Half of them answer by GRR; 760 days give forecasts of sums over a day, a
week, a month, a quarter and a year.
"""

from fractions import Fraction

import numpy as np
import pytest

from ldp import GrrChannel, grr_channel
from ldp.estimation.series.forecast import LEVELS
from ldp.estimation.series.levels import DayFigures, Z, forecast_sums
from ldp.estimation.series.smoothing import numbers_of_events

DAYS = 760
SPANS = [(1, 1), (3, 9), (20, 49), (50, 140), (100, 464)]
SHARES = np.array([0.6, 0.3, 0.1])


def errors_of(
    channel: GrrChannel, *, moves: float, random: np.random.Generator, every: int
) -> list[np.ndarray]:
    """Standardised errors of each n-th series of the events themselves and of the categories."""
    days = np.arange(DAYS + max(last for _, last in SPANS))
    seasons = days % 365 / 365
    rhythm = 80 + 8 * (days % 7 > 4) + 9 * np.cos(2 * np.pi * seasons) + 4 * np.sin(4 * np.pi * seasons)
    level = np.cumsum(random.normal(0, moves**0.5, len(days)))
    true = random.poisson(np.maximum(rhythm + level, 0)[:, np.newaxis] * SHARES)
    events = true[:DAYS].sum(axis=1)
    n_reports = random.binomial(events, 0.5)
    asked = np.array([
        random.multivariate_hypergeometric(each, n) for each, n in zip(true[:DAYS], n_reports, strict=True)
    ])  # fmt: skip
    p, q = float(channel.p), float(channel.q)
    chances = np.full((len(SHARES), len(SHARES)), q) + (p - q) * np.eye(len(SHARES))
    answers = random.multinomial(asked, chances).sum(axis=1)
    shares = (answers / n_reports[:, np.newaxis] - q) / (p - q)
    numbers, noise = numbers_of_events(shares, n_reports=n_reports, n_events=events, channel=channel)
    values = np.column_stack([events, numbers])
    variances = np.column_stack([np.zeros(DAYS), noise])
    sums = np.column_stack([true.sum(axis=1), true])
    found = []
    for value, variance, ahead in zip(values.T[::every], variances.T[::every], sums.T[::every], strict=True):
        figures = DayFigures(values=value, variances=variance, weekdays=days % 7, seasons=seasons)
        forecast = forecast_sums(figures, spans=SPANS)
        truth = [ahead[DAYS + first - 1 : DAYS + last].sum() for first, last in SPANS]
        found.append((truth - forecast.values) / np.sqrt(forecast.variances))
    return found


LONG = [(epsilon, moves, 200, 1) for epsilon in ("1", "4") for moves in (0.002, 0.05, 0.5)]


@pytest.mark.parametrize(
    ("epsilon", "moves", "keys", "every"),
    # In short: the events, which have no noise, and the rarest category, which has most for its size.
    [("4", 0.5, 25, 3), *(pytest.param(*case, marks=pytest.mark.long) for case in LONG)],
)
def test_forecasts_are_unbiased_and_intervals_cover(
    epsilon: str, moves: float, keys: int, every: int
) -> None:
    """Within 3.5 standard errors, as if all categories of a series erred together.

    Intervals may be wide where the level hardly moves: how much it does is not known then.
    """
    channel = grr_channel(epsilon=Fraction(epsilon), domain_size=len(SHARES))
    found = np.array([
        errors_of(channel, moves=moves, random=np.random.default_rng(key), every=every) for key in range(keys)
    ])  # fmt: skip
    bias = found.mean(axis=0) / found.std(axis=0) * keys**0.5
    assert np.abs(bias).max() < 4.2  # of at most 20 means, and of normal ones one in 6,000 is beyond
    for level, half in zip(LEVELS, Z, strict=True):
        covered = (np.abs(found) < half).mean(axis=(0, 1))
        reach = 3.5 * (level * (1 - level) / keys) ** 0.5
        assert (covered > level - reach).all()
        assert (covered < level + reach).all() or moves < 0.5


def test_days_of_few_events_count_as_much_as_others() -> None:
    """Weighed by the noise of the day itself, many days without events would pull the level to 0."""
    channel, random, found = grr_channel(epsilon=Fraction(2), domain_size=3), np.random.default_rng(1), []
    p, q = float(channel.p), float(channel.q)
    chances = q + (p - q) * SHARES
    for _ in range(60):
        events = random.poisson(1.5, 200)
        answers = random.multinomial(events, chances)
        with np.errstate(invalid="ignore"):
            shares = (answers / events[:, np.newaxis] - q) / (p - q)
        values, noise = numbers_of_events(shares, n_reports=events, n_events=events, channel=channel)
        figures = DayFigures(values=values[:, 0], variances=noise[:, 0], weekdays=np.arange(230) % 7)
        found.append(forecast_sums(figures, spans=[(1, 28)]).values[0])
    # The most frequent category has the least noise for its size: a level that is too low shows there first.
    error = np.mean(found) - 28 * 1.5 * SHARES[0]
    assert abs(error) < 3.5 * np.std(found) / 60**0.5
