"""Kinds of files of shapes, and their rules."""

from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final

MAX_FEATURES: Final = 500_000
MAX_LAYERS: Final = 10
WITH_LAYERS: Final = (".gpkg", ".pmtiles")


def layer_in(name: str) -> tuple[str, str]:
    """Return a file and its layer: of "basemap.pmtiles#roads" both, else "" as layer.

    >>> layer_in("basemap.pmtiles#roads"), layer_in("odd#name.geojson")
    (('basemap.pmtiles', 'roads'), ('odd#name.geojson', ''))
    """
    file, _, layer = name.rpartition("#")
    return (file, layer) if layer and file.lower().endswith(WITH_LAYERS) else (name, "")


def layer_name(name: str) -> str:
    """Name of the base layer that FILE or FILE#LAYER makes."""
    file, layer = layer_in(name)
    return layer or PurePosixPath(file).stem


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A file that [area] names; `beside` has the other files of a shapefile, by suffix.

    layer : name of the layer to read, where one is named behind the file; else ""
    """

    name: str
    data: bytes
    beside: dict[str, bytes] = field(default_factory=dict)
    layer: str = ""

    @property
    def suffix(self) -> str:
        """Ending of the name, in lower case."""
        return PurePosixPath(self.name).suffix.lower()

    @property
    def stem(self) -> str:
        """The name without folder and ending."""
        return PurePosixPath(self.name).stem

    @property
    def shown_name(self) -> str:
        """Name of a base layer."""
        return self.layer or self.stem


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The part of a file for maps: west, south, east, north in degrees, and its finest detail in metres."""

    box: tuple[float, float, float, float]
    detail_m: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Limits of a file.

    kinds : types of geometry
    noun : what a feature is
    layer : name of the layer to read; "" = the only one
    all_layers : whether several layers are read together
    view : what is drawn of the file; None = it is not for drawing, and read as a whole
    """

    kinds: tuple[str, ...]
    noun: str
    max_features: int = MAX_FEATURES
    layer: str = ""
    all_layers: bool = False
    view: View | None = None
