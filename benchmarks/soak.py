"""Are the stated errors true? The FIMU population under many independent study keys, all 28 windows.

For each mechanism at epsilon 1 it prints, per indicator and over all of them, the mean squared error over
the exact variance, and how many of the 95% intervals hold the truth. It fails unless the first lies within
5% of 1 and the second within one point of 95%.

    python -m benchmarks.soak --keys 2000 --processes 2
    python -m benchmarks.soak --mechanism rsfd-ouez --unit attribute --keys 200
"""

import argparse
import sys
import time
from collections.abc import Collection, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, partial
from typing import Final, get_args

import numpy as np
from numpy.typing import NDArray

import ldp
from ldp.estimation.simulation import has_union
from ldp.privacy.plans import Mechanism
from ldp.protocols.channels import Unit
from ldp.protocols.projective_space import value_counts
from mobility.demo.population import Population, build_population

MECHANISMS: Final[tuple[Mechanism, ...]] = get_args(Mechanism)
UNITS: Final[tuple[Unit, ...]] = get_args(Unit)
DAILY: Final = "visit_duration"
KEYS_PER_TASK: Final = 50
MSE_TOLERANCE: Final = 0.05
COVERAGE_TOLERANCE: Final = 0.01

Floats = NDArray[np.float64]
Values = NDArray[np.int32]
Reports = NDArray[np.uint16]


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """Pseudonyms, visitors (first day, last day), per indicator frequencies (category, first, last)."""

    pseudonyms: NDArray[np.uint64]
    visitors: NDArray[np.int64]
    frequencies: tuple[Floats, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """Per indicator, over keys, windows and categories."""

    squared: Floats
    expected: Floats
    covered: Floats
    intervals: Floats

    def __add__(self, other: "Sums") -> "Sums":
        return Sums(
            squared=self.squared + other.squared,
            expected=self.expected + other.expected,
            covered=self.covered + other.covered,
            intervals=self.intervals + other.intervals,
        )


def main() -> int:
    """Run the mechanisms; 0 if all lies within the tolerances."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keys", type=int, default=2000, help="independent study keys")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mechanism", choices=MECHANISMS, action="append", help="default: each of them")
    parser.add_argument(
        "--unit",
        choices=UNITS,
        default="profile",
        help="attribute: fake data then leave the daily indicator out",
    )
    options = parser.parse_args()
    passed = True
    with ProcessPoolExecutor(options.processes) as pool:
        for mechanism in options.mechanism or MECHANISMS:
            started = time.perf_counter()
            keys = study_keys(options.keys, seed=options.seed)
            tasks = [keys[i : i + KEYS_PER_TASK] for i in range(0, len(keys), KEYS_PER_TASK)]
            parts = list(pool.map(partial(run_keys, mechanism, options.unit), tasks))
            total = sum(parts[1:], start=parts[0])
            seconds = time.perf_counter() - started
            write(f"{mechanism}, epsilon 1 per {options.unit}, {len(keys)} keys, {seconds:.0f} s")
            passed &= report(total, make_plan(mechanism, options.unit))
    write("passed" if passed else "FAILED")
    return 0 if passed else 1


def study_keys(n: int, *, seed: int) -> list[bytes]:
    """Independent sanitising keys, the same for a seed."""
    stream = ldp.KeyedStream(seed.to_bytes(16, "big"))
    return [stream.words(2).tobytes() for _ in range(n)]


def report(total: Sums, plan: ldp.PlanSpec) -> bool:
    """Print a line per indicator and one over all; whether each is within the tolerances."""
    passed = True
    rows = [(spec.slug, [index]) for index, spec in enumerate(plan.indicators)]
    for name, chosen in [*rows, ("all", list(range(len(rows))))]:
        ratio = total.squared[chosen].sum() / total.expected[chosen].sum()
        coverage = total.covered[chosen].sum() / total.intervals[chosen].sum()
        good = abs(ratio - 1) <= MSE_TOLERANCE and abs(coverage - 0.95) <= COVERAGE_TOLERANCE
        passed &= good
        mark = "" if good else "   out of tolerance"
        write(f"  {name:18} MSE / variance {ratio:.4f}   coverage {100 * coverage:.2f} %{mark}")
    return passed


def write(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


@cache
def people() -> Population:
    """Build the population; once per process."""
    return build_population(seed=1)


@cache
def make_plan(mechanism: Mechanism, unit: Unit) -> ldp.PlanSpec:
    """Make a plan of all indicators of the population at epsilon 1; the daily one comes last, if at all."""
    slugs = list(people().static)
    if unit == "profile" or not mechanism.startswith("rsfd"):
        slugs.append(DAILY)
    requests = [
        ldp.IndicatorRequest(
            slug=slug,
            kind="daily" if slug == DAILY else "static",
            domain_size=len(people().categories[slug]),
        )
        for slug in slugs
    ]
    return ldp.build_plan(
        mechanism=mechanism, unit=unit, version=1, days=7, epsilon=Decimal(1), indicators=requests
    )


@cache
def truth() -> Truth:
    """Tally the true codes."""
    plan = make_plan("smp-grr", "profile")
    codes = [*people().static.values(), people().durations]
    words = [
        np.where(values < 0, ldp.NO_ANSWER, values).astype(np.uint16)[..., np.newaxis] for values in codes
    ]
    delta = tally(words, plan=plan)
    visitors = ldp.all_unions(delta.visitors)
    return Truth(
        pseudonyms=ldp.KeyedStream(b"pseudonyms: soak").words(people().n_subscribers),
        visitors=visitors,
        frequencies=tuple(ldp.all_unions(counts) / np.maximum(visitors, 1) for counts in delta.counts),
    )


def run_keys(mechanism: Mechanism, unit: Unit, keys: Sequence[bytes]) -> Sums:
    """Sanitise and estimate the whole study once per key."""
    plan = make_plan(mechanism, unit)
    parts = [errors_of(sanitise(plan, key=key), plan=plan) for key in keys]
    return sum(parts[1:], start=parts[0])


def sanitise(plan: ldp.PlanSpec, *, key: bytes) -> ldp.Delta:
    """Report for everyone and tally."""
    sanitiser = ldp.Sanitiser(plan, ldp.KeyedPrf(key))
    nothing = np.full(people().n_subscribers, -1, np.int32)

    def reports(static: Sequence[Values], daily: Values, *, day: int) -> tuple[Reports, ...]:
        return sanitiser.reports(truth().pseudonyms, [*static, daily][: plan.d], day=day)

    static = [*people().static.values()]
    words = list(reports(static, nothing, day=1))
    fresh = [
        index for index, spec in enumerate(plan.indicators) if spec.slug == DAILY or plan.is_renewed(index)
    ]
    is_daily = plan.indicators[-1].slug == DAILY
    durations, sent = np.ascontiguousarray(people().durations.T), []
    for day in range(plan.days if fresh else 0):
        values = nothing
        if is_daily:
            answered = sanitiser.answer_days(plan.d - 1, truth().pseudonyms)
            values = np.where(answered >> np.uint64(day) & np.uint64(1) == 1, durations[day], nothing)
        of_day = static if plan.renews_reports else [nothing] * len(static)
        sent.append(reports(of_day, values, day=day + 1))
    for index in fresh:
        words[index] = np.stack([each[index] for each in sent], axis=1)
    unary = {index for index in range(plan.d) if plan.is_unary(index)}
    return tally(words, plan=plan, unary=unary)


def tally(words: Sequence[Reports], *, plan: ldp.PlanSpec, unary: Collection[int] = ()) -> ldp.Delta:
    """Tally everyone's presence and reports."""
    delta = ldp.Delta.zero(plan)
    presence = people().presence
    ldp.tally_visitors(presence, delta.visitors, sign=1)
    for index, each in enumerate(words):
        ldp.tally_reports(presence, each, delta, index=index, is_unary=index in unary, sign=1)
    return delta


def errors_of(delta: ldp.Delta, *, plan: ldp.PlanSpec) -> Sums:
    """Errors of one study, summed per indicator over windows and categories."""
    sums = np.zeros((4, plan.d))
    visitors = truth().visitors
    for index in range(plan.d):
        channel = plan.channel(index)
        unions, n_reports = ldp.all_unions(delta.counts[index]), ldp.all_unions(delta.n_reports[index])
        for a in range(1, plan.days + 1):
            for b in range(a, plan.days + 1 if has_union(plan, index) else a + 1):
                f = truth().frequencies[index][:, a, b]
                counts = value_counts(unions[:, a, b], channel=channel)
                n, n_population = int(n_reports[a, b]), int(visitors[a, b])
                estimates = ldp.pure_frequencies(
                    counts, n_reports=n, n_population=n_population, channel=channel
                )
                variance = ldp.pure_variance(f, n_reports=n, n_population=n_population, channel=channel)
                covered = (estimates.ci_low <= f) & (f <= estimates.ci_high)
                sums[:, index] += (
                    ((estimates.frequency - f) ** 2).sum(),
                    variance.sum(),
                    covered.sum(),
                    f.size,
                )
    squared, expected, covered_sum, intervals = sums
    return Sums(squared=squared, expected=expected, covered=covered_sum, intervals=intervals)


if __name__ == "__main__":
    sys.exit(main())
