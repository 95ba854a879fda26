"""Local hashing: values are hashed to few cells, by a new hash per report, and the cell goes through GRR."""

from dataclasses import dataclass
from fractions import Fraction

from ldp.protocols.channels import (
    MAX_DOMAIN_SIZE,
    GrrChannel,
    SupportChannel,
    check_domain_size,
    exp_down,
    grr_channel,
    noise_at_zero,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HashChannel(SupportChannel):
    """GRR on the cell of a value; InvalidDomainError if domain_size is out of range.

    Parameters
    ----------
    domain_size : int; number of values, in [2, 65534]
    cells : GrrChannel; over the cells; its domain size is their number, g

    Notes
    -----
    A report is a seed and a cell. It supports the values that the seed's hash sends to that cell. The promise
    holds for every hash; that q is 1/g needs one whose cells are uniform and independent for two values.
    Source: Bassily and Smith, STOC 2015 (g = 2); Wang et al., USENIX Security 2017 (OLH).
    """

    domain_size: int
    cells: GrrChannel

    def __post_init__(self) -> None:
        check_domain_size(self.domain_size)

    @property
    def p(self) -> Fraction:
        return self.cells.p

    @property
    def q(self) -> Fraction:
        """Probability that a report supports one given other value, over all seeds: 1 / g."""
        return Fraction(1, self.cells.domain_size)

    @property
    def ratio(self) -> Fraction:
        """Largest probability ratio of a report under two values, exact; the seed is public."""
        return self.cells.ratio


def blh_channel(*, epsilon: Fraction, domain_size: int) -> HashChannel:
    """Binary local hashing: two cells.

    Parameters, Raises : as of `grr_channel`

    Source: Bassily and Smith, STOC 2015, in the form of Wang et al., USENIX Security 2017 (BLH).
    """
    return HashChannel(domain_size=domain_size, cells=grr_channel(epsilon=epsilon, domain_size=2))


def olh_channel(*, epsilon: Fraction, domain_size: int) -> HashChannel:
    """Optimal local hashing: as many cells as give the smallest variance, about exp(epsilon) + 1.

    Parameters, Raises : as of `grr_channel`

    Both integers next to exp(epsilon) + 1 are tried, by the exact variance of what their thresholds realise.
    There are at most 65534 cells. Source: Wang et al., USENIX Security 2017 (OLH).
    """
    below = min(int(exp_down(epsilon)) + 1, MAX_DOMAIN_SIZE)
    candidates = [
        HashChannel(domain_size=domain_size, cells=grr_channel(epsilon=epsilon, domain_size=g))
        for g in range(below, min(below + 1, MAX_DOMAIN_SIZE) + 1)
    ]
    return min(candidates, key=noise_at_zero)
