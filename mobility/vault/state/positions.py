"""Positions of pseudonyms in sorted arrays of them, without sorting or searching again.

Callers check their arguments: the inner loops check no bound. Pseudonyms are in rising order, each once,
unless a text says otherwise.
"""

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Pseudonyms = NDArray[np.uint64]
Rows = NDArray[np.int64]
NOWHERE = -1


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


def marked(rows_of: Iterable[Rows], *, n: int) -> Rows:
    """Rows below `n` that are in any of the lists, in rising order."""
    is_marked = np.zeros(n, np.bool_)
    for rows in rows_of:
        is_marked[rows] = True
    return np.flatnonzero(is_marked)


def put(out: NDArray[Any], rows: Rows, items: NDArray[Any]) -> None:
    """Write each item, of any shape, at its row, in place."""
    put_rows(_as_rows(out), rows, _as_rows(items))


def _as_rows(items: NDArray[Any]) -> NDArray[Any]:
    """One row for each place."""
    return items.reshape(len(items), math.prod(items.shape[1:]))


@njit(cache=True, nogil=True)
def put_rows(out: NDArray[Any], rows: Rows, items: NDArray[Any]) -> None:
    """Write each row of `items` at its place, in place."""
    for i in range(rows.shape[0]):
        for j in range(items.shape[1]):
            out[rows[i], j] = items[i, j]


@njit(cache=True, nogil=True)
def union_places(lists: Pseudonyms, starts: Rows) -> tuple[Pseudonyms, Rows]:
    """Union of lists that begin at `starts` (the last of which is the end), and each item's place in it."""
    heads = starts[:-1].copy()
    union, places = np.empty(lists.shape[0], np.uint64), np.empty(lists.shape[0], np.int64)
    n = 0
    while True:
        smallest, is_left = np.uint64(0), False
        for k in range(heads.shape[0]):
            if heads[k] < starts[k + 1] and (not is_left or lists[heads[k]] < smallest):
                smallest, is_left = lists[heads[k]], True
        if not is_left:
            return union[:n].copy(), places
        for k in range(heads.shape[0]):
            if heads[k] < starts[k + 1] and lists[heads[k]] == smallest:
                places[heads[k]] = n
                heads[k] += 1
        union[n] = smallest
        n += 1


@njit(cache=True, nogil=True)
def find_rows(known: Pseudonyms, wanted: Pseudonyms) -> Rows:
    """Row of each wanted one among those known; NOWHERE if it is not there. Long gaps are jumped over."""
    rows = np.empty(wanted.shape[0], np.int64)
    low = np.int64(0)
    for i in range(wanted.shape[0]):
        step = np.int64(1)
        high = low
        while high < known.shape[0] and known[high] < wanted[i]:
            low = high + 1
            high += step
            step *= 2
        high = min(high, known.shape[0])
        while low < high:
            middle = (low + high) // 2
            if known[middle] < wanted[i]:
                low = middle + 1
            else:
                high = middle
        rows[i] = low if low < known.shape[0] and known[low] == wanted[i] else NOWHERE
    return rows
