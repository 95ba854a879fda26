"""RS+FD and RS+RFD: a subscriber answers one indicator and sends fake reports for the others.

Nothing marks the report that is the answer, though often it can be guessed
(`ldp.privacy.attacker.answered_success`). That hides one value better, but not a whole profile: if all values
differ, all reports may fit the one profile and none the other, for any answer.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Literal, get_args

from ldp.errors import LdpError
from ldp.protocols.channels import (
    MAX_EPSILON,
    GrrChannel,
    Unit,
    check_epsilon,
    epsilon_of,
    exp_down,
    grr_channel,
    noise_at_zero,
)
from ldp.protocols.faked_reports import Fake, FakedChannel, FakedReport, PriorFakedChannel, balanced
from ldp.protocols.unary import UnaryChannel, oue_channel, sue_channel

FakeProtocol = Literal["grr", "ouez", "suez", "adp", "ouer", "suer"]
PriorFakeProtocol = Literal["grr", "ouer", "suer"]
Shares = Literal["equal", "balanced"]
Priors = Sequence[Sequence[int]]

_STEP = Fraction(1, 2**30)
_WORKING_DIGITS = 60
_ANSWERS: dict[str, Callable[..., GrrChannel | UnaryChannel]] = {
    "grr": grr_channel,
    "oue": oue_channel,
    "sue": sue_channel,
}
_FAKES: dict[str, Fake] = {"": "code", "z": "no value", "r": "any value"}  # by the end of the protocol's name


@dataclass(frozen=True, slots=True, kw_only=True)
class JointLosses:
    """Joint losses of all reports of a subscriber; LdpError if their shares do not add up to 1."""

    reports: tuple[FakedReport, ...]

    def __post_init__(self) -> None:
        total = sum(report.share for report in self.reports)
        if total != 1:
            raise LdpError(f"shares must add up to 1, got {total}")

    def ratio_of(self, differing: Collection[int]) -> Fraction:
        """Largest probability ratio under two profiles that differ in just these positions, exact.

        LdpError if there is no position, or one is out of range.
        """
        d, different = len(self.reports), set(differing)
        if not different or not different <= set(range(d)):
            raise LdpError(f"differing must hold positions in [0, {d}), got {sorted(different)}")
        telling = [self.reports[i].answer.ratio for i in different if self.reports[i].is_telling]
        return max([self._hidden_ratio(different), *telling])

    @property
    def ratio_profile(self) -> Fraction:
        """Largest probability ratio under two profiles, exact: nothing is hidden by fakes."""
        return self.ratio_of(range(len(self.reports)))

    @property
    def ratios_attribute(self) -> tuple[Fraction, ...]:
        """Largest probability ratio of all reports if one value differs, exact, per indicator."""
        total = sum(report.share * report.least for report in self.reports)
        found = []
        for report in self.reports:
            hit, miss = report.hits[0]
            fixed = total - report.share * report.least
            hidden = (report.share * hit + fixed) / (report.share * miss + fixed)
            found.append(report.answer.ratio if report.is_telling else hidden)
        return tuple(found)

    @property
    def epsilon_profile(self) -> Decimal:
        """Realised epsilon of a profile, rounded up to 30 digits."""
        return epsilon_of(self.ratio_profile)

    @property
    def epsilon_attribute(self) -> Decimal:
        """Realised epsilon of the value that loses most, rounded up to 30 digits."""
        return epsilon_of(max(self.ratios_attribute))

    def _hidden_ratio(self, different: set[int]) -> Fraction:
        """Largest ratio of reports all of which may be fakes."""
        fixed = sum(
            report.share * report.least for i, report in enumerate(self.reports) if i not in different
        )
        ratio = Fraction(1)
        while True:
            # Dinkelbach's method for the largest quotient of two sums; it ends, since pairs are few.
            above = below = Fraction(fixed)
            for i in different:
                hit, miss = max(self.reports[i].hits, key=lambda pair: pair[0] - ratio * pair[1])
                above += self.reports[i].share * hit
                below += self.reports[i].share * miss
            if above / below == ratio:
                return ratio
            ratio = above / below


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeDataChannel(JointLosses):
    """All reports of a subscriber (RS+FD), and what they reveal together.

    P(reports | profile) is the probability of fakes only, times the sum over the indicators of share times
    "how much likelier than a fake". The worst reports fit all values that differ and no other. Then, with b
    the likelihood of an answer that does not fit over that of a fake, and e' the ratio of one answer: ratio
    1 + (e' - 1) (sum over those that differ of share b) / (sum over all of share b) for GRR, -z and ADP.
    With fakes of any value (-r) the other reports can be even less likely answers: one value always loses
    more than epsilon if there are more than two, even if all domains are equal.
    """

    reports: tuple[FakedChannel, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorFakeDataChannel(JointLosses):
    """All reports of a subscriber whose fakes have priors (RS+RFD), and what they reveal together.

    As for `FakeDataChannel`, but a rare fake hides less: the value that loses most is the one with the
    smallest prior, with reports of the most frequent fakes. A code of prior 0 hides nothing.
    """

    reports: tuple[PriorFakedChannel, ...]


def fake_data_channel(
    protocol: FakeProtocol,
    *,
    epsilon: Fraction,
    unit: Unit,
    domain_sizes: Sequence[int],
    shares: Shares = "equal",
) -> FakeDataChannel:
    """RS+FD with at most this epsilon for the unit.

    Parameters
    ----------
    protocol : "grr", "ouez", "suez" or "adp" (the better of GRR and OUE-z per indicator); also "ouer" and
        "suer", not recommended: see `FakeDataChannel`
    epsilon : Fraction; nominal, for the unit, in [0.000001, 64]; the realised one is never larger
    unit : "profile" or "attribute"
    domain_sizes : sequence of int, shape (d,)
    shares : "equal" (1 / d each) or "balanced" (so that all values lose the same)

    Notes
    -----
    `hidden_epsilon` is the epsilon of the answers. Balanced shares are proportional to 1 / b_j for GRR, -z
    and ADP (GRR: (e' + k - 1) / k), and rounded to integers out of 2**64.
    """
    answers = hidden_epsilon(protocol, epsilon=epsilon, unit=unit, domain_sizes=domain_sizes, shares=shares)
    return _channel(protocol, answers=answers, domain_sizes=domain_sizes, shares=shares)


def hidden_epsilon(
    protocol: FakeProtocol,
    *,
    epsilon: Fraction,
    unit: Unit,
    domain_sizes: Sequence[int],
    shares: Shares = "equal",
) -> Fraction:
    """Nominal epsilon of the answers under which the unit loses at most epsilon.

    Parameters, Raises : as of `fake_data_channel`

    Returns
    -------
    Fraction; at least epsilon, at most 64

    Notes
    -----
    Profile: epsilon itself. Attribute: ln(d (e^epsilon - 1) + 1), rounded down, for equal shares of OUE-z and
    SUE-z; else the largest, to 2**-30, for which the realised channel loses no more than epsilon. Of ADP it
    may not be the largest: where an indicator changes from OUE-z to GRR the loss jumps, and bisection stays
    below one of the jumps.
    """
    _check(protocol, get_args(FakeProtocol), unit=unit, shares=shares)
    check_epsilon(epsilon)
    if not domain_sizes:
        raise LdpError("domain_sizes must hold an indicator, got none")
    if unit == "profile":
        return epsilon
    if protocol in ("ouez", "suez") and shares == "equal":
        allowed = exp_down(epsilon)
        return min(max(epsilon, _log_down(len(domain_sizes) * (allowed - 1) + 1)), MAX_EPSILON)
    return _largest(
        epsilon,
        lambda answers: _channel(protocol, answers=answers, domain_sizes=domain_sizes, shares=shares),
    )


def prior_fake_data_channel(
    protocol: PriorFakeProtocol,
    *,
    epsilon: Fraction,
    unit: Unit,
    priors: Priors,
    shares: Shares = "equal",
) -> PriorFakeDataChannel:
    """RS+RFD with at most this epsilon for the unit.

    Parameters
    ----------
    protocol : "grr", "ouer" or "suer"
    epsilon, unit, Raises : as of `fake_data_channel`
    priors : sequence of sequences of int, shape (d,) of (domain_size,); of fakes, as in `PriorFakedChannel`:
        public and independent of the data
    shares : "equal" (1 / d each) or "balanced" (so that all values lose the same at worst; only if all codes
        may be fakes)
    """
    answers = prior_hidden_epsilon(protocol, epsilon=epsilon, unit=unit, priors=priors, shares=shares)
    return _prior_channel(protocol, answers=answers, priors=priors, shares=shares)


def prior_hidden_epsilon(
    protocol: PriorFakeProtocol,
    *,
    epsilon: Fraction,
    unit: Unit,
    priors: Priors,
    shares: Shares = "equal",
) -> Fraction:
    """Nominal epsilon of the answers under which the unit loses at most epsilon.

    Parameters, Raises : as of `prior_fake_data_channel`

    Returns
    -------
    Fraction; at least epsilon, at most 64

    Notes
    -----
    Profile: epsilon itself. Attribute: the largest, to 2**-30, for which the realised channel loses no more
    than epsilon; epsilon itself if a code has prior 0, since its answer is in plain sight.
    """
    _check(protocol, get_args(PriorFakeProtocol), unit=unit, shares=shares)
    check_epsilon(epsilon)
    if not priors:
        raise LdpError("priors must hold an indicator, got none")
    if unit == "profile":
        return epsilon
    return _largest(
        epsilon, lambda answers: _prior_channel(protocol, answers=answers, priors=priors, shares=shares)
    )


def _largest(epsilon: Fraction, channel_of: Callable[[Fraction], JointLosses]) -> Fraction:
    """Epsilon of the answers, in steps from epsilon on, for which no value loses more than epsilon."""
    allowed = exp_down(epsilon)
    kept, broken = 0, int((MAX_EPSILON - epsilon) / _STEP) + 1
    while broken - kept > 1:
        middle = (kept + broken) // 2
        keeps = max(channel_of(epsilon + middle * _STEP).ratios_attribute) <= allowed
        kept, broken = (middle, broken) if keeps else (kept, middle)
    return epsilon + kept * _STEP


def _channel(
    protocol: FakeProtocol, *, answers: Fraction, domain_sizes: Sequence[int], shares: Shares
) -> FakeDataChannel:
    equal = Fraction(1, len(domain_sizes))
    reports = [_report(protocol, answers=answers, domain_size=k, share=equal) for k in domain_sizes]
    return FakeDataChannel(reports=tuple(balanced(reports) if shares == "balanced" else reports))


def _report(protocol: FakeProtocol, *, answers: Fraction, domain_size: int, share: Fraction) -> FakedChannel:
    if protocol == "adp":
        both = [
            _report(each, answers=answers, domain_size=domain_size, share=share) for each in ("grr", "ouez")
        ]
        return min(both, key=noise_at_zero)
    answer = _answer(protocol, epsilon=answers, domain_size=domain_size)
    return FakedChannel(answer=answer, fake=_FAKES[protocol[3:]], share=share)


def _prior_channel(
    protocol: PriorFakeProtocol, *, answers: Fraction, priors: Priors, shares: Shares
) -> PriorFakeDataChannel:
    equal = Fraction(1, len(priors))
    reports = [
        PriorFakedChannel(
            answer=_answer(protocol, epsilon=answers, domain_size=len(prior)),
            prior=tuple(prior),
            share=equal,
        )
        for prior in priors
    ]
    return PriorFakeDataChannel(reports=tuple(balanced(reports) if shares == "balanced" else reports))


def _answer(protocol: str, *, epsilon: Fraction, domain_size: int) -> GrrChannel | UnaryChannel:
    """Channel of an answer, by the first letters of the protocol."""
    return _ANSWERS[protocol[:3]](epsilon=epsilon, domain_size=domain_size)


def _log_down(ratio: Fraction) -> Fraction:
    """Natural logarithm, rounded down."""
    down = Context(prec=_WORKING_DIGITS, rounding=ROUND_FLOOR)
    # Decimal.ln always rounds to nearest, hence the step down.
    log = down.ln(down.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)))
    return Fraction(log.next_minus(context=down))


def _check(protocol: str, protocols: tuple[str, ...], *, unit: Unit, shares: Shares) -> None:
    if protocol not in protocols:
        raise LdpError(f"protocol must be one of {protocols}, got {protocol!r}")
    if unit not in get_args(Unit):
        raise LdpError(f"unit must be one of {get_args(Unit)}, got {unit!r}")
    if shares not in get_args(Shares):
        raise LdpError(f"shares must be one of {get_args(Shares)}, got {shares!r}")
