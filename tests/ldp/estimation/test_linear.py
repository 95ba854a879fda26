"""Linear questions: unbiased, with exactly the variance that is stated, for every channel that has one."""

from fractions import Fraction

import numpy as np
import pytest

import ldp
from ldp.estimation.joint.linear import linear_noise, linear_query, linear_variance
from ldp.protocols.channels import noise_at_zero
from ldp.protocols.projective_space import sums_over_orthogonal, support_of
from tests.ldp.exact import refuses
from tests.ldp.protocols.test_families import law

ONE = Fraction(1)
CHANNELS = {
    "GRR": ldp.grr_channel(epsilon=ONE, domain_size=5),
    "PGR": ldp.projective_channel(epsilon=ONE, domain_size=5),
    "PGR-wide": ldp.projective_channel(epsilon=Fraction(2), domain_size=96),
    "OUE": ldp.oue_channel(epsilon=ONE, domain_size=5),
}
channels = pytest.mark.parametrize("channel", CHANNELS.values(), ids=CHANNELS)


def weights_of(channel) -> np.ndarray:
    return np.random.default_rng(7).integers(-3, 4, channel.domain_size).astype(float)


@channels
def test_noise_of_one_report_is_that_of_all_reports_there_are(channel) -> None:
    weights = weights_of(channel)
    noise = linear_noise(weights, channel=channel)
    p, q = float(channel.p), float(channel.q)
    for value in range(channel.domain_size):
        chances, holds = law(value, channel)
        stood_for = np.array(
            [sum(w * (holds(report, v) - q) for v, w in enumerate(weights)) / (p - q) for report in chances]
        )
        probability = np.array([float(chance) for chance in chances.values()])
        assert probability @ stood_for == pytest.approx(weights[value], abs=1e-9)
        assert noise[value] == pytest.approx(probability @ stood_for**2 - weights[value] ** 2, rel=1e-9)


@pytest.mark.parametrize(
    ("epsilon", "domain_size", "prime", "codes", "noise"),
    [
        (1, 96, 3, 121, 3.690), (1, 407, 3, 1093, 3.761), (1, 3844, 3, 9841, 3.769),
        (2, 96, 11, 133, 0.7121), (2, 407, 7, 2801, 0.7308), (2, 3844, 7, 19608, 0.7318),
        (3, 96, 19, 381, 0.2151), (3, 407, 23, 553, 0.2164), (3, 3844, 23, 12720, 0.2208),
    ],
)  # fmt: skip
def test_space_with_the_least_noise_is_chosen(epsilon, domain_size, prime, codes, noise) -> None:
    channel = ldp.code_channel(epsilon=Fraction(epsilon), domain_size=domain_size)
    assert isinstance(channel, ldp.ProjectiveChannel)
    assert (channel.prime, channel.n_codes) == (prime, codes)
    assert float(noise_at_zero(channel)) == pytest.approx(noise, abs=0.0006)


def test_few_values_or_few_codes_are_left_to_grr() -> None:
    assert isinstance(ldp.code_channel(epsilon=ONE, domain_size=3), ldp.GrrChannel)
    assert isinstance(ldp.code_channel(epsilon=ONE, domain_size=96, max_codes=96), ldp.GrrChannel)
    assert ldp.projective_channel(epsilon=ONE, domain_size=96, max_codes=127).n_codes <= 127
    refuses(
        "no projective space has 96 to 96 points",
        ldp.projective_channel, epsilon=ONE, domain_size=96, max_codes=96,
    )  # fmt: skip
    refuses("points must be 8 to 65534, got 7", ldp.ProjectiveChannel,
            domain_size=8, prime=2, dimension=3, threshold=2**63)  # fmt: skip
    refuses("prime a prime, got 3, 4", ldp.ProjectiveChannel,
            domain_size=8, prime=4, dimension=3, threshold=2**63)  # fmt: skip
    refuses("threshold must be in", ldp.ProjectiveChannel,
            domain_size=7, prime=2, dimension=3, threshold=2**62)  # fmt: skip


@pytest.mark.parametrize(("prime", "dimension"), [(2, 4), (3, 3), (5, 3)])
def test_sums_over_points_are_those_of_the_products(prime: int, dimension: int) -> None:
    size = (prime**dimension - 1) // (prime - 1)
    channel = ldp.ProjectiveChannel(
        domain_size=size, prime=prime, dimension=dimension, threshold=2**64 - 2**60
    )
    holds = np.array([[law(v, channel)[1](y, v) for y in range(size)] for v in range(size)])
    counts = np.random.default_rng(prime).integers(0, 1000, size)
    assert support_of(counts, channel=channel).tolist() == (holds @ counts).tolist()
    weights = counts % 3 - 0.5
    assert sums_over_orthogonal(weights, channel=channel) == pytest.approx(holds @ weights)


@channels
def test_answers_of_many_keys_have_the_stated_mean_and_variance(channel) -> None:
    n, runs, k = 400, 200, channel.domain_size
    weights = weights_of(channel)
    everyone = np.random.default_rng(1).integers(0, k, 2 * n).astype(np.int32)
    f = np.bincount(everyone, minlength=k) / everyone.size
    answers = []
    for run in range(runs):
        rng = np.random.default_rng(run)
        values = rng.permutation(everyone)[:n]
        reports = ldp.oracle_answers(
            values, pseudonyms=np.arange(n, dtype=np.uint64), prf=ldp.KeyedPrf(run.to_bytes(16)),
            channel=channel, indicator=0, plan_version=1,
        )  # fmt: skip
        if isinstance(channel, ldp.ProjectiveChannel):
            counts = np.bincount(reports, minlength=channel.n_codes)
        else:
            counts = ldp.count_support(reports, channel=channel)
        found = linear_query(counts, weights=weights, channel=channel, n_reports=n, n_population=2 * n)
        answers.append(found.value)
    variance = linear_variance(f, weights=weights, channel=channel, n_reports=n, n_population=2 * n)
    assert abs(np.mean(answers) - f @ weights) < 5.5 * np.sqrt(variance / runs)
    assert abs(np.var(answers, ddof=1) / variance - 1) < 5.5 * np.sqrt(2 / runs)


def test_one_value_has_the_interval_of_its_frequency() -> None:
    for name in ("GRR", "OUE"):
        channel = CHANNELS[name]
        counts = np.array([310, 150, 200, 140, 200])
        sizes = {"n_reports": 1000, "n_population": 3000}
        alone = ldp.pure_frequencies(counts, channel=channel, **sizes)
        found = linear_query(counts, weights=np.eye(5)[2], channel=channel, **sizes)
        assert found.ci_low == pytest.approx(alone.ci_low[2])
        assert found.ci_high == pytest.approx(alone.ci_high[2])
        weights = np.array([1.0, 0, 1, 0, 1])
        found = linear_query(counts, weights=weights, channel=channel, **sizes)
        for end in (found.ci_low, found.ci_high):
            f = weights / 3 * end + (1 - weights) / 2 * (1 - end)
            variance = linear_variance(f, weights=weights, channel=channel, **sizes)
            assert (found.value - end) ** 2 == pytest.approx(1.959964**2 * variance, rel=1e-5)


def test_questions_that_do_not_fit_are_refused() -> None:
    sizes = {"n_reports": 10, "n_population": 10}
    counts, channel = np.full(5, 2), CHANNELS["GRR"]
    refuses("weights must be finite with shape \\(5,\\)", linear_query, counts,
            weights=np.ones(4), channel=channel, **sizes)  # fmt: skip
    refuses("counts must have shape \\(7, ...\\)", linear_query, counts,
            weights=np.ones(5), channel=CHANNELS["PGR"], **sizes)  # fmt: skip
    columns = ldp.hadamard_channel(epsilon=ONE, domain_size=5)
    refuses("channel must be GRR, projective or unary", linear_query, counts,
            weights=np.ones(5), channel=columns, **sizes)  # fmt: skip
