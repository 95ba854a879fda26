"""Whole way, many keys: errors are as large as the formula says, and intervals hold the truth as often.

The long form of this is `benchmarks/soak.py`.
"""

from dataclasses import dataclass
from typing import get_args

import numpy as np
import pytest

from ldp import (
    Delta,
    KeyedPrf,
    KeyedStream,
    PlanSpec,
    Sanitiser,
    all_unions,
    pure_frequencies,
    pure_variance,
    tally_visitors,
)
from ldp.params import Mechanism
from ldp.tallies import tally_reports
from tests.ldp.exact import make_plan

DAYS = 3
N_KEYS = 400
WINDOWS = [(a, b) for a in range(1, DAYS + 1) for b in range(a, DAYS + 1)]
INDICATORS = [("static", 3), ("static", 12), ("daily", 5)]  # ADP takes GRR and OUE


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """True values of 3,000 subscribers."""

    pseudonyms: np.ndarray
    presence: np.ndarray
    static: list[np.ndarray]
    daily: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """Of one key and indicator, over windows and categories."""

    squared: float
    expected: float
    covered: float


@pytest.fixture(scope="module")
def people() -> People:
    rng = np.random.default_rng(11)
    n = 3000
    presence = rng.integers(1, 2**DAYS, n).astype(np.uint64)
    return People(
        pseudonyms=rng.integers(0, 2**63, n, dtype=np.uint64),
        presence=presence,
        static=[rng.choice(3, n, p=[0.6, 0.39, 0.01]).astype(np.int32), (presence.astype(np.int32) + 3) % 8],
        daily=rng.choice(5, (n, DAYS), p=[0.5, 0.3, 0.1, 0.08, 0.02]).astype(np.int32),
    )


def reports_of(people: People, sanitiser: Sanitiser) -> list[np.ndarray]:
    """What everybody reports, as words; of the daily indicator on each day."""
    nothing = np.full(people.presence.size, -1, np.int32)
    *static, _ = sanitiser.reports(people.pseudonyms, [*people.static, nothing])
    daily = [
        sanitiser.reports(people.pseudonyms, [nothing, nothing, people.daily[:, day].copy()])[2]
        for day in range(DAYS)
    ]
    return [*static, np.stack(daily, axis=1)]


def tally(people: People, reports: list[np.ndarray], *, plan: PlanSpec, unary: set[int]) -> Delta:
    delta = Delta.zero(plan)
    tally_visitors(people.presence, delta.visitors, sign=1)
    for index, words in enumerate(reports):
        tally_reports(people.presence, words, delta, index=index, is_unary=index in unary, sign=1)
    return delta


def truth_of(people: People, plan: PlanSpec) -> Delta:
    codes = [values.astype(np.uint16)[..., np.newaxis] for values in (*people.static, people.daily)]
    return tally(people, codes, plan=plan, unary=set())


def sanitised(people: People, *, plan: PlanSpec, key: bytes) -> Delta:
    reports = reports_of(people, Sanitiser(plan, KeyedPrf(key)))
    unary = {index for index in range(plan.d) if plan.is_unary(index)}
    return tally(people, reports, plan=plan, unary=unary)


def errors_of(delta: Delta, *, truth: Delta, index: int, plan: PlanSpec) -> Errors:
    visitors, n_reports = all_unions(delta.visitors), all_unions(delta.n_reports[index])
    counts, true_counts = all_unions(delta.counts[index]), all_unions(truth.counts[index])
    squared = expected = covered = 0.0
    for a, b in WINDOWS:
        f = true_counts[:, a, b] / visitors[a, b]
        sizes = {
            "n_reports": int(n_reports[a, b]),
            "n_population": int(visitors[a, b]),
            "channel": plan.channel(index),
        }
        estimates = pure_frequencies(counts[:, a, b], **sizes)
        squared += float(((estimates.frequency - f) ** 2).sum())
        expected += float(pure_variance(f, **sizes).sum())
        covered += float(((estimates.ci_low <= f) & (f <= estimates.ci_high)).mean())
    return Errors(squared=squared, expected=expected, covered=covered / len(WINDOWS))


@pytest.mark.parametrize("mechanism", get_args(Mechanism))
def test_errors_and_coverage_are_as_stated(people: People, mechanism: str) -> None:
    plan = make_plan(*INDICATORS, mechanism=mechanism, days=DAYS)
    truth = truth_of(people, plan)
    stream = KeyedStream(b"coverage of keys")
    found: list[list[Errors]] = [[] for _ in INDICATORS]
    for _ in range(N_KEYS):
        delta = sanitised(people, plan=plan, key=stream.words(2).tobytes())
        for index in range(plan.d):
            found[index].append(errors_of(delta, truth=truth, index=index, plan=plan))
    for errors in found:
        expected = np.array([e.expected for e in errors])
        excess = np.array([e.squared for e in errors]) - expected
        standard_error = excess.std() / np.sqrt(N_KEYS)
        assert standard_error < 0.06 * expected.mean()
        assert abs(excess.mean()) < 4 * standard_error
        covered = np.array([e.covered for e in errors])
        standard_error = covered.std() / np.sqrt(N_KEYS)
        assert standard_error < 0.01
        assert abs(covered.mean() - 0.95) < 4 * standard_error


def test_answers_of_all_indicators_add_up_to_the_visitors_under_sampling(people: People) -> None:
    delta = sanitised(people, plan=make_plan(*INDICATORS, days=DAYS), key=bytes(16))
    visitors = all_unions(delta.visitors)
    n_reports = np.stack([all_unions(reports) for reports in delta.n_reports])
    assert np.array_equal(n_reports.sum(axis=0), visitors)
    for a, b in WINDOWS:
        n = visitors[a, b]
        standard_error = np.sqrt(n * (1 / 3) * (2 / 3))
        assert np.all(np.abs(n_reports[:, a, b] - n / 3) < 5 * standard_error)
