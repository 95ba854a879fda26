"""ALLOMFREE in plans: a kept answer to a value that lasts, and from it a fresh report for each day.

All reports together lose at most epsilon, however many days, and each of them less. Equal reports do not show
that they are of one person, nor different ones that they are of two.

Source: Arcolezi et al., Digital Communications and Networks 2022 (ALLOMFREE: L-GRR or L-OSUE). Combinations
of values are hashed first (`ldp.protocols.repeated.hashed`): that takes one code, and has about the variance
of L-OSUE.
"""

from fractions import Fraction
from functools import lru_cache
from typing import Final

from ldp.errors import InvalidDomainError
from ldp.protocols.channels import MAX_DOMAIN_SIZE
from ldp.protocols.repeated.question import QuestionChannel
from ldp.protocols.two_round import TwoRoundGrr
from ldp.protocols.two_round_unary import TwoRoundUnary, allomfree_channel

RenewedChannel = TwoRoundGrr | TwoRoundUnary | QuestionChannel

MAX_BITS: Final = 1920  # of a report: 32 groups of 60, for which the counter of a keyed block has room


@lru_cache(maxsize=256)
def renewed_channel(
    *, epsilon: Fraction, first: Fraction, domain_size: int, max_codes: int = MAX_DOMAIN_SIZE
) -> TwoRoundGrr | TwoRoundUnary:
    """Return the more exact of L-GRR and L-OSUE, of nominal epsilons; the realised ones are never larger.

    Parameters
    ----------
    epsilon : Fraction; of any number of reports, in [0.000001, 64]
    first : Fraction; of one report, at least 0.000001 and below epsilon
    domain_size : int; at least 2
    max_codes : int; values that can be tallied

    Raises
    ------
    InvalidBudgetError : an epsilon is out of range
    InvalidDomainError : there are more values than can be tallied, or than a report has bits for
    """
    if domain_size > max_codes:
        raise InvalidDomainError(f"domain_size must be <= {max_codes} to be tallied, got {domain_size}")
    channel = allomfree_channel(epsilon_inf=epsilon, epsilon_1=first, domain_size=domain_size)
    if isinstance(channel, TwoRoundUnary) and domain_size > MAX_BITS:
        raise InvalidDomainError(f"domain_size must be <= {MAX_BITS} for a bit per value, got {domain_size}")
    return channel


def rounds_of(channel: object) -> TwoRoundGrr | TwoRoundUnary | None:
    """Return both rounds of a channel, also of one that hashes values; None if reports repeat an answer."""
    rounds = channel.answer if isinstance(channel, QuestionChannel) else channel
    return rounds if isinstance(rounds, TwoRoundGrr | TwoRoundUnary) else None
