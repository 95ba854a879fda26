"""Success of the best guess of a person's value by someone who sees a report, exact.

Before a report the best guess is the likeliest value, right with probability max prior. After a report y it
is the value with the largest prior(x) P(y | x), and the guess is right with probability

    sum over y of max over x of prior(x) P(y | x)          (Bayes vulnerability).

Of RS+FD, also how often anyone who sees all reports of a person tells which one is the answer.

Source: Smith, FoSSaCS 2009 (vulnerability).
"""

from collections.abc import Sequence
from math import exp, inf, lgamma, log
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.privacy.plans import ReportChannel
from ldp.protocols.channels import WORD, GrrChannel
from ldp.protocols.fake_data import FakeDataChannel
from ldp.protocols.faked_reports import FakedChannel
from ldp.protocols.numbers.threshold import ThresholdChannel
from ldp.protocols.numbers.wave import WaveChannel, chances
from ldp.protocols.partial.regions import RegionChannel, regions_of
from ldp.protocols.partial.sensitive import SensitiveChannel
from ldp.protocols.projective import ProjectiveChannel
from ldp.protocols.projective_space import DesignChannel, is_orthogonal, sums_of_codes
from ldp.protocols.repeated.question import QuestionChannel
from ldp.protocols.two_round import TwoRoundGrr

Floats = NDArray[np.float64]
Priors = Sequence[Sequence[float] | Floats]
Law = tuple[Floats, Floats]  # values, and their probabilities

STEPS: Final = 2048  # between 0 and 1, for sums of shares


def guess_success(channel: ReportChannel, *, prior: Sequence[float] | Floats) -> float:
    """Probability of guessing a person's value right after seeing her report on this indicator alone.

    Parameters
    ----------
    channel : any ReportChannel; as used for the report
    prior : sequence of float, shape (domain_size,), of a number (n_cuts + 1,), by level;
        what the attacker believes before: probabilities, sum 1

    Returns
    -------
    float; in [max prior, 1]

    Raises
    ------
    LdpError : prior is not a distribution over the values, or fakes are encodings of any value (-r)

    Notes
    -----
    Codes: the report y is true with probability p and is any one other value with q < p, so the largest is
    that of prior(y) p and q max prior(x); the likeliest value may be y itself, since p is larger.

    Bits: against a report of no one's value, whose bits are 1 with probability q independently, a report is
    hi = p / q times as likely for a value whose bit is 1, and lo = (1 - p) / (1 - q) times for one whose bit
    is 0. The best guess of a report has the largest of prior(x) hi over bits that are 1, and prior(x) lo over
    the others. Let m of the products prior(x) hi, in descending order, lie above the largest prior(x) lo. The
    i-th of them is the largest with probability q (1 - q)^(i - 1), and with (1 - q)^m none is. (If the
    likeliest value has a 1, its prior lo is not among the others, but its prior hi is above it anyway.)
    Fakes of no value mix 1 into hi and lo. Cost O(domain_size log domain_size).
    """
    if isinstance(channel, ThresholdChannel):
        return _best_of_sides(channel, _checked(prior, domain_size=channel.domain_size + 1))
    if isinstance(channel, WaveChannel):
        levels = _checked(prior, domain_size=channel.n_levels)
        return float((chances(channel) * levels).max(axis=1).sum())
    belief = _checked(prior, domain_size=channel.domain_size)
    if isinstance(channel, RegionChannel):
        return _best_in_regions(channel, belief)
    if isinstance(channel, SensitiveChannel):
        return _best_of_sensitive(channel, belief)
    is_code = isinstance(channel, FakedChannel) and channel.fake == "code"
    if isinstance(channel, GrrChannel | TwoRoundGrr) or is_code:
        return float(np.maximum(belief * float(channel.p), belief.max() * float(channel.q)).sum())
    if isinstance(channel, DesignChannel):
        return _best_of_points(channel, belief)
    share, answer = (
        (float(channel.share), channel.answer) if isinstance(channel, FakedChannel) else (1.0, channel)
    )
    if isinstance(channel, FakedChannel):
        _check_fake(channel)
    p, q = float(answer.p), float(answer.q)
    hit, miss = share * p / q + 1 - share, share * (1 - p) / (1 - q) + 1 - share
    return _mean(_best_of_bits(hit, miss, q=q, prior=belief))


def answered_success(channel: FakeDataChannel, *, priors: Priors) -> float:
    """Probability of guessing which of a person's reports is the answer, after seeing all of them.

    Parameters
    ----------
    channel : FakeDataChannel; fakes are codes or of no value
    priors : sequence of sequences of float, shape (d,) of (domain_size,); shares that the attacker knows

    Returns
    -------
    float; in [largest share, 1]. Without reports it is the largest share, 1 / d if all are equal.

    Raises
    ------
    LdpError : a prior is not a distribution, there are more or fewer than d, or fakes are of any value (-r)

    Notes
    -----
    Against a fake, a report y_j is r_j = P(y_j | j is answered) / P(y_j | fake) times as likely if it is the
    answer; the best guess has the largest share_j r_j. Summed over all reports, it is right with the mean of
    that largest one when all reports are fakes, which are independent. Codes: r = k (q + (p - q) f(y)), with
    the prior f. Bits: r = lo + (hi - lo) X, X the sum of f over the bits that are 1 with probability q; its
    law is exact for even priors, else summed on a grid of 1 / 2048 that keeps the mean (within 0.0001).
    Memoised reports: more days show nothing more. Cost O(d domain_size).
    """
    return _mean_of_largest(
        [
            (float(report.share) * values, chances)
            for report, prior in _pairs(channel, priors)
            for values, chances in [_likelihood(report, prior)]
        ]
    )


def answer_success(channel: FakeDataChannel, *, priors: Priors) -> float:
    """Probability of guessing which report is the answer, and the true value of it, after seeing all.

    Takes what `answered_success` takes, and raises what it raises; without reports the best guess is right
    with the largest product of a share and a probability of its prior. Exact.
    """
    laws = []
    for report, prior in _pairs(channel, priors):
        p, q, share = float(report.answer.p), float(report.answer.q), float(report.share)
        if report.fake == "code":
            best = np.maximum(prior * p, prior.max() * q) * prior.size
            laws.append((share * best, np.full(prior.size, 1 / prior.size)))
        else:
            values, chances = _best_of_bits(p / q, (1 - p) / (1 - q), q=q, prior=prior)
            laws.append((share * values, chances))
    return _mean_of_largest(laws)


def largest_success(ratio: float, *, prior: float) -> float:
    """Most that a guess can succeed after one report, from what is promised of it.

    Holds for any other knowledge, except other reports of the same person. A daily answer stays while
    the value stays: with the value of one day and the reports of two, more is guessed (`known_day_success`).
    Odds change by at most the ratio: ratio prior / (ratio prior + 1 - prior). GRR with even priors does it.

    Parameters
    ----------
    ratio : float; largest probability ratio, e to the epsilon of the promise; at least 1 (else LdpError)
    prior : float; probability of the likeliest value before, in [0, 1] (else LdpError)
    """
    if not (ratio >= 1 and 0 <= prior <= 1):
        raise LdpError(f"ratio must be >= 1 and prior in [0, 1], got {ratio} and {prior}")
    return prior / (prior + (1 - prior) / ratio)


def promised_ratio(channel: ReportChannel, ratio: float) -> float:
    """Ratio of a promise as `largest_success` takes it: infinite where reports tell something for certain."""
    return inf if isinstance(channel, RegionChannel | SensitiveChannel) else ratio


def known_day_success(channel: ReportChannel) -> float:
    """Probability of guessing a daily value right from its report, another day's report and its known value.

    Parameters
    ----------
    channel : any ReportChannel; as used for the reports; before, all values of the day in question are as
        likely, and of projective response those of the known day too

    Returns
    -------
    float; in [1 / domain_size, 1]. No epsilon bounds it: as epsilon falls to 0, it falls to
    (2 - 1 / k) / k with codes of k values (3/4 of two)

    Raises
    ------
    LdpError : fakes are encodings of any value (-r)

    Notes
    -----
    Answers are memoised: of the same value they are the same, of different values they are independent. So
    where the reports differ, the value does, and the best guess is the likeliest of the others; where they
    are the same, the best guess is the known value x. With M(y) = max P(y | v), v not x, the sum over pairs
    of reports is (1 + share (sum of M(y) - sum of P(y | x) M(y))) / k. A fake is the same on all days. For
    hashed values, with fresh noise on each day, see `_known_group_success`.
    """
    answer, share = channel, 1.0
    if isinstance(channel, FakedChannel):
        _check_fake(channel)
        answer, share = channel.answer, float(channel.share)
    k, p, q = answer.domain_size, float(answer.p), float(answer.q)
    if isinstance(answer, GrrChannel):
        others, matching = (k - 1) * p + q, k * p * q
    elif isinstance(answer, ThresholdChannel):
        # The known value tells the bit of its day: the other day's report is the same, or of the other bit.
        return (1 + p * p + q * q) / (k + 1)
    elif isinstance(answer, WaveChannel):
        return _known_level_success(answer)
    elif isinstance(answer, QuestionChannel):
        return _known_group_success(answer)
    elif isinstance(answer, RegionChannel):
        return _known_region_success(answer)
    elif isinstance(answer, SensitiveChannel):
        return _known_sensitive_success(answer)
    elif isinstance(answer, ProjectiveChannel):
        others, matching = _likeliest_of_others(answer)
    else:
        # Whether a report has none or some of the bits of the other values; then two reports that are alike.
        hit, miss, none = p / q, (1 - p) / (1 - q), (1 - q) ** (k - 1)
        others = hit * (1 - none) + miss * none
        alike = hit * ((q**2 + (1 - q) ** 2) ** (k - 1) - none**2) + miss * none**2
        matching = (p * q + (1 - p) * (1 - q)) * alike
    return (1 + share * (others - matching)) / k


def _best_in_regions(channel: RegionChannel, prior: Floats) -> float:
    """Sum over regions, each of which is known from the report, of its best guess."""
    found = 0.0
    for region in regions_of(channel):
        own = prior[region.values]
        if (share := float(own.sum())) > 0:
            found += share * guess_success(region.channel, prior=own / share)
    return found


def _best_of_sensitive(channel: SensitiveChannel, prior: Floats) -> float:
    """Sum over codes of the largest product of prior and likelihood; others than sensitive ones are true."""
    p, q, sensitive = float(channel.p), float(channel.q), np.array(channel.sensitive)
    best = float(channel.disclosed) * np.delete(prior, sensitive).sum()
    for value in sensitive.tolist():
        best += max(p * prior[value], q * np.delete(prior, value).max())
    return float(best)


def _known_sensitive_success(channel: SensitiveChannel) -> float:
    """`known_day_success` where values are disclosed, on average of the values that are known."""
    k, s = channel.domain_size, channel.n_sensitive
    p, q, open_value = float(channel.p), float(channel.q), float(channel.disclosed)
    matching = s * p * q
    of_sensitive = 1 + (s - 1) * p + q + (k - s) * open_value - matching
    of_others = 1 + s * p + (k - s - 1) * open_value - matching
    return (s * of_sensitive + (k - s) * of_others) / k**2


def _known_region_success(channel: RegionChannel) -> float:
    """`known_day_success` of reports that tell the region, on average of the values that are known.

    A known value of another region says nothing.
    """
    found = 0.0
    for own in channel.of_regions:
        share = own.domain_size / channel.domain_size
        alone = guess_success(own, prior=np.full(own.domain_size, 1 / own.domain_size))
        found += share * (share * known_day_success(own) + (1 - share) * alone)
    return found


def _known_level_success(channel: WaveChannel) -> float:
    """`known_day_success` of square waves, on average of the levels that are known."""
    of_code, k = chances(channel), channel.n_levels
    found = 0.0
    for level in range(k):
        others = np.delete(of_code, level, axis=1).max(axis=1)
        found += (1 + others.sum() - of_code[:, level] @ others) / k
    return float(found / k)


def _known_group_success(channel: QuestionChannel) -> float:
    """`known_day_success` of answers to a permanent question: it is known, and so the group of the known day.

    The reports are of that group with a chance to be both of one kept answer, or independent. The day in
    question has the known value, or any of another group in which the question has values.
    """
    g, p, q = channel.groups, float(channel.answer.p), float(channel.answer.q)
    both = _of_one_kept_answer(channel.answer)
    supported = np.rint(sums_of_codes(np.ones(channel.domain_size), channel=channel))
    others = np.count_nonzero(supported) / channel.n_questions - 1  # groups with values, but the known one
    empty = g - 1 - others
    # By the report of the known day, true or one of the others, then by that of the other day.
    true_day = max(both.true, p * q) + others * max(both.once, p * p) + empty * max(both.once, p * q)
    wrong_day = (g - 1) * max(both.once, q * q)
    wrong_day += others * max(both.same, q * p) + empty * max(both.same, q * q)
    wrong_day += (g - 2) * (others * max(both.apart, q * p) + empty * max(both.apart, q * q))
    return (true_day + wrong_day) / channel.domain_size


class _TwoReports(NamedTuple):
    """Chances of two given reports of one group: both true, one true, a wrong one twice, two wrong ones."""

    true: float
    once: float
    same: float
    apart: float


def _of_one_kept_answer(answer: GrrChannel | TwoRoundGrr) -> _TwoReports:
    if isinstance(answer, GrrChannel):
        return _TwoReports(float(answer.p), 0.0, float(answer.q), 0.0)
    g = answer.domain_size
    kept, other = float(answer.first.p), float(answer.first.q)
    p, q = float(answer.second.p), float(answer.second.q)
    return _TwoReports(
        true=kept * p * p + (g - 1) * other * q * q,
        once=kept * p * q + other * q * p + (g - 2) * other * q * q,
        same=kept * q * q + other * (p * p + (g - 2) * q * q),
        apart=kept * q * q + other * (2 * p * q + (g - 3) * q * q),
    )


def _best_of_sides(channel: ThresholdChannel, prior: Floats) -> float:
    """Sum over cuts and bits of the largest product of prior and likelihood."""
    below, above = np.maximum.accumulate(prior)[:-1], np.maximum.accumulate(prior[::-1])[::-1][1:]
    p, q = float(channel.p), float(channel.q)
    best = np.maximum(p * below, q * above) + np.maximum(q * below, p * above)
    return float(best @ np.array(channel.shares, np.float64) / WORD)


def _best_of_points(channel: DesignChannel, prior: Floats) -> float:
    """Sum over codes of the largest product of prior and likelihood."""
    _, _, inside, outside = _likelihoods(channel)
    best = np.full(channel.n_codes, prior.max() * outside)
    for value in np.argsort(-prior, kind="stable"):
        if prior[value] * inside <= best.min():
            break
        hit = is_orthogonal(int(value), channel=channel)
        best[hit] = np.maximum(best[hit], prior[value] * inside)
    return float(best.sum())


def _likelihoods(channel: DesignChannel) -> tuple[int, int, float, float]:
    """Values, codes of each, and the probability of one of its codes, and of one of the other codes."""
    size, p = channel.support_size, float(channel.p)
    return channel.domain_size, size, p / size, (1 - p) / (channel.n_codes - size)


def _likeliest_of_others(channel: ProjectiveChannel) -> tuple[float, float]:
    """Sums over codes of M(y), and of P(y | x) M(y), as of `known_day_success`; means over known values x."""
    k, size, inside, outside = _likelihoods(channel)
    supported = np.rint(sums_of_codes(np.ones(k), channel=channel))
    # Codes of x that support another value too, and codes that support other values only.
    shared, elsewhere = float(supported[supported > 1].sum()) / k, np.count_nonzero(supported) - size
    none = channel.n_codes - size - elsewhere
    others = inside * (shared + elsewhere) + outside * (size - shared + none)
    matching = inside * (inside * shared + outside * (size - shared))
    return others, matching + outside * (inside * elsewhere + outside * none)


def _best_of_bits(hit: float, miss: float, *, q: float, prior: Floats) -> Law:
    """Largest product of prior and likelihood, of bits that are 1 with probability q."""
    without = miss * prior.max()
    above = np.sort(hit * prior)[::-1]
    above = above[above > without]
    none_before = (1 - q) ** np.arange(above.size + 1)
    return np.append(above, without), none_before * np.append(np.full(above.size, q), 1)


def _likelihood(report: FakedChannel, prior: Floats) -> Law:
    """Return how much likelier a fake would be as an answer."""
    p, q = float(report.answer.p), float(report.answer.q)
    if report.fake == "code":
        return prior.size * (q + (p - q) * prior), np.full(prior.size, 1 / prior.size)
    hit, miss = p / q, (1 - p) / (1 - q)
    sums, chances = _sums_of_shares(prior, q=q)
    return miss + (hit - miss) * sums, chances


def _sums_of_shares(prior: Floats, *, q: float) -> Law:
    """Sum of the shares whose bit is 1, each with probability q."""
    k = prior.size
    if prior.max() == prior.min():
        return np.arange(k + 1) / k, np.array([_binomial(n, k, q=q) for n in range(k + 1)])
    # Rounding up and down moves the sum by at most sqrt(k) / 2 steps in standard deviation: twice is enough.
    chances = np.zeros(min(STEPS + k, 2 * STEPS) + 2)
    chances[0] = 1.0
    for share in prior[prior > 0] * STEPS:
        whole = int(share)
        upper = share - whole
        moved = np.zeros_like(chances)
        moved[whole:] = (1 - upper) * chances[: chances.size - whole]
        moved[whole + 1 :] += upper * chances[: chances.size - whole - 1]
        chances = (1 - q) * chances + q * moved
    return np.arange(chances.size) / STEPS, chances


def _binomial(n: int, k: int, *, q: float) -> float:
    orders = lgamma(k + 1) - lgamma(n + 1) - lgamma(k - n + 1)
    return exp(orders + n * log(q) + (k - n) * log(1 - q))


def _mean_of_largest(laws: Sequence[Law]) -> float:
    """Mean of the largest of independent variables."""
    points = np.unique(np.concatenate([values for values, _ in laws]))
    below = np.ones(points.size)
    for values, odds in laws:
        order = np.argsort(values)
        sums = np.append(0.0, np.cumsum(odds[order]))
        below *= sums[np.searchsorted(values[order], points, side="right")]
    return _mean((points, np.diff(below, prepend=0.0)))


def _mean(law: Law) -> float:
    values, chances = law
    return float(values @ chances)


def _pairs(channel: FakeDataChannel, priors: Priors) -> list[tuple[FakedChannel, Floats]]:
    if len(priors) != len(channel.reports):
        raise LdpError(f"priors must be of {len(channel.reports)} indicators, got {len(priors)}")
    for report in channel.reports:
        _check_fake(report)
    return [
        (report, _checked(prior, domain_size=report.domain_size))
        for report, prior in zip(channel.reports, priors, strict=True)
    ]


def _check_fake(report: FakedChannel) -> None:
    if report.fake == "any value":
        raise LdpError(f"fakes must be codes or of no value, got {report.fake!r}")


def _checked(prior: Sequence[float] | Floats, *, domain_size: int) -> Floats:
    belief = np.asarray(prior, np.float64)
    if belief.shape != (domain_size,):
        raise LdpError(f"prior must have shape ({domain_size},), got {belief.shape}")
    if not (np.isfinite(belief).all() and belief.min() >= 0 and abs(belief.sum() - 1) < 1e-9):
        raise LdpError(f"prior must be probabilities with sum 1, got {belief.sum()} in all")
    return belief
