"""LOLOHA with one hash per person: the cell of a value, with lasting noise and fresh noise for each report.

The hash of a person is a permanent question (`ldp.protocols.repeated.question`), whose g answers are the
cells. The first round keeps one noisy cell for each cell: however many days, values lose at most g times
epsilon. The second round is drawn again for each report: one report loses less, and equal reports do not show
equal values.

Source: Arcolezi et al., EDBT 2023 (BiLOLOHA: g = 2; OLOLOHA: the best g), with any universal hashes.
With those of a projective space two values share a cell less often than 1 / g, and a report has its hash.
"""

from fractions import Fraction
from functools import lru_cache

from ldp.errors import InvalidDomainError
from ldp.protocols.channels import MAX_DOMAIN_SIZE, check_domain_size, noise_at_zero
from ldp.protocols.projective import PRIMES, n_points
from ldp.protocols.repeated.question import QuestionChannel
from ldp.protocols.two_round import check_budgets, lgrr_channel


@lru_cache(maxsize=256)
def hash_channel(
    *,
    epsilon: Fraction,
    first: Fraction,
    domain_size: int,
    cells: int | None = None,
    max_codes: int = MAX_DOMAIN_SIZE,
) -> QuestionChannel:
    """LOLOHA of nominal epsilons, with exact tuning; the realised ones are never larger.

    Parameters
    ----------
    epsilon : Fraction; of any number of reports of values in one cell, in [0.000001, 64]
    first : Fraction; of one report, at least 0.000001 and below epsilon
    domain_size : int; at least 2
    cells : int or None; a prime up to 251; None takes that with the least variance of one report
    max_codes : int; of a report

    Raises
    ------
    InvalidBudgetError : an epsilon is out of range
    InvalidDomainError : cells is no such prime, or there are more codes than `max_codes`
    """
    check_budgets(epsilon_inf=epsilon, epsilon_1=first)
    check_domain_size(domain_size)
    if cells is not None and cells not in PRIMES:
        raise InvalidDomainError(f"cells must be a prime number up to {PRIMES[-1]}, got {cells}")
    most, found = min(max_codes, MAX_DOMAIN_SIZE), []
    allowed = PRIMES if cells is None else (cells,)
    for size in allowed:
        dimension = digits_needed(size, domain_size)
        if size * n_points(size, dimension) <= most:
            rounds = lgrr_channel(epsilon_inf=epsilon, epsilon_1=first, domain_size=size)
            found.append(QuestionChannel(domain_size=domain_size, dimension=dimension, answer=rounds))
    if not found:
        largest = max(_most_values(size, max_codes=most) for size in allowed)
        raise InvalidDomainError(f"domain_size must be <= {largest} for one hash, got {domain_size}")
    return min(found, key=noise_at_zero)


def digits_needed(base: int, domain_size: int) -> int:
    """Least number of digits that distinguish all values."""
    return next(digits for digits in range(1, 17) if base**digits >= domain_size)


def _most_values(size: int, *, max_codes: int) -> int:
    fitting = [digits for digits in range(17) if size * n_points(size, digits) <= max_codes]
    return int(size ** fitting[-1])
