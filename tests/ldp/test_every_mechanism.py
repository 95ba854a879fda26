"""Every mechanism of the library, with its real bits: unbiased, as exact as stated, and intervals that cover.

A run is 400 subscribers with fixed values, of which one is rare and one is nobody's; the runs differ in their
pseudonyms only. The bounds are five and a half standard errors.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ldp import (
    BitFlipReporter,
    Estimates,
    GrrReporter,
    HashReporter,
    KeyedPrf,
    UnaryReporter,
    adp_channel,
    allomfree_channel,
    bit_flip_channel,
    blh_channel,
    fake_data_channel,
    fake_data_counts,
    grr_channel,
    hadamard_channel,
    histogram_channel,
    histogram_frequencies,
    histogram_sums,
    histogram_variance,
    lgrr_channel,
    loloha_channel,
    lue_channel,
    olh_channel,
    oue_channel,
    prior_fake_data_channel,
    pure_frequencies,
    pure_variance,
    subset_channel,
    sue_channel,
    support_counts,
    the_channel,
)
from ldp.channels import WORD
from ldp.families.two_round import TwoRoundGrr

N = 400
RUNS = 200
BOUND = 5.5
KEY = bytes(range(16))
FIELDS: dict[str, Any] = {"prf": KeyedPrf(KEY), "indicator": 2, "plan_version": 1}

Values = NDArray[np.int32]
Words = NDArray[np.uint64]
Floats = NDArray[np.float64]
Run = Callable[[Values, Words], tuple[Estimates, Floats]]  # with the exact variance at the truth


def frequencies(values: Values, k: int) -> Floats:
    return np.bincount(values, minlength=k) / N


def estimated(
    counts: NDArray[np.int64], *, values: Values, channel: Any, n_reports: Any = N
) -> tuple[Estimates, Floats]:
    sizes = {"n_reports": n_reports, "n_population": N, "channel": channel}
    truth = frequencies(values, channel.domain_size)
    return pure_frequencies(counts, **sizes), pure_variance(truth, **sizes)


def one_round(make: Callable[..., Any], epsilon: Fraction, k: int) -> Run:
    channel = make(epsilon=epsilon, domain_size=k)

    def run(values: Values, pseudonyms: Words) -> tuple[Estimates, Floats]:
        counts = support_counts(values, pseudonyms=pseudonyms, channel=channel, **FIELDS)
        return estimated(counts, values=values, channel=channel)

    return run


def noisy_counts(epsilon: Fraction, k: int) -> Run:
    channel = histogram_channel(epsilon=epsilon, domain_size=k)

    def run(values: Values, pseudonyms: Words) -> tuple[Estimates, Floats]:
        sums = histogram_sums(values, pseudonyms=pseudonyms, channel=channel, **FIELDS)
        estimates = histogram_frequencies(sums, n_reports=N, n_population=N, channel=channel)
        truth = frequencies(values, k)
        return estimates, histogram_variance(truth, n_reports=N, n_population=N, channel=channel)

    return run


def two_rounds(make: Callable[..., Any], reporter: type | None, epsilon: Fraction, k: int) -> Run:
    channel = make(epsilon_inf=2 * epsilon, epsilon_1=epsilon, domain_size=k)
    kind: Any = reporter or (GrrReporter if isinstance(channel, TwoRoundGrr) else UnaryReporter)
    reports = kind(channel=channel, **FIELDS)

    def run(values: Values, pseudonyms: Words) -> tuple[Estimates, Floats]:
        support = reports.support(values, pseudonyms=pseudonyms, report=3)
        return estimated(support.counts, values=values, channel=channel, n_reports=support.n_reports)

    return run


def some_bits(epsilon: Fraction, k: int) -> Run:
    channel = bit_flip_channel(epsilon=epsilon, domain_size=k, sampled=max(1, k // 2))
    reports = BitFlipReporter(channel=channel, **FIELDS)

    def run(values: Values, pseudonyms: Words) -> tuple[Estimates, Floats]:
        support = reports.support(values, pseudonyms=pseudonyms)
        return estimated(support.counts, values=values, channel=channel, n_reports=support.n_reports)

    return run


def among_fakes(channel: Any) -> Run:
    """Estimate the last of two indicators; the first has two values."""

    def run(values: Values, pseudonyms: Words) -> tuple[Estimates, Floats]:
        columns = [values % 2, values]
        counts = fake_data_counts(
            columns, pseudonyms=pseudonyms, prf=FIELDS["prf"], channel=channel, plan_version=1
        )
        return estimated(counts[1], values=values, channel=channel.reports[1])

    return run


def fake_data(protocol: Any, shares: Any, epsilon: Fraction, k: int) -> Run:
    return among_fakes(
        fake_data_channel(protocol, epsilon=epsilon, unit="attribute", domain_sizes=[2, k], shares=shares)
    )


def realistic_fake_data(protocol: Any, epsilon: Fraction, k: int) -> Run:
    rising = [WORD * 2 * (x + 1) // (k * (k + 1)) for x in range(k)]
    priors = [[WORD // 4, WORD - WORD // 4], [WORD - sum(rising[1:]), *rising[1:]]]
    return among_fakes(prior_fake_data_channel(protocol, epsilon=epsilon, unit="attribute", priors=priors))


MECHANISMS: dict[str, Callable[[Fraction, int], Run]] = {
    "grr": partial(one_round, grr_channel),
    "sue": partial(one_round, sue_channel),
    "oue": partial(one_round, oue_channel),
    "the": partial(one_round, the_channel),
    "she": noisy_counts,
    "blh": partial(one_round, blh_channel),
    "olh": partial(one_round, olh_channel),
    "subset": partial(one_round, subset_channel),
    "hadamard": partial(one_round, hadamard_channel),
    "adp": partial(one_round, adp_channel),
    "l-grr": partial(two_rounds, lgrr_channel, GrrReporter),
    "l-sue": partial(two_rounds, partial(lue_channel, "l-sue"), UnaryReporter),
    "l-oue": partial(two_rounds, partial(lue_channel, "l-oue"), UnaryReporter),
    "l-osue": partial(two_rounds, partial(lue_channel, "l-osue"), UnaryReporter),
    "l-soue": partial(two_rounds, partial(lue_channel, "l-soue"), UnaryReporter),
    "allomfree": partial(two_rounds, allomfree_channel, None),
    "biloloha": partial(two_rounds, partial(loloha_channel, buckets=2), HashReporter),
    "ololoha": partial(two_rounds, loloha_channel, HashReporter),
    "dbitflippm": some_bits,
    "rsfd-grr": partial(fake_data, "grr", "equal"),
    "rsfd-grr-balanced": partial(fake_data, "grr", "balanced"),
    "rsfd-ouez": partial(fake_data, "ouez", "equal"),
    "rsfd-suez": partial(fake_data, "suez", "equal"),
    "rsfd-ouer": partial(fake_data, "ouer", "equal"),
    "rsfd-suer": partial(fake_data, "suer", "equal"),
    "rsfd-adp": partial(fake_data, "adp", "balanced"),
    "rsrfd-grr": partial(realistic_fake_data, "grr"),
    "rsrfd-ouer": partial(realistic_fake_data, "ouer"),
    "rsrfd-suer": partial(realistic_fake_data, "suer"),
}


@pytest.mark.parametrize(("epsilon", "k"), [(Fraction(3, 4), 3), (Fraction(1), 10), (Fraction(5, 2), 70)])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_estimates_are_unbiased_with_the_stated_error_and_intervals_cover(
    mechanism: str, epsilon: Fraction, k: int
) -> None:
    run = MECHANISMS[mechanism](epsilon, k)
    values = (np.arange(N) % (k - 1)).astype(np.int32)  # nobody has the last value
    values[values == k - 2] = 0
    values[7] = k - 2  # one person has the last but one
    truth = frequencies(values, k)
    found = [run(values, np.arange(N * i, N * (i + 1), dtype=np.uint64)) for i in range(RUNS)]
    z = np.array([(estimates.frequency - truth) / np.sqrt(variance) for estimates, variance in found])
    covered = np.array([(estimates.ci_low <= truth) & (truth <= estimates.ci_high) for estimates, _ in found])
    assert np.abs(z.mean(axis=0)).max() < BOUND / np.sqrt(RUNS)
    squares = z**2
    assert (np.abs(squares.mean(axis=0) - 1) / (squares.std(axis=0) / np.sqrt(RUNS))).max() < BOUND
    spread = np.sqrt(0.95 * 0.05 / RUNS)
    assert np.abs(covered.mean(axis=0) - 0.95).max() < BOUND * spread
