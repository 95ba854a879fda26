"""Choosing: errors as the sheet's table has them, inverse functions, and who wins for which promise."""

from fractions import Fraction
from math import exp, log
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from ldp import LdpError, adp_channel, noise_at_zero
from ldp.utility import epsilon_for_error, expected_error, rank_mechanisms, smp_weights
from tests.ldp.exact import VECTORS

SIZES = (3, 3, 8, 12, 37, 11)
TABLE = VECTORS["A_rsfd_mse"]


def n_variance(mechanism: Any, epsilon: float | Fraction, unit: Any = "profile") -> float:
    """Mean over the indicators of n times the variance, at frequency 0."""
    found = expected_error(
        mechanism, epsilon=Fraction(epsilon), unit=unit, domain_sizes=SIZES, n_population=1000
    )
    return 1000 * found.mean_variance


@pytest.mark.parametrize("row", TABLE, ids=lambda row: str(row["eps"]))
@pytest.mark.parametrize(
    ("mechanism", "column"),
    [
        ("spl-adp", "Spl_ADP"),
        ("smp-grr", "Smp_GRR"),
        ("smp-oue", "Smp_OUE"),
        ("smp-adp", "Smp_ADP"),
        ("rsfd-grr", "RSFD_GRR@eps"),
        ("rsfd-ouez", "RSFD_OUEz@eps"),
        ("rsfd-adp", "RSFD_ADP@eps"),
        ("rsfd-grr", "RSFD_GRR@eps_prime"),
        ("rsfd-ouez", "RSFD_OUEz@eps_prime"),
        ("rsfd-adp", "RSFD_ADP@eps_prime"),
        ("smp-adp", "Smp_ADP@eps_prime"),
    ],
)
def test_errors_are_those_of_the_table(row: dict[str, Any], mechanism: str, column: str) -> None:
    epsilon = row["eps_prime"] if column.endswith("prime") else row["eps"]
    assert n_variance(mechanism, epsilon) == pytest.approx(row["nVar"][column], rel=1e-11)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: str(row["eps"]))
def test_answers_per_attribute_have_as_much_as_hides(row: dict[str, Any]) -> None:
    """OUE-z has the published epsilon'; GRR less of it, since large domains give themselves away."""
    common: dict[str, Any] = {"epsilon": Fraction(row["eps"]), "unit": "attribute", "n_population": 1000}
    ouez = expected_error("rsfd-ouez", domain_sizes=SIZES, **common)
    assert float(ouez.epsilon_answers) == pytest.approx(row["eps_prime"], abs=2e-9)
    grr = expected_error("rsfd-grr", domain_sizes=SIZES, **common)
    assert float(grr.epsilon_answers) == pytest.approx(row["eps_prime_attr_max_eq_eps_grr"], abs=2e-9)
    even = expected_error("rsfd-grr", domain_sizes=(5,) * 4, **common)
    assert float(even.epsilon_answers) == pytest.approx(log(4 * (exp(row["eps"]) - 1) + 1), abs=2e-9)
    per_profile = expected_error("rsfd-grr", domain_sizes=SIZES, **(common | {"unit": "profile"}))
    assert per_profile.epsilon_answers == common["epsilon"]


@pytest.mark.parametrize("epsilon", ["0.01", "0.5", "1", "3", "8"])
@pytest.mark.parametrize("sizes", [(2, 2), SIZES, (2, 1000), (50,) * 20, (40,) * 3])
@pytest.mark.parametrize("frequency", [0.0, 0.3])
def test_per_profile_smp_wins_over_fake_data(epsilon: str, sizes: tuple[int, ...], frequency: float) -> None:
    ranking = rank_mechanisms(
        epsilon=Fraction(epsilon), unit="profile", domain_sizes=sizes, n_population=50, frequency=frequency
    )
    assert len(ranking) == 9
    variances = [entry.mean_variance for entry in ranking]
    assert variances == sorted(variances)
    best = {entry.mechanism: entry.mean_variance for entry in ranking}
    for smp, fake in (("smp-grr", "rsfd-grr"), ("smp-oue", "rsfd-ouez"), ("smp-adp", "rsfd-adp")):
        assert best[smp] < best[fake]
    if frequency == 0:
        assert best["rsfd-ouez"] == pytest.approx(len(sizes) * best["smp-oue"], rel=1e-9)
        assert ranking[0].mechanism.startswith("smp")


def test_per_attribute_fake_data_may_win() -> None:
    def best(epsilon: str, sizes: tuple[int, ...]) -> str:
        ranking = rank_mechanisms(
            epsilon=Fraction(epsilon), unit="attribute", domain_sizes=sizes, n_population=1000
        )
        return ranking[0].mechanism

    assert best("0.5", (40,) * 6).startswith("rsfd")
    assert best("3", SIZES).startswith("smp")


def test_error_counts_the_sample_and_the_interval() -> None:
    """Nearly no noise: what is left is a draw of 100 of 400 persons."""
    found = expected_error(
        "smp-grr",
        epsilon=Fraction(30),
        unit="profile",
        domain_sizes=(2,) * 4,
        n_population=400,
        frequency=0.2,
    )
    assert found.std_errors == pytest.approx([np.sqrt(0.2 * 0.8 / 100 * 300 / 399)] * 4, rel=1e-6)
    assert found.half_widths == pytest.approx([1.959964 * error for error in found.std_errors], rel=1e-6)
    assert found.mean_half_width == pytest.approx(found.half_widths[0])


@pytest.mark.parametrize("mechanism", ["smp-adp", "spl-grr", "rsfd-adp"])
@pytest.mark.parametrize("unit", ["profile", "attribute"])
def test_epsilon_for_an_error_is_the_smallest_that_has_it(mechanism: Any, unit: Any) -> None:
    common: dict[str, Any] = {"unit": unit, "domain_sizes": (3, 8), "n_population": 20_000, "frequency": 0.1}
    epsilon = epsilon_for_error(mechanism, half_width=0.02, **common)
    assert expected_error(mechanism, epsilon=epsilon, **common).mean_half_width <= 0.02
    less = epsilon - Fraction(1, 1000)
    assert expected_error(mechanism, epsilon=less, **common).mean_half_width > 0.02


def test_error_out_of_reach_is_refused_with_the_range() -> None:
    common: dict[str, Any] = {"unit": "profile", "domain_sizes": (3, 8), "n_population": 1000}
    low, high = (
        expected_error("smp-grr", epsilon=epsilon, frequency=0.5, **common).mean_half_width
        for epsilon in (Fraction(16), Fraction(1, 1000))
    )
    for half_width in (low / 2, high * 2, float("nan")):
        with pytest.raises(LdpError, match=rf"half_width must be in \[{low:.6g}, {high:.6g}\], got"):
            epsilon_for_error("smp-grr", half_width=half_width, frequency=0.5, **common)
    assert epsilon_for_error("smp-grr", half_width=high, frequency=0.5, **common) == Fraction(1, 1000)


@pytest.mark.parametrize("vector", VECTORS["F_weights"].values(), ids=VECTORS["F_weights"])
def test_weights_are_those_of_the_vectors(vector: dict[str, Any]) -> None:
    variances = [
        float(noise_at_zero(adp_channel(epsilon=Fraction(epsilon), domain_size=k)))
        for epsilon, k in zip(vector["eps"], vector["c"], strict=True)
    ]
    assert variances == pytest.approx(vector["V"], rel=1e-12)
    optimal = smp_weights(variances, rule="optimal")
    uniform = smp_weights(variances, rule="uniform")
    assert optimal == pytest.approx(vector["w_opt"], rel=1e-12)
    assert (variances / optimal).sum() == pytest.approx(vector["sum_nVar_opt"], rel=1e-12)
    assert (variances / uniform).sum() == pytest.approx(vector["sum_nVar_uniform"], rel=1e-12)


def test_weights_are_the_best_ones() -> None:
    variances, importance = np.array([1.3, 15.0, 0.4]), np.array([5.0, 1.0, 2.0])
    found = minimize(
        lambda w: (importance * variances / w).sum(),
        np.full(3, 1 / 3),
        bounds=[(0.01, 1)] * 3,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        options={"ftol": 1e-14},
    )
    assert smp_weights(variances, rule="optimal", importance=importance) == pytest.approx(found.x, abs=1e-4)
    minimax = smp_weights(variances, rule="minimax")
    assert variances / minimax == pytest.approx(np.full(3, variances.sum()))


def test_weights_share_out_the_reports() -> None:
    common: dict[str, Any] = {
        "epsilon": Fraction(1),
        "unit": "profile",
        "domain_sizes": (3, 37),
        "n_population": 1000,
    }
    even = expected_error("smp-adp", **common)
    skew = expected_error("smp-adp", weights=[0.25, 0.75], **common)
    ratio = np.array(skew.std_errors) ** 2 / np.array(even.std_errors) ** 2
    assert ratio == pytest.approx([2, 2 / 3], rel=1e-9)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mechanism": "smp-she"}, r"mechanism must be one of \('smp-grr', .*got 'smp-she'"),
        ({"unit": "person"}, "unit must be one of .*got 'person'"),
        ({"domain_sizes": ()}, "domain_sizes must hold an indicator, got none"),
        ({"n_population": 0}, "n_population must be >= 1, got 0"),
        ({"frequency": -0.1}, r"frequency must be in \[0, 1\], got -0.1"),
        ({"frequency": float("nan")}, r"frequency must be in \[0, 1\], got nan"),
        ({"weights": [0.5, 0.4]}, "weights must be 2 numbers > 0 with sum 1, got"),
        ({"weights": [1.0, 0.0]}, "weights must be 2 numbers > 0 with sum 1, got"),
        ({"weights": [1.0]}, "weights must be 2 numbers > 0 with sum 1, got"),
        ({"mechanism": "rsfd-grr", "weights": [0.5, 0.5]}, "weights must be absent for rsfd-grr"),
        ({"epsilon": Fraction(0)}, "epsilon of one answer must be in"),
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {
        "mechanism": "smp-grr",
        "epsilon": Fraction(1),
        "unit": "profile",
        "domain_sizes": (3, 8),
        "n_population": 100,
    } | changes
    with pytest.raises(LdpError, match=message):
        expected_error(arguments.pop("mechanism"), **arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rule": "best"}, "rule must be one of .*got 'best'"),
        ({"variances": [1.0, 0.0], "rule": "optimal"}, "variances must be finite and > 0"),
        ({"variances": [], "rule": "optimal"}, "variances must be finite and > 0"),
        ({"rule": "optimal", "importance": [1.0]}, r"importance must have shape \(2,\), got \(1,\)"),
        ({"rule": "optimal", "importance": [1.0, np.nan]}, "importance must be finite and > 0"),
        ({"rule": "uniform", "importance": [1.0, 1.0]}, "importance must be absent for rule 'uniform'"),
    ],
)
def test_weights_of_nothing_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(LdpError, match=message):
        smp_weights(**({"variances": [1.0, 2.0]} | arguments))
