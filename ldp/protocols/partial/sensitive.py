"""Sensitive values: reports hide them among each other, and disclose all other values.

With s sensitive values and E = exp(epsilon), a sensitive value is reported with probability
c1 = E / (s + E - 1), and each other sensitive one with c2 = 1 / (s + E - 1). A value that is not sensitive is
reported with c3 = (E - 1) / (s + E - 1), else one of the sensitive ones, each with c2. So a report of a
sensitive value may come from anyone, with ratios of at most E. A report of another value is the truth for
certain: no epsilon holds for those.

Source: Murakami, Kawamoto, USENIX Security 2019 (utility-optimised randomised response, uRR).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from ldp.errors import InvalidBudgetError, InvalidDomainError
from ldp.protocols.channels import WORD, SupportChannel, check_domain_size, check_epsilon, exp_down


class Support(NamedTuple):
    """Probability that a report is a value, if it is true, and if another one is."""

    p: Fraction
    q: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class SensitiveChannel(SupportChannel):
    """A value, or a sensitive one at random.

    Parameters
    ----------
    domain_size : int; number of values, in [2, 65534]
    sensitive : tuple of int, shape (s,); sensitive values, rising; not all
    other : int; each sensitive value that is not true is reported with probability other / 2**64

    Raises
    ------
    InvalidDomainError : domain_size is out of range, or the sensitive values are
    InvalidBudgetError : other does not leave the true value more likely

    Notes
    -----
    All three probabilities follow from one integer, so each report of a sensitive value that is not true has
    the same probability, exactly. p and q are those of a sensitive value; `of_values` has all.
    """

    domain_size: int
    sensitive: tuple[int, ...]
    other: int

    def __post_init__(self) -> None:
        check_domain_size(self.domain_size)
        check_sensitive(self.sensitive, domain_size=self.domain_size)
        if not 0 < self.other * len(self.sensitive) < WORD:
            raise InvalidBudgetError(f"other must be in (0, {WORD // len(self.sensitive)}), got {self.other}")

    @property
    def n_sensitive(self) -> int:
        return len(self.sensitive)

    @property
    def n_codes(self) -> int:
        """Number of possible reports."""
        return self.domain_size

    @property
    def kept_sensitive(self) -> int:
        """Threshold out of 2**64 below which a sensitive value is reported."""
        return WORD - (self.n_sensitive - 1) * self.other

    @property
    def kept_other(self) -> int:
        """Threshold out of 2**64 below which a value that is not sensitive is reported."""
        return WORD - self.n_sensitive * self.other

    @property
    def p(self) -> Fraction:
        return Fraction(self.kept_sensitive, WORD)

    @property
    def q(self) -> Fraction:
        """Probability of one given sensitive value that is not true, under any value, exact."""
        return Fraction(self.other, WORD)

    @property
    def disclosed(self) -> Fraction:
        """Probability that a value that is not sensitive is disclosed, exact."""
        return Fraction(self.kept_other, WORD)

    @property
    def of_values(self) -> Sequence[Support]:
        """Probabilities of the reports of each value."""
        hidden, open_value = Support(self.p, self.q), Support(self.disclosed, Fraction(0))
        return [hidden if value in self.sensitive else open_value for value in range(self.domain_size)]

    @property
    def ratio(self) -> Fraction:
        """Largest ratio of a report of a sensitive value under two values; of other reports there is none."""
        return self.p / self.q


@lru_cache(maxsize=256)
def sensitive_channel(*, epsilon: Fraction, domain_size: int, sensitive: tuple[int, ...]) -> SensitiveChannel:
    """Channel of a nominal epsilon of the sensitive values; the realised one is never larger.

    Parameters
    ----------
    epsilon : Fraction; nominal, in [0.000001, 64]
    domain_size, sensitive : as of `SensitiveChannel`

    Raises
    ------
    InvalidBudgetError, InvalidDomainError

    Notes
    -----
    `other` is ceil(2**64 / (s + e - 1)), with e = exp(epsilon) rounded down.
    """
    check_epsilon(epsilon)
    check_domain_size(domain_size)
    check_sensitive(sensitive, domain_size=domain_size)
    e = exp_down(epsilon)
    total = (len(sensitive) - 1) * e.denominator + e.numerator
    other = -(-WORD * e.denominator // total)
    return SensitiveChannel(domain_size=domain_size, sensitive=sensitive, other=other)


def check_sensitive(sensitive: tuple[int, ...], *, domain_size: int) -> None:
    """Raise InvalidDomainError unless some values are sensitive, and not all."""
    if list(sensitive) != sorted(set(sensitive)) or not 1 <= len(sensitive) < domain_size:
        raise InvalidDomainError(
            f"sensitive values must rise, and be 1 to {domain_size - 1}, got {len(sensitive)}"
        )
    if sensitive[0] < 0 or sensitive[-1] >= domain_size:
        raise InvalidDomainError(f"sensitive values must be in [0, {domain_size}), got {sensitive}")
