"""Presence by slot for programs that draw maps: a feature for each slot and zone, with its time; WGS 84.

A larger zone is the union of the zones in it. Shapes are those of the pages, simplified for display.
"""

import json
from typing import Any, Final

import shapely
from django.utils.translation import gettext
from shapely.geometry import mapping, shape

from reports.exports.errors import ExportError
from reports.exports.formats.geographic import geoparquet
from reports.exports.presence.tables import NAMES, SlotTable, provenance
from reports.slots.queries import SlotZone
from reports.studies.models import Area

MAX_FEATURES: Final = {"geojson": 20_000, "geoparquet": 60_000}  # each has its shape
_TYPES: Final = {"count": "Int64", "people": "Float64", "std_error": "Float64", "ci_low": "Float64"}


def to_geojson(table: SlotTable) -> bytes:
    """A feature for each slot and zone; its member `time` is that of OGC Features and Geometries JSON."""
    _check(table, "geojson")
    shapes = {zone.place: found and mapping(found) for zone, found in _shapes(table).items()}
    geometry = [shapes[zone.place] for zone in table.zones]
    features = []
    for place, row in enumerate(table.rows()):
        slot = table.slots[place // len(table.zones)]
        interval = [f"{each:%Y-%m-%dT%H:%M:%S}Z" for each in table.in_utc(slot)]
        features.append(
            {
                "type": "Feature",
                "time": {"interval": interval},
                "properties": dict(zip(NAMES, row, strict=True)),
                "geometry": geometry[place % len(table.zones)],
            }
        )
    whole = {"type": "FeatureCollection", "provenance": provenance(table), "features": features}
    return json.dumps(whole, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def to_geoparquet(table: SlotTable) -> bytes:
    """Slots and zones as typed columns, with times in UTC and a geometry."""
    _check(table, "geoparquet")
    by_name = dict(zip(NAMES, zip(*table.rows(), strict=True), strict=True))
    columns: dict[str, tuple[str, Any]] = {
        name: (_TYPES.get(name, "Float64" if name == "ci_high" else "string"), list(values))
        for name, values in by_name.items()
    }
    times = [table.in_utc(slot) for slot in table.slots for _ in table.zones]
    for place, name in enumerate(("slot_start", "slot_end")):
        columns[name] = ("datetime64[ms, UTC]", [each[place] for each in times])
    shapes = _shapes(table)
    geometry = [shapes[zone] for _ in table.slots for zone in table.zones]
    return geoparquet(columns, geometry, about=provenance(table))


def _check(table: SlotTable, ending: str) -> None:
    most = MAX_FEATURES[ending]
    if table.n_rows > most:
        text = gettext(
            "A map file can hold %(most)d rows (one per slot and zone), but this selection has %(rows)d. "
            "Choose fewer days or zones, or choose Parquet without zone shapes."
        )
        raise ExportError(text % {"most": most, "rows": table.n_rows})


def _shapes(table: SlotTable) -> dict[SlotZone, Any]:
    """Shape of each zone of a table; None where it is not known. ExportError without any."""
    area = Area.objects.filter(study=table.found.study).first()
    known = {} if area is None else {name: shape(each) for name, each in area.zone_shapes.items()}
    if area is None or not known:
        raise ExportError(
            gettext("No boundaries are available for the zones of this study, so there is no map to export.")
        )
    found: dict[SlotZone, Any] = {}
    for zone in table.zones:
        if not zone.level:
            found[zone] = known.get(zone.name)
            continue
        (level,) = (each for each in table.found.slots.levels if each["name"] == zone.level)
        place = level["zones"].index(zone.name)
        parts = [
            known[name]
            for name, within in zip(area.zones, level["within"], strict=True)
            if within == place and name in known
        ]
        found[zone] = shapely.union_all(parts) if parts else None
    return found
