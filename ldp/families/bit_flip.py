"""dBitFlipPM: lasting answers about a few values, drawn per person; one round."""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from ldp.channels import check_domain_size, check_epsilon, epsilon_of
from ldp.errors import LdpError
from ldp.families.two_round import Tuning, check_tuning
from ldp.families.two_round_unary import BitRound, symmetric_round


@dataclass(frozen=True, slots=True, kw_only=True)
class BitFlipChannel:
    """Randomised response of the bits of `sampled` values, which are drawn once per person and public.

    Parameters
    ----------
    domain_size : int; number of values (buckets), in [2, 65534]
    sampled : int; values that one person answers about, in [1, domain_size]
    bit : BitRound

    Raises
    ------
    InvalidDomainError : domain_size is out of range
    LdpError : sampled is out of range

    Notes
    -----
    p and q are those of a value that the person answers about: estimate each value from its own reports.
    Source: Ding et al., NeurIPS 2017 (dBitFlipPM).
    """

    domain_size: int
    sampled: int
    bit: BitRound

    def __post_init__(self) -> None:
        check_domain_size(self.domain_size)
        if not 1 <= self.sampled <= self.domain_size:
            raise LdpError(f"sampled must be in [1, {self.domain_size}], got {self.sampled}")

    @property
    def p(self) -> Fraction:
        """Probability that a report about the true value supports it, exact."""
        return self.bit.p

    @property
    def q(self) -> Fraction:
        """Probability that a report about another value supports it, exact."""
        return self.bit.q

    @property
    def ratio(self) -> Fraction:
        """Largest probability ratio of an answer under two values, the sampled values being known; exact."""
        return self.bit.bit_ratio if self.sampled == 1 else self.bit.ratio

    @property
    def epsilon(self) -> Decimal:
        """Realised epsilon of an answer, rounded up to 30 digits."""
        return epsilon_of(self.ratio)


def bit_flip_channel(
    *, epsilon: Fraction, domain_size: int, sampled: int, tuning: Tuning = "exact"
) -> BitFlipChannel:
    """dBitFlipPM channel of a nominal epsilon; the realised one is never larger.

    Parameters
    ----------
    epsilon : Fraction; of any number of reports of one value, in [0.000001, 64]
    domain_size : int; in [2, 65534]
    sampled : int; values that one person answers about, in [1, domain_size]
    tuning : "exact" or "paper"; they differ for sampled = 1 only

    Raises
    ------
    InvalidBudgetError, InvalidDomainError, LdpError

    Notes
    -----
    Two values differ in two bits, so a bit has epsilon / 2. Of a single bit only one can differ: exact tuning
    gives it the whole epsilon, the paper half of it.
    """
    check_epsilon(epsilon)
    check_tuning(tuning, horizon=1)
    is_single = sampled == 1 and tuning == "exact"
    bit = symmetric_round(epsilon if is_single else epsilon / 2)
    return BitFlipChannel(domain_size=domain_size, sampled=sampled, bit=bit)
