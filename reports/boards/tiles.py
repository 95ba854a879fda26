"""Tiles of a board as plain values: kinds, order, size. Knows no figures."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any, Final, Self

MAX_TILES: Final = 24
MAX_TITLE: Final = 80  # characters
MAX_TEXT: Final = 2_000


class Kind(StrEnum):
    """Contents of a tile."""

    FIGURES = "figures"
    VISITORS = "visitors"
    INDICATOR = "indicator"
    NUMBER = "number"
    MAP = "map"
    FLOWS = "flows"
    EVENTS = "events"
    FORECAST = "forecast"
    TEXT = "text"


# Kinds that show an indicator, which `of` names.
OF_INDICATORS: Final = frozenset({Kind.INDICATOR, Kind.NUMBER, Kind.MAP, Kind.FLOWS, Kind.FORECAST})

_WIDE: Final = frozenset({Kind.FIGURES, Kind.FORECAST})  # when they are added


class TileError(ValueError):
    """A tile cannot be like that; the text is for the person who arranges the board."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """One part of a board.

    Parameters
    ----------
    key : names the tile in its board, in any place
    of : slug of the indicator; "" of other kinds
    measure : of charts and maps: "frequency" or "visitors"
    classes : of maps: bounds of the colours, as in `ReportOptions`
    is_wide : as wide as the board, else half of it
    title, text : of free text
    """

    key: int
    kind: Kind
    of: str = ""
    measure: str = "frequency"
    classes: str = "round"
    is_wide: bool = False
    is_hidden: bool = False
    title: str = ""
    text: str = ""

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        return cls(**(value | {"kind": Kind(value["kind"])}))

    def to_json(self) -> dict[str, Any]:
        """Return the parts that differ from the default."""
        default = type(self)(key=self.key, kind=self.kind)
        values = {name: value for name, value in asdict(self).items() if value != getattr(default, name)}
        return {"key": self.key, "kind": str(self.kind), **values}


def read_tiles(values: Sequence[dict[str, Any]]) -> list[Tile]:
    """Tiles as a board keeps them."""
    return [Tile.from_json(value) for value in values]


def write_tiles(tiles: Sequence[Tile]) -> list[dict[str, Any]]:
    """Inverse of `read_tiles`."""
    return [tile.to_json() for tile in tiles]


def with_tile(tiles: Sequence[Tile], kind: Kind, *, of: str = "") -> list[Tile]:
    """Tiles with one more at the end; the caller checks their number."""
    key = 1 + max((tile.key for tile in tiles), default=0)
    return [*tiles, Tile(key=key, kind=kind, of=of, is_wide=kind in _WIDE)]


def moved(tiles: Sequence[Tile], key: int, *, step: int) -> list[Tile]:
    """Tiles of which one has changed places with its neighbour: `step` is -1 or 1. At an end it stays."""
    place = next(i for i, tile in enumerate(tiles) if tile.key == key)
    other = min(max(place + step, 0), len(tiles) - 1)
    found = list(tiles)
    found[place], found[other] = found[other], found[place]
    return found


def changed(tiles: Sequence[Tile], key: int, **values: Any) -> list[Tile]:
    """Tiles of which one has other values."""
    return [replace(tile, **values) if tile.key == key else tile for tile in tiles]


def without(tiles: Sequence[Tile], key: int) -> list[Tile]:
    """Tiles without one."""
    return [tile for tile in tiles if tile.key != key]
