"""Zones with their estimates, for programs that draw maps: GeoJSON and GeoParquet, in WGS 84.

A zone has a row for each window. Categories that are no zone have one, too, without a shape: files are
complete. Shapes are those of the pages, simplified for display.
"""

import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

import geopandas
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from django.utils.translation import gettext
from shapely.geometry import shape

from reports.exports.errors import ExportError
from reports.exports.facts import as_mapping
from reports.exports.formats.columnar import METADATA_KEY
from reports.exports.formats.columns import NAMES, Kind, columns_of, kind_of
from reports.exports.records import flat_rows
from reports.exports.selection import Selection
from reports.maps import zones as maps
from reports.studies.models import Area

Feature = dict[str, Any]


def to_geojson(selection: Selection) -> bytes:
    """A feature for each row of the CSV; `provenance` says where the numbers come from.

    ExportError if the categories of the indicator are no zones.
    """
    features = features_of(selection)
    collection = {"type": "FeatureCollection", "provenance": as_mapping(selection), "features": features}
    return json.dumps(collection, ensure_ascii=False, allow_nan=False).encode()


def features_of(selection: Selection) -> list[Feature]:
    """A GeoJSON feature for each row of the CSV; its geometry is None if its category is no zone.

    ExportError if the categories of the indicator are no zones.
    """
    shapes = _shapes(selection)
    rows = (dict(zip(NAMES, values, strict=True)) for values in flat_rows(selection.reports))
    return [_feature(row, shapes.get(row["category"])) for row in rows]


def outlines_of(area: Area) -> list[Feature]:
    """A GeoJSON feature for each zone with a known shape, in the order of the zones."""
    shapes = area.zone_shapes
    return [_feature({"zone": name}, shapes[name]) for name in area.zones if name in shapes]


def to_geoparquet(selection: Selection) -> bytes:
    """Return the same as typed columns and a geometry; `provenance` is metadata of the schema."""
    shapes = {name: shape(geometry) for name, geometry in _shapes(selection).items()}
    found = columns_of(list(flat_rows(selection.reports)))
    columns: dict[str, tuple[str, Any]] = {name: (_dtype(name), found[name]) for name in NAMES}
    for name in NAMES:
        if kind_of(name) == Kind.DAY:
            columns[name] = ("object", pd.to_datetime(pd.Series(found[name])).dt.date)
    geometry = [shapes.get(category) for category in found["category"]]
    return geoparquet(columns, geometry, about=as_mapping(selection))


def geoparquet(
    columns: Mapping[str, tuple[str, Any]], geometry: Sequence[Any], *, about: Mapping[str, Any]
) -> bytes:
    """A file in WGS 84.

    Parameters
    ----------
    columns : type, as pandas calls it, and values of each column by name
    geometry : shape or None of each row
    about : plain values, kept under METADATA_KEY in the schema
    """
    typed = {name: pd.Series(values, dtype=kind) for name, (kind, values) in columns.items()}
    frame = geopandas.GeoDataFrame(typed, geometry=geometry, crs="OGC:CRS84")
    file = io.BytesIO()
    frame.to_parquet(file, index=False, compression="zstd")
    table = pq.read_table(pa.BufferReader(file.getvalue()))
    provenance = json.dumps(about, ensure_ascii=False).encode()
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), METADATA_KEY: provenance})
    file = io.BytesIO()
    pq.write_table(table, file, compression="zstd")
    return file.getvalue()


def _feature(properties: dict[str, Any], geometry: dict[str, Any] | None) -> Feature:
    return {"type": "Feature", "properties": properties, "geometry": geometry}


def _dtype(name: str) -> Any:
    return {Kind.TEXT: "string", Kind.DAY: "string", Kind.COUNT: "Int64"}.get(kind_of(name), "Float64")


def _shapes(selection: Selection) -> dict[str, dict[str, Any]]:
    """Geometry of each zone that is a category."""
    indicator = selection.reports[0].indicator
    zones = set(maps.zones_of(indicator))
    if not zones:
        raise ExportError(
            gettext(
                "The categories of %(indicator)s are not zones with known boundaries, so there is no map "
                "to export."
            )
            % {"indicator": indicator.slug}
        )
    shapes = Area.objects.get(study=indicator.study_id).zone_shapes
    return {name: geometry for name, geometry in shapes.items() if name in zones}
