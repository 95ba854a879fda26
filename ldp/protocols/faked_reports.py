"""Report of one indicator that is an answer or a fake (RS+FD, RS+RFD), and how well fakes hide the answer."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Literal, TypeVar

from ldp.errors import LdpError
from ldp.protocols.channels import WORD, GrrChannel, epsilon_of
from ldp.protocols.unary import UnaryChannel

Fake = Literal["code", "no value", "any value"]

_WORKING_DIGITS = 60
_HALVINGS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class FakedReport(ABC):
    """Common parts of both kinds of fakes: likelihoods of an answer against those of a fake.

    Parameters
    ----------
    answer : GrrChannel or UnaryChannel
    share : Fraction; probability that the report is the answer, in (0, 1]
    """

    answer: GrrChannel | UnaryChannel
    share: Fraction

    @property
    def domain_size(self) -> int:
        """Number of values."""
        return self.answer.domain_size

    @property
    @abstractmethod
    def _kind(self) -> Fake:
        """Distribution of a fake."""

    @property
    @abstractmethod
    def fake_range(self) -> tuple[Fraction, Fraction]:
        """Smallest and largest probability that a fake stands for a value that the report supports.

        Of a code: the probability of that code. Of unary encoding: that the encoded value is among the ones
        of the report, of which at least one value has a one and one has none.
        """

    @property
    def is_telling(self) -> bool:
        """Return whether some code is never a fake: anyone who reports it has answered."""
        return self._kind == "code" and self.fake_range[0] == 0

    @property
    def ratio(self) -> Fraction:
        """Largest probability ratio of this report on its own, exact.

        No promise: together with the reports on other indicators, more is revealed (`FakeDataChannel`).
        """
        hit, miss = self._hit_and_miss
        faked = (1 - self.share) * self._fakes(self.fake_range[0])
        return (self.share * hit + faked) / (self.share * miss + faked)

    @property
    def epsilon(self) -> Decimal:
        """Logarithm of `ratio`, rounded up to 30 digits; no promise either."""
        return epsilon_of(self.ratio)

    @property
    def hits(self) -> tuple[tuple[Fraction, Fraction], ...]:
        """Likelihood ratios of an answer and a fake, for a value that it supports and for another value.

        A pair is about one report that may be a fake; the first has the largest numbers, the last the
        smallest, and all others lie on a line between them.
        """
        hit, miss = self._hit_and_miss
        scales = dict.fromkeys(self._fakes(stands) for stands in self._possible)
        return tuple((hit / scale, miss / scale) for scale in scales)

    @property
    def least(self) -> Fraction:
        """Return the minimum likelihood ratio of an answer and a fake; it does not support the true value."""
        return self.hits[-1][1]

    @property
    def _hit_and_miss(self) -> tuple[Fraction, Fraction]:
        """Probabilities of a code, or likelihoods against unary encoding of no value."""
        p, q = self.answer.p, self.answer.q
        return (p, q) if self._kind == "code" else (p / q, (1 - p) / (1 - q))

    @property
    def _possible(self) -> tuple[Fraction, Fraction]:
        """The range without codes that are never fakes."""
        return self.fake_range

    def _fakes(self, stands: Fraction) -> Fraction:
        """Return the likelihood of a fake, on the scale of `_hit_and_miss`."""
        if self._kind == "code":
            return stands
        if self._kind == "no value":
            return Fraction(1)
        hit, miss = self._hit_and_miss
        return miss + stands * (hit - miss)

    def _mixed(self, answer: Fraction, fake_support: Fraction) -> Fraction:
        """Probability of support by the report, from those of an answer and of a fake."""
        return self.share * answer + (1 - self.share) * fake_support


_Report = TypeVar("_Report", bound=FakedReport)


@dataclass(frozen=True, slots=True, kw_only=True)
class FakedChannel(FakedReport):
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
    Everyone sends a report: n_reports is n_population. Source: Arcolezi et al., CIKM 2021 (RS+FD).
    """

    fake: Fake

    def __post_init__(self) -> None:
        suited = ("code",) if isinstance(self.answer, GrrChannel) else ("no value", "any value")
        if self.fake not in suited:
            raise LdpError(f"fake must be one of {suited} for {self.answer}, got {self.fake!r}")
        _check_share(self.share)

    @property
    def _kind(self) -> Fake:
        return self.fake

    @property
    def fake_range(self) -> tuple[Fraction, Fraction]:
        """Return the range like `FakedReport`."""
        one = Fraction(1, self.domain_size)
        return (one, one) if self.fake == "code" else (one, 1 - one)

    @property
    def fake_support(self) -> Fraction:
        """Probability that a fake report supports one given value, exact."""
        k, p, q = self.domain_size, self.answer.p, self.answer.q
        return q if self.fake == "no value" else (p + (k - 1) * q) / k

    @property
    def p(self) -> Fraction:
        """Probability that the report supports the true value, exact."""
        return self._mixed(self.answer.p, self.fake_support)

    @property
    def q(self) -> Fraction:
        """Probability that the report supports one given other value, exact."""
        return self._mixed(self.answer.q, self.fake_support)


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueSupport:
    """Support of one value by a report whose fakes favour some values.

    It supports this value with probability p if it is the true one, and q if it is not.
    """

    p: Fraction
    q: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorFakedChannel(FakedReport):
    """Report of one indicator, which is an answer or a fake with a prior: for `pure_frequencies`.

    Parameters
    ----------
    answer : GrrChannel (a fake is a code) or UnaryChannel (a fake is the encoding of a value, -r)
    share : Fraction; probability that the report is the answer, in (0, 1]
    prior : tuple of int, shape (domain_size,); probability out of 2**64 of each value of a fake, sum 2**64.
        Public, and independent of the data: a prior that was computed from the same people costs an epsilon
        separately

    Raises
    ------
    LdpError : the prior has another shape or sum or a negative entry, or share is out of range

    Notes
    -----
    A code of prior 0 is never a fake: it reveals that the report is the answer, which then loses its whole
    epsilon. Everyone sends a report: n_reports is n_population. Source: Arcolezi et al., PVLDB 16(5), 2023
    (RS+RFD).
    """

    prior: tuple[int, ...]

    def __post_init__(self) -> None:
        _check_share(self.share)
        if len(self.prior) != self.domain_size:
            raise LdpError(f"prior must have {self.domain_size} entries, got {len(self.prior)}")
        if min(self.prior) < 0 or sum(self.prior) != WORD:
            raise LdpError(f"prior must be >= 0 with sum {WORD}, got {min(self.prior)} and {sum(self.prior)}")

    @property
    def fake(self) -> Fake:
        """Code of GRR, or encoding of any value (-r)."""
        return "code" if isinstance(self.answer, GrrChannel) else "any value"

    @property
    def _kind(self) -> Fake:
        return self.fake

    @property
    def fake_range(self) -> tuple[Fraction, Fraction]:
        """Return the range like `FakedReport`."""
        rarest = min(self.prior)
        return Fraction(rarest, WORD), Fraction(
            max(self.prior) if self.fake == "code" else WORD - rarest, WORD
        )

    @property
    def of_values(self) -> tuple[ValueSupport, ...]:
        """Support of each value, exact; p - q is the same for all."""
        p, q = self.answer.p, self.answer.q
        supports = [
            Fraction(weight, WORD) if self.fake == "code" else q + Fraction(weight, WORD) * (p - q)
            for weight in self.prior
        ]
        return tuple(ValueSupport(p=self._mixed(p, fake), q=self._mixed(q, fake)) for fake in supports)

    @property
    def _possible(self) -> tuple[Fraction, Fraction]:
        rarest, other = self.fake_range
        if self.is_telling:
            rarest = Fraction(min(weight for weight in self.prior if weight), WORD)
        return rarest, other


def balanced(reports: Sequence[_Report]) -> list[_Report]:
    """Return the reports with the shares under which all values lose the same, but for rounding.

    With hit, miss and least of a report, ratio R of its value means
    share (hit - R miss + (R - 1) least) = (R - 1) sum(share least). Shares are integers out of 2**64; those
    given do not matter. LdpError if a code has prior 0, so that its answer cannot be hidden.
    """
    if any(report.is_telling for report in reports):
        raise LdpError("shares must be equal if a code has prior 0, got balanced")
    with localcontext(Context(prec=_WORKING_DIGITS)):
        terms = [_balance_terms(report) for report in reports]
        inverse = _inverse_excess(terms)
        weights = [1 / (gap * inverse - slack) for gap, slack, _ in terms]
        rest = [Fraction(round(WORD * weight / sum(weights)), WORD) for weight in weights[1:]]
    shares = [1 - sum(rest, Fraction(0)), *rest]
    return [replace(report, share=share) for report, share in zip(reports, shares, strict=True)]


def _balance_terms(report: FakedReport) -> tuple[Decimal, Decimal, Decimal]:
    """hit - miss, miss - least and least, in the decimals of the context."""
    (hit, miss), least = report.hits[0], report.least
    gap, slack, floor = (
        Decimal(term.numerator) / Decimal(term.denominator) for term in (hit - miss, miss - least, least)
    )
    return gap, slack, floor


def _inverse_excess(terms: Sequence[tuple[Decimal, Decimal, Decimal]]) -> Decimal:
    """1 / (R - 1) of the common ratio R: where the sum of least / (gap x - slack) falls to 1.

    In decimals: every machine finds the same shares.
    """
    low = max(slack / gap for gap, slack, _ in terms)
    high = max((len(terms) * least + slack) / gap for gap, slack, least in terms)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        total = sum(least / (gap * middle - slack) for gap, slack, least in terms)
        low, high = (middle, high) if total > 1 else (low, middle)
    return high


def _check_share(share: Fraction) -> None:
    if not 0 < share <= 1:
        raise LdpError(f"share must be in (0, 1], got {share}")
