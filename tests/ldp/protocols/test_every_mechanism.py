"""Every mechanism of the library, with its real bits: unbiased, as exact as stated, and intervals that cover.

A run is 400 subscribers with fixed values, of which one is rare and one is no one's; the runs differ in their
pseudonyms only. The bounds are five and a half standard errors.
"""

from fractions import Fraction
from functools import partial

import numpy as np
import pytest

import ldp
from ldp.protocols.channels import WORD
from ldp.protocols.two_round import TwoRoundGrr

N = 400
RUNS = 120
BOUND = 5.5
FIELDS = {"prf": ldp.KeyedPrf(bytes(range(16))), "indicator": 2, "plan_version": 1}

# Each gives a channel, and a function of values and pseudonyms that gives counts and numbers of reports.


def one_round(make, epsilon, k):
    channel = make(epsilon=epsilon, domain_size=k)
    count = ldp.histogram_sums if make is ldp.histogram_channel else ldp.support_counts
    return channel, lambda values, people: (count(values, pseudonyms=people, channel=channel, **FIELDS), N)


def counted(support):
    return support.counts, support.n_reports


def two_rounds(make, reporter, epsilon, k):
    channel = make(epsilon_inf=2 * epsilon, epsilon_1=epsilon, domain_size=k)
    kind = reporter or (ldp.GrrReporter if isinstance(channel, TwoRoundGrr) else ldp.UnaryReporter)
    reports = kind(channel=channel, **FIELDS)
    return channel, lambda values, people: counted(reports.support(values, pseudonyms=people, report=3))


def some_bits(epsilon, k):
    channel = ldp.bit_flip_channel(epsilon=epsilon, domain_size=k, sampled=max(1, k // 2))
    reports = ldp.BitFlipReporter(channel=channel, **FIELDS)
    return channel, lambda values, people: counted(reports.support(values, pseudonyms=people))


def among_fakes(channel):
    """The last of two indicators; the first has two values."""
    settings = {"prf": FIELDS["prf"], "channel": channel, "plan_version": 1}

    def run(values, people):
        return ldp.fake_data_counts([values % 2, values], pseudonyms=people, **settings)[1], N

    return channel.reports[1], run


def fake_data(protocol, shares, epsilon, k):
    settings = {"epsilon": epsilon, "unit": "attribute", "domain_sizes": [2, k], "shares": shares}
    return among_fakes(ldp.fake_data_channel(protocol, **settings))


def realistic_fake_data(protocol, epsilon, k):
    rising = [WORD * 2 * (x + 1) // (k * (k + 1)) for x in range(k)]
    priors = [[WORD // 4, WORD - WORD // 4], [WORD - sum(rising[1:]), *rising[1:]]]
    settings = {"epsilon": epsilon, "unit": "attribute", "priors": priors}
    return among_fakes(ldp.prior_fake_data_channel(protocol, **settings))


ONE_ROUND = ["grr", "sue", "oue", "the", "blh", "olh", "subset", "hadamard", "projective", "adp"]
UNARY = ["l-sue", "l-oue", "l-osue", "l-soue"]
MECHANISMS = {
    **{name: partial(one_round, getattr(ldp, f"{name}_channel")) for name in ONE_ROUND},
    "she": partial(one_round, ldp.histogram_channel),
    "l-grr": partial(two_rounds, ldp.lgrr_channel, ldp.GrrReporter),
    **{name: partial(two_rounds, partial(ldp.lue_channel, name), ldp.UnaryReporter) for name in UNARY},
    "allomfree": partial(two_rounds, ldp.allomfree_channel, None),
    "biloloha": partial(two_rounds, partial(ldp.loloha_channel, buckets=2), ldp.HashReporter),
    "ololoha": partial(two_rounds, ldp.loloha_channel, ldp.HashReporter),
    "dbitflippm": some_bits,
    **{f"rsfd-{name}": partial(fake_data, name, "equal") for name in ("grr", "ouez", "suez", "ouer", "suer")},
    "rsfd-grr-balanced": partial(fake_data, "grr", "balanced"),
    "rsfd-adp": partial(fake_data, "adp", "balanced"),
    **{f"rsrfd-{name}": partial(realistic_fake_data, name) for name in ("grr", "ouer", "suer")},
}


# Channels that depend on the number of values in other ways than by their probabilities.
OF_FEW = ("adp", "rsfd-adp", "subset", "olh", "projective", "hadamard", "dbitflippm", "she")
CASES = [(name, Fraction(5, 2), 70) for name in MECHANISMS] + [(name, Fraction(3, 4), 3) for name in OF_FEW]


@pytest.mark.parametrize(("mechanism", "epsilon", "k"), CASES)
def test_estimates_are_unbiased_with_the_stated_error_and_intervals_cover(mechanism, epsilon, k) -> None:
    """Finds a bias of 0.7 standard errors of a run; variances off by 70% (3 values) or 15% (70 values)."""
    channel, run = MECHANISMS[mechanism](epsilon, k)
    frequencies, variance_of = ldp.pure_frequencies, ldp.pure_variance
    if mechanism == "she":
        frequencies, variance_of = ldp.histogram_frequencies, ldp.histogram_variance
    values = (np.arange(N) % (k - 1)).astype(np.int32)  # no one has the last value
    values[values == k - 2] = 0
    values[7] = k - 2  # one person has the last but one
    truth = np.bincount(values, minlength=k) / N
    z, covered = [], []
    for i in range(RUNS):
        counts, n_reports = run(values, np.arange(N * i, N * (i + 1), dtype=np.uint64))
        sizes = {"n_reports": n_reports, "n_population": N, "channel": channel}
        found = frequencies(counts, **sizes)
        z.append((found.frequency - truth) / np.sqrt(variance_of(truth, **sizes)))
        covered.append((found.ci_low <= truth) & (truth <= found.ci_high))
    assert np.abs(np.mean(z, axis=0)).max() < BOUND / np.sqrt(RUNS)
    for each, stated in ((np.square(z), 1), (np.array(covered), 0.95)):
        of_runs = each.mean(axis=1)
        assert abs(of_runs.mean() - stated) < BOUND * of_runs.std() / np.sqrt(RUNS)
