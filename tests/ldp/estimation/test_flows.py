"""Visitor-days on pairs, added up over days: unbiased, exact on one day, and wide enough on several."""

from fractions import Fraction

import numpy as np
import pytest

import ldp
from ldp.estimation.joint.crosstab import Reports
from ldp.estimation.joint.flows import sums_of_sets, sums_of_values
from ldp.estimation.multiple import above_zero
from ldp.privacy.joint import joint_codes
from ldp.protocols.projective_space import value_counts
from tests.ldp.privacy.test_plans import built

SIZES, N, DAYS, RUNS = (3, 2), 600, 3, 200
PLAN = built(
    {"domain_size": 3, "kind": "daily"},
    {"domain_size": 2, "kind": "daily"},
    {"slug": "pair", "kind": "daily", "domain_size": 12, "parts": ("i0", "i1")},
    days=DAYS,
)
CHANNEL = PLAN.answer_channel(2)
PEOPLE = np.arange(N, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
# Two of three stay where they are on all days, so that they repeat one answer.
MOVES = np.where(np.arange(N) % 3 == 0, 1, 0)
HOMES = (np.arange(N) // 7 % 2).astype(np.int32)
PLACES = [((np.arange(N) + day * MOVES) % 3).astype(np.int32) for day in range(DAYS)]
VALUES = [joint_codes([each, HOMES], sizes=SIZES) for each in PLACES]
OUTFLOW = [np.arange(12).reshape(4, 3)[row] for row in range(4)]  # of each origin


def reports_of(run: int) -> list[Reports]:
    sanitiser = ldp.Sanitiser(PLAN, ldp.KeyedPrf(run.to_bytes(16, "big")))
    found = []
    for values in VALUES:
        codes = sanitiser.report(2, PEOPLE, values)[:, 0]
        counts = value_counts(np.bincount(codes, minlength=PLAN.tally_sizes[2]), channel=CHANNEL)
        known = {"n_reports": N, "n_population": N, "channel": CHANNEL}
        found.append(Reports(estimates=ldp.pure_frequencies(counts, **known), **known))
    return found


@pytest.fixture(scope="module")
def runs() -> list[list[Reports]]:
    return [reports_of(run) for run in range(RUNS)]


@pytest.mark.parametrize("days", [1, DAYS])
def test_sums_are_unbiased_and_their_intervals_hold(runs, days: int) -> None:
    """In standard errors; with repeated answers a single day's error would be too small by half."""
    truth = np.sum([np.bincount(values, minlength=12) for values in VALUES[:days]], axis=0)
    for expected, found in (
        (truth, [sums_of_values(each[:days]) for each in runs]),
        (np.array([truth[row].sum() for row in OUTFLOW]), [sums_of_sets(e[:days], OUTFLOW) for e in runs]),
    ):
        values = np.array([each.value for each in found])
        errors = np.mean([each.std_error for each in found], axis=0)
        spread = values.std(axis=0, ddof=1)
        assert np.abs((values.mean(axis=0) - expected) / (spread / RUNS**0.5)).max() < 4.5
        low, high = 1 - 5 / (2 * RUNS) ** 0.5, 1 + 5 / (2 * RUNS) ** 0.5
        assert (spread / errors).max() < high
        if days == 1:
            assert (spread / errors).min() > low
        else:  # independent days would give less
            assert (spread / errors).max() > 1 / DAYS**0.5
        covered = np.mean([(each.ci_low <= expected) & (expected <= each.ci_high) for each in found])
        assert covered > 0.95 - 3.5 * (0.05 * 0.95 / RUNS) ** 0.5


def test_all_pairs_of_one_day_are_its_visitors() -> None:
    (whole,) = sums_of_sets(reports_of(1)[:1], [np.arange(12)]).value
    assert whole == pytest.approx(N)


def test_a_list_over_days_is_wrong_as_rarely_as_that_of_one() -> None:
    """No one has values 6 to 8; each day is one more chance to err."""
    channel = ldp.grr_channel(epsilon=Fraction(1), domain_size=9)
    rng, n, days, runs, wrong, found = np.random.default_rng(7), 4000, 5, 400, 0, 0
    for _ in range(runs):
        truth = rng.integers(0, 6, (days, n))
        other = (truth + rng.integers(1, 9, truth.shape)) % 9
        told = np.where(rng.random(truth.shape) < float(channel.p), truth, other)
        counts = np.stack([np.bincount(each, minlength=9) for each in told])
        listed = above_zero(counts, n_reports=[n] * days, channel=channel)
        wrong += listed[6:].any()
        found += listed[:6].all()
    assert wrong <= 0.05 * runs + 3.5 * (runs * 0.05 * 0.95) ** 0.5
    assert found > 0.9 * runs
