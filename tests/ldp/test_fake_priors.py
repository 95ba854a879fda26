"""RS+RFD: losses, estimates and variances against every profile and report of tiny domains."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import chain, combinations
from typing import Any, get_args

import numpy as np
import pytest

from ldp import (
    LdpError,
    PriorFakeDataChannel,
    PriorFakedChannel,
    epsilon_of,
    fake_data_channel,
    grr_channel,
    oue_channel,
    prior_fake_data_channel,
    prior_hidden_epsilon,
    pure_frequencies,
    pure_variance,
)
from ldp.channels import MAX_EPSILON, MIN_EPSILON, WORD, GrrChannel
from ldp.families.fake_data import PriorFakeProtocol
from tests.ldp.exact import exp_bounds
from tests.ldp.fakes import answer_probability, fake_probability, losses, outputs, supports_alone

PROTOCOLS = get_args(PriorFakeProtocol)


def prior(*parts: int) -> tuple[int, ...]:
    """Weights out of 2**64 in these proportions; the first takes what rounding leaves."""
    rest = [WORD * part // sum(parts) for part in parts[1:]]
    return (WORD - sum(rest), *rest)


PRIORS = (prior(1, 3), prior(5, 2, 1), prior(1, 4, 2))
ZEROS = (prior(2, 1), prior(4, 0, 1))


def mixed() -> PriorFakeDataChannel:
    """Different protocols, ratios and shares in one channel, and a code that is never a fake."""
    answers: list[Any] = [
        (grr_channel(epsilon=Fraction(1), domain_size=3), prior(2, 0, 1)),
        (oue_channel(epsilon=Fraction(2), domain_size=3), prior(1, 6, 2)),
        (grr_channel(epsilon=Fraction(3, 2), domain_size=3), prior(4, 1, 1)),
    ]
    shares = (Fraction(1, 2), Fraction(1, 6), Fraction(1, 3))
    return PriorFakeDataChannel(
        reports=tuple(
            PriorFakedChannel(answer=answer, prior=weights, share=share)
            for (answer, weights), share in zip(answers, shares, strict=True)
        )
    )


def cases() -> Iterator[Any]:
    yield pytest.param(mixed(), id="mixed")
    for protocol in PROTOCOLS:
        for unit in ("profile", "attribute"):
            common: dict[str, Any] = {"epsilon": Fraction(7, 10), "unit": unit}
            for shares in ("equal", "balanced"):
                channel = prior_fake_data_channel(protocol, priors=PRIORS, shares=shares, **common)
                yield pytest.param(channel, id=f"{protocol}-{unit}-{shares}")
            channel = prior_fake_data_channel(protocol, priors=ZEROS, **common)
            yield pytest.param(channel, id=f"{protocol}-{unit}-zeros")
        channel = prior_fake_data_channel(
            protocol, epsilon=Fraction(2), unit="attribute", priors=(prior(1, 2, 3, 4), prior(7, 1))
        )
        yield pytest.param(channel, id=f"{protocol}-four")


def subsets(d: int) -> Iterator[tuple[int, ...]]:
    return chain.from_iterable(combinations(range(d), size) for size in range(1, d + 1))


@pytest.mark.parametrize("channel", list(cases()))
def test_losses_are_those_of_every_profile_and_report(channel: PriorFakeDataChannel) -> None:
    d = len(channel.reports)
    worst = losses(channel)
    assert {differing: channel.ratio_of(differing) for differing in subsets(d)} == worst
    assert channel.ratios_attribute == tuple(worst[(i,)] for i in range(d))
    assert channel.epsilon_profile == epsilon_of(worst[tuple(range(d))])
    assert channel.epsilon_attribute == epsilon_of(max(worst[(i,)] for i in range(d)))


@pytest.mark.parametrize("channel", list(cases()))
def test_support_is_that_of_every_profile_and_report(channel: PriorFakeDataChannel) -> None:
    for i, report in enumerate(channel.reports):
        for truth in range(report.domain_size):
            expected = [
                support.p if value == truth else support.q for value, support in enumerate(report.of_values)
            ]
            assert supports_alone(channel, i, truth) == expected


@pytest.mark.parametrize("channel", list(cases()))
def test_ratio_of_one_report_is_that_of_all_its_outputs(channel: PriorFakeDataChannel) -> None:
    for report in channel.reports:
        worst = Fraction(1)
        for y in outputs(report):
            faked = (1 - report.share) * fake_probability(report, y)
            found = [
                report.share * answer_probability(report, y, value) + faked
                for value in range(report.domain_size)
            ]
            worst = max(worst, max(found) / min(found))
        assert report.ratio == worst
        assert report.epsilon == epsilon_of(worst)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_even_priors_are_plain_fakes(protocol: Any) -> None:
    """2, 4 and 8 divide 2**64, so that an integer prior can be exactly even."""
    sizes = (2, 4, 8)
    for shares in ("equal", "balanced"):
        common: dict[str, Any] = {"epsilon": Fraction(1), "unit": "attribute", "shares": shares}
        plain = fake_data_channel(protocol, domain_sizes=sizes, **common)
        even = prior_fake_data_channel(protocol, priors=[(WORD // k,) * k for k in sizes], **common)
        for one, other in zip(plain.reports, even.reports, strict=True):
            assert (one.answer, one.share, one.fake) == (other.answer, other.share, other.fake)
            assert {(x.p, x.q) for x in other.of_values} == {(one.p, one.q)}
            assert (one.hits, one.least, one.ratio) == (other.hits, other.least, other.ratio)
        for differing in subsets(3):
            assert plain.ratio_of(differing) == even.ratio_of(differing)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("unit", ["profile", "attribute"])
@pytest.mark.parametrize("epsilon", [MIN_EPSILON, Fraction(1, 10), Fraction(2), Fraction(12)])
def test_loss_never_exceeds_its_nominal_and_comes_close(protocol: Any, unit: Any, epsilon: Fraction) -> None:
    for priors, shares in [
        (PRIORS, "equal"),
        (PRIORS, "balanced"),
        (ZEROS, "equal"),
        ((prior(1, 1),), "equal"),
    ]:
        channel = prior_fake_data_channel(protocol, epsilon=epsilon, unit=unit, priors=priors, shares=shares)  # type: ignore[arg-type]
        ratios = [channel.ratio_profile] if unit == "profile" else channel.ratios_attribute
        assert max(ratios) <= exp_bounds(epsilon)[0]
        assert float(epsilon_of(max(ratios))) == pytest.approx(float(epsilon), abs=2e-9)
        assert channel.ratio_profile >= max(channel.ratios_attribute)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_balanced_shares_make_all_values_lose_the_same(protocol: Any) -> None:
    channel = prior_fake_data_channel(
        protocol, epsilon=Fraction(1), unit="profile", priors=PRIORS, shares="balanced"
    )
    ratios = [float(ratio) for ratio in channel.ratios_attribute]
    assert ratios == pytest.approx([ratios[0]] * 3, rel=1e-14)
    equal = prior_fake_data_channel(protocol, epsilon=Fraction(1), unit="profile", priors=PRIORS)
    assert ratios[0] < max(equal.ratios_attribute)


def test_hidden_epsilon_is_the_largest_that_keeps_the_promise() -> None:
    hidden = prior_hidden_epsilon("grr", epsilon=Fraction(1), unit="attribute", priors=PRIORS)
    step = Fraction(1, 2**30)
    assert hidden > Fraction(6, 5)
    for answers, keeps in [(hidden, True), (hidden + step, False)]:
        channel = prior_fake_data_channel("grr", epsilon=answers, unit="profile", priors=PRIORS)
        assert (max(channel.ratios_attribute) <= exp_bounds(Fraction(1))[0]) is keeps


def test_a_code_that_is_never_a_fake_hides_nothing() -> None:
    hidden = prior_hidden_epsilon("grr", epsilon=Fraction(1), unit="attribute", priors=ZEROS)
    assert hidden == 1
    channel = prior_fake_data_channel("grr", epsilon=Fraction(1), unit="attribute", priors=ZEROS)
    assert [report.is_telling for report in channel.reports] == [False, True]
    assert channel.ratios_attribute[1] == channel.reports[1].answer.ratio
    # Of the codes that may be fakes, the rarest comes first and the most frequent last.
    report = channel.reports[1]
    assert report.hits == tuple(
        (report.answer.p * WORD / weight, report.answer.q * WORD / weight)
        for weight in (ZEROS[1][2], ZEROS[1][0])
    )
    # Unary encoding makes every report of every fake, if perhaps rarely.
    assert prior_hidden_epsilon("ouer", epsilon=Fraction(1), unit="attribute", priors=ZEROS) > 1
    assert prior_hidden_epsilon("grr", epsilon=MAX_EPSILON, unit="attribute", priors=PRIORS) == MAX_EPSILON


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_estimate_is_unbiased_and_its_variance_exact(protocol: Any) -> None:
    """By enumeration of what one person reports, in exact numbers."""
    channel = prior_fake_data_channel(
        protocol, epsilon=Fraction(1), unit="attribute", priors=PRIORS[:2], shares="balanced"
    )
    f = (Fraction(1, 2), Fraction(3, 8), Fraction(1, 8))
    report, n = channel.reports[1], 40
    g = [
        sum((f[truth] * supports_alone(channel, 1, truth)[value] for truth in range(3)), Fraction(0))
        for value in range(3)
    ]
    slope = report.share * (report.answer.p - report.answer.q)
    drawn_anew = pure_variance(np.array(f, float), n_reports=n, n_population=10**15, channel=report)
    fixed = pure_variance(np.array(f, float), n_reports=n, n_population=n, channel=report)
    for value, support in enumerate(report.of_values):
        assert (g[value] - support.q) / (support.p - support.q) == f[value]
        assert drawn_anew[value] == pytest.approx(
            float(g[value] * (1 - g[value]) / (n * slope**2)), rel=1e-12
        )
        own = f[value] * support.p * (1 - support.p) + (1 - f[value]) * support.q * (1 - support.q)
        assert fixed[value] == pytest.approx(float(own / (n * slope**2)), rel=1e-12)
    found = pure_frequencies(np.array([20, 15, 5]), n_reports=n, n_population=n, channel=report)
    exact = [
        (Fraction(count, n) - support.q) / slope
        for count, support in zip((20, 15, 5), report.of_values, strict=True)
    ]
    assert found.frequency == pytest.approx([float(x) for x in exact], rel=1e-12)
    clipped = np.clip(found.frequency, 0, 1)
    errors = pure_variance(clipped, n_reports=n, n_population=n, channel=report) ** 0.5
    assert found.std_error == pytest.approx(errors)
    for ends in (found.ci_low, found.ci_high):
        distances = (found.frequency - ends) ** 2
        at_ends = pure_variance(ends, n_reports=n, n_population=n, channel=report)
        assert distances == pytest.approx(1.959963984540054**2 * at_ends, rel=1e-9)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"protocol": "ouez"}, r"protocol must be one of \('grr', .*got 'ouez'"),
        ({"unit": "person"}, "unit must be one of .*got 'person'"),
        ({"shares": "optimal"}, "shares must be one of .*got 'optimal'"),
        ({"shares": "balanced", "priors": ZEROS}, "shares must be equal if a code has prior 0"),
        ({"priors": ()}, "priors must hold an indicator, got none"),
        ({"priors": (PRIORS[0], (WORD,))}, "domain_size must be >= 2, got 1"),
        (
            {"priors": ((WORD // 2, WORD // 2 - 1),)},
            f"prior must be >= 0 with sum {WORD}, got .* and {WORD - 1}",
        ),
        ({"priors": ((WORD + 1, -1),)}, f"prior must be >= 0 .*, got -1 and {WORD}"),
        ({"epsilon": Fraction(65)}, "epsilon of one answer must be in"),
    ],
)
@pytest.mark.parametrize("unit", ["profile", "attribute"])
def test_what_cannot_be_is_refused(changes: dict[str, Any], message: str, unit: str) -> None:
    arguments: dict[str, Any] = {
        "protocol": "grr",
        "epsilon": Fraction(1),
        "unit": unit,
        "priors": PRIORS,
    } | changes
    with pytest.raises(LdpError, match=message):
        prior_fake_data_channel(arguments.pop("protocol"), **arguments)


def test_channels_that_make_no_sense_are_refused() -> None:
    grr: GrrChannel = grr_channel(epsilon=Fraction(1), domain_size=3)
    with pytest.raises(LdpError, match="prior must have 3 entries, got 2"):
        PriorFakedChannel(answer=grr, prior=PRIORS[0], share=Fraction(1, 2))
    with pytest.raises(LdpError, match=r"share must be in \(0, 1\], got 0"):
        PriorFakedChannel(answer=grr, prior=PRIORS[1], share=Fraction(0))
    report = PriorFakedChannel(answer=grr, prior=PRIORS[1], share=Fraction(1, 2))
    with pytest.raises(LdpError, match="shares must add up to 1, got 3/2"):
        PriorFakeDataChannel(reports=(report,) * 3)
