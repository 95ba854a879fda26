"""Lists of values that someone has: exact p-values, Holm's steps, and how small a share they find."""

from bisect import bisect_left
from fractions import Fraction
from math import comb
from statistics import NormalDist

import numpy as np
import pytest

from ldp.estimation.estimators import pure_frequencies
from ldp.estimation.joint.linear import linear_answer
from ldp.estimation.multiple import above_zero, chosen_reach
from ldp.protocols.channels import grr_channel, noise_at_zero
from ldp.protocols.projective import code_channel

FOUR = grr_channel(epsilon=Fraction(1), domain_size=4)


def tail(count: int, *, n: int, q: Fraction) -> Fraction:
    """Probability that at least `count` of n reports support a value that no one has."""
    return sum((comb(n, c) * q**c * (1 - q) ** (n - c) for c in range(count, n + 1)), Fraction(0))


def least_count(*, n: int, error: Fraction) -> int:
    return next(count for count in range(n + 2) if tail(count, n=n, q=FOUR.q) <= error)


def test_a_value_is_listed_from_the_exact_binomial_count_on():
    n, error = 40, Fraction(1, 20)
    least = least_count(n=n, error=error / 4)
    for count in (least - 1, least):
        found = above_zero(np.array([count, 5, 5, 0]), n_reports=n, channel=FOUR, error=float(error))
        assert found.tolist() == [count >= least, False, False, False]


def test_each_value_found_leaves_more_error_to_the_others():
    n, error = 40, Fraction(1, 20)
    at_first, after_one = (least_count(n=n, error=error / left) for left in (4, 3))
    assert after_one < at_first
    alone = above_zero(np.array([after_one, 0, 0, 0]), n_reports=n, channel=FOUR)
    behind = above_zero(np.array([after_one, 40, 0, 0]), n_reports=n, channel=FOUR)
    assert alone.tolist() == [False] * 4
    assert behind.tolist() == [True, True, False, False]


def test_nothing_is_listed_without_reports():
    assert not above_zero(np.zeros(4, np.int64), n_reports=0, channel=FOUR).any()


@pytest.mark.parametrize(
    ("k", "n", "share"), [(62, 10**5, 0.0242), (3844, 10**5, 0.0306), (62, 10**6, 0.0077)]
)
def test_shares_that_are_found_four_times_of_five_are_those_of_the_formula(k, n, share):
    """The least share with power 0.8, of one group at epsilon 1 (the table has three digits)."""
    channel = code_channel(epsilon=Fraction(1), domain_size=k)
    spread = (n * float(channel.q) * (1 - float(channel.q))) ** 0.5
    counts = np.arange(int(n * channel.q), int(n * channel.q + 8 * spread))

    def is_listed(count):
        return above_zero(np.append(count, np.zeros(k - 1, np.int64)), n_reports=n, channel=channel)[0]

    least = (counts[bisect_left(counts, True, key=is_listed)] / n - float(channel.q)) / float(
        channel.p - channel.q
    )
    sd = (float(noise_at_zero(channel)) / n) ** 0.5
    assert least + NormalDist().inv_cdf(0.8) * sd == pytest.approx(share, rel=0.02)


def test_sums_of_values_that_the_same_reports_chose_are_covered():
    """15 of 37 values lie where the list ends. An interval for a set chosen before covers 16%."""
    k, n, runs = 37, 20_000, 100
    channel, rng = grr_channel(epsilon=Fraction(1), domain_size=k), np.random.default_rng(1)
    error = (float(noise_at_zero(channel)) / n) ** 0.5
    share = np.array([3 * error] * 15 + [0.1] * 5 + [0.0] * 17)
    share /= share.sum()
    law = share * float(channel.p) + (1 - share) * float(channel.q)
    hits = naive = 0
    for _ in range(runs):
        counts = rng.multinomial(n, law)
        is_found = above_zero(counts, n_reports=n, channel=channel)
        sizes = {"channel": channel, "n_reports": n, "n_population": 10**9, "level": 0.95}
        weights = is_found.astype(float)
        answer = linear_answer(pure_frequencies(counts, **sizes), weights=weights, **sizes)
        missed = abs(answer.value - share[is_found].sum())
        hits += missed <= chosen_reach(int(is_found.sum()), k) * answer.std_error
        naive += answer.ci_low <= share[is_found].sum() <= answer.ci_high
    assert naive < 0.5 * runs
    assert hits >= 0.95 * runs
