"""Where pseudonyms stand in sorted arrays of them, without sorting or searching anew."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mobility.vault.kernels import NOWHERE, find_rows, union_places

Pseudonyms = NDArray[np.uint64]
Rows = NDArray[np.int64]


def union(lists: Sequence[Pseudonyms]) -> tuple[Pseudonyms, list[Rows]]:
    """All pseudonyms of some sorted lists, sorted, each once; and for each list its rows in the union."""
    starts = np.cumsum([0, *map(len, lists)])
    everyone, places = union_places(np.concatenate([np.empty(0, np.uint64), *lists]), starts)
    return everyone, [places[start:end] for start, end in pairwise(starts)]


def shared_rows(known: Pseudonyms, wanted: Pseudonyms) -> tuple[Rows, Rows]:
    """Rows of those who are in both of two sorted lists: in `known`, and in `wanted`."""
    rows = find_rows(known, wanted)
    in_both = np.flatnonzero(rows != NOWHERE)
    return rows[in_both], in_both


def other_rows(listed: Pseudonyms, gone: Pseudonyms) -> Rows:
    """Rows of a sorted list, which may repeat some, whose pseudonyms are not in `gone`, sorted too."""
    return np.flatnonzero(find_rows(gone, listed) == NOWHERE)
