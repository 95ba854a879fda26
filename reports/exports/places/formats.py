"""The files of reported places: what they hold, in which formats, and who writes them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from reports.base.later import later
from reports.estimates.options import ReportOptions
from reports.exports.formats.choosing import FORMATS
from reports.exports.places.selection import Places, zones_to_csv, zones_to_json


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacesFormat:
    """A file; `content` and `ending` make its address.

    A format that `is_drawn` has the colours of the page, all others are data.
    """

    content: str
    ending: str
    label: str | Promise
    purpose: str | Promise
    write: Callable[[Places, ReportOptions], bytes]
    is_drawn: bool = False

    @property
    def content_type(self) -> str:
        return FORMATS[self.ending].content_type


def _data(write: Callable[[Places], bytes]) -> Callable[[Places, ReportOptions], bytes]:
    """Writer of a file that no option changes."""
    return lambda places, _options: write(places)


ZONES, SQUARES, HEXAGONS, MAPS = "zones", "squares", "hexagons", "maps"
_HEXAGONS_PURPOSE: Final = gettext_lazy(
    "sums of squares; each square counts for the hexagon that contains its centre"
)
_SQUARES_PURPOSE: Final = gettext_lazy("reports and density by grid square, for maps")
PLACES_FORMATS: Final = {
    (found.content, found.ending): found
    for found in (
        PlacesFormat(
            content=ZONES,
            ending="csv",
            label="CSV",
            purpose=gettext_lazy("one row per zone, for any program"),
            write=_data(zones_to_csv),
        ),
        PlacesFormat(
            content=ZONES,
            ending="json",
            label="JSON",
            purpose=gettext_lazy("zones with all fields, for programs"),
            write=_data(zones_to_json),
        ),
        PlacesFormat(
            content=ZONES,
            ending="geojson",
            label=gettext_lazy("GeoJSON of zones"),
            purpose=gettext_lazy("zones with their estimates, for maps"),
            write=_data(later("reports.exports.places.geographic.zones_to_geojson")),
        ),
        PlacesFormat(
            content=ZONES,
            ending="geoparquet",
            label=gettext_lazy("GeoParquet of zones"),
            purpose=gettext_lazy("the same data in typed columns"),
            write=_data(later("reports.exports.places.geographic.zones_to_geoparquet")),
        ),
        PlacesFormat(
            content=SQUARES,
            ending="geojson",
            label=gettext_lazy("GeoJSON of squares"),
            purpose=_SQUARES_PURPOSE,
            write=_data(later("reports.exports.places.geographic.squares_to_geojson")),
        ),
        PlacesFormat(
            content=SQUARES,
            ending="geoparquet",
            label=gettext_lazy("GeoParquet of squares"),
            purpose=gettext_lazy("the same data in typed columns, in metres"),
            write=_data(later("reports.exports.places.geographic.squares_to_geoparquet")),
        ),
        PlacesFormat(
            content=HEXAGONS,
            ending="csv",
            label=gettext_lazy("CSV of hexagons (H3)"),
            purpose=_HEXAGONS_PURPOSE,
            write=_data(later("reports.exports.places.hexagons.hexagons_to_csv")),
        ),
        PlacesFormat(
            content=HEXAGONS,
            ending="geojson",
            label=gettext_lazy("GeoJSON of hexagons (H3)"),
            purpose=_HEXAGONS_PURPOSE,
            write=_data(later("reports.exports.places.hexagons.hexagons_to_geojson")),
        ),
        PlacesFormat(
            content=MAPS,
            ending="png",
            label="PNG",
            purpose=gettext_lazy("both maps, for slides"),
            write=later("reports.exports.places.drawing.places_to_png"),
            is_drawn=True,
        ),
        PlacesFormat(
            content=MAPS,
            ending="svg",
            label="SVG",
            purpose=gettext_lazy("both maps, sharp at any size"),
            write=later("reports.exports.places.drawing.places_to_svg"),
            is_drawn=True,
        ),
    )
}


def places_formats(*, has_hexagons: bool) -> list[PlacesFormat]:
    """Formats in the order of a menu; hexagons only for a study that asks for them."""
    return [found for found in PLACES_FORMATS.values() if has_hexagons or found.content != HEXAGONS]
