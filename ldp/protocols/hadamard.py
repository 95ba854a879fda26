"""Hadamard response: a report is a column of a Hadamard matrix, likely one with a plus in the value's row."""

from dataclasses import dataclass
from fractions import Fraction

from ldp.errors import InvalidDomainError
from ldp.protocols.channels import GrrChannel, SupportChannel, check_domain_size, grr_channel

MAX_HADAMARD_DOMAIN_SIZE = 2**15 - 1  # columns are codes of 16 bits, and the largest codes are taken


@dataclass(frozen=True, slots=True, kw_only=True)
class HadamardChannel(SupportChannel):
    """A sign that is kept or flipped, then a uniform column where the value's row has that sign.

    Parameters
    ----------
    domain_size : int; number of values, in [2, 32767]
    sign : GrrChannel; over two values: plus is kept with its p

    Raises
    ------
    InvalidDomainError : domain_size is out of range, or sign has not two values

    Notes
    -----
    Value v has row v + 1 of the Sylvester matrix, whose size is the smallest power of two above domain_size.
    Entry (row, column) is a plus if row & column has an even number of ones. Row 0, all pluses, is left out.
    Two rows agree in half of the columns, so q = 1/2 exactly. Its variance is that of BLH: for epsilon
    beyond about 1 other oracles are better. Source: Acharya, Sun, Zhang, AISTATS 2019, in its form
    for high privacy (one block).
    """

    domain_size: int
    sign: GrrChannel

    def __post_init__(self) -> None:
        check_domain_size(self.domain_size)
        if self.domain_size > MAX_HADAMARD_DOMAIN_SIZE:
            raise InvalidDomainError(
                f"domain_size must be <= {MAX_HADAMARD_DOMAIN_SIZE}, got {self.domain_size}"
            )
        if self.sign.domain_size != 2:
            raise InvalidDomainError(f"domain_size of sign must be 2, got {self.sign.domain_size}")

    @property
    def n_columns(self) -> int:
        """Number of possible reports: the smallest power of two above domain_size."""
        return 1 << self.domain_size.bit_length()

    @property
    def p(self) -> Fraction:
        return self.sign.p

    @property
    def q(self) -> Fraction:
        return Fraction(1, 2)

    @property
    def ratio(self) -> Fraction:
        return self.sign.ratio


def hadamard_channel(*, epsilon: Fraction, domain_size: int) -> HadamardChannel:
    """Hadamard response of a nominal epsilon; the realised one is never larger.

    Parameters, Raises : as of `grr_channel`, but domain_size in [2, 32767]
    """
    return HadamardChannel(domain_size=domain_size, sign=grr_channel(epsilon=epsilon, domain_size=2))
