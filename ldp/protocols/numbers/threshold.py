"""Threshold reports on a number: one bit, whether it reaches the one cut that a subscriber is asked about.

Each subscriber has one permanent cut, drawn in proportion to the spacing of the cuts and not to any value.
The bit goes through randomised response with all of epsilon, and the code of a report is twice the cut
plus the bit. A subscriber has two possible answers in all, so any number of days loses at most both.

Source: Ding, Kulkarni, Yekhanin, NeurIPS 2017 (1BitMean with alpha-point rounding), with the cut kept.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from ldp.errors import InvalidBudgetError, InvalidDomainError
from ldp.protocols.channels import WORD, SupportChannel, grr_channel

MIN_CUTS: Final = 2
MAX_CUTS: Final = 127  # their codes are tallied by day
LARGEST: Final = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Public range of a number, and the cuts at which it is asked.

    Parameters
    ----------
    cuts : tuple of int; 2 to 127, ascending, in [-10**9, 10**9]
    minimum : int; below the first cut: smaller numbers count as the minimum, larger ones as the last cut
    unit : str; of the number, such as "min"
    report : "wave" or None; what people report: a level near their own (`ldp.protocols.numbers.wave`), or
        a side of one cut

    Raises
    ------
    InvalidDomainError
    """

    cuts: tuple[int, ...]
    minimum: int = 0
    unit: str = ""
    report: Literal["wave"] | None = None

    def __post_init__(self) -> None:
        if not MIN_CUTS <= len(self.cuts) <= MAX_CUTS:
            raise InvalidDomainError(f"cuts must be {MIN_CUTS} to {MAX_CUTS}, got {len(self.cuts)}")
        if not isinstance(self.unit, str):
            raise InvalidDomainError(f"unit must be a text, got {self.unit!r}")
        if self.report not in (None, "wave"):
            raise InvalidDomainError(f'report must be "wave" or absent, got {self.report!r}')
        ends = self.ends
        if any(isinstance(end, bool) or not isinstance(end, int) or abs(end) > LARGEST for end in ends):
            raise InvalidDomainError(f"cuts and minimum must be integers of at most {LARGEST}, got {ends}")
        if any(high <= low for low, high in pairwise(ends)):
            raise InvalidDomainError(f"cuts must rise from above the minimum {self.minimum}, got {self.cuts}")

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | None) -> "Scale | None":
        """Rebuild what `asdict` and JSON made of a scale, or of none."""
        return None if data is None else cls(**{**data, "cuts": tuple(data["cuts"])})

    def to_json(self) -> dict[str, Any]:
        """Plain values for `from_json`; without a report where none is chosen."""
        found = asdict(self) | {"cuts": list(self.cuts)}
        return {name: value for name, value in found.items() if value is not None}

    @property
    def is_wave(self) -> bool:
        """Return whether people report a level near their own, not a side of one cut."""
        return self.report == "wave"

    @property
    def ends(self) -> tuple[int, ...]:
        """The minimum and the cuts: what numbers are rounded down to, by level."""
        return (self.minimum, *self.cuts)

    @property
    def spacings(self) -> tuple[int, ...]:
        """Distance of each cut from the one before it; of the first, from the minimum."""
        return tuple(high - low for low, high in pairwise(self.ends))

    def levels(self, numbers: NDArray[Any]) -> NDArray[np.int32]:
        """Cuts that each number reaches, in [0, len(cuts)]: all that is kept of it."""
        return np.searchsorted(np.array(self.cuts), numbers, side="right").astype(np.int32)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdChannel(SupportChannel):
    """Randomised response on whether a number reaches the subscriber's cut.

    Parameters
    ----------
    shares : tuple of int, shape (n_cuts,); probability of each cut times 2**64, sum 2**64
    threshold : int; the bit is kept with probability threshold / 2**64

    Raises
    ------
    InvalidDomainError : not 2 to 127 cuts with positive shares
    InvalidBudgetError : the threshold does not favour the true bit

    Notes
    -----
    A number is known by its level, the cuts that it reaches. Code 2 j + 1 supports that it reaches cut j,
    from 0; code 2 j that it does not.
    """

    shares: tuple[int, ...]
    threshold: int

    def __post_init__(self) -> None:
        if not MIN_CUTS <= len(self.shares) <= MAX_CUTS or min(self.shares) < 1 or sum(self.shares) != WORD:
            raise InvalidDomainError(
                f"shares must be {MIN_CUTS} to {MAX_CUTS} integers above 0 with sum {WORD}, got {self.shares}"
            )
        if not WORD // 2 < self.threshold < WORD:
            raise InvalidBudgetError(f"threshold must be in ({WORD // 2}, {WORD}), got {self.threshold}")

    @property
    def domain_size(self) -> int:
        """Number of cuts: one share is estimated for each, that of the numbers which reach it."""
        return len(self.shares)

    @property
    def n_codes(self) -> int:
        """Number of possible reports."""
        return 2 * self.domain_size

    @property
    def p(self) -> Fraction:
        return Fraction(self.threshold, WORD)

    @property
    def q(self) -> Fraction:
        return 1 - self.p

    @property
    def ratio(self) -> Fraction:
        return Fraction(self.threshold, WORD - self.threshold)


@lru_cache(maxsize=256)
def threshold_channel(*, epsilon: Fraction, spacings: tuple[int, ...]) -> ThresholdChannel:
    """Threshold reports of a nominal epsilon; the realised one is never larger.

    Parameters
    ----------
    epsilon : Fraction; nominal, in [0.000001, 64]
    spacings : tuple of int, shape (n_cuts,); of the cuts (`Scale`), which are drawn in proportion to them

    Raises
    ------
    InvalidBudgetError, InvalidDomainError
    """
    bit = grr_channel(epsilon=epsilon, domain_size=2)
    return ThresholdChannel(shares=nearest_shares(spacings), threshold=bit.threshold)


def nearest_shares(weights: Sequence[int | Fraction]) -> tuple[int, ...]:
    """Probabilities times 2**64 nearest to positive weights; the first takes what rounding leaves."""
    total = Fraction(sum(weights))
    rest = [round(WORD * weight / total) for weight in weights[1:]]
    return WORD - sum(rest), *rest
