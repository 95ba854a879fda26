"""Deconvolved maps: asked for by a page, computed by a worker, kept until the tally changes."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from django.db import transaction
from django.utils import timezone

from ldp.geo.deconvolution import Density, bootstrap, deconvolve
from ldp.geo.goodness import goodness
from ldp.geo.transition import Transition
from ldp.geo.zones import MAX_ZONES, zone_counts, zone_weights
from reports.base.status import Status
from reports.base.tasks import send_on_commit
from reports.estimates.locations import LocationWindow, location_windows
from reports.estimates.queries import Window
from reports.maps.models import DensityMap
from reports.studies.geography.stored import GridMap
from reports.studies.models import Area, Study

N_STAGES: Final = 4  # density, replicates, goodness, zones
N_REPLICATES: Final = 50


def kept_maps(area: Area, windows: Sequence[LocationWindow]) -> list[DensityMap | None]:
    """Return the map of each window if it is up to date, in any state; else None."""
    rows = {(row.first_day, row.last_day): row for row in DensityMap.objects.filter(study=area.study_id)}
    found = [rows.get((each.window.first_day, each.window.last_day)) for each in windows]
    return [
        row if row is not None and row.fingerprint == each.fingerprint(area) else None
        for row, each in zip(found, windows, strict=True)
    ]


@transaction.atomic
def ask_for_maps(study: Study, windows: Sequence[Window]) -> int:
    """Ask for the maps of some windows that are neither there nor on their way; return their number."""
    area = Area.objects.select_for_update().get(study=study)
    asked = 0
    for each in location_windows(study, windows):
        if each.status != Status.OK:
            continue
        fingerprint = each.fingerprint(area)
        row, is_new = DensityMap.objects.get_or_create(
            study=study,
            first_day=each.window.first_day,
            last_day=each.window.last_day,
            defaults={"fingerprint": fingerprint},
        )
        if not is_new and not row.is_to_be_computed(fingerprint):
            continue
        row.fingerprint, row.state, row.stage, row.layers = fingerprint, DensityMap.State.WAITING, 0, None
        row.save()
        send_on_commit("reports.tasks.compute_density", row.pk)
        asked += 1
    return asked


def compute_map(pk: int) -> None:
    """Compute a map that was asked for, unless it is done or gone; after any error it is marked as failed."""
    row = DensityMap.objects.select_related("study__area").filter(pk=pk).first()
    if row is None or row.state == DensityMap.State.DONE:
        return
    try:
        _compute(row)
    except Exception:
        DensityMap.objects.filter(pk=pk).update(state=DensityMap.State.FAILED)
        raise


def map_on_its_way(study: Study, window: Window) -> DensityMap | None:
    """Return the map of a window that a worker computes, or will soon, of present or earlier data."""
    rows = DensityMap.objects.filter(study=study, first_day=window.first_day, last_day=window.last_day)
    row = rows.defer("layers").first()
    return row if row is not None and row.is_on_its_way else None


def _compute(row: DensityMap) -> None:
    area = row.study.area
    (found,) = location_windows(row.study, [Window(row.first_day, row.last_day)])
    grid_map = area.grid_map
    if grid_map is None:
        raise ValueError(f"area of study {row.study} must have a grid: its plan asks for places")

    def done(stage: int) -> None:
        running = DensityMap.State.RUNNING
        DensityMap.objects.filter(pk=row.pk).update(state=running, stage=stage, changed_at=timezone.now())

    done(0)
    layers, figures = _computed(found, grid_map, n_zones=len(area.zones), done=done)
    # A newer request, after a publication, makes this one obsolete.
    still_wanted = DensityMap.objects.filter(pk=row.pk, fingerprint=row.fingerprint)
    still_wanted.update(
        fingerprint=found.fingerprint(area),  # of what was read, which may be newer than what was asked for
        state=DensityMap.State.DONE,
        stage=N_STAGES,
        figures=figures,
        layers=row.set_layers(layers).layers,
        changed_at=timezone.now(),
    )


def _computed(
    found: LocationWindow, grid_map: GridMap, *, n_zones: int, done: Callable[[int], None]
) -> tuple[Any, dict[str, Any]]:
    """Layers (density, std_error, low, high) and figures of a map."""
    transition = Transition(grid_map.grid, epsilon_per_m=float(found.spec.precision.sampled))
    fitted = deconvolve(found.counts, transition=transition, land=grid_map.land)
    done(1)
    spread = bootstrap(
        found.counts,
        transition=transition,
        steps=fitted.steps,
        land=grid_map.land,
        n_replicates=N_REPLICATES,
    )
    done(2)
    fit = goodness(found.counts, transition=transition, fitted=fitted, land=grid_map.land)
    done(3)
    figures = {
        "steps": fitted.steps,
        "n_reports": int(found.counts.sum()),
        "n_replicates": N_REPLICATES,
        "chi_square": fit.chi_square,
        "chi_square_low": fit.low,
        "chi_square_high": fit.high,
        "n_blocks": fit.n_blocks,
        **_zones(found, grid_map, fitted, transition=transition, n_zones=n_zones),
    }
    return np.stack([fitted.density, spread.std_error, spread.low, spread.high]).astype(np.float32), figures


def _zones(
    found: LocationWindow, grid_map: GridMap, fitted: Density, *, transition: Transition, n_zones: int
) -> dict[str, Any]:
    """Subscribers by zone, in the order of the area's zones, and in none; nothing if there are too many."""
    is_outside = grid_map.zones < 0
    if not 1 <= n_zones <= MAX_ZONES - 1:
        return {"zones": [], "no_zone": None}
    weights = zone_weights(
        found.counts,
        transition=transition,
        steps=fitted.steps,
        zones=np.where(is_outside, n_zones, grid_map.zones).astype(np.int16),
        n_zones=n_zones + 1,
        land=grid_map.land,
        at_sites=grid_map.at_antennas,
    )
    counted = zone_counts(found.counts, transition=transition, weights=weights)
    names = ("noisy", "count", "std_error", "ci_low", "ci_high")
    columns = {name: getattr(counted, name).tolist() for name in names}
    *rows, outside = [
        {name: None if np.isnan(column[place]) else column[place] for name, column in columns.items()}
        for place in range(n_zones + 1)
    ]
    return {"zones": rows, "no_zone": outside if is_outside.any() else None}


def state_of_places(study: Study, window: Window) -> list[object]:
    """State of the deconvolved map, and the counts that it is from."""
    rows = DensityMap.objects.filter(study=study, first_day=window.first_day, last_day=window.last_day)
    return list(rows.values_list("fingerprint", "state"))
