"""State of one shard on one day: what is needed to merge files that arrive later. It dies at day close."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mobility.ingest.events import NO_VALUE
from mobility.presence import pack_columns, unpack_columns


@dataclass(frozen=True, slots=True, kw_only=True)
class DaySightings:
    """Everyone seen on a day, visitor or not, sorted.

    pseudonym : uint64 (n,) ; first, last : uint32 (n,), seconds since the clock's origin
    static : uint16 (n, words); sanitised reports, never raw values
    """

    pseudonym: NDArray[np.uint64]
    first: NDArray[np.uint32]
    last: NDArray[np.uint32]
    static: NDArray[np.uint16]

    @classmethod
    def empty(cls, *, words: int) -> Self:
        return cls(
            pseudonym=np.empty(0, np.uint64),
            first=np.empty(0, np.uint32),
            last=np.empty(0, np.uint32),
            static=np.empty((0, words), np.uint16),
        )

    def pack(self) -> bytes:
        """Compressed bytes that `unpack` reads; they must be sealed before they are stored."""
        arrays = {name: pa.array(getattr(self, name)) for name in ("pseudonym", "first", "last")}
        for word in range(self.static.shape[1]):
            arrays[f"static_{word}"] = pa.array(np.ascontiguousarray(self.static[:, word]))
        return pack_columns(arrays, n=len(self.pseudonym))

    @classmethod
    def unpack(cls, packed: bytes, *, words: int) -> Self:
        columns = unpack_columns(packed)
        n = len(columns["pseudonym"])
        static = np.empty((n, words), np.uint16)
        for word in range(words):
            static[:, word] = columns[f"static_{word}"]
        return cls(
            pseudonym=columns["pseudonym"], first=columns["first"], last=columns["last"], static=static
        )


def merge_sightings(earlier: DaySightings, later: DaySightings) -> DaySightings:
    """Both together: the span from the first to the last event, and the answer that came first."""
    pseudonym = np.union1d(earlier.pseudonym, later.pseudonym)
    first = np.full(len(pseudonym), np.iinfo(np.uint32).max, np.uint32)
    last = np.zeros(len(pseudonym), np.uint32)
    static = np.full((len(pseudonym), earlier.static.shape[1]), NO_VALUE, np.uint16)
    for part in (earlier, later):
        rows = np.searchsorted(pseudonym, part.pseudonym)
        first[rows] = np.minimum(first[rows], part.first)
        last[rows] = np.maximum(last[rows], part.last)
        static[rows] = np.where(static[rows] == NO_VALUE, part.static, static[rows])
    return DaySightings(pseudonym=pseudonym, first=first, last=last, static=static)
