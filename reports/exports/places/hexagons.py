"""Squares of the grid summed by hexagons of the H3 grid: CSV and GeoJSON of a study that asks for them.

The noise is that of the squares; a square belongs to the hexagon of its centre. Errors of a sum are not known
from those of its squares, so there are none.
"""

import math
from typing import Any, Final

from django.utils.translation import gettext

from reports.base.csv_texts import csv_text
from reports.exports.places.selection import Places, collection, head_of, square_columns, tail_of
from reports.studies.geography.hexagons import hexagon_ring, hexagons_of
from reports.studies.geography.projection import LocalProjection

HEXAGON_NAMES: Final = ("h3", "n_squares", "reports", "density", "status", "density_status")


def hexagon_records(places: Places) -> list[dict[str, Any]]:
    """Reports and density by hexagon, each of a square or more; ValueError if the study asks for none."""
    resolution = places.area.h3_resolution
    if resolution is None:
        raise ValueError(f"h3_resolution of {places.area} must be set: it asks for no hexagons")
    x_m, y_m = places.found.spec.grid.centres()
    names = hexagons_of(*LocalProjection(places.area.projection).to_degrees(x_m, y_m), resolution=resolution)
    columns = square_columns(places)
    members: dict[str, list[int]] = {}
    for square, name in enumerate(names):
        members.setdefault(name, []).append(square)
    statuses = (str(places.found.status), places.density_status)
    return [
        dict(zip(HEXAGON_NAMES, (name, len(found), *_sums(columns, found), *statuses), strict=True))
        for name, found in sorted(members.items())
    ]


def hexagons_to_csv(places: Places) -> bytes:
    """One row per hexagon."""
    before, after = head_of(places), tail_of(places)
    rows = ([*before.values(), *row.values(), *after.values()] for row in hexagon_records(places))
    return csv_text([*before, *HEXAGON_NAMES, *after], rows).encode()


def hexagons_to_geojson(places: Places) -> bytes:
    """A feature for each hexagon."""
    records = hexagon_records(places)
    shapes = [{"type": "Polygon", "coordinates": [hexagon_ring(row["h3"])]} for row in records]
    words = gettext("Each grid square counts towards the hexagon that contains its centre.")
    about = {"h3_resolution": places.area.h3_resolution, "hexagons": words}
    return collection(places, records, shapes, about=about)


def _sums(columns: dict[str, list[Any]], squares: list[int]) -> tuple[int | None, float | None]:
    """Reports and density of some squares; None where they are hidden, or not computed."""
    reports = [columns["reports"][each] for each in squares]
    density = [columns["density"][each] for each in squares]
    return (
        None if reports[0] is None else sum(reports),
        None if density[0] is None else round(math.fsum(density), 5),
    )
