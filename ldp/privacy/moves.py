"""Moves of a day, or places that are visited on it: a set of items, of which a report names one.

A day's stays with "outside" before the first and after the last give one move more than there are stays. The
keyed function picks one of them, or of `per_day` if they are fewer: the rest say "no move". So everyone
reports, and each move has the same chance, 1 / max(moves, per_day).

The code of a move counts as that of a joint indicator of two places (`ldp.privacy.joint`): "outside" is the
last value of each, and from outside to outside is "no move". From a place to itself is never reported.

Places of a day, and pairs of them, are drawn in the same way (padding and sampling: Wang, Li, Jha, S&P 2018).
Each place counts once, without outside. A pair is of two different places in no order: its code counts those
of the first place with each later one, then those of the second. The last code is "nothing".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isqrt
from typing import Any, Final, Literal, get_args

from ldp.errors import InvalidDomainError
from ldp.privacy.joint import joint_size

Items = Literal["moves", "places", "pairs"]

DEFAULT_MOVES: Final = 6
MOST_MOVES: Final = 100  # a place is noted once in a quarter of an hour


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveSpec:
    """Places between which people move or that they visit, and items of a day that keep their full weight.

    Parameters
    ----------
    places : int; at least 1, next to "outside"; of pairs at least 2
    per_day : int; in [1, 100]; of a day with n items, n > per_day, each counts per_day / n times
    items : what a report names: a move, a visited place, or two places that are visited on the same day

    Raises
    ------
    InvalidDomainError
    """

    places: int
    per_day: int = DEFAULT_MOVES
    items: Items = "moves"

    def __post_init__(self) -> None:
        for name, value, high in (("places", self.places, None), ("per_day", self.per_day, MOST_MOVES)):
            is_whole = isinstance(value, int) and not isinstance(value, bool)
            if not (is_whole and 1 <= value <= (high or value)):
                rule = "an integer >= 1" if high is None else f"an integer in [1, {high}]"
                raise InvalidDomainError(f"{name} of moves must be {rule}, got {value!r}")
        if self.items not in get_args(Items):
            raise InvalidDomainError(f"items must be one of {get_args(Items)}, got {self.items!r}")
        if self.items == "pairs" and self.places < 2:
            raise InvalidDomainError(f"places of pairs must be an integer >= 2, got {self.places}")

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | None) -> "MoveSpec | None":
        """Rebuild what `asdict` and JSON made of moves, or of none."""
        return None if data is None else cls(**data)

    @classmethod
    def of_size(cls, size: int, *, per_day: int, items: Items) -> "MoveSpec":
        """Return what has this number of codes."""
        places = {
            "moves": isqrt(size) - 1,
            "places": size - 1,
            "pairs": (1 + isqrt(max(8 * size - 7, 1)))
            // 2,  # the larger root of places (places - 1) / 2 + 1 = size
        }
        return cls(places=places[items], per_day=per_day, items=items)

    def to_json(self) -> dict[str, Any]:
        """Plain values; without `items` of moves, so that hashes of older plans stay what they were."""
        of_sets = {} if self.items == "moves" else {"items": self.items}
        return {"places": self.places, "per_day": self.per_day, **of_sets}

    @property
    def outside(self) -> int:
        """Code of the place "outside"."""
        return self.places

    @property
    def size(self) -> int:
        """Number of codes of items, "no move" included."""
        if self.items == "moves":
            return joint_size([self.places, self.places])
        return 1 + (self.places if self.items == "places" else self.places * (self.places - 1) // 2)

    @property
    def nothing(self) -> int:
        """Code of "no move", or of nothing."""
        return self.size - 1
