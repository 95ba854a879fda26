"""Random choices of a run that can be repeated."""

import hashlib
from collections.abc import Sequence
from typing import TypeVar

from ldp.kernels.streams import KeyedStream

Choice = TypeVar("Choice")


class Chance:
    """Random choices, equal for the same seed and run."""

    def __init__(self, seed: int, run: int) -> None:
        self._stream = KeyedStream(hashlib.blake2b(f"{seed}/{run}".encode(), digest_size=16).digest())

    def below(self, bound: int) -> int:
        """A number of [0, bound)."""
        return int(self._stream.uniform_int(1, 0, bound)[0])

    def seconds(self, longest: float) -> float:
        """A time of [0, longest)."""
        return longest * self.below(1_000_000) / 1e6

    def one_of(self, choices: Sequence[Choice]) -> Choice:
        """One of them."""
        return choices[self.below(len(choices))]

    def shuffled(self, items: Sequence[Choice]) -> list[Choice]:
        """Return the items in random order."""
        left = list(items)
        return [left.pop(self.below(len(left))) for _ in items]
