"""Projective response: a report is a point of a projective space, likely one orthogonal to the value's point.

As exact as the best oracle, in one code of 16 bits. Source: Feldman, Nelson, Nguyen, Talwar, ICML 2022.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldp.errors import InvalidBudgetError, InvalidDomainError
from ldp.protocols.channels import (
    MAX_DOMAIN_SIZE,
    WORD,
    GrrChannel,
    SupportChannel,
    check_domain_size,
    check_epsilon,
    exp_down,
    grr_channel,
    noise_at_zero,
)

PRIMES = tuple(n for n in range(2, 256) if all(n % each for each in range(2, 16) if each < n))
MIN_DIMENSION = 3  # with 2, a point is orthogonal to one value only: that is GRR


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectiveChannel(SupportChannel):
    """A point orthogonal to the value's with probability threshold / 2**64, else one that is not; uniform.

    Parameters
    ----------
    domain_size : int; number of values, in [2, n_codes]
    prime, dimension : int; points are those of PG(dimension - 1, prime), at most 65534; dimension >= 3
    threshold : int

    Raises
    ------
    InvalidDomainError : there are fewer points than values, or too many, or no such space
    InvalidBudgetError : the threshold does not favour points that support the value

    Notes
    -----
    Value v has point v, and a report supports the values to whose points it is orthogonal. Each point is
    written with its first coordinate that is not 0 as 1. Points are numbered by their free coordinates,
    those after it: first fewer of them, then as numbers in base `prime`, the first one the most significant.
    """

    domain_size: int
    prime: int
    dimension: int
    threshold: int

    def __post_init__(self) -> None:
        check_domain_size(self.domain_size)
        if self.dimension < MIN_DIMENSION or not is_prime(self.prime):
            raise InvalidDomainError(
                f"dimension must be >= {MIN_DIMENSION} and prime a prime, got {self.dimension}, {self.prime}"
            )
        if not self.domain_size <= self.n_codes <= MAX_DOMAIN_SIZE:
            raise InvalidDomainError(
                f"points must be {self.domain_size} to {MAX_DOMAIN_SIZE}, got {self.n_codes}"
            )
        if not WORD * self.support_size // self.n_codes < self.threshold < WORD:
            raise InvalidBudgetError(
                f"threshold must be in ({WORD * self.support_size // self.n_codes}, {WORD}), "
                f"got {self.threshold}"
            )

    @property
    def n_codes(self) -> int:
        """Number of points, which is that of possible reports."""
        return n_points(self.prime, self.dimension)

    @property
    def support_size(self) -> int:
        """Reports that support one value."""
        return n_points(self.prime, self.dimension - 1)

    @property
    def shared_size(self) -> int:
        """Reports that support each of two values."""
        return n_points(self.prime, self.dimension - 2)

    @property
    def p(self) -> Fraction:
        return Fraction(self.threshold, WORD)

    @property
    def q(self) -> Fraction:
        size, shared = self.support_size, self.shared_size
        return self.p * shared / size + (1 - self.p) * (size - shared) / (self.n_codes - size)

    @property
    def ratio(self) -> Fraction:
        outside = self.n_codes - self.support_size
        return Fraction(self.threshold * outside, (WORD - self.threshold) * self.support_size)


CodeChannel = GrrChannel | ProjectiveChannel


def n_points(prime: int, dimension: int) -> int:
    """Points of PG(dimension - 1, prime)."""
    return int((prime**dimension - 1) // (prime - 1))


@lru_cache(maxsize=256)
def projective_channel(
    *, epsilon: Fraction, domain_size: int, max_codes: int = MAX_DOMAIN_SIZE
) -> ProjectiveChannel:
    """Projective response of a nominal epsilon with the least variance; the realised one is never larger.

    Parameters
    ----------
    epsilon, domain_size : as of `grr_channel`
    max_codes : int; of a report, at most 65534

    Raises
    ------
    InvalidBudgetError, InvalidDomainError : also where no space has as many points and no more codes
    """
    check_epsilon(epsilon)
    check_domain_size(domain_size)
    e = exp_down(epsilon)
    found = [
        _with_threshold(e, domain_size=domain_size, prime=prime, dimension=dimension)
        for prime, dimension in fitting_spaces(domain_size, max_codes=max_codes)
    ]
    if not found:
        raise InvalidDomainError(f"no projective space has {domain_size} to {max_codes} points")
    return min(found, key=noise_at_zero)


@lru_cache(maxsize=256)
def code_channel(*, epsilon: Fraction, domain_size: int, max_codes: int = MAX_DOMAIN_SIZE) -> CodeChannel:
    """Return the channel of one code a report with the smaller variance at frequency 0: GRR or projective.

    Parameters, Raises : as of `projective_channel`; GRR where no space fits
    """
    grr = grr_channel(epsilon=epsilon, domain_size=domain_size)
    try:
        projective = projective_channel(epsilon=epsilon, domain_size=domain_size, max_codes=max_codes)
    except InvalidDomainError:
        return grr
    return grr if noise_at_zero(grr) <= noise_at_zero(projective) else projective


def fitting_spaces(domain_size: int, *, max_codes: int = MAX_DOMAIN_SIZE) -> list[tuple[int, int]]:
    """Prime and dimension of each space that has a point for each value, and no more points than codes."""
    spaces = [(prime, int(least_dimensions(prime, domain_size))) for prime in PRIMES]
    return [space for space in spaces if n_points(*space) <= min(max_codes, MAX_DOMAIN_SIZE)]


def _with_threshold(e: Fraction, *, domain_size: int, prime: int, dimension: int) -> ProjectiveChannel:
    """Channel with the threshold floor(2**64 e s / (e s + K - s))."""
    size = n_points(prime, dimension - 1)
    favoured, outside = e.numerator * size, e.denominator * (n_points(prime, dimension) - size)
    return ProjectiveChannel(
        domain_size=domain_size,
        prime=prime,
        dimension=dimension,
        threshold=WORD * favoured // (favoured + outside),
    )


def least_dimensions(prime: int, domain_sizes: ArrayLike) -> NDArray[np.int64]:
    """Least dimension of a space of a prime with as many points as each number of values; of their shape."""
    points = [min(n_points(prime, dimension), WORD // 4) for dimension in range(MIN_DIMENSION, 17)]
    return np.asarray(MIN_DIMENSION + np.searchsorted(points, domain_sizes), np.int64)


def is_prime(number: int) -> bool:
    """Return whether a number is prime, up to 255."""
    return number in PRIMES
