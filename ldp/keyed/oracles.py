"""Any pure frequency oracle by its channel: reports, and the counts that `pure_frequencies` takes."""

from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from ldp.codes import NO_ANSWER
from ldp.errors import LdpError
from ldp.kernels.entropy import KeyedPrf, PlanFields, slices
from ldp.keyed import grr, hashing, lanes, subset, unary
from ldp.keyed.designs import hadamard, projective, question
from ldp.protocols.channels import GrrChannel
from ldp.protocols.hadamard import HadamardChannel
from ldp.protocols.hashing import HashChannel
from ldp.protocols.projective import ProjectiveChannel
from ldp.protocols.repeated.question import QuestionChannel
from ldp.protocols.subset import SubsetChannel
from ldp.protocols.unary import UnaryChannel

OracleChannel = (
    GrrChannel
    | UnaryChannel
    | HashChannel
    | SubsetChannel
    | HadamardChannel
    | ProjectiveChannel
    | QuestionChannel
)

_BYTES_AT_ONCE = 2**24
_MODULES: dict[type, Any] = {
    GrrChannel: grr,
    UnaryChannel: unary,
    HashChannel: hashing,
    SubsetChannel: subset,
    HadamardChannel: hadamard,
    ProjectiveChannel: projective,
    QuestionChannel: question,
}


def oracle_answers(
    values: NDArray[np.int32],
    *,
    pseudonyms: NDArray[np.uint64],
    prf: KeyedPrf,
    channel: OracleChannel,
    **fields: Unpack[PlanFields],
) -> Any:
    """Reports of each subscriber, as `answers` of the channel's mechanism gives them.

    Parameters
    ----------
    channel : OracleChannel
    values and all others : as of `grr.answers`

    Returns
    -------
    uint16 codes or columns, shape (n,); uint64 bits, shape (n, ceil(domain_size / 64)); or HashReports

    Raises
    ------
    LdpError : shapes differ, a value is out of range, or the channel is none of these
    """
    return _module(channel).answers(values, pseudonyms=pseudonyms, prf=prf, channel=channel, **fields)


def support_counts(
    values: NDArray[np.int32],
    *,
    pseudonyms: NDArray[np.uint64],
    prf: KeyedPrf,
    channel: OracleChannel,
    **fields: Unpack[PlanFields],
) -> NDArray[np.int64]:
    """Reports that support each value, straight from the values; those of -1 make no report.

    Takes what `oracle_answers` takes, and raises what it raises.

    Returns
    -------
    ndarray of int64, shape (domain_size,)

    Notes
    -----
    Reports are made, counted and forgotten in parts: memory does not grow with n * domain_size.
    """
    if isinstance(channel, UnaryChannel):
        return unary.support_counts(values, pseudonyms=pseudonyms, prf=prf, channel=channel, **fields)
    module = _module(channel)
    grr.check_values(values, pseudonyms=pseudonyms, domain_size=channel.domain_size)
    out = np.zeros(channel.domain_size, np.int64)
    rows = (
        max(1, _BYTES_AT_ONCE // channel.domain_size)
        if isinstance(channel, SubsetChannel)
        else _BYTES_AT_ONCE
    )
    for part in slices(values.shape[0], rows=rows):
        reports = module.answers(
            values[part], pseudonyms=pseudonyms[part], prf=prf, channel=channel, **fields
        )
        out += count_support(reports, channel=channel)
    return out


def count_support(reports: Any, *, channel: OracleChannel) -> NDArray[np.int64]:
    """Reports that support each value, from what `oracle_answers` returned.

    Returns
    -------
    ndarray of int64, shape (domain_size,)

    Raises
    ------
    LdpError : the reports do not fit the channel
    """
    match channel:
        case GrrChannel():
            codes = reports[reports != NO_ANSWER]
            counts = np.bincount(codes, minlength=channel.domain_size)
        case HashChannel():
            return hashing.count_support(reports, channel=channel)
        case HadamardChannel():
            return hadamard.count_support(reports, channel=channel)
        case ProjectiveChannel():
            return projective.count_support(reports, channel=channel)
        case QuestionChannel():
            return question.count_support(reports, channel=channel)
        case _:
            _check_bits(reports, domain_size=channel.domain_size)
            return lanes.count_support(reports, domain_size=channel.domain_size)
    if counts.shape != (channel.domain_size,):
        raise LdpError(f"reports must be of {channel.domain_size} values, got {counts.shape[0]}")
    return counts.astype(np.int64)


def _check_bits(reports: Any, *, domain_size: int) -> None:
    n_words = -(-domain_size // lanes.LANES)
    if reports.dtype != np.uint64 or reports.ndim != 2 or reports.shape[1] != n_words:
        raise LdpError(
            f"reports must be uint64 of shape (n, {n_words}), got {reports.dtype} of {reports.shape}"
        )
    used = domain_size % lanes.LANES
    if used and np.any(reports[:, -1] >> np.uint64(used)):
        raise LdpError(f"reports must be of {domain_size} values, got bits of others")


def _module(channel: OracleChannel) -> Any:
    if type(channel) not in _MODULES:
        raise LdpError(f"channel must be one of a pure frequency oracle, got {type(channel).__name__}")
    return _MODULES[type(channel)]
