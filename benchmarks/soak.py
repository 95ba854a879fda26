"""Are the stated errors true? The FIMU population under many independent study keys, all 28 windows.

For each mechanism at epsilon 1 it prints, per indicator and over all of them, the mean squared error over
the exact variance, and how many of the 95 % intervals hold the truth. It fails unless the first lies within
5 % of 1 and the second within one point of 95 %.

    python -m benchmarks.soak --keys 2000 --processes 2
"""

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

import ldp
from ldp.params import Mechanism
from mobility.demo.population import Population, build_population

MECHANISMS: Final[tuple[Mechanism, ...]] = ("smp-grr", "spl-grr")
DAILY: Final = "visit_duration"
KEYS_PER_TASK: Final = 50
MSE_TOLERANCE: Final = 0.05
COVERAGE_TOLERANCE: Final = 0.01

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]


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
    """Run both mechanisms; 0 if all lies within the tolerances."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keys", type=int, default=2000, help="independent study keys")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    passed = True
    with ProcessPoolExecutor(options.processes) as pool:
        for mechanism in MECHANISMS:
            started = time.perf_counter()
            keys = study_keys(options.keys, seed=options.seed)
            tasks = [keys[i : i + KEYS_PER_TASK] for i in range(0, len(keys), KEYS_PER_TASK)]
            parts = list(pool.map(run_keys, [mechanism] * len(tasks), tasks))
            total = sum(parts[1:], start=parts[0])
            seconds = time.perf_counter() - started
            write(f"{mechanism}, epsilon 1, {len(keys)} keys, {seconds:.0f} s")
            passed &= report(total)
    write("passed" if passed else "FAILED")
    return 0 if passed else 1


def study_keys(n: int, *, seed: int) -> list[bytes]:
    """Independent sanitising keys, the same for a seed."""
    stream = ldp.KeyedStream(seed.to_bytes(16, "big"))
    return [stream.words(2).tobytes() for _ in range(n)]


def report(total: Sums) -> bool:
    """Print a line per indicator and one over all; whether each is within the tolerances."""
    passed = True
    indicators = make_plan("smp-grr").indicators
    rows = [(spec.slug, [index]) for index, spec in enumerate(indicators)]
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
def make_plan(mechanism: Mechanism) -> ldp.PlanSpec:
    """All indicators of the population at epsilon 1; the daily one comes last."""
    requests = [
        ldp.IndicatorRequest(
            slug=slug,
            kind="daily" if slug == DAILY else "static",
            domain_size=len(people().categories[slug]),
        )
        for slug in (*people().static, DAILY)
    ]
    return ldp.build_plan(
        mechanism=mechanism, unit="profile", version=1, days=7, epsilon=Decimal(1), indicators=requests
    )


@cache
def truth() -> Truth:
    """Tally the true codes."""
    plan = make_plan("smp-grr")
    n = people().n_subscribers
    codes = [values.astype(np.uint16) for values in people().static.values()]
    durations = np.where(people().durations < 0, ldp.NO_ANSWER, people().durations).astype(np.uint16)
    delta = tally([*codes, durations], rows=[np.arange(n)] * plan.d, plan=plan)
    visitors = ldp.all_unions(delta.visitors)
    return Truth(
        pseudonyms=ldp.KeyedStream(b"pseudonyms: soak").words(n),
        visitors=visitors,
        frequencies=tuple(ldp.all_unions(counts) / np.maximum(visitors, 1) for counts in delta.counts),
    )


def run_keys(mechanism: Mechanism, keys: Sequence[bytes]) -> Sums:
    """Sanitise and estimate the whole study once per key."""
    plan = make_plan(mechanism)
    parts = [errors_of(sanitise(plan, key=key), plan=plan) for key in keys]
    return sum(parts[1:], start=parts[0])


def sanitise(plan: ldp.PlanSpec, *, key: bytes) -> ldp.Delta:
    """Answer for everybody and tally."""
    sanitiser = ldp.Sanitiser(plan, ldp.KeyedPrf(key))
    pseudonyms = truth().pseudonyms
    if plan.is_sampled:
        asked = sanitiser.asked(pseudonyms)
        rows = [np.flatnonzero(asked == index) for index in range(plan.d)]
    else:
        rows = [np.arange(pseudonyms.size)] * plan.d
    codes = [
        sanitiser.answer(index, pseudonyms[rows[index]], values[rows[index]])
        for index, values in enumerate(people().static.values())
    ]
    who, durations = pseudonyms[rows[-1]], people().durations[rows[-1]]
    daily = [
        sanitiser.answer(plan.d - 1, who, np.ascontiguousarray(durations[:, day])) for day in range(plan.days)
    ]
    return tally([*codes, np.stack(daily, axis=1)], rows=rows, plan=plan)


def tally(codes: Sequence[NDArray[np.uint16]], *, rows: Sequence[Rows], plan: ldp.PlanSpec) -> ldp.Delta:
    """Tally everybody's presence, and per indicator the codes of some."""
    delta = ldp.Delta.zero(plan)
    presence = people().presence
    ldp.tally_visitors(presence, delta.visitors, sign=1)
    for index, chosen in enumerate(rows[:-1]):
        ldp.tally_static(presence[chosen], codes[index], delta.counts[index], sign=1)
    ldp.tally_daily(presence[rows[-1]], codes[-1], delta.counts[-1], sign=1)
    return delta


def errors_of(delta: ldp.Delta, *, plan: ldp.PlanSpec) -> Sums:
    """Errors of one study, summed per indicator over windows and categories."""
    sums = np.zeros((4, plan.d))
    visitors = truth().visitors
    for index, spec in enumerate(plan.indicators):
        channel = ldp.grr_channel(epsilon=spec.epsilon, domain_size=spec.domain_size)
        unions = ldp.all_unions(delta.counts[index])
        for a in range(1, plan.days + 1):
            for b in range(a, plan.days + 1):
                f = truth().frequencies[index][:, a, b]
                counts = unions[:, a, b]
                n, n_population = int(counts.sum()), int(visitors[a, b])
                estimates = ldp.grr_frequencies(
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
