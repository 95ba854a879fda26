"""Moves of a day: pairs of places that follow each other, of which a report names one.

A day's stays with "outside" before the first and after the last give one move more than there are stays. The
keyed function picks one of them, or of `per_day` if they are fewer: the rest say "no move". So everyone
reports, and each move has the same chance, 1 / max(moves, per_day).

The code of a move counts as that of a joint indicator of two places (`ldp.privacy.joint`): "outside" is the
last value of each, and from outside to outside is "no move". From a place to itself is never reported.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ldp.errors import InvalidDomainError
from ldp.privacy.joint import joint_size

DEFAULT_MOVES: Final = 6
MOST_MOVES: Final = 100  # a place is noted once in a quarter of an hour


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveSpec:
    """Places between which people move, and moves of a day that keep their full weight.

    Parameters
    ----------
    places : int; at least 1, next to "outside"
    per_day : int; in [1, 100]; of a day with n moves, n > per_day, each counts per_day / n times

    Raises
    ------
    InvalidDomainError
    """

    places: int
    per_day: int = DEFAULT_MOVES

    def __post_init__(self) -> None:
        for name, value, high in (("places", self.places, None), ("per_day", self.per_day, MOST_MOVES)):
            is_whole = isinstance(value, int) and not isinstance(value, bool)
            if not (is_whole and 1 <= value <= (high or value)):
                rule = "an integer >= 1" if high is None else f"an integer in [1, {high}]"
                raise InvalidDomainError(f"{name} of moves must be {rule}, got {value!r}")

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | None) -> "MoveSpec | None":
        """Rebuild what `asdict` and JSON made of moves, or of none."""
        return None if data is None else cls(**data)

    @property
    def outside(self) -> int:
        """Code of the place "outside"."""
        return self.places

    @property
    def size(self) -> int:
        """Number of codes of moves, "no move" included."""
        return joint_size([self.places, self.places])

    @property
    def nothing(self) -> int:
        """Code of "no move"."""
        return self.size - 1
