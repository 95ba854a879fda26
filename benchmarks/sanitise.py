"""Speed of sanitising and tallying on one thread, beside the same job in vectorised NumPy.

Prints subscribers per second of processor time (median of the runs) and the ratio of both. The NumPy form
draws its bits from the operating system and remembers nothing; ours gives everyone one answer for ever.

    python -m benchmarks.sanitise --subscribers 2000000
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

import ldp
from ldp.params import Mechanism

MECHANISMS: Final[tuple[Mechanism, ...]] = ("smp-grr", "spl-grr")
DOMAIN_SIZES: Final = (3, 3, 8, 12, 37, 11)  # the six static indicators of MS-FIMU
DAYS: Final = 7

Counts = list[NDArray[np.int64]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscribers:
    """Uniform random subscribers: pseudonym, presence, and one value per indicator."""

    pseudonyms: NDArray[np.uint64]
    presence: NDArray[np.uint64]
    values: tuple[NDArray[np.int32], ...]


def main() -> None:
    """Time both forms of both mechanisms."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--subscribers", type=int, default=2_000_000)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    people = make_subscribers(options.subscribers)
    for mechanism in MECHANISMS:
        plan = make_plan(mechanism)
        ours = seconds(partial(with_ldp, people, plan), runs=options.runs)
        other = seconds(partial(with_numpy, people, plan), runs=options.runs)
        sys.stdout.write(
            f"{mechanism}: {options.subscribers / ours / 1e6:.1f} million subscribers/s, "
            f"NumPy {options.subscribers / other / 1e6:.1f}, ratio {other / ours:.1f}\n"
        )


def seconds(job: Callable[[], Counts], *, runs: int) -> float:
    """Median processor time (the machine may be busy otherwise), after one run that compiles."""
    job()
    times = []
    for _ in range(runs):
        started = time.process_time()
        job()
        times.append(time.process_time() - started)
    return statistics.median(times)


def make_subscribers(n: int) -> Subscribers:
    """Draw them from a fixed key."""
    stream = ldp.KeyedStream(b"benchmark people")
    return Subscribers(
        pseudonyms=stream.words(n),
        presence=stream.uniform_int(n, 1, 2**DAYS).astype(np.uint64),
        values=tuple(stream.uniform_int(n, 0, k).astype(np.int32) for k in DOMAIN_SIZES),
    )


def make_plan(mechanism: Mechanism) -> ldp.PlanSpec:
    """All indicators at epsilon 1."""
    requests = [
        ldp.IndicatorRequest(slug=f"indicator-{i}", kind="static", domain_size=k)
        for i, k in enumerate(DOMAIN_SIZES)
    ]
    return ldp.build_plan(
        mechanism=mechanism, unit="profile", version=1, days=DAYS, epsilon=Decimal(1), indicators=requests
    )


def with_ldp(people: Subscribers, plan: ldp.PlanSpec) -> Counts:
    """Sanitise with keyed bits and tally."""
    sanitiser = ldp.Sanitiser(plan, ldp.KeyedPrf(bytes(16)))
    delta = ldp.Delta.zero(plan)
    asked = sanitiser.asked(people.pseudonyms) if plan.is_sampled else None
    for index, values in enumerate(people.values):
        rows = slice(None) if asked is None else np.flatnonzero(asked == index)
        codes = sanitiser.answer(index, people.pseudonyms[rows], values[rows])
        ldp.tally_static(people.presence[rows], codes, delta.counts[index], sign=1)
    return list(delta.counts)


def with_numpy(people: Subscribers, plan: ldp.PlanSpec) -> Counts:
    """Sanitise with bits of the operating system and count patterns of presence."""
    entropy = ldp.SystemEntropy()
    n = people.pseudonyms.size
    asked = entropy.words(n) % np.uint64(plan.d) if plan.is_sampled else None
    counts = []
    for index, values in enumerate(people.values):
        rows = slice(None) if asked is None else np.flatnonzero(asked == index)
        spec = plan.indicators[index]
        channel = ldp.grr_channel(epsilon=spec.epsilon, domain_size=spec.domain_size)
        truth, presence = values[rows], people.presence[rows].astype(np.int64)
        other = (entropy.words(truth.size) % np.uint64(spec.domain_size - 1)).astype(np.int32)
        other += other >= truth
        codes = np.where(entropy.words(truth.size) < np.uint64(channel.threshold), truth, other)
        cells = np.bincount(codes << DAYS | presence, minlength=spec.domain_size << DAYS)
        counts.append(expand(cells.reshape(spec.domain_size, -1)))
    return counts


def expand(patterns: NDArray[np.int64]) -> NDArray[np.int64]:
    """Gap tallies from counts per pattern of presence."""
    out = np.zeros((patterns.shape[0], DAYS + 1, DAYS + 1), np.int64)
    for pattern in range(patterns.shape[1]):
        previous = 0
        for day in range(1, DAYS + 1):
            if pattern >> (day - 1) & 1:
                out[:, previous, day] += patterns[:, pattern]
                previous = day
    return out


if __name__ == "__main__":
    main()
