"""Streams: errors of a day if people or epsilon are divided, and of smoothed days, by the product's own code.

    python -m benchmarks.reproduce.streams [--runs 20]

Numbers to compare with are those of the specification of streams (12 to 40 runs a cell; it names its
scenarios without defining them, so ours are chosen to be alike): differences below 20% mean nothing.
"""

import argparse
import sys
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

import ldp
from benchmarks.reproduce import runs
from benchmarks.reproduce.runs import Estimate, Floats
from ldp.estimation.series.smoothing import smooth_days

N, DAYS, WINDOW, RUNS = 30_000, 62, 7, 6
BASE: Final = np.array([20, 15, 12, 10, 8, 8, 7, 6, 5, 4, 3, 2]) / 100
METHODS: Final = ("LPU", "LPU + filter", "LPU + smoother")
# Mean squared errors times 10**4: 12 categories, 62 days, 30,000 people, epsilon 1, windows of 7 days.
STATED: Final = {
    "steady": (9.05, 0.67, 0.14),
    "weekly": (8.93, 5.41, 4.96),
    "drift": (8.94, 1.27, 0.59),
    "event": (8.83, 5.17, 4.38),
}
STATED_BUDGET: Final = (65.9, 64.6, 65.2, 64.9)
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


@cache
def plan() -> ldp.PlanSpec:
    """Return a plan of one stream."""
    asked = ldp.IndicatorRequest(slug="zone", kind="daily", domain_size=BASE.size)
    settings = {"unit": "profile", "version": 1, "days": DAYS, "epsilon": Decimal(1)}
    return ldp.build_plan(mechanism="smp-stream", window_days=WINDOW, indicators=[asked], **settings)


def values(scenario: str) -> NDArray[np.int32]:
    """Values of all people on each day, with the shares of the scenario; shape (62, 30,000)."""
    place = (np.arange(N) + 0.5) / N
    ends = np.cumsum(shares(scenario), axis=1)[:, :-1]
    return np.stack([np.searchsorted(of_day, place) for of_day in ends]).astype(np.int32)


@cache
def errors(scenario: str, n_runs: int = RUNS) -> tuple[Estimate, ...]:
    """Mean squared errors of `METHODS` over categories and days, times 10**4, over runs with fixed keys."""
    truth = values(scenario)
    exact = np.stack([np.bincount(of_day, minlength=BASE.size) for of_day in truth]) / N
    found = np.array([_errors(scenario, run, truth, exact) for run in range(n_runs)])
    spread = found.std(axis=0, ddof=1) / np.sqrt(n_runs) if n_runs > 1 else found[0] * 0
    return tuple(
        Estimate(value=float(value), std_error=float(error))
        for value, error in zip(found.mean(axis=0), spread, strict=True)
    )


def _errors(scenario: str, run: int, truth: NDArray[np.int32], exact: Floats) -> list[float]:
    prf = runs.prf(f"streams/{scenario}", run)
    people = np.arange(1, N + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    sanitiser, channel = ldp.Sanitiser(plan(), prf), plan().answer_channel(0)
    answered = sanitiser.answer_days(0, people)
    estimates, variances = np.empty(exact.shape), np.empty(exact.shape)
    for day in range(DAYS):
        rows = np.flatnonzero(answered >> np.uint64(day) & np.uint64(1))
        codes = sanitiser.report(0, people[rows], truth[day, rows], day=day + 1)[:, 0]
        support = ldp.count_support(codes, channel=channel)
        found = ldp.pure_frequencies(support, n_reports=rows.size, n_population=N, channel=channel)
        estimates[day], variances[day] = found.frequency, found.std_error**2
    smooth = smooth_days(estimates, variances)
    return [
        1e4 * float(np.mean((each - exact) ** 2)) for each in (estimates, smooth.filtered, smooth.smoothed)
    ]


def day_variance(window: int, *, divides_people: bool) -> float:
    """Return n times the variance of a day at frequency 0 (OUE), with epsilon 1 in any window."""
    epsilon = Fraction(1) if divides_people else Fraction(1, window)
    noise = float(ldp.noise_at_zero(ldp.oue_channel(epsilon=epsilon, domain_size=BASE.size)))
    return window * noise if divides_people else noise


def budget_error() -> float:
    """Mean squared error of a day if epsilon is divided (LBU, OUE), times 10**4; exact."""
    channel = ldp.oue_channel(epsilon=Fraction(1, WINDOW), domain_size=BASE.size)
    variance = ldp.pure_variance(BASE, n_reports=N, n_population=N, channel=channel)
    return 1e4 * float(np.mean(variance))


def people_error(*, of_codes: bool) -> float:
    """Mean squared error of a day if people are divided (LPU), with OUE or the plan's codes; exact."""
    channel = plan().answer_channel(0) if of_codes else ldp.oue_channel(epsilon=Fraction(1), domain_size=12)
    variance = ldp.pure_variance(BASE, n_reports=N // WINDOW, n_population=N, channel=channel)
    return 1e4 * float(np.mean(variance))


def main() -> int:
    """Print the table; always returns 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=RUNS)
    options = parser.parse_args()
    for scenario in STATED:
        row = " ".join(f"{each.value:.3f}±{each.std_error:.3f}" for each in errors(scenario, options.runs))
        sys.stdout.write(f"{scenario}: {row} (stated {STATED[scenario]})\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
