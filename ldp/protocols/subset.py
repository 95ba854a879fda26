"""Subset selection: a report is a set of values, which holds the true one more often than not."""

from dataclasses import dataclass
from fractions import Fraction

from ldp.errors import InvalidBudgetError, InvalidDomainError
from ldp.protocols.channels import (
    WORD,
    SupportChannel,
    check_domain_size,
    check_epsilon,
    exp_down,
    noise_at_zero,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubsetChannel(SupportChannel):
    """A set of fixed size, with an integer threshold for whether it holds the true value.

    Parameters
    ----------
    domain_size : int; number of values k, in [2, 65534]
    subset_size : int; values in a report w, in [1, k - 1]
    threshold : int; the true value is in with probability threshold / 2**64

    Raises
    ------
    InvalidDomainError : domain_size or subset_size is out of range
    InvalidBudgetError : the threshold does not put the true value in more often than any other

    Notes
    -----
    The rest of the set is a uniform choice among the other values. Source: Ye and Barg, IEEE Trans. Inf.
    Theory 2018; Wang et al., arXiv:1607.08025 (subset selection).
    """

    domain_size: int
    subset_size: int
    threshold: int

    def __post_init__(self) -> None:
        check_domain_size(self.domain_size)
        if not 1 <= self.subset_size < self.domain_size:
            raise InvalidDomainError(
                f"subset_size must be in [1, {self.domain_size - 1}], got {self.subset_size}"
            )
        low = WORD * self.subset_size // self.domain_size
        if not low < self.threshold < WORD:
            raise InvalidBudgetError(
                f"threshold must be in ({low}, {WORD}) for {self.subset_size} of {self.domain_size} values, "
                f"got {self.threshold}"
            )

    @property
    def p(self) -> Fraction:
        """Probability that a report holds the true value, exact."""
        return Fraction(self.threshold, WORD)

    @property
    def q(self) -> Fraction:
        """Probability that a report holds one given other value, exact: (w - p) / (k - 1)."""
        return (self.subset_size - self.p) / (self.domain_size - 1)

    @property
    def ratio(self) -> Fraction:
        """Largest probability ratio of a report under two values, exact: p (k - w) / ((1 - p) w)."""
        w = self.subset_size
        return Fraction(self.threshold * (self.domain_size - w), (WORD - self.threshold) * w)


def subset_channel(*, epsilon: Fraction, domain_size: int) -> SubsetChannel:
    """Subset selection with the size of the smallest variance, about domain_size / (exp(epsilon) + 1).

    Parameters, Raises : as of `grr_channel`

    p = w e / (w e + k - w), rounded down. Both integers next to k / (e + 1) are tried, by the exact variance
    of what their thresholds realise. Sources as of `SubsetChannel`.
    """
    check_epsilon(epsilon)
    check_domain_size(domain_size)
    e = exp_down(epsilon)
    below = int(domain_size / (e + 1))
    sizes = range(max(below, 1), below + 2)  # e > 1: below < domain_size / 2
    candidates = [_with_size(e, domain_size=domain_size, subset_size=size) for size in sizes]
    return min(candidates, key=noise_at_zero)


def _with_size(e: Fraction, *, domain_size: int, subset_size: int) -> SubsetChannel:
    weight = subset_size * e.numerator
    threshold = WORD * weight // (weight + (domain_size - subset_size) * e.denominator)
    return SubsetChannel(domain_size=domain_size, subset_size=subset_size, threshold=threshold)
