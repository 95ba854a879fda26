"""Limits of the people of all edges and windows at once, from reports, small cells and presence noise.

Edges and windows are in one row, edges first. Someone is on each edge of her days and in many windows, so
limits depend on each other; each misses with its part of the stated probability (Bonferroni), however they
do.

With p and q of the channel, reports that support a value are a sum of independent trials, sampled subscribers
or not; beyond its mean, such a sum has at most the tails of a binomial number with the same mean (Hoeffding,
Annals of Mathematical Statistics 1956). So limits are those of Clopper and Pearson, which hold for few
reports, too. With presence noise they are those of `noisy_frequencies` times the limits of the noisy
visitors.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError, NoReportsError
from ldp.estimation.noisy_estimators import UnionNoise, noisy_frequencies, noisy_total
from ldp.estimation.scenario.flows import Counts, Limits, hidden_windows, places
from ldp.estimation.scenario.published import UnionTable
from ldp.estimation.windows import IndicatorTallies
from ldp.protocols.channels import GrrChannel
from ldp.protocols.geometric import GeometricChannel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class CellNoise:
    """Presence noise of each gap cell: of visitors, and of answers by value."""

    visitors: GeometricChannel
    answers: GeometricChannel


def n_cells(days: int) -> Ints:
    """Gap cells that each edge and window is a sum of: what its noise grows with."""
    (_, end), (first, last) = places(days).edges, places(days).windows
    return np.concatenate([np.where(end > days, days, 1), first * (last - first + 1)])


def visitor_limits(
    tally: Counts, *, small_cell: int = 0, noise: GeometricChannel | None = None, miss: float = 0.0
) -> Limits:
    """Limits of all visitors, shape (edges + windows,); equal where they are known.

    Parameters
    ----------
    tally : ndarray of int64, shape (days + 1, days + 1)
    small_cell : int; windows with fewer visitors are not used
    noise : of each cell; then each pair of limits misses with probability `miss`
    """
    days = tally.shape[-1] - 1
    where = places(days)
    if noise is not None:
        totals = [
            noisy_total(int(count), noise=UnionNoise(channel=noise, n_cells=int(n)), level=1 - miss)
            for count, n in zip(where.of_tally(tally), n_cells(days), strict=True)
        ]
        ends = np.maximum([(total.ci_low, total.ci_high) for total in totals], 0.0)
        ends[~where.is_taken] = 0
        return Limits(ends[:, 0], ends[:, 1])
    hidden = hidden_windows(tally, small_cell=small_cell)
    unions = UnionTable.of_tally(tally, hidden=hidden, small_cell=small_cell).row
    up, down = np.maximum(where.made_of, 0), np.maximum(-where.made_of, 0)
    low, high = up @ unions.low - down @ unions.high, up @ unions.high - down @ unions.low
    return Limits(
        np.concatenate([np.maximum(low, 0), unions.low]), np.concatenate([np.maximum(high, 0), unions.high])
    )


def category_limits(
    tallies: IndicatorTallies, *, visitors: Limits, noise: GeometricChannel | None, miss: float
) -> Limits:
    """Limits of the visitors of each category, shape (domain_size, edges + windows); each misses with `miss`.

    Parameters
    ----------
    visitors : Limits; of all
    noise : of the answers, if they have presence noise
    """
    where = places(tallies.visitors.shape[-1] - 1)
    counts, n_reports = where.of_tally(tallies.counts), where.of_tally(tallies.n_reports)
    if noise is not None:
        low, high = _noisy_shares(counts, visitors, tallies=tallies, noise=noise, miss=miss)
        return Limits(low * visitors.low, high * visitors.high)
    low, high = _exact_shares(counts, n_reports, tallies=tallies, miss=miss)
    is_known = visitors.low == visitors.high  # reports of what is hidden are not used
    return Limits(np.where(is_known, low, 0) * visitors.low, np.where(is_known, high, 1) * visitors.high)


def _exact_shares(
    counts: Counts, n_reports: Counts, *, tallies: IndicatorTallies, miss: float
) -> tuple[Floats, Floats]:
    """Clopper and Pearson's limits of the mean of a report, as shares."""
    from scipy.special import betaincinv  # noqa: PLC0415 - 0.1 s for every use of ldp

    p, q = float(tallies.channel.p), float(tallies.channel.q)
    counts = np.maximum(counts, 0)  # below 0 only where a daily indicator has no value: at the end
    others = np.maximum(n_reports - counts, 0)
    low = betaincinv(np.maximum(counts, 1), others + 1, miss / 2)
    high = betaincinv(counts + 1, np.maximum(others, 1), 1 - miss / 2)
    low, high = np.where(counts > 0, low, 0), np.where(others > 0, high, 1)
    return np.clip((low - q) / (p - q), 0, 1), np.clip((high - q) / (p - q), 0, 1)


def _noisy_shares(
    counts: Counts, visitors: Limits, *, tallies: IndicatorTallies, noise: GeometricChannel, miss: float
) -> tuple[Floats, Floats]:
    """Limits of shares from noisy counts; all of [0, 1] where answers cannot be distinguished from noise."""
    if not isinstance(tallies.channel, GrrChannel):
        raise LdpError("answers with presence noise must be given by GRR, got another channel")
    low, high = np.zeros(counts.shape), np.ones(counts.shape)
    for place, n in enumerate(n_cells(tallies.visitors.shape[-1] - 1)):
        try:
            found = noisy_frequencies(
                counts[:, place],
                n_visitors=int(visitors.high[place]),
                noise=UnionNoise(channel=noise, n_cells=int(n)),
                channel=tallies.channel,
                level=1 - miss,
            )
        except NoReportsError:
            continue
        low[:, place], high[:, place] = np.clip(found.ci_low, 0, 1), np.clip(found.ci_high, 0, 1)
    return low, high
