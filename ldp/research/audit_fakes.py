"""Targets of the audit whose reports are answers among fakes (RS+FD, RS+RFD)."""

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ldp.kernels.entropy import KeyedPrf
from ldp.keyed.fakes import data as fake_data
from ldp.protocols.channels import Unit
from ldp.protocols.fake_data import FakeDataChannel, PriorFakeDataChannel
from ldp.protocols.faked_reports import FakedChannel, PriorFakedChannel
from ldp.research.audit import ALL_ASKED, Target, has_bit

Channel = FakeDataChannel | PriorFakeDataChannel
Pairs = Sequence[tuple[int, int]]
Table = NDArray[np.int64]


def fake_target(mechanism: str, channel: Channel, *, unit: Unit) -> Target:
    """Target of all reports of a subscriber.

    Parameters
    ----------
    mechanism : str; for the result
    channel : FakeDataChannel or PriorFakeDataChannel
    unit : "profile" (all values differ) or "attribute" (only the one that loses most)

    Notes
    -----
    The inputs that lose most: of the values that differ, the fakes hide one least. The event is about how
    many reports support the values of the one input and not of the other, and how many support a value that
    both share: the most telling one is that all fit one input, none the other, and none a shared value.
    """
    reports: Sequence[FakedChannel | PriorFakedChannel] = channel.reports
    losses = channel.ratios_attribute
    differing = range(len(reports)) if unit == "profile" else [losses.index(max(losses))]
    pairs = []
    for index, report in enumerate(reports):
        hidden, other = _rarest_and_most(report)
        pairs.append((hidden, other if index in differing else hidden))
    return Target(
        mechanism=mechanism,
        unit=unit,
        epsilon_certified=channel.epsilon_profile if unit == "profile" else channel.epsilon_attribute,
        observe=partial(_observe, channel, pairs),
        summarise=partial(_summarise, channel, pairs),
        beside="for a value of both",
    )


def _rarest_and_most(report: FakedChannel | PriorFakedChannel) -> tuple[int, int]:
    """Values that fakes stand for least and most often; two different ones."""
    if isinstance(report, FakedChannel):
        return 0, 1
    rarest = report.prior.index(min(report.prior))
    others = [weight if value != rarest else -1 for value, weight in enumerate(report.prior)]
    return rarest, others.index(max(others))


def _observe(
    channel: Channel, pairs: Pairs, prf: KeyedPrf, pseudonyms: NDArray[np.uint64], side: int
) -> Table:
    sent = fake_data.answers(
        [np.full(pseudonyms.shape[0], pair[side], np.int32) for pair in pairs],
        pseudonyms=pseudonyms,
        prf=prf,
        channel=channel,
        plan_version=1,
    )
    return np.column_stack([reports.astype(np.int64) for reports in sent])


def _summarise(channel: Channel, pairs: Pairs, table: Table) -> Table:
    reports: Sequence[FakedChannel | PriorFakedChannel] = channel.reports
    summary = np.zeros((table.shape[0], 4), np.int64)
    summary[:, 0] = ALL_ASKED
    start = 0
    for pair, report in zip(pairs, reports, strict=True):
        is_code = report.fake == "code"
        width = 1 if is_code else -(-report.domain_size // 64)
        sent = table[:, start : start + width]
        start += width
        first, second = (sent[:, 0] == value if is_code else has_bit(sent, value) for value in pair)
        summary[:, 1] += first & ~second
        summary[:, 2] += second & ~first
        summary[:, 3] += first & second & (pair[0] == pair[1])
    return summary
