"""State of one shard on one day: what is needed to merge files that arrive later. It dies at day close."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from mobility import places
from mobility.columns import from_steps, pack_columns, steps, unpack_columns
from mobility.ingest.events import NO_VALUE
from mobility.ingest.visits import Visits
from mobility.kernels import keep_first, places_by_key, put_rows, scatter, scatter_rows


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

    def __len__(self) -> int:
        return len(self.pseudonym)

    def take(self, rows: NDArray[np.int64] | slice) -> "DaySightings":
        return DaySightings(
            pseudonym=self.pseudonym[rows],
            first=self.first[rows],
            last=self.last[rows],
            static=self.static[rows],
        )

    def without(self, pseudonyms: NDArray[np.uint64]) -> "DaySightings":
        """Those that are not among the sorted `pseudonyms`."""
        return self.take(places.other_rows(self.pseudonym, pseudonyms))

    def pack(self) -> bytes:
        """Compressed bytes that `unpack` reads; they must be sealed before they are stored."""
        return pack_columns([steps(self.pseudonym), self.first, self.last - self.first, *self.static.T])

    @classmethod
    def unpack(cls, packed: bytes, *, words: int) -> Self:
        differences, first, stay, *static = unpack_columns(packed)
        sightings = cls(
            pseudonym=from_steps(differences),
            first=first,
            last=first + stay,
            static=np.empty((len(first), words), np.uint16),
        )
        for word, column in enumerate(static):
            sightings.static[:, word] = column
        return sightings


def sightings_by_day(visits: Visits, static: NDArray[np.uint16]) -> dict[int, DaySightings]:
    """Who was seen on each day that has anybody.

    Parameters
    ----------
    static : uint16 (subscribers, words); sanitised reports of those who have visits, in rising order
    """
    by_day, ends = places_by_key(visits.day, 256)
    is_new = np.diff(visits.pseudonym, prepend=~visits.pseudonym[:1]) != 0
    ordered = DaySightings(
        pseudonym=scatter(visits.pseudonym, by_day),
        first=scatter(visits.first, by_day),
        last=scatter(visits.last, by_day),
        static=scatter_rows(static[np.cumsum(is_new) - 1], by_day),
    )
    starts = ends - np.diff(ends, prepend=0)
    return {
        int(day): ordered.take(slice(int(starts[day]), int(ends[day])))
        for day in np.flatnonzero(ends > starts)
    }


def merge_sightings(earlier: DaySightings, later: DaySightings) -> DaySightings:
    """Both together: the span from the first to the last event, and the answer that came first."""
    if not len(earlier) or not len(later):
        return earlier if len(earlier) else later
    pseudonym, (before, after) = places.union([earlier.pseudonym, later.pseudonym])
    n, words = len(pseudonym), earlier.static.shape[1]
    first = np.full(n, np.iinfo(np.uint32).max, np.uint32)
    first[before] = earlier.first
    first[after] = np.minimum(first[after], later.first)
    last = np.zeros(n, np.uint32)
    last[before] = earlier.last
    last[after] = np.maximum(last[after], later.last)
    static = np.full((n, words), NO_VALUE, np.uint16)
    put_rows(static, before, earlier.static)
    keep_first(static, after, later.static, np.arange(words))
    return DaySightings(pseudonym=pseudonym, first=first, last=last, static=static)
