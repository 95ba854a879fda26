"""State of one shard: who was present on which days, and the sanitised answers that stay for ever.

A change is published as the difference of two states: the tallies of the subscribers it touches after it,
minus theirs before it. Late days, answers that arrive after the presence, and days that are undone need no
rule of their own.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal, Self, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ldp.params import Kind
from ldp.tallies import Delta, tally_reports, tally_visitors
from mobility.ingest.events import NO_VALUE
from mobility.sanitise import StudySanitiser, differing_reports

Pseudonyms = NDArray[np.uint64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Presence:
    """One place per pseudonym of a shard, sorted.

    pseudonym : uint64 (n,)
    days : uint64 (n,); bit t-1 = present on day t. A subscriber whose only day was undone keeps its place, so
        that its static answer stays final
    changed_in : uint32 (n,); number of the publication that covers the last change
    static : uint16 (n, words); sanitised reports, NO_VALUE for none
    daily : uint16 (n, words, study days); sanitised reports of the present days
    """

    pseudonym: Pseudonyms
    days: NDArray[np.uint64]
    changed_in: NDArray[np.uint32]
    static: NDArray[np.uint16]
    daily: NDArray[np.uint16]

    @classmethod
    def empty(cls, sanitiser: StudySanitiser) -> Self:
        return cls._blank(
            np.empty(0, np.uint64),
            static_words=sanitiser.words("static"),
            daily_words=sanitiser.words("daily"),
            days=sanitiser.plan.days,
        )

    @classmethod
    def _blank(cls, pseudonym: Pseudonyms, *, static_words: int, daily_words: int, days: int) -> Self:
        n = len(pseudonym)
        return cls(
            pseudonym=pseudonym,
            days=np.zeros(n, np.uint64),
            changed_in=np.zeros(n, np.uint32),
            static=np.full((n, static_words), NO_VALUE, np.uint16),
            daily=np.full((n, daily_words, days), NO_VALUE, np.uint16),
        )

    def __len__(self) -> int:
        return len(self.pseudonym)

    def take(self, rows: NDArray[np.int64]) -> "Presence":
        return Presence(
            pseudonym=self.pseudonym[rows],
            days=self.days[rows],
            changed_in=self.changed_in[rows],
            static=self.static[rows],
            daily=self.daily[rows],
        )

    def with_places_for(self, pseudonyms: Pseudonyms) -> "Presence":
        """A copy that also has a blank place for each of `pseudonyms` that had none."""
        merged = Presence._blank(
            np.union1d(self.pseudonym, pseudonyms),
            static_words=self.static.shape[1],
            daily_words=self.daily.shape[1],
            days=self.daily.shape[2],
        )
        rows = np.searchsorted(merged.pseudonym, self.pseudonym)
        for name in ("days", "changed_in", "static", "daily"):
            getattr(merged, name)[rows] = getattr(self, name)
        return merged

    def pack(self) -> bytes:
        """Compressed bytes that `unpack` reads; they must be sealed before they are stored."""
        n = len(self)
        arrays = {
            "pseudonym": pa.array(self.pseudonym),
            "days": pa.array(self.days),
            "changed_in": pa.array(self.changed_in),
        }
        for word in range(self.static.shape[1]):
            arrays[f"static_{word}"] = pa.array(self.static[:, word])
        for word in range(self.daily.shape[1]):
            for day in range(self.daily.shape[2]):
                arrays[f"daily_{word}_{day + 1}"] = pa.array(np.ascontiguousarray(self.daily[:, word, day]))
        return pack_columns(arrays, n=n)

    @classmethod
    def unpack(cls, packed: bytes, sanitiser: StudySanitiser) -> Self:
        columns = unpack_columns(packed)
        presence = cls._blank(
            columns["pseudonym"],
            static_words=sanitiser.words("static"),
            daily_words=sanitiser.words("daily"),
            days=sanitiser.plan.days,
        )
        presence.days[:] = columns["days"]
        presence.changed_in[:] = columns["changed_in"]
        for word in range(presence.static.shape[1]):
            presence.static[:, word] = columns[f"static_{word}"]
        for word in range(presence.daily.shape[1]):
            for day in range(presence.daily.shape[2]):
                presence.daily[:, word, day] = columns[f"daily_{word}_{day + 1}"]
        return presence


def pack_columns(arrays: dict[str, pa.Array], *, n: int) -> bytes:
    """Columns of equal length as a compressed Arrow stream."""
    batch = pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))
    if batch.num_rows != n:
        raise ValueError(f"columns must have {n} rows, got {batch.num_rows}")
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def unpack_columns(packed: bytes) -> dict[str, NDArray[Any]]:
    """What `pack_columns` wrote, as arrays."""
    batch = pa.ipc.open_stream(packed).read_next_batch()
    return {name: batch.column(name).to_numpy(zero_copy_only=False) for name in batch.schema.names}


@dataclass(frozen=True, slots=True, kw_only=True)
class DayArrivals:
    """Visitors of one day, sorted: pseudonym (n,), sanitised static and daily reports, both (n, words)."""

    day: int
    pseudonym: Pseudonyms
    static: NDArray[np.uint16]
    daily: NDArray[np.uint16]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Presence after a change, what to publish, and what to count."""

    presence: Presence
    places: int  # that differ
    delta: Delta
    subscribers: int  # not yet covered by another delta of this publication
    subscriber_days: int  # added; negative when a day was undone, like the next two
    subscribers_new: int
    reports: int
    late_changes: int


def add_days(
    before: Presence, arrivals: list[DayArrivals], *, number: int, sanitiser: StudySanitiser
) -> Change:
    """Add visitors; what was answered before stays.

    Parameters
    ----------
    number : of the publication that will carry the change
    """
    everyone = (
        np.unique(np.concatenate([a.pseudonym for a in arrivals])) if arrivals else before.pseudonym[:0]
    )
    base = before.with_places_for(everyone)
    after = _copy(base)
    late = 0
    for arrival in arrivals:
        rows = np.searchsorted(after.pseudonym, arrival.pseudonym)
        after.days[rows] |= np.uint64(1 << (arrival.day - 1))
        after.static[rows] = np.where(after.static[rows] == NO_VALUE, arrival.static, after.static[rows])
        known = after.daily[rows, :, arrival.day - 1]
        late += differing_reports(known, arrival.daily, starts=sanitiser.starts("daily"))
        after.daily[rows, :, arrival.day - 1] = np.where(known == NO_VALUE, arrival.daily, known)
    return _change(base, after, number=number, sanitiser=sanitiser, late_changes=late)


def remove_day(before: Presence, *, day: int, number: int, sanitiser: StudySanitiser) -> Change:
    """Undo one day: nobody was present, and its daily answers are withdrawn. Static answers stay final."""
    after = _copy(before)
    after.days[:] &= ~np.uint64(1 << (day - 1))
    after.daily[:, :, day - 1] = NO_VALUE
    return _change(before, after, number=number, sanitiser=sanitiser, late_changes=0)


def _copy(presence: Presence) -> Presence:
    return replace(
        presence,
        days=presence.days.copy(),
        changed_in=presence.changed_in.copy(),
        static=presence.static.copy(),
        daily=presence.daily.copy(),
    )


def _change(
    before: Presence, after: Presence, *, number: int, sanitiser: StudySanitiser, late_changes: int
) -> Change:
    """Compare two states with the same places."""
    differs = (
        (before.days != after.days)
        | (before.static != after.static).any(axis=1)
        | (before.daily != after.daily).any(axis=(1, 2))
    )
    rows = np.flatnonzero(differs)
    newly_covered = int((before.changed_in[rows] != number).sum())
    after.changed_in[rows] = number
    delta = Delta.zero(sanitiser.plan)
    _add_tallies(delta, before.take(rows), sanitiser, sign=-1)
    _add_tallies(delta, after.take(rows), sanitiser, sign=+1)
    return Change(
        presence=after,
        places=len(rows),
        delta=delta,
        subscribers=newly_covered,
        subscriber_days=_days_present(after) - _days_present(before),
        subscribers_new=int(np.count_nonzero(after.days)) - int(np.count_nonzero(before.days)),
        reports=_reports_given(after, sanitiser) - _reports_given(before, sanitiser),
        late_changes=late_changes,
    )


def _days_present(presence: Presence) -> int:
    return int(np.bitwise_count(presence.days).sum())


def _reports_given(presence: Presence, sanitiser: StudySanitiser) -> int:
    static = presence.static[:, sanitiser.starts("static")]
    daily = presence.daily[:, sanitiser.starts("daily")]
    return int((static != NO_VALUE).sum() + (daily != NO_VALUE).sum())


def _add_tallies(
    delta: Delta, presence: Presence, sanitiser: StudySanitiser, *, sign: Literal[1, -1]
) -> None:
    tally_visitors(presence.days, delta.visitors, sign=sign)
    for kind in get_args(Kind):
        for place in sanitiser.places(presence.pseudonym, kind=kind):
            words = getattr(presence, kind)[place.rows, place.words]
            tally_reports(
                presence.days[place.rows],
                words if kind == "static" else words.swapaxes(1, 2),
                delta,
                index=place.indicator,
                is_unary=sanitiser.plan.is_unary(place.indicator),
                sign=sign,
            )
