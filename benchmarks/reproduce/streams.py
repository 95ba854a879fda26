"""Streams: errors of a day if epsilon or people are divided (LBU, LPU), and of smoothed days.

    python -m benchmarks.reproduce.streams [--runs 20]

Slots of people are the product's; bits of unary encodings (OUE) are drawn as counts, whose binomial laws are
taken as normal (there are 4,300 answers a day, or 30,000). Numbers to compare with are those of the study for
the design of streams, 12 to 40 runs a cell. It names its scenarios without defining them; ours are alike.
"""

import argparse
import sys
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

import ldp
from benchmarks.reproduce import runs
from benchmarks.reproduce.runs import Comparison, Estimate, Floats
from ldp.estimation.series.smoothing import smooth_days
from ldp.keyed.choices import slot_days

N, DAYS, WINDOW, STATED_RUNS = 30_000, 62, 7, 12
BASE: Final = np.array([20, 15, 12, 10, 8, 8, 7, 6, 5, 4, 3, 2]) / 100
METHODS: Final = ("LBU", "LPU", "LPU + filter", "LPU + smoother")
# Mean squared errors times 10**4: 12 categories, 62 days, 30,000 people, epsilon 1, windows of 7 days.
STATED: Final[Mapping[str, tuple[float, ...]]] = {
    "steady": (65.9, 9.05, 0.67, 0.14),
    "weekly": (64.6, 8.93, 5.41, 4.96),
    "drift": (65.2, 8.94, 1.27, 0.59),
    "event": (64.9, 8.83, 5.17, 4.38),
}
RATIOS: Final = {7: 7.6, 20: 21.7, 31: 33.7, 62: 67.3}


def shares(scenario: str) -> Floats:
    """Shares of each day, shape (62, 12).

    weekly : at weekends the first category has 14 points more; drift: 20 points more, growing to the last
    day; event: on three days half of all people are in the sixth category
    """
    days = np.arange(DAYS)
    found = np.tile(BASE, (DAYS, 1))
    moved = np.zeros(BASE.size)
    moved[:3] = 1, -0.6, -0.4
    if scenario == "weekly":
        found += np.outer(days % 7 >= 5, 0.14 * moved)
    elif scenario == "drift":
        found += np.outer(days / DAYS, 0.2 * moved)
    elif scenario == "event":
        found[31:34] = found[31:34] / 2 + np.eye(BASE.size)[5] / 2
    return found


def values(scenario: str) -> NDArray[np.int32]:
    """Values of all people on each day, with the shares of the scenario; shape (62, 30,000)."""
    place = (np.arange(N) + 0.5) / N
    ends = np.cumsum(shares(scenario), axis=1)[:, :-1]
    return np.stack([np.searchsorted(of_day, place) for of_day in ends]).astype(np.int32)


@cache
def channels() -> tuple[ldp.UnaryChannel, ldp.UnaryChannel]:
    """Return OUE with a part of epsilon for each day of a window, and with all of it."""
    parts = (Fraction(1, WINDOW), Fraction(1))
    budget, people = (ldp.oue_channel(epsilon=each, domain_size=BASE.size) for each in parts)
    return budget, people


def settings() -> list[str]:
    """Return the scenarios."""
    return list(STATED)


def errors(scenario: str, n_runs: int) -> Floats:
    """Mean squared errors over categories and days, times 10**4; shape (n_runs, 4), columns `METHODS`."""
    truth = values(scenario)
    exact = _counts(truth, np.ones(truth.shape, np.bool_))
    return np.array([_errors(f"streams/{scenario}", run, truth, exact) for run in range(n_runs)])


def compare(scenario: str, of_runs: Floats) -> dict[str, Comparison]:
    """Compare by method; stated numbers are taken to have the fewest runs that the study had."""
    found = {}
    for stated, each, method in zip(STATED[scenario], of_runs.T, METHODS, strict=True):
        published = Estimate(value=stated, std_error=float(each.std(ddof=1)) / np.sqrt(STATED_RUNS))
        found[method] = Comparison(published=published, ours=runs.mean(each))
    return found


def smoothed_shares(of_runs: Mapping[str, Floats]) -> tuple[float, float]:
    """Return the least and the largest error of filter and smoother, over that of LPU."""
    means = np.array([each.mean(axis=0) for each in of_runs.values()])
    shares = means[:, 2:] / means[:, 1:2]
    return float(shares.min()), float(shares.max())


def is_defined(scenario: str, method: str) -> bool:
    """Return whether a stated number does not depend on how the study made its scenarios."""
    return scenario == "steady" or method in ("LBU", "LPU")


def _errors(name: str, run: int, truth: NDArray[np.int32], exact: Floats) -> list[float]:
    people = np.arange(1, N + 1, dtype=np.uint64)
    slots = slot_days(people, prf=runs.prf(name, run), days=DAYS, window_days=WINDOW, indicator=0)
    asked = slots >> np.arange(DAYS, dtype=np.uint64)[:, np.newaxis] & np.uint64(1) == 1
    noise = _normal(ldp.KeyedStream(runs.key(f"{name}/noise", run)), (2, *exact.shape))
    budget, people_divided = channels()
    all_days = _estimates(exact, noise[0], channel=budget)[0]
    estimates, variances = _estimates(_counts(truth, asked), noise[1], channel=people_divided)
    smooth = smooth_days(estimates, variances)
    found = (all_days, estimates, smooth.filtered, smooth.smoothed)
    return [1e4 * float(np.mean((each - exact / N) ** 2)) for each in found]


def _counts(truth: NDArray[np.int32], asked: NDArray[np.bool_]) -> Floats:
    """People who answer by day and category."""
    pairs = zip(truth, asked, strict=True)
    return np.array([np.bincount(of_day[is_asked], minlength=BASE.size) for of_day, is_asked in pairs], float)


def _estimates(counts: Floats, noise: Floats, *, channel: ldp.UnaryChannel) -> tuple[Floats, Floats]:
    """Estimates and their variances, of true counts of those who answer; shape (62, 12) each."""
    n, p, q = counts.sum(axis=1, keepdims=True), float(channel.p), float(channel.q)
    spread = np.sqrt(counts * p * (1 - p) + (n - counts) * q * (1 - q))
    support = np.rint(counts * p + (n - counts) * q + spread * noise).clip(0, n).astype(np.int64)
    found = [
        ldp.pure_frequencies(of_day, n_reports=int(size), n_population=N, channel=channel)
        for of_day, size in zip(support, n[:, 0], strict=True)
    ]
    return np.array([each.frequency for each in found]), np.array([each.std_error**2 for each in found])


def _normal(stream: ldp.KeyedStream, shape: tuple[int, ...]) -> Floats:
    """Return standard normal numbers (Box and Muller)."""
    words = stream.words(2 * int(np.prod(shape))) >> np.uint64(11)
    length, turn = ((words + 0.5) * 2.0**-53).reshape(2, *shape)
    return np.asarray(np.sqrt(-2 * np.log(length)) * np.cos(2 * np.pi * turn))


def day_variance(window: int, *, divides_people: bool) -> float:
    """Return n times the variance of a day at frequency 0 (OUE), with epsilon 1 in any window."""
    epsilon = Fraction(1) if divides_people else Fraction(1, window)
    noise = float(ldp.noise_at_zero(ldp.oue_channel(epsilon=epsilon, domain_size=BASE.size)))
    return window * noise if divides_people else noise


def ratios() -> dict[int, float]:
    """Return the variance if epsilon is divided over that if people are, by window; exact."""
    return {
        window: day_variance(window, divides_people=False) / day_variance(window, divides_people=True)
        for window in RATIOS
    }


def exact_errors() -> tuple[float, float]:
    """Return the mean squared errors of LBU and LPU times 10**4, by their exact variance (steady)."""
    sizes = (N, N // WINDOW)
    budget, people = (
        ldp.pure_variance(BASE, n_reports=n, n_population=N, channel=channel)
        for n, channel in zip(sizes, channels(), strict=True)
    )
    return 1e4 * float(budget.mean()), 1e4 * float(people.mean())


def main() -> int:
    """Print the table; always returns 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    options = parser.parse_args()
    for scenario, stated in STATED.items():
        found = [runs.mean(of_method) for of_method in errors(scenario, options.runs).T]
        row = " ".join(f"{each.value:.3f}±{each.std_error:.3f}" for each in found)
        sys.stdout.write(f"{scenario}: {row} (stated {stated})\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
