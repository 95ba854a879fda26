"""Reported places as the API sends them; what they hold, `reports.exports.places.selection` says."""

from django.http import HttpRequest
from django.utils.translation import gettext

from reports.api.answers import Content, Page, as_json, page_links
from reports.base.problems import ProblemError
from reports.estimates.locations import check_mapped, location_spec
from reports.estimates.queries import Window
from reports.exports.places.selection import (
    SQUARE_NAMES,
    Places,
    Record,
    square_columns,
    tail_of,
    window_record,
)
from reports.studies.models import Study

_LEAST = 0.05  # subscribers in a square that is worth an entry


def located_window(study: Study, window: Window) -> Window:
    """The window; ProblemError if the study has no reported places, WindowError if not in that window."""
    spec = location_spec(study)
    if spec is None:
        raise ProblemError(404, gettext("In this study, people do not report places."))
    check_mapped(window, study, spec)
    return window


def page_of_squares(request: HttpRequest, places: Places, *, page: Page, is_all: bool) -> Content:
    """The window, and one page of its squares; without those that are empty unless all are asked for."""
    listed = listed_squares(places, is_all=is_all)
    links = page_links(request, page, count=len(listed))
    on_grid = {"projection": places.area.projection, "grid": places.found.spec.grid.to_json()}
    body = {
        "window": window_record(places) | on_grid | tail_of(places),
        "items": list(page.cut(listed)),
        "count": len(listed),
        "next": links.get("next"),
    }
    return Content(text=as_json(body).text, links=links)


def listed_squares(places: Places, *, is_all: bool) -> list[Record]:
    """Squares of the grid, SQUARE_NAMES each; without those that are empty unless all are asked for."""
    columns = square_columns(places)
    rows = zip(*(columns[name] for name in SQUARE_NAMES), strict=True)
    records = [dict(zip(SQUARE_NAMES, row, strict=True)) for row in rows]
    return records if is_all else [record for record in records if _has_anything(record)]


def _has_anything(square: Record) -> bool:
    return bool(square["reports"]) or (square["density"] or 0.0) >= _LEAST
