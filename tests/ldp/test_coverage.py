"""Whole way, many keys: errors are as large as the formula says, and intervals hold the truth as often.

The long form of this is `benchmarks/soak.py`.
"""

from types import SimpleNamespace

import numpy as np
import pytest

import ldp
from ldp.tallies import tally_reports
from tests.ldp.exact import make_plan

DAYS = 3
N_KEYS = 250
WINDOWS = [(a, b) for a in range(1, DAYS + 1) for b in range(a, DAYS + 1)]
INDICATORS = [("static", 3), ("static", 12), ("daily", 5)]  # ADP takes GRR and OUE


@pytest.fixture(scope="module")
def people() -> SimpleNamespace:
    """True values of 3,000 subscribers."""
    rng = np.random.default_rng(11)
    n = 3000
    presence = rng.integers(1, 2**DAYS, n).astype(np.uint64)
    return SimpleNamespace(
        pseudonyms=rng.integers(0, 2**63, n, dtype=np.uint64),
        presence=presence,
        static=[rng.choice(3, n, p=[0.6, 0.39, 0.01]).astype(np.int32), (presence.astype(np.int32) + 3) % 8],
        daily=rng.choice(5, (n, DAYS), p=[0.5, 0.3, 0.1, 0.08, 0.02]).astype(np.int32),
    )


def reports_of(people, sanitiser: ldp.Sanitiser) -> list[np.ndarray]:
    """What everybody reports, as words; of the daily indicator on each day."""
    nothing = np.full(people.presence.size, -1, np.int32)
    *static, _ = sanitiser.reports(people.pseudonyms, [*people.static, nothing])
    daily = [
        sanitiser.reports(people.pseudonyms, [nothing, nothing, people.daily[:, day].copy()])[2]
        for day in range(DAYS)
    ]
    return [*static, np.stack(daily, axis=1)]


def tally(people, reports: list[np.ndarray], *, plan: ldp.PlanSpec, unary: set[int]) -> ldp.Delta:
    delta = ldp.Delta.zero(plan)
    ldp.tally_visitors(people.presence, delta.visitors, sign=1)
    for index, words in enumerate(reports):
        tally_reports(people.presence, words, delta, index=index, is_unary=index in unary, sign=1)
    return delta


def truth_of(people, plan: ldp.PlanSpec) -> ldp.Delta:
    codes = [values.astype(np.uint16)[..., np.newaxis] for values in (*people.static, people.daily)]
    return tally(people, codes, plan=plan, unary=set())


def sanitised(people, *, plan: ldp.PlanSpec, key: bytes) -> ldp.Delta:
    reports = reports_of(people, ldp.Sanitiser(plan, ldp.KeyedPrf(key)))
    unary = {index for index in range(plan.d) if plan.is_unary(index)}
    return tally(people, reports, plan=plan, unary=unary)


def errors_of(delta: ldp.Delta, *, truth: ldp.Delta, index: int, plan: ldp.PlanSpec) -> tuple[float, ...]:
    visitors, n_reports = ldp.all_unions(delta.visitors), ldp.all_unions(delta.n_reports[index])
    counts, true_counts = ldp.all_unions(delta.counts[index]), ldp.all_unions(truth.counts[index])
    squared = expected = covered = 0.0
    for a, b in WINDOWS:
        f = true_counts[:, a, b] / visitors[a, b]
        sizes = {
            "n_reports": int(n_reports[a, b]),
            "n_population": int(visitors[a, b]),
            "channel": plan.channel(index),
        }
        estimates = ldp.pure_frequencies(counts[:, a, b], **sizes)
        squared += float(((estimates.frequency - f) ** 2).sum())
        expected += float(ldp.pure_variance(f, **sizes).sum())
        covered += float(((estimates.ci_low <= f) & (f <= estimates.ci_high)).mean())
    return squared, expected, covered / len(WINDOWS)


@pytest.mark.parametrize("mechanism", ["smp-adp", "rsfd-adp"])
def test_errors_and_coverage_are_as_stated(people, mechanism: str) -> None:
    plan = make_plan(*INDICATORS, mechanism=mechanism, days=DAYS)
    truth = truth_of(people, plan)
    stream = ldp.KeyedStream(b"coverage of keys")
    found = [[] for _ in INDICATORS]
    for _ in range(N_KEYS):
        delta = sanitised(people, plan=plan, key=stream.words(2).tobytes())
        for index in range(plan.d):
            found[index].append(errors_of(delta, truth=truth, index=index, plan=plan))
    for errors in found:
        squared, expected, covered = np.array(errors).T
        excess = squared - expected
        standard_error = excess.std() / np.sqrt(N_KEYS)
        assert standard_error < 0.07 * expected.mean()  # finds a variance that is off by a third
        assert abs(excess.mean()) < 4 * standard_error
        standard_error = covered.std() / np.sqrt(N_KEYS)
        assert standard_error < 0.01
        assert abs(covered.mean() - 0.95) < 4 * standard_error
