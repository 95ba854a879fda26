"""From epsilon to probabilities: the only place that does it, and exactly.

Probabilities are integers out of 2**64. Rounding always goes to the side that loses less privacy, so the
realised epsilon never exceeds the nominal one.
"""

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from math import prod
from typing import Literal, Protocol

from ldp.errors import InvalidBudgetError, InvalidDomainError

Unit = Literal["profile", "attribute"]  # subject of a promise: all values of a person, or one

WORD = 2**64
MAX_DOMAIN_SIZE = 2**16 - 2  # codes are uint16; the two largest mean "drawn again" and "no answer"
MIN_EPSILON = Fraction(1, 10**6)
MAX_EPSILON = Fraction(64)  # beyond it, 64 bits of randomness cannot tell two budgets apart

_EPSILON_DIGITS = 30
_WORKING_DIGITS = 60


class SupportProbabilities(Protocol):
    """Probabilities that a report supports one value."""

    __slots__ = ()

    @property
    def p(self) -> Fraction:
        """Probability that a report supports the true value, exact."""

    @property
    def q(self) -> Fraction:
        """Probability that a report supports one given other value, exact."""


class Channel(Protocol):
    """Common parts of all channels: each defines its ratio, and epsilon follows."""

    __slots__ = ()

    @property
    def ratio(self) -> Fraction:
        """Largest probability ratio of a report under two values, exact: e to the realised epsilon."""

    @property
    def epsilon(self) -> Decimal:
        """Realised epsilon of one report, rounded up to 30 digits."""
        return epsilon_of(self.ratio)


class SupportChannel(SupportProbabilities, Channel, Protocol):
    """A channel whose reports support each value with one of two probabilities.

    Source: Wang et al., USENIX Security 2017 (pure protocols).
    """

    __slots__ = ()


class PureChannel(SupportChannel, Protocol):
    """A channel as estimators take it."""

    __slots__ = ()

    def __hash__(self) -> int:
        """Channels are values: estimators cache what they derive from them."""

    @property
    def domain_size(self) -> int:
        """Number of values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrrChannel(SupportChannel):
    """Generalised randomised response with an integer threshold.

    Parameters
    ----------
    domain_size : int; number of values, in [2, 65534]
    threshold : int; the true value is kept with probability threshold / 2**64

    Raises
    ------
    InvalidDomainError : domain_size is out of range
    InvalidBudgetError : the threshold does not keep the true value more often than any other

    Notes
    -----
    Source: Kairouz et al., ICML 2016 (k-ary randomised response).
    """

    domain_size: int
    threshold: int

    def __post_init__(self) -> None:
        check_domain_size(self.domain_size)
        low = WORD // self.domain_size
        if not low < self.threshold < WORD:
            raise InvalidBudgetError(
                f"threshold must be in ({low}, {WORD}) for {self.domain_size} values, got {self.threshold}"
            )

    @property
    def p(self) -> Fraction:
        return Fraction(self.threshold, WORD)

    @property
    def q(self) -> Fraction:
        return (1 - self.p) / (self.domain_size - 1)

    @property
    def ratio(self) -> Fraction:
        return Fraction(self.threshold * (self.domain_size - 1), WORD - self.threshold)


def grr_channel(*, epsilon: Fraction, domain_size: int) -> GrrChannel:
    """GRR channel of a nominal epsilon; the realised one is never larger.

    The threshold is floor(2**64 e / (e + k - 1)), with e = exp(epsilon) rounded down.

    Parameters
    ----------
    epsilon : Fraction; nominal, in [0.000001, 64]
    domain_size : int; in [2, 65534]

    Raises
    ------
    InvalidBudgetError, InvalidDomainError
    """
    check_epsilon(epsilon)
    check_domain_size(domain_size)
    e = exp_down(epsilon)
    threshold = WORD * e.numerator // (e.numerator + (domain_size - 1) * e.denominator)
    return GrrChannel(domain_size=domain_size, threshold=threshold)


def noise_at_zero(support: SupportProbabilities) -> Fraction:
    """Variance of one report's estimate of a value that no one has, exact: q (1 - q) / (p - q)^2."""
    return support.q * (1 - support.q) / (support.p - support.q) ** 2


def epsilon_of(*ratios: Fraction) -> Decimal:
    """Natural logarithm of a product of probability ratios, rounded up to 30 digits.

    InvalidBudgetError if a ratio is below 1.
    """
    for ratio in ratios:
        if ratio < 1:
            raise InvalidBudgetError(f"ratio must be >= 1, got {ratio}")
    # No Fraction here: reducing a product of hundreds of ratios takes seconds.
    numerator = prod(ratio.numerator for ratio in ratios)
    denominator = prod(ratio.denominator for ratio in ratios)
    if numerator == denominator:
        return Decimal(0)
    # The logarithm of a ratio near 1 has lost as many digits as its two sides have in common.
    alike = max(0, denominator.bit_length() - (numerator - denominator).bit_length())
    # Decimals of all digits of a large number take seconds: later ones only round the ratio up.
    later = max(0, denominator.bit_length() - alike - 4 * _WORKING_DIGITS)
    numerator, denominator = -(-numerator >> later), denominator >> later
    up = Context(prec=_WORKING_DIGITS + alike // 3, rounding=ROUND_CEILING)
    # Decimal.ln always rounds to nearest, hence the step up.
    log = up.ln(up.divide(Decimal(numerator), Decimal(denominator))).next_plus(context=up)
    return Context(prec=_EPSILON_DIGITS, rounding=ROUND_CEILING).plus(log)


def exact_text(value: Fraction) -> str:
    """A fraction as texts keep it, "a/b": of JSON many readers round numbers."""
    return f"{value.numerator}/{value.denominator}"


def check_epsilon(epsilon: Fraction) -> None:
    """Raise InvalidBudgetError unless one answer can have this epsilon."""
    if not MIN_EPSILON <= epsilon <= MAX_EPSILON:
        rule = f"[{float(MIN_EPSILON):f}, {MAX_EPSILON}]"
        raise InvalidBudgetError(f"epsilon of one answer must be in {rule}, got {float(epsilon):.6g}")


def check_domain_size(domain_size: int) -> None:
    """Raise InvalidDomainError unless codes of this many values fit."""
    if domain_size < 2:
        raise InvalidDomainError(f"domain_size must be >= 2, got {domain_size}")
    if domain_size > MAX_DOMAIN_SIZE:
        raise InvalidDomainError(f"domain_size must be <= {MAX_DOMAIN_SIZE}, got {domain_size}")


def exp_down(epsilon: Fraction) -> Fraction:
    """Return e to the epsilon, rounded down: never more than what was asked."""
    down = Context(prec=_WORKING_DIGITS, rounding=ROUND_FLOOR)
    exponent = down.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator))
    # Decimal.exp always rounds to nearest, hence the step down.
    return Fraction(down.exp(exponent).next_minus(context=down))
