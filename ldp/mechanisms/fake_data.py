"""RS+FD[GRR] with keyed bits: one lasting report per subscriber and indicator, of which one is an answer."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ldp.channels import GrrChannel
from ldp.entropy import FAKE_DATA, KeyedPrf
from ldp.errors import LdpError
from ldp.families.fake_data import FakeDataChannel
from ldp.kernels import NO_ANSWER
from ldp.mechanisms import grr
from ldp.mechanisms.multidim import choose_indicator

_ROWS_AT_ONCE = 2**18

Values = NDArray[np.int32]
Words = NDArray[np.uint64]


def answers(
    values: Sequence[Values], *, pseudonyms: Words, prf: KeyedPrf, channel: FakeDataChannel, plan_version: int
) -> tuple[NDArray[np.uint16], ...]:
    """Reports of each subscriber on all indicators; the same arguments always give the same reports.

    Parameters
    ----------
    values : sequence of ndarray of int32, shape (n,), one per indicator in plan order; true codes in
        [0, domain_size), or -1 for no value; not modified
    pseudonyms : ndarray of uint64, shape (n,)
    prf : KeyedPrf; source of the bits
    channel : FakeDataChannel; of GRR with equal shares
    plan_version : int; in [1, 255]

    Returns
    -------
    tuple of ndarray of uint16, shape (n,); NO_ANSWER where the value is -1, be it the answer or a fake

    Raises
    ------
    LdpError : the channel is another one, shapes differ, or a value is out of range

    Notes
    -----
    The answer is that of GRR alone. A fake does not depend on the value: it stays when the value changes,
    so a report that changes is the answer. The losses of the channel are therefore those of values that do
    not change, answered under one plan. Cost: d + 2 AES blocks per subscriber.
    Source: Arcolezi et al., CIKM 2021 (RS+FD).
    """
    channels = _grr_channels(channel, n_values=len(values))
    for column, answer in zip(values, channels, strict=True):
        grr.check_values(column, pseudonyms=pseudonyms, domain_size=answer.domain_size)
    asked = choose_indicator(pseudonyms, prf=prf, d=len(channels))
    reports = []
    for indicator, (column, answer) in enumerate(zip(values, channels, strict=True)):
        fields = {"indicator": indicator, "plan_version": plan_version}
        drawn = prf.below(pseudonyms, bound=answer.domain_size, purpose=FAKE_DATA, value=0, **fields)
        codes = drawn.astype(np.uint16)
        rows = np.flatnonzero(asked == indicator)
        codes[rows] = grr.answers(
            column[rows], pseudonyms=pseudonyms[rows], prf=prf, channel=answer, **fields
        )
        codes[column < 0] = NO_ANSWER
        reports.append(codes)
    return tuple(reports)


def support_counts(
    values: Sequence[Values], *, pseudonyms: Words, prf: KeyedPrf, channel: FakeDataChannel, plan_version: int
) -> tuple[NDArray[np.int64], ...]:
    """Reports that support each value, per indicator, straight from the values.

    Takes what `answers` takes, and raises what it raises.

    Returns
    -------
    tuple of ndarray of int64, shape (domain_size,); what `pure_frequencies` takes for `channel.reports`

    Notes
    -----
    Reports are made, counted and forgotten in parts: memory does not grow with n.
    """
    counts = [
        np.zeros(answer.domain_size, np.int64) for answer in _grr_channels(channel, n_values=len(values))
    ]
    for column in values:
        if column.shape != pseudonyms.shape:
            raise LdpError(f"values must have shape {pseudonyms.shape}, got {column.shape}")
    for start in range(0, pseudonyms.shape[0], _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        columns = [column[part] for column in values]
        reports = answers(
            columns, pseudonyms=pseudonyms[part], prf=prf, channel=channel, plan_version=plan_version
        )
        for i, codes in enumerate(reports):
            counts[i] += np.bincount(codes[codes != NO_ANSWER], minlength=counts[i].size)
    return tuple(counts)


def _grr_channels(channel: FakeDataChannel, *, n_values: int) -> list[GrrChannel]:
    """Channels of the answers, for a mechanism that asks for each indicator equally often."""
    d = len(channel.reports)
    if n_values != d:
        raise LdpError(f"values must be of {d} indicators, got {n_values}")
    found = []
    for report in channel.reports:
        if not isinstance(report.answer, GrrChannel):
            raise LdpError(f"channel must be of GRR, got {type(report.answer).__name__}")
        if report.share != Fraction(1, d):
            raise LdpError(f"shares must be 1/{d} each, got {report.share}")
        found.append(report.answer)
    return found
