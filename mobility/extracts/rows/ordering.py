"""Inner loops that put items in the order of their keys, in machine code. They check no bound."""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Rows = NDArray[np.int64]


@njit(cache=True, nogil=True)
def places_by_key(keys: NDArray[Any], n_keys: int) -> tuple[NDArray[np.uint32], Rows]:
    """Place of each item in the stable order by key, and where each key's items end."""
    ends = np.zeros(n_keys, np.int64)
    for i in range(keys.shape[0]):
        ends[keys[i]] += 1
    start = np.int64(0)
    nexts = np.empty(n_keys, np.int64)
    for key in range(n_keys):
        nexts[key] = start
        start += ends[key]
        ends[key] = start
    places = np.empty(keys.shape[0], np.uint32)
    for i in range(keys.shape[0]):
        places[i] = nexts[keys[i]]
        nexts[keys[i]] += 1
    return places, ends


@njit(cache=True, nogil=True)
def scatter(items: NDArray[Any], places: NDArray[np.uint32]) -> NDArray[Any]:
    """Items in the order of their places."""
    out = np.empty_like(items)
    for i in range(items.shape[0]):
        out[places[i]] = items[i]
    return out


@njit(cache=True, nogil=True)
def scatter_rows(items: NDArray[Any], places: NDArray[np.uint32]) -> NDArray[Any]:
    """As `scatter`, of rows with several items."""
    out = np.empty_like(items)
    for i in range(items.shape[0]):
        for j in range(items.shape[1]):
            out[places[i], j] = items[i, j]
    return out
