"""Smoothed days are the best linear guess of a level under its model, and flags mark unlike days."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from ldp import grr_channel, oue_channel, pure_frequencies
from ldp.errors import LdpError
from ldp.estimation.estimators import pure_variance
from ldp.estimation.noisy_estimators import UnionNoise, noise_variance, noisy_frequencies
from ldp.estimation.numbers.wave import likeliest_levels, wave_variance
from ldp.estimation.series.smoothing import (
    FALSE_ALARMS,
    MOVES,
    SmoothedDays,
    share_variances,
    smooth_days,
    smooth_shares,
    wave_variances,
)
from ldp.protocols.geometric import geometric_channel
from ldp.protocols.numbers.threshold import threshold_channel
from ldp.protocols.numbers.wave import chances, wave_channel
from tests.ldp.exact import refuses

RANDOM = np.random.default_rng
WAVE = wave_channel(epsilon=Fraction(2), n_levels=6)
THRESHOLDS = threshold_channel(epsilon=Fraction(1), spacings=(1, 2))


def wandering(days: int, k: int, *, moves: float, noise: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Levels and figures around them."""
    random = RANDOM(seed)
    levels = 0.2 + np.cumsum(random.normal(0, moves**0.5, (days, k)), axis=0)
    return levels, levels + random.normal(0, noise**0.5, (days, k))


def test_levels_are_their_conditional_distribution() -> None:
    """By the joint normal law of all days: what follows from the days until one, and from all days.

    Averaged over the variances of moves by their likelihood, if each standard deviation is as likely before.
    """
    _, values = wandering(12, 3, moves=4.0, noise=1.0, seed=1)
    variances = np.full(values.shape, 1.0)
    variances[7] = 9.0
    values[[4, 5], 0] = np.nan
    found = smooth_days(values, variances)
    scales = np.nanvar(values, axis=0) + np.mean(variances, axis=0)
    scales[0] = np.nanvar(values[:, 0]) + variances[~np.isnan(values[:, 0]), 0].mean()
    laws, weights = [], np.sqrt(MOVES)
    for n, each in enumerate(MOVES):
        steps = np.minimum.outer(np.arange(12), np.arange(12)) * each * scales.mean()
        law = np.empty((2, 2, 12, 3))
        for code in range(3):
            is_known = ~np.isnan(values[:, code])
            prior = steps + 1e6 * scales[code]  # nothing is known before the first day
            for day in range(12):
                for row, until in ((0, day), (1, 11)):
                    seen = np.flatnonzero(is_known[: until + 1])
                    joint = prior[np.ix_(seen, seen)] + np.diag(variances[seen, code])
                    gain = np.linalg.solve(joint, prior[seen, day])
                    law[row, :, day, code] = (
                        gain @ values[seen, code],
                        prior[day, day] - gain @ prior[seen, day],
                    )
            seen = np.flatnonzero(is_known)
            weights[n] *= multivariate_normal.pdf(
                values[seen, code], cov=prior[np.ix_(seen, seen)] + np.diag(variances[seen, code])
            )
        laws.append(law)
    weights /= weights.sum()
    means = np.einsum("n,nrdk->rdk", weights, [law[:, 0] for law in laws])
    spread = [law[:, 1] + (law[:, 0] - means) ** 2 for law in laws]
    assert found.filtered == pytest.approx(means[0], abs=2e-3)
    assert found.smoothed == pytest.approx(means[1], abs=2e-3)
    around = np.einsum("n,nrdk->rdk", weights, spread)
    assert found.filtered_variances == pytest.approx(around[0], abs=5e-3)
    assert found.smoothed_variances == pytest.approx(around[1], abs=5e-3)


def test_figures_that_hardly_differ_are_taken_together() -> None:
    """Many days without moves: the level is about their mean, with about an n-th of the variance."""
    values = np.tile([[0.1], [0.3], [0.2], [0.2]], (15, 1))
    found = smooth_days(values, np.full((60, 1), 5.0))
    assert found.smoothed == pytest.approx(np.full((60, 1), 0.2), abs=0.02)
    assert 5 / 60 < found.smoothed_variances[30, 0] < 1


def test_days_before_the_first_figure_have_none() -> None:
    values = np.full((6, 2), np.nan)
    values[2:, 0] = [0.1, 0.2, 0.1, 0.2]
    found = smooth_days(values, np.full((6, 2), 0.01))
    assert np.isnan(found.smoothed[:2]).all() and np.isnan(found.smoothed[:, 1]).all()
    assert not np.isnan(found.smoothed[2:, 0]).any()
    assert not found.changes.any()


@pytest.mark.parametrize(("days", "k", "moves"), [(62, 12, 0.0), (14, 3, 4.5e-3), (7, 3, 4.5e-4)])
def test_intervals_cover_and_ordinary_days_are_flagged_as_seldom_as_stated(
    days: int, k: int, moves: float
) -> None:
    """120 series of levels that stay or wander; shares within 3.5 standard errors. Intervals may be wide."""
    covered, flagged = [], []
    for seed in range(120):
        levels, values = wandering(days, k, moves=moves, noise=9e-4, seed=seed)
        found = smooth_days(values, np.full(values.shape, 9e-4))
        flagged.append(found.changes.any(axis=1)[5:].mean())
        covered.append((abs(found.smoothed - levels) < 1.96 * found.smoothed_variances**0.5).mean())
    assert np.mean(flagged) < FALSE_ALARMS + 3.5 * np.std(flagged) / 120**0.5
    assert np.mean(covered) > 0.94 - 3.5 * np.std(covered) / 120**0.5


def test_an_event_is_flagged_when_it_begins_and_when_it_ends() -> None:
    shares = np.tile([0.5, 0.3, 0.2], (40, 1))
    shares[20:23] = [0.2, 0.6, 0.2]
    values = shares + RANDOM(1).normal(0, 0.03, shares.shape)
    found = smooth_days(values, np.full(shares.shape, 9e-4))
    assert np.flatnonzero(found.changes.any(axis=1)).tolist() == [20, 23]
    assert found.changes[[20, 23], :2].all() and not found.changes[:, 2].any()


def test_one_day_that_is_unlike_all_others_does_not_hide_itself() -> None:
    """A jump makes every day look restless if levels are thought to move as much always."""
    values = 0.5 + RANDOM(4).normal(0, 0.01, (14, 2))
    values[9] += [0.4, -0.4]
    assert smooth_days(values, np.full((14, 2), 1e-4)).changes.any(axis=1).nonzero()[0].tolist() == [9, 10]


SMALL, SHARES = oue_channel(epsilon=3, domain_size=3), np.array([0.1, 0.3, 0.6])
SIZES = {"n_reports": np.full(60, 30), "n_visitors": np.full(60, 90), "channel": SMALL}


def small_days(random: np.random.Generator) -> np.ndarray:
    """Return the estimates of 60 days of 30 reports of 90 visitors."""
    people, shares = np.repeat(range(3), [9, 27, 54]), np.empty((60, 3))
    for of_day in shares:
        asked = np.bincount(random.choice(people, 30, replace=False), minlength=3)
        support = random.binomial(asked, float(SMALL.p)) + random.binomial(30 - asked, float(SMALL.q))
        of_day[:] = pure_frequencies(support, n_reports=30, n_population=90, channel=SMALL).frequency
    return shares


def test_levels_of_small_days_are_unbiased_and_their_intervals_cover() -> None:
    """60 series of 60 days of 30 reports, none of them reliable. Weights by each day's estimate lose 0.04."""
    random = RANDOM(3)
    found = [smooth_shares(small_days(random), **SIZES) for _ in range(60)]
    means = np.array([each.smoothed.mean(axis=0) for each in found])
    assert abs(means.mean(axis=0) - SHARES).max() < 3.5 * means.std() / 60**0.5
    covered = [abs(each.smoothed - SHARES) < 1.96 * each.smoothed_variances**0.5 for each in found]
    assert np.mean(covered) > 0.94 - 3.5 * np.mean(covered, axis=(1, 2)).std() / 60**0.5


FEW_NOISY = grr_channel(epsilon=Fraction(3), domain_size=3)
CELL = geometric_channel(step=Fraction(1, 2))


def noisy_days(random: np.random.Generator) -> tuple[np.ndarray, dict[str, Any]]:
    """Estimates of 60 days of 90 visitors who all answer, whose counts have noise of one cell."""
    answers = random.multinomial(90, float(FEW_NOISY.q) + SHARES * float(FEW_NOISY.p - FEW_NOISY.q), size=60)
    one, other = random.geometric(1 - np.exp(-0.5), (2, *answers.shape))
    counts = answers + one - other
    one_cell = UnionNoise(channel=CELL, n_cells=1)
    shares = [
        noisy_frequencies(each, n_visitors=90, noise=one_cell, channel=FEW_NOISY).frequency for each in counts
    ]
    sizes = {"n_reports": counts.sum(axis=1), "n_visitors": np.full(60, 90), "noise": [one_cell] * 60}
    return np.array(shares), sizes


def numbers_of_days(random: np.random.Generator) -> np.ndarray:
    """Codes of 60 days of 40 numbers on six levels, by the square wave."""
    levels = random.multinomial(40, [0.5, 0.2, 0.1, 0.1, 0.05, 0.05], size=60)
    return np.array([
        sum(random.multinomial(n, of_level) for n, of_level in zip(day, chances(WAVE).T, strict=True))
        for day in levels
    ])  # fmt: skip


def test_variances_of_noisy_counts_are_those_of_the_noise_and_of_the_answers() -> None:
    shares, sizes = noisy_days(RANDOM(6))
    n = sizes["n_reports"]
    mean = np.clip((n[:, None] * shares).sum(axis=0) / n.sum(), 0, 1)
    found = share_variances(shares, channel=FEW_NOISY, **sizes)
    for day in (0, 31):
        population = max(90, int(n[day]))
        expected = pure_variance(mean, n_reports=n[day], n_population=population, channel=FEW_NOISY)
        noise = sizes["noise"][day]
        expected = expected + noise_variance(mean, n_reports=float(n[day]), noise=noise, channel=FEW_NOISY)
        assert found[day] == pytest.approx(expected)


def test_reports_about_one_category_weigh_in_it_alone() -> None:
    shares = np.array([[0.9, 0.4], [0.7, 0.2], [np.nan, np.nan]])
    reports = np.array([[10, 40], [30, 20], [0, 3]])
    found = share_variances(shares, n_reports=reports, n_visitors=np.array([90, 90, 0]), channel=THRESHOLDS)
    for day in (0, 1):
        expected = pure_variance(
            [(10 * 0.9 + 30 * 0.7) / 40, (40 * 0.4 + 20 * 0.2) / 60],
            n_reports=reports[day], n_population=90, channel=THRESHOLDS,
        )  # fmt: skip
        assert found[day] == pytest.approx(expected)


def test_the_square_wave_has_the_variance_of_the_estimate() -> None:
    """Days with more reports have less, and those without reports none."""
    codes = numbers_of_days(RANDOM(8))
    codes[1] = 0
    codes[2] *= 3
    found = wave_variances(codes, n_visitors=3 * codes.sum(axis=1), channel=WAVE)
    assert np.isnan(found[1]).all() and not np.isnan(found[[0, 2]]).any()
    levels, weights = likeliest_levels(codes.sum(axis=0), channel=WAVE), np.tri(6, 5, -1).T
    for day, n in ((0, 40), (2, 120)):
        expected = wave_variance(levels, weights=weights, channel=WAVE, n_reports=n, n_population=3 * n)
        assert found[day] == pytest.approx(expected)
    assert np.isnan(wave_variances(codes * 0, n_visitors=np.zeros(60, np.int64), channel=WAVE)).all()


def test_days_without_reports_are_gaps_of_smoothed_shares() -> None:
    shares = np.tile([[0.2, 0.8]], (8, 1))
    shares[3] = np.nan
    sizes = np.where(np.arange(8) == 3, 0, 500)
    channel = oue_channel(epsilon=1, domain_size=2)
    found = smooth_shares(shares, n_reports=sizes, n_visitors=3 * sizes, channel=channel)
    assert found.smoothed == pytest.approx(shares[[0]].repeat(8, axis=0))
    assert (found.smoothed_variances[3] > found.smoothed_variances[2]).all()


def test_what_is_no_series_is_refused() -> None:
    figures = np.full((3, 2), 0.5)
    refuses("one shape", smooth_days, figures, figures[:2])
    refuses("must have an estimate", smooth_days, figures * np.nan, figures)
    refuses("false_alarms must be in", smooth_days, figures, figures, false_alarms=1.0)
    assert isinstance(smooth_days(figures, figures), SmoothedDays)
    with pytest.raises(LdpError, match="at least 0"):
        smooth_days(figures, -figures)
