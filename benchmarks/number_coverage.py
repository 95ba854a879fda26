"""Coverage of the intervals of numbers: means, shares above cuts and quantiles, over many keys.

Threshold reports and the square wave, at the size of the demo's mean day, of numbers that are spread out and
of numbers of which nearly all are the same. A share of intervals that hold the truth is bad if it is more
than 3.5 standard errors, corrected for the number of cells, below 95%; that of means also if it is above.

    python -m benchmarks.number_coverage --keys 1000
"""

import argparse
import sys
from collections.abc import Iterator
from fractions import Fraction
from math import inf, sqrt
from statistics import NormalDist
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import ldp
from ldp.estimation.numbers.figures import NumberChannel
from ldp.keyed.designs import threshold, wave
from ldp.protocols.numbers.wave import WaveChannel

N: Final = 27_192  # a mean day of the demo
SCALE: Final = ldp.Scale(cuts=(60, 120, 180, 240, 300, 450, 600), unit="min")
EPSILONS: Final = ("1/2", "1", "2", "4")
QUARTILES: Final = (0.25, 0.5, 0.75)
NAMES: Final = ("mean", "shares", "quantiles")
SPREAD: Final = np.minimum(30 + (np.arange(N) * 7919) % 700, 650)
ALIKE: Final = np.where(np.arange(N) % 50 > 0, 20, 500)


def coverage(channel: NumberChannel, numbers: NDArray[np.int64], *, keys: int) -> NDArray[np.float64]:
    """Share of the intervals that hold the truth: of the mean, of shares and of quartiles."""
    people = np.arange(len(numbers), dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    levels = SCALE.levels(numbers)
    ends = np.array(SCALE.ends)[levels]
    truth = (numbers[:, np.newaxis] >= np.array(SCALE.cuts)).mean(axis=0)
    ordered, hits = np.sort(numbers), np.zeros(3)
    answers: Any = wave.answers if isinstance(channel, WaveChannel) else threshold.answers
    asked: dict[str, Any] = {"channel": channel, "n_population": len(numbers)}
    for run in range(keys):
        key = run.to_bytes(16, "big")
        drawn = ldp.KeyedStream(key).uniform_int(len(numbers), 0, 2**30).argsort()[: len(numbers) // 2]
        fields = {"pseudonyms": people[drawn], "prf": ldp.KeyedPrf(key), "indicator": 0, "plan_version": 1}
        codes = answers(levels[drawn], channel=channel, **fields)
        counts = np.bincount(codes, minlength=channel.n_codes)
        mean, shares = ldp.number_mean(counts, scale=SCALE, **asked), ldp.number_survival(counts, **asked)
        hits[0] += mean.ci_low <= ends.mean() <= mean.ci_high
        hits[1] += ((shares.ci_low <= truth) & (truth <= shares.ci_high)).mean()
        for share in QUARTILES:
            found = ldp.threshold_quantile(shares, scale=SCALE, share=share)
            true = ordered[int(share * len(numbers))]
            hits[2] += (found.ci_low <= true < (found.ci_high or inf)) / len(QUARTILES)
    return hits / keys


def cells(keys: int) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Coverage of each kind of reports at each epsilon, of both sets of numbers."""
    for epsilon in EPSILONS:
        for name, numbers in (("spread", SPREAD), ("alike", ALIKE)):
            channels: tuple[NumberChannel, ...] = (
                ldp.threshold_channel(epsilon=Fraction(epsilon), spacings=SCALE.spacings),
                ldp.wave_channel(epsilon=Fraction(epsilon), n_levels=len(SCALE.ends)),
            )
            for kind, channel in zip(("thresholds", "wave"), channels, strict=True):
                yield f"{kind}, epsilon {epsilon}, {name}", coverage(channel, numbers, keys=keys)


def main() -> int:
    """Print a row for each cell; 1 if one is bad."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keys", type=int, default=1000)
    keys = parser.parse_args().keys
    n_cells = len(EPSILONS) * 4 * len(NAMES)
    tail = (1 - NormalDist().cdf(3.5)) / n_cells
    reach = NormalDist().inv_cdf(1 - tail) * sqrt(0.95 * 0.05 / keys)
    sys.stdout.write(f"| reports | {' | '.join(NAMES)} |\n|--|--|--|--|\n")
    is_bad = False
    for name, found in cells(keys):
        sys.stdout.write(f"| {name} | {' | '.join(f'{each:.3f}' for each in found)} |\n")
        is_bad |= bool((found < 0.95 - reach).any() or found[0] > 0.95 + reach)
    sys.stdout.write("bad\n" if is_bad else f"none more than {reach:.3f} below 95%\n")
    return int(is_bad)


if __name__ == "__main__":
    sys.exit(main())
