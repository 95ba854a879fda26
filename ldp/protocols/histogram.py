"""Summation with histogram encoding (SHE): one noisy count per value; the noise is discrete and clamped."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from ldp.errors import InvalidBudgetError
from ldp.protocols.channels import (
    MAX_EPSILON,
    WORD,
    Channel,
    check_domain_size,
    check_epsilon,
    exp_down,
)

MIN_HISTOGRAM_EPSILON = Fraction(1, 100)  # below it the table of outputs has more than ten thousand entries

_POWER_BITS = 128
_TAIL_BITS = 40  # the clamp takes what lies beyond a probability of 2**-40


@dataclass(frozen=True, slots=True, kw_only=True)
class HistogramChannel(Channel):
    """One noisy count per value, with an integer table.

    Parameters
    ----------
    domain_size : int; number of values, in [2, 65534]
    weights : tuple of int, shape (2 b + 2,); of the counts -b to b + 1 for a value that is absent:
        probabilities times 2**64, each at least 1. For one that is present the table is mirrored (1 - y)

    Raises
    ------
    InvalidDomainError : domain_size is out of range
    InvalidBudgetError : weights do not add up to 2**64, are not positive, or do not favour the truth

    Notes
    -----
    Source: Dwork et al., TCC 2006 (noisy histogram) and Wang et al., USENIX Security 2017 (SHE), with
    the clamped geometric noise of Ghosh et al., STOC 2009, in the place of Laplace noise: in floating point
    that keeps no promise.
    """

    domain_size: int
    weights: tuple[int, ...]

    def __post_init__(self) -> None:
        check_domain_size(self.domain_size)
        if sum(self.weights) != WORD or len(self.weights) % 2 or min(self.weights) < 1:
            raise InvalidBudgetError(
                f"weights must be an even number of positive integers with sum {WORD}, "
                f"got {len(self.weights)} with sum {sum(self.weights)}"
            )
        if self.slope <= 0:
            raise InvalidBudgetError(f"mean of an absent value must be < 1/2, got {float(self.offset):.6g}")

    @property
    def lowest(self) -> int:
        """Smallest noisy count, -b; the largest is 1 - lowest."""
        return 1 - len(self.weights) // 2

    @property
    def offset(self) -> Fraction:
        """Mean noisy count of a value that is absent, exact; nearly 0."""
        return Fraction(sum(y * weight for y, weight in enumerate(self.weights, self.lowest)), WORD)

    @property
    def slope(self) -> Fraction:
        """Mean of a value that is present less that of an absent one, exact; nearly 1."""
        return 1 - 2 * self.offset

    @property
    def noise(self) -> Fraction:
        """Variance of a noisy count, exact; nearly 2a / (1 - a)^2 with a = exp(-epsilon / 2)."""
        square = Fraction(sum(y * y * weight for y, weight in enumerate(self.weights, self.lowest)), WORD)
        return square - self.offset**2

    @property
    def ratio(self) -> Fraction:
        """Largest probability ratio of a report under two values, exact; squared, as two counts differ."""
        pairs = zip(self.weights, reversed(self.weights), strict=True)
        return max(Fraction(absent, present) for absent, present in pairs) ** 2


def histogram_channel(*, epsilon: Fraction, domain_size: int) -> HistogramChannel:
    """Summation with histogram encoding of a nominal epsilon; the realised one is never larger.

    Parameters, Raises : as of `grr_channel`, but epsilon in [0.01, 64]

    P(count = y) is proportional to a^|y - x|, a = exp(-epsilon / 2), x = 0 or 1. The counts -j and j + 1
    together have probability (1 - a) a^j for any x; x only says how they share it, 1 to a or a to 1. So
    the shares are rounded to the private side, and the rest never needs to be exact.
    """
    check_epsilon(epsilon)
    if epsilon < MIN_HISTOGRAM_EPSILON:
        rule = f"[{float(MIN_HISTOGRAM_EPSILON)}, {MAX_EPSILON}]"
        raise InvalidBudgetError(f"epsilon of a noisy histogram must be in {rule}, got {float(epsilon):.6g}")
    s = exp_down(epsilon / 2)
    near = [mass * s.numerator // (s.numerator + s.denominator) for mass in _pair_masses(s)]
    far = [mass - share for mass, share in zip(_pair_masses(s), near, strict=True)]
    return HistogramChannel(domain_size=domain_size, weights=(*reversed(near), *far))


def _pair_masses(s: Fraction) -> list[int]:
    """Probabilities, times 2**64, of the pairs of counts (-j, j + 1); the last one takes the whole tail."""
    a = (s.denominator << _POWER_BITS) // s.numerator
    powers = [1 << _POWER_BITS]
    while (power := powers[-1] * a >> _POWER_BITS) >> (_POWER_BITS - _TAIL_BITS):
        powers.append(power)
    masses = [power - following >> _POWER_BITS - 64 for power, following in pairwise(powers)]
    masses.append(powers[-1] >> _POWER_BITS - 64)
    masses[0] += WORD - sum(masses)
    return masses
