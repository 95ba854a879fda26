"""Do the intervals and verdicts of comparisons hold? Many independent keys over the same people.

For each kind of comparison it prints how many of the 95% intervals hold the true difference, in how many
tables any row is wrongly said to differ (without a correction, and with Holm's), and how large the stated
error is compared with that of estimates with nothing in common. It fails unless exact intervals cover 95% to
1.5 points, bounded ones at least 95% less 1.5 points, and corrected tables err in at most 5% plus 1.5.

    python -m benchmarks.compare_coverage --keys 1000
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache, partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

import ldp
from ldp.estimation.contrasts import (
    Sample,
    day_difference,
    independent_difference,
    sample_of,
    value_difference,
)
from ldp.estimation.multiple import excludes_zero, holm
from ldp.estimation.windows import IndicatorTallies, Quantity, Window, WindowEstimate, window_difference

DAYS: Final = 5
N_PEOPLE: Final = 3000
N_VALUES: Final = 4
KINDS: Final = ("static", "daily")
MEASURES: Final[tuple[Quantity, ...]] = ("frequency", "visitors")
TOLERANCE: Final = 0.015
LEVEL: Final = 0.95
WHOLE: Final = Window(1, DAYS)

Floats = NDArray[np.float64]
Intervals = Callable[[float], WindowEstimate]


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """Presence (bit t-1 = day t), the lasting value, and the value of each day."""

    pseudonyms: NDArray[np.uint64]
    presence: NDArray[np.uint64]
    static: NDArray[np.int32]
    daily: NDArray[np.int32]

    def seen(self, kind: str, window: Window, *, of: Quantity) -> Floats:
        """True frequencies or visitors of a window, by the value on the first day in it."""
        days = np.arange(window.first_day - 1, window.last_day)
        there = self.presence[:, np.newaxis] >> days.astype(np.uint64) & np.uint64(1) == 1
        inside = there.any(axis=1)
        first = days[there.argmax(axis=1)]
        values = self.static if kind == "static" else self.daily[np.arange(first.size), first]
        counts = np.bincount(values[inside], minlength=N_VALUES).astype(np.float64)
        return counts / counts.sum() if of == "frequency" else counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A comparison in one simulated pair of studies, with its truth; `apart` is the error if independent."""

    name: str
    of: Quantity
    intervals: Intervals
    truth: Floats
    apart: Floats
    rows: NDArray[np.bool_]


@dataclass(slots=True, kw_only=True)
class Score:
    """Sums over keys."""

    is_exact: bool
    keys: int = 0
    covered: float = 0.0
    false_alone: int = 0
    false_held: int = 0
    ratio: float = 0.0

    @property
    def passes(self) -> bool:
        coverage = self.covered / self.keys
        is_covered = coverage >= LEVEL - TOLERANCE and (not self.is_exact or coverage <= LEVEL + TOLERANCE)
        return is_covered and self.false_held / self.keys <= 1 - LEVEL + TOLERANCE


def main() -> int:
    """Print the table; 0 if all holds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keys", type=int, default=1000, help="independent study keys")
    options = parser.parse_args()
    scores = run(options.keys)
    sys.stdout.write("\n".join(table(scores)) + "\n")
    return 0 if all(score.passes for score in scores.values()) else 1


def run(keys: int, *, seed: int = 1) -> dict[tuple[str, str], Score]:
    """Score of each comparison in each measure over `keys` pairs of keys."""
    scores: dict[tuple[str, str], Score] = {}
    stream = ldp.KeyedStream(seed.to_bytes(16, "big"))
    for _ in range(keys):
        here, there = (study(people(part), key=stream.words(2).tobytes()) for part in (0, 1))
        for case in cases(here, there):
            judge(case, scores)
    return scores


def judge(case: Case, scores: dict[tuple[str, str], Score]) -> None:
    """Add one table to the scores."""
    found = case.intervals(LEVEL)
    score = scores.setdefault((case.name, case.of), Score(is_exact=found.is_exact))
    rows = case.rows

    def about_truth(level: float) -> WindowEstimate:
        # Against the true difference instead of 0, every row that differs is a false one.
        at = case.intervals(level)
        return replace(at, ci_low=at.ci_low - case.truth, ci_high=at.ci_high - case.truth)

    wrong = excludes_zero(about_truth(LEVEL)) & rows
    score.keys += 1
    score.covered += 1 - float(wrong[rows].mean())
    score.false_alone += bool(wrong.any())
    score.false_held += bool(holm(about_truth, rows=rows, level=LEVEL).any())
    score.ratio += float((found.std_error[rows] / case.apart[rows]).mean())


def cases(here: dict[str, IndicatorTallies], there: dict[str, IndicatorTallies]) -> Iterator[Case]:
    """All comparisons, in both measures."""
    for of in MEASURES:
        for kind, name, first, second in (
            ("static", "windows that overlap", Window(1, 2), Window(2, 4)),
            ("static", "windows that touch", Window(1, 1), Window(2, 2)),
            ("static", "windows apart", Window(1, 1), Window(4, 5)),
            ("daily", "daily, same first day", Window(1, 2), Window(1, 4)),
            ("daily", "daily, other days", Window(1, 1), Window(2, 2)),
        ):
            yield between_windows(here[kind], name, first, second, of=of)
        for kind in KINDS:
            yield between_values(here[kind], of=of)
            yield against_baseline(here[kind], of=of)
        yield between_studies(here["static"], there["static"], of=of)


def between_windows(
    tallies: IndicatorTallies, name: str, first: Window, second: Window, *, of: Quantity
) -> Case:
    """The second window less the first."""
    samples = [sample_of(tallies, window) for window in (first, second)]
    truth = people(0).seen(tallies.kind, second, of=of) - people(0).seen(tallies.kind, first, of=of)

    def intervals(level: float) -> WindowEstimate:
        return window_difference(tallies, first=first, second=second, of=of, level=level)

    return Case(
        name=name, of=of, intervals=intervals, truth=truth, apart=apart(samples, [1, 1], of=of), rows=ALL
    )


def between_values(tallies: IndicatorTallies, *, of: Quantity) -> Case:
    """All other values less the last one, over all days."""
    sample = sample_of(tallies, WHOLE)
    seen = people(0).seen(tallies.kind, WHOLE, of=of)
    contrast = value_difference(sample, reference=N_VALUES - 1, of=of)
    error = errors(sample, of=of)
    return Case(
        name=f"categories, {tallies.kind}",
        of=of,
        intervals=lambda level: contrast.estimate(level=level),
        truth=seen - seen[-1],
        apart=np.hypot(error, error[-1]),
        rows=np.arange(N_VALUES) < N_VALUES - 1,
    )


def against_baseline(tallies: IndicatorTallies, *, of: Quantity) -> Case:
    """The third day less the mean of the others."""
    others = [day for day in range(1, DAYS + 1) if day != 3]
    days = [3, *others]
    seen = [people(0).seen(tallies.kind, Window(day, day), of=of) for day in days]
    contrast = day_difference(tallies, day=3, baseline=others, of=of)
    samples = [sample_of(tallies, Window(day, day)) for day in days]
    weights = [1, *[1 / len(others)] * len(others)]
    return Case(
        name=f"day and baseline, {tallies.kind}",
        of=of,
        intervals=lambda level: contrast.estimate(level=level),
        truth=seen[0] - np.mean(seen[1:], axis=0),
        apart=apart(samples, weights, of=of),
        rows=ALL,
    )


def between_studies(here: IndicatorTallies, there: IndicatorTallies, *, of: Quantity) -> Case:
    """A later study less an earlier one, half of whose people are the same."""
    samples = [sample_of(tallies, WHOLE) for tallies in (here, there)]
    contrast = independent_difference(samples[0], samples[1], of=of)
    return Case(
        name="two studies",
        of=of,
        intervals=lambda level: contrast.estimate(level=level),
        truth=people(1).seen("static", WHOLE, of=of) - people(0).seen("static", WHOLE, of=of),
        apart=apart(samples, [1, 1], of=of),
        rows=ALL,
    )


def errors(sample: Sample, *, of: Quantity) -> Floats:
    """Standard errors of the published estimates."""
    return sample.estimates().std_error * (sample.n_population if of == "visitors" else 1)


def apart(samples: Sequence[Sample], weights: Sequence[float], *, of: Quantity) -> Floats:
    """Standard error of a sum of independent estimates."""
    square = sum(
        (weight * errors(sample, of=of)) ** 2 for sample, weight in zip(samples, weights, strict=True)
    )
    return np.asarray(np.sqrt(square), np.float64)


ALL: Final = np.ones(N_VALUES, np.bool_)


@cache
def people(part: int) -> People:
    """Two populations of which half are in both; values that go with presence, some of them rare."""
    stream = ldp.KeyedStream(b"those to compare")
    presence = stream.uniform_int(2 * N_PEOPLE, 1, 2**DAYS).astype(np.uint64)
    draws = stream.uniform_int(2 * N_PEOPLE, 0, 100)
    static = np.searchsorted([52, 90, 98], draws, side="right").astype(np.int32)
    static = np.where(presence % np.uint64(8) == 3, 1, static).astype(np.int32)
    changes = np.stack([stream.uniform_int(2 * N_PEOPLE, 0, 10) < 3 for _ in range(DAYS)], axis=1)
    daily = np.where(changes, (static[:, np.newaxis] + 1) % N_VALUES, static[:, np.newaxis]).astype(np.int32)
    chosen = slice(part * N_PEOPLE // 2, part * N_PEOPLE // 2 + N_PEOPLE)
    return People(
        pseudonyms=np.arange(1, 2 * N_PEOPLE + 1, dtype=np.uint64)[chosen] * np.uint64(0x9E3779B97F4A7C15),
        presence=presence[chosen],
        static=static[chosen],
        daily=daily[chosen],
    )


@cache
def plan() -> ldp.PlanSpec:
    """Every person answers one of the two indicators (GRR, epsilon 2)."""
    return ldp.build_plan(
        mechanism="smp-grr",
        unit="attribute",
        version=1,
        days=DAYS,
        epsilon=Decimal(2),
        indicators=[ldp.IndicatorRequest(slug=kind, kind=kind, domain_size=N_VALUES) for kind in KINDS],
    )


def study(crowd: People, *, key: bytes) -> dict[str, IndicatorTallies]:
    """Sanitise and tally everyone once, as a worker does."""
    spec = plan()
    sanitiser = ldp.Sanitiser(spec, ldp.KeyedPrf(key))
    nothing = np.full(crowd.presence.size, -1, np.int32)
    delta = ldp.Delta.zero(spec)
    ldp.tally_visitors(crowd.presence, delta.visitors, sign=1)
    by_day = [
        sanitiser.reports(crowd.pseudonyms, [nothing, np.ascontiguousarray(crowd.daily[:, day])])[1]
        for day in range(DAYS)
    ]
    words = (sanitiser.reports(crowd.pseudonyms, [crowd.static, nothing])[0], np.stack(by_day, axis=1))
    add = partial(ldp.tally_reports, is_unary=False, sign=1)
    for index, each in enumerate(words):
        add(crowd.presence, each, delta, index=index)
    return {
        kind: IndicatorTallies(
            counts=delta.counts[index],
            n_reports=delta.n_reports[index],
            visitors=delta.visitors,
            kind=kind,
            channel=spec.channel(index),
        )
        for index, kind in enumerate(KINDS)
    }


def table(scores: dict[tuple[str, str], Score]) -> list[str]:
    """Lines of a table in Markdown."""
    lines = [
        "| comparison | measure | error is | 95 % intervals that hold | tables with a false row | with Holm "
        "| error beside independent ones |",
        "|---|---|---|---|---|---|---|",
    ]
    for (name, of), score in scores.items():
        shares = [score.covered, score.false_alone, score.false_held]
        numbers = " | ".join(f"{100 * share / score.keys:.1f} %" for share in shares)
        kind = "exact" if score.is_exact else "a bound"
        mark = "" if score.passes else " (out of tolerance)"
        lines.append(f"| {name} | {of} | {kind} | {numbers} | {score.ratio / score.keys:.2f}{mark} |")
    return lines


if __name__ == "__main__":
    sys.exit(main())
