"""Exact bounds of a probability from a count."""

from math import exp, fsum, lgamma, log, log1p
from typing import Final

_TAIL_SLACK: Final = 1 - 1e-6  # far above the error of lgamma: the bound stays on the safe side


def clopper_pearson_low(hits: int, *, n: int, miss: float) -> float:
    """Exact lower bound of a probability: the beta(hits, n - hits + 1) quantile of `miss`, rounded down.

    Parameters
    ----------
    hits : int; in [0, n]
    n : int; number of trials
    miss : float; probability that the bound is too high, in (0, 1/2)

    Notes
    -----
    By bisection of P(X >= hits) = miss for X binomial; relative error below 1e-5. Source: Clopper and
    Pearson, Biometrika 1934.
    """
    low, high = 0.0, hits / n
    for _ in range(64):
        middle = (low + high) / 2
        if _upper_tail(hits, n=n, p=middle) < miss * _TAIL_SLACK:
            low = middle
        else:
            high = middle
    return low


def _upper_tail(hits: int, *, n: int, p: float) -> float:
    """P(X >= hits) for X binomial, p <= hits / n: terms fall from the first on, by a growing factor."""
    if hits == 0:
        return 1.0
    if p <= 0:
        return 0.0
    odds = p / (1 - p)
    first = lgamma(n + 1) - lgamma(hits + 1) - lgamma(n - hits + 1) + hits * log(p) + (n - hits) * log1p(-p)
    terms, term = [1.0], 1.0
    for i in range(hits, n):
        term *= (n - i) / (i + 1) * odds
        terms.append(term)
        if term < 1e-17:
            break
    return exp(first) * fsum(terms)
