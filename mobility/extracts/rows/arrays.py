"""Parallel arrays: item i of each is about the same row, visit or subscriber."""

from collections.abc import Sequence
from dataclasses import Field, fields
from typing import Any, ClassVar, Self

import numpy as np
from numba import njit
from numpy.typing import NDArray

Rows = NDArray[np.integer[Any]] | NDArray[np.bool_] | slice


class ParallelArrays:
    """Base of dataclasses whose fields are such arrays, of any shape beyond the first axis."""

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @classmethod
    def names(cls) -> list[str]:
        """Return the fields that are arrays: by default all."""
        return [each.name for each in fields(cls)]

    def __len__(self) -> int:
        return len(getattr(self, self.names()[0]))

    def take(self, rows: Rows) -> Self:
        """Return some of the items; other fields get their defaults."""
        return type(self)(**{name: getattr(self, name)[rows] for name in self.names()})

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return the items of all parts, in order; at least one part."""
        return cls(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in cls.names()})

    def by_key(self, keys: NDArray[Any], n_keys: int) -> dict[int, Self]:
        """Return the items of each key in [0, n_keys) that has any, in their given order."""
        ordered, ends = self.ordered(keys, n_keys)
        starts = ends - np.diff(ends, prepend=0)
        return {
            int(key): ordered.take(slice(int(starts[key]), int(ends[key])))
            for key in np.flatnonzero(ends > starts)
        }

    def ordered(self, keys: NDArray[Any], n_keys: int) -> tuple[Self, NDArray[np.int64]]:
        """Return the items in the stable order by key, and where each key's items end."""
        places, ends = places_by_key(keys.astype(np.uint16, copy=False), n_keys)
        items = {name: _scattered(getattr(self, name), places) for name in self.names()}
        return type(self)(**items), ends


def _scattered(items: NDArray[Any], places: NDArray[np.uint32]) -> NDArray[Any]:
    put: Any = scatter if items.ndim == 1 else scatter_rows
    moved: NDArray[Any] = put(items, places)
    return moved


# Inner loops that put items in the order of their keys. They check no bound.


@njit(cache=True, nogil=True)
def places_by_key(keys: NDArray[Any], n_keys: int) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
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
    """Scatter rows with several items."""
    out = np.empty_like(items)
    for i in range(items.shape[0]):
        for j in range(items.shape[1]):
            out[places[i], j] = items[i, j]
    return out
