"""RS+FD: a subscriber answers one indicator and sends fake reports for the others.

Nobody knows which report is the answer. That hides one value better, but not a whole profile: if all values
differ, all reports may fit the one profile and none the other, whichever is the answer.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Literal, get_args

from ldp.channels import (
    MAX_EPSILON,
    WORD,
    GrrChannel,
    Unit,
    check_epsilon,
    epsilon_of,
    exp_down,
    grr_channel,
    noise_at_zero,
)
from ldp.errors import LdpError
from ldp.families.unary import UnaryChannel, oue_channel, sue_channel

Fake = Literal["code", "no value", "any value"]
FakeProtocol = Literal["grr", "ouez", "suez", "adp", "ouer", "suer"]
Shares = Literal["equal", "balanced"]

_STEP = Fraction(1, 2**30)
_WORKING_DIGITS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class FakedChannel:
    """Report of one indicator, which is an answer or a fake: a pure channel for `pure_frequencies`.

    Parameters
    ----------
    answer : GrrChannel or UnaryChannel
    fake : "code": a code, each equally likely (GRR); "no value": what unary encoding makes of no value (-z);
        "any value": what it makes of a value, each equally likely (-r; not recommended, see
        `FakeDataChannel`)
    share : Fraction; probability that the report is the answer, in (0, 1]

    Raises
    ------
    LdpError : fake does not suit the answer, or share is out of range

    Notes
    -----
    Everybody sends a report: n_reports is n_population. Source: Arcolezi et al., CIKM 2021 (RS+FD).
    """

    answer: GrrChannel | UnaryChannel
    fake: Fake
    share: Fraction

    def __post_init__(self) -> None:
        suited = ("code",) if isinstance(self.answer, GrrChannel) else ("no value", "any value")
        if self.fake not in suited:
            raise LdpError(f"fake must be one of {suited} for {self.answer}, got {self.fake!r}")
        if not 0 < self.share <= 1:
            raise LdpError(f"share must be in (0, 1], got {self.share}")

    @property
    def domain_size(self) -> int:
        """Number of values."""
        return self.answer.domain_size

    @property
    def fake_support(self) -> Fraction:
        """Probability that a fake report supports one given value, exact."""
        k, p, q = self.domain_size, self.answer.p, self.answer.q
        return q if self.fake == "no value" else (p + (k - 1) * q) / k

    @property
    def p(self) -> Fraction:
        """Probability that the report supports the true value, exact."""
        return self.share * self.answer.p + (1 - self.share) * self.fake_support

    @property
    def q(self) -> Fraction:
        """Probability that the report supports one given other value, exact."""
        return self.share * self.answer.q + (1 - self.share) * self.fake_support

    @property
    def ratio(self) -> Fraction:
        """Largest probability ratio of this report on its own, exact.

        No promise: with the reports on other indicators beside it, more is revealed (`FakeDataChannel`).
        """
        hit, miss = self.hits[0]
        faked = 1 - self.share
        return (self.share * hit + faked) / (self.share * miss + faked)

    @property
    def epsilon(self) -> Decimal:
        """Logarithm of `ratio`, rounded up to 30 digits; no promise either."""
        return epsilon_of(self.ratio)

    @property
    def hits(self) -> tuple[tuple[Fraction, Fraction], ...]:
        """How much likelier than a fake an answer is for a value that it supports, and for another value.

        A pair is about one report; the first has the largest numbers, and all others lie between.
        """
        hit, miss = self._hit_and_miss
        if self.fake != "any value":
            return ((hit, miss),)
        return tuple(
            (hit / scale, miss / scale) for scale in (self._fakes(1), self._fakes(self.domain_size - 1))
        )

    @property
    def least(self) -> Fraction:
        """How much likelier than a fake an answer is at least: it supports all values but the true one."""
        miss = self._hit_and_miss[1]
        return miss / self._fakes(self.domain_size - 1) if self.fake == "any value" else miss

    @property
    def _hit_and_miss(self) -> tuple[Fraction, Fraction]:
        """Against a code, or against unary encoding of no value."""
        p, q = self.answer.p, self.answer.q
        if self.fake == "code":
            return p * self.domain_size, q * self.domain_size
        return p / q, (1 - p) / (1 - q)

    def _fakes(self, ones: int) -> Fraction:
        """How much likelier a report with so many ones is if any value is encoded rather than none."""
        hit, miss = self._hit_and_miss
        return (ones * hit + (self.domain_size - ones) * miss) / self.domain_size


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeDataChannel:
    """All reports of a subscriber, and what they reveal together.

    Parameters
    ----------
    reports : tuple of FakedChannel, shape (d,); their shares add up to 1

    Raises
    ------
    LdpError : the shares do not add up to 1

    Notes
    -----
    P(reports | profile) is the probability of fakes only, times the sum over the indicators of share times
    "how much likelier than a fake". The worst reports fit all values that differ and no other. Then, with b
    the likelihood of an answer that does not fit over that of a fake, and e' the ratio of one answer: ratio
    1 + (e' - 1) (sum over those that differ of share b) / (sum over all of share b) for GRR, -z and ADP.
    With fakes of any value (-r) the other reports can be even less likely answers: one value always loses
    more than epsilon if there are more than two, even if all domains are equal.
    """

    reports: tuple[FakedChannel, ...]

    def __post_init__(self) -> None:
        total = sum(report.share for report in self.reports)
        if total != 1:
            raise LdpError(f"shares must add up to 1, got {total}")

    def ratio_of(self, differing: Collection[int]) -> Fraction:
        """Largest probability ratio under two profiles that differ in just these indicators, exact.

        Parameters
        ----------
        differing : collection of int; positions, at least one

        Raises
        ------
        LdpError : none, or a position is out of range
        """
        d, different = len(self.reports), set(differing)
        if not different or not different <= set(range(d)):
            raise LdpError(f"differing must hold positions in [0, {d}), got {sorted(different)}")
        fixed = sum(self.reports[i].share * self.reports[i].least for i in range(d) if i not in different)
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
            found.append((report.share * hit + fixed) / (report.share * miss + fixed))
        return tuple(found)

    @property
    def epsilon_profile(self) -> Decimal:
        """Realised epsilon of a profile, rounded up to 30 digits."""
        return epsilon_of(self.ratio_profile)

    @property
    def epsilon_attribute(self) -> Decimal:
        """Realised epsilon of the value that loses most, rounded up to 30 digits."""
        return epsilon_of(max(self.ratios_attribute))


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

    Raises
    ------
    LdpError : a rule is broken

    Notes
    -----
    `hidden_epsilon` is the epsilon of the answers. Balanced shares are proportional to 1 / b_j (GRR:
    (e' + k - 1) / k), rounded to integers out of 2**64.
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
    SUE-z; else the largest, to 2**-30, for which the realised channel loses no more than epsilon.
    """
    _check(protocol, unit=unit, domain_sizes=domain_sizes, shares=shares)
    check_epsilon(epsilon)
    if unit == "profile":
        return epsilon
    allowed = exp_down(epsilon)
    if protocol in ("ouez", "suez") and shares == "equal":
        return min(max(epsilon, _log_down(len(domain_sizes) * (allowed - 1) + 1)), MAX_EPSILON)

    def keeps(steps: int) -> bool:
        found = _channel(protocol, answers=epsilon + steps * _STEP, domain_sizes=domain_sizes, shares=shares)
        return max(found.ratios_attribute) <= allowed

    kept, broken = 0, int((MAX_EPSILON - epsilon) / _STEP) + 1
    while broken - kept > 1:
        middle = (kept + broken) // 2
        kept, broken = (middle, broken) if keeps(middle) else (kept, middle)
    return epsilon + kept * _STEP


def _channel(
    protocol: FakeProtocol, *, answers: Fraction, domain_sizes: Sequence[int], shares: Shares
) -> FakeDataChannel:
    equal = Fraction(1, len(domain_sizes))
    reports = [_report(protocol, answers=answers, domain_size=k, share=equal) for k in domain_sizes]
    if shares == "balanced":
        weights = [1 / report.hits[0][1] for report in reports]
        rounded = [Fraction(round(WORD * weight / sum(weights)), WORD) for weight in weights[1:]]
        reports = [
            FakedChannel(answer=report.answer, fake=report.fake, share=share)
            for report, share in zip(reports, [1 - sum(rounded, Fraction(0)), *rounded], strict=True)
        ]
    return FakeDataChannel(reports=tuple(reports))


def _report(protocol: FakeProtocol, *, answers: Fraction, domain_size: int, share: Fraction) -> FakedChannel:
    if protocol == "adp":
        both = [
            _report(each, answers=answers, domain_size=domain_size, share=share) for each in ("grr", "ouez")
        ]
        return min(both, key=noise_at_zero)
    if protocol == "grr":
        grr = grr_channel(epsilon=answers, domain_size=domain_size)
        return FakedChannel(answer=grr, fake="code", share=share)
    make = oue_channel if protocol.startswith("oue") else sue_channel
    fake: Fake = "no value" if protocol.endswith("z") else "any value"
    return FakedChannel(answer=make(epsilon=answers, domain_size=domain_size), fake=fake, share=share)


def _log_down(ratio: Fraction) -> Fraction:
    """Natural logarithm, rounded down."""
    down = Context(prec=_WORKING_DIGITS, rounding=ROUND_FLOOR)
    # Decimal.ln rounds to nearest whatever the context says, hence the step down.
    log = down.ln(down.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)))
    return Fraction(log.next_minus(context=down))


def _check(protocol: FakeProtocol, *, unit: Unit, domain_sizes: Sequence[int], shares: Shares) -> None:
    if protocol not in get_args(FakeProtocol):
        raise LdpError(f"protocol must be one of {get_args(FakeProtocol)}, got {protocol!r}")
    if unit not in get_args(Unit):
        raise LdpError(f"unit must be one of {get_args(Unit)}, got {unit!r}")
    if shares not in get_args(Shares):
        raise LdpError(f"shares must be one of {get_args(Shares)}, got {shares!r}")
    if not domain_sizes:
        raise LdpError("domain_sizes must hold an indicator, got none")
