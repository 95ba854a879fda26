"""Unary encoding: a report is one bit per value, each flipped on its own (SUE, OUE, THE)."""

from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction

from ldp.errors import InvalidBudgetError
from ldp.protocols.channels import WORD, SupportChannel, check_domain_size, check_epsilon, exp_down

_THETA_STEPS = 2**20
_WORKING_DIGITS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class UnaryChannel(SupportChannel):
    """One bit per value, with integer thresholds.

    Parameters
    ----------
    domain_size : int; number of values, in [2, 65534]
    threshold_p : int; the bit of the true value is 1 with probability threshold_p / 2**64
    threshold_q : int; the bit of any other value is 1 with probability threshold_q / 2**64

    Raises
    ------
    InvalidDomainError : domain_size is out of range
    InvalidBudgetError : not 0 < threshold_q < threshold_p < 2**64

    Notes
    -----
    Source: Wang et al., USENIX Security 2017 (unary encoding).
    """

    domain_size: int
    threshold_p: int
    threshold_q: int

    def __post_init__(self) -> None:
        check_domain_size(self.domain_size)
        if not 0 < self.threshold_q < self.threshold_p < WORD:
            raise InvalidBudgetError(
                f"0 < threshold_q < threshold_p < {WORD} must hold, "
                f"got {self.threshold_q} and {self.threshold_p}"
            )

    @property
    def p(self) -> Fraction:
        """Probability of a 1 for the true value, exact."""
        return Fraction(self.threshold_p, WORD)

    @property
    def q(self) -> Fraction:
        """Probability of a 1 for one given other value, exact."""
        return Fraction(self.threshold_q, WORD)

    @property
    def ratio(self) -> Fraction:
        """Largest probability ratio of a report under two values, exact: p (1 - q) / ((1 - p) q).

        Two values differ in two bits; the worst report has a 1 for the one and a 0 for the other.
        """
        return Fraction(
            self.threshold_p * (WORD - self.threshold_q), (WORD - self.threshold_p) * self.threshold_q
        )


def sue_channel(*, epsilon: Fraction, domain_size: int) -> UnaryChannel:
    """Symmetric unary encoding: p = s / (s + 1), q = 1 - p, s = exp(epsilon / 2).

    Parameters, Raises : as of `grr_channel`

    threshold_p is rounded down and threshold_q = 2**64 - threshold_p. Source: Erlingsson et al., CCS 2014
    (one-time RAPPOR); Wang et al., USENIX Security 2017 (SUE).
    """
    check_epsilon(epsilon)
    s = exp_down(epsilon / 2)
    threshold = WORD * s.numerator // (s.numerator + s.denominator)
    return UnaryChannel(domain_size=domain_size, threshold_p=threshold, threshold_q=WORD - threshold)


def oue_channel(*, epsilon: Fraction, domain_size: int) -> UnaryChannel:
    """Optimised unary encoding: p = 1/2 exactly, q = 1 / (e + 1), e = exp(epsilon).

    Parameters, Raises : as of `grr_channel`

    threshold_q is rounded up. Source: Wang et al., USENIX Security 2017 (OUE).
    """
    check_epsilon(epsilon)
    e = exp_down(epsilon)
    threshold_q = -(-WORD * e.denominator // (e.numerator + e.denominator))
    return UnaryChannel(domain_size=domain_size, threshold_p=WORD // 2, threshold_q=threshold_q)


def the_channel(*, epsilon: Fraction, domain_size: int, theta: Fraction | None = None) -> UnaryChannel:
    """Thresholding with histogram encoding: one bit per value says whether its noisy count exceeds theta.

    Parameters
    ----------
    epsilon : Fraction; nominal, in [0.000001, 64]; the realised one is smaller: bits tell less than counts
    domain_size : int; in [2, 65534]
    theta : Fraction or None; in [1/2, 1]; None takes the one with the smallest variance

    Raises
    ------
    InvalidBudgetError : epsilon or theta is out of range
    InvalidDomainError

    Notes
    -----
    Laplace noise of scale 2 / epsilon on 0 or 1, then the threshold: p = 1 - exp(epsilon (theta - 1) / 2) / 2
    (rounded down) and q = exp(-epsilon theta / 2) / 2 (rounded up). The bits are drawn with these
    probabilities: no Laplace noise is ever drawn. Source: Wang et al., USENIX Security 2017 (THE).
    """
    check_epsilon(epsilon)
    theta = best_theta(epsilon) if theta is None else theta
    if not Fraction(1, 2) <= theta <= 1:
        raise InvalidBudgetError(f"theta must be in [1/2, 1], got {float(theta):.6g}")
    miss = 1 / (2 * exp_down(epsilon * (1 - theta) / 2))
    q = 1 / (2 * exp_down(epsilon * theta / 2))
    return UnaryChannel(
        domain_size=domain_size,
        threshold_p=WORD * (miss.denominator - miss.numerator) // miss.denominator,
        threshold_q=-(-WORD * q.numerator // q.denominator),
    )


def best_theta(epsilon: Fraction) -> Fraction:
    """Threshold of THE with the smallest variance at frequency 0, to 20 binary digits.

    q(1 - q) / (p - q)^2 has one minimum in [1/2, 1]. In decimals: every machine finds the same threshold.
    """
    low, high = _THETA_STEPS // 2, _THETA_STEPS
    while low < high:
        middle = (low + high) // 2
        if _the_variance(epsilon, middle) <= _the_variance(epsilon, middle + 1):
            high = middle
        else:
            low = middle + 1
    return Fraction(low, _THETA_STEPS)


def _the_variance(epsilon: Fraction, step: int) -> Decimal:
    with localcontext(Context(prec=_WORKING_DIGITS)):
        half = Decimal(epsilon.numerator) / Decimal(2 * epsilon.denominator)
        theta = Decimal(step) / Decimal(_THETA_STEPS)
        miss = (half * (theta - 1)).exp() / 2
        q = (-half * theta).exp() / 2
        return q * (1 - q) / (1 - miss - q) ** 2
