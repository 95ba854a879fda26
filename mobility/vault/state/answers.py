"""State of one shard: sanitised static reports that came in subscriber extracts, whether or not present."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from mobility.extracts.rows.arrays import ParallelArrays
from mobility.extracts.rows.events import NO_VALUE
from mobility.vault.state import positions
from mobility.vault.state.columns import from_steps, pack_columns, steps, unpack_columns

Pseudonyms = NDArray[np.uint64]
Words = NDArray[np.uint16]


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownAnswers(ParallelArrays):
    """One place per pseudonym of a shard, sorted.

    pseudonym : uint64 (n,)
    static : uint16 (n, words); sanitised reports, NO_VALUE for none
    """

    pseudonym: Pseudonyms
    static: Words

    @classmethod
    def empty(cls, *, words: int) -> Self:
        return cls(pseudonym=np.empty(0, np.uint64), static=np.empty((0, words), np.uint16))

    def fill(self, pseudonyms: Pseudonyms, static: Words) -> Words:
        """Reports of the sorted `pseudonyms`: theirs, shape (n, words), else those known here."""
        filled = static.copy()
        mine, rows = positions.shared_rows(self.pseudonym, pseudonyms)
        filled[rows] = np.where(filled[rows] == NO_VALUE, self.static[mine], filled[rows])
        return filled

    def merge(self, later: "KnownAnswers") -> "KnownAnswers":
        """Both together; the answer that came first is final."""
        pseudonym, (mine, theirs) = positions.union([self.pseudonym, later.pseudonym])
        static = np.full((len(pseudonym), self.static.shape[1]), NO_VALUE, np.uint16)
        static[theirs] = later.static
        static[mine] = np.where(self.static == NO_VALUE, static[mine], self.static)
        return KnownAnswers(pseudonym=pseudonym, static=static)

    def without(self, pseudonyms: Pseudonyms) -> "KnownAnswers":
        """Select those that are not among the sorted `pseudonyms`."""
        return self.take(positions.other_rows(self.pseudonym, pseudonyms))

    def pack(self) -> bytes:
        """Compressed bytes that `unpack` reads; they must be sealed before they are stored."""
        return pack_columns([steps(self.pseudonym), *self.static.T])

    @classmethod
    def unpack(cls, packed: bytes, *, words: int) -> Self:
        differences, *static = unpack_columns(packed)
        known = cls(pseudonym=from_steps(differences), static=np.empty((len(differences), words), np.uint16))
        for word, column in enumerate(static):
            known.static[:, word] = column
        return known


def differing_reports(known: NDArray[np.uint16], fresh: NDArray[np.uint16], *, starts: list[int]) -> int:
    """Reports that are in both, shape (n, words), and not the same.

    Parameters
    ----------
    starts : word with which each report begins
    """
    if not starts:
        return 0
    in_both = (known[:, starts] != NO_VALUE) & (fresh[:, starts] != NO_VALUE)
    return int((in_both & np.logical_or.reduceat(known != fresh, starts, axis=1)).sum())
