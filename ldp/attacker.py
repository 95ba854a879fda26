"""How often somebody who sees a report guesses its person's value right: exactly, for the best guess.

Before a report the best guess is the likeliest value, right with probability max prior. After a report y it
is the value with the largest prior(x) P(y | x), and the guess is right with probability

    sum over y of max over x of prior(x) P(y | x)          (Bayes vulnerability).

Source: Smith, FoSSaCS 2009 (vulnerability).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ldp.channels import GrrChannel
from ldp.errors import LdpError
from ldp.families.faked_reports import FakedChannel
from ldp.params import ReportChannel

Floats = NDArray[np.float64]


def guess_success(channel: ReportChannel, *, prior: Sequence[float] | Floats) -> float:
    """Probability of guessing a person's value right after seeing her report on this indicator alone.

    Parameters
    ----------
    channel : GrrChannel, UnaryChannel or FakedChannel; as used for the report
    prior : sequence of float, shape (domain_size,); what the attacker believes before: probabilities, sum 1

    Returns
    -------
    float; in [max prior, 1]

    Raises
    ------
    LdpError : prior is not a distribution of so many values, or fakes are encodings of any value (-r)

    Notes
    -----
    Codes: the report y is true with probability p and is any one other value with q < p, so the largest is
    that of prior(y) p and q max prior(x); the likeliest value may be y itself, since p is larger.

    Bits: against a report of nobody's value, whose bits are 1 with probability q independently, a report is
    hi = p / q times as likely for a value whose bit is 1, and lo = (1 - p) / (1 - q) times for one whose bit
    is 0. The best guess of a report has the largest of prior(x) hi over bits that are 1, and prior(x) lo over
    the others. Let m of the products prior(x) hi, in descending order, lie above the largest prior(x) lo. The
    i-th of them is the largest with probability q (1 - q)^(i - 1), and with (1 - q)^m none is. (If the
    likeliest value has a 1, its prior lo is not among the others, but its prior hi is above it anyway.)
    Fakes of no value mix 1 into hi and lo. Cost O(domain_size log domain_size).
    """
    belief = _checked(prior, domain_size=channel.domain_size)
    if isinstance(channel, GrrChannel) or (isinstance(channel, FakedChannel) and channel.fake == "code"):
        return _of_codes(float(channel.p), float(channel.q), prior=belief)
    share, answer = (
        (float(channel.share), channel.answer) if isinstance(channel, FakedChannel) else (1.0, channel)
    )
    if isinstance(channel, FakedChannel) and channel.fake != "no value":
        raise LdpError(f"fakes must be codes or of no value, got {channel.fake!r}")
    p, q = float(answer.p), float(answer.q)
    hit, miss = share * p / q + 1 - share, share * (1 - p) / (1 - q) + 1 - share
    return _of_bits(hit, miss, q=q, prior=belief)


def largest_success(ratio: float, *, prior: float) -> float:
    """Most that a guess can succeed after anything that a promise allows, whatever else the attacker knows.

    Parameters
    ----------
    ratio : float; largest probability ratio, e to the epsilon of the promise; at least 1
    prior : float; probability of the likeliest value before, in [0, 1]

    Raises
    ------
    LdpError : ratio is below 1, or prior outside [0, 1]

    Notes
    -----
    Odds change by at most the ratio: ratio prior / (ratio prior + 1 - prior). GRR with even priors does it.
    """
    if not (ratio >= 1 and 0 <= prior <= 1):
        raise LdpError(f"ratio must be >= 1 and prior in [0, 1], got {ratio} and {prior}")
    return prior / (prior + (1 - prior) / ratio)


def _of_codes(p: float, q: float, *, prior: Floats) -> float:
    return float(np.maximum(prior * p, prior.max() * q).sum())


def _of_bits(hit: float, miss: float, *, q: float, prior: Floats) -> float:
    without = miss * prior.max()
    above = np.sort(hit * prior)[::-1]
    above = above[above > without]
    none_before = (1 - q) ** np.arange(above.size)
    return float((above * q * none_before).sum() + without * (1 - q) ** above.size)


def _checked(prior: Sequence[float] | Floats, *, domain_size: int) -> Floats:
    belief = np.asarray(prior, np.float64)
    if belief.shape != (domain_size,):
        raise LdpError(f"prior must have shape ({domain_size},), got {belief.shape}")
    if not (np.isfinite(belief).all() and belief.min() >= 0 and abs(belief.sum() - 1) < 1e-9):
        raise LdpError(f"prior must be probabilities with sum 1, got {belief.sum()} in all")
    return belief
