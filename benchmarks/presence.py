"""Is presence noise as large as predicted, and do intervals hold? Many independent keys over the same people.

First the noise alone, by the sampler of the vault: its standard deviation per gap cell and in every union of
days, against the formula, in standard errors. Then whole studies: answers are sanitised and counted with the
cap of days, and noise is added. For each plan it prints how many of the 95% intervals hold the true number,
and the ratio of errors and stated ones. It fails unless every spread is within 4 standard errors of
its prediction, at least 95% less 1.5 points of the intervals hold, and of shares and visitors at most 95%
plus 3 points (those of totals are rounded outwards to whole persons).

    python -m benchmarks.presence --keys 1000
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from math import sqrt
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

import ldp
from ldp.estimation.noisy_estimators import UnionNoise, noisy_frequencies, noisy_total, noisy_visitors
from ldp.keyed.noise.presence import noise_delta
from ldp.privacy.plans import Mechanism
from ldp.privacy.presence import CountNoise, PresenceSpec, first_days
from ldp.protocols.channels import GrrChannel
from ldp.protocols.geometric import GeometricChannel

DAYS: Final = 7
WINDOWS: Final = [(a, b) for a in range(1, DAYS + 1) for b in range(a, DAYS + 1)]
N_PEOPLE: Final = 6000
LEVEL: Final = 0.95
TOLERANCE: Final = 0.015
SPREAD: Final = 4.0  # standard errors of a standard deviation
# Mechanism, days of a subscriber that count, presence epsilon.
PLANS: Final[tuple[tuple[Mechanism, int, str], ...]] = (
    ("smp-grr", 7, "1"),
    ("smp-grr", 2, "1"),
    ("smp-grr", 7, "0.25"),
    ("spl-grr", 3, "2"),
)

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


@dataclass(slots=True, kw_only=True)
class Score:
    """Sums over keys and windows, of one quantity under one plan."""

    intervals: int = 0
    covered: int = 0
    squared: float = 0.0
    stated: float = 0.0
    refused: int = 0

    def add(self, value: Floats, truth: Floats, std_error: Floats, low: Floats, high: Floats) -> None:
        self.intervals += value.size
        self.covered += int(((low <= truth) & (truth <= high)).sum())
        self.squared += float(((value - truth) ** 2).sum())
        self.stated += float((std_error**2).sum())

    @property
    def coverage(self) -> float:
        return self.covered / self.intervals

    @property
    def error_ratio(self) -> float:
        """Root mean squared error over the stated one."""
        return sqrt(self.squared / self.stated)


@dataclass(slots=True, kw_only=True)
class Spread:
    """Noise of one union of days over keys, or of every cell."""

    name: str
    predicted: float
    excess: float
    values: list[Floats] = field(default_factory=list)

    @property
    def measured(self) -> float:
        return float(np.concatenate(self.values).std())

    @property
    def off_by(self) -> float:
        """Distance of the measured from the predicted one, in standard errors."""
        n = sum(values.size for values in self.values)
        return (self.measured - self.predicted) / (self.predicted * sqrt((self.excess + 2) / (4 * n)))


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """Presence (bit t-1 = day t), a lasting value of each indicator, and a value of each day."""

    pseudonyms: NDArray[np.uint64]
    bitmaps: NDArray[np.uint64]
    static: tuple[NDArray[np.int32], ...]
    daily: NDArray[np.int32]


def main() -> int:
    """Print the tables; 0 if all holds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keys", type=int, default=1000, help="independent study keys")
    options = parser.parse_args()
    found = spreads(options.keys)
    scores = run(options.keys)
    sys.stdout.write("\n".join([*spread_table(found), "", *score_table(scores)]) + "\n")
    return 0 if all(map(is_as_predicted, found)) and all(map(holds, scores, scores.values())) else 1


def plan_of(mechanism: Mechanism, days: int, epsilon: str) -> ldp.PlanSpec:
    """Two lasting indicators and one of every day, at epsilon 2."""
    asked = [("gender", "static", 3), ("region", "static", 8), ("stay", "daily", 4)]
    return ldp.build_plan(
        mechanism=mechanism,
        unit="attribute",
        version=1,
        days=DAYS,
        epsilon=Decimal(6 if mechanism == "spl-grr" else 2),
        indicators=[
            ldp.IndicatorRequest(slug=slug, kind=kind, domain_size=size)  # type: ignore[arg-type]
            for slug, kind, size in asked
        ],
        presence_epsilon=Decimal(epsilon),
        presence_days=days,
    )


def spreads(keys: int) -> list[Spread]:
    """Noise of the visitors at presence_epsilon 1 and 7 days, over keys: of cells, and of every union."""
    plan = plan_of("smp-grr", 7, "1")
    variance, excess = noises(plan)[0].moments
    of_cells = Spread(name="cell", predicted=sqrt(variance), excess=excess)
    of_unions = {
        (a, b): Spread(
            name=f"union {a}..{b}, {a * (b - a + 1)} cells",
            predicted=sqrt(a * (b - a + 1) * variance),
            excess=excess / (a * (b - a + 1)),
        )
        for a, b in WINDOWS
    }
    for prf in _keys(keys, seed=2):
        noise = noise_delta(plan, prf=prf, first_day=1, last_day=DAYS).visitors
        of_cells.values.append(noise[np.triu_indices(DAYS + 1, 1)].astype(np.float64))
        for (a, b), spread in of_unions.items():
            spread.values.append(np.array([ldp.union(noise, first_day=a, last_day=b)], np.float64))
    return [of_cells, *of_unions.values()]


def run(keys: int, *, seed: int = 1) -> dict[tuple[str, str], Score]:
    """Scores of each quantity under each plan over `keys` study keys."""
    scores: dict[tuple[str, str], Score] = {}
    for settings in PLANS:
        plan, of_plan = plan_of(*settings), "{} m={} epsilon={}".format(*settings)
        mine = {name: scores.setdefault((of_plan, name), Score()) for name in ("total", "share", "visitors")}
        for prf in _keys(keys, seed=seed):
            judge(plan, noisy_study(plan, prf), mine)
    return scores


def noisy_study(plan: ldp.PlanSpec, prf: ldp.KeyedPrf) -> ldp.Delta:
    """All that the vault lets cross of the people."""
    everybody, sanitiser = people(), ldp.Sanitiser(plan, prf)
    capped = counted_days(plan)
    delta = noise_delta(plan, prf=prf, first_day=1, last_day=DAYS)
    exact = ldp.Delta.zero(plan)
    ldp.tally_visitors(capped, exact.visitors, sign=1)
    nothing = np.full(capped.size, -1, np.int32)
    static = sanitiser.reports(everybody.pseudonyms, [*everybody.static, nothing])
    daily = [
        sanitiser.reports(everybody.pseudonyms, [nothing, nothing, everybody.daily[:, day].copy()])[2]
        for day in range(DAYS)
    ]
    for index, words in enumerate([*static[:2], np.stack(daily, axis=1)]):
        ldp.tally_reports(capped, words, exact, index=index, is_unary=False, sign=1)
    delta.add(exact)
    return delta


def judge(plan: ldp.PlanSpec, delta: ldp.Delta, scores: dict[str, Score]) -> None:
    """Add all windows of a study to the scores."""
    truths, (of_visitors, of_answers) = true_counts(plan), noises(plan)
    for a, b in WINDOWS:
        n_cells = a * (b - a + 1)
        total = noisy_total(
            int(ldp.union(delta.visitors, first_day=a, last_day=b)),
            noise=UnionNoise(channel=of_visitors, n_cells=n_cells),
            level=LEVEL,
        )
        true_total = float(truths[0][a, b].sum())
        ends = (total.value, true_total, total.std_error, total.ci_low, total.ci_high)
        scores["total"].add(*(np.array([end], np.float64) for end in ends))
        noise = UnionNoise(channel=of_answers, n_cells=n_cells)
        for index in range(plan.d):
            channel = cast(GrrChannel, plan.channel(index))
            counts = ldp.union(delta.counts[index], first_day=a, last_day=b)
            try:
                found = noisy_frequencies(
                    counts, n_visitors=total.value, noise=noise, channel=channel, level=LEVEL
                )
                value, low, high = noisy_visitors(found, total=total)
            except ldp.LdpError:
                scores["share"].refused += 1
                continue
            truth = truths[index][a, b]
            share = truth / true_total
            scores["share"].add(found.frequency, share, found.std_error, found.ci_low, found.ci_high)
            spread = np.sqrt((found.std_error * total.value) ** 2 + (found.frequency * total.std_error) ** 2)
            scores["visitors"].add(value, truth, spread, low, high)


@cache
def people() -> People:
    """People who come on some of the days; later values of a day differ from earlier ones."""
    stream = ldp.KeyedStream(bytes(15) + b"\7")
    # Each day with probability 3/8 at least: two draws together.
    bitmaps = stream.uniform_int(N_PEOPLE, 1, 2**DAYS) & stream.uniform_int(N_PEOPLE, 1, 2**DAYS)

    def skewed(size: int) -> NDArray[np.int32]:
        draws = (stream.uniform_int(N_PEOPLE, 0, size) for _ in range(2))
        return np.minimum(*draws).astype(np.int32)

    return People(
        pseudonyms=stream.words(N_PEOPLE),
        bitmaps=bitmaps.astype(np.uint64),
        static=(skewed(3), skewed(8)),
        daily=np.stack([skewed(4) for _ in range(DAYS)], axis=1),
    )


def noises(plan: ldp.PlanSpec) -> tuple[GeometricChannel, GeometricChannel]:
    """Noise of a cell of the visitors, and of one of the answers."""
    visitors, answers = cast(CountNoise, plan.visitor_noise), cast(CountNoise, plan.answer_noise)
    return visitors.channel, answers.channel


def counted_days(plan: ldp.PlanSpec) -> NDArray[np.uint64]:
    """The people's first days, as many as count."""
    return first_days(people().bitmaps, most=cast(PresenceSpec, plan.presence).max_days)


@cache
def true_counts(plan: ldp.PlanSpec) -> list[dict[tuple[int, int], Floats]]:
    """Per indicator and window the people of each value, on the first of their days that count."""
    everybody, capped = people(), counted_days(plan)
    found = []
    for index, asked in enumerate(plan.indicators):
        by_window = {}
        for a, b in WINDOWS:
            there = capped[:, np.newaxis] >> np.arange(a - 1, b).astype(np.uint64) & np.uint64(1) == 1
            inside, first = there.any(axis=1), there.argmax(axis=1) + a - 1
            values = (
                everybody.static[index]
                if asked.kind == "static"
                else everybody.daily[np.arange(first.size), first]
            )
            counts = np.bincount(values[inside], minlength=asked.domain_size)
            by_window[a, b] = counts.astype(np.float64)
        found.append(by_window)
    return found


def _keys(n: int, *, seed: int) -> Iterator[ldp.KeyedPrf]:
    stream = ldp.KeyedStream(seed.to_bytes(16, "big"))
    for _ in range(n):
        yield ldp.KeyedPrf(stream.words(2).tobytes())


def is_as_predicted(spread: Spread) -> bool:
    return abs(spread.off_by) < SPREAD


def holds(name: tuple[str, str], score: Score) -> bool:
    """Totals are rounded outwards to whole persons, so theirs may cover more."""
    is_enough = score.coverage >= LEVEL - TOLERANCE
    return is_enough and (name[1] == "total" or score.coverage <= LEVEL + 2 * TOLERANCE)


def spread_table(found: list[Spread]) -> list[str]:
    lines = ["| noise of | predicted sd | measured sd | off by, standard errors |", "|---|---|---|---|"]
    for spread in found:
        mark = "" if is_as_predicted(spread) else " (out of tolerance)"
        numbers = f"{spread.predicted:.3f} | {spread.measured:.3f} | {spread.off_by:+.2f}"
        lines.append(f"| {spread.name} | {numbers}{mark} |")
    return lines


def score_table(scores: dict[tuple[str, str], Score]) -> list[str]:
    lines = [
        "| plan | of | intervals | hold the truth | error / stated | too few answers |",
        "|---|---|---|---|---|---|",
    ]
    for (plan, name), score in scores.items():
        mark = "" if holds((plan, name), score) else " (out of tolerance)"
        numbers: tuple[Any, ...] = (score.intervals, score.coverage, score.error_ratio, score.refused)
        lines.append("| {} | {} | {} | {:.2%} | {:.3f} | {}{} |".format(plan, name, *numbers, mark))
    return lines


if __name__ == "__main__":
    sys.exit(main())
