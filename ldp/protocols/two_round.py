"""Two rounds over k values: a lasting first answer, and on top of it a fresh second one for each report.

L-GRR, and LOLOHA, which is L-GRR on hashed values. The first round bounds what any number of reports reveals
(epsilon_inf), both rounds together what few of them do (epsilon_1).
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from math import isqrt
from typing import Generic, Literal, Protocol, TypeVar, get_args

from ldp.errors import InvalidBudgetError, InvalidDomainError, LdpError
from ldp.protocols.channels import (
    MAX_DOMAIN_SIZE,
    MIN_EPSILON,
    WORD,
    GrrChannel,
    SupportChannel,
    check_domain_size,
    check_epsilon,
    epsilon_of,
    exp_down,
    grr_channel,
)
from ldp.protocols.unary import UnaryChannel

Round = TypeVar("Round", bound=GrrChannel | UnaryChannel)
Tuning = Literal["exact", "paper"]


class LongitudinalChannel(Protocol):
    """Channel of repeated reports; the first round's answer to a value is kept."""

    __slots__ = ()

    @property
    def kept_answers(self) -> int:
        """Most answers of the first round that are kept of one person."""

    @property
    def limit_ratio(self) -> Fraction:
        """Return the limit of `ratio_of` for any number of reports of one value."""

    @property
    def second_ratio(self) -> Fraction | None:
        """Largest ratio of one report under two kept answers, exact; None without a second round."""

    def ratio_of(self, *, reports: int) -> Fraction:
        """Return the largest probability ratio of n reports of one value, exact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoRounds(SupportChannel, LongitudinalChannel, Generic[Round]):
    """A lasting answer, and on top of it a fresh one for each report, over the same values.

    InvalidDomainError if the rounds have domains of different sizes.

    Parameters
    ----------
    first : GrrChannel or UnaryChannel; drawn once per value and kept
    second : the same kind; drawn again for each report, on the answer of the first
    """

    first: Round
    second: Round

    def __post_init__(self) -> None:
        sizes = self.first.domain_size, self.second.domain_size
        if sizes[0] != sizes[1]:
            raise InvalidDomainError(
                f"domain_size of both rounds must be equal, got {sizes[0]} and {sizes[1]}"
            )

    @property
    def domain_size(self) -> int:
        """Number of values."""
        return self.first.domain_size

    @property
    def ratio(self) -> Fraction:
        return self.ratio_of(reports=1)

    @property
    def kept_answers(self) -> int:
        return self.domain_size

    @property
    def limit_ratio(self) -> Fraction:
        return self.first.ratio

    @property
    def second_ratio(self) -> Fraction:
        return self.second.ratio

    def ratio_of(self, *, reports: int) -> Fraction:
        check_reports(reports)
        return Fraction(*self.weights(reports=reports))

    @abstractmethod
    def weights(self, *, reports: int) -> tuple[int, int]:
        """Probabilities of the t reports that tell most, under their value and another; in the same unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoRoundGrr(TwoRounds[GrrChannel]):
    """L-GRR: generalised randomised response twice.

    One report is a pure channel with p = p1 p2 + (k-1) q1 q2 and q = p1 q2 + q1 p2 + (k-2) q1 q2. The ratio
    of t reports is (E r**t + k - 1) / (E + r**t + k - 2), with E and r those of the rounds: all agree.
    Source: Arcolezi et al., Digital Communications and Networks 2022 (L-GRR).
    """

    @property
    def p(self) -> Fraction:
        return Fraction(self.weights(reports=1)[0], (WORD * (self.domain_size - 1)) ** 2)

    @property
    def q(self) -> Fraction:
        return (1 - self.p) / (self.domain_size - 1)

    def weights(self, *, reports: int) -> tuple[int, int]:
        """Probabilities of t reports of one same value, true or not, in units of (2**64 (k-1))**-(t+1)."""
        others = self.domain_size - 1
        keep, other = self.first.threshold * others, WORD - self.first.threshold
        all_kept = (self.second.threshold * others) ** reports
        all_moved = (WORD - self.second.threshold) ** reports
        hit = keep * all_kept + others * other * all_moved
        miss = keep * all_moved + other * all_kept + (others - 1) * other * all_moved
        return hit, miss


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoRoundHash(SupportChannel, LongitudinalChannel):
    """LOLOHA: a public hash of the value to few buckets, then L-GRR on the bucket.

    Parameters
    ----------
    domain_size : int; number of values, in [2, 65534]
    rounds : TwoRoundGrr; on the buckets

    Notes
    -----
    A report supports all values of its bucket: p = that of `rounds`, q = 1 / buckets on average over the
    hashes. Source: Arcolezi et al., EDBT 2023 (LOLOHA).
    """

    domain_size: int
    rounds: TwoRoundGrr

    def __post_init__(self) -> None:
        check_domain_size(self.domain_size)

    @property
    def buckets(self) -> int:
        """Number of hashed values, g."""
        return self.rounds.domain_size

    @property
    def p(self) -> Fraction:
        return self.rounds.p

    @property
    def q(self) -> Fraction:
        """Probability that a report supports one given other value, over all hashes, exact."""
        return Fraction(1, self.buckets)

    @property
    def ratio(self) -> Fraction:
        """Largest probability ratio of one report under two values, the hash being known; exact."""
        return self.rounds.ratio

    @property
    def kept_answers(self) -> int:
        return self.buckets

    @property
    def limit_ratio(self) -> Fraction:
        return self.rounds.limit_ratio

    @property
    def second_ratio(self) -> Fraction:
        return self.rounds.second_ratio

    def ratio_of(self, *, reports: int) -> Fraction:
        return self.rounds.ratio_of(reports=reports)


def lgrr_channel(
    *,
    epsilon_inf: Fraction,
    epsilon_1: Fraction,
    domain_size: int,
    tuning: Tuning = "exact",
    horizon: int = 1,
) -> TwoRoundGrr:
    """L-GRR of nominal epsilons; the realised ones are never larger.

    Parameters
    ----------
    epsilon_inf : Fraction; of any number of reports of one value, in [0.000001, 64]
    epsilon_1 : Fraction; of the first `horizon` reports together, at least 0.000001 and below epsilon_inf
    domain_size : int; in [2, 65534]
    tuning : "exact": the most useful second round that keeps epsilon_1; one report is then GRR(epsilon_1).
        "paper": as published, which loses less than epsilon_1 for more than two values
    horizon : int; at least 1; must be 1 for "paper"

    Raises
    ------
    InvalidBudgetError : an epsilon is out of range; the message names the range that can be reached
    InvalidDomainError, LdpError

    Notes
    -----
    Exact: r**T = (F (E+k-2) - (k-1)) / (E - F) with E, F = exp(epsilon_inf), exp(epsilon_1) and T = horizon.
    Paper: r = (E F - 1) / (E - F). Several reports of one value can lose more than their number times
    epsilon_1 (k > 2): only the horizon's loss, and epsilon_inf, are promised.
    """
    check_budgets(epsilon_inf=epsilon_inf, epsilon_1=epsilon_1)
    check_tuning(tuning, horizon=horizon)
    first = grr_channel(epsilon=epsilon_inf, domain_size=domain_size)
    f = exp_down(epsilon_1)

    def channel(threshold: int) -> TwoRoundGrr:
        return TwoRoundGrr(first=first, second=GrrChannel(domain_size=domain_size, threshold=threshold))

    def keeps(threshold: int) -> bool:
        hit, miss = channel(threshold).weights(reports=horizon)
        return hit * f.denominator <= f.numerator * miss

    strongest = WORD - 1
    if keeps(strongest):
        limit = epsilon_of(channel(strongest).ratio_of(reports=horizon))
        raise unreachable(epsilon_1, epsilon_inf=epsilon_inf, limit=limit)
    if tuning == "exact":
        return channel(nearest_that_keeps(WORD // domain_size + 1, strongest, keeps))
    e = first.ratio
    rho = (e * f - 1) / (e - f)
    return channel(int(WORD * rho / (rho + domain_size - 1)))


def loloha_channel(
    *,
    epsilon_inf: Fraction,
    epsilon_1: Fraction,
    domain_size: int,
    buckets: int | None = None,
    tuning: Tuning = "exact",
    horizon: int = 1,
) -> TwoRoundHash:
    """LOLOHA of nominal epsilons: BiLOLOHA with two buckets, OLOLOHA with the best number of them.

    Parameters
    ----------
    buckets : int or None; None takes `best_buckets`
    epsilon_inf, epsilon_1, domain_size, tuning, horizon, Raises : as in `lgrr_channel`

    Notes
    -----
    Exact tuning: one report has the variance of OLH(epsilon_1) with as many buckets.
    """
    check_budgets(epsilon_inf=epsilon_inf, epsilon_1=epsilon_1)
    if buckets is None:
        buckets = best_buckets(epsilon_inf=epsilon_inf, epsilon_1=epsilon_1, tuning=tuning)
    rounds = lgrr_channel(
        epsilon_inf=epsilon_inf, epsilon_1=epsilon_1, domain_size=buckets, tuning=tuning, horizon=horizon
    )
    return TwoRoundHash(domain_size=domain_size, rounds=rounds)


def best_buckets(*, epsilon_inf: Fraction, epsilon_1: Fraction, tuning: Tuning = "exact") -> int:
    """Number of buckets with the least variance of one report of a rare value, in [2, 65534].

    Exact: the better of the integers around exp(epsilon_1) + 1, of (F+g-1)**2 / (g-1).
    Paper: equation (6) of LOLOHA, rounded to the nearest integer, at least 2.
    """
    check_budgets(epsilon_inf=epsilon_inf, epsilon_1=epsilon_1)
    f = exp_down(epsilon_1)
    if tuning == "exact":
        low = int(f) + 1
        best = min(low, low + 1, key=lambda g: (f + g - 1) ** 2 / (g - 1))
    else:
        e = exp_down(epsilon_inf)
        square = e**4 - 14 * e**2 + 12 * e * f * (1 - e * f) + 12 * e**3 * f + 1
        best = 1 + max(1, round((1 - e**2 + _sqrt(square)) / (6 * (e - f))))
    return min(best, MAX_DOMAIN_SIZE)


def nearest_that_keeps(weak: int, strong: int, keeps: Callable[[int], bool]) -> int:
    """Threshold nearest to `strong` that keeps the promise; `weak` keeps it, `strong` does not."""
    while abs(strong - weak) > 1:
        middle = (weak + strong) // 2
        if keeps(middle):
            weak = middle
        else:
            strong = middle
    return weak


def check_reports(reports: int) -> None:
    """Raise LdpError unless there is a report."""
    if reports < 1:
        raise LdpError(f"reports must be >= 1, got {reports}")


def check_tuning(tuning: Tuning, *, horizon: int) -> None:
    """Raise LdpError unless the tuning exists, for this horizon."""
    if tuning not in get_args(Tuning):
        raise LdpError(f"tuning must be one of {get_args(Tuning)}, got {tuning!r}")
    if horizon < 1:
        raise LdpError(f"horizon must be >= 1, got {horizon}")
    if tuning == "paper" and horizon > 1:
        raise LdpError(f"horizon must be 1 in paper tuning, got {horizon}")


def check_budgets(*, epsilon_inf: Fraction, epsilon_1: Fraction) -> None:
    """Raise InvalidBudgetError unless both are epsilons and the second is the smaller one."""
    check_epsilon(epsilon_inf)
    check_epsilon(epsilon_1)
    if epsilon_1 >= epsilon_inf:
        raise unreachable(epsilon_1, epsilon_inf=epsilon_inf, limit=Decimal(float(epsilon_inf)))


def unreachable(epsilon_1: Fraction, *, epsilon_inf: Fraction, limit: Decimal) -> InvalidBudgetError:
    """Error that names the range of epsilon_1 that a second round can reach."""
    high = Context(prec=12, rounding=ROUND_FLOOR).plus(limit).normalize()
    rule = f"[{float(MIN_EPSILON):f}, {high:f}) for epsilon_inf = {float(epsilon_inf):.6g}"
    return InvalidBudgetError(f"epsilon_1 must be in {rule}, got {float(epsilon_1):.12g}")


def _sqrt(square: Fraction) -> Fraction:
    """Square root, to 128 bits below the point."""
    return Fraction(isqrt((square.numerator << 256) // square.denominator), 1 << 128)
