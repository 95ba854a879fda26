"""RS+FD and RS+RFD: closed forms against the sheet and against every profile and report of tiny domains."""

from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from itertools import chain, combinations
from math import exp, log
from typing import Any, get_args

import numpy as np
import pytest

from ldp import LdpError, epsilon_of, grr_channel, oue_channel, pure_frequencies, pure_variance
from ldp.protocols import fake_data as family
from ldp.protocols.channels import MAX_EPSILON, MIN_EPSILON, WORD, exp_down
from ldp.protocols.fake_data import (
    FakeDataChannel,
    fake_data_channel,
    hidden_epsilon,
    prior_fake_data_channel,
)
from ldp.protocols.faked_reports import FakedChannel, PriorFakedChannel
from tests.ldp.exact import VECTORS, exp_bounds, refuses
from tests.ldp.fakes import chances, losses, prior, supports_alone

SIZES = (3, 3, 8, 12, 37, 11)
TABLE = VECTORS["A_rsfd_mse"]
PROTOCOLS = ["grr", "ouez", "suez", "adp", "ouer", "suer"]
PRIOR_PROTOCOLS = get_args(family.PriorFakeProtocol)
PRIORS = (prior(1, 3), prior(5, 2, 1), prior(4, 2))
ZEROS = (prior(2, 1), prior(4, 0, 1))
rows = pytest.mark.parametrize("row", TABLE, ids=lambda row: str(row["eps"]))


def mixed() -> FakeDataChannel:
    answers = [
        (grr_channel(epsilon=Fraction(1), domain_size=2), "code", Fraction(1, 2)),
        (oue_channel(epsilon=Fraction(2), domain_size=4), "any value", Fraction(1, 6)),
        (oue_channel(epsilon=Fraction(1, 2), domain_size=3), "any value", Fraction(1, 3)),
    ]
    reports = [FakedChannel(answer=answer, fake=fake, share=share) for answer, fake, share in answers]
    return FakeDataChannel(reports=tuple(reports))


def mixed_priors() -> family.PriorFakeDataChannel:
    answers = [
        (grr_channel(epsilon=Fraction(1), domain_size=3), prior(2, 0, 1), Fraction(1, 2)),
        (oue_channel(epsilon=Fraction(2), domain_size=3), prior(1, 6, 2), Fraction(1, 6)),
        (grr_channel(epsilon=Fraction(3, 2), domain_size=2), prior(4, 1), Fraction(1, 3)),
    ]
    reports = [PriorFakedChannel(answer=answer, prior=prior, share=share) for answer, prior, share in answers]
    return family.PriorFakeDataChannel(reports=tuple(reports))


def cases() -> Iterator[Any]:
    yield pytest.param(mixed, id="mixed")
    yield pytest.param(mixed_priors, id="mixed priors")
    common = {"epsilon": Fraction(7, 10)}
    for protocol in PROTOCOLS:
        for unit, shares, sizes in (("attribute", "balanced", (2, 3, 2)), ("profile", "equal", (4, 2))):
            asked = {**common, "unit": unit, "shares": shares, "domain_sizes": sizes}
            yield pytest.param(partial(fake_data_channel, protocol, **asked), id=f"{protocol}-{unit}")
    for protocol in PRIOR_PROTOCOLS:
        for unit, shares, priors in (("attribute", "balanced", PRIORS), ("profile", "equal", ZEROS)):
            asked = {**common, "unit": unit, "shares": shares, "priors": priors}
            made = partial(prior_fake_data_channel, protocol, **asked)
            yield pytest.param(made, id=f"{protocol}-{unit}-priors")


every_channel = pytest.mark.parametrize("make", list(cases()))


def subsets(d: int) -> Iterator[tuple[int, ...]]:
    return chain.from_iterable(combinations(range(d), size) for size in range(1, d + 1))


@every_channel
def test_losses_and_supports_are_those_of_every_profile_and_report(make) -> None:
    channel = make()
    d = len(channel.reports)
    worst = losses(channel)
    assert {differing: channel.ratio_of(differing) for differing in subsets(d)} == worst
    assert channel.ratio_profile == worst[tuple(range(d))]
    assert channel.ratios_attribute == tuple(worst[(i,)] for i in range(d))
    assert channel.epsilon_profile == epsilon_of(channel.ratio_profile)
    assert channel.epsilon_attribute == epsilon_of(max(channel.ratios_attribute))
    for i, report in enumerate(channel.reports):
        supports = report.of_values if hasattr(report, "of_values") else [report] * report.domain_size
        for truth in range(report.domain_size):
            expected = [support.p if value == truth else support.q for value, support in enumerate(supports)]
            assert supports_alone(channel, i, truth) == expected
        alone = max(max(found) / min(found) for found in chances(report).values())
        assert (report.ratio, report.epsilon) == (alone, epsilon_of(alone))


@rows
@pytest.mark.parametrize("protocol", ["grr", "ouer", "adp"])
def test_published_epsilon_reveals_what_the_sheet_says(row, protocol) -> None:
    epsilon = Fraction(row["eps_prime"])
    channel = fake_data_channel(protocol, epsilon=epsilon, unit="profile", domain_sizes=SIZES)
    found = [log(ratio) for ratio in channel.ratios_attribute]
    assert found == pytest.approx(row[f"attr_{protocol}"], rel=1e-12)
    assert float(channel.epsilon_profile) == pytest.approx(row["tuple_true"], rel=1e-12)
    if protocol == "adp":
        chosen = ["GRR" if report.fake == "code" else "OUEz" for report in channel.reports]
        assert chosen == row["adp_choice"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("sizes", [(2, 3, 37), (4,)])
def test_balanced_shares_make_all_values_lose_the_same(protocol, sizes: tuple[int, ...]) -> None:
    common = {"unit": "profile", "domain_sizes": sizes, "shares": "balanced"}
    channel = fake_data_channel(protocol, epsilon=Fraction(1), **common)
    losses_ = [log(ratio) for ratio in channel.ratios_attribute]
    assert losses_ == pytest.approx([losses_[0]] * len(sizes), rel=1e-14)
    assert all((WORD * report.share).denominator == 1 for report in channel.reports)


@pytest.mark.parametrize("epsilon", [MIN_EPSILON, Fraction(1, 3), Fraction(1)])
def test_hidden_epsilon_is_rounded_down(epsilon: Fraction) -> None:
    for d in (2, 3, 4, 7, 13, 31, 59):
        hidden = hidden_epsilon("ouez", epsilon=epsilon, unit="attribute", domain_sizes=(2,) * d)
        largest = d * (exp_down(epsilon) - 1) + 1
        assert exp_bounds(hidden)[1] <= largest < exp_bounds(hidden + Fraction(1, 10**57))[0]


@pytest.mark.parametrize("row", TABLE[1:2], ids=lambda row: str(row["eps"]))
def test_uneven_domains_hide_less_unless_balanced(row: dict[str, Any]) -> None:
    common = {"epsilon": Fraction(row["eps"]), "unit": "attribute", "domain_sizes": SIZES}
    for protocol, column in (("grr", "grr"), ("ouer", "ouer")):
        hidden = hidden_epsilon(protocol, **common)
        assert float(hidden) == pytest.approx(row[f"eps_prime_attr_max_eq_eps_{column}"], abs=2e-9)
    hidden = hidden_epsilon("grr", shares="balanced", **common)
    assert float(hidden) == pytest.approx(row["eps_prime"], abs=2e-9)
    balanced = fake_data_channel("grr", shares="balanced", **common)
    e = exp(row["eps_prime"])
    weights = np.array([(e + k - 1) / k for k in SIZES])
    assert [float(r.share) for r in balanced.reports] == pytest.approx(weights / weights.sum(), rel=1e-8)
    assert [log(x) for x in balanced.ratios_attribute] == pytest.approx([row["eps"]] * 6, abs=2e-9)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(("unit", "shares"), [("profile", "equal"), ("attribute", "balanced")])
@pytest.mark.parametrize("epsilon", [MIN_EPSILON, Fraction(2)])
def test_loss_never_exceeds_its_nominal_and_comes_close(protocol, unit, shares, epsilon) -> None:
    common, even = {"epsilon": epsilon, "unit": unit}, [(4,), (3, 2, 60)]
    channels = [fake_data_channel(protocol, domain_sizes=sizes, shares=shares, **common) for sizes in even]
    if protocol in PRIOR_PROTOCOLS:
        given = [(PRIORS, shares), (ZEROS, "equal"), ((prior(1, 1),), "equal")]
        channels += [prior_fake_data_channel(protocol, priors=each, shares=s, **common) for each, s in given]
    for channel in channels:
        ratios = [channel.ratio_profile] if unit == "profile" else channel.ratios_attribute
        assert max(ratios) <= exp_bounds(epsilon)[0]
        # A code that is never a fake gives its answer away: no larger answer keeps the promise.
        assert float(epsilon_of(max(ratios))) == pytest.approx(float(epsilon), abs=2e-9)
        assert channel.ratio_profile >= max(channel.ratios_attribute)


def test_budgets_at_the_upper_end_are_cut() -> None:
    for protocol in ("ouez", "grr"):
        common = {"epsilon": MAX_EPSILON, "unit": "attribute", "domain_sizes": (4, 4)}
        assert hidden_epsilon(protocol, **common) == MAX_EPSILON
    assert hidden_epsilon("ouez", epsilon=Fraction(1), unit="attribute", domain_sizes=(4,)) == 1


def test_hidden_epsilon_is_the_largest_that_keeps_the_promise() -> None:
    hidden = family.prior_hidden_epsilon("grr", epsilon=Fraction(1), unit="attribute", priors=PRIORS)
    step = Fraction(1, 2**30)
    assert hidden > Fraction(6, 5)
    for answers, keeps in [(hidden, True), (hidden + step, False)]:
        channel = prior_fake_data_channel("grr", epsilon=answers, unit="profile", priors=PRIORS)
        assert (max(channel.ratios_attribute) <= exp_bounds(Fraction(1))[0]) is keeps


def test_a_code_that_is_never_a_fake_hides_nothing() -> None:
    hidden = family.prior_hidden_epsilon("grr", epsilon=Fraction(1), unit="attribute", priors=ZEROS)
    assert hidden == 1
    channel = prior_fake_data_channel("grr", epsilon=Fraction(1), unit="attribute", priors=ZEROS)
    assert [report.is_telling for report in channel.reports] == [False, True]
    assert channel.ratios_attribute[1] == channel.reports[1].answer.ratio
    # Of the codes that may be fakes, the rarest comes first and the most frequent last.
    report = channel.reports[1]
    p, q = report.answer.p * WORD, report.answer.q * WORD
    assert report.hits == tuple((p / weight, q / weight) for weight in (ZEROS[1][2], ZEROS[1][0]))
    # Unary encoding makes every report of every fake, if perhaps rarely.
    assert family.prior_hidden_epsilon("ouer", epsilon=Fraction(1), unit="attribute", priors=ZEROS) > 1
    common = {"epsilon": MAX_EPSILON, "unit": "attribute", "priors": PRIORS}
    assert family.prior_hidden_epsilon("grr", **common) == MAX_EPSILON


@pytest.mark.parametrize("protocol", PRIOR_PROTOCOLS)
def test_estimate_is_unbiased_and_its_variance_exact(protocol) -> None:
    common = {"unit": "attribute", "priors": PRIORS[:2], "shares": "balanced"}
    channel = prior_fake_data_channel(protocol, epsilon=Fraction(1), **common)
    f = (Fraction(1, 2), Fraction(3, 8), Fraction(1, 8))
    report, n = channel.reports[1], 40
    alone = [supports_alone(channel, 1, truth) for truth in range(3)]
    g = [sum((f[x] * alone[x][value] for x in range(3)), Fraction(0)) for value in range(3)]
    slope = report.share * (report.answer.p - report.answer.q)
    drawn_anew = pure_variance(np.array(f, float), n_reports=n, n_population=10**15, channel=report)
    fixed = pure_variance(np.array(f, float), n_reports=n, n_population=n, channel=report)
    for value, support in enumerate(report.of_values):
        assert (g[value] - support.q) / (support.p - support.q) == f[value]
        own = g[value] * (1 - g[value])
        assert drawn_anew[value] == pytest.approx(float(own / (n * slope**2)), rel=1e-12)
        own = f[value] * support.p * (1 - support.p) + (1 - f[value]) * support.q * (1 - support.q)
        assert fixed[value] == pytest.approx(float(own / (n * slope**2)), rel=1e-12)
    found = pure_frequencies(np.array([20, 15, 5]), n_reports=n, n_population=n, channel=report)
    pairs = zip((20, 15, 5), report.of_values, strict=True)
    exact = [(Fraction(count, n) - support.q) / slope for count, support in pairs]
    assert found.frequency == pytest.approx([float(x) for x in exact], rel=1e-12)
    clipped = np.clip(found.frequency, 0, 1)
    errors = pure_variance(clipped, n_reports=n, n_population=n, channel=report) ** 0.5
    assert found.std_error == pytest.approx(errors)
    for ends in (found.ci_low, found.ci_high):
        distances = (found.frequency - ends) ** 2
        at_ends = pure_variance(ends, n_reports=n, n_population=n, channel=report)
        assert distances == pytest.approx(1.959963984540054**2 * at_ends, rel=1e-9)


@pytest.mark.parametrize("unit", ["profile", "attribute"])
def test_what_cannot_be_is_refused(unit: str) -> None:
    for changes, message in (
        ({"protocol": "olh"}, r"protocol must be one of \('grr', .*got 'olh'"),
        ({"unit": "person"}, "unit must be one of .*got 'person'"),
        ({"shares": "optimal"}, "shares must be one of .*got 'optimal'"),
        ({"domain_sizes": ()}, "domain_sizes must hold an indicator, got none"),
        ({"domain_sizes": (3, 1)}, "domain_size must be >= 2, got 1"),
        ({"epsilon": Fraction(0)}, "epsilon of one answer must be in"),
        ({"epsilon": Fraction(65), "protocol": "ouez"}, "epsilon of one answer must be in"),
        ({"priors": PRIORS, "protocol": "ouez"}, r"protocol must be one of \('grr', .*got 'ouez'"),
        ({"priors": ZEROS, "shares": "balanced"}, "shares must be equal if a code has prior 0"),
        ({"priors": ()}, "priors must hold an indicator, got none"),
        ({"priors": (PRIORS[0], (WORD,))}, "domain_size must be >= 2, got 1"),
        ({"priors": ((WORD // 2, WORD // 2 - 1),)}, f"prior must .* sum {WORD}, got .* and {WORD - 1}"),
        ({"priors": ((WORD + 1, -1),)}, f"prior must be >= 0 .*, got -1 and {WORD}"),
        ({"priors": PRIORS, "epsilon": Fraction(65)}, "epsilon of one answer must be in"),
    ):
        make = prior_fake_data_channel if "priors" in changes else fake_data_channel
        sizes = {} if "priors" in changes else {"domain_sizes": (3, 8)}
        arguments = {"protocol": "grr", "epsilon": Fraction(1), "unit": unit} | sizes | changes
        refuses(message, make, arguments.pop("protocol"), **arguments)


def test_channels_that_make_no_sense_are_refused() -> None:
    grr, oue = (make(epsilon=Fraction(1), domain_size=3) for make in (grr_channel, oue_channel))
    half = {"share": Fraction(1, 2)}
    for answer, fake in [(grr, "no value"), (grr, "any value"), (oue, "code"), (oue, "zeros")]:
        refuses(f"fake must be one of .*got '{fake}'", FakedChannel, answer=answer, fake=fake, **half)
    for share in (Fraction(0), Fraction(3, 2)):
        with pytest.raises(LdpError, match=rf"share must be in \(0, 1\], got {share}"):
            FakedChannel(answer=grr, fake="code", share=share)
    report = FakedChannel(answer=grr, fake="code", **half)
    refuses("shares must add up to 1, got 3/2", FakeDataChannel, reports=(report,) * 3)
    channel = FakeDataChannel(reports=(report, report))
    for differing in [(), (2,), (-1, 0)]:
        refuses(r"differing must hold positions in \[0, 2\), got \[", channel.ratio_of, differing)
    with pytest.raises(LdpError, match="prior must have 3 entries, got 2"):
        PriorFakedChannel(answer=grr, prior=PRIORS[0], share=Fraction(1, 2))
    with pytest.raises(LdpError, match=r"share must be in \(0, 1\], got 0"):
        PriorFakedChannel(answer=grr, prior=PRIORS[1], share=Fraction(0))
    report = PriorFakedChannel(answer=grr, prior=PRIORS[1], share=Fraction(1, 2))
    refuses("shares must add up to 1, got 3/2", family.PriorFakeDataChannel, reports=(report,) * 3)
