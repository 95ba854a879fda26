"""Do intervals of joint indicators and of moves hold the truth? Many independent keys, one crowd.

The demo's people and plan, with one further table and with moves: cells, shares of rows, filter sentences,
selected categories of single indicators, tables combined with other answers, flows and moves of a day and of
the week, and lists of those above noise. Also means by category and modelled tables, of crowds that are made
for them.

Prints a markdown table: for each figure the share of its 95% intervals that hold the truth, and the mean
squared error over the mean of the stated variances; for lists the share of keys under which they name no pair
that no one has, and how many they name. Exact intervals must cover 95% within 3.5 standard errors, corrected
for the number of cells; other intervals, and lists, must not cover less. Intervals of a model must cover at
least 93% on average where the model holds.

    python -m benchmarks.joint_coverage --keys 1000 --processes 2
"""

import argparse
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from itertools import combinations
from statistics import NormalDist
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

import ldp
from benchmarks.soak import people
from ldp.estimation.joint.association import margin_of
from ldp.estimation.joint.consistency import Combinations, Single, View, combined_table
from ldp.estimation.joint.crosstab import Base, Reports, Shares, cross_table
from ldp.estimation.joint.flows import sums_of_sets, sums_of_values
from ldp.estimation.joint.linear import NUMBERS
from ldp.estimation.joint.means import means_by
from ldp.estimation.joint.moves import MoveDay, move_day, moves_of_sets, moves_of_values
from ldp.estimation.joint.three_way import Pair, three_way
from ldp.estimation.multiple import above_zero
from ldp.estimation.simulation import reporting_share
from ldp.estimation.windows import Window
from ldp.privacy.joint import joint_codes, joint_size
from ldp.privacy.moves import MoveSpec
from ldp.protocols.numbers.threshold import Scale
from ldp.protocols.projective_space import value_counts
from mobility.demo.population import STUDY_FILE
from reports.studies.studyfile import parse_study

N: Final = 27_192  # people of the demo's week
PEOPLE: Final = np.arange(N, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
EPSILON: Final = Fraction(2)
SCALE: Final = Scale(cuts=(60, 120, 180, 300, 600), unit="min")
CATEGORIES: Final = 8
SIZES: Final = (3, 4, 6)  # of the attributes of the model
AXES: Final = tuple(combinations(range(3), 2))
LEVEL: Final = 0.95
APPROXIMATE: Final = 0.93
KEYS_PER_TASK: Final = 25

Floats = NDArray[np.float64]
Values = NDArray[np.int32]
Claim = Literal["exact", "at least", "model"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Intervals of a figure over some keys.

    Parameters
    ----------
    claim : how often they hold the truth: in 95%, at least in 95%, or about so often
    sums : shape (3, cells); intervals that hold, squared errors, stated variances; of a list the keys under
        which it is right, the pairs that it names, and all keys
    """

    claim: Claim
    sums: Floats

    def __add__(self, other: "Score") -> "Score":
        return Score(claim=self.claim, sums=self.sums + other.sums)


Scores = dict[str, Score]


def score(found: Shares, truth: Floats, *, claim: Claim = "exact") -> Score:
    """Score of the intervals under one key."""
    holds = (found.ci_low <= truth) & (truth <= found.ci_high)
    # Fieller's interval has no value where a category may be empty.
    error = np.nan_to_num(found.value - truth)
    stated = np.where(np.isnan(found.value), 0, found.std_error)
    return Score(claim=claim, sums=np.array([holds, error**2, stated**2]).reshape(3, -1))


def part_of(found: Shares, place: Any) -> Shares:
    """Return some of the shares, at a place as of arrays."""
    return Shares(**{name: getattr(found, name)[place] for name in Shares.__slots__})


def score_of_list(listed: NDArray[np.bool_], truth: Floats) -> Score:
    """Score of a list under one key, which is wrong if it names anything that no one has."""
    is_right = not (listed & (truth == 0)).any()
    return Score(claim="at least", sums=np.array([[is_right], [listed.sum()], [1]], np.float64))


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


def means_of(key: bytes) -> Scores:
    """Means by category under a key."""
    plan = plan_of_means()
    sanitiser = ldp.Sanitiser(plan, ldp.KeyedPrf(key))

    def code(rows: NDArray[np.int64]) -> NDArray[np.int32]:
        sides = sanitiser.sides(1, PEOPLE[rows], SCALE.levels(crowd().number[rows]))
        return joint_codes([crowd().category[rows], sides], sizes=(CATEGORIES, 2))

    codes = np.arange((CATEGORIES + 1) * 3).reshape(CATEGORIES + 1, 3)[:CATEGORIES, :2]
    found = means_by(reports_of(plan, 2, sanitiser, code), codes=codes, scale=SCALE)
    return {"mean of a number by category": score(found, crowd().means)}


def model_of(key: bytes) -> Scores:
    """Modelled table of three attributes under a key."""
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
    found = three_way(pairs, sizes=sizes, stream=ldp.KeyedStream(key))
    real = tuple(slice(size) for size in SIZES)
    return {"modelled table of three attributes": score(part_of(found, real), crowd().table, claim="model")}


# --- the demo ---------------------------------------------------------------------------------

MORE: Final = b"""
[[indicator]]
slug = "age_region"
name = "Age and region"
kind = "static"
parts = ["age", "region"]
[[indicator]]
slug = "moves"
name = "Moves"
kind = "daily"
derive = "moves"
"""
TABLE, LARGE_TABLE, FLOWS, MOVES = "gender_age", "age_region", "sleeping_area_main_zone", "moves"
SPAN: Final = Window(3, 7)
SURE: Final = 0.3  # of the visitors: a row or column of them is surely not empty
DAY: Final = Window(4, 4)
WEEK: Final = tuple(Window(day, day) for day in range(1, 8))
STAYS: Final = np.array([0, 1, 1, 1, 2, 2, 2, 3, 3, 4, 5, 8])  # of a day, each of the same number of people
ABROAD: Final = range(22, 37)
FRANCHE_COMTE, ALSACE = 10, 1
# Filter sentences: an indicator, its days, and categories of each of its parts, all if there are none.
SENTENCES: Final[tuple[tuple[str, Window, tuple[Sequence[int], Sequence[int]]], ...]] = (
    (LARGE_TABLE, SPAN, ([2, 3], [ALSACE])),
    (LARGE_TABLE, SPAN, ([2, 3], [ALSACE, FRANCHE_COMTE])),
    (LARGE_TABLE, DAY, ([0, 1, 2, 3], [FRANCHE_COMTE])),
    (LARGE_TABLE, DAY, ([7], ABROAD)),
    (LARGE_TABLE, Window(1, 7), ([], [ALSACE])),
    (TABLE, SPAN, ([0], [1, 2, 3])),
    (TABLE, DAY, ([0, 1], [6])),
    (FLOWS, DAY, ([0, 1, 2], [0, 1, 2])),
    (FLOWS, DAY, ([9], [])),
)
# The same of single indicators, whose people without a value do not report.
SELECTIONS: Final[tuple[tuple[str, Window, Sequence[int]], ...]] = (
    ("gender", SPAN, [0, 2]),
    ("age", SPAN, [2, 3]),
    ("age", DAY, [0, 1, 2, 3]),
    ("age", Window(1, 7), [6]),
    ("region", SPAN, [ALSACE, FRANCHE_COMTE]),
    ("region", DAY, ABROAD),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """Moves of everyone on a day.

    Parameters
    ----------
    starts : shape (n + 1,); where those of each person begin in `codes`, and the last end
    first : shape (n,); zone of the first stay, -1 of people who have none
    """

    starts: NDArray[np.int64]
    codes: Values
    first: Values

    def of_people(self, chosen: NDArray[np.bool_], *, spec: MoveSpec) -> Floats:
        """Moves of some people by code, where those of someone with more than `per_day` count less."""
        n = np.diff(self.starts)
        weights = chosen * spec.per_day / np.maximum(n, spec.per_day)
        return np.bincount(self.codes, weights=np.repeat(weights, n), minlength=spec.size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo:
    """People of the demo, with places of each day that are made up.

    Parameters
    ----------
    names : pseudonyms
    values : by indicator, shape (n,), or (n, days) of a daily one
    layouts : by joint indicator the codes of all combinations, people without a value last
    edges : codes of moves between two different places
    """

    plan: ldp.PlanSpec
    spec: MoveSpec
    names: NDArray[np.uint64]
    values: dict[str, Values]
    layouts: dict[str, NDArray[np.int64]]
    moves: list[Moves]
    edges: NDArray[np.int64]

    def visitors(self, slug: str, window: Window) -> Floats:
        """True visitors of a window by code; of a daily indicator the window is a day."""
        values = self.values[slug] if self.values[slug].ndim == 1 else self.values[slug][:, window[0] - 1]
        there, size = values[are_there(window)], self.plan.indicators[self.plan.index(slug)].domain_size
        return np.bincount(there[there >= 0], minlength=size).astype(np.float64)

    def shares(self, slug: str, window: Window) -> Floats:
        """True shares of the visitors of a window by code."""
        return self.visitors(slug, window) / visitors_of(window)

    def moved(self, windows: Sequence[Window]) -> Floats:
        """True moves on some days by code."""
        days = [self.moves[day - 1].of_people(are_there((day, day)), spec=self.spec) for day, _ in windows]
        return np.sum(days, axis=0, dtype=np.float64)


def visitors_of(window: Window) -> int:
    """Visitors of a window."""
    return int(are_there(window).sum())


def are_there(window: tuple[int, int]) -> NDArray[np.bool_]:
    """Return who is there on one of the days."""
    first, last = window
    return (people().presence >> np.uint64(first - 1)) % np.uint64(2 ** (last - first + 1)) > 0


@cache
def demo() -> Demo:
    """Build the people and their plan, always the same; once per process.

    One in 25 has no age. People go to few of the zones from where they sleep, and from a zone only to the two
    next to it, so that there are pairs that no one has.
    """
    study = parse_study(
        STUDY_FILE.read_bytes() + MORE,
        filename=STUDY_FILE.name,
        read=lambda name: (STUDY_FILE.parent / name).read_bytes(),
    )
    plan, stream = study.plan_spec(), ldp.KeyedStream(b"places of days..")
    spec = plan.indicators[plan.index(MOVES)].moves
    if spec is None:
        raise ValueError(f"{MOVES} must be moves")
    values = dict(people().static)
    has_age = stream.uniform_int(people().n_subscribers, 0, 25) > 0
    values["age"] = np.where(has_age, values["age"], -1).astype(np.int32)
    moves = [moves_of_day(values["sleeping_area"], spec=spec, stream=stream) for _ in WEEK]
    values["main_zone"] = np.stack([each.first for each in moves], axis=1)
    layouts = {}
    for slug in (TABLE, LARGE_TABLE, FLOWS):
        parts = plan.indicators[plan.index(slug)].parts
        sizes = [plan.indicators[plan.index(each)].domain_size for each in parts]
        layouts[slug] = np.arange(joint_size(sizes)).reshape([size + 1 for size in sizes])
        of_parts = [values[each].T for each in parts]  # days first, which people who do not change repeat
        values[slug] = joint_codes(np.broadcast_arrays(*of_parts), sizes=sizes).T
    edges = np.flatnonzero(~np.eye(spec.places + 1, dtype=np.bool_).ravel())
    names = stream.words(people().n_subscribers)
    return Demo(plan=plan, spec=spec, names=names, values=values, layouts=layouts, moves=moves, edges=edges)


def moves_of_day(homes: Values, *, spec: MoveSpec, stream: ldp.KeyedStream) -> Moves:
    """Moves that start near home and lead from a zone to the next one, always in one direction."""
    n_stays = STAYS[stream.uniform_int(homes.size, 0, len(STAYS))]
    first = (homes + stream.uniform_int(homes.size, 0, 5) // 3) % spec.places
    n_moves = np.where(n_stays > 0, n_stays + 1, 0)
    starts, who = np.cumsum([0, *n_moves]), np.repeat(np.arange(homes.size), n_moves)
    number = np.arange(starts[-1]) - starts[who]
    step = 1 - 2 * stream.uniform_int(homes.size, 0, 2)[who]
    here, there = ((first[who] + each * step) % spec.places for each in (number - 1, number))
    here = np.where(number == 0, spec.outside, here)
    there = np.where(number == n_stays[who], spec.outside, there)
    return Moves(
        starts=starts,
        codes=(here * (spec.places + 1) + there).astype(np.int32),
        first=np.where(n_stays > 0, first, -1).astype(np.int32),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """Tallies of the demo under a key."""

    delta: ldp.Delta

    def counts(self, slug: str, window: Window) -> tuple[NDArray[np.int64], dict[str, Any]]:
        """Reports that support each value in a window, and the channel and number of all."""
        plan, index = demo().plan, demo().plan.index(slug)
        channel: Any = plan.answer_channel(index)
        counts = ldp.union(self.delta.counts[index], **window._asdict())
        n_reports = int(ldp.union(self.delta.n_reports[index], **window._asdict()))
        return value_counts(counts, channel=channel), {"channel": channel, "n_reports": n_reports}

    def reports(self, slug: str, window: Window) -> Reports:
        """Answers on an indicator in a window."""
        counts, known = self.counts(slug, window)
        return Reports.of_counts(counts, n_population=visitors_of(window), **known)

    def move_day(self, window: Window) -> MoveDay:
        """Answers on the moves of a day."""
        counts, known = self.counts(MOVES, window)
        return move_day(counts, n_visitors=visitors_of(window), **known)

    def listed(self, slug: str, windows: Sequence[Window]) -> NDArray[np.bool_]:
        """Pairs of places that someone surely has on one of the days."""
        days = [self.counts(slug, each) for each in windows]
        counts, n_reports = np.stack([each for each, _ in days]), [known["n_reports"] for _, known in days]
        channel: Any = days[0][1]["channel"]
        if slug != MOVES:
            return above_zero(counts, n_reports=n_reports, channel=channel)
        found, edges = np.zeros(demo().spec.size, np.bool_), demo().edges
        found[edges] = above_zero(counts.sum(axis=0)[edges], n_reports=sum(n_reports), channel=channel)
        return found


def answers_of(key: bytes) -> Answers:
    """Sanitise and tally the demo under a key, as a worker does."""
    plan, sanitiser = demo().plan, ldp.Sanitiser(demo().plan, ldp.KeyedPrf(key))
    asked, delta = sanitiser.asked(demo().names), ldp.Delta.zero(plan)
    for slug in ("gender", "age", "region", TABLE, LARGE_TABLE, FLOWS, MOVES):
        index = plan.index(slug)
        values = picked(sanitiser, index) if slug == MOVES else demo().values[slug]
        is_asked = asked == index
        if values.ndim == 1:
            is_asked &= values >= 0
        names, values = demo().names[is_asked], values[is_asked]
        by_day = enumerate(np.ascontiguousarray(np.atleast_2d(values.T)), start=1)
        words = np.stack([sanitiser.report(index, names, each, day=day) for day, each in by_day], axis=1)
        words = words[:, 0] if values.ndim == 1 else words
        ldp.tally_reports(people().presence[is_asked], words, delta, index=index, is_unary=False, sign=1)
    return Answers(delta=delta)


def picked(sanitiser: ldp.Sanitiser, index: int) -> Values:
    """The move of each day that people name, shape (n, days)."""
    return np.stack(
        [
            sanitiser.picked_moves(index, demo().names, starts=each.starts, codes=each.codes, day=day)
            for day, each in enumerate(demo().moves, start=1)
        ],
        axis=1,
    )


def demo_of(key: bytes) -> Scores:
    """All figures of the demo under a key."""
    answers = answers_of(key)
    return {**of_tables(answers), **of_flows(answers), **of_moves(answers)}


def of_tables(answers: Answers) -> Scores:
    """Cells, shares of rows, filter sentences and combined tables."""
    found: Scores = {}
    bases: tuple[tuple[str, Base, str], ...] = (
        (TABLE, "row", "of a table, 3 x 8"),
        (LARGE_TABLE, "column", "of a table, 8 x 37"),
    )
    for slug, base, name in bases:
        layout, reports = demo().layouts[slug][:-1, :-1], answers.reports(slug, SPAN)
        cells, of_base = (
            cross_table(reports, layout=layout[..., np.newaxis], base=each).cells for each in ("all", base)
        )
        shares = demo().shares(slug, SPAN)[layout]
        found[f"cells {name}"] = score(cells, shares)
        whole = shares.sum(axis=1 if base == "row" else 0, keepdims=True)
        # Where the whole may be none, Fieller's interval is all shares: it holds more often than it says.
        is_sure = np.broadcast_to(whole > SURE, shares.shape)
        found[f"shares of a large {base} {name}"] = score(
            part_of(of_base, is_sure), (shares / whole)[is_sure]
        )
        found[f"shares of a small {base} {name}"] = score(
            part_of(of_base, ~is_sure), (shares / whole)[~is_sure], claim="at least"
        )
    numbers, right = [], []
    for slug, window, chosen in SENTENCES:
        layout = demo().layouts[slug]
        axes = [list(each) or list(range(size)) for each, size in zip(chosen, layout.shape, strict=True)]
        codes = layout[np.ix_(*axes)].ravel()
        numbers.append(NUMBERS(answers.reports(slug, window).answer(codes)))
        right.append(demo().shares(slug, window)[codes].sum())
    found["filter sentences"] = score_of_numbers(numbers, right)
    found["selected categories of a single indicator"] = selections(answers)
    found["cells of a combined table"] = combined_cells(answers)
    return found


def selections(answers: Answers) -> Score:
    """Shares of selected categories of single indicators, among the visitors who have a value."""
    numbers, right = [], []
    for slug, window, chosen in SELECTIONS:
        codes, visitors = np.array(chosen), demo().visitors(slug, window)
        numbers.append(NUMBERS(answers.reports(slug, window).answer(codes)))
        right.append(visitors[codes].sum() / visitors.sum())
    return score_of_numbers(numbers, right)


def score_of_numbers(numbers: Sequence[tuple[float, ...]], right: Sequence[float]) -> Score:
    """Score of single answers under one key: value, error and ends of each."""
    columns = dict(zip(Shares.__slots__, np.array(numbers).T, strict=True))
    return score(Shares(**columns), np.array(right))


def combined_cells(answers: Answers) -> Score:
    """Table of two attributes from its own answers, those on each of both, and those on one with a third."""
    plan, layout = demo().plan, demo().layouts[TABLE]
    views = [
        View(axes=axes, source=Combinations(reports=answers.reports(slug, SPAN)))
        for axes, slug in (((0, 1), TABLE), ((1, 2), LARGE_TABLE))
    ]
    for axis, slug in enumerate(plan.indicators[plan.index(TABLE)].parts):
        asked = float(reporting_share(plan, plan.index(slug)))
        source = Single(margin=margin_of(answers.reports(slug, SPAN), asked=asked))
        views.append(View(axes=(axis,), source=source))
    sizes = (*layout.shape, demo().layouts[LARGE_TABLE].shape[1])
    table = combined_table(views, axes=(0, 1), sizes=sizes, n_population=visitors_of(SPAN), level=LEVEL)
    return score(table.cells, demo().shares(TABLE, SPAN)[layout])


def of_flows(answers: Answers) -> Scores:
    """People by pair, origin and destination, on a day and on the days of the week, and lists of pairs."""
    layout, found = demo().layouts[FLOWS], {}
    sets = [*layout, *layout.T]
    claims: tuple[Claim, Claim] = ("exact", "at least")
    for name, windows, claim in zip(("a day", "the week"), ([DAY], WEEK), claims, strict=True):
        days = [answers.reports(FLOWS, each) for each in windows]
        right = np.sum([demo().visitors(FLOWS, each) for each in windows], axis=0)
        of_sets = np.array([right[each].sum() for each in sets])
        found[f"flows of {name}"] = score(sums_of_values(days), right, claim=claim)
        found[f"origins and destinations of {name}"] = score(sums_of_sets(days, sets), of_sets, claim=claim)
        found[f"list of flows of {name}"] = score_of_list(answers.listed(FLOWS, windows), right)
    return found


def of_moves(answers: Answers) -> Scores:
    """Moves by pair, arrivals and departures, on a day and on the days of the week, and lists of pairs."""
    spec, edges, found = demo().spec, demo().edges, {}
    ends = np.stack([edges // (spec.places + 1), edges % (spec.places + 1)])
    sets = [edges[of_end == place] for of_end in ends for place in range(spec.places + 1)]
    for name, windows in (("a day", [DAY]), ("the week", WEEK)):
        days, right = [answers.move_day(each) for each in windows], demo().moved(windows)
        of_sets = np.array([right[each].sum() for each in sets])
        pairs, sums = moves_of_values(days, spec=spec), moves_of_sets(days, sets, spec=spec)
        found[f"moves of {name}"] = score(part_of(pairs, edges), right[edges], claim="at least")
        found[f"arrivals and departures of {name}"] = score(sums, of_sets, claim="at least")
        found[f"list of moves of {name}"] = score_of_list(answers.listed(MOVES, windows), right)
    return found


# --- many keys --------------------------------------------------------------------------------

STUDIES: Final[tuple[Callable[[bytes], Scores], ...]] = (demo_of, means_of, model_of)


def run_keys(study: Callable[[bytes], Scores], keys: list[bytes]) -> Scores:
    """Scores of a study over some keys."""
    return added([study(key) for key in keys])


def added(parts: Sequence[Scores]) -> Scores:
    """Add up scores."""
    return {name: sum((each[name] for each in parts[1:]), start=parts[0][name]) for name in parts[0]}


def judged(name: str, found: Score, *, n_keys: int) -> tuple[str, bool]:
    """Line of the table, and whether the intervals are as stated."""
    coverage = found.sums[0] / n_keys
    z = NormalDist().inv_cdf(1 - (1 - NormalDist().cdf(3.5)) / coverage.size)
    reach = z * math.sqrt(LEVEL * (1 - LEVEL) / n_keys)
    is_good = bool((coverage > LEVEL - reach).all())
    if found.claim == "exact":
        is_good &= bool((coverage < LEVEL + reach).all())
    if found.claim == "model":
        is_good = bool(coverage.mean() >= APPROXIMATE)
    cells = (coverage.mean(), coverage.min(), coverage.max(), found.sums[1].sum() / found.sums[2].sum())
    words = " | ".join(f"{value:.3f}" for value in cells)
    line = f"| {name} | {coverage.size} | {found.claim} | {words} | {'yes' if is_good else 'NO'} |"
    return line, is_good


def tasks_of(n_keys: int) -> Iterator[list[bytes]]:
    """Keys 0 to n_keys - 1, in tasks."""
    for first in range(0, n_keys, KEYS_PER_TASK):
        yield [key.to_bytes(16, "big") for key in range(first, min(first + KEYS_PER_TASK, n_keys))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keys", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    heads = "| figure | cells | interval | coverage | least | most | error / stated, or named | as stated |"
    sys.stdout.write(f"{heads}\n|---|---|---|---|---|---|---|---|\n")
    are_good = True
    with ProcessPoolExecutor(options.processes) as pool:
        for study in STUDIES:
            total = added(list(pool.map(partial(run_keys, study), tasks_of(options.keys))))
            for name, found in total.items():
                line, is_good = judged(name, found, n_keys=options.keys)
                sys.stdout.write(f"{line}\n")
                are_good &= is_good
            sys.stdout.flush()
    return 0 if are_good else 1


if __name__ == "__main__":
    sys.exit(main())
