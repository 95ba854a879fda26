"""Rows with true places to rows with noisy ones: the table that may leave."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ldp.geo.grid import Grid
from ldp.geo.location import LocationSpec
from ldp.kernels.cmac import cmac64
from ldp.kernels.entropy import KeyedPrf
from ldp.kernels.streams import derive_subkey
from ldp.keyed.noise.locations import LocationSanitiser
from mobility.tables.holding import Findings, holding_place
from mobility.tables.options import TableError, TableOptions
from mobility.tables.placing import OUTSIDE, TableArea, noise_purpose
from mobility.tables.rows import Rows

EARTH_M: Final = 6_371_008.8  # mean radius
FAR_M: Final = 2e7  # half of the equator
DECIMALS: Final = 6  # of degrees: 0.1 m, far below a square
ID_PURPOSE: Final = "table/id"

Degrees = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Positions:
    """True places of rows, checked.

    lon, lat : float64 (n,), in degrees
    x_m, y_m : the same in metres
    codes : uint16 (n,), square of each
    ids : bytes and offsets of all ids, as `cmac64` takes them
    id_of : int64 (n,), number of the id of each row, from 0 in file order
    n_outside : rows outside of the squares, which count for the nearest one
    """

    lon: Degrees
    lat: Degrees
    x_m: Degrees
    y_m: Degrees
    codes: NDArray[np.uint16]
    ids: tuple[NDArray[np.uint8], NDArray[np.int64]]
    id_of: NDArray[np.int64]
    n_outside: int

    @property
    def n_ids(self) -> int:
        """Return how many different ids there are."""
        return int(self.id_of.max()) + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Sanitised:
    """The table that may leave, and what happened to its rows.

    zone_changed : share of rows whose zone is not that of the true place, in [0, 1]; None without zones
    """

    table: pa.Table
    zone_changed: float | None


def positions_of(rows: Rows, options: TableOptions, *, area: TableArea, spec: LocationSpec) -> Positions:
    """Read ids and places of all rows.

    Raises
    ------
    TableError : a column is missing, an id is empty, a coordinate is none, an id has two places, or no row is
        in the area
    """
    for name in (options.id, options.lat, options.lon, *options.dropped):
        if name not in rows.table.column_names:
            raise TableError(f"the file has no column {name!r}")
    lat = _coordinates(rows, options.lat, most=90)
    lon = _coordinates(rows, options.lon, most=180)
    ids = _texts(rows.table[options.id], name=options.id)
    empty = np.asarray(pc.equal(ids, "").to_numpy(zero_copy_only=False), np.bool_)
    if empty.any():
        raise TableError(f"column {options.id!r}, {rows.places(empty)}: the id is empty")
    # The other side of the Earth is infinitely far in this projection.
    x_m, y_m = (np.clip(each, -FAR_M, FAR_M) for each in area.projection.to_metres(lon, lat))
    n_outside = int(_is_outside(x_m, y_m, grid=spec.grid).sum())
    if n_outside == len(lat):
        raise TableError(
            f"no row is in the area: see that {options.lat!r} and {options.lon!r} are degrees (WGS 84), and "
            "not exchanged, or give other zones (--zones)"
        )
    codes = spec.grid.codes(x_m, y_m)
    id_of = ids.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
    _, first = np.unique(id_of, return_index=True)
    moved = codes != codes[first[id_of]]
    if moved.any():
        raise TableError(
            f"column {options.id!r}, {rows.places(moved)}: the id has another place than in its first row. "
            "An id needs one place per table. Give rows of several places an id each only if they belong to "
            "different people"
        )
    return Positions(
        lon=lon,
        lat=lat,
        x_m=x_m,
        y_m=y_m,
        codes=codes,
        ids=_messages(ids),
        id_of=id_of,
        n_outside=n_outside,
    )


def replaced_columns(options: TableOptions, *, area: TableArea) -> frozenset[str]:
    """Return the columns that are computed; a zone of the file stays where there are no zones."""
    return options.replaced if area.has_zones else options.replaced - {options.zone}


def findings_of(rows: Rows, options: TableOptions, positions: Positions, *, area: TableArea) -> Findings:
    """Look for columns that would stay and still hold the place.

    TableError if a column has values that cannot be compared.
    """
    out = {*options.dropped, *replaced_columns(options, area=area)}
    staying = rows.table.select([name for name in rows.table.column_names if name not in out])
    nested = [field.name for field in staying.schema if _is_opaque(field.type)]
    if nested:
        raise TableError(
            f"column {nested[0]!r} has nested or binary values, which are not checked: leave it out (--drop)"
        )
    return holding_place(staying, x_m=positions.x_m, y_m=positions.y_m, id_of=positions.id_of)


def sanitised(
    rows: Rows,
    options: TableOptions,
    positions: Positions,
    *,
    area: TableArea,
    spec: LocationSpec,
    master_key: bytes,
    is_reordered: bool = False,
) -> Sanitised:
    """Replace places by reports and ids by pseudonyms; compute zone and distances from the reports alone.

    Parameters
    ----------
    master_key : of the study: the same id at the same place has the same report in every table of the same
        promise and area
    is_reordered : write the rows in a keyed order, which tells nothing
    """
    pseudonyms = cmac64(derive_subkey(master_key, purpose=ID_PURPOSE), *positions.ids)
    prf = KeyedPrf(derive_subkey(master_key, purpose=noise_purpose(area, spec)))
    reports = LocationSanitiser(spec, prf, 1).reports(pseudonyms, positions.codes)
    x_m, y_m = (centres[reports] for centres in spec.grid.centres())
    lon, lat = (np.round(each, DECIMALS) for each in area.projection.to_degrees(x_m, y_m))
    made: dict[str, pa.Array] = {options.lat: pa.array(lat), options.lon: pa.array(lon)}
    if options.id not in options.dropped:
        made[options.id] = pa.array([f"{each:016x}" for each in pseudonyms.tolist()])
    changed = None
    if area.has_zones:
        zones = area.zones_of(lon, lat)
        made[options.zone] = _zone_names(zones, area)
        changed = float((zones != area.zones_of(positions.lon, positions.lat)).mean())
    for point in options.points:
        metres = distance_m(lon, lat, lon_to=point.lon, lat_to=point.lat)
        made[point.column] = pa.array(np.rint(metres).astype(np.int64))
    table = _replaced(rows.table, made, dropped=options.dropped)
    if is_reordered:
        table = table.take(pa.array(np.argsort(pseudonyms, kind="stable")))
    return Sanitised(table=table, zone_changed=changed)


def distance_m(lon: Degrees, lat: Degrees, *, lon_to: float, lat_to: float) -> Degrees:
    """Great-circle distance to a point, in metres; degrees in, float64 (n,) out."""
    rise, run = np.radians(lat - lat_to) / 2, np.radians(lon - lon_to) / 2
    half = np.sin(rise) ** 2 + np.cos(np.radians(lat)) * np.cos(np.radians(lat_to)) * np.sin(run) ** 2
    return np.asarray(2 * EARTH_M * np.arcsin(np.sqrt(np.minimum(half, 1.0))), np.float64)


def _is_outside(x_m: Degrees, y_m: Degrees, *, grid: Grid) -> NDArray[np.bool_]:
    east, north = x_m - grid.x0_m, y_m - grid.y0_m
    is_east = (east < 0) | (east >= grid.n_x * grid.step_m)
    return np.asarray(is_east | (north < 0) | (north >= grid.n_y * grid.step_m), np.bool_)


def _replaced(table: pa.Table, made: dict[str, pa.Array], *, dropped: tuple[str, ...]) -> pa.Table:
    """Columns in file order, new values in their places, new columns last."""
    kept = {name: table[name] for name in table.column_names if name not in dropped}
    return pa.table(kept | made)


def _zone_names(zones: NDArray[np.int64], area: TableArea) -> pa.Array:
    names = pa.array([*area.area.zones, None], pa.string())
    return names.take(pa.array(np.where(zones == OUTSIDE, len(names) - 1, zones)))


def _coordinates(rows: Rows, name: str, *, most: int) -> Degrees:
    """Degrees of all rows; TableError that names column and rows."""
    column = rows.table[name].combine_chunks()
    try:
        if pa.types.is_string(column.type):
            column = pc.utf8_trim_whitespace(column)
        found = column.cast(pa.float64())
    except pa.ArrowException:  # it says which value
        found = pa.array([_number(text) for text in _texts(column, name=name).to_pylist()], pa.float64())
    degrees = np.asarray(found.to_numpy(zero_copy_only=False), np.float64)
    wrong = ~(np.abs(degrees) <= most)
    if wrong.any():
        raise TableError(
            f"column {name!r}, {rows.places(wrong)}: must be a number of degrees from -{most} to {most}"
        )
    return degrees


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def _texts(column: pa.Array | pa.ChunkedArray, *, name: str) -> pa.Array:
    """Values as texts, empty where there is none; TableError if the type has none."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    try:
        return pc.fill_null(array.cast(pa.string()), "")
    except pa.ArrowException:
        raise TableError(f"column {name!r} must hold text or numbers, got {array.type}") from None


def _messages(ids: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Bytes and offsets of texts."""
    texts = [text.encode() for text in ids.to_pylist()]
    offsets = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    return np.frombuffer(b"".join(texts), np.uint8), offsets


def _is_opaque(kind: pa.DataType) -> bool:
    kinds = (pa.types.is_nested, pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
    return any(of_kind(kind) for of_kind in kinds)
