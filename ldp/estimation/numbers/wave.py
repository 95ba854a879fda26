"""Numbers from square-wave reports: linear questions without a model, and the likeliest distribution.

Of the levels (the minimum and the cuts), M[y, x] is the chance of code y at the true level x. M has full
rank, so there are g(y) with sum_y g(y) M[y, x] = w_x for any weights w: the mean of g over the reports is
unbiased for the sum of w_x f_x. Of all such g the one is used that has the least variance if all levels are
equally common. With P = M u, u those equal shares, R = (M - P 1^T) / (p - q) and z from
(R^T diag(1/P) R + 1 1^T) z = w - (u w) 1,

    g = u w + R z / (P (p - q)),

which is well conditioned for any epsilon. The variance of an answer from n reports of N visitors is

    (sum_x f_x (E[g^2 | x] - w_x^2) + Var_f(w) (N - n) / (N - 1)) / n

exactly. Intervals take it from the reports themselves, as the variance of g: no distribution is assumed.

The likeliest distribution comes from expectation maximisation that ends early: more steps fit the noise. It
is closer to the truth than the linear shares, but biased, and no interval is known for it.

Source: Li, Wang, Lopuhaa-Zwakenberg, Skoric, Li, SIGMOD 2020.
"""

from functools import lru_cache
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.estimation.estimators import Estimates
from ldp.protocols.numbers.wave import WaveChannel, chances, windows

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]

STOP: Final = 1e-3  # times e to the epsilon: gain in log-likelihood at which steps end
MOST_STEPS: Final = 10_000
DECIMALS: Final = 9  # of shares: libraries for matrices differ in the last digits


def wave_survival(
    counts: Counts, *, channel: WaveChannel, n_population: int, level: float = 0.95
) -> Estimates:
    """Share of the visitors whose number reaches each cut; `consistent` is that of the likeliest numbers.

    Parameters
    ----------
    counts : ndarray of int64, shape (n_codes,); reports by code, at least one
    channel : WaveChannel; as used for the reports
    n_population : int; visitors of the window, at least the reports
    level : float; of each interval, in (0, 1)

    Raises
    ------
    LdpError : a rule is broken

    Notes
    -----
    `frequency` is unbiased, its intervals are normal. `consistent` may leave them: it uses all reports for
    each share.
    """
    if not 0 < level < 1:
        raise LdpError(f"level must be in (0, 1), got {level}")
    weights = np.tri(channel.n_levels, channel.domain_size, -1).T
    shares, variances = wave_query(counts, weights=weights, channel=channel, n_population=n_population)
    errors, z = np.sqrt(variances), NormalDist().inv_cdf((1 + level) / 2)
    likeliest = likeliest_levels(counts, channel=channel)[::-1].cumsum()[::-1][1:]
    columns = (shares, errors, shares - z * errors, shares + z * errors, np.clip(likeliest, 0, 1))
    names = ("frequency", "std_error", "ci_low", "ci_high", "consistent")
    return Estimates(**dict(zip(names, (np.round(each, DECIMALS) for each in columns), strict=True)))


def wave_query(
    counts: Counts, *, weights: Floats, channel: WaveChannel, n_population: int
) -> tuple[Floats, Floats]:
    """Sums of weights times shares of the levels, and the variance of each; float64, shape (n_questions,).

    Parameters
    ----------
    counts, channel, n_population : as of `wave_survival`
    weights : ndarray of float64, shape (n_questions, n_levels), finite

    Notes
    -----
    The variance is unbiased where it is not below that of the level with the least noise.
    """
    n = _checked(counts, channel=channel, n_population=n_population)
    of_code = stands_for(weights, channel=channel)
    value, squares = of_code @ counts / n, of_code**2 @ counts / n
    spread = stands_for(weights**2, channel=channel) @ counts / n - value**2
    variance = (squares - value**2 - np.maximum(spread, 0) * n / n_population) * n / max(n - 1, 1)
    least = wave_noise(weights, channel=channel).min(axis=1)
    return value, np.maximum(variance, least) / n


def wave_variance(
    f: Floats, *, weights: Floats, channel: WaveChannel, n_reports: float, n_population: float
) -> Floats:
    """Exact variances of the answers of `wave_query` at true shares f of the levels; shape (n_questions,)."""
    spread = weights**2 @ f - (weights @ f) ** 2
    left = (n_population - n_reports) / max(n_population - 1, 1)
    return np.asarray((wave_noise(weights, channel=channel) @ f + spread * left) / n_reports, np.float64)


def wave_noise(weights: Floats, *, channel: WaveChannel) -> Floats:
    """Variance of what one report of each true level adds to each answer; shape (n_questions, n_levels)."""
    of_code = stands_for(weights, channel=channel)
    return np.asarray(of_code**2 @ chances(channel) - weights**2, np.float64)


def share_noise(channel: WaveChannel) -> float:
    """Variance of what a report adds to the share above a cut, on average of cuts and of levels."""
    weights = np.tri(channel.n_levels, channel.domain_size, -1).T
    return float(wave_noise(weights, channel=channel).mean())


def stands_for(weights: Floats, *, channel: WaveChannel) -> Floats:
    """g of each code, what a report of it adds to each answer; shape (n_questions, n_codes)."""
    if weights.ndim != 2 or weights.shape[1] != channel.n_levels or not np.isfinite(weights).all():
        raise LdpError(f"weights must be finite with shape (n, {channel.n_levels}), got {weights.shape}")
    return _stands_for(np.ascontiguousarray(weights, np.float64).tobytes(), channel)


@lru_cache(maxsize=256)
def _stands_for(packed: bytes, channel: WaveChannel) -> Floats:
    """Kept, since every window of an indicator asks for the same."""
    weights = np.frombuffer(packed).reshape(-1, channel.n_levels)
    matrix = chances(channel)
    of_code, difference = matrix.mean(axis=1), float(channel.p - channel.q)
    shift = (windows(channel) - windows(channel).mean(axis=1)[:, np.newaxis]) / of_code[:, np.newaxis]
    means = weights.mean(axis=1)[:, np.newaxis]
    gram = (shift * of_code[:, np.newaxis]).T @ shift + 1
    solved = np.linalg.solve(gram, (weights - means).T)
    found = np.asarray(means + (shift @ solved).T / difference, np.float64)
    found.flags.writeable = False
    return found


def likeliest_levels(counts: Counts, *, channel: WaveChannel) -> Floats:
    """Likeliest shares of the levels by expectation maximisation; float64, shape (n_levels,), sum 1.

    It ends when a step gains less than `STOP` e to the epsilon of log-likelihood. Cost O(n_levels n_codes) a
    step; some hundred steps.
    """
    n, matrix = _checked(counts, channel=channel), chances(channel)
    shares, before = np.full(channel.n_levels, 1 / channel.n_levels), -np.inf
    for _ in range(MOST_STEPS):
        of_code = matrix @ shares
        now = float(counts @ np.log(of_code))
        shares = shares * (matrix.T @ (counts / of_code)) / n
        if now - before < STOP * float(channel.ratio):
            break
        before = now
    return np.asarray(shares / shares.sum(), np.float64)


def _checked(counts: Counts, *, channel: WaveChannel, n_population: int | None = None) -> int:
    """Return the number of reports; LdpError unless counts are of the channel, and of at most N people."""
    if counts.shape != (channel.n_codes,) or counts.min() < 0 or counts.sum() < 1:
        raise LdpError(
            f"counts must be >= 0 with shape ({channel.n_codes},) and a report, got {counts.sum()} reports "
            f"of shape {counts.shape}"
        )
    n = int(counts.sum())
    if n_population is not None and n_population < n:
        raise LdpError(f"n_population must be >= {n}, the reports, got {n_population}")
    return n
