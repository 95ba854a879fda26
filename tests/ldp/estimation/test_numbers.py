"""Means, shares and quantiles from threshold reports: unbiased, with the exact variance, covering."""

from decimal import Decimal
from fractions import Fraction
from itertools import permutations
from math import inf
from typing import Any

import numpy as np
import pytest

import ldp
from ldp.estimation.numbers.figures import mean_difference, number_mean, number_survival
from ldp.estimation.numbers.threshold import (
    mean_variance,
    threshold_mean,
    threshold_quantile,
    threshold_survival,
)
from ldp.estimation.simulation import Crowd, epsilon_for_plan, forecast
from ldp.estimation.windows import IndicatorTallies, Window
from ldp.keyed.designs import threshold, wave
from ldp.protocols.numbers.threshold import Scale, threshold_channel
from ldp.protocols.numbers.wave import wave_channel
from tests.ldp.exact import refuses

SCALE = Scale(cuts=(60, 120, 180, 300, 600), unit="min")
CHANNEL = threshold_channel(epsilon=Fraction(1), spacings=SCALE.spacings)
N = 3000
STAYS = np.minimum(30 + (np.arange(N) * 7919) % 700, 650)  # of visitors; half of them are asked
NEARLY_ALL = np.where(np.arange(N) % 50, 20, 500)
PEOPLE = np.arange(N, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
DESIGNS = {"threshold": (threshold, CHANNEL), "wave": (wave, wave_channel(epsilon=Fraction(2), n_levels=6))}


def counts_of(run: int, *, of: str = "threshold", stays: Any = STAYS) -> Any:
    """Codes of those who are asked, drawn again in each run."""
    (design, channel), prf = DESIGNS[of], ldp.KeyedPrf(run.to_bytes(16, "big"))
    asked = np.random.default_rng(run).permutation(N)[: N // 2]
    fields = {"pseudonyms": PEOPLE[asked], "prf": prf, "indicator": 0, "plan_version": 1}
    codes = design.answers(SCALE.levels(stays[asked]), channel=channel, **fields)
    return np.bincount(codes, minlength=channel.n_codes)


def truth_of(stays: Any) -> tuple[float, Any]:
    ends = np.array([SCALE.minimum, *SCALE.cuts])
    mean = ends[SCALE.levels(stays)].mean()
    return float(mean), (stays[:, None] >= np.array(SCALE.cuts)).mean(axis=0)


def test_mean_and_shares_are_unbiased_and_as_exact_as_they_say() -> None:
    """Over the noise and the sample of 200 keys, in standard errors."""
    mean, survival = truth_of(STAYS)
    found, scores = [], []
    for run in range(200):
        counts = counts_of(run)
        each = threshold_mean(counts, scale=SCALE, channel=CHANNEL, n_population=N)
        shares = threshold_survival(counts, channel=CHANNEL, n_population=N)
        reports = counts[::2] + counts[1::2]
        exact = mean_variance(survival, scale=SCALE, channel=CHANNEL, n_reports=reports, n_population=N)
        of_shares = ldp.pure_variance(survival, n_reports=reports, n_population=N, channel=CHANNEL)
        found.append((each.value - mean) / exact**0.5)
        scores.append((shares.frequency - survival) / of_shares**0.5)
    for each in (np.array(found), *np.array(scores).T):
        assert abs(each.mean()) * 200**0.5 < 5.5
        assert abs((each**2).mean() - 1) < 5.5 * (2 / 200) ** 0.5


def test_variance_of_the_mean_is_that_of_disjoint_samples() -> None:
    scale = Scale(cuts=(1, 2, 4))
    sure = threshold_channel(epsilon=Fraction(64), spacings=scale.spacings)
    numbers = np.array([0, 1, 1, 2, 3, 5])
    means = []
    for order in permutations(numbers):
        groups = np.reshape(order, (3, 2))
        shares = [(group >= cut).mean() for group, cut in zip(groups, scale.cuts, strict=True)]
        means.append(np.dot(scale.spacings, shares))
    survival = [(numbers >= cut).mean() for cut in scale.cuts]
    found = mean_variance(survival, scale=scale, channel=sure, n_reports=[2, 2, 2], n_population=6)
    assert found == pytest.approx(np.var(means), rel=1e-9)


@pytest.mark.parametrize(("epsilon", "expected"), [("1/2", 16.67), ("1", 4.683), ("2", 1.724), ("3", 1.221)])
def test_error_is_that_of_duchi_in_the_worst_case(epsilon: str, expected: float) -> None:
    """n Var of the mean of numbers in [-1, 1] of which half lie at either end, for n drawn from a law."""
    scale = Scale(minimum=-60, cuts=tuple(range(-59, 61)))
    channel = threshold_channel(epsilon=Fraction(epsilon), spacings=scale.spacings)
    n_reports = np.array(channel.shares) / 2**64
    variance = mean_variance([0.5] * 120, scale=scale, channel=channel, n_reports=n_reports, n_population=inf)
    e = np.exp(float(Fraction(epsilon)))
    assert variance / 60**2 == pytest.approx(((e + 1) / (e - 1)) ** 2, rel=1e-9)
    assert variance / 60**2 == pytest.approx(expected, rel=5e-4)


@pytest.mark.parametrize(
    ("of", "stays"),
    [("threshold", STAYS), ("wave", STAYS), ("wave", NEARLY_ALL)],
    ids=["threshold", "wave", "wave, nearly all"],
)
def test_intervals_of_mean_shares_and_quartiles_cover(of: str, stays: Any) -> None:
    """`benchmarks.number_coverage` asks 1,000 keys at four epsilons."""
    mean, survival = truth_of(stays)
    ordered, runs, hits = np.sort(stays), 150, np.zeros(3)
    for run in range(runs):
        counts = counts_of(run, of=of, stays=stays)
        asked = {"channel": DESIGNS[of][1], "n_population": N}
        found, shares = number_mean(counts, scale=SCALE, **asked), number_survival(counts, **asked)
        hits[0] += found.ci_low <= mean <= found.ci_high
        hits[1] += ((shares.ci_low <= survival) & (survival <= shares.ci_high)).mean()
        for share in (0.25, 0.5, 0.75):
            each, true = threshold_quantile(shares, scale=SCALE, share=share), ordered[int(share * N)]
            assert each.ci_low <= each.low < (each.high or inf) <= (each.ci_high or inf)
            hits[2] += (each.ci_low <= true < (each.ci_high or inf)) / 3
    reach = 3.5 * (0.95 * 0.05 / runs) ** 0.5
    assert np.abs(hits[:2] / runs - 0.95).max() < reach
    assert hits[2] / runs > 0.95 - reach  # at least as sure


def test_quantiles_of_sure_answers_are_those_of_the_numbers() -> None:
    sure = threshold_channel(epsilon=Fraction(64), spacings=SCALE.spacings)
    codes = np.array([10**6 * n for n in (1, 9, 3, 7, 5, 5, 8, 2, 10, 0)])
    shares = threshold_survival(codes, channel=sure, n_population=10**9)
    assert shares.consistent.tolist() == pytest.approx([0.9, 0.7, 0.5, 0.2, 0.0], abs=1e-6)
    found = {share: threshold_quantile(shares, scale=SCALE, share=share) for share in (0.05, 0.2, 0.4, 0.7)}
    assert [(each.low, each.high) for each in found.values()] == [(0, 60), (60, 120), (120, 180), (180, 300)]
    assert all((each.ci_low, each.ci_high) == (each.low, each.high) for each in found.values())
    refuses(r"share must be in \(0, 1\)", threshold_quantile, shares, scale=SCALE, share=1.0)
    codes[:2] = 0
    refuses("each of 5 cuts must have reports", threshold_survival, codes, channel=sure, n_population=N)


def tallies(run: int, kind: Any, *, of: str) -> IndicatorTallies:
    """Three days with visitors of both pairs of days, and of the first alone; daily stays grow."""
    (design, channel), prf = DESIGNS[of], ldp.KeyedPrf(run.to_bytes(16, "big"))
    bitmaps = np.array([0b011, 0b110, 0b001], np.uint64)[np.arange(N) % 3]
    fields = {"pseudonyms": PEOPLE, "prf": prf, "indicator": 0, "plan_version": 1, "channel": channel}
    days = [design.answers(SCALE.levels(STAYS + 50 * day), **fields) for day in range(3)]
    counts, visitors = np.zeros((channel.n_codes, 4, 4), np.int64), np.zeros((4, 4), np.int64)
    if kind == "static":
        ldp.tally_static(bitmaps, days[0], counts, sign=1)
    else:
        ldp.tally_daily(bitmaps, np.stack(days, axis=1), counts, sign=1)
    ldp.tally_visitors(bitmaps, visitors, sign=1)
    tallied = {"counts": counts, "n_reports": counts.sum(axis=0), "visitors": visitors}
    return IndicatorTallies(**tallied, kind=kind, channel=channel)


@pytest.mark.parametrize(
    ("of", "kind", "first", "second", "is_exact"),
    [
        ("wave", "static", Window(1, 1), Window(2, 2), True),
        ("threshold", "static", Window(1, 2), Window(2, 3), True),
        ("threshold", "static", Window(1, 1), Window(3, 3), False),
        ("threshold", "daily", Window(1, 1), Window(1, 3), True),
        ("threshold", "daily", Window(1, 1), Window(2, 2), False),
    ],
)
def test_differences_of_means_are_unbiased_and_cover(of, kind, first, second, is_exact) -> None:
    groups = [(np.arange(N) % 3 == i, *days) for i, days in enumerate([(1, 2), (2, 3), (1, 1)])]
    grown = [STAYS + 50 * day * (kind == "daily") for day in range(3)]

    def mean(window: Window) -> float:
        there = [group for group in groups if window.first_day <= group[2] and group[1] <= window.last_day]
        of = [grown[max(window.first_day, start) - 1][who] for who, start, _ in there]
        return truth_of(np.concatenate(of))[0]

    true, scores = mean(second) - mean(first), []
    for run in range(120):
        found, exact = mean_difference(tallies(run, kind, of=of), scale=SCALE, first=first, second=second)
        assert exact == is_exact
        scores.append((found.value - true) / found.std_error)
    assert abs(np.mean(scores)) * 120**0.5 < 4
    spread = np.std(scores)
    assert spread < 1 + 4 * (1 / 240) ** 0.5
    assert not is_exact or spread > 1 - 4 * (1 / 240) ** 0.5


@pytest.mark.parametrize("mechanism", ["smp-grr", "smp-oue", "smp-adp"])
def test_a_plan_foretells_the_errors_of_its_numbers(mechanism: str) -> None:
    def plan_at(epsilon: Decimal) -> ldp.PlanSpec:
        number = {"slug": "stay", "kind": "daily", "domain_size": 5, "scale": SCALE}
        asked = [
            ldp.IndicatorRequest(**each)
            for each in ({"slug": "sex", "kind": "static", "domain_size": 2}, number)
        ]
        plan = {"mechanism": mechanism, "unit": "profile", "version": 1, "days": 4, "indicators": asked}
        return ldp.build_plan(epsilon=epsilon, **plan)

    crowd, plan = Crowd(visitors=8000, days_present=2), plan_at(Decimal(1))
    found = forecast(plan, crowd=crowd)[1]
    shares = np.array(CHANNEL.shares) / 2**64
    for n, error in ((8000, found.mean_error), (16_000, found.union_mean_error)):
        sizes = {"n_reports": shares * n / 2, "n_population": n}
        variance = mean_variance([0.5] * 5, scale=SCALE, channel=CHANNEL, **sizes)
        assert error == pytest.approx(1.959964 * variance**0.5, rel=1e-6)
    of_share = ldp.pure_variance(0.5, n_reports=800, n_population=8000, channel=CHANNEL)
    assert found.day.half_width(found.even) == pytest.approx(1.959964 * of_share**0.5, rel=1e-6)
    wanted = epsilon_for_plan(plan_at, half_width=0.05, crowd=crowd, indexes=[1])
    halves = [forecast(plan_at(each), crowd=crowd)[1].day for each in (wanted, wanted - Decimal("0.001"))]
    assert halves[0].half_width(0.5) <= 0.05 < halves[1].half_width(0.5)
    assert not forecast(plan, crowd=crowd)[0].mean_error
