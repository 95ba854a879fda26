"""Rows of a subscriber extract to sanitised reports: nothing raw leaves the function that reads them."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from mobility.extracts.cells.cells import EMPTY
from mobility.extracts.profiles.definition import Profile
from mobility.extracts.readers import Layout, RowBlock
from mobility.extracts.rows.arrays import ParallelArrays
from mobility.extracts.rows.counts import RowCounts
from mobility.extracts.rows.events import NO_VALUE, shard_of
from mobility.extracts.rows.joints import joints_of
from mobility.extracts.rows.lookups import UNKNOWN, PseudonymSet, pseudonyms_of
from mobility.extracts.rows.value_columns import ValueColumns
from mobility.vault.sanitise import StudySanitiser
from mobility.vault.state.answers import KnownAnswers, differing_reports
from mobility.vault.state.columns import pack_columns, unpack_columns

NOBODY = np.empty(0, np.uint64)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriberRows(ParallelArrays):
    """Accepted rows in file order; a subscriber may have several.

    pseudonym : uint64 (n,)
    static : uint16 (n, words); sanitised reports, NO_VALUE for none
    """

    pseudonym: NDArray[np.uint64]
    static: NDArray[np.uint16]

    def split(self, *, n_shards: int) -> "dict[int, SubscriberRows]":
        """Rows of each shard that has any, in the order in which they came."""
        return self.by_key(shard_of(self.pseudonym, n_shards=n_shards), n_shards)

    def first_answers(self, *, starts: list[int]) -> "FirstAnswers":
        """The first report of each kind that the rows of a subscriber hold, as across files.

        Parameters
        ----------
        starts : word with which each report begins
        """
        pseudonym, person = np.unique(self.pseudonym, return_inverse=True)
        static = np.full((len(pseudonym), self.static.shape[1]), NO_VALUE, np.uint16)
        for start, stop in pairwise([*starts, self.static.shape[1]]):
            filled = np.flatnonzero(self.static[:, start] != NO_VALUE)
            people, first = np.unique(person[filled], return_index=True)
            static[people, start:stop] = self.static[filled[first], start:stop]
        return FirstAnswers(
            known=KnownAnswers(pseudonym=pseudonym, static=static),
            repeated=len(self) - len(pseudonym),
            conflicting=differing_reports(static[person], self.static, starts=starts),
        )

    def pack(self) -> bytes:
        """Compressed bytes that `unpack` reads; they must be sealed before they are stored."""
        return pack_columns([self.pseudonym, *self.static.T])

    @classmethod
    def unpack(cls, packed: bytes) -> Self:
        pseudonym, *static = unpack_columns(packed)
        rows = cls(pseudonym=pseudonym, static=np.empty((len(pseudonym), len(static)), np.uint16))
        for word, column in enumerate(static):
            rows.static[:, word] = column
        return rows


class FirstAnswers(NamedTuple):
    """Content of a file about its subscribers.

    repeated : rows that are not the first of their subscriber
    conflicting : reports of such rows that are not the one that counts
    """

    known: KnownAnswers
    repeated: int
    conflicting: int


def join_rows(parts: Sequence[SubscriberRows], *, words: int) -> SubscriberRows:
    """All rows of `parts`, in order."""
    none = SubscriberRows(pseudonym=np.empty(0, np.uint64), static=np.empty((0, words), np.uint16))
    return SubscriberRows.joined([none, *parts])


class SubscriberCoder:
    """Turns blocks of rows of one batch into sanitised reports.

    Parameters
    ----------
    profile : how the rows are written; an indicator that it has no column for gets no answer
    sanitiser : of the study; anyone who is asked one indicator only reports on that one
    pseudonym_key : 16 bytes; the identifier leaves through it and is gone
    opted_out : uint64, rising; pseudonyms whose rows are ignored
    """

    def __init__(
        self,
        profile: Profile,
        *,
        sanitiser: StudySanitiser,
        pseudonym_key: bytes,
        opted_out: NDArray[np.uint64] = NOBODY,
    ) -> None:
        self._profile = profile
        self._sanitiser = sanitiser
        self._pseudonym_key = pseudonym_key
        self._opted_out = PseudonymSet(opted_out)
        places = [(place, spec.slug) for place, spec in enumerate(sanitiser.plan.indicators)]
        self._columns = ValueColumns.of(profile, places, empty=EMPTY)
        self._values = self._columns.all
        self._joints = joints_of(sanitiser.plan, [value.place for value in self._columns.plain])
        self.words = sanitiser.words("static")

    @property
    def layout(self) -> Layout:
        """Interface of a reader."""
        columns = [self._profile.subscriber, *(value.column for value in self._values)]
        return Layout(columns=tuple(dict.fromkeys(columns)), delimiter=self._profile.delimiter)

    def rows_of(self, block: RowBlock, counts: RowCounts) -> SubscriberRows:
        """Reports of the accepted rows of a block; `counts` grows by all its rows."""
        found = RowCounts(rows_read=block.n_rows, n_lines=block.n_lines)
        found.reject("wrong_columns", block.misshapen)
        found.reject("bad_text", block.bad_text)
        subscribers = pseudonyms_of(block.texts(self._profile.subscriber), self._pseudonym_key)
        values = [value.table.codes(block.texts(value.column)) for value in self._values]
        has_opted_out = self._opted_out.holds(subscribers.values) & ~subscribers.is_empty
        found.ignore("opted_out", int(has_opted_out.sum()))
        alive = ~has_opted_out
        self._note_empty(subscribers.is_empty, values, alive, found)
        unknown = np.zeros(len(alive), np.bool_)
        for codes in values:
            unknown |= codes == UNKNOWN
        for reason, rows in {"empty_subscriber": subscribers.is_empty, "unknown_value": unknown}.items():
            found.reject(reason, block.lines[alive & rows])
            if reason == "unknown_value":
                for value, codes in zip(self._values, values, strict=True):
                    found.note_unknown(value.column, alive & (codes == UNKNOWN))
            alive &= ~rows
        accepted = np.flatnonzero(alive)
        found.accepted = len(accepted)
        counts.join(found)
        pseudonym = subscribers.values[accepted]
        raw = self._columns.values([codes[accepted] for codes in values])
        return SubscriberRows(pseudonym=pseudonym, static=self._sanitised(pseudonym, raw))

    def _sanitised(self, pseudonym: NDArray[np.uint64], raw: list[NDArray[np.int32]]) -> NDArray[np.uint16]:
        codes = np.full((len(pseudonym), self._sanitiser.slots("static")), NO_VALUE, np.uint16)
        column_of = {value.place: column for value, column in zip(self._columns.plain, raw, strict=True)}

        def sides(number: int, levels: NDArray[np.int32]) -> NDArray[np.int32]:
            return self._sanitiser.sides(number, pseudonym, levels)

        column_of |= {joint.place: joint.codes(raw, sides=sides) for joint in self._joints}
        for place in self._sanitiser.places(pseudonym, kind="static"):
            if place.indicator in column_of:
                found = column_of[place.indicator][place.rows]
                codes[place.rows, place.slot] = np.where(found == EMPTY, NO_VALUE, found)
        return self._sanitiser.static_answers(pseudonym, codes)

    def _note_empty(
        self,
        is_empty: NDArray[np.bool_],
        values: list[NDArray[np.int32]],
        alive: NDArray[np.bool_],
        counts: RowCounts,
    ) -> None:
        """Note values that are missing."""
        columns = {self._profile.subscriber: is_empty}
        columns |= {value.column: codes == EMPTY for value, codes in zip(self._values, values, strict=True)}
        for name, rows in columns.items():
            if n := int((rows & alive).sum()):
                counts.empty[name] += n
