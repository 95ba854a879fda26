"""Square wave on a number: a report is a level near the true one with a large probability, else any other.

A number is known by its level, the cuts that it reaches. The codes of a level are a window of 2 b + 1, b
being the half width: likely all equally, while the other codes are less likely by a factor of e to the
epsilon. With b = 0 that is randomised response on levels. The whole of epsilon is spent on one report, so
each further day loses it again: this is for numbers that a person reports once.

Source: Li, Wang, Lopuhaa-Zwakenberg, Skoric, Li, SIGMOD 2020 (square wave, here discrete).
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ldp.errors import InvalidBudgetError, InvalidDomainError
from ldp.protocols.channels import WORD, SupportChannel, SupportProbabilities, check_epsilon, exp_down
from ldp.protocols.numbers.threshold import MAX_CUTS, MIN_CUTS


@dataclass(frozen=True, slots=True, kw_only=True)
class WaveChannel(SupportChannel):
    """A uniform code of the level's window with probability threshold / 2**64, else a uniform other one.

    Parameters
    ----------
    n_levels : int; one more than there are cuts, in [3, 128]
    half_width : int; in [0, n_levels)
    threshold : int

    Raises
    ------
    InvalidDomainError : the levels or the half width are out of range
    InvalidBudgetError : the threshold does not favour the codes of the window

    Notes
    -----
    Level v has the window of the codes v to v + 2 half_width. Other levels are not equally likely under a
    report, so estimators of pure protocols refuse this channel: `ldp.estimation.numbers.wave` has its own.
    """

    n_levels: int
    half_width: int
    threshold: int

    def __post_init__(self) -> None:
        if not MIN_CUTS < self.n_levels <= MAX_CUTS + 1:
            raise InvalidDomainError(
                f"n_levels must be in [{MIN_CUTS + 1}, {MAX_CUTS + 1}], got {self.n_levels}"
            )
        if not 0 <= self.half_width < self.n_levels:
            raise InvalidDomainError(f"half_width must be in [0, {self.n_levels}), got {self.half_width}")
        low = WORD * self.width // self.n_codes
        if not low < self.threshold < WORD:
            raise InvalidBudgetError(f"threshold must be in ({low}, {WORD}), got {self.threshold}")

    @property
    def domain_size(self) -> int:
        """Number of cuts: one share is estimated for each, that of the numbers which reach it."""
        return self.n_levels - 1

    @property
    def width(self) -> int:
        """Codes in the window of a level."""
        return 2 * self.half_width + 1

    @property
    def n_codes(self) -> int:
        """Number of possible reports."""
        return self.n_levels + 2 * self.half_width

    @property
    def kept(self) -> Fraction:
        """Probability that a report lies in the window of the true level, exact."""
        return Fraction(self.threshold, WORD)

    @property
    def p(self) -> Fraction:
        """Probability of each code in the window of the true level, exact."""
        return self.kept / self.width

    @property
    def q(self) -> Fraction:
        """Probability of each other code, exact."""
        return (1 - self.kept) / (self.n_codes - self.width)

    @property
    def ratio(self) -> Fraction:
        return self.p / self.q


@lru_cache(maxsize=256)
def wave_channel(*, epsilon: Fraction, n_levels: int) -> WaveChannel:
    """Square wave of a nominal epsilon; the realised one is never larger.

    The threshold is floor(2**64 e w / (e w + k - 1)), with e = exp(epsilon) rounded down, k levels and w
    codes in a window.

    Parameters
    ----------
    epsilon : Fraction; nominal, in [0.000001, 64]
    n_levels : int; in [3, 128]

    Raises
    ------
    InvalidBudgetError, InvalidDomainError
    """
    check_epsilon(epsilon)
    e = exp_down(epsilon)
    half_width = best_half_width(epsilon, e=e, n_levels=n_levels)
    favoured = e.numerator * (2 * half_width + 1)
    return WaveChannel(
        n_levels=n_levels,
        half_width=half_width,
        threshold=WORD * favoured // (favoured + e.denominator * (n_levels - 1)),
    )


def best_half_width(epsilon: Fraction, *, e: Fraction, n_levels: int) -> int:
    """Half width with which a report says most about the level: (eps e - e + 1) / (2 e (e - 1 - eps)) of k.

    Rounded down. One that is best for the mean is wider; it makes the shares above cuts less exact than
    threshold reports do. Source: Li et al., equation of the optimal b.
    """
    return int((epsilon * e - e + 1) / (2 * e * (e - 1 - epsilon)) * n_levels)


@lru_cache(maxsize=64)
def chances(channel: WaveChannel) -> NDArray[np.float64]:
    """Chance of each code at each true level; shape (n_codes, n_levels), read-only."""
    found = np.where(windows(channel), float(channel.p), float(channel.q))
    found.flags.writeable = False
    return found


def windows(channel: WaveChannel) -> NDArray[np.bool_]:
    """Return whether each code is in the window of each level; shape (n_codes, n_levels)."""
    codes, levels = np.ogrid[: channel.n_codes, : channel.n_levels]
    return np.asarray((codes >= levels) & (codes < levels + channel.width))


def kept_share(channel: SupportProbabilities) -> Fraction:
    """Probability that a report supports the true value; of the square wave, that it is in its window."""
    return channel.kept if isinstance(channel, WaveChannel) else channel.p
