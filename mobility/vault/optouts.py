"""State of one shard: pseudonyms of people who must not be counted."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from mobility.extracts.rows.arrays import ParallelArrays
from mobility.extracts.rows.events import shard_of
from mobility.vault.state import positions
from mobility.vault.state.columns import from_steps, pack_columns, steps, unpack_columns


@dataclass(frozen=True, slots=True, kw_only=True)
class OptOuts(ParallelArrays):
    """Pseudonyms, uint64 (n,), sorted, each once."""

    pseudonym: NDArray[np.uint64]

    @classmethod
    def empty(cls) -> Self:
        return cls(pseudonym=np.empty(0, np.uint64))

    @classmethod
    def of(cls, pseudonyms: NDArray[np.uint64]) -> Self:
        """Return the shards of pseudonyms in any order, also repeated ones."""
        return cls(pseudonym=np.unique(pseudonyms))

    def union(self, others: "OptOuts") -> "OptOuts":
        return OptOuts(pseudonym=positions.union([self.pseudonym, others.pseudonym])[0])

    def split(self, *, n_shards: int) -> "dict[int, OptOuts]":
        """Return the pseudonyms of each shard that has any."""
        return self.by_key(shard_of(self.pseudonym, n_shards=n_shards), n_shards)

    def pack(self) -> bytes:
        """Compressed bytes that `unpack` reads; they must be sealed before they are stored."""
        return pack_columns([steps(self.pseudonym)])

    @classmethod
    def unpack(cls, packed: bytes) -> Self:
        return cls(pseudonym=from_steps(unpack_columns(packed)[0]))
