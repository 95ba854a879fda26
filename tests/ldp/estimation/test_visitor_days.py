"""Visitors of a stream added over days: unbiased, and never more certain than stated."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import ldp
from ldp.estimation.series.visitor_days import DayShares, visitor_days
from tests.ldp.exact import make_plan, refuses

N, DAYS, WINDOW, K, KEYS = 900, 6, 3, 3, 300


@pytest.mark.parametrize(("epsilon", "tightness"), [("4", 0.2), ("0.5", 0.8)])
def test_sums_are_unbiased_and_their_error_is_an_upper_bound(epsilon: str, tightness: float) -> None:
    """300 keys and few people, of values that last: with little noise most of the error is who is asked.

    The bound is then far off, since the slots together ask everyone.
    """
    random = np.random.default_rng(5)
    plan = make_plan(
        ("daily", K), mechanism="smp-stream", days=DAYS, window_days=WINDOW, epsilon=Decimal(epsilon)
    )
    channel = plan.answer_channel(0)
    values = np.repeat(random.choice(K, size=(N, 1), p=[0.6, 0.3, 0.1]), DAYS, axis=1).astype(np.int32)
    is_there = random.random((N, DAYS)) < 0.8
    truth = np.array([np.count_nonzero((values == code) & is_there) for code in range(K)])
    found, errors = np.zeros((KEYS, K)), np.zeros((KEYS, K))
    for key in range(KEYS):
        people = random.integers(0, 2**63, N, dtype=np.uint64)
        sanitiser = ldp.Sanitiser(plan, ldp.KeyedPrf(random.bytes(16)))
        is_on = sanitiser.answer_days(0, people)[:, None] >> np.arange(DAYS, dtype=np.uint64) & np.uint64(1)
        days = []
        for day in range(DAYS):
            asked = np.where((is_on[:, day] == 1) & is_there[:, day], values[:, day], -1).astype(np.int32)
            words = sanitiser.report(0, people, asked, day=day + 1)[:, 0]
            counts = np.bincount(words[words != ldp.NO_ANSWER], minlength=K)
            sizes = {"n_reports": int(counts.sum()), "n_population": int(is_there[:, day].sum())}
            shares = ldp.pure_frequencies(counts, **sizes, channel=channel).frequency
            days.append(
                DayShares(
                    day=day + 1, shares=shares, n_reports=sizes["n_reports"], n_visitors=sizes["n_population"]
                )
            )
        estimate = visitor_days(days, channel=channel, window_days=WINDOW)
        assert not estimate.is_exact
        found[key], errors[key] = estimate.value, estimate.std_error
    standard = found.std(axis=0) / np.sqrt(KEYS)
    assert (np.abs(found.mean(axis=0) - truth) < 4 * standard).all()
    # The standard deviation of 300 has an error of 4%.
    assert (found.std(axis=0) < errors.mean(axis=0) * (1 + 3.5 * 0.041)).all()
    assert (found.std(axis=0) > errors.mean(axis=0) * tightness).all()


def test_one_day_is_that_of_the_day() -> None:
    channel = ldp.grr_channel(epsilon=Fraction(1), domain_size=2)
    day = DayShares(day=4, shares=np.array([0.3, 0.7]), n_reports=50, n_visitors=200)
    estimate = visitor_days([day], channel=channel, window_days=7)
    exact = ldp.pure_variance(day.shares, n_reports=50, n_population=200, channel=channel)
    assert np.allclose(estimate.value, [60, 140]) and np.allclose(estimate.std_error, 200 * np.sqrt(exact))
    refuses("days must be at least one", visitor_days, [], channel=channel, window_days=7)
    refuses("each once", visitor_days, [day, day], channel=channel, window_days=7)
