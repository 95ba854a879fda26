"""Laws of reports in floats are those of the exact channels, to their stated error, where they are sure."""

from fractions import Fraction
from typing import get_args

import pytest

from ldp.estimation.approximate_errors import code_laws, report_laws
from ldp.estimation.choosing import Solution, expected_error
from ldp.estimation.estimators import pure_variance
from ldp.protocols.projective import code_channel

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
    law = code_laws(epsilons=epsilons, domain_size=size, max_codes=max_codes)
    assert sum(law.is_sure) >= 3
    for at, epsilon in enumerate(epsilons):
        channel = code_channel(epsilon=epsilon, domain_size=size, max_codes=max_codes)
        exact = pure_variance(0.1, n_reports=900, n_population=5000, channel=channel) ** 0.5
        nearly = law.std_error(0.1, n_reports=900, n_population=5000)
        assert not law.is_sure[at] or nearly[at] == pytest.approx(float(exact), rel=law.slack[at] / 10)


def test_few_plans_are_unsure() -> None:
    epsilons = [Fraction(each, 1000) for each in range(1, 12_001)]
    for sizes in PLANS:
        laws = report_laws("rsfd-adp", unit="attribute", epsilons=epsilons, domain_sizes=sizes)
        assert sum(~laws[0].is_sure) < 0.02 * len(epsilons)
