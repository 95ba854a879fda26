"""Coverage of intervals of classes, regions, sensitive values, scaled totals and smoothed days.

One population in three classes, each with its own epsilon, under many keys; half of the people are asked.
Values of pooled figures, shares that are estimated and levels of days are drawn again for each key. The share
of intervals of a cell (one category) that hold the truth is bad if it is more than 3.5 standard errors,
corrected for the number of cells, from 95%; that of a bound only if it is below. Filtered and smoothed days
have a model: of each category's days at least 93% must hold, as of models in `joint_coverage`.

    python -m benchmarks.class_coverage --keys 1000
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from math import sqrt
from statistics import NormalDist
from typing import Any, Final, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

import ldp
from benchmarks.joint_coverage import APPROXIMATE
from ldp.estimation.joint.scaling import scaled_total
from ldp.estimation.partial.regions import region_frequencies
from ldp.estimation.series.smoothing import smooth_shares
from ldp.estimation.strata import Strata, samples_of, windows_difference
from ldp.estimation.windows import IndicatorTallies, Quantity, Window
from ldp.keyed import grr
from ldp.keyed.designs import regions, sensitive
from ldp.privacy.plans import Mechanism
from ldp.protocols.partial.regions import region_channel
from ldp.protocols.partial.sensitive import sensitive_channel

CLASSES: Final = {"panel": Decimal(3), "standard": Decimal(1), "minor": Decimal("0.5")}
SIZES: Final = (600, 3600, 1800)
N_PEOPLE: Final = sum(SIZES)
SHARES: Final = ((0.7, 0.1, 0.1, 0.1), (0.1, 0.2, 0.3, 0.4), (0.25, 0.25, 0.25, 0.25))
ALIKE: Final = (0.4, 0.3, 0.2, 0.1)
MECHANISMS: Final[tuple[Mechanism, ...]] = ("smp-grr", "smp-oue")
DAYS: Final = 5
PAIRS: Final = {
    "that overlap": (Window(1, 3), Window(2, 4)),
    "that touch": (Window(1, 2), Window(3, 4)),
    "apart": (Window(1, 1), Window(4, 5)),
}
MEASURES: Final[tuple[Quantity, ...]] = ("frequency", "visitors")
REGION_OF: Final = (0, 1, 0, 1, 1, 0)
HIDDEN: Final = (1, 4, 5)
SEEN: Final = np.array([0.38, 0.2, 0.9, 0.5])  # share of the people of each category who are visitors
SEEN_ERROR: Final = np.array([0.01, 0.005, 0.0, 0.02])
SERIES_DAYS: Final = 30
PEOPLE_OF_DAY: Final = 600
MOVES: Final = {"still": 0.0, "wandering": 0.01}  # standard deviation of a day's move of a share
LEVEL: Final = 0.95
Z: Final = NormalDist().inv_cdf((1 + LEVEL) / 2)

Floats = NDArray[np.float64]
Values = NDArray[np.int32]
Kind = Literal["exact", "bound", "model"]


class Held(NamedTuple):
    """Share of the intervals of each category that hold the truth, in one study; NaN without an interval."""

    name: str
    kind: Kind
    of_categories: Floats


class Row(NamedTuple):
    """Coverage of the cells of one figure over all keys, and its standard errors."""

    kind: Kind
    coverage: Floats
    errors: Floats

    def is_good(self, n_cells: int) -> bool:
        """Return whether no cell is further from what is stated than chance explains."""
        reach = self.errors * NormalDist().inv_cdf(1 - (1 - NormalDist().cdf(3.5)) / n_cells)
        least = APPROXIMATE if self.kind == "model" else LEVEL
        is_low, is_high = self.coverage < least - reach, self.coverage > LEVEL + reach
        return not is_low.any() and (self.kind != "exact" or not is_high.any())


class Interval(Protocol):
    """Both ends of an interval, of one figure or of each category."""

    @property
    def ci_low(self) -> Any: ...
    @property
    def ci_high(self) -> Any: ...


def main() -> int:
    """Print a row for each figure; 1 if a cell is bad."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keys", type=int, default=1000, help="independent study keys")
    rows = run(parser.parse_args().keys)
    n_cells = sum(row.coverage.size for row in rows.values())
    sys.stdout.write("\n".join(table(rows)) + "\n")
    bad = [name for name, row in rows.items() if not row.is_good(n_cells)]
    sys.stdout.write(f"out of tolerance: {', '.join(bad)}\n" if bad else "all as stated\n")
    return int(bool(bad))


def run(keys: int) -> dict[str, Row]:
    """Return the coverage of each figure over `keys` studies."""
    found: dict[str, list[Held]] = {}
    for number in range(keys):
        for each in study(number.to_bytes(16, "big")):
            found.setdefault(each.name, []).append(each)
    return {name: row_of(studies) for name, studies in found.items()}


def row_of(studies: Sequence[Held]) -> Row:
    """Coverage over the studies that have the figure."""
    held, kind = np.array([each.of_categories for each in studies]), studies[0].kind
    given = np.maximum(np.count_nonzero(~np.isnan(held), axis=0), 1)
    # The days of a category of one study are not independent, so their errors are those between studies.
    spread = held.std(axis=0) if kind == "model" else np.full(given.size, sqrt(LEVEL * (1 - LEVEL)))
    return Row(kind, np.nansum(held, axis=0) / given, spread / np.sqrt(given))


def study(key: bytes) -> Iterator[Held]:
    """All figures under one study key."""
    stream = ldp.KeyedStream(key)
    for mechanism in MECHANISMS:
        yield from of_classes(mechanism, key, stream)
    yield from of_parts(key, stream)
    yield from of_days(key, stream)


# --- classes ----------------------------------------------------------------------------------


def of_classes(mechanism: Mechanism, key: bytes, stream: ldp.KeyedStream) -> Iterator[Held]:
    """Stratified, pooled and compared figures of the three classes."""
    whole = Window(1, DAYS)
    values = np.concatenate([exactly(f, n) for f, n in zip(SHARES, SIZES, strict=True)])
    presence = ldp.KeyedStream(b"days of presence").uniform_int(N_PEOPLE, 1, 2**DAYS).astype(np.uint64)
    presence |= (values % 2).astype(np.uint64)  # two of the values are always there on the first day
    strata = strata_of(mechanism, key, values, presence)
    truth = {of: {w: seen(values, presence, w, of=of) for p in PAIRS.values() for w in p} for of in MEASURES}
    found = ldp.stratified(reports_of(strata, whole))
    yield hold(f"{mechanism}, stratified", found, seen(values, presence, whole, of="frequency"))
    drawn = np.searchsorted(np.cumsum(ALIKE)[:-1], uniform(stream, N_PEOPLE), side="right").astype(np.int32)
    pooled = ldp.pooled_if_alike(reports_of(strata_of(mechanism, key, drawn, presence), whole))
    if pooled is None:
        raise SystemExit("classes could not be pooled")
    is_given = pooled.estimates is not None
    yield Held(
        f"{mechanism}, classes that are alike are not told apart", "exact", np.array([float(is_given)])
    )
    name, nothing = f"{mechanism}, pooled", np.full(len(ALIKE), np.nan)
    if pooled.estimates is None:
        yield Held(name, "exact", nothing)
    else:
        yield hold(name, pooled.estimates, np.array(ALIKE))
    for of in MEASURES:
        for kind, (first, second) in PAIRS.items():
            change = windows_difference(strata, first=first, second=second, of=of)
            right = truth[of][second] - truth[of][first]
            yield hold(f"{mechanism}, {of} of windows {kind}", change, right, is_exact=change.is_exact)


def strata_of(mechanism: Mechanism, key: bytes, values: Values, presence: NDArray[np.uint64]) -> Strata:
    """Tallies of each class, as a worker makes them."""
    asked = [ldp.IndicatorRequest(slug=slug, kind="static", domain_size=4) for slug in ("one", "other")]
    plan = ldp.build_plan(
        mechanism=mechanism,
        unit="profile",
        version=1,
        days=DAYS,
        epsilon=max(CLASSES.values()),
        indicators=asked,
        classes=CLASSES,
    )
    ends, strata = np.cumsum((0, *SIZES)), []
    for own, start, end in zip(plan.of_classes, ends[:-1], ends[1:], strict=True):
        nothing = np.full(end - start, -1, np.int32)
        people = pseudonyms(N_PEOPLE)[start:end]
        reports = ldp.Sanitiser(own, ldp.KeyedPrf(key)).reports(people, [values[start:end], nothing])[0]
        delta = ldp.Delta.zero(own)
        ldp.tally_visitors(presence[start:end], delta.visitors, sign=1)
        ldp.tally_reports(presence[start:end], reports, delta, index=0, is_unary=own.is_unary(0), sign=1)
        strata.append(
            IndicatorTallies(
                counts=delta.counts[0],
                n_reports=delta.n_reports[0],
                visitors=delta.visitors,
                kind="static",
                channel=own.channel(0),
            )
        )
    return tuple(strata)


def reports_of(strata: Strata, window: Window) -> list[ldp.ClassReports]:
    """Reports of each class in a window."""
    found: list[Any] = [*samples_of(strata, window)]
    return [
        ldp.ClassReports(
            counts=each.counts, n_reports=each.n_reports, n_visitors=each.n_population, channel=each.channel
        )
        for each in found
    ]


def seen(values: Values, presence: NDArray[np.uint64], window: Window, *, of: Quantity) -> Floats:
    """Return the true shares or visitors of a window."""
    days = sum(1 << day - 1 for day in range(window.first_day, window.last_day + 1))
    counts = np.bincount(values[presence & np.uint64(days) > 0], minlength=4).astype(np.float64)
    return counts / counts.sum() if of == "frequency" else counts


# --- regions, sensitive values and totals: half of the people report ----------------------------


def of_parts(key: bytes, stream: ldp.KeyedStream) -> Iterator[Held]:
    """Figures of people without classes, by three kinds of reports."""
    shares = np.array([0.3, 0.1, 0.2, 0.1, 0.05, 0.25])
    region = region_channel(epsilon=Fraction(1), region_of=REGION_OF)
    hidden = sensitive_channel(epsilon=Fraction(1), domain_size=len(shares), sensitive=HIDDEN)
    values, sizes = exactly(shares, N_PEOPLE), {"n_reports": N_PEOPLE // 2, "n_population": N_PEOPLE}
    counts = counts_of(regions, values, key, stream, channel=region)
    yield hold("regions", region_frequencies(counts, n_population=N_PEOPLE, channel=region), shares)
    counts = counts_of(sensitive, values, key, stream, channel=hidden)
    yield hold("sensitive values", ldp.pure_frequencies(counts, channel=hidden, **sizes), shares)
    channel = ldp.grr_channel(epsilon=Fraction(1), domain_size=4)
    counts = counts_of(grr, exactly(ALIKE, N_PEOPLE), key, stream, channel=channel)
    estimates = ldp.pure_frequencies(counts, channel=channel, **sizes)
    off = normal(stream, len(SEEN)) * SEEN_ERROR
    for name, known, errors in (("known", SEEN, 0 * SEEN), ("estimated", SEEN + off, SEEN_ERROR)):
        total = scaled_total(estimates, shares=known, share_errors=errors, channel=channel, **sizes)
        yield hold(f"total scaled by {name} shares", total, N_PEOPLE * (np.array(ALIKE) @ (1 / SEEN)))


def counts_of(
    design: Any, values: Values, key: bytes, stream: ldp.KeyedStream, *, channel: Any, first: int = 0
) -> NDArray[np.int64]:
    """Reports by code of a drawn half of the people; `first` is the number of the first of them."""
    chosen = stream.words(values.size).argsort()[: values.size // 2]
    people = pseudonyms(first + values.size)[first:]
    fields: Mapping[str, Any] = {"prf": ldp.KeyedPrf(key), "indicator": 0, "plan_version": 1}
    codes = design.answers(values[chosen], pseudonyms=people[chosen], channel=channel, **fields)
    n_codes = channel.domain_size if design is grr else channel.n_codes
    return np.bincount(codes, minlength=n_codes)


# --- days -------------------------------------------------------------------------------------


def of_days(key: bytes, stream: ldp.KeyedStream) -> Iterator[Held]:
    """Filtered and smoothed shares of days, whose visitors are other people each day."""
    channel = ldp.grr_channel(epsilon=Fraction(2), domain_size=3)
    size = np.full(SERIES_DAYS, PEOPLE_OF_DAY)
    for name, move in MOVES.items():
        steps = move * normal(stream, SERIES_DAYS * 3).reshape(SERIES_DAYS, 3)
        levels = np.array([0.4, 0.35, 0.25]) + np.cumsum(steps - steps.mean(axis=1, keepdims=True), axis=0)
        people = [exactly(np.clip(each, 0.01, 1), PEOPLE_OF_DAY) for each in levels]
        truth = np.array([np.bincount(each, minlength=3) for each in people]) / PEOPLE_OF_DAY
        shares = np.empty_like(truth)
        for day, values in enumerate(people):
            counts = counts_of(grr, values, key, stream, channel=channel, first=day * PEOPLE_OF_DAY)
            sizes = {"n_reports": PEOPLE_OF_DAY // 2, "n_population": PEOPLE_OF_DAY}
            shares[day] = ldp.pure_frequencies(counts, channel=channel, **sizes).frequency
        found = smooth_shares(shares, n_reports=size // 2, n_visitors=size, channel=channel)
        for kind, level, variance in (
            ("filtered", found.filtered, found.filtered_variances),
            ("smoothed", found.smoothed, found.smoothed_variances),
        ):
            held = np.abs(level - truth) <= Z * np.sqrt(variance)
            yield Held(f"{kind} shares of {name} days", "model", held.mean(axis=0))


# --- all ----------------------------------------------------------------------------------------


def exactly(shares: Any, n: int) -> Values:
    """Return values of n people with these shares, to the nearest person."""
    ends = np.round(np.cumsum(shares) / np.sum(shares) * n)
    return np.searchsorted(ends, np.arange(n), side="right").astype(np.int32)


def uniform(stream: ldp.KeyedStream, n: int) -> Floats:
    """Draw numbers in (0, 1)."""
    return (stream.words(n) / 2.0**64).clip(1e-16, 1 - 1e-16)


def normal(stream: ldp.KeyedStream, n: int) -> Floats:
    """Draw normal numbers of variance 1."""
    return np.array([*map(NormalDist().inv_cdf, uniform(stream, n))])


def pseudonyms(n: int) -> NDArray[np.uint64]:
    """Return the pseudonyms of the first n people."""
    return np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)


def hold(name: str, found: Interval, truth: Any, *, is_exact: bool = True) -> Held:
    """Return which intervals hold the truth."""
    held = (found.ci_low <= truth) & (truth <= found.ci_high)
    return Held(name, "exact" if is_exact else "bound", np.atleast_1d(held).astype(np.float64))


def table(rows: Mapping[str, Row]) -> Iterator[str]:
    """Lines of a table in Markdown."""
    yield "| figure | interval | hold the truth, mean | least and most of a cell |"
    yield "|---|---|---|---|"
    for name, row in rows.items():
        least, most = 100 * row.coverage.min(), 100 * row.coverage.max()
        yield f"| {name} | {row.kind} | {100 * row.coverage.mean():.1f}% | {least:.1f}% to {most:.1f}% |"


if __name__ == "__main__":
    sys.exit(main())
