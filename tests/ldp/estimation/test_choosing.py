"""Choosing: errors as the sheet's table has them, inverse functions, and close approximations."""

from fractions import Fraction
from typing import Any, get_args

import numpy as np
import pytest

from ldp import LdpError, adp_channel, epsilon_for_error, expected_error, noise_at_zero, smp_weights
from ldp.estimation.approximate_errors import code_laws, question_laws, report_laws
from ldp.estimation.choosing import Solution
from ldp.estimation.estimators import pure_variance
from ldp.protocols.projective import code_channel
from ldp.protocols.repeated.question import question_channel
from tests.ldp.exact import VECTORS, refuses

SIZES = (3, 3, 8, 12, 37, 11)
TABLE = VECTORS["A_rsfd_mse"]


ALONE = ["Spl_ADP", "Smp_GRR", "Smp_OUE", "Smp_ADP"]
FAKED = [f"RSFD_{oracle}@{epsilon}" for oracle in ("GRR", "OUEz", "ADP") for epsilon in ("eps", "eps_prime")]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: str(row["eps"]))
@pytest.mark.parametrize("column", [*ALONE, *FAKED, "Smp_ADP@eps_prime"])
def test_errors_are_those_of_the_table(row: dict[str, Any], column: str) -> None:
    name, _, epsilon = column.partition("@")
    common = {"unit": "profile", "domain_sizes": SIZES, "n_population": 1000}
    mechanism = name.lower().replace("_", "-")
    found = expected_error(mechanism, epsilon=Fraction(row[epsilon or "eps"]), **common)
    assert 1000 * found.mean_variance == pytest.approx(row["nVar"][column], rel=1e-11)


def test_error_counts_the_sample_and_the_interval() -> None:
    """Nearly no noise: what is left is a draw of 100 of 400 persons."""
    common = {"unit": "profile", "domain_sizes": (2,) * 4, "n_population": 400, "frequency": 0.2}
    found = expected_error("smp-grr", epsilon=Fraction(30), **common)
    assert found.std_errors == pytest.approx([np.sqrt(0.2 * 0.8 / 100 * 300 / 399)] * 4, rel=1e-6)
    assert found.half_widths == pytest.approx([1.959964 * error for error in found.std_errors], rel=1e-6)
    assert found.mean_half_width == pytest.approx(found.half_widths[0])


@pytest.mark.parametrize(
    ("mechanism", "unit", "sizes", "frequency", "last"),
    [
        ("rsfd-adp", "attribute", (5, 50, 500), 0.0, 2400),  # its answers lose a jump of the loss
        ("smp-adp", "profile", (20, 20), 0.05, 1791),  # GRR takes over: better at 0, not at 0.05
        ("spl-adp", "attribute", (20,), 0.05, 1791),
    ],
)
def test_no_smaller_epsilon_has_the_error_though_it_rises_and_falls(
    mechanism, unit, sizes, frequency, last
) -> None:
    common = {"unit": unit, "domain_sizes": sizes, "n_population": 10_000, "frequency": frequency}

    def error(thousandths: int) -> float:
        epsilon = Fraction(thousandths, 1000)
        return expected_error(mechanism, epsilon=epsilon, **common).mean_half_width

    wanted = error(last)
    assert max(error(last + more) for more in (1, 25, 50)) > wanted
    found = int(1000 * epsilon_for_error(mechanism, half_width=wanted, **common))
    assert error(found) <= wanted
    assert found <= last
    assert all(error(less) > wanted for less in (*range(1, found, 197), *range(found - 9, found)))


def test_error_out_of_reach_is_refused_with_the_range() -> None:
    common = {"unit": "profile", "domain_sizes": (3, 8), "n_population": 1000, "frequency": 0.5}
    low, high = (
        expected_error("smp-grr", epsilon=epsilon, **common).mean_half_width
        for epsilon in (Fraction(16), Fraction(1, 1000))
    )
    for half_width in (low / 2, high * 2, float("nan")):
        with pytest.raises(LdpError, match=rf"half_width must be in \[{low:.6g}, {high:.6g}\], got"):
            epsilon_for_error("smp-grr", half_width=half_width, **common)
    assert epsilon_for_error("smp-grr", half_width=high, **common) == Fraction(1, 1000)


@pytest.mark.parametrize("vector", VECTORS["F_weights"].values(), ids=VECTORS["F_weights"])
def test_weights_are_those_of_the_vectors(vector: dict[str, Any]) -> None:
    pairs = zip(map(Fraction, vector["eps"]), vector["c"], strict=True)
    variances = [float(noise_at_zero(adp_channel(epsilon=epsilon, domain_size=k))) for epsilon, k in pairs]
    assert variances == pytest.approx(vector["V"], rel=1e-12)
    optimal = smp_weights(variances, rule="optimal")
    uniform = smp_weights(variances, rule="uniform")
    assert optimal == pytest.approx(vector["w_opt"], rel=1e-12)
    assert (variances / optimal).sum() == pytest.approx(vector["sum_nVar_opt"], rel=1e-12)
    assert (variances / uniform).sum() == pytest.approx(vector["sum_nVar_uniform"], rel=1e-12)


def test_weights_share_out_the_reports() -> None:
    common = {"epsilon": Fraction(1), "unit": "profile", "domain_sizes": (3, 37), "n_population": 1000}
    even = expected_error("smp-adp", **common)
    skew = expected_error("smp-adp", weights=[0.25, 0.75], **common)
    ratio = np.array(skew.std_errors) ** 2 / np.array(even.std_errors) ** 2
    assert ratio == pytest.approx([2, 2 / 3], rel=1e-9)


def test_what_cannot_be_is_refused() -> None:
    for changes, message in (
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
    ):
        common = {"unit": "profile", "domain_sizes": (3, 8), "n_population": 100}
        arguments = {"mechanism": "smp-grr", "epsilon": Fraction(1)} | common | changes
        refuses(message, expected_error, arguments.pop("mechanism"), **arguments)


def test_weights_of_nothing_are_refused() -> None:
    for arguments, message in (
        ({"rule": "best"}, "rule must be one of .*got 'best'"),
        ({"variances": [1.0, 0.0], "rule": "optimal"}, "variances must be finite and > 0"),
        ({"variances": [], "rule": "optimal"}, "variances must be finite and > 0"),
        ({"rule": "optimal", "importance": [1.0]}, r"importance must have shape \(2,\), got \(1,\)"),
        ({"rule": "optimal", "importance": [1.0, np.nan]}, "importance must be finite and > 0"),
        ({"rule": "uniform", "importance": [1.0, 1.0]}, "importance must be absent for rule 'uniform'"),
    ):
        refuses(message, smp_weights, **{"variances": [1.0, 2.0]} | arguments)


PLANS = [(2,), (2, 30), (3, 3, 8, 12, 37, 11), (5, 50, 500), (2, 65_534)]


@pytest.mark.parametrize("mechanism", get_args(Solution))
@pytest.mark.parametrize("unit", ["profile", "attribute"])
def test_errors_are_those_of_the_exact_channels(mechanism, unit) -> None:
    for sizes in PLANS:
        epsilons = [Fraction(each, 1000) for each in (1, 700, 1425, 4001, 9000, 16_000)]
        laws = report_laws(mechanism, unit=unit, epsilons=epsilons, domain_sizes=sizes)
        for at, epsilon in enumerate(epsilons):
            frequency = at % 3 / 2
            common = {"unit": unit, "domain_sizes": sizes, "n_population": 5000, "frequency": frequency}
            exact = expected_error(mechanism, epsilon=epsilon, **common).std_errors
            n_reports = 5000 / len(sizes) if mechanism.startswith("smp") else 5000
            for law, error in zip(laws, exact, strict=True):
                nearly = law.std_error(frequency, n_reports=n_reports, n_population=5000)
                # A tenth of what is allowed for: anyone who adds an operation has room.
                assert not law.is_sure[at] or nearly[at] == pytest.approx(error, rel=law.slack[at] / 10)


@pytest.mark.parametrize(("size", "max_codes"), [(6, 65_534), (91, 65_534), (481, 700), (3844, 1000)])
def test_errors_of_joint_indicators_are_those_of_their_channels(size, max_codes) -> None:
    epsilons = [Fraction(each, 1000) for each in (1, 700, 1425, 4001, 9000, 16_000)]
    law = code_laws(epsilons=epsilons, domain_sizes=size, max_codes=max_codes)
    assert sum(law.is_sure) >= 3
    for at, epsilon in enumerate(epsilons):
        channel = code_channel(epsilon=epsilon, domain_size=size, max_codes=max_codes)
        exact = pure_variance(0.1, n_reports=900, n_population=5000, channel=channel) ** 0.5
        nearly = law.std_error(0.1, n_reports=900, n_population=5000)
        assert not law.is_sure[at] or nearly[at] == pytest.approx(float(exact), rel=law.slack[at] / 10)


def test_errors_of_many_sizes_are_those_of_their_channels() -> None:
    """Codes and questions, each of another number of values and another epsilon."""
    sizes = [2, 3, 8, 9, 37, 127, 128, 1000]
    epsilons = [Fraction(each, 8) for each in range(1, len(sizes) + 1)]
    laws = {
        code_channel: code_laws(epsilons=epsilons, domain_sizes=sizes, max_codes=600),
        question_channel: question_laws(epsilons=epsilons, domain_sizes=sizes),
    }
    for make, law in laws.items():
        most = {"max_codes": 600} if make is code_channel else {}
        nearly = law.std_error(0.1, n_reports=900, n_population=5000)
        assert law.is_sure.sum() >= len(sizes) - 1
        for at, (epsilon, size) in enumerate(zip(epsilons, sizes, strict=True)):
            channel = make(epsilon=epsilon, domain_size=size, **most)
            exact = pure_variance(0.1, n_reports=900, n_population=5000, channel=channel) ** 0.5
            assert not law.is_sure[at] or nearly[at] == pytest.approx(float(exact), rel=law.slack[at] / 10)


def test_few_plans_are_unsure() -> None:
    epsilons = [Fraction(each, 1000) for each in range(1, 12_001)]
    for sizes in PLANS:
        laws = report_laws("rsfd-adp", unit="attribute", epsilons=epsilons, domain_sizes=sizes)
        assert sum(~laws[0].is_sure) < 0.02 * len(epsilons)
