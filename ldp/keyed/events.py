"""Keys of events: the content of a row, and which of the equal rows of a file it is.

Equal rows get different keys, so that they never share bits. A row that is sent again, in the same file or in
another one with as many equal rows, has the key that it had, so that it is recognised.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ldp.errors import LdpError
from ldp.kernels.entropy import EVENT, KeyedPrf

Words = NDArray[np.uint64]

_LOW = np.uint32(2**24 - 1)
_BITS = np.uint32(24)
_OF_PART, _OF_OCCURRENCE = 0, 1  # counters of the keyed block
MAX_EQUAL = 2**24 - 1


def content_keys(names: Words, parts: Sequence[NDArray[np.integer]], *, prf: KeyedPrf) -> Words:
    """Key of each row's content.

    Parameters
    ----------
    names : ndarray of uint64, shape (n,); pseudonyms of what names the rows, zeros without such a column
    parts : sequence of ndarrays of unsigned integers below 2**32, shape (n,); everything else that a row says
    prf : KeyedPrf; of a subkey for nothing else

    Returns
    -------
    ndarray of uint64, shape (n,); two different contents share one with a probability of 2**-64 a part

    Notes
    -----
    A chain: the key so far is the pseudonym of the next keyed block. Cost: two AES blocks a part.
    """
    keys = names
    for place, part in enumerate(parts):
        whole = part.astype(np.uint32)
        for half, values in enumerate((whole & _LOW, whole >> _BITS)):
            fields = {"purpose": EVENT, "indicator": place, "plan_version": half}
            keys = prf.words(keys, values=values, counter=_OF_PART, **fields)[:, 0]
    return keys


def event_keys(contents: Words, *, prf: KeyedPrf) -> Words:
    """Key of each event, from the keys of the contents of a file's rows.

    Parameters
    ----------
    contents : ndarray of uint64, shape (n,); in any order
    prf : KeyedPrf; as of `content_keys`

    Returns
    -------
    ndarray of uint64, shape (n,); the i-th of equal rows has the key of the number i

    Raises
    ------
    LdpError : more than 2**24 - 1 rows are equal
    """
    numbers = occurrence_numbers(contents)
    if numbers.size and int(numbers.max()) > MAX_EQUAL:
        raise LdpError(f"equal rows must be at most {MAX_EQUAL}, got {numbers.max()}")
    fields = {"purpose": EVENT, "indicator": 0, "plan_version": 0}
    return prf.words(contents, values=numbers, counter=_OF_OCCURRENCE, **fields)[:, 0]


def occurrence_numbers(contents: Words) -> NDArray[np.uint32]:
    """Number of each row among its equals, from 1, in the order of the rows; uint32, shape (n,)."""
    order = np.argsort(contents, kind="stable")
    ordered = contents[order]
    is_first = np.ones(len(ordered), np.bool_)
    is_first[1:] = ordered[1:] != ordered[:-1]
    places = np.arange(len(ordered))
    numbers = np.empty(len(ordered), np.uint32)
    numbers[order] = places - np.maximum.accumulate(np.where(is_first, places, 0)) + 1
    return numbers
