"""Events of each person that were answered, so that the answers of a person keep the limit of the plan."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from mobility.extracts.rows.arrays import ParallelArrays
from mobility.vault.state.columns import pack_columns, unpack_columns

Names = NDArray[np.uint64]
NO_ONE = np.uint64(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredEvents(ParallelArrays):
    """One place per answered event, people in rising order.

    person : uint64 (n,); as `mobility.extracts.rows.events.people_of`
    key : uint64 (n,); of the event

    Nothing is ever removed before the study ends: an answer that has left the vault cannot be taken back, not
    by undoing its day either.
    """

    person: Names
    key: Names

    @classmethod
    def empty(cls) -> Self:
        return cls(person=np.empty(0, np.uint64), key=np.empty(0, np.uint64))

    def pack(self) -> bytes:
        """Compressed bytes that `unpack` reads; they must be sealed before they are stored."""
        return pack_columns([self.person, self.key])

    @classmethod
    def unpack(cls, packed: bytes) -> Self:
        person, key = unpack_columns(packed)
        return cls(person=person, key=key)

    def admit(self, key: Names, *, person: Names, second: NDArray[np.uint32], most: int) -> Self:
        """Return these and the first new events of each person, as long as there are fewer than `most`.

        Parameters
        ----------
        key, person, second : shape (n,); of each row the key of its event, its person (0: none) and its time

        Notes
        -----
        First are those of the earliest time, and at the same time those with the smallest key: the order of
        rows does not matter. That of files does, since answers of earlier ones may have been published.
        """
        keys, first_of = np.unique(key, return_index=True)
        new = first_of[~np.isin(keys, self.key) & (person[first_of] != NO_ONE)]
        new = new[np.lexsort((key[new], second[new], person[new]))]
        people = person[new]
        place = np.arange(len(new)) - np.searchsorted(people, people)
        used = np.searchsorted(self.person, people, "right") - np.searchsorted(self.person, people)
        admitted = new[used + place < most]
        people = np.concatenate([self.person, person[admitted]])
        key = np.concatenate([self.key, key[admitted]])
        return type(self)(person=people, key=key).take(np.lexsort((key, people)))
