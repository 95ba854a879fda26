"""Options of a sanitised table: what was asked for, approved, and may then be run once."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from decimal import Decimal
from typing import Any, Self

from mobility.base.errors import MobilityError


class TableError(MobilityError):
    """The table cannot be sanitised like that; nothing was written. Names columns and rows, never values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedPoint:
    """A public point, in degrees (WGS 84), to which each row's distance is computed."""

    name: str
    lat: float
    lon: float

    @property
    def column(self) -> str:
        """Name of the column with the distance."""
        return f"distance_to_{self.name}_m"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """Everything that decides what a table holds, next to the file itself.

    id, lat, lon : names of the columns with the id of what a row is about, and its place in degrees (WGS 84)
    zone : name of the column for the zone of the sanitised place; one of that name is replaced
    level, radius_m : the odds of two places that lie radius_m apart differ at most by e^level
    grid_m : side of the squares, in metres
    dropped : columns to leave out, sorted
    points : named points
    zones_sha256 : of the file with the zones; empty = those of the study
    zone_property : attribute of that file with the code of a zone; empty without a file
    """

    id: str
    lat: str
    lon: str
    zone: str
    level: Decimal
    radius_m: int
    grid_m: int
    dropped: tuple[str, ...] = ()
    points: tuple[NamedPoint, ...] = ()
    zones_sha256: str = ""
    zone_property: str = ""

    def __post_init__(self) -> None:
        made = [self.id, self.lat, self.lon, self.zone, *(point.column for point in self.points)]
        twice = sorted({name for name in made if made.count(name) > 1})
        if twice:
            raise TableError(f"column {twice[0]!r} is named for two purposes: choose different columns")
        needed = sorted({self.lat, self.lon} & set(self.dropped))
        if needed:
            raise TableError(f"column {needed[0]!r} is replaced by the sanitised position: do not drop it")

    @property
    def replaced(self) -> frozenset[str]:
        """Columns whose values are computed: the pseudonym, and what follows from the sanitised position."""
        return frozenset({self.id, self.lat, self.lon, self.zone, *(point.column for point in self.points)})

    def to_json(self) -> dict[str, Any]:
        """Plain values, in a fixed order; the level as text."""
        return asdict(self) | {"level": f"{self.level.normalize():f}"}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Build the options that `to_json` wrote."""
        made = {field.name: data[field.name] for field in fields(cls)}
        made["level"], made["dropped"] = Decimal(data["level"]), tuple(data["dropped"])
        made["points"] = tuple(NamedPoint(**point) for point in data["points"])
        return cls(**made)
