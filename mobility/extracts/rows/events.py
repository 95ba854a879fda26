"""Coded events: what is left of a row once the identifier is gone, and how they are put in order.

Numbers only, compact for staging.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numba import njit
from numpy.typing import NDArray

NO_VALUE = np.uint16(0xFFFF)  # an empty value: no answer, presence still counts
_HEADER = np.dtype([("n", "<i8"), ("slots", "<i8")])


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """Accepted rows, one place per row.

    pseudonym : uint64, shape (n,)
    second : uint32, shape (n,); UTC seconds since the study clock's origin
    cell : uint32, shape (n,); code of the cell
    day : uint8, shape (n,); study day, from 1; 0 = the row counts for a night only
    codes : uint16, shape (n, slots); raw codes of static indicators that may be answered, NO_VALUE if empty
    """

    pseudonym: NDArray[np.uint64]
    second: NDArray[np.uint32]
    cell: NDArray[np.uint32]
    day: NDArray[np.uint8]
    codes: NDArray[np.uint16]

    def __len__(self) -> int:
        return len(self.pseudonym)

    def take(self, rows: NDArray[np.int64] | slice) -> "Events":
        return Events(
            pseudonym=self.pseudonym[rows],
            second=self.second[rows],
            cell=self.cell[rows],
            day=self.day[rows],
            codes=self.codes[rows],
        )

    def pack(self) -> bytes:
        """Bytes that `unpack` reads; they must be sealed before they are stored."""
        header = np.array([(len(self), self.codes.shape[1])], dtype=_HEADER)
        arrays = (self.pseudonym, self.second, self.cell, self.codes, self.day)
        return header.tobytes() + b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)

    @classmethod
    def unpack(cls, packed: bytes) -> Self:
        n, slots = (int(value) for value in np.frombuffer(packed, _HEADER, count=1)[0])
        at = _HEADER.itemsize

        def next_array(dtype: type[np.generic], count: int) -> NDArray[np.generic]:
            nonlocal at
            array = np.frombuffer(packed, dtype, count=count, offset=at)
            at += array.nbytes
            return array

        return cls(
            pseudonym=next_array(np.uint64, n),  # type: ignore[arg-type]
            second=next_array(np.uint32, n),  # type: ignore[arg-type]
            cell=next_array(np.uint32, n),  # type: ignore[arg-type]
            codes=next_array(np.uint16, n * slots).reshape(n, slots),  # type: ignore[arg-type]
            day=next_array(np.uint8, n),  # type: ignore[arg-type]
        )


def concatenate(parts: list[Events], *, slots: int) -> Events:
    """All events of `parts`, in order."""
    if not parts:
        return Events(
            pseudonym=np.empty(0, np.uint64),
            second=np.empty(0, np.uint32),
            cell=np.empty(0, np.uint32),
            day=np.empty(0, np.uint8),
            codes=np.empty((0, slots), np.uint16),
        )
    return Events(
        pseudonym=np.concatenate([part.pseudonym for part in parts]),
        second=np.concatenate([part.second for part in parts]),
        cell=np.concatenate([part.cell for part in parts]),
        day=np.concatenate([part.day for part in parts]),
        codes=np.concatenate([part.codes for part in parts]),
    )


def shard_of(pseudonym: NDArray[np.uint64], *, n_shards: int) -> NDArray[np.uint16]:
    """Shard of each pseudonym: its leading bits, so that a shard is a range of pseudonyms.

    `n_shards` is a power of two in 1..65536.
    """
    bits = n_shards.bit_length() - 1
    if bits == 0:
        return np.zeros(len(pseudonym), np.uint16)
    return (pseudonym >> np.uint64(64 - bits)).astype(np.uint16)


def split_by_shard(events: Events, *, n_shards: int) -> dict[int, Events]:
    """Events of each shard that has any, in the order in which they came."""
    return {shard: pieces[0] for shard, pieces in split(events, n_shards=n_shards, pieces=1).items()}


def split(events: Events, *, n_shards: int, pieces: int) -> dict[int, list[Events]]:
    """Events of each shard that has any, cut into pieces: ranges of pseudonyms in rising order.

    Parameters
    ----------
    n_shards, pieces : powers of two, whose product is at most 65536

    Returns
    -------
    all pieces of each shard, also empty ones; the events of a piece in the order in which they came
    """
    piece_of = shard_of(events.pseudonym, n_shards=n_shards * pieces)
    places, ends = places_by_key(piece_of, n_shards * pieces)
    ordered = Events(
        pseudonym=scatter(events.pseudonym, places),
        second=scatter(events.second, places),
        cell=scatter(events.cell, places),
        day=scatter(events.day, places),
        codes=scatter_rows(events.codes, places),
    )
    edges = [0, *ends.tolist()]
    found: dict[int, list[Events]] = {}
    for first in range(0, n_shards * pieces, pieces):
        if edges[first] < edges[first + pieces]:
            found[first // pieces] = [
                ordered.take(slice(edges[piece], edges[piece + 1])) for piece in range(first, first + pieces)
            ]
    return found


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
