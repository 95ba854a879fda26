"""Do the intervals of derived figures hold the truth? One population under many independent study keys.

Prints a markdown table: per mechanism and figure the share of 95% intervals that hold the truth, and how
much wider bounds are (for the largest category) than the interval that would do if the tallies also told who
is there on both days, or how much the days of people vary. It fails if an exact interval is off by more than
1.5 points, or a bound holds the truth in fewer than 95% of cases.

    python -m benchmarks.derived_coverage --keys 1000 --processes 2
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache, partial
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

import ldp
from ldp.estimation.windows import IndicatorTallies
from ldp.privacy.plans import Mechanism

DAYS: Final = 7
N_PEOPLE: Final = 8_000
MECHANISMS: Final[tuple[Mechanism, ...]] = ("smp-grr", "smp-oue", "rsfd-ouez")
EPSILON: Final = Decimal(2)
KEYS_PER_TASK: Final = 25
EXACT_TOLERANCE: Final = 0.015
LEVEL: Final = 0.95
Z: Final = 1.959964
COHORT: Final = 2
KEYS_OF_WIDTHS: Final = 10
AGAIN, BOTH, MEAN_DAYS = "seen again on a later day", "visitors of two separate days", "mean days present"

Result = TypeVar("Result")
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Figure = tuple[str, Callable[[IndicatorTallies], "ldp.WindowEstimate | ldp.Interval"], Floats]
Found = tuple[
    str, bool, float, float
]  # name, is it exact, share of intervals that hold the truth, width of the first category


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """True values; the first two indicators are static, the third is daily."""

    pseudonyms: NDArray[np.uint64]
    presence: Bools
    static: tuple[NDArray[np.int32], ...]
    daily: NDArray[np.int32]

    @property
    def bitmaps(self) -> NDArray[np.uint64]:
        return np.asarray((self.presence << np.arange(DAYS)).sum(axis=1), np.uint64)

    def among(self, first: int, last: int) -> Bools:
        """Return who was there on one of the days."""
        return np.asarray(self.presence[:, first - 1 : last].any(axis=1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure under one mechanism, over all keys, days and categories."""

    mechanism: str
    figure: str
    is_exact: bool
    coverage: float
    doubt: float
    wider: float | None

    @property
    def is_good(self) -> bool:
        """Exact: within the tolerance. Bounded: not below by more than three standard errors."""
        if self.is_exact:
            return abs(self.coverage - LEVEL) <= EXACT_TOLERANCE
        return self.coverage >= LEVEL - 3 * self.doubt


def main() -> int:
    """Print the table; 0 if every figure is as stated."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keys", type=int, default=1000, help="independent study keys")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    rows = run(n_keys=options.keys, processes=options.processes)
    sys.stdout.write(table(rows))
    return 0 if all(row.is_good for row in rows) else 1


def run(
    *, n_keys: int, processes: int, mechanisms: Sequence[Mechanism] = MECHANISMS, seed: int = 7
) -> list[Row]:
    """Rows of every mechanism; the same for a seed."""
    rows: list[Row] = []
    for mechanism in mechanisms:
        rows += summary(mechanism, under_keys(partial(look_at_all, mechanism), n_keys, processes, seed=seed))
    return rows


def under_keys(look: Callable[[bytes], Result], n_keys: int, processes: int, *, seed: int) -> list[Result]:
    """Result of each of `n_keys` study keys, which follow from the seed."""
    stream = ldp.KeyedStream(seed.to_bytes(16, "big"))
    keys = [stream.words(2).tobytes() for _ in range(n_keys)]
    with ProcessPoolExecutor(processes) as pool:
        return list(pool.map(look, keys, chunksize=KEYS_PER_TASK))


def table(rows: Sequence[Row]) -> str:
    """Markdown, one line per row."""
    lines = [
        "| mechanism | figure | interval | holds the truth | width of bounds, if all were known = 1 |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        kind = "exact" if row.is_exact else "bound"
        wider = "" if row.wider is None else f"x {row.wider:.2f}"
        mark = "" if row.is_good else " (out of tolerance)"
        lines.append(
            f"| {row.mechanism} | {row.figure} | {kind} | "
            f"{100 * row.coverage:.2f} % ± {100 * row.doubt:.2f}{mark} | {wider} |"
        )
    return "\n".join(lines) + "\n"


# --- one population ---------------------------------------------------------------------------


@cache
def people() -> People:
    """Presence and values that go together: some categories come for longer, some leave early."""
    stream = ldp.KeyedStream(b"derived coverage")
    n = N_PEOPLE

    def uniform(*shape: int) -> Floats:
        return stream.words(int(np.prod(shape))).reshape(shape) / 2.0**64

    region = np.searchsorted(np.cumsum([0.5, 0.3, 0.12, 0.05, 0.02]), uniform(n)).astype(np.int32)
    gender = (uniform(n) < 0.45).astype(np.int32)
    likely = np.array([0.75, 0.5, 0.35, 0.6, 0.3, 0.2])[region]
    start = np.minimum((uniform(n) * (DAYS + 2)).astype(int), DAYS - 1)
    presence = (uniform(n, DAYS) < likely[:, np.newaxis]) & (np.arange(DAYS) >= start[:, np.newaxis])
    presence[np.arange(n), start] = True
    changed = uniform(n, DAYS) < 0.4
    daily = (gender[:, np.newaxis] + changed * np.arange(DAYS)) % 4
    return People(
        pseudonyms=stream.words(n),
        presence=presence,
        static=(region, gender),
        daily=daily.astype(np.int32),
    )


@cache
def make_plan(mechanism: Mechanism) -> ldp.PlanSpec:
    """Two static indicators and a daily one."""
    sizes = {"region": ("static", 6), "gender": ("static", 2), "stay": ("daily", 4)}
    requests = [
        ldp.IndicatorRequest(slug=slug, kind="daily" if kind == "daily" else "static", domain_size=k)
        for slug, (kind, k) in sizes.items()
    ]
    return ldp.build_plan(
        mechanism=mechanism, unit="profile", version=1, days=DAYS, epsilon=EPSILON, indicators=requests
    )


def reports_of(mechanism: Mechanism, key: bytes) -> list[NDArray[np.uint16]]:
    """Return everyone's reports in one study, per indicator."""
    crowd, sanitiser = people(), ldp.Sanitiser(make_plan(mechanism), ldp.KeyedPrf(key))
    nothing = np.full(crowd.pseudonyms.size, -1, np.int32)
    static = sanitiser.reports(crowd.pseudonyms, [*crowd.static, nothing])[:2]
    daily = [
        sanitiser.reports(crowd.pseudonyms, [nothing, nothing, np.ascontiguousarray(crowd.daily[:, day])])[2]
        for day in range(DAYS)
    ]
    return [*static, np.stack(daily, axis=1)]


def tallies_of(
    mechanism: Mechanism, index: int, words: NDArray[np.uint16], bitmaps: NDArray[np.uint64], *, days: int
) -> IndicatorTallies:
    """Tallies as a worker makes them."""
    plan = make_plan(mechanism)
    delta = ldp.Delta.zero(replace(plan, days=days))
    ldp.tally_visitors(bitmaps, delta.visitors, sign=1)
    ldp.tally_reports(bitmaps, words, delta, index=index, is_unary=plan.is_unary(index), sign=1)
    return IndicatorTallies(
        counts=delta.counts[index],
        n_reports=delta.n_reports[index],
        visitors=delta.visitors,
        kind=plan.indicators[index].kind,
        channel=plan.channel(index),
    )


# --- figures and their true values ------------------------------------------------------------


@cache
def figures() -> tuple[tuple[int, Figure], ...]:
    """(indicator, (name, how it is estimated, truth)) of everything that is derived."""
    found: list[tuple[int, Figure]] = []
    for index, values in enumerate(people().static):
        found += [(index, figure) for figure in static_figures(values)]
    return (*found, *((2, figure) for figure in daily_figures()))


def static_figures(values: NDArray[np.int32]) -> Iterator[Figure]:
    """All figures of a static indicator."""
    crowd, k = people(), int(values.max()) + 1

    def count(chosen: Bools) -> Floats:
        return np.bincount(values[chosen], minlength=k).astype(float)

    for day in range(2, DAYS + 1):
        today, before = crowd.among(day, day), crowd.among(1, day - 1)
        window = ldp.Window(day, day)
        yield "arrivals", partial(ldp.new_visitors, window=window, since=1), count(today & ~before)
        yield "returning", partial(ldp.returning_visitors, window=window, since=1), count(today & before)
    for day in range(1, DAYS):
        left = crowd.among(day, day) & ~crowd.among(day + 1, DAYS)
        leave = partial(ldp.leaving_visitors, window=ldp.Window(day, day), until=DAYS)
        yield "departures", leave, count(left)
    first, cohort = ldp.Window(COHORT, COHORT), crowd.among(COHORT, COHORT)
    for day in range(COHORT + 1, DAYS + 1):
        back = cohort & crowd.among(COHORT + 1, day)
        share = partial(ldp.shared_share, first=first, second=ldp.Window(COHORT + 1, day))
        yield "seen again until a day", share, count(back) / count(cohort)
        again = cohort & crowd.among(day, day)
        name = "seen again on the next day" if day == COHORT + 1 else AGAIN
        yield name, partial(ldp.day_pair_share, days=(COHORT, day)), count(again) / count(cohort)
        if day > COHORT + 1:
            both = partial(ldp.day_pair_visitors, days=(COHORT, day))
            yield BOTH, both, count(again)
    days = crowd.presence.sum(axis=1)
    mean = np.bincount(values, weights=days, minlength=k) / np.bincount(values, minlength=k)
    yield MEAN_DAYS, ldp.mean_days_present, mean


def daily_figures() -> Iterator[Figure]:
    """Return figures of a daily indicator, by the value of the first day in the window."""
    crowd = people()
    for first, last in ((2, 2), (4, 4), (3, 6), (7, 7)):
        there, before = crowd.among(first, last), crowd.among(1, first - 1)
        day = first - 1 + np.argmax(crowd.presence[:, first - 1 : last], axis=1)
        values = crowd.daily[np.arange(crowd.daily.shape[0]), day]
        window = ldp.Window(first, last)
        new, back = (np.bincount(values[chosen], minlength=4) for chosen in (there & ~before, there & before))
        yield "arrivals (daily)", partial(ldp.new_visitors, window=window, since=1), new.astype(float)
        yield "returning (daily)", partial(ldp.returning_visitors, window=window, since=1), back.astype(float)


# --- many keys --------------------------------------------------------------------------------


def look_at_all(mechanism: Mechanism, key: bytes) -> list[Found]:
    """Every figure of one study."""
    words = reports_of(mechanism, key)
    tallies = [
        tallies_of(mechanism, index, each, people().bitmaps, days=DAYS) for index, each in enumerate(words)
    ]
    return [look(tallies[index], figure) for index, figure in figures()]


def look(tallies: IndicatorTallies, figure: Figure) -> Found:
    """One figure and its true value."""
    name, estimate, truth = figure
    found = estimate(tallies)
    covered = (found.ci_low <= truth) & (truth <= found.ci_high)
    return name, found.is_exact, float(covered.mean()), float((found.ci_high - found.ci_low)[0])


def summary(mechanism: Mechanism, results: Sequence[Sequence[Found]]) -> list[Row]:
    """One row per name."""
    known = widths_if_known(mechanism)
    rows = []
    for name in dict.fromkeys(each[0] for each in results[0]):
        places = [i for i, each in enumerate(results[0]) if each[0] == name]
        coverage = np.array([np.mean([key[i][2] for i in places]) for key in results])
        width = float(np.mean([key[i][3] for key in results for i in places]))
        rows.append(
            Row(
                mechanism=mechanism,
                figure=name,
                is_exact=all(key[i][1] for key in results for i in places),
                coverage=float(coverage.mean()),
                doubt=float(coverage.std(ddof=1) / np.sqrt(len(results))),
                wider=width / known[name] if name in known else None,
            )
        )
    return rows


def widths_if_known(mechanism: Mechanism) -> dict[str, float]:
    """Mean widths, of the first category, if it were known who is there on which days."""
    widths: dict[str, list[float]] = {AGAIN: [], BOTH: [], MEAN_DAYS: []}
    stream = ldp.KeyedStream(b"keys of widths..")
    for _ in range(KEYS_OF_WIDTHS):
        words = reports_of(mechanism, stream.words(2).tobytes())
        for index, values in enumerate(people().static):
            for day in range(COHORT + 2, DAYS + 1):
                # Two days that touch: who is on both of them is then known.
                cohort, later = people().among(COHORT, COHORT), people().among(day, day)
                bitmaps = (cohort + 2 * later).astype(np.uint64)
                there = bitmaps > 0
                known = tallies_of(mechanism, index, words[index][there], bitmaps[there], days=2)
                share = ldp.day_pair_share(known, days=(1, 2))
                both = ldp.day_pair_visitors(known, days=(1, 2))
                widths[AGAIN].append(float((share.ci_high - share.ci_low)[0]))
                widths[BOTH].append(float((both.ci_high - both.ci_low)[0]))
            widths[MEAN_DAYS].append(mean_days_width(mechanism, index, values))
    return {name: float(np.mean(found)) for name, found in widths.items()}


def mean_days_width(mechanism: Mechanism, index: int, values: NDArray[np.int32]) -> float:
    """Width of the interval of the mean days of the first category, from the true spread of days."""
    plan, days = make_plan(mechanism), people().presence.sum(axis=1)
    channel, share = plan.channel(index), 1.0 if plan.has_fakes else 1 / plan.d
    others, own = ldp.pure_variance([0, 1], n_reports=1, n_population=1, channel=channel)
    first = values == 0
    spread = (days - days[first].mean()) ** 2.0
    variance = others * spread[~first].sum() + (own + 1 - share) * spread[first].sum()
    return float(2 * Z * np.sqrt(variance * share) / (first.sum() * share))


if __name__ == "__main__":
    sys.exit(main())
