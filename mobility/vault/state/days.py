"""State of one shard on one day: what is needed to merge files that arrive later. It dies at day close."""

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from mobility.extracts.rows.arrays import ParallelArrays
from mobility.extracts.rows.events import NO_VALUE
from mobility.vault.state import positions
from mobility.vault.state.changes import keep_first
from mobility.vault.state.columns import from_steps, pack_columns, steps, unpack_columns
from mobility.vault.state.positions import put_rows
from mobility.vault.state.slots import SlotsUsed, merge_used
from mobility.vault.state.stays import N_COLUMNS, N_NARROW, Whereabouts, merge_whereabouts
from mobility.vault.state.visits import GroupedEvents, Visits


@dataclass(frozen=True, slots=True, kw_only=True)
class DaySightings(ParallelArrays):
    """Everyone seen on a day, visitor or not, sorted.

    pseudonym : uint64 (n,) ; first, last : uint32 (n,), seconds since the clock's origin
    static : uint16 (n, words); sanitised reports, never raw values
    parts : uint16 (n, 1); raw code of the static parts of the daily joint indicator that the person answers,
        which waits for the places of the day; (n, 0) in a study without such indicators
    stays, nights : where people were on that day, and in the night that begins on it; nothing in a study that
        derives nothing from places. Those of a night need not have been seen by day
    slots : where people were at any hour of that day, and last before it if that counts on it; nothing in a
        study without slots, like slots_used : slots of the day in which people were counted
    """

    pseudonym: NDArray[np.uint64]
    first: NDArray[np.uint32]
    last: NDArray[np.uint32]
    static: NDArray[np.uint16]
    parts: NDArray[np.uint16]
    stays: Whereabouts = field(default_factory=Whereabouts.empty)
    nights: Whereabouts = field(default_factory=Whereabouts.empty)
    slots: Whereabouts = field(default_factory=Whereabouts.empty)
    slots_used: SlotsUsed = field(default_factory=SlotsUsed.empty)

    @classmethod
    def empty(cls, *, words: int, parts: int = 0) -> Self:
        return cls(
            pseudonym=np.empty(0, np.uint64),
            first=np.empty(0, np.uint32),
            last=np.empty(0, np.uint32),
            static=np.empty((0, words), np.uint16),
            parts=np.empty((0, parts), np.uint16),
        )

    @classmethod
    def names(cls) -> list[str]:
        return ["pseudonym", "first", "last", "static", "parts"]

    def without(self, pseudonyms: NDArray[np.uint64]) -> "DaySightings":
        """Select those that are not among the sorted `pseudonyms`."""
        return replace(
            self.take(positions.other_rows(self.pseudonym, pseudonyms)),
            stays=self.stays.without(pseudonyms),
            nights=self.nights.without(pseudonyms),
            slots=self.slots.without(pseudonyms),
            slots_used=self.slots_used.without(pseudonyms),
        )

    def pack(self) -> bytes:
        """Compressed bytes that `unpack` reads; they must be sealed before they are stored."""
        columns = [steps(self.pseudonym), self.first, self.last - self.first, *self.static.T, *self.parts.T]
        has_slots = len(self.slots) or len(self.slots_used)
        if len(self.stays) or len(self.nights) or has_slots:
            columns += [*self.stays.columns(), *self.nights.columns()]
        if has_slots:
            columns += [*self.slots.narrow_columns(self.pseudonym), *self.slots_used.columns()]
        return pack_columns(columns)

    @classmethod
    def unpack(cls, packed: bytes, *, words: int, parts: int = 0) -> Self:
        differences, first, stay, *others = unpack_columns(packed)
        whereabouts = others[words + parts :]
        sightings = cls(
            pseudonym=from_steps(differences),
            first=first,
            last=first + stay,
            static=np.empty((len(first), words), np.uint16),
            parts=np.empty((len(first), parts), np.uint16),
        )
        for word in range(words):
            sightings.static[:, word] = others[word]
        for word in range(parts):
            sightings.parts[:, word] = others[words + word]
        if not whereabouts:
            return sightings
        stays, nights = whereabouts[:N_COLUMNS], whereabouts[N_COLUMNS : 2 * N_COLUMNS]
        slots = whereabouts[2 * N_COLUMNS :]
        sightings = replace(
            sightings, stays=Whereabouts.of_columns(stays), nights=Whereabouts.of_columns(nights)
        )
        if not slots:
            return sightings
        return replace(
            sightings,
            slots=Whereabouts.of_narrow_columns(slots[:N_NARROW], sightings.pseudonym),
            slots_used=SlotsUsed.of_columns(slots[N_NARROW:]),
        )


def sightings_by_day(
    visits: Visits, static: NDArray[np.uint16], parts: NDArray[np.uint16] | None = None
) -> dict[int, DaySightings]:
    """Return the people seen on each day that has anyone.

    Parameters
    ----------
    static : uint16 (subscribers, words); sanitised reports of those who have visits, in rising order
    parts : uint16 (subscribers, 1); raw codes of static parts, if days keep them
    """
    is_new = np.diff(visits.pseudonym, prepend=~visits.pseudonym[:1]) != 0
    person = np.cumsum(is_new) - 1
    seen = DaySightings(
        pseudonym=visits.pseudonym,
        first=visits.first,
        last=visits.last,
        static=static[person],
        parts=np.empty((len(person), 0), np.uint16) if parts is None else parts[person],
    )
    return seen.by_key(visits.day, 256)


def day_states(
    grouped: GroupedEvents, static: NDArray[np.uint16], parts: NDArray[np.uint16] | None = None
) -> dict[int, DaySightings]:
    """Content of a batch for each day and the night that begins on it.

    Parameters
    ----------
    static, parts : as for `sightings_by_day`
    """
    found = sightings_by_day(grouped.visits, static, parts)
    nobody = DaySightings.empty(words=static.shape[1], parts=0 if parts is None else parts.shape[1])
    for day in grouped.stays.keys() | grouped.nights.keys() | grouped.slots.keys():
        found[day] = replace(
            found.get(day, nobody),
            stays=grouped.stays.get(day, nobody.stays),
            nights=grouped.nights.get(day, nobody.nights),
            slots=grouped.slots.get(day, nobody.slots),
        )
    return found


def merge_sightings(earlier: DaySightings, later: DaySightings) -> DaySightings:
    """Both together: the span from the first to the last event, the answer that came first, all places."""
    return replace(
        _merged_spans(earlier, later),
        stays=merge_whereabouts(earlier.stays, later.stays),
        nights=merge_whereabouts(earlier.nights, later.nights),
        slots=merge_whereabouts(earlier.slots, later.slots),
        slots_used=merge_used(earlier.slots_used, later.slots_used),
    )


def _merged_spans(earlier: DaySightings, later: DaySightings) -> DaySightings:
    if not len(earlier) or not len(later):
        return earlier if len(earlier) else later
    pseudonym, (before, after) = positions.union([earlier.pseudonym, later.pseudonym])
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
    parts = np.full((n, earlier.parts.shape[1]), NO_VALUE, np.uint16)
    put_rows(parts, before, earlier.parts)
    keep_first(parts, after, later.parts, np.arange(parts.shape[1]))
    return DaySightings(pseudonym=pseudonym, first=first, last=last, static=static, parts=parts)
