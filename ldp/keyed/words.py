"""Reports as they are stored: one or more words of 16 bits, none of which is NO_ANSWER.

GRR and projective response: the code. Unary encoding: 15 bits to a word, that of the first value lowest.
Without a report all words are NO_ANSWER. So anyone who stores and merges reports need not know their meaning.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.kernels import words as kernels_words
from ldp.privacy.plans import AnswerChannel
from ldp.privacy.report_words import n_words
from ldp.protocols.unary import UnaryChannel


def to_words(
    reports: NDArray[Any], *, values: NDArray[np.int32], channel: AnswerChannel
) -> NDArray[np.uint16]:
    """Reports of a mechanism as words.

    Parameters
    ----------
    reports : ndarray, shape (n,) of uint16 codes, or (n, ceil(domain_size / 64)) of uint64 bits; not modified
    values : ndarray of int32, shape (n,); -1 where there is no report
    channel : AnswerChannel; of the answers

    Returns
    -------
    ndarray of uint16, shape (n, n_words)

    Raises
    ------
    LdpError : reports do not fit this channel
    """
    is_code = not isinstance(channel, UnaryChannel)
    dtype = np.uint16 if is_code else np.uint64
    shape = values.shape if is_code else (values.shape[0], -(-channel.domain_size // 64))
    if reports.dtype != dtype or reports.shape != shape:
        raise LdpError(f"reports must be {dtype.__name__} of {shape}, got {reports.dtype} of {reports.shape}")
    if is_code:
        return reports.reshape(-1, 1)
    words = np.empty((reports.shape[0], n_words(channel)), np.uint16)
    kernels_words.pack_words(values, reports, words)
    return words
