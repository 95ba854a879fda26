"""Moves from reports on one of a day's: unbiased, with the exact variance, covering, balanced."""

from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import ldp
from ldp.estimation.estimators import ENDLESS
from ldp.estimation.joint.moves import MoveDay, balanced_moves, move_day, moves_of_sets, moves_of_values
from ldp.estimation.multiple import above_zero
from ldp.estimation.simulation import Crowd, epsilon_for_plan, forecast
from ldp.privacy.moves import MoveSpec
from ldp.protocols.projective_space import value_counts
from tests.ldp.exact import refuses
from tests.ldp.privacy.test_plans import built

SPEC = MoveSpec(places=4, per_day=3)
K, N, RUNS = SPEC.places + 1, 900, 200
MOVES = {"slug": "trips", "kind": "daily", "domain_size": SPEC.size, "moves": SPEC}
PEOPLE = np.arange(N, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
CODES = np.arange(SPEC.size).reshape(K, K)
EDGES = CODES[~np.eye(K, dtype=np.bool_)]
# Stays of a day; the last two make more moves than three. Place 3 is never reached.
STAYS = [(), (0,), (0, 1), (1, 0), (0, 1, 0), (0, 1, 2, 0)]


def day_of(shift: int) -> tuple[Any, Any]:
    """Moves of everyone on a day; most repeat the day before."""
    moves = []
    for person in range(N):
        path = (SPEC.outside, *STAYS[(person + shift * (person % 3 == 0)) % len(STAYS)], SPEC.outside)
        moves.append([a * K + b for a, b in pairwise(path)] if len(path) > 2 else [])
    starts = np.cumsum([0, *map(len, moves)])
    return starts, np.array([move for of_person in moves for move in of_person], np.int32)


def shares_of(starts: Any, moves: Any) -> Any:
    """Return the chance of each person to report each move, shape (N, size)."""
    found, n_moves = np.zeros((N, SPEC.size)), np.diff(starts)
    np.add.at(found, (np.repeat(np.arange(N), n_moves), moves), 1.0)
    return found / np.maximum(n_moves, SPEC.per_day)[:, None]


DAYS = [day_of(shift) for shift in range(3)]
PI = [shares_of(*day) for day in DAYS]
TRUTH = [SPEC.per_day * pi.sum(axis=0) for pi in PI]  # moves of everyone, with their weights


def plan_of(epsilon: str, *others: dict[str, Any]) -> ldp.PlanSpec:
    return built(MOVES, *others, days=3, epsilon=Decimal(epsilon))


HALF, ALL = plan_of("1", {}), plan_of("4")  # of the people are asked about moves


def days_of(plan: ldp.PlanSpec, run: int) -> list[MoveDay]:
    sanitiser, channel = ldp.Sanitiser(plan, ldp.KeyedPrf(run.to_bytes(16, "big"))), plan.answer_channel(0)
    asked, found = np.flatnonzero(sanitiser.asked(PEOPLE) == 0), []
    for day, (starts, moves) in enumerate(DAYS, start=1):
        picked = sanitiser.picked_moves(0, PEOPLE, starts=starts, codes=moves, day=day)[asked]
        sent = sanitiser.report(0, PEOPLE[asked], picked, day=day)[:, 0]
        counts = value_counts(np.bincount(sent, minlength=plan.tally_sizes[0]), channel=channel)
        found.append(move_day(counts, channel=channel, n_reports=len(asked), n_visitors=N))
    return found


@pytest.fixture(scope="module", params=[HALF, ALL], ids=["half", "all"])
def runs(request) -> tuple[ldp.PlanSpec, list[list[MoveDay]]]:
    return request.param, [days_of(request.param, run) for run in range(RUNS)]


def test_moves_of_a_day_are_unbiased_with_the_exact_variance(runs) -> None:
    """Over the noise, the choice of a move and the sample of 200 keys, in standard errors."""
    plan, found = runs
    channel, pi = plan.answer_channel(0), PI[0]
    f, second = pi.mean(axis=0), (pi**2).mean(axis=0)
    scores = []
    for each in found:
        n = each[0].reports.n_reports
        endless = ldp.pure_variance(f, n_reports=n, n_population=ENDLESS, channel=channel)
        exact = endless - (second - f**2) * (n - 1) / ((N - 1) * n)
        moves = moves_of_values(each[:1], spec=SPEC)
        scores.append((moves.value - TRUTH[0]) / (SPEC.per_day * N * exact**0.5))
    z = np.array(scores)[:, EDGES]
    assert np.abs(z.mean(axis=0)).max() * RUNS**0.5 < 5.5
    spread = np.abs((z**2).mean(axis=0) - 1) / ((z**4).mean(axis=0) - 1) ** 0.5
    assert spread.max() * RUNS**0.5 < 5.5


@pytest.mark.parametrize("n_days", [1, 3])
def test_intervals_of_moves_and_of_their_sums_cover(runs, n_days: int) -> None:
    """Sums over days are as sure as single days, without the width of errors that all add up."""
    _, found = runs
    truth = np.sum(TRUTH[:n_days], axis=0)
    sets = [*(row[np.arange(K) != i] for i, row in enumerate(CODES)), EDGES]
    of_sets = np.array([truth[codes].sum() for codes in sets])
    reach = 3.5 * (0.05 * 0.95 / RUNS) ** 0.5
    for expected, all_of in (
        (truth[EDGES], [moves_of_values(each[:n_days], spec=SPEC)[EDGES] for each in found]),
        (of_sets, [moves_of_sets(each[:n_days], sets, spec=SPEC) for each in found]),
    ):
        inside = [(each.ci_low <= expected) & (expected <= each.ci_high) for each in all_of]
        assert np.mean(inside) > 0.95 - reach
        errors = np.mean([each.std_error for each in all_of], axis=0)
        spread = np.std([each.value for each in all_of], axis=0, ddof=1)
        assert (spread / errors).max() < 1 + 5 / (2 * RUNS) ** 0.5


def test_days_whose_visitors_all_report_err_apart() -> None:
    """Everyone is asked on two days: no sample is shared, and the error is the root of the squares."""
    channel = HALF.answer_channel(0)
    counts = value_counts(np.full(channel.n_codes, 10), channel=channel)
    day = move_day(counts, channel=channel, n_reports=10 * channel.n_codes, n_visitors=10 * channel.n_codes)
    one, two = (moves_of_values([day] * n, spec=SPEC) for n in (1, 2))
    assert two.value == pytest.approx(2 * one.value)
    assert two.std_error == pytest.approx(2**0.5 * one.std_error)
    half = move_day(counts, channel=channel, n_reports=day.n_visitors, n_visitors=2 * day.n_visitors)
    one, two = (moves_of_values([half] * n, spec=SPEC) for n in (1, 2))
    assert (two.std_error > 2**0.5 * one.std_error).all()
    assert (two.std_error < 2 * one.std_error).all()
    refuses("n_visitors must be >= n_reports", move_day, counts, channel=channel, n_reports=9, n_visitors=8)


def test_balanced_moves_are_the_nearest_ones() -> None:
    """Against a general solver of the same quadratic program."""
    from scipy.optimize import minimize

    channel = ldp.grr_channel(epsilon=Fraction(2), domain_size=9)
    spec, counts = MoveSpec(places=2, per_day=2), np.array([40, 9, 60, 30, 44, 5, 12, 70, 130])
    day = move_day(counts, channel=channel, n_reports=400, n_visitors=400)
    raw = moves_of_values([day], spec=spec).value
    codes = [1, 2, 3, 5, 6, 7, 8]  # all but a place to itself
    balance = np.zeros((2, 7))
    for column, code in enumerate(codes[:-1]):
        for place in (0, 1):
            balance[place, column] = (code // 3 == place) - (code % 3 == place)
    solved = minimize(
        lambda x: ((x - raw[codes]) ** 2).sum() / 1000,
        np.full(7, 800 / 7),
        bounds=[(0, None)] * 7,
        constraints=[
            {"type": "eq", "fun": lambda x: balance @ x},
            {"type": "eq", "fun": lambda x: x.sum() - 800},
        ],
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert balanced_moves([day], spec=spec)[codes] == pytest.approx(solved.x, abs=1e-3)


def test_moves_that_no_one_makes_are_rarely_listed(runs) -> None:
    """Fresh bits: the counts of days add up to one binomial; in 5% of runs one or more is listed wrongly."""
    plan, found = runs
    channel, never = plan.answer_channel(0), EDGES[np.sum(TRUTH, axis=0)[EDGES] == 0]
    assert len(never) > 8
    wrong, right = 0, 0
    for each in found:
        n = sum(day.reports.n_reports for day in each)
        frequency = np.sum([day.reports.n_reports * day.reports.estimates.frequency for day in each], axis=0)
        counts = np.rint(frequency * float(channel.p - channel.q) + n * float(channel.q)).astype(np.int64)
        listed = EDGES[above_zero(counts[EDGES], n_reports=n, channel=channel)]
        wrong += np.isin(listed, never).any()
        right += len(listed)
    assert wrong <= RUNS * 0.05 + 3.5 * (RUNS * 0.05 * 0.95) ** 0.5
    assert right > 0


def test_a_plan_foretells_the_error_of_moves_and_no_union() -> None:
    crowd, sizes = Crowd(visitors=8000, days_present=2), {"n_reports": 4000, "n_population": ENDLESS}
    found = forecast(HALF, crowd=crowd)[0]
    exact = ldp.pure_variance(1 / SPEC.size, channel=HALF.answer_channel(0), **sizes)
    assert found.day.half_width(found.even) == pytest.approx(1.959964 * float(exact) ** 0.5, rel=1e-6)
    assert found.union is None
    at = {"half_width": 0.02, "crowd": crowd, "indexes": [0]}
    wanted = epsilon_for_plan(lambda epsilon: plan_of(str(epsilon), {}), **at)
    plans = [plan_of(str(each), {}) for each in (wanted, wanted - Decimal("0.001"))]
    halves = [forecast(each, crowd=crowd)[0].day.half_width(found.even) for each in plans]
    assert halves[0] <= 0.02 < halves[1]
