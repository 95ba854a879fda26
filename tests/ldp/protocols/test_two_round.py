"""Parameters of two rounds: integers that keep both promises, and are the best that do."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import product
from math import exp
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ldp.errors import InvalidBudgetError
from ldp.protocols.bit_flip import bit_flip_channel
from ldp.protocols.channels import WORD, epsilon_of, grr_channel
from ldp.protocols.two_round import TwoRoundGrr, TwoRoundHash, best_buckets, lgrr_channel, loloha_channel
from ldp.protocols.two_round_unary import TwoRoundUnary, allomfree_channel, lue_channel
from ldp.protocols.unary import sue_channel
from tests.ldp.exact import VECTORS, exp_bounds, refuses

Channel = TwoRoundGrr | TwoRoundUnary | TwoRoundHash

PROTOCOLS = ["l-sue", "l-oue", "l-osue", "l-soue"]
ALPHAS = ["0.1", "0.2", "0.3", "0.4", "0.5", "0.6"]
CELLS = list(product([2, 3, 8, 12, 32, 37, 1024], ["0.5", "1", "2", "4"], ALPHAS))


def noise(channel: Channel) -> float:
    return float(channel.q * (1 - channel.q) / (channel.p - channel.q) ** 2)


def near(value, expected, rel: float = 5e-15) -> bool:
    return float(value) == pytest.approx(float(expected), rel=rel)


def budgets(vector: dict[str, Any]) -> dict[str, Fraction]:
    return {"epsilon_inf": Fraction(str(vector["eps_inf"])), "epsilon_1": Fraction(str(vector["eps1"]))}


@pytest.mark.parametrize("vector", VECTORS["B_lgrr"], ids=lambda v: f"{v['k']}-{v['eps_inf']}")
def test_lgrr_is_that_of_the_vectors_exact_and_as_published(vector: dict[str, Any]) -> None:
    settings = budgets(vector) | {"domain_size": vector["k"]}
    exact, paper = (lgrr_channel(**settings, tuning=tuning) for tuning in ("exact", "paper"))
    assert near(exact.first.p, vector["p1"]) and near(exact.first.q, vector["q1"])
    assert near(paper.epsilon, vector["eps1_true_of_thesis"])
    for channel, name, rel in ((exact, "exact", 1e-14), (paper, "thesis", 1e-13)):
        assert near(channel.second.p, vector[f"p2_{name}"]) and near(channel.second.q, vector[f"q2_{name}"])
        assert near(channel.second_ratio, vector[f"rho_{name}"])
        assert near(noise(channel), vector[f"nVar_{name}"], rel=rel)
        for t, epsilon in vector[f"eps_t_{name}"].items():
            assert near(epsilon_of(channel.ratio_of(reports=int(t))), epsilon)
    for t, rho in vector["rho_horizon"].items():
        assert near(lgrr_channel(**settings, horizon=int(t)).second_ratio, rho)


@pytest.mark.parametrize("vector", VECTORS["C_lue_D_eps_t"], ids=lambda v: f"{v['kind']}-{v['eps_inf']}")
def test_lue_is_that_of_the_vectors(vector: dict[str, Any]) -> None:
    channel = lue_channel(vector["kind"].lower(), **budgets(vector), domain_size=8)
    assert near(channel.first.p, vector["p1"]) and near(channel.first.q, vector["q1"])
    assert near(channel.second.p, vector["p2"]) and near(channel.second.q, vector["q2"])
    assert near(noise(channel), vector["nVar"], rel=1e-14)
    for t, epsilon in vector["eps_t"].items():
        assert near(epsilon_of(channel.ratio_of(reports=int(t))), epsilon)
    f = Fraction(3, 10)
    assert near(f * channel.p + (1 - f) * channel.q, vector["gamma_f03"])


@pytest.mark.parametrize("vector", VECTORS["C_limits"], ids=lambda v: v["eps_inf"])
@pytest.mark.parametrize("protocol", ["l-oue", "l-soue"])
def test_budget_beyond_the_limit_is_refused_with_the_limit(protocol: str, vector: dict[str, str]) -> None:
    limit = vector["eps1max_" + protocol.replace("-", "").upper()]
    epsilon_inf, step = Fraction(vector["eps_inf"]), Fraction(1, 10**12)
    below = lue_channel(protocol, epsilon_inf=epsilon_inf, epsilon_1=Fraction(limit) - step, domain_size=3)
    assert near(below.epsilon, limit, rel=1e-11)
    message = rf"epsilon_1 must be in \[0.000001, {limit[:12]}\d*\) for epsilon_inf = .*, got {limit[:12]}"
    with pytest.raises(InvalidBudgetError, match=message):
        lue_channel(protocol, epsilon_inf=epsilon_inf, epsilon_1=Fraction(limit) + step, domain_size=3)


def published_noise(k: int, e: float, f: float) -> float:
    rho = (e * f - 1) / (e - f)
    p1, q1, p2, q2 = e / (e + k - 1), 1 / (e + k - 1), rho / (rho + k - 1), 1 / (rho + k - 1)
    q = q1 * p2 + (1 - q1) * q2
    return q * (1 - q) / ((p1 - q1) * (p2 - q2)) ** 2


def test_all_cells_of_the_published_table_and_the_exact_ones_beside_them() -> None:
    given_cells = {(v["k"], str(v["eps_inf"]), str(v["alpha"])): v for v in VECTORS["B_table_168"]}
    differing = []
    for k, epsilon_inf, alpha in CELLS:
        nominal = {"epsilon_inf": Fraction(epsilon_inf), "epsilon_1": Fraction(epsilon_inf) * Fraction(alpha)}
        e, f = (exp(float(epsilon)) for epsilon in nominal.values())
        exact = lgrr_channel(**nominal, domain_size=k)
        paper = lgrr_channel(**nominal, domain_size=k, tuning="paper")
        unary = lue_channel("l-osue", **nominal, domain_size=k)
        assert near(noise(exact), (f + k - 2) / (f - 1) ** 2, rel=1e-12)
        assert near(noise(unary), 4 * f / (f - 1) ** 2, rel=1e-12)
        assert near(noise(paper), published_noise(k, e, f), rel=1e-10)
        choices = [allomfree_channel(**nominal, domain_size=k, tuning=each) for each in ("exact", "paper")]
        assert choices[0] == (exact if k <= 3 * f + 2 else unary)
        assert choices[1] == (paper if noise(paper) <= noise(unary) else unary)
        names = ["L-GRR" if isinstance(choice, TwoRoundGrr) else "L-OSUE" for choice in choices]
        if names[0] != names[1]:
            differing.append((k, epsilon_inf, alpha))
        if cell := given_cells.pop((k, epsilon_inf, alpha), None):
            assert near(noise(paper) / 10_000, cell["var_thesis"], rel=1e-12)
            assert near(noise(exact) / 10_000, cell["var_exact"], rel=1e-12)
            assert near(noise(unary) / 10_000, cell["var_losue"], rel=1e-12)
            assert near(paper.epsilon, cell["eps1_true_thesis"], rel=1e-12)
            assert near(exact.second.p, cell["p2_exact"]) and near(paper.second.p, cell["p2_thesis"])
            assert near(exact.second_ratio, cell["rho_exact"])
            assert near(paper.second_ratio, cell["rho_thesis"])
            assert names == [cell["choice_exact"], cell["choice_thesis"]]
    assert not given_cells and len(CELLS) == 168
    assert differing == [(8, "2", "0.4"), (8, "2", "0.5"), (8, "2", "0.6"), (8, "4", "0.2"), (32, "4", "0.6")]


@pytest.mark.parametrize("vector", VECTORS["B_loloha"], ids=lambda v: f"{v['eps_inf']}-{v['alpha']}")
def test_loloha_is_that_of_the_vectors(vector: dict[str, Any]) -> None:
    exact = loloha_channel(**budgets(vector), domain_size=100)
    paper = loloha_channel(**budgets(vector), domain_size=100, tuning="paper")
    assert (exact.buckets, paper.buckets) == (vector["g_exact"], vector["g_eq6"])
    assert near(noise(exact) / 10_000, vector["var_exact"], rel=1e-12)
    assert near(epsilon_of(exact.ratio_of(reports=7)), vector["eps7_exact"], rel=1e-13)
    best = loloha_channel(**budgets(vector), domain_size=100, tuning="paper", buckets=vector["g_num_paper"])
    assert near(noise(best) / 10_000, vector["var_paper"], rel=1e-12)
    assert near(best.epsilon, vector["eps1_true_paper"], rel=1e-13)
    assert near(epsilon_of(best.ratio_of(reports=7)), vector["eps7_paper"], rel=1e-13)


@given(epsilon_1=st.fractions(Fraction(1, 1000), 7, max_denominator=1000))
def test_no_other_number_of_buckets_is_better(epsilon_1: Fraction) -> None:
    f = exp(float(epsilon_1))
    best = best_buckets(epsilon_inf=Fraction(8), epsilon_1=epsilon_1)
    cost = {g: (f + g - 1) ** 2 / (g - 1) for g in range(2, 2 * int(f) + 8)}
    assert cost[best] <= min(cost.values()) * (1 + 1e-12)


nominals = st.tuples(
    st.fractions(Fraction(1, 100), 8, max_denominator=100), st.fractions(Fraction(1, 100), Fraction(99, 100))
).map(lambda pair: {"epsilon_inf": pair[0], "epsilon_1": pair[0] * pair[1].limit_denominator(1000)})
horizons = st.sampled_from([1, 2, 7])
domain_sizes = st.one_of(st.integers(2, 40), st.integers(2, 65534))


def stronger(channel: TwoRoundGrr | TwoRoundUnary) -> TwoRoundGrr | TwoRoundUnary:
    second = channel.second
    if isinstance(channel, TwoRoundGrr):
        return replace(channel, second=replace(second, threshold=second.threshold + 1))
    p, q = second.threshold_p, second.threshold_q
    return replace(channel, second=replace(second, threshold_p=p + (p + q == WORD), threshold_q=q - 1))


@given(
    nominal=nominals, k=domain_sizes, horizon=horizons, protocol=st.sampled_from(["l-grr"] * 4 + PROTOCOLS)
)
@settings(max_examples=80)
def test_both_promises_are_kept_as_well_as_integers_can(nominal, k, horizon, protocol) -> None:
    if protocol in {"l-oue", "l-soue"}:
        nominal = nominal | {"epsilon_1": nominal["epsilon_1"] / 2}
    make = lgrr_channel if protocol == "l-grr" else partial(lue_channel, protocol)
    channel = make(**nominal, domain_size=k, horizon=horizon)
    assert 0 < channel.q < channel.p < 1
    low_inf, _ = exp_bounds(nominal["epsilon_inf"])
    low, high = exp_bounds(nominal["epsilon_1"])
    assert channel.limit_ratio <= low_inf
    assert channel.ratio_of(reports=horizon) <= low
    assert stronger(channel).ratio_of(reports=horizon) > high
    assert channel.ratio_of(reports=horizon) < channel.ratio_of(reports=horizon + 1) <= channel.limit_ratio
    p, q = channel.second.p, channel.second.q
    if protocol != "l-grr":
        assert p == Fraction(1, 2) if protocol in {"l-oue", "l-soue"} else p + q == 1


@given(nominal=nominals, k=domain_sizes)
def test_published_lgrr_loses_no_more_than_it_says(nominal: dict[str, Fraction], k: int) -> None:
    """And t reports no more than t times it, which exact tuning for k > 2 does not promise."""
    channel = lgrr_channel(**nominal, domain_size=k, tuning="paper")
    low, _ = exp_bounds(nominal["epsilon_1"])
    for t in (1, 2, 5):
        assert channel.ratio_of(reports=t) <= low**t


@given(
    epsilon=st.fractions(Fraction(1, 100), 8, max_denominator=100),
    sampled=st.integers(1, 8),
    tuning=st.sampled_from(["exact", "paper"]),
)
@example(epsilon=Fraction(1), sampled=1, tuning="paper")
@example(epsilon=Fraction(1), sampled=1, tuning="exact")
def test_bit_flip_keeps_its_promise(epsilon: Fraction, sampled: int, tuning) -> None:
    channel = bit_flip_channel(epsilon=epsilon, domain_size=8, sampled=sampled, tuning=tuning)
    low, high = exp_bounds(epsilon)
    assert channel.ratio <= low
    is_half = sampled == 1 and tuning == "paper"
    assert near(channel.epsilon, epsilon / 2 if is_half else epsilon, rel=1e-12)
    assert channel.p + channel.q == 1
    p, q = channel.bits.threshold_p, channel.bits.threshold_q
    better = replace(channel, bits=replace(channel.bits, threshold_p=p + 1, threshold_q=q - 1))
    assert is_half or better.ratio > high


def test_largest_budgets_are_realised_as_far_as_64_bits_allow() -> None:
    nominal = {"epsilon_inf": Fraction(64), "epsilon_1": Fraction(40)}
    for channel in (lgrr_channel(**nominal, domain_size=3), lue_channel("l-sue", **nominal, domain_size=3)):
        assert Decimal("39.99") < channel.epsilon <= 40
    with pytest.raises(InvalidBudgetError, match=r"epsilon_1 must be in .*, 44\.\d*\) for .* = 64, got 50"):
        lgrr_channel(epsilon_inf=Fraction(64), epsilon_1=Fraction(50), domain_size=3)


GOOD = {"epsilon_inf": Fraction(2), "epsilon_1": Fraction(1), "domain_size": 8}


def test_what_cannot_be_is_refused() -> None:
    for build in (lgrr_channel, loloha_channel, partial(lue_channel, "l-osue")):
        refuses(r"must be in \[0.000001, 2\) for .*, got 2", build, **GOOD | {"epsilon_1": Fraction(2)})
        refuses("epsilon of one answer must be in .*, got 0", build, **GOOD | {"epsilon_1": Fraction(0)})
        refuses("epsilon of one answer must be in .*, got 65", build, **GOOD | {"epsilon_inf": Fraction(65)})
        refuses("domain_size must be >= 2, got 1", build, **GOOD | {"domain_size": 1})
        refuses("horizon must be >= 1, got 0", build, **GOOD, horizon=0)
    refuses(r"tuning must be one of \('exact', 'paper'\), got 'best'", lgrr_channel, **GOOD, tuning="best")
    refuses("horizon must be 1 in paper tuning, got 7", lgrr_channel, **GOOD, tuning="paper", horizon=7)
    refuses("protocol must be one of .*, got 'l-the'", lue_channel, "l-the", **GOOD)
    for maker, rounds in ((grr_channel, TwoRoundGrr), (sue_channel, TwoRoundUnary)):
        three, four = (maker(epsilon=Fraction(1), domain_size=k) for k in (3, 4))
        refuses("domain_size of both rounds must be equal, got 3 and 4", rounds, first=three, second=four)
        refuses("reports must be >= 1, got 0", rounds(first=three, second=three).ratio_of, reports=0)
    for sampled in (0, 9):
        message = rf"sampled must be in \[1, 8\], got {sampled}"
        refuses(message, bit_flip_channel, epsilon=Fraction(1), domain_size=8, sampled=sampled)
