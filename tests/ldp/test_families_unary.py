"""Unary encoding: thresholds of the vectors, and the promise by enumeration of every report."""

from fractions import Fraction
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.stats import laplace

from ldp import (
    InvalidBudgetError,
    InvalidDomainError,
    LdpError,
    UnaryChannel,
    best_theta,
    oue_channel,
    pure_frequencies,
    pure_variance,
    sue_channel,
    the_channel,
)
from ldp.channels import MAX_DOMAIN_SIZE, MAX_EPSILON, MIN_EPSILON, WORD
from tests.ldp.exact import VECTORS, exp_bounds

MAKERS = {"SUE": sue_channel, "OUE": oue_channel, "THE": the_channel}
THRESHOLDS = [v for v in VECTORS["E_ue_thresholds"] if v["bits"] == 64 and "floor" not in v["round"]]
makers = pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)


@pytest.mark.parametrize("vector", THRESHOLDS, ids=lambda v: f"{v['proto']}-{v['eps']}")
def test_thresholds_are_those_of_the_vectors(vector: dict[str, Any]) -> None:
    channel = MAKERS[vector["proto"]](epsilon=Fraction(vector["eps"]), domain_size=5)
    assert (channel.threshold_p, channel.threshold_q) == (int(vector["Tp"]), int(vector["Tq"]))
    numerator, denominator = vector["ratio"].split("/")
    assert channel.ratio == Fraction(int(numerator), int(denominator))


def test_the_vectors_hold_both_protocols() -> None:
    assert [v["proto"] for v in THRESHOLDS] == ["OUE", "SUE"] * 3


@pytest.mark.parametrize("vector", VECTORS["base"], ids=lambda v: f"{v['eps']}-{v['c']}")
@pytest.mark.parametrize("protocol", ["SUE", "OUE"])
def test_variance_is_that_of_the_vectors(protocol: str, vector: dict[str, Any]) -> None:
    channel = MAKERS[protocol](epsilon=Fraction(vector["eps"]), domain_size=int(vector["c"]))
    variance = 1000 * pure_variance(0.0, n_reports=1000, n_population=1000, channel=channel)
    assert variance == pytest.approx(float(vector[f"nVar_{protocol}"]), rel=1e-13)


@pytest.mark.parametrize("vector", [v for v in VECTORS["estimators"] if v["kind"] == "OUE"])
def test_frequency_is_that_of_the_vectors(vector: dict[str, Any]) -> None:
    n = int(vector["n"])
    channel = oue_channel(epsilon=Fraction(vector["eps"]), domain_size=3)
    estimates = pure_frequencies(
        np.array([int(vector["N"]), 0, n]), n_reports=n, n_population=n, channel=channel
    )
    assert estimates.frequency[0] == pytest.approx(float(vector["fhat"]), rel=5e-15)


def law(value: int, channel: UnaryChannel) -> dict[tuple[int, ...], Fraction]:
    """Probability of every report."""
    ones = [channel.p if other == value else channel.q for other in range(channel.domain_size)]
    return {
        bits: prod((one if bit else 1 - one for bit, one in zip(bits, ones, strict=True)), start=Fraction(1))
        for bits in product((0, 1), repeat=channel.domain_size)
    }


@makers
@pytest.mark.parametrize("epsilon", ["0.1", "1", "4"])
@pytest.mark.parametrize("domain_size", [2, 3, 5])
def test_worst_report_of_all_has_the_stated_ratio(maker: Any, domain_size: int, epsilon: str) -> None:
    channel = maker(epsilon=Fraction(epsilon), domain_size=domain_size)
    laws = [law(value, channel) for value in range(domain_size)]
    assert all(sum(entry.values()) == 1 for entry in laws)
    worst = max(a[bits] / b[bits] for a, b in product(laws, repeat=2) for bits in a)
    assert worst == channel.ratio
    for value, other in product(range(domain_size), repeat=2):
        support = sum(p for bits, p in laws[value].items() if bits[other])
        assert support == (channel.p if value == other else channel.q)


@makers
@given(epsilon=st.fractions(Fraction(1, 1000), 8, max_denominator=1000))
def test_ratio_never_exceeds_what_was_asked(maker: Any, epsilon: Fraction) -> None:
    channel = maker(epsilon=epsilon, domain_size=4)
    low, high = exp_bounds(epsilon)
    assert channel.ratio <= low
    assert 0 < channel.epsilon <= epsilon
    if maker is oue_channel:
        tighter = UnaryChannel(
            domain_size=4, threshold_p=channel.threshold_p, threshold_q=channel.threshold_q - 1
        )
        assert tighter.ratio > high
    if maker is sue_channel:
        t = channel.threshold_p + 1
        assert UnaryChannel(domain_size=4, threshold_p=t, threshold_q=WORD - t).ratio > high


def test_thresholding_has_the_probabilities_of_laplace_noise() -> None:
    epsilon, theta = Fraction(3, 2), Fraction(5, 8)
    channel = the_channel(epsilon=epsilon, domain_size=3, theta=theta)
    noise = laplace(scale=2 / float(epsilon))
    assert float(channel.p) == pytest.approx(noise.sf(float(theta) - 1), rel=1e-15)
    assert float(channel.q) == pytest.approx(noise.sf(float(theta)), rel=1e-15)


@pytest.mark.parametrize("epsilon", ["0.01", "0.5", "1", "4", "12", "40"])
def test_default_threshold_has_the_smallest_variance(epsilon: str) -> None:
    theta = best_theta(Fraction(epsilon))

    def variance(theta: float) -> float:
        miss = np.exp(float(epsilon) / 2 * (theta - 1)) / 2
        q = np.exp(-float(epsilon) / 2 * theta) / 2
        return float(q * (1 - q) / (1 - miss - q) ** 2)

    best = minimize_scalar(variance, bounds=(0.5, 1), method="bounded", options={"xatol": 1e-9})
    assert variance(float(theta)) <= best.fun * (1 + 1e-11)
    assert min(variance(t) for t in np.linspace(0.5, 1, 2001)) >= variance(float(theta)) * (1 - 1e-12)
    assert float(theta) == pytest.approx(best.x, abs=1e-3)
    default = the_channel(epsilon=Fraction(epsilon), domain_size=4)
    assert default == the_channel(epsilon=Fraction(epsilon), domain_size=4, theta=theta)


def test_default_threshold_is_frozen() -> None:
    """Another one would give everybody a second, independent report."""
    assert [best_theta(Fraction(epsilon)) * 2**20 for epsilon in (1, 4)] == [648600, 855298]


@pytest.mark.parametrize("theta", [Fraction(1, 2), Fraction(1)])
def test_thresholds_at_the_ends_of_their_range_work(theta: Fraction) -> None:
    channel = the_channel(epsilon=Fraction(1), domain_size=3, theta=theta)
    assert float(channel.p) == pytest.approx(1 - np.exp(float(theta - 1) / 2) / 2, rel=1e-15)
    assert float(channel.q) == pytest.approx(np.exp(-float(theta) / 2) / 2, rel=1e-15)


@makers
@pytest.mark.parametrize("epsilon", [MIN_EPSILON, MAX_EPSILON])
def test_the_ends_of_the_range_work(maker: Any, epsilon: Fraction) -> None:
    channel = maker(epsilon=epsilon, domain_size=MAX_DOMAIN_SIZE)
    assert 0 < channel.epsilon <= epsilon


@makers
@pytest.mark.parametrize("epsilon", [Fraction(0), MIN_EPSILON / 2, MAX_EPSILON + 1])
def test_epsilon_out_of_range_is_refused(maker: Any, epsilon: Fraction) -> None:
    with pytest.raises(InvalidBudgetError, match="epsilon of one answer must be in"):
        maker(epsilon=epsilon, domain_size=3)


@makers
@pytest.mark.parametrize("domain_size", [1, MAX_DOMAIN_SIZE + 1])
def test_domain_out_of_range_is_refused(maker: Any, domain_size: int) -> None:
    with pytest.raises(InvalidDomainError, match=f"domain_size must be .* got {domain_size}"):
        maker(epsilon=Fraction(1), domain_size=domain_size)


@pytest.mark.parametrize("theta", [Fraction(49, 100), Fraction(101, 100)])
def test_threshold_outside_its_range_is_refused(theta: Fraction) -> None:
    with pytest.raises(InvalidBudgetError, match=r"theta must be in \[1/2, 1\], got"):
        the_channel(epsilon=Fraction(1), domain_size=3, theta=theta)


@pytest.mark.parametrize(("p", "q"), [(5, 5), (5, 6), (5, 0), (WORD, 5)])
def test_thresholds_that_do_not_favour_the_truth_are_refused(p: int, q: int) -> None:
    with pytest.raises(InvalidBudgetError, match=f"must hold, got {q} and {p}"):
        UnaryChannel(domain_size=3, threshold_p=p, threshold_q=q)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([1, 2, 11], "counts must be <= n_reports = 10, got 11"),
        ([1, 2, -1], "counts must be >= 0, got -1"),
        ([1, 2], r"counts must have shape \(3,\), got \(2,\)"),
    ],
)
def test_support_that_cannot_be_is_refused(counts: list[int], message: str) -> None:
    channel = oue_channel(epsilon=Fraction(1), domain_size=3)
    with pytest.raises(LdpError, match=message):
        pure_frequencies(np.array(counts), n_reports=10, n_population=10, channel=channel)
