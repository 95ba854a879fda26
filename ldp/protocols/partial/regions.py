"""Regions: a report tells the region of a value for certain, and hides which of the region's values it is.

The values of each region are reported among themselves, by the more exact of GRR and projective response for
so few values. So epsilon holds between two values of one region only: the region of each person is disclosed.
In return a value's noise is that of its region's people, instead of everyone's.

Source: Chen, Li, Qin, Kasiviswanathan, Jin, ICDE 2016 (PCE: a safe region is known, the place in it private).
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ldp.errors import InvalidDomainError
from ldp.protocols.channels import MAX_DOMAIN_SIZE, SupportChannel, noise_at_zero
from ldp.protocols.projective import CodeChannel, ProjectiveChannel, code_channel


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionChannel(SupportChannel):
    """The region of a value, and a noisy report among the values of that region.

    Parameters
    ----------
    region_of : tuple of int, shape (domain_size,); region of each value, numbered from 0 as they first occur
    of_regions : tuple of GrrChannel or ProjectiveChannel; of each region, on as many values as it has

    Raises
    ------
    InvalidDomainError : regions are not two or more of two values or more, or have other channels, or more
        codes than 65534

    Notes
    -----
    Codes are those of the first region, then those of the second one, and so on. Reports of other values than
    those of the region never support a value, so estimators of pure protocols refuse this channel:
    `ldp.estimation.partial.regions` has its own. p and q are those of the region with the noisiest reports.
    """

    region_of: tuple[int, ...]
    of_regions: tuple[CodeChannel, ...]

    def __post_init__(self) -> None:
        check_regions(self.region_of)
        sizes = tuple(map(self.region_of.count, range(len(self.of_regions))))
        if tuple(own.domain_size for own in self.of_regions) != sizes or sum(sizes) != self.domain_size:
            raise InvalidDomainError(f"of_regions must have a channel of each of {sizes} values")
        if self.n_codes > MAX_DOMAIN_SIZE:
            raise InvalidDomainError(f"codes must be <= {MAX_DOMAIN_SIZE}, got {self.n_codes}")

    @property
    def domain_size(self) -> int:
        """Number of values of all regions."""
        return len(self.region_of)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of values of each region."""
        return tuple(own.domain_size for own in self.of_regions)

    @property
    def n_codes(self) -> int:
        """Number of possible reports."""
        return sum(map(n_codes_of, self.of_regions))

    @property
    def least_exact(self) -> CodeChannel:
        """Channel of the region whose reports have the largest variance."""
        return max(self.of_regions, key=noise_at_zero)

    @property
    def p(self) -> Fraction:
        return self.least_exact.p

    @property
    def q(self) -> Fraction:
        """Probability that a report supports one given other value of the region; of others none does."""
        return self.least_exact.q

    @property
    def ratio(self) -> Fraction:
        """Largest probability ratio of a report under two values of one region; of two there is none."""
        return max(own.ratio for own in self.of_regions)


class Region(NamedTuple):
    """One region: its values, rising; its codes; and the channel of its reports."""

    values: NDArray[np.int64]
    codes: slice
    channel: CodeChannel


@lru_cache(maxsize=64)
def regions_of(channel: RegionChannel) -> tuple[Region, ...]:
    """Return the regions of a channel; kept, since every window asks for the same."""
    region_of, own = np.array(channel.region_of), channel.of_regions
    ends = [0, *accumulate(map(n_codes_of, own))]
    return tuple(
        Region(np.flatnonzero(region_of == number), slice(ends[number], ends[number + 1]), own[number])
        for number in range(len(own))
    )


@lru_cache(maxsize=256)
def region_channel(
    *, epsilon: Fraction, region_of: tuple[int, ...], max_codes: int = MAX_DOMAIN_SIZE
) -> RegionChannel:
    """Return the channel of a nominal epsilon between values of one region; the realised one is never larger.

    Parameters
    ----------
    epsilon : Fraction; in [0.000001, 64]
    region_of : as of `RegionChannel`
    max_codes : int; of a report, at most 65534; each region has a part of it in proportion to its values

    Raises
    ------
    InvalidBudgetError, InvalidDomainError
    """
    check_regions(region_of)
    sizes = [region_of.count(number) for number in range(max(region_of) + 1)]
    most = min(max_codes, MAX_DOMAIN_SIZE)
    own = {
        size: code_channel(epsilon=epsilon, domain_size=size, max_codes=most * size // len(region_of))
        for size in set(sizes)
    }
    return RegionChannel(region_of=region_of, of_regions=tuple(own[size] for size in sizes))


def n_codes_of(channel: CodeChannel) -> int:
    """Possible reports of one region."""
    return channel.n_codes if isinstance(channel, ProjectiveChannel) else channel.domain_size


def check_regions(region_of: tuple[int, ...]) -> None:
    """Raise InvalidDomainError unless there are two regions or more, each of two values or more."""
    numbers = tuple(dict.fromkeys(region_of))
    if len(numbers) < 2 or numbers != tuple(range(len(numbers))):
        raise InvalidDomainError(
            f"regions must be two or more, numbered from 0 as they first occur, got {numbers}"
        )
    for number in numbers:
        if region_of.count(number) < 2:
            raise InvalidDomainError(
                f"region {number} must have two values or more: a single one would be disclosed"
            )
