"""Totals scaled by shares of categories: exact moments, unbiased and covering, with errors of shares."""

from fractions import Fraction
from itertools import combinations, product
from math import hypot

import numpy as np
import pytest

import ldp
from ldp.estimation.joint.linear import frequency_covariances
from ldp.estimation.joint.scaling import scaled_categories, scaled_total
from tests.ldp.exact import refuses

SHARES = np.array([0.38, 0.2, 0.9])
NONE = np.zeros(3)
GRR = ldp.grr_channel(epsilon=Fraction(1), domain_size=3)
OUE = ldp.oue_channel(epsilon=Fraction(1), domain_size=3)


def total(counts, *, channel, n_reports, n_population, shares=SHARES, share_errors=NONE):
    sizes = {"n_reports": n_reports, "n_population": n_population}
    found = ldp.pure_frequencies(np.asarray(counts), channel=channel, **sizes)
    return scaled_total(found, shares=shares, share_errors=share_errors, channel=channel, **sizes)


def test_mean_and_variance_are_those_of_all_samples_and_answers() -> None:
    """Three visitors, of whom two report: each sample and each pair of answers, with its chance."""
    people, p, q = [0, 1, 1, 2], float(GRR.p), float(GRR.q)
    f = np.bincount(people, minlength=3) / len(people)
    truth = len(people) * (f @ (1 / SHARES))
    values, chances = [], []
    samples = list(combinations(people, 2))
    for sample in samples:
        for answers in product(range(3), repeat=2):
            chance = np.prod([p if a == b else q for a, b in zip(sample, answers, strict=True)])
            counts = np.bincount(answers, minlength=3)
            values.append(total(counts, channel=GRR, n_reports=2, n_population=len(people)).value)
            chances.append(chance / len(samples))
    mean = np.dot(chances, values)
    assert mean == pytest.approx(truth)
    covariances = frequency_covariances(f, channel=GRR, n_reports=2, n_population=len(people))
    variance = len(people) ** 2 * (1 / SHARES) @ covariances @ (1 / SHARES)
    assert np.dot(chances, (np.array(values) - mean) ** 2) == pytest.approx(variance)


@pytest.mark.parametrize("channel", [GRR, OUE], ids=["GRR", "OUE"])
def test_the_error_is_that_of_the_reports_and_of_the_slopes_in_each_share(channel) -> None:
    sizes = {"n_reports": 1000, "n_population": 5000}
    counts, errors = [500, 300, 200], np.array([0.02, 0.01, 0.0])
    known, found = (total(counts, channel=channel, share_errors=each, **sizes) for each in (NONE, errors))
    estimates = ldp.pure_frequencies(np.array(counts), channel=channel, **sizes)
    covariances = frequency_covariances(estimates.consistent, channel=channel, **sizes)
    assert known.std_error == pytest.approx(5000 * np.sqrt((1 / SHARES) @ covariances @ (1 / SHARES)))
    slopes = [
        (total(counts, channel=channel, shares=SHARES + step, **sizes).value - known.value) / 1e-7
        for step in 1e-7 * np.eye(3)
    ]
    assert found.std_error == pytest.approx(hypot(known.std_error, *(slopes * errors)), rel=1e-5)
    half = 1.959964 * found.std_error
    assert (found.ci_low, found.ci_high) == pytest.approx((found.value - half, found.value + half))
    assert found.value == known.value


def test_one_share_for_all_has_no_error_of_the_reports() -> None:
    sizes = {"n_reports": 10, "n_population": 50}
    found = total([5, 3, 2], channel=GRR, shares=np.full(3, 0.4), **sizes)
    assert (found.value, found.std_error, found.ci_low, found.ci_high) == (125, 0, 125, 125)


def test_categories_keep_the_intervals_of_their_visitors() -> None:
    sizes = {"n_reports": 1000, "n_population": 5000}
    estimates = ldp.pure_frequencies(np.array([500, 300, 200]), channel=GRR, **sizes)
    asked = {"shares": SHARES, "n_population": 5000}
    plain = scaled_categories(estimates, share_errors=NONE, **asked)
    wider = scaled_categories(estimates, share_errors=np.array([0, 0.01, 0]), **asked)
    for place, (one, other) in enumerate(zip(plain, wider, strict=True)):
        scale = 5000 / SHARES[place]
        assert one.value == other.value == pytest.approx(scale * estimates.frequency[place])
        assert one.ci_low == pytest.approx(scale * estimates.ci_low[place])
        assert one.ci_high == pytest.approx(scale * estimates.ci_high[place])
        assert (one == other) == (place != 1)
    error = 5000 * estimates.frequency[1] / SHARES[1] ** 2 * 0.01
    assert wider[1].std_error == pytest.approx(hypot(plain[1].std_error, error))


def test_what_is_no_share_is_refused() -> None:
    asked = {"channel": GRR, "n_reports": 10, "n_population": 10}
    for shares in ([0, 0.5, 1], [0.5, 1.1, 1], [0.5, np.nan, 1]):
        refuses("shares must be > 0 and <= 1", total, [5, 3, 2], shares=np.array(shares), **asked)
    for errors in ([0, 0], [0, -0.1, 0], [0, 0, np.inf]):
        refuses("share_errors must be >= 0", total, [5, 3, 2], share_errors=np.array(errors), **asked)
