"""Reported places of a window for files and programs: by zone, and by square of the grid.

Values not computed yet are null, and `density_status` says so: a download never waits for a worker.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

import numpy as np
from django.utils.translation import gettext
from numpy.typing import NDArray

from reports.base.csv_texts import csv_text
from reports.base.status import Status
from reports.base.version import software
from reports.estimates.locations import LocationWindow, location_windows
from reports.estimates.options import ReportOptions
from reports.estimates.queries import LEVEL, Window
from reports.exports.records import CONTEXT_NAMES
from reports.maps.actions import kept_maps
from reports.maps.models import DensityMap
from reports.privacy.statement.document import certified
from reports.privacy.statement.locations import MECHANISM, location_protection
from reports.studies import texts as studies_texts
from reports.studies.geography.stored import NO_ZONE, GridMap
from reports.studies.models import Area, Study

Record = dict[str, Any]
DONE: Final = str(DensityMap.State.DONE)
NOT_COMPUTED: Final = "not_computed"  # no one has asked for it, or more was published since
TOO_MANY_ZONES: Final = "too_many_zones"
NO_SQUARE: Final = "no_square"
UNIT: Final = "place"  # subject of epsilon per metre: the place of a person on one day
CRS: Final = "OGC:CRS84"  # WGS 84, longitude first
ZONE_NAMES: Final = (
    "zone", "n_squares", "reports", "subscribers", "std_error", "ci_low", "ci_high",
    "status", "density_status",
)  # fmt: skip
LAYER_NAMES: Final = ("density", "std_error", "low", "high")  # as a kept map has them
SQUARE_NAMES: Final = ("square", "x_m", "y_m", "reports", *LAYER_NAMES, "zone", "land")
_AS_IT_IS: Final = ReportOptions()
_DECIMALS: Final = (
    5  # of subscribers: a kept map has seven digits, and tens of thousands of squares are added up
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Places:
    """One window of a study's reported places.

    `kept` is its deconvolved map in any state, None where none is up to date. Drawings follow the `options`
    of the page, data do not.
    """

    found: LocationWindow
    area: Area
    grid_map: GridMap
    kept: DensityMap | None
    options: ReportOptions

    @property
    def study(self) -> Study:
        return self.found.study

    @property
    def first_date(self) -> date:
        return self.study.date_of(self.found.window.first_day)

    @property
    def last_date(self) -> date:
        return self.study.date_of(self.found.window.last_day)

    @property
    def is_hidden(self) -> bool:
        """Return whether the small-cell rule hides the window."""
        return self.found.status == Status.SUPPRESSED

    @property
    def density_status(self) -> str:
        """State of the deconvolved map: one of `DensityMap.State`, or "not_computed"."""
        return NOT_COMPUTED if self.kept is None else str(self.kept.state)

    @property
    def layers(self) -> NDArray[np.float64] | None:
        """density, std_error, low and high by square: shape (4, n_cells); None unless they are computed."""
        if self.kept is None or self.density_status != DONE:
            return None
        grid = self.found.spec.grid
        layers = self.kept.get_layers(grid.shape).reshape(len(LAYER_NAMES), -1).astype(np.float64)
        return np.round(layers, _DECIMALS)

    def file_name(self, content: str) -> str:
        """Name of a file without its ending."""
        return f"{self.study.slug}_{content}_{self.first_date}_{self.last_date}"


def select_places(study: Study, window: Window, *, options: ReportOptions = _AS_IT_IS) -> Places:
    """Reported places of one window; errors as of `location_windows`."""
    (found,) = location_windows(study, [window])
    area = Area.objects.get(study=study)
    grid_map = area.grid_map
    if grid_map is None:
        raise ValueError(f"area of study {study} must have a grid: its plan asks for places")
    kept = None if found.status == Status.SUPPRESSED else kept_maps(area, [found])[0]
    return Places(found=found, area=area, grid_map=grid_map, kept=kept, options=options)


def head_of(places: Places) -> Record:
    """Return the first columns of all rows: window, plan, noise, and number of reports."""
    found, spec = places.found, places.found.spec
    protection = location_protection(certified(found.plan)[0], extra_days=found.plan.voided_days)
    return {
        "study": places.study.slug,
        "first_day": places.first_date.isoformat(),
        "last_day": places.last_date.isoformat(),
        "plan_version": found.plan.version,
        "mechanism": MECHANISM,
        "level": float(spec.level),
        "radius_m": float(spec.radius_m),
        "epsilon_per_m": not_below(float(spec.certified), spec.certified),
        "unit": UNIT,
        "places_per_person": None if protection is None else protection.n_places,
        "n_visitors": found.n_visitors,
        "n_reports": found.n_reports,
    }


def tail_of(places: Places) -> Record:
    """Return the last columns of all rows, as in other exports."""
    values = (LEVEL, places.study.timezone, software()["version"])
    return dict(zip(CONTEXT_NAMES, values, strict=True))


def zone_records(places: Places) -> list[Record]:
    """Reports and subscribers by zone, in the order of the area, and in none (null): all reports are there.

    Nothing where the area has no zones.
    """
    kept = places.kept.figures if places.kept and places.density_status == DONE else {}
    zones, counts = places.grid_map.zones, places.found.counts
    figures = kept.get("zones", [])
    rows: list[tuple[str | None, int, Record]] = [
        (name, place, figures[place] if figures else {}) for place, name in enumerate(places.area.zones)
    ]
    if rows and (zones < 0).any():
        rows.append((None, NO_ZONE, kept.get("no_zone") or {}))
    records = []
    for name, place, figure in rows:
        is_in = zones == place
        values = (
            name,
            int(is_in.sum()),
            None if places.is_hidden else int(counts[is_in].sum()),
            *(figure.get(column) for column in ("count", "std_error", "ci_low", "ci_high")),
            str(places.found.status),
            _zone_status(places, figure),
        )
        records.append(dict(zip(ZONE_NAMES, values, strict=True)))
    return records


def square_columns(places: Places) -> dict[str, list[Any]]:
    """All squares of the grid by code, as columns: SQUARE_NAMES.

    `square` is the code (row * n_x + column, rows going north), `x_m` and `y_m` its middle in metres of the
    projection of the area, `zone` the one that holds the middle.
    """
    grid = places.found.spec.grid
    x_m, y_m = grid.centres()
    layers = places.layers
    nothing: list[Any] = [None] * grid.n_cells
    names = [*places.area.zones, None]  # -1 is no zone
    return {
        "square": list(range(grid.n_cells)),
        "x_m": x_m.tolist(),
        "y_m": y_m.tolist(),
        "reports": nothing if places.is_hidden else places.found.counts.ravel().tolist(),
        **{
            name: nothing if layers is None else layers[place].tolist()
            for place, name in enumerate(LAYER_NAMES)
        },
        "zone": [names[place] for place in places.grid_map.zones.ravel().tolist()],
        "land": places.grid_map.land.ravel().tolist(),
    }


def window_record(places: Places) -> Record:
    """The window, whether it is reliable, and the state of its density."""
    statuses = {"status": str(places.found.status), "density_status": places.density_status}
    return head_of(places) | statuses


def zones_document(places: Places) -> Record:
    """The window with its zones, as JSON files and the API have it."""
    return {**window_record(places), "zones": zone_records(places), **tail_of(places)}


def zones_to_csv(places: Places) -> bytes:
    """One row per zone; what is missing is empty, and both statuses say why."""
    before, after = head_of(places), tail_of(places)
    rows = ([*before.values(), *row.values(), *after.values()] for row in zone_records(places))
    return csv_text([*before, *ZONE_NAMES, *after], rows).encode()


def zones_to_json(places: Places) -> bytes:
    """An object: the window, and a list `zones`."""
    return json.dumps(zones_document(places), ensure_ascii=False, allow_nan=False, indent=1).encode()


def provenance(places: Places) -> Mapping[str, Any]:
    """Return the facts of a file about itself: plain values for the metadata of maps and pictures."""
    return {
        **window_record(places),
        "study_name": places.study.name,
        "visitor_rule": studies_texts.visitor_rule(places.study),
        "plan_sha256": places.found.plan.spec_hash,
        "crs": CRS,
        "projection": places.area.projection,
        "grid": places.found.spec.grid.to_json(),
        "exact": gettext(
            "n_visitors, n_reports and reports are exact counts, but the reported places are noisy. All "
            "other values are estimated numbers of subscribers seen by the network, not scaled to the "
            "population."
        ),
        **tail_of(places),
    }


def collection(
    places: Places, properties: list[Record], shapes: list[Any], *, about: Mapping[str, Any] | None = None
) -> bytes:
    """GeoJSON: a feature for each of `properties`; `about` is added to the provenance."""
    features = [
        {"type": "Feature", "properties": row, "geometry": shape}
        for row, shape in zip(properties, shapes, strict=True)
    ]
    facts = {**provenance(places), **(about or {})}
    whole = {"type": "FeatureCollection", "provenance": facts, "features": features}
    return json.dumps(whole, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _zone_status(places: Places, figure: Record) -> str:
    """Return why a zone has no estimate; "done" where it has one."""
    if places.density_status != DONE:
        return places.density_status
    if not figure:
        return TOO_MANY_ZONES
    return NO_SQUARE if figure["count"] is None else DONE


def not_below(found: float, exact: Any) -> float:
    """The double at or above a decimal: a printed epsilon is never below what is certified."""
    return found if found >= exact else math.nextafter(found, math.inf)
