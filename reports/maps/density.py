"""Reported places on a map: noisy counts and the deconvolved density, one scale for both and all days."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from django.utils.translation import gettext
from numpy.typing import NDArray

from reports.base import formats
from reports.base.status import Status
from reports.estimates.locations import LocationWindow
from reports.estimates.options import ReportOptions
from reports.estimates.picker import window_query, window_title
from reports.estimates.queries import Estimate, Window, WindowReport, mean_half_width
from reports.maps.models import DensityMap
from reports.maps.scale import NOT_ASKED, Scale, fixed_scale
from reports.maps.zones import LegendRow, MapDocument
from reports.studies.geography.stored import GridMap
from reports.studies.models import Study

Floats = NDArray[np.float64]
_Z_95: Final = 1.96
_SHARPER: Final = 3.0  # a deconvolved peak may be this many times the noisy one and have its class
_FAINT: Final = 0.1  # of the first class: less has no colour, so that the land below can be seen


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneRow:
    """Subscribers of a zone by reported places; None where the zone holds the centre of no square."""

    name: str
    noisy: int
    estimate: Estimate | None


def density_scale(windows: Sequence[LocationWindow], *, options: ReportOptions) -> Scale:
    """One scale for both maps of all windows: from the reports, which do not change when more is computed."""
    filled = [each.counts[each.counts > 0].astype(np.float64) for each in windows if each.status == Status.OK]
    values = np.concatenate([*filled, np.empty(0)])
    if not values.size:
        return fixed_scale(values)
    if options.layer == "uncertainty":
        return fixed_scale(np.append(noise_of(values), _SHARPER * noise_of(values).max()))
    return fixed_scale(np.append(values, _SHARPER * values.max()))


def noise_of(counts: Floats) -> Floats:
    """Half of a 95% interval of reports in a square if the noise were drawn again; somewhat too large.

    Reports of a square are a sum of rare, independent events: their variance is at most their number.
    """
    return np.asarray(_Z_95 * np.sqrt(counts), np.float64)


def density_legend(scale: Scale) -> list[LegendRow]:
    """Classes of the scale, from the lowest."""
    return [LegendRow(place=str(place), text=text) for place, text in enumerate(scale.labels(), start=1)]


def density_frame(
    found: LocationWindow,
    kept: DensityMap | None,
    *,
    grid_map: GridMap,
    scale: Scale,
    options: ReportOptions,
) -> MapDocument:
    """One window: the noisy panel, and the deconvolved one, which may not have been computed yet."""
    study = found.study
    return {
        "title": window_title(study, found.window),
        "query": options.query(window_query(study, found.window)),
        "panels": [
            _noisy_panel(found, scale=scale, options=options),
            _density_panel(found, kept, grid_map=grid_map, scale=scale, options=options),
        ],
    }


def _noisy_panel(found: LocationWindow, *, scale: Scale, options: ReportOptions) -> MapDocument:
    counts = found.counts.ravel().astype(np.float64)
    half = noise_of(counts)
    shown = half if options.layer == "uncertainty" else counts
    return _panel(found, blank=formats.blank_words(found.status)) | {
        "classes": _classes(shown, scale=scale, is_known=found.status == Status.OK),
        "numbers": [counts.astype(np.int64).tolist(), _rounded(half)],
        "pattern": gettext("{0} reports (would vary by ±{1} if new noise were drawn)"),
        "none": formats.blank_words(found.status) or gettext("no reports, or very few"),
    }


def _density_panel(
    found: LocationWindow, kept: DensityMap | None, *, grid_map: GridMap, scale: Scale, options: ReportOptions
) -> MapDocument:
    blank = formats.blank_words(found.status)
    if kept is None or kept.state != DensityMap.State.DONE or blank:
        blank = blank or gettext("not computed yet")
        nothing = [NOT_ASKED] * found.spec.grid.n_cells
        return _panel(found, blank=blank) | {"classes": nothing, "numbers": [], "pattern": "", "none": blank}
    density, _, low, high = kept.get_layers(found.spec.grid.shape).reshape(4, -1).astype(np.float64)
    shown = (high - low) / 2 if options.layer == "uncertainty" else density
    return _panel(found, blank="") | {
        "classes": _classes(shown, scale=scale, is_known=True, land=grid_map.land.ravel()),
        "numbers": [_rounded(density), _rounded(low), _rounded(high)],
        "pattern": gettext("about {0} subscribers ({1} to {2})"),
        "none": gettext("almost no one, or an area not counted as land"),
    }


def _panel(found: LocationWindow, *, blank: str) -> MapDocument:
    grid = found.spec.grid
    sizes = {"x0": grid.x0_m, "y0": grid.y0_m, "step": grid.step_m, "n_x": grid.n_x, "n_y": grid.n_y}
    return {
        "grid": sizes,
        "blank": blank,
        "decimal": formats.decimal_sign(),
        "thousands": formats.thousands_sign(),
    }


def _classes(
    values: Floats, *, scale: Scale, is_known: bool, land: NDArray[np.bool_] | None = None
) -> list[int]:
    """Class of each square; without a colour where there is next to nothing."""
    if not is_known:
        return [NOT_ASKED] * values.size
    faint = _FAINT * scale.breaks[0] if scale.breaks else 0.0
    seen = values > faint if land is None else (values > faint) & land
    found: list[int] = np.where(seen, scale.classes(values), NOT_ASKED).tolist()
    return found


def _rounded(values: Floats) -> list[float]:
    """Tenths where they can be distinguished, and whole numbers above."""
    rounded: list[float] = np.where(values < 100, np.round(values, 1), np.round(values)).tolist()
    return [int(value) if value == int(value) else value for value in rounded]


# --- by zone ----------------------------------------------------------------------------------


def zone_rows(names: Sequence[str], kept: DensityMap) -> list[ZoneRow]:
    """Subscribers by zone, as a kept map counts them, and in none; empty without zones, or with too many."""
    counted = list(zip(names, kept.figures["zones"], strict=False))
    outside = kept.figures.get("no_zone")
    if counted and outside is not None:
        counted.append((gettext("Outside all zones"), outside))
    return [
        ZoneRow(name=name, noisy=int(row["noisy"]), estimate=_estimate(name, row, kept=kept))
        for name, row in counted
    ]


def _estimate(name: str, row: dict[str, Any], *, kept: DensityMap) -> Estimate | None:
    if row["count"] is None:
        return None
    return Estimate(
        category=name,
        reports=int(row["noisy"]),
        frequency=row["count"] / kept.figures["n_reports"],
        visitors=row["count"],
        visitors_ci_low=row["ci_low"],
        visitors_ci_high=row["ci_high"],
        status=Status.OK,
    )


def half_width_of_rows(rows: Sequence[ZoneRow]) -> float | None:
    """Half of the width of the intervals by zone, on average, in subscribers."""
    ends = [(row.estimate.visitors_ci_low, row.estimate.visitors_ci_high) for row in rows if row.estimate]
    return sum((high or 0.0) - (low or 0.0) for low, high in ends) / 2 / len(ends) if ends else None


def half_width_of_report(report: WindowReport, *, zones: Sequence[str]) -> float | None:
    """Return the same of a report of zones: in subscribers seen by the network, not scaled."""
    mean = mean_half_width([each for each in report.estimates if each.category in zones])
    return None if mean is None or report.n_visitors is None else report.n_visitors * mean


def single_days_and_whole(study: Study, windows: Sequence[Window]) -> list[Window]:
    """Windows that the scale is made for: each day, and, where it can be counted, the whole study."""
    return [each for each in windows if each.days in (1, study.days)]
