"""Reports for each day on values that last: a kept answer with keyed bits, and fresh keyed noise on it.

The answer is that of one round, from the block of purpose ANSWER with the value, and is stored. The report of
a day draws from that of purpose SECOND_ROUND with value 0 and, in the upper 6 bits of the counter, the day:
it follows from answer and day alone, so nothing but the answer need be known to repeat or withdraw it.
"""

from dataclasses import replace
from typing import Any, Final, Unpack

import numpy as np
from numpy.typing import NDArray

from ldp.codes import NO_ANSWER, WORD_BITS
from ldp.errors import LdpError
from ldp.kernels.entropy import SECOND_ROUND, KeyedPrf, PlanFields
from ldp.keyed import grr, lanes, oracles
from ldp.keyed.two_round import MAX_REPORT, REPORT_SHIFT
from ldp.keyed.words import to_words
from ldp.protocols.repeated.question import QuestionChannel
from ldp.protocols.repeated.renewed import RenewedChannel, rounds_of
from ldp.protocols.two_round import TwoRoundGrr
from ldp.protocols.two_round_unary import TwoRoundUnary
from ldp.protocols.unary import UnaryChannel

Words = NDArray[np.uint64]
Codes = NDArray[np.uint16]

_GROUP: Final = lanes.LANES // WORD_BITS  # words whose bits are drawn together
_SHIFTS: Final = np.arange(_GROUP, dtype=np.uint64) * np.uint64(WORD_BITS)


def kept_answers(
    values: NDArray[np.int32],
    *,
    pseudonyms: Words,
    prf: KeyedPrf,
    channel: RenewedChannel,
    **fields: Unpack[PlanFields],
) -> Codes:
    """Lasting answer of each subscriber, as words; arguments and errors as of `oracles.oracle_answers`.

    Returns
    -------
    ndarray of uint16, shape (n, words); as `ldp.keyed.words` says
    """
    first: Any = channel
    if isinstance(channel, QuestionChannel):
        first = replace(channel, answer=_rounds(channel).first)
    else:
        first = channel.first
    asked: dict[str, Any] = {"pseudonyms": pseudonyms, "prf": prf, "channel": first, **fields}
    return to_words(oracles.oracle_answers(values, **asked), values=values, channel=first)


def day_reports(
    kept: Codes,
    *,
    pseudonyms: Words,
    prf: KeyedPrf,
    channel: RenewedChannel,
    day: int,
    **fields: Unpack[PlanFields],
) -> Codes:
    """Report of each subscriber on a day, as words; the same arguments always give the same reports.

    Parameters
    ----------
    kept : ndarray of uint16, shape (n, words); as of `kept_answers`; not modified
    day : int; in [0, 63]; the noise of each is independent

    Returns
    -------
    ndarray of uint16, shape (n, words); NO_ANSWER without a kept answer

    Raises
    ------
    LdpError : the day is out of range
    """
    if not 0 <= day <= MAX_REPORT:
        raise LdpError(f"day must be in [0, {MAX_REPORT}], got {day}")
    source: dict[str, Any] = {"pseudonyms": pseudonyms, "prf": prf, "purpose": SECOND_ROUND, **fields}
    counter = day << REPORT_SHIFT
    if isinstance(channel, TwoRoundUnary):
        return _day_bits(kept, channel=channel.second, counter=counter, **source)
    rounds, codes = _rounds(channel), np.ascontiguousarray(kept[:, 0])
    # Of a hash the cell is drawn again, and the code of the hash stays.
    cells = np.where(codes == NO_ANSWER, codes, codes % np.uint16(rounds.domain_size))
    source["keyed"] = np.zeros(len(kept), np.uint32)
    reports = grr.draw(cells, channel=rounds.second, counter=counter, **source)
    return np.where(codes == NO_ANSWER, codes, codes - cells + reports).reshape(-1, 1)


def _rounds(channel: TwoRoundGrr | QuestionChannel) -> TwoRoundGrr:
    rounds = rounds_of(channel)
    if not isinstance(rounds, TwoRoundGrr):
        raise LdpError(f"channel must have two rounds, got {channel}")
    return rounds


def _day_bits(kept: Codes, *, channel: UnaryChannel, counter: int, **source: Any) -> Codes:
    """Noisy bits of kept ones, four words of 15 bits at a time."""
    reports = np.full(kept.shape, NO_ANSWER, np.uint16)
    there = np.flatnonzero(kept[:, 0] != NO_ANSWER)
    source["pseudonyms"] = source["pseudonyms"][there]
    for group, start in enumerate(range(0, kept.shape[1], _GROUP)):
        words = kept[there, start : start + _GROUP].astype(np.uint64)
        shifts = _SHIFTS[: words.shape[1]]
        n_bits = min(channel.domain_size - WORD_BITS * start, _GROUP * WORD_BITS)
        bits = lanes.draw(
            np.bitwise_or.reduce(words << shifts, axis=1),
            drawn=np.full(len(there), 2**n_bits - 1, np.uint64),
            digits=lanes.Digits.of(channel, lanes=n_bits),
            keyed=0,
            counter=counter + group * lanes.BLOCKS,
            **source,
        )
        mask = np.uint64(2**WORD_BITS - 1)
        reports[there, start : start + _GROUP] = (bits[:, np.newaxis] >> shifts & mask).astype(np.uint16)
    return reports
