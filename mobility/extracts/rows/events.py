"""Coded events: what is left of a row once the identifier is gone, and how they are put in order.

Numbers only, compact for staging.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mobility.extracts.rows.arrays import ParallelArrays

NO_VALUE = np.uint16(0xFFFF)  # an empty value: no answer, presence still counts
_OF_CONTENT = np.uint64(2**48 - 1)
Names = NDArray[np.uint64]
Halves = NDArray[np.uint32]
_HEADER = np.dtype([("n", "<i8"), ("slots", "<i8")])


@dataclass(frozen=True, slots=True, kw_only=True)
class Events(ParallelArrays):
    """Accepted rows, one place per row.

    pseudonym : uint64, shape (n,); in a study of events the key of the row's content
    second : uint32, shape (n,); UTC seconds since the study clock's origin
    cell : uint32, shape (n,); code of the cell; in a study that limits the events of a person bits of her
        pseudonym, as `with_people` says
    day : uint8 or, in a long study, uint16, shape (n,); study day, from 1; 0 = the row counts for nights and
        slots only
    codes : uint16, shape (n, slots); raw codes of static indicators that may be answered, or of the static
        parts of a daily joint indicator; NO_VALUE if empty
    """

    pseudonym: NDArray[np.uint64]
    second: NDArray[np.uint32]
    cell: NDArray[np.uint32]
    day: NDArray[np.unsignedinteger[Any]]
    codes: NDArray[np.uint16]

    def pack(self) -> bytes:
        """Bytes that `unpack` reads; they must be sealed before they are stored."""
        header = np.array([(len(self), self.codes.shape[1])], dtype=_HEADER)
        arrays = (self.pseudonym, self.second, self.cell, self.codes, self.day)
        return b"".join([header.data, *(np.ascontiguousarray(array).data for array in arrays)])

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
            day=next_array(np.uint16 if len(packed) - at > n else np.uint8, n),  # type: ignore[arg-type]
        )


def with_people(contents: Names, people: Names, *, is_nobody: NDArray[np.bool_]) -> tuple[Names, Halves]:
    """Put the person of each event into the first bits of its key, by which shards are chosen.

    Parameters
    ----------
    contents : uint64, shape (n,); keys of the rows' contents
    people : uint64, shape (n,); pseudonyms
    is_nobody : shape (n,); rows that name no one

    Returns
    -------
    uint64, shape (n,): keys with 16 bits of the person's pseudonym; uint32, shape (n,): 32 more of it, 0 for
    no one. Of n people two are taken for one with a probability below n**2 / 2**49: then they share one limit
    """
    keys = np.where(is_nobody, contents, (people & ~_OF_CONTENT) | (contents & _OF_CONTENT))
    return keys, np.where(is_nobody, np.uint32(0), people.astype(np.uint32))


def people_of(events: Events) -> Names:
    """Return the person of each event as `with_people` put it there; uint64, shape (n,), 0 for no one."""
    halves = events.cell.astype(np.uint64)
    return np.where(halves == 0, np.uint64(0), (events.pseudonym & ~_OF_CONTENT) | halves)


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
    return Events.joined(parts)


def shard_of(pseudonym: NDArray[np.uint64], *, n_shards: int) -> NDArray[np.uint16]:
    """Shard of each pseudonym: its leading bits, so that a shard is a range of pseudonyms.

    `n_shards` is a power of two in 1..65536.
    """
    bits = n_shards.bit_length() - 1
    if bits == 0:
        return np.zeros(len(pseudonym), np.uint16)
    return (pseudonym >> np.uint64(64 - bits)).astype(np.uint16)


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
    ordered, ends = events.ordered(piece_of, n_shards * pieces)
    edges = [0, *ends.tolist()]
    found: dict[int, list[Events]] = {}
    for first in range(0, n_shards * pieces, pieces):
        if edges[first] < edges[first + pieces]:
            found[first // pieces] = [
                ordered.take(slice(edges[piece], edges[piece + 1])) for piece in range(first, first + pieces)
            ]
    return found
