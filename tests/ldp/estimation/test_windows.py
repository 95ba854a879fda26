"""Windows share reports: exact by enumeration of everything that can happen, bounds and coverage by runs."""

from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ldp
from ldp.errors import FewVisitorsError
from ldp.estimation.movement import new_visitors, returning_visitors
from ldp.estimation.windows import (
    IndicatorTallies,
    Window,
    WindowEstimate,
    shared_reports,
    window_difference,
    window_sum,
)
from ldp.protocols.channels import WORD
from tests.ldp.exact import refuses

SURE = ldp.grr_channel(epsilon=Fraction(40), domain_size=3)


def tallies_of(presence, codes, *, days, channel, population=None) -> IndicatorTallies:
    """Tallies of the answers in `codes`, one per subscriber or one per day; `population` is all presence."""
    population = presence if population is None else population
    square = (days + 1, days + 1)
    counts = np.zeros((channel.domain_size, *square), np.int64)
    visitors = np.zeros(square, np.int64)
    ldp.tally_visitors(population.astype(np.uint64), visitors, sign=1)
    kind = "static" if codes.ndim == 1 else "daily"
    tally = ldp.tally_static if kind == "static" else ldp.tally_daily
    tally(presence.astype(np.uint64), codes.astype(np.uint16), counts, sign=1)
    found = {"counts": counts, "n_reports": counts.sum(axis=0), "visitors": visitors}
    return IndicatorTallies(**found, kind=kind, channel=channel)


def inside(presence: np.ndarray, window: Window) -> np.ndarray:
    bits = sum(1 << day - 1 for day in range(window.first_day, window.last_day + 1))
    return presence & bits != 0


# Six subscribers, three days; the value of each.
PRESENCE = np.array([0b001, 0b011, 0b111, 0b110, 0b100, 0b010])
VALUES = np.array([0, 1, 0, 1, 1, 0])
COIN = ldp.GrrChannel(domain_size=2, threshold=3 * WORD // 4)
ASKED = Fraction(2, 3)


def exact_variance(f: Fraction, *, n: int, population: int) -> Fraction:
    p, q = COIN.p, COIN.q
    noise = (f * p * (1 - p) + (1 - f) * q * (1 - q)) / (p - q) ** 2 / n
    return noise + f * (1 - f) / n * Fraction(population - n, max(population - 1, 1))


@cache
def outcomes() -> list[tuple[Fraction, np.ndarray, IndicatorTallies]]:
    found = []
    for codes in product((ldp.NO_ANSWER, 0, 1), repeat=VALUES.size):
        weight = Fraction(1)
        for code, value in zip(codes, VALUES, strict=True):
            answer = COIN.p if code == value else COIN.q
            weight *= 1 - ASKED if code == ldp.NO_ANSWER else ASKED * answer
        answers = np.array(codes)
        found.append((weight, answers, tallies_of(PRESENCE, answers, days=3, channel=COIN)))
    return found


def factors_of(parts: list[np.ndarray], *, sign: int, of: str) -> list[Fraction]:
    """Weight of each part's frequency: second window plus or minus the first."""
    only_first, both, only_second = (int(part.sum()) for part in parts)
    first, second = (only_first + both, both + only_second) if of == "frequency" else (1, 1)
    shared = Fraction(sign * both, first) + Fraction(both, second)
    return [Fraction(sign * only_first, first), shared, Fraction(only_second, second)]


@pytest.mark.parametrize(
    ("windows", "of_difference"),
    [(((1, 2), (2, 3)), "visitors"), (((2, 3), (1, 2)), "frequency"), (((1, 3), (2, 2)), "visitors")],
)
@pytest.mark.parametrize("function", [window_difference, window_sum])
def test_estimate_is_unbiased_and_its_variance_exact(windows, function, of_difference) -> None:
    is_sum = function is window_sum
    of = "visitors" if is_sum == (of_difference == "frequency") else "frequency"
    first, second = Window(*windows[0]), Window(*windows[1])
    in_first, in_second = inside(PRESENCE, first), inside(PRESENCE, second)
    parts = [in_first & ~in_second, in_first & in_second, in_second & ~in_first]
    factors = factors_of(parts, sign=1 if is_sum else -1, of=of)
    needed = [bool(part.any() and factor) for part, factor in zip(parts, factors, strict=True)]
    moments: dict[tuple[int, ...], list[Fraction]] = defaultdict(lambda: [Fraction(0)] * 3)
    for weight, codes, tallies in outcomes():
        sizes = tuple(int((codes[part] != ldp.NO_ANSWER).sum()) for part in parts)
        if not (sizes[0] + sizes[1] and sizes[1] + sizes[2]):
            continue
        found = function(tallies, first=first, second=second, of=of)
        assert found.is_exact == all(n for n, used in zip(sizes, needed, strict=True) if used)
        if not found.is_exact:
            continue
        by_hand, plugged = Fraction(0), 0.0
        for part, factor, n, used in zip(parts, factors, sizes, needed, strict=True):
            if used:
                f = (Fraction(int((codes[part] == 1).sum()), n) - COIN.q) / (COIN.p - COIN.q)
                by_hand += factor * f
                near = min(max(f, Fraction(0)), Fraction(1))
                plugged += float(factor**2 * exact_variance(near, n=n, population=int(part.sum())))
        assert found.value[1] == pytest.approx(float(by_hand), abs=1e-12)
        assert found.std_error[1] ** 2 == pytest.approx(plugged, abs=1e-12)
        old = moments[sizes]
        moments[sizes] = [old[0] + weight, old[1] + weight * by_hand, old[2] + weight * by_hand**2]
    assert len(moments) > 3
    for sizes, (weight, first_moment, second_moment) in moments.items():
        truth, variance = Fraction(0), Fraction(0)
        for part, factor, n, used in zip(parts, factors, sizes, needed, strict=True):
            if used:
                f = Fraction(int((VALUES[part] == 1).sum()), int(part.sum()))
                truth += factor * f
                variance += factor**2 * exact_variance(f, n=n, population=int(part.sum()))
        assert first_moment / weight == truth
        assert second_moment / weight - truth**2 == variance


populations = st.lists(st.tuples(st.integers(1, 63), st.integers(0, 3)), min_size=1, max_size=60)
day_pairs = st.tuples(st.integers(1, 6), st.integers(1, 6)).map(lambda pair: Window(*sorted(pair)))


@given(people=populations, first=day_pairs, second=day_pairs)
@settings(max_examples=50)
def test_shared_reports_lie_between_their_bounds(people, first, second) -> None:
    presence = np.array([bits for bits, _ in people])
    codes = np.array([ldp.NO_ANSWER if value == 3 else value for _, value in people])
    tallies = tallies_of(presence, codes, days=6, channel=SURE)
    least, largest = shared_reports(tallies, first, second)
    answered = codes != ldp.NO_ANSWER
    shared = inside(presence, first) & inside(presence, second) & answered
    assert 0 <= least <= shared.sum() <= largest
    early, late = sorted((first, second))
    if late.first_day <= early.last_day + 1:
        assert least == largest
    else:
        between = inside(presence, Window(early.last_day + 1, late.first_day - 1))
        assert largest - least <= (between & answered).sum() / 2


@given(people=populations, first=day_pairs, second=day_pairs)
@settings(max_examples=50)
def test_daily_reports_are_shared_where_the_first_day_is_the_same(people, first, second) -> None:
    presence = np.array([bits for bits, _ in people])
    codes = np.tile(np.array([[value % 3] for _, value in people]), (1, 6))
    tallies = tallies_of(presence, codes, days=6, channel=SURE)
    least, largest = shared_reports(tallies, first, second)

    def first_days(window: Window) -> np.ndarray:
        days = np.arange(window.first_day, window.last_day + 1)
        present = presence[:, np.newaxis] >> (days - 1) & 1
        return np.where(present.any(axis=1), days[np.argmax(present, axis=1)], -1)

    in_both = (first_days(first) > 0) & (first_days(second) > 0)
    assert least == (in_both & (first_days(first) == first_days(second))).sum()
    assert largest >= in_both.sum()


@given(people=populations, window=day_pairs, since=st.integers(1, 6), daily=st.booleans())
@settings(max_examples=50)
def test_new_and_returning_visitors_are_counted_without_error(people, window, since, daily) -> None:
    if since >= window.first_day:
        return
    presence = np.array([bits for bits, _ in people])
    days = np.arange(6)
    values = np.array([value % 3 for _, value in people])
    codes = (values[:, np.newaxis] + days) % 3 if daily else values
    tallies = tallies_of(presence, codes, days=6, channel=SURE)
    days_of = np.arange(window.first_day - 1, window.last_day)
    first_day = np.argmax(presence[:, np.newaxis] >> days_of & 1, axis=1)
    seen = (values + window.first_day - 1 + first_day) % 3 if daily else values
    before = inside(presence, Window(since, window.first_day - 1))
    now = inside(presence, window)
    new = new_visitors(tallies, window=window, since=since)
    returning = returning_visitors(tallies, window=window, since=since)
    assert new.is_exact
    assert returning.is_exact
    assert new.value == pytest.approx(np.bincount(seen[now & ~before], minlength=3), abs=1e-6)
    assert returning.value == pytest.approx(np.bincount(seen[now & before], minlength=3), abs=1e-6)
    assert new.std_error == pytest.approx(0, abs=1e-3)


def test_error_of_new_visitors_is_that_of_their_part() -> None:
    presence = np.array([0b01] * 50 + [0b10] * 30 + [0b11] * 20)
    asked = np.array([0] * 25 + [ldp.NO_ANSWER] * 25 + [0, 1, 2] * 10 + [1] * 20)
    channel = ldp.oue_channel(epsilon=Fraction(1), domain_size=3)
    tallies = tallies_of(presence, asked, days=2, channel=channel)
    found = new_visitors(tallies, window=Window(2, 2), since=1)
    f = (1 / 3 - float(channel.q)) / float(channel.p - channel.q)
    variance = 30**2 * ldp.pure_variance(f, n_reports=30, n_population=30, channel=channel)
    assert found.std_error**2 == pytest.approx(np.full(3, variance))
    assert np.all(found.ci_low < found.value)
    left = tallies_of(presence[:50], asked[:50], days=2, channel=channel)
    nobody = new_visitors(left, window=Window(2, 2), since=1)
    assert nobody.value.tolist() == nobody.ci_high.tolist() == [0, 0, 0]


DAYS = 5
RUNS = 250
CHANNEL = ldp.grr_channel(epsilon=Fraction(2), domain_size=4)


def people(rng, *, kind) -> tuple[np.ndarray, np.ndarray]:
    presence = rng.integers(1, 2**DAYS, 2400)
    values = rng.choice(4, 2400, p=[0.55, 0.42, 0.02, 0.01])
    values = np.where(presence % 8 == 3, 1, values)
    if kind == "static":
        return presence, values
    changed = rng.random((2400, DAYS)) < 0.3
    return presence, np.where(changed, (values[:, np.newaxis] + 1) % 4, values[:, np.newaxis])


def run(rng: np.random.Generator, presence: np.ndarray, values: np.ndarray) -> IndicatorTallies:
    people = np.flatnonzero(rng.random(presence.size) < 1 / 3)
    kept = rng.random((people.size, 4)) < float(CHANNEL.p)
    moved = (np.arange(4) + rng.integers(1, 4, (people.size, 4))) % 4
    answers = np.where(kept, np.arange(4), moved)
    asked = values[people]
    codes = np.take_along_axis(answers, asked.reshape(people.size, -1), axis=1).reshape(asked.shape)
    return tallies_of(presence[people], codes, days=DAYS, channel=CHANNEL, population=presence)


def first_values(presence: np.ndarray, values: np.ndarray, window: Window) -> np.ndarray:
    days = np.arange(window.first_day, window.last_day + 1) - 1
    present = presence[:, np.newaxis] >> days & 1
    chosen = days[np.argmax(present, axis=1)]
    per_day = values if values.ndim == 2 else np.tile(values[:, np.newaxis], (1, DAYS))
    return np.where(present.any(axis=1), per_day[np.arange(presence.size), chosen], -1)


def truth(presence: np.ndarray, values: np.ndarray, window: Window, *, of: str) -> np.ndarray:
    seen = first_values(presence, values, window)
    counts = np.bincount(seen[seen >= 0], minlength=4)
    return counts / counts.sum() if of == "frequency" else counts


@pytest.mark.parametrize(("kind", "first", "second"), [("static", (1, 1), (4, 5)), ("daily", (1, 3), (2, 4))])
def test_errors_and_coverage_are_bounded_where_shared_reports_are_not_known(kind, first, second) -> None:
    rng = np.random.default_rng(17)
    presence, values = people(rng, kind=kind)
    first, second = Window(*first), Window(*second)
    targets = []
    for of in ("frequency", "visitors"):
        begin, end = (truth(presence, values, window, of=of) for window in (first, second))
        targets += [(window_difference, of, end - begin), (window_sum, of, begin + end)]
    found: list[list[WindowEstimate]] = [[] for _ in targets]
    for _ in range(RUNS):
        tallies = run(rng, presence, values)
        for estimates, (function, of, _) in zip(found, targets, strict=True):
            estimates.append(function(tallies, first=first, second=second, of=of))
    for estimates, (_, _, expected) in zip(found, targets, strict=True):
        assert not any(estimate.is_exact for estimate in estimates)
        check_runs(estimates, expected)


def check_runs(estimates: list[WindowEstimate], expected: np.ndarray) -> None:
    errors = np.array([estimate.value - expected for estimate in estimates])
    assert np.all(np.abs(errors.mean(axis=0)) < 4.5 * errors.std(axis=0) / np.sqrt(len(estimates)))
    stated = np.array([(estimate.std_error**2).sum() for estimate in estimates])
    ratio = (errors**2).sum(axis=1) / stated.mean()
    standard_error = ratio.std() / np.sqrt(len(estimates))
    assert standard_error < 0.1
    covered = np.array([((e.ci_low <= expected) & (expected <= e.ci_high)).mean() for e in estimates])
    doubt = covered.std() / np.sqrt(len(estimates))
    assert 0.3 < ratio.mean() < 1 + 4 * standard_error
    assert covered.mean() > 0.95 - 4 * doubt


def test_swapped_daily_values_share_their_sampling_error_the_wrong_way() -> None:
    """Anyone who says 0 on the first day says 1 on the third: a difference doubles the error of the draw."""
    presence = np.full(400, 0b101)
    codes = np.stack([np.arange(400) % 2, np.zeros(400), 1 - np.arange(400) % 2], axis=1)
    tallies = tallies_of(presence[:100], codes[:100], days=3, channel=SURE, population=presence)
    found = window_difference(tallies, first=Window(1, 1), second=Window(3, 3), of="frequency")
    one = ldp.pure_variance(0.5, n_reports=100, n_population=400, channel=SURE)
    assert found.std_error[0] == pytest.approx(2 * np.sqrt(one), rel=1e-6)


def test_interval_of_a_difference_reaches_as_far_as_those_of_its_parts() -> None:
    presence = np.array([0b01] * 50 + [0b10] * 80)
    codes = np.array([1] * 25 + [0] * 25 + [1] * 80)
    tallies = tallies_of(presence, codes, days=2, channel=CHANNEL)
    found = window_difference(tallies, first=Window(1, 1), second=Window(2, 2), of="frequency")
    found_of = ((np.array([25, 25, 0, 0]), 50), (np.array([0, 80, 0, 0]), 80))
    one, two = (ldp.pure_frequencies(c, n_reports=n, n_population=n, channel=CHANNEL) for c, n in found_of)
    down = np.hypot(one.ci_high - one.frequency, two.frequency - two.ci_low)
    up = np.hypot(one.frequency - one.ci_low, two.ci_high - two.frequency)
    assert found.ci_low == pytest.approx(two.frequency - one.frequency - down)
    assert found.ci_high == pytest.approx(two.frequency - one.frequency + up)
    assert np.all(np.abs(up - down) > 1e-3)


def test_what_cannot_be_is_refused() -> None:
    for function, changes, message in (
        (window_difference, {"second": Window(3, 4)}, r"window must lie within days 1\.\.3, got 3\.\.4"),
        (window_difference, {"second": Window(3, 3)}, r"window 3\.\.3 must have reports, got 0"),
        (window_sum, {"first": Window(3, 3)}, r"window 3\.\.3 must have reports, got 0"),
        (window_sum, {"level": 1.0}, r"level must be in \(0, 1\), got 1.0"),
        (new_visitors, {"window": Window(2, 2), "since": 2}, r"since must be in \[1, 2\), got 2"),
        (returning_visitors, {"window": Window(2, 2), "since": 0}, r"since must be in \[1, 2\), got 0"),
        (new_visitors, {"window": Window(3, 3), "since": 1}, "new visitors must have reports, got 0 of 4"),
    ):
        presence = np.array([0b001] * 5 + [0b010] * 5)
        everyone = np.concatenate([presence, [0b100] * 4])
        tallies = tallies_of(presence, np.zeros(10), days=3, channel=SURE, population=everyone)
        both = {"first": Window(1, 1), "second": Window(2, 2), "of": "visitors"}
        windows = {} if "window" in changes else both
        refuses(message, function, tallies, **windows | changes)


@pytest.mark.parametrize(
    ("people", "second", "told"),
    [
        ({0b101: 30, 0b001: 20, 0b100: 20, 0b010: 9}, (3, 3), (21, 30)),  # day 2 is hidden
        ({0b101: 9, 0b001: 20, 0b100: 20, 0b010: 30}, (3, 3), (0, 29)),  # few go straight
        ({0b101: 30, 0b001: 20, 0b100: 20, 0b010: 10}, (3, 3), (30, 30)),
        ({0b011: 9, 0b001: 20, 0b010: 20}, (2, 2), (0, 29)),  # few are on both
        ({0b011: 30, 0b001: 9, 0b010: 20}, (2, 2), (0, 39)),  # few are on the first day only
        ({0b011: 30, 0b001: 20, 0b010: 9}, (2, 2), (0, 39)),  # few are on the second day only
        ({0b011: 30, 0b001: 20, 0b010: 10}, (2, 2), (30, 30)),
    ],
)
def test_an_error_tells_nothing_of_few_visitors_and_is_no_smaller_for_it(people, second, told) -> None:
    presence = np.repeat(np.array(list(people)), list(people.values()))
    exact = tallies_of(presence, np.zeros(presence.size, int), days=3, channel=COIN)
    tallies, windows = replace(exact, small_cell=10), (Window(1, 1), Window(*second))
    assert shared_reports(tallies, *windows) == told
    asked = {"first": windows[0], "second": windows[1], "of": "frequency"}
    found, sharper = (window_difference(each, **asked) for each in (tallies, exact))
    assert (found.std_error >= sharper.std_error - 1e-12).all()
    assert found.is_exact == (sharper.is_exact and told == shared_reports(exact, *windows))


def test_no_figure_is_made_of_few_visitors() -> None:
    presence = np.repeat(np.array([0b01, 0b11, 0b10]), [9, 20, 20])
    exact = tallies_of(presence, np.zeros(presence.size, int), days=2, channel=COIN)
    limited, days = (lambda limit: replace(exact, small_cell=limit)), (Window(1, 1), Window(2, 2))
    assert new_visitors(limited(20), window=days[1], since=1).is_exact
    with pytest.raises(FewVisitorsError, match="0 or at least 21, got fewer"):
        new_visitors(limited(21), window=days[1], since=1)
    with pytest.raises(FewVisitorsError, match="0 or at least 30, got fewer"):
        window_difference(limited(30), first=days[0], second=days[1], of="visitors")
