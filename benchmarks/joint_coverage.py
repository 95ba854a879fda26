"""Do intervals of means by category and of modelled tables hold the truth? Many independent keys, one crowd.

Prints a markdown table: for each figure the share of its 95% intervals that hold the truth, and the mean
squared error over the mean of the stated variances. Means must cover 95% within 3.5 standard errors,
corrected for the number of categories; intervals of a model are approximate, and must cover at least 93%
where the model holds.

    python -m benchmarks.joint_coverage --keys 1000 --processes 2
"""

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from itertools import combinations
from statistics import NormalDist
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import ldp
from ldp.estimation.joint.crosstab import Reports, Shares
from ldp.estimation.joint.means import means_by
from ldp.estimation.joint.three_way import Pair, three_way
from ldp.privacy.joint import joint_codes
from ldp.protocols.numbers.threshold import Scale
from ldp.protocols.projective_space import value_counts

N: Final = 27_192  # people of the demo's week
PEOPLE: Final = np.arange(N, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
EPSILON: Final = Fraction(2)
SCALE: Final = Scale(cuts=(60, 120, 180, 300, 600), unit="min")
CATEGORIES: Final = 8
SIZES: Final = (3, 4, 6)  # of the attributes of the model
AXES: Final = tuple(combinations(range(3), 2))
REDRAWS: Final = 100
LEVEL: Final = 0.95
APPROXIMATE: Final = 0.93
KEYS_PER_TASK: Final = 25

Floats = NDArray[np.float64]
Sums = NDArray[np.float64]  # of a figure and its cells: intervals that hold, squared errors, stated variances


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """True values of everyone, and what is true of them."""

    category: NDArray[np.int32]
    number: NDArray[np.int32]
    means: Floats
    table: Floats
    attributes: tuple[NDArray[np.int32], ...]


@cache
def crowd() -> Crowd:
    """Build the crowd, always the same; once per process."""
    stream = ldp.KeyedStream(b"crowd of joints ")
    uniform = stream.words(2 * N).reshape(2, N) / 2.0**64
    shares = 1 / np.arange(1, CATEGORIES + 1)
    category = np.searchsorted(np.cumsum(shares / shares.sum()), uniform[0]).clip(0, CATEGORIES - 1)
    number = np.minimum(-90 * (1 + 0.1 * category) * np.log1p(-uniform[1]), 900).astype(np.int32)
    reached = np.array([SCALE.minimum, *SCALE.cuts])[SCALE.levels(number)]
    table = np.ones(SIZES)
    for left, axes in enumerate(reversed(AXES)):
        sizes = [SIZES[axis] for axis in axes]
        weights = 0.2 + 1.8 * stream.words(math.prod(sizes)).reshape(sizes) / 2.0**64
        table = table * np.expand_dims(weights, left)
    # People who are exactly as the table says, so that the model holds but for rounding.
    ends = np.rint(np.cumsum(table.ravel() / table.sum()) * N)
    cells = np.searchsorted(ends, np.arange(N), side="right")
    return Crowd(
        category=category.astype(np.int32),
        number=number,
        means=np.array([reached[category == each].mean() for each in range(CATEGORIES)]),
        table=np.bincount(cells, minlength=math.prod(SIZES)).reshape(SIZES) / N,
        attributes=tuple(each.astype(np.int32) for each in np.unravel_index(cells, SIZES)),
    )


@cache
def plan_of_means() -> ldp.PlanSpec:
    """Return a plan of a category, a number and both together."""
    both = (CATEGORIES + 1) * 3
    return plan_of(
        {"slug": "category", "domain_size": CATEGORIES},
        {"slug": "number", "domain_size": len(SCALE.cuts), "scale": SCALE},
        {"slug": "both", "domain_size": both, "parts": ("category", "number")},
    )


@cache
def plan_of_pairs() -> ldp.PlanSpec:
    """Return a plan of three attributes and their pairs."""
    singles = [{"slug": f"a{axis}", "domain_size": size} for axis, size in enumerate(SIZES)]
    pairs = [
        {
            "slug": f"a{first}-a{second}",
            "domain_size": (SIZES[first] + 1) * (SIZES[second] + 1),
            "parts": (f"a{first}", f"a{second}"),
        }
        for first, second in AXES
    ]
    return plan_of(*singles, *pairs)


def plan_of(*asked: dict[str, Any]) -> ldp.PlanSpec:
    """Return a plan of one day of these indicators, each for an equal share of the people."""
    specs = tuple(ldp.IndicatorSpec(**({"kind": "daily", "epsilon": EPSILON} | each)) for each in asked)
    share, rest = divmod(2**64, len(specs))
    shares = (share + rest, *[share] * (len(specs) - 1))
    return ldp.PlanSpec(
        mechanism="smp-grr", unit="profile", version=1, days=1, indicators=specs, shares=shares
    )


def reports_of(
    plan: ldp.PlanSpec,
    index: int,
    sanitiser: ldp.Sanitiser,
    code: Callable[[NDArray[np.int64]], NDArray[np.int32]],
) -> Reports:
    """Reports on an indicator of those who are asked for it; `code` : of some rows their true values."""
    rows = np.flatnonzero(sanitiser.asked(PEOPLE) == index)
    words = sanitiser.report(index, PEOPLE[rows], code(rows), day=1)[:, 0]
    channel: Any = plan.answer_channel(index)
    seen = np.bincount(words, minlength=getattr(channel, "n_codes", channel.domain_size)).astype(np.int64)
    counts = value_counts(seen, channel=channel)
    return Reports.of_counts(counts, channel=channel, n_reports=rows.size, n_population=N)


def means_of(key: bytes) -> tuple[Shares, Floats]:
    """Means by category under a key, and the true ones."""
    plan = plan_of_means()
    sanitiser = ldp.Sanitiser(plan, ldp.KeyedPrf(key))

    def code(rows: NDArray[np.int64]) -> NDArray[np.int32]:
        sides = sanitiser.sides(1, PEOPLE[rows], SCALE.levels(crowd().number[rows]))
        return joint_codes([crowd().category[rows], sides], sizes=(CATEGORIES, 2))

    codes = np.arange((CATEGORIES + 1) * 3).reshape(CATEGORIES + 1, 3)[:CATEGORIES, :2]
    return means_by(reports_of(plan, 2, sanitiser, code), codes=codes, scale=SCALE), crowd().means


def model_of(key: bytes) -> tuple[Shares, Floats]:
    """Modelled table of three attributes under a key, and the true one."""
    plan = plan_of_pairs()
    sanitiser = ldp.Sanitiser(plan, ldp.KeyedPrf(key))
    pairs = []
    for index, axes in enumerate(AXES, start=len(SIZES)):

        def code(rows: NDArray[np.int64], axes: tuple[int, ...] = axes) -> NDArray[np.int32]:
            values = [crowd().attributes[axis][rows] for axis in axes]
            return joint_codes(values, sizes=[SIZES[axis] for axis in axes])

        pairs.append(Pair(axes=axes, reports=reports_of(plan, index, sanitiser, code)))
    # Of each attribute the last value stands for people without one: there are none.
    sizes = [size + 1 for size in SIZES]
    found = three_way(pairs, sizes=sizes, stream=ldp.KeyedStream(key), redraws=REDRAWS)
    real = tuple(slice(size) for size in SIZES)
    return Shares(**{name: getattr(found, name)[real] for name in Shares.__slots__}), crowd().table


MEANS, MODEL = "mean of a number by category", "modelled table of three attributes"
FIGURES: Final[dict[str, Callable[[bytes], tuple[Shares, Floats]]]] = {
    MEANS: means_of,
    MODEL: model_of,
}


def run_keys(figure: str, keys: list[bytes]) -> Sums:
    """Intervals that hold, squared errors and stated variances of each cell, over some keys."""
    total = np.zeros((3, FIGURES[figure](keys[0])[1].size))
    for key in keys:
        found, truth = FIGURES[figure](key)
        holds = (found.ci_low <= truth) & (truth <= found.ci_high)
        # Fieller's interval has no value where a category may be empty.
        error = np.nan_to_num(found.value - truth)
        stated = np.where(np.isnan(found.value), 0, found.std_error)
        total += np.array([holds, error**2, stated**2]).reshape(3, -1)
    return total


def judged(figure: str, total: Sums, *, n_keys: int) -> tuple[str, bool]:
    """Line of the table, and whether the intervals are as stated."""
    coverage = total[0] / n_keys
    if figure == MODEL:
        is_good = bool(coverage.mean() >= APPROXIMATE)
    else:
        z = NormalDist().inv_cdf(1 - (1 - NormalDist().cdf(3.5)) / coverage.size)
        is_good = bool((abs(coverage - LEVEL) < z * math.sqrt(LEVEL * (1 - LEVEL) / n_keys)).all())
    cells = (coverage.mean(), coverage.min(), coverage.max(), total[1].sum() / total[2].sum())
    words = " | ".join(f"{value:.3f}" for value in cells)
    return f"| {figure} | {coverage.size} | {words} | {'yes' if is_good else 'NO'} |", is_good


def tasks_of(n_keys: int) -> Iterator[list[bytes]]:
    """Keys 0 to n_keys - 1, in tasks."""
    for first in range(0, n_keys, KEYS_PER_TASK):
        yield [key.to_bytes(16, "big") for key in range(first, min(first + KEYS_PER_TASK, n_keys))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keys", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    heads = "| figure | cells | coverage | least | most | squared error / stated | as stated |"
    sys.stdout.write(f"{heads}\n|---|---|---|---|---|---|---|\n")
    are_good = True
    with ProcessPoolExecutor(options.processes) as pool:
        for figure in FIGURES:
            total = sum(pool.map(partial(run_keys, figure), tasks_of(options.keys)))
            line, is_good = judged(figure, np.asarray(total), n_keys=options.keys)
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
            are_good &= is_good
    return 0 if are_good else 1


if __name__ == "__main__":
    sys.exit(main())
