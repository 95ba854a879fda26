"""The formats of all downloads: what a file is about, which formats there are for it, and who writes them.

Libraries that draw or know shapes are loaded when a file is asked for: no server and no worker starts slower.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from reports.base.later import later
from reports.estimates.queries import WindowReport
from reports.exports.findings import tables as findings
from reports.exports.formats.sdmx import to_sdmx_csv
from reports.exports.formats.sdmx_structure import to_sdmx_json
from reports.exports.formats.spreadsheet import to_xlsx
from reports.exports.places.selection import zones_to_csv, zones_to_json
from reports.exports.presence import tables
from reports.exports.records import CONTENT_TYPES, to_csv, to_cumulative_csv, to_json
from reports.exports.selection import Scope, Selection
from reports.scenario.queries import Answer

COMPARISON, MOVEMENT, SCENARIO, PRESENCE = "comparison", "movement", "scenario", "presence"
CROSSTAB: Final = "crosstab"
FLOWS: Final = "flows"
BOARD: Final = "board"
NUMBERS: Final = "numbers"
SCENARIO_ANSWER: Final = "scenario_answer"  # for the page of a scenario; no menu has it
ZONES, SQUARES, HEXAGONS, MAPS = "zones", "squares", "hexagons", "maps"
PLACES: Final = (ZONES, SQUARES, HEXAGONS, MAPS)

_DRAWN: Final = frozenset({"pdf", "png", "svg"})
_WITH_GROUPS: Final = ("csv", "xlsx", "json", "parquet")
_TYPES: Final = {
    "csv": ("CSV", CONTENT_TYPES["csv"]),
    "xlsx": ("XLSX", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    "json": ("JSON", CONTENT_TYPES["json"]),
    "parquet": ("Parquet", "application/vnd.apache.parquet"),
    "cumulative.csv": ("CSV", CONTENT_TYPES["csv"]),
    "sdmx.csv": ("SDMX-CSV", CONTENT_TYPES["csv"]),
    "sdmx.json": ("SDMX-JSON", "application/vnd.sdmx.structure+json; version=2.0.0"),
    "geojson": ("GeoJSON", "application/geo+json"),
    "geoparquet": ("GeoParquet", "application/vnd.apache.parquet"),
    "pdf": ("PDF", "application/pdf"),
    "png": ("PNG", "image/png"),
    "svg": ("SVG", "image/svg+xml"),
}


def format_name(ending: str) -> str:
    """Name of a format, as links have it."""
    return _TYPES[ending][0]


def content_type(ending: str) -> str:
    """Media type of files with an ending."""
    return _TYPES[ending][1]


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of file; `ending` is also its name in addresses.

    Parameters
    ----------
    write : takes the Selection, the Findings or the Places that the file is about
    name : in menus, where that is not the name of the format
    needs_zones : it is for indicators whose categories are zones with shapes
    """

    ending: str
    purpose: str | Promise
    write: Callable[[Any], bytes]
    name: str | Promise = ""
    needs_zones: bool = False

    @property
    def label(self) -> str | Promise:
        return self.name or _TYPES[self.ending][0]

    @property
    def content_type(self) -> str:
        return _TYPES[self.ending][1]

    @property
    def is_drawn(self) -> bool:
        """Return whether it shows the page in its order and measure; all others are in plan order."""
        return self.ending in _DRAWN


def has_groups(scope: str, found: Format) -> bool:
    """Return whether a format can have the groups of categories; the others are about codes or shapes."""
    return found.ending in _WITH_GROUPS or (scope == Scope.WINDOW and found.is_drawn)


def group_formats() -> str:
    """Names of the formats of data with groups, for texts."""
    return ", ".join(map(format_name, _WITH_GROUPS))


def formats_for(scope: str, *, has_zones: bool = False) -> list[Format]:
    """Formats that make sense for a scope, in the order of a menu."""
    return [found for found in FORMATS[scope].values() if has_zones or not found.needs_zones]


def _encoded(write: Callable[[Iterable[WindowReport]], str]) -> Callable[[Selection], bytes]:
    return lambda selection: write(selection.reports).encode()


def _answer_to_json(answer: Answer) -> bytes:
    return json.dumps(answer.to_json()).encode()


def _later(name: str) -> Callable[[Any], bytes]:
    return later(f"reports.exports.{name}")


def _by_ending(*formats: Format) -> dict[str, Format]:
    return {found.ending: found for found in formats}


_CSV_FOR: Final = _("one row per category, for use in any program")
_XLSX_FOR: Final = _("spreadsheet, with a sheet that explains the data")
_JSON_FOR: Final = _("all fields, for use in programs")
_ZONES_FOR: Final = _("zones with their estimates, for maps")
_TYPED_FOR: Final = _("zones with their estimates, in typed columns")
_HEXAGONS_FOR: Final = _(
    "totals per hexagon; each grid square counts towards the hexagon that contains its centre"
)

_TABLES: Final = (
    Format("csv", _CSV_FOR, _encoded(to_csv)),
    Format("xlsx", _XLSX_FOR, to_xlsx),
    Format("json", _JSON_FOR, _encoded(to_json)),
    Format("parquet", _("typed columns, for data science"), _later("formats.columnar.to_parquet")),
    Format("sdmx.csv", _("names and codes used by statistical offices"), to_sdmx_csv),
)
_PDF: Final = Format(
    "pdf", _("report to read and share: chart, table, method, privacy"), _later("pdf.to_pdf")
)
_ONE_INDICATOR: Final = (
    *_TABLES,
    _PDF,
    Format("geojson", _ZONES_FOR, _later("formats.geographic.to_geojson"), needs_zones=True),
    Format("geoparquet", _TYPED_FOR, _later("formats.geographic.to_geoparquet"), needs_zones=True),
    Format("png", _("the chart or map, for slides"), _later("drawing.pages.to_png")),
    Format("svg", _("the chart or map, sharp at any size"), _later("drawing.pages.to_svg")),
)
_FINDINGS: Final = (
    Format("csv", _CSV_FOR, findings.to_csv),
    Format("xlsx", _XLSX_FOR, findings.to_xlsx),
    Format("json", _JSON_FOR, findings.to_json),
)
FORMATS: Final[Mapping[str, dict[str, Format]]] = {
    Scope.WINDOW: _by_ending(*_ONE_INDICATOR),
    Scope.DAYS: _by_ending(*_ONE_INDICATOR),
    Scope.STUDY: _by_ending(
        *_TABLES,
        Format(
            "cumulative.csv",
            _("visitors by date and category over the last 1 to 7 days, one row each"),
            _encoded(to_cumulative_csv),
            name=_("CSV of cumulative days"),
        ),
        Format("sdmx.json", _("structure and codelists of the SDMX-CSV files"), to_sdmx_json),
        _PDF,
    ),
    COMPARISON: _by_ending(*_FINDINGS),
    MOVEMENT: _by_ending(*_FINDINGS),
    SCENARIO: _by_ending(*_FINDINGS),
    CROSSTAB: _by_ending(*_FINDINGS),
    FLOWS: _by_ending(
        *_FINDINGS,
        Format(
            "geojson",
            _("a line between the two zones of each listed pair, for maps"),
            _later("findings.flow_lines.to_geojson"),
            needs_zones=True,
        ),
    ),
    NUMBERS: _by_ending(*_FINDINGS),
    PRESENCE: _by_ending(
        Format("csv", _("one row per slot and zone, for use in any program"), tables.to_csv),
        Format("xlsx", _XLSX_FOR, tables.to_xlsx),
        Format("json", _JSON_FOR, tables.to_json),
        Format("parquet", _("typed columns, for data science"), _later("presence.columnar.to_parquet")),
        Format("sdmx.csv", _("names and codes used by statistical offices"), tables.to_sdmx_csv),
        Format(
            "geojson",
            _("zones with figures for each time slot, for maps"),
            _later("presence.geographic.to_geojson"),
            needs_zones=True,
        ),
        Format("geoparquet", _TYPED_FOR, _later("presence.geographic.to_geoparquet"), needs_zones=True),
        Format(
            "pdf", _("report for the day: chart, table, method, privacy"), _later("presence.document.to_pdf")
        ),
        Format("png", _("the day's chart, formatted for slides"), _later("presence.drawing.to_png")),
        Format("svg", _("the chart for the day, sharp at any size"), _later("presence.drawing.to_svg")),
    ),
    BOARD: _by_ending(
        Format("pdf", _("all tiles, to print and share"), _later("boards.document.to_pdf")),
        Format("png", _("all tiles as one picture, for slides"), _later("boards.drawing.to_png")),
    ),
    SCENARIO_ANSWER: _by_ending(Format("json", "", _answer_to_json)),
    ZONES: _by_ending(
        Format("csv", _("one row per zone, for use in any program"), zones_to_csv),
        Format("json", _("all fields of each zone, for use in programs"), zones_to_json),
        Format(
            "geojson", _ZONES_FOR, _later("places.geographic.zones_to_geojson"), name=_("GeoJSON of zones")
        ),
        Format(
            "geoparquet",
            _TYPED_FOR,
            _later("places.geographic.zones_to_geoparquet"),
            name=_("GeoParquet of zones"),
        ),
    ),
    SQUARES: _by_ending(
        Format(
            "geojson",
            _("reports and density by grid square, for maps"),
            _later("places.geographic.squares_to_geojson"),
            name=_("GeoJSON of grid squares"),
        ),
        Format(
            "geoparquet",
            _("reports and density by grid square, in typed columns, with coordinates in metres"),
            _later("places.geographic.squares_to_geoparquet"),
            name=_("GeoParquet of grid squares"),
        ),
    ),
    HEXAGONS: _by_ending(
        Format(
            "csv",
            _HEXAGONS_FOR,
            _later("places.hexagons.hexagons_to_csv"),
            name=_("CSV of hexagons (H3)"),
        ),
        Format(
            "geojson",
            _HEXAGONS_FOR,
            _later("places.hexagons.hexagons_to_geojson"),
            name=_("GeoJSON of hexagons (H3)"),
        ),
    ),
    MAPS: _by_ending(
        Format("png", _("both maps, for slides"), _later("places.drawing.places_to_png")),
        Format("svg", _("both maps, sharp at any size"), _later("places.drawing.places_to_svg")),
    ),
}
