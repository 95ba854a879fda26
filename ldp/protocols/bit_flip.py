"""dBitFlipPM: lasting answers about a few values, drawn per person; one round."""

from dataclasses import dataclass
from fractions import Fraction

from ldp.errors import LdpError
from ldp.protocols.channels import MAX_EPSILON, SupportChannel, check_epsilon
from ldp.protocols.two_round import Tuning, check_tuning
from ldp.protocols.unary import UnaryChannel, sue_channel


@dataclass(frozen=True, slots=True, kw_only=True)
class BitFlipChannel(SupportChannel):
    """Randomised response of the bits of `sampled` values, which are drawn once per person and public.

    Parameters
    ----------
    sampled : int; values that one person answers about, in [1, domain_size]
    bits : UnaryChannel; of these values

    Raises
    ------
    LdpError : sampled is out of range

    Notes
    -----
    p and q are those of a value that the person answers about: estimate each value from its own reports.
    Source: Ding et al., NeurIPS 2017 (dBitFlipPM).
    """

    sampled: int
    bits: UnaryChannel

    def __post_init__(self) -> None:
        if not 1 <= self.sampled <= self.domain_size:
            raise LdpError(f"sampled must be in [1, {self.domain_size}], got {self.sampled}")

    @property
    def domain_size(self) -> int:
        """Number of values (buckets)."""
        return self.bits.domain_size

    @property
    def p(self) -> Fraction:
        """Probability that a report about the true value supports it, exact."""
        return self.bits.p

    @property
    def q(self) -> Fraction:
        """Probability that a report about another value supports it, exact."""
        return self.bits.q

    @property
    def ratio(self) -> Fraction:
        """Largest probability ratio of an answer under two values, the sampled values being known; exact."""
        p, q = self.p, self.q
        return max(p / q, (1 - q) / (1 - p)) if self.sampled == 1 else self.bits.ratio


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
    bits = sue_channel(
        epsilon=min(2 * epsilon, MAX_EPSILON) if is_single else epsilon, domain_size=domain_size
    )
    return BitFlipChannel(sampled=sampled, bits=bits)
