"""PMTiles, version 3: the vector tiles of a rectangle, looked up here within limits, decoded by GDAL.

A small file of this format can stand for any number of tiles, each as large as it likes. So a few tiles are
looked up one by one, and only they are unpacked.
"""

import json
import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple, Self

import geopandas as gpd
import numpy as np
import pyogrio
import shapely
from numpy.typing import NDArray
from pyogrio.errors import DataLayerError, DataSourceError
from shapely.errors import GEOSException

from reports.studies.geography.files.rules import Rules, Source, View
from reports.studies.studyfile.problems import Problems, nearest

ENDING: Final = ".pmtiles"
MAX_TILES: Final = 64
MAX_TILE_BYTES: Final = 20_000_000
MAX_VERTICES: Final = 5_000_000  # of all tiles that are read: a few seconds, and some 100 MB
MAX_DIRECTORY_BYTES: Final = 1_000_000
MAX_METADATA_BYTES: Final = 5_000_000
MAX_ZOOM: Final = 26
_HEADER_BYTES, _DEPTH = 127, 4
_UNPACKED, _GZIP, _VECTOR = 1, 2, 1
_TILE_UNITS: Final = 4096  # of a tile's side
_EARTH_M: Final = 40_075_016.7  # around the equator
_HALF_M: Final = _EARTH_M / 2
_MAX_LATITUDE: Final = 85.05  # of the square that holds all tiles


class Tile(NamedTuple):
    """Zoom, column from the west, row from the north."""

    zoom: int
    x: int
    y: int

    def number(self) -> int:
        """Place along the curve of Hilbert that the file is sorted by, after all tiles of lower zooms."""
        n, x, y = 1 << self.zoom, self.x, self.y
        found = (n * n - 1) // 3
        for bit in reversed(range(self.zoom)):
            side = 1 << bit
            right, down = int(bool(x & side)), int(bool(y & side))
            found += side * side * ((3 * right) ^ down)
            if not down:
                x, y = (n - 1 - y, n - 1 - x) if right else (y, x)
        return found

    def box_m(self) -> tuple[float, float, float, float]:
        """West, south, east and north in metres of Web Mercator."""
        side = _EARTH_M / (1 << self.zoom)
        west, north = self.x * side - _HALF_M, _HALF_M - self.y * side
        return west, north - side, west + side, north


class TilesError(ValueError):
    """The rule that a file breaks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Directory:
    """Entries in the order of `ids`; of those with 0 in `runs`, other directories. Offsets as in the file."""

    ids: NDArray[np.int64]
    runs: NDArray[np.int64]
    lengths: NDArray[np.int64]
    offsets: NDArray[np.int64]

    @classmethod
    def of(cls, data: bytes) -> Self:
        """Read an unpacked directory."""
        values = _varints(data)
        n = int(values[0]) if values.size else 0
        if values.size < 1 + 4 * n:
            raise TilesError("must have complete directories: copy the file again")
        ids, runs, lengths, offsets = values[1 : 1 + 4 * n].reshape(4, n)
        return cls(ids=np.cumsum(ids), runs=runs, lengths=lengths, offsets=offsets)

    def find(self, number: int) -> tuple[bool, int, int] | None:
        """Return whether the entry of a tile is a directory, its begin and length; None: no entry."""
        at = int(np.searchsorted(self.ids, number, side="right")) - 1
        if at < 0:
            return None
        is_directory = self.runs[at] == 0
        if not is_directory and number >= self.ids[at] + self.runs[at]:
            return None
        # 0 = it follows the entry before
        said = np.flatnonzero(self.offsets[: at + 1])
        if not said.size:
            raise TilesError("must have directories that say where tiles begin")
        last = int(said[-1])
        begin = int(self.offsets[last]) - 1 + int(self.lengths[last:at].sum())
        return bool(is_directory), begin, int(self.lengths[at])


class Archive:
    """A PMTiles file; TilesError for what cannot be read."""

    def __init__(self, data: bytes) -> None:
        if not data.startswith(b"PMTiles") or len(data) < _HEADER_BYTES:
            raise TilesError("must be a PMTiles file, but does not start like one")
        if data[7] != 3:
            raise TilesError(f"must be PMTiles of version 3, not {data[7]}: convert it first")
        if data[99] != _VECTOR:
            raise TilesError("must hold vector tiles, not pictures")
        numbers = np.frombuffer(data, "<u8", count=8, offset=8).tolist()
        self._root, self._metadata = tuple(numbers[0:2]), tuple(numbers[2:4])
        self._leaves, self._tiles = numbers[4], numbers[6]
        self._packing, self._tile_packing = data[97], data[98]
        self.zooms = int(data[100]), min(int(data[101]), MAX_ZOOM)
        self._data = data
        self._directories: dict[tuple[int, int], _Directory] = {}

    def layers(self) -> list[str]:
        """Names of the layers that the file says it has."""
        data = self._part(*self._metadata, packing=self._packing, limit=MAX_METADATA_BYTES, what="metadata")
        try:
            found = json.loads(data)["vector_layers"]
            return [str(each["id"]) for each in found]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise TilesError("must name its layers in its metadata (vector_layers)") from None

    def tile(self, tile: Tile) -> bytes | None:
        """Return an unpacked tile; None where there is none."""
        begin, length = self._root
        number = tile.number()
        for _ in range(_DEPTH):
            found = self._directory(begin, length).find(number)
            if found is None:
                return None
            is_directory, begin, length = found
            if not is_directory:
                where = self._tiles + begin, length
                return self._part(*where, packing=self._tile_packing, limit=MAX_TILE_BYTES, what="tiles")
            begin += self._leaves
        raise TilesError("must have directories at most three deep")

    def _directory(self, begin: int, length: int) -> _Directory:
        where = begin, length
        if where not in self._directories:
            limit = MAX_DIRECTORY_BYTES
            data = self._part(*where, packing=self._packing, limit=limit, what="directories")
            self._directories[where] = _Directory.of(data)
        return self._directories[where]

    def _part(self, begin: int, length: int, *, packing: int, limit: int, what: str) -> bytes:
        """Unpack a part of the file, at most `limit` bytes."""
        if not 0 <= begin <= begin + length <= len(self._data):
            raise TilesError("must be complete, but ends too early: copy the file again")
        part = self._data[begin : begin + length]
        if packing == _GZIP:
            try:
                part = zlib.decompressobj(wbits=31).decompress(part, limit + 1)
            except zlib.error as error:
                raise TilesError(f"must have {what} that can be unpacked: {error}") from None
        elif packing != _UNPACKED:
            raise TilesError(f"must have {what} that are packed by gzip, or not packed")
        if len(part) > limit:
            raise TilesError(f"must have {what} of at most {limit // 1_000_000} MB each when unpacked")
        return part


def read_tiles(source: Source, problems: Problems, *, rules: Rules) -> gpd.GeoDataFrame | None:
    """Return the lines of one layer in `rules.view`, and the union of its polygons; None after a problem.

    Lines are cut at the borders of tiles. Polygons overlap beyond them, so that their union has no seams.
    """
    shapes: list[Any] = []
    try:
        archive = Archive(source.data)
        layer = _layer(archive, source, problems)
        found = iter(()) if layer is None else _shapes(archive, layer, rules=rules)
        shapes = list(islice(found, rules.max_features + 1))  # one more is refused by who asks
        if len(shapes) <= rules.max_features:
            shapes = _without_seams(shapes)
    except TilesError as error:
        problems.add("content", str(error))
    except (DataSourceError, DataLayerError, GEOSException, ValueError):
        problems.add("content", "must hold vector tiles that can be read: make the file again")
    if problems.found:
        return None
    if not shapes:
        problems.add("features", "must be at least one line or polygon near the area")
        return None
    return gpd.GeoDataFrame(geometry=shapes, crs="EPSG:3857")


def tiles_of(view: View, *, zooms: tuple[int, int]) -> list[Tile]:
    """Tiles of the lowest zoom that is fine enough for a view; of a lower one if these were too many."""
    west, south, east, north = view.box
    south, north = (min(max(each, -_MAX_LATITUDE), _MAX_LATITUDE) for each in (south, north))
    unit_m = _EARTH_M / _TILE_UNITS * math.cos(math.radians((south + north) / 2))
    fine = math.ceil(math.log2(max(unit_m / view.detail_m, 1.0)))
    for zoom in range(min(max(fine, zooms[0]), zooms[1]), -1, -1):
        n = 1 << zoom
        columns = [min(max(math.floor((lon + 180) / 360 * n), 0), n - 1) for lon in (west, east)]
        rows = [min(max(math.floor(_down(lat) * n), 0), n - 1) for lat in (north, south)]
        across, down = (range(first, last + 1) for first, last in (columns, rows))
        if len(across) * len(down) <= MAX_TILES:
            return [Tile(zoom, x, y) for x in across for y in down]
    raise AssertionError("zoom 0 has one tile")


def _down(latitude: float) -> float:
    """Share of the height of all tiles that lies north of a latitude."""
    return (1 - math.asinh(math.tan(math.radians(latitude))) / math.pi) / 2


def _layer(archive: Archive, source: Source, problems: Problems) -> str | None:
    known, named = archive.layers(), source.layer
    if named in known:
        return named
    if not named and len(known) == 1:
        return known[0]
    rule = "must be at least one"
    if known:
        rule = f'must be named behind the file, as in "{source.name}#{known[0]}": one of {", ".join(known)}'
    problems.add("layers", rule + nearest(named, known=known), named or None)
    return None


def _shapes(archive: Archive, layer: str, *, rules: Rules) -> Iterator[Any]:
    """Yield the lines and polygons of all tiles of the view, in Web Mercator."""
    tiles = [] if rules.view is None else tiles_of(rules.view, zooms=archive.zooms)
    if tiles and tiles[0].zoom < archive.zooms[0]:
        raise TilesError(f"must have tiles of zoom {tiles[0].zoom} for an area of this size")
    n_vertices = 0
    with TemporaryDirectory(prefix="geography-") as folder:
        for tile in tiles:
            data = archive.tile(tile)
            if not data:
                continue
            path = Path(folder) / f"{tile.zoom}-{tile.x}-{tile.y}.pbf"  # GDAL places it by its name
            path.write_bytes(data)
            if layer not in pyogrio.list_layers(path)[:, 0]:
                continue
            most = rules.max_features + 1
            frame = pyogrio.read_dataframe(path, layer=layer, columns=[], max_features=most, CLIP="NO")
            n_vertices += int(shapely.get_num_coordinates(frame.geometry.to_numpy()).sum())
            if n_vertices > MAX_VERTICES:
                raise TilesError(
                    f"must have at most {MAX_VERTICES} vertices near the area: keep main features only, such "
                    "as large rivers and motorways"
                )
            drawn = (_drawn(shape, tile=tile) for shape in frame.geometry)
            yield from (shape for shape in drawn if shape is not None and not shape.is_empty)


def _without_seams(shapes: Sequence[Any]) -> list[Any]:
    """Lines as they are, and what polygons cover together."""
    lines = [shape for shape in shapes if "Line" in shape.geom_type]
    union = shapely.union_all([shape for shape in shapes if "Polygon" in shape.geom_type])
    polygons = [
        part for part in shapely.get_parts(union) if part.geom_type == "Polygon" and not part.is_empty
    ]
    return [*lines, *polygons]


def _drawn(shape: Any, *, tile: Tile) -> Any | None:
    """A line cut to its tile, or a polygon that is valid; None of what is neither."""
    if shape is None or shape.is_empty:
        return None
    if shape.geom_type in ("LineString", "MultiLineString"):
        return shapely.clip_by_rect(shape, *tile.box_m())
    if shape.geom_type in ("Polygon", "MultiPolygon"):
        parts = shapely.get_parts(shapely.make_valid(shape, method="structure"))
        return shapely.MultiPolygon([part for part in parts if part.geom_type == "Polygon"])
    return None


def _varints(data: bytes) -> NDArray[np.int64]:
    """Numbers of seven bits a byte, the lowest first; the last byte of each is below 128."""
    raw = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(raw < 128)
    if not ends.size:
        return np.empty(0, np.int64)
    starts = np.concatenate([[0], ends[:-1] + 1])
    sizes = ends - starts + 1
    if sizes.max() > 7:  # 49 bits: more than any place in a file that is read
        raise TilesError("must have directories whose numbers are below 2^49")
    raw = raw[: ends[-1] + 1].astype(np.int64)
    shifts = 7 * (np.arange(raw.size) - np.repeat(starts, sizes))
    return np.add.reduceat((raw & 127) << shifts, starts)
