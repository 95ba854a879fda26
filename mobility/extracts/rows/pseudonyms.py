"""Pseudonyms: what is left of an identifier, its keyed PRF; and who of them has opted out."""

from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from ldp.kernels.cmac import cmac64_of
from mobility.extracts.readers import Texts
from mobility.extracts.rows.lookups import trimmed

_MAX_BITS = 20  # of the index: 8 MiB at most


class Pseudonyms(NamedTuple):
    """Per row, shape (n,): the pseudonym, and whether there is no subscriber at all."""

    values: NDArray[np.uint64]
    is_empty: NDArray[np.bool_]


def pseudonyms_of(texts: Texts, key: bytes) -> Pseudonyms:
    """AES-CMAC of each row's trimmed bytes under `key` (16 bytes), its first 8 bytes."""
    texts = trimmed(texts)
    values = cmac64_of(key, texts.data, texts.begins, texts.ends)
    is_empty = texts.begins == texts.ends
    if texts.of_row is None:
        return Pseudonyms(values, is_empty)
    return Pseudonyms(values[texts.of_row], is_empty[texts.of_row])


class PseudonymSet:
    """Pseudonyms to be found again among many.

    Parameters
    ----------
    members : uint64, rising, each once
    """

    def __init__(self, members: NDArray[np.uint64]) -> None:
        self._members = members
        # Pseudonyms are spread evenly: their leading bits tell where to look, to about one place.
        bits = min(max(len(members).bit_length(), 1), _MAX_BITS)
        self._shift = np.uint64(64 - bits)
        firsts = np.arange(1 << bits, dtype=np.uint64) << self._shift
        self._starts = np.append(np.searchsorted(members, firsts), len(members)).astype(np.int64)

    def __len__(self) -> int:
        return len(self._members)

    def holds(self, pseudonyms: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Whether each is among them."""
        found = np.zeros(len(pseudonyms), np.bool_)
        if len(self._members):
            _find(pseudonyms, self._members, self._starts, self._shift, found)
        return found


@numba.njit(cache=True, nogil=True)
def _find(pseudonyms, members, starts, shift, found):  # type: ignore[no-untyped-def]
    for row in range(len(pseudonyms)):
        bucket = pseudonyms[row] >> shift
        for place in range(starts[bucket], starts[bucket + np.uint64(1)]):
            if members[place] == pseudonyms[row]:
                found[row] = True
