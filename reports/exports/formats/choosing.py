"""The formats of downloads: which there are, for what, and who writes them.

Libraries that draw or know shapes are loaded when a file is asked for: no server and no worker starts slower.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from reports.base.later import later
from reports.exports.formats.sdmx import to_sdmx_csv
from reports.exports.formats.spreadsheet import to_xlsx
from reports.exports.records import CONTENT_TYPES, to_csv, to_json
from reports.exports.selection import Scope, Selection

_EVERYWHERE: Final = frozenset(Scope)
_ONE_INDICATOR: Final = frozenset({Scope.WINDOW, Scope.DAYS})


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A kind of file; `ending` is also its name in addresses.

    A format that `is_drawn` shows the page, in its order and measure; all others are data: complete, in
    plan order. One that `needs_zones` is for indicators whose categories are zones with shapes.
    """

    ending: str
    label: str
    purpose: str | Promise
    content_type: str
    scopes: frozenset[Scope]
    write: Callable[[Selection], bytes]
    is_drawn: bool = False
    needs_zones: bool = False


def render_file(selection: Selection, *, ending: str) -> bytes:
    """Bytes of a download; the same data in the same language give the same bytes.

    Raises
    ------
    KeyError : no such format
    ExportError : the format cannot hold the selection
    """
    return FORMATS[ending].write(selection)


def formats_for(scope: Scope, *, has_zones: bool = False) -> list[Format]:
    """Formats that make sense for a scope, in the order of a menu."""
    fitting = [found for found in FORMATS.values() if scope in found.scopes]
    return [found for found in fitting if has_zones or not found.needs_zones]


def _csv(selection: Selection) -> bytes:
    return to_csv(selection.reports).encode()


def _json(selection: Selection) -> bytes:
    return to_json(selection.reports).encode()


def _sdmx(selection: Selection) -> bytes:
    return to_sdmx_csv(selection.reports).encode()


FORMATS: Final = {
    found.ending: found
    for found in (
        Format(
            ending="csv",
            label="CSV",
            purpose=gettext_lazy("one row per category, for any program"),
            content_type=CONTENT_TYPES["csv"],
            scopes=_EVERYWHERE,
            write=_csv,
        ),
        Format(
            ending="xlsx",
            label="XLSX",
            purpose=gettext_lazy("spreadsheet, with a sheet of explanations"),
            content_type="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
            scopes=_EVERYWHERE,
            write=to_xlsx,
        ),
        Format(
            ending="json",
            label="JSON",
            purpose=gettext_lazy("all fields, for programs"),
            content_type=CONTENT_TYPES["json"],
            scopes=_EVERYWHERE,
            write=_json,
        ),
        Format(
            ending="parquet",
            label="Parquet",
            purpose=gettext_lazy("typed columns, for data science"),
            content_type="application/vnd.apache.parquet",
            scopes=_EVERYWHERE,
            write=later("reports.exports.formats.columnar.to_parquet"),
        ),
        Format(
            ending="sdmx.csv",
            label="SDMX-CSV",
            purpose=gettext_lazy("names and codes used by statistical offices"),
            content_type=CONTENT_TYPES["csv"],
            scopes=_EVERYWHERE,
            write=_sdmx,
        ),
        Format(
            ending="geojson",
            label="GeoJSON",
            purpose=gettext_lazy("zones with their estimates, for maps"),
            content_type="application/geo+json",
            scopes=_ONE_INDICATOR,
            write=later("reports.exports.formats.geographic.to_geojson"),
            needs_zones=True,
        ),
        Format(
            ending="geoparquet",
            label="GeoParquet",
            purpose=gettext_lazy("the same data in typed columns"),
            content_type="application/vnd.apache.parquet",
            scopes=_ONE_INDICATOR,
            write=later("reports.exports.formats.geographic.to_geoparquet"),
            needs_zones=True,
        ),
        Format(
            ending="pdf",
            label="PDF",
            purpose=gettext_lazy("report to read and share: chart, table, method, privacy"),
            content_type="application/pdf",
            scopes=_EVERYWHERE,
            write=later("reports.exports.pdf.to_pdf"),
            is_drawn=True,
        ),
        Format(
            ending="png",
            label="PNG",
            purpose=gettext_lazy("the chart or map, for slides"),
            content_type="image/png",
            scopes=_ONE_INDICATOR,
            write=later("reports.exports.drawing.pages.to_png"),
            is_drawn=True,
        ),
        Format(
            ending="svg",
            label="SVG",
            purpose=gettext_lazy("the chart or map, sharp at any size"),
            content_type="image/svg+xml",
            scopes=_ONE_INDICATOR,
            write=later("reports.exports.drawing.pages.to_svg"),
            is_drawn=True,
        ),
    )
}
