"""Threshold reports compared with the square wave (Li et al., SIGMOD 2020), for numbers reported once.

Exact variances, n times that of one report: of the mean on [-1, 1], and on average of the shares above the
cuts. The wave is discrete: k levels, a window of 2 b + 1 codes of k + 2 b. Its estimates are the linear
unbiased ones of least variance at equal shares, so both need no model. `EM` is its distribution by
expectation maximisation as published, which has no interval: the mean absolute error of the distribution
function, by simulation.

    python -m benchmarks.numbers
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import exp, sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

import ldp
from benchmarks.crosstab import _normal
from ldp.estimation.estimators import ENDLESS, project_survival

Floats = NDArray[np.float64]
LEVELS: Final = (5, 9, 17, 64)
EPSILONS: Final = (0.5, 1.0, 2.0, 3.0)
N: Final = 27_192  # a mean day of the demo


@dataclass(frozen=True, slots=True, kw_only=True)
class Wave:
    """Square wave on k levels with a half width."""

    levels: int
    half_width: int
    epsilon: float

    @property
    def chances(self) -> Floats:
        """Chance of each code at each level, shape (levels, levels + 2 half_width)."""
        width, e = 2 * self.half_width + 1, exp(self.epsilon)
        low = 1 / (width * e + self.levels - 1)
        found = np.full((self.levels, self.levels + width - 1), low)
        for level in range(self.levels):
            found[level, level : level + width] = low * e
        return found

    def variances(self, weights: Floats) -> Floats:
        """Variance of one report's estimate of each sum of weights times equal shares, shape (n,)."""
        chances, shares = self.chances, np.full(self.levels, 1 / self.levels)
        of_code = shares @ chances
        gram = (chances / of_code) @ chances.T
        stands_for = np.linalg.solve(gram, weights.T).T @ chances / of_code
        return np.asarray(stands_for**2 @ of_code - (weights @ shares) ** 2, np.float64)


def threshold_variances(levels: int, epsilon: float) -> tuple[float, float]:
    """Variance of the mean on [-1, 1], and mean variance of a share, with equal shares and spacings."""
    e, cuts = exp(epsilon), levels - 1
    above = np.arange(levels - 1, 0, -1) / levels
    noise = e / (e - 1) ** 2 + above * (1 - above)
    return float((2 / cuts) ** 2 * cuts * noise.sum()), float((cuts * noise).mean())


def wave_variances(levels: int, epsilon: float) -> tuple[float, float, int]:
    """Return the same of the wave whose mean is best, and its half width."""
    mean = np.linspace(-1, 1, levels)[np.newaxis]
    shares = np.tri(levels, levels - 1, -1).T
    waves = [Wave(levels=levels, half_width=b, epsilon=epsilon) for b in range(levels // 2 + 1)]
    return min(
        (float(wave.variances(mean)[0]), float(wave.variances(shares).mean()), wave.half_width)
        for wave in waves
    )


def used_variances(levels: int, epsilon: float) -> tuple[float, float, int]:
    """Return the same of the wave that studies use, whose half width is that of Li et al."""
    channel = ldp.wave_channel(epsilon=Fraction(epsilon), n_levels=levels)
    mean, shares = np.linspace(-1, 1, levels)[np.newaxis], np.tri(levels, levels - 1, -1).T
    even = np.full(levels, 1 / levels)
    of_law = {"channel": channel, "n_reports": 1, "n_population": ENDLESS}
    of_mean, of_shares = (ldp.wave_variance(even, weights=each, **of_law) for each in (mean, shares))
    return float(of_mean[0]), float(of_shares.mean()), channel.half_width


def distribution_errors(epsilon: float, *, runs: int, levels: int = 64) -> tuple[float, float]:
    """Mean absolute error of the distribution function: thresholds with pooling, wave with EM."""
    truth = np.exp(-(((np.arange(levels) - 20) / 9) ** 2) / 2)
    truth /= truth.sum()
    above = truth[::-1].cumsum()[::-1][1:]
    e = exp(epsilon)
    share = (epsilon * e - e + 1) / (2 * e * (e - 1 - epsilon))
    wave = Wave(levels=levels, half_width=round(share * levels / 2), epsilon=epsilon)
    errors = []
    for run in range(runs):
        stream = ldp.KeyedStream(run.to_bytes(16, "big"))
        spread = sqrt(e) / (e - 1) * np.sqrt((levels - 1) / N) * np.ones(levels - 1)
        spread = np.sqrt(spread**2 + above * (1 - above) * (levels - 1) / N)
        noisy = above + spread * _normal(stream, levels - 1)
        pooled = project_survival(noisy, weights=np.ones(levels - 1))
        chances = truth @ wave.chances
        counts = np.maximum(N * chances + np.sqrt(N * chances) * _normal(stream, chances.size), 0)
        fitted = _maximised(wave.chances, counts)
        of_wave = fitted[::-1].cumsum()[::-1][1:]
        errors.append((np.abs(pooled - above).mean(), np.abs(of_wave - above).mean()))
    thresholds, by_wave = np.mean(errors, axis=0)
    return float(thresholds), float(by_wave)


def _maximised(chances: Floats, counts: Floats) -> Floats:
    """Likeliest shares, until the relative likelihood moves by less than 1e-3 e^eps / n."""
    shares, before = np.full(len(chances), 1 / len(chances)), -np.inf
    for _ in range(10_000):
        of_code = shares @ chances
        now = float(counts @ np.log(of_code))
        shares = shares * (chances @ (counts / of_code)) / counts.sum()
        if now - before < 1e-3 * chances.max() / chances.min():
            break
        before = now
    return shares


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=40, help="simulations of the distribution")
    for line in (*_lines(), "", *_distribution_lines(parser.parse_args().runs)):
        sys.stdout.write(line + "\n")
    return 0


def _lines() -> Iterator[str]:
    yield "| levels, epsilon | mean: thresholds | wave (b) | used | a share: thresholds | wave | used |"
    yield "|--|--|--|--|--|--|--|"
    for levels in LEVELS:
        for epsilon in EPSILONS:
            mean, share = threshold_variances(levels, epsilon)
            by_wave, wave_share, half_width = wave_variances(levels, epsilon)
            used, used_share, used_width = used_variances(levels, epsilon)
            yield (
                f"| {levels}, {epsilon:g} | {mean:.2f} | {by_wave:.2f} ({half_width}) "
                f"| {used:.2f} ({used_width}) | {share:.1f} | {wave_share:.1f} | {used_share:.1f} |"
            )


def _distribution_lines(runs: int) -> Iterator[str]:
    yield f"| distribution function, 64 levels, n = {N:,} | thresholds | wave, EM |\n|--|--|--|"
    for epsilon in EPSILONS:
        thresholds, wave = distribution_errors(epsilon, runs=runs)
        yield f"| epsilon {epsilon:g} | {thresholds:.4f} | {wave:.4f} |"


if __name__ == "__main__":
    sys.exit(main())
