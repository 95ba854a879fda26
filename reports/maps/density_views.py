"""Maps of reported places: noisy and deconvolved side by side, and the worker that computes the second."""

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import require_POST, require_safe

from ldp.geo.location import LocationSpec
from reports.accounts.access import readers_only, study_or_404
from reports.base import formats
from reports.base.status import Status
from reports.estimates import locations
from reports.estimates.locations import LocationWindow
from reports.estimates.options import CHOICES, ReportOptions, switches
from reports.estimates.page import weekdays, window_page
from reports.estimates.picker import (
    build_picker,
    kept_days,
    requested_window,
    window_query,
    window_title,
)
from reports.estimates.queries import Window, WindowError, WindowReport, study_reports, visitor_unions
from reports.maps import actions as densities
from reports.maps import density, texts
from reports.maps import zones as maps
from reports.maps.models import DensityMap
from reports.maps.scale import Scale
from reports.maps.shapes import AreaShapes, area_shapes
from reports.privacy.location_texts import noise_words
from reports.privacy.statement.document import certified
from reports.privacy.statement.locations import location_protection
from reports.studies import texts as studies_texts
from reports.studies.geography.stored import GridMap
from reports.studies.models import Area, Indicator, Study
from reports.studies.queries import current_plan
from reports.studies.texts import crumbs_to


@require_safe
@readers_only
@gzip_page  # of 200 x 200 squares: 60 kB instead of a megabyte
def location_maps(request: HttpRequest, slug: str) -> HttpResponse:
    """Both maps of one window, counts by zone, and what the noise means."""
    study, spec = located_or_404(request, slug)
    options = ReportOptions.from_query(request.GET)
    context = _frame_of_page(study, request.GET) | {"options": options}
    visitors = visitor_unions(study)
    places = locations.as_indicator(study, spec)
    try:
        window = window_of(request.GET, study, spec)
    except WindowError as error:
        picker = build_picker(places, visitors=visitors, current=None, options=options)
        context |= {"state": "bad_window", "reason": str(error), "picker": picker}
        return render(request, "maps/maps.html", context, status=400)
    context |= window_page(places, window, visitors=visitors, options=options)
    context["switches"] = _switches(options, context["query"])
    return render(request, "maps/maps.html", context | _map(study, spec, window, options=options))


@require_safe
@readers_only
@gzip_page
def location_days(request: HttpRequest, slug: str) -> HttpResponse:
    """A frame for each day, as JSON, with the scale of the page."""
    study, spec = located_or_404(request, slug)
    options = ReportOptions.from_query(request.GET)
    area, grid_map = _area(study)
    found = locations.location_windows(study, _windows_of_scale(study, spec))
    scale = density.density_scale(found, options=options)
    days = [each for each in found if each.window.days == 1]
    frames = [
        density.density_frame(each, kept, grid_map=grid_map, scale=scale, options=options)
        for each, kept in zip(days, densities.kept_maps(area, days), strict=True)
    ]
    return JsonResponse({"frames": frames}, json_dumps_params={"ensure_ascii": False})


@require_POST
@readers_only
def compute(request: HttpRequest, slug: str) -> HttpResponse:
    """Ask for the map of a window, or of all days; then the page again, or how far it is."""
    study, spec = located_or_404(request, slug)
    window = _window_or_404(request, study, spec)
    is_all = request.POST.get("days") == "all"
    days = [each for each in locations.windows_with_maps(study, spec) if each.days == 1]
    densities.ask_for_maps(study, days if is_all else [window])
    if request.headers.get("HX-Request"):
        return _fragment(request, study, window)
    return redirect(f"{reverse('reports:maps', args=[slug])}?{window_query(study, window)}")


@require_safe
@readers_only
def state(request: HttpRequest, slug: str) -> HttpResponse:
    """Return the state of the map of a window."""
    study, spec = located_or_404(request, slug)
    return _fragment(request, study, _window_or_404(request, study, spec))


def _fragment(request: HttpRequest, study: Study, window: Window) -> HttpResponse:
    """Return the state of a map; the page of a finished one is loaded again."""
    context = _state(study, window)
    response = render(request, "maps/_density_state.html", context)
    if context["is_done"]:
        response["HX-Refresh"] = "true"
    return response


def located_or_404(request: HttpRequest, slug: str) -> tuple[Study, LocationSpec]:
    """A study with reported places, and what it promises of them."""
    study = study_or_404(request, slug)
    spec = locations.location_spec(study)
    if spec is None:
        raise Http404
    return study, spec


def window_of(query: QueryDict, study: Study, spec: LocationSpec) -> Window:
    """Return the window in the address, if places can be counted in it; else WindowError."""
    places = locations.as_indicator(study, spec)
    window = requested_window(query, indicator=places, visitors=visitor_unions(study))
    locations.check_mapped(window, study, spec)
    return window


def _window_or_404(request: HttpRequest, study: Study, spec: LocationSpec) -> Window:
    try:
        return window_of(request.GET, study, spec)
    except WindowError:
        raise Http404 from None


def _windows_of_scale(study: Study, spec: LocationSpec) -> list[Window]:
    return density.single_days_and_whole(study, locations.windows_with_maps(study, spec))


def _area(study: Study) -> tuple[Area, GridMap]:
    area = Area.objects.get(study=study)
    grid_map = area.grid_map
    if grid_map is None:
        raise Http404
    return area, grid_map


def _frame_of_page(study: Study, query: QueryDict) -> dict[str, Any]:
    """Return the contents of the page for any window."""
    plan = current_plan(study)
    protection = location_protection(certified(plan)[0], extra_days=plan.voided_days)
    return {
        "study": study,
        "weekdays": weekdays(),
        "noise": [] if protection is None else noise_words(protection),
        "crumbs": crumbs_to(study, kept_days(query, study)),
    }


def _switches(options: ReportOptions, query: str) -> list[Any]:
    labels = {"estimate": gettext("Estimate"), "uncertainty": gettext("Uncertainty")}
    return switches(options, titles={"layer": gettext("Colours")}, labels=labels, choices=CHOICES, kept=query)


def _map(study: Study, spec: LocationSpec, window: Window, *, options: ReportOptions) -> dict[str, Any]:
    """Return the page's view of a window, or why it has none."""
    area, grid_map = _area(study)
    of_scale = _windows_of_scale(study, spec)
    found = locations.location_windows(study, [window, *of_scale])
    this, days = found[0], [each for each in found[1:] if each.window.days == 1]
    if this.status != Status.OK:
        return {"state": str(this.status), "reason": studies_texts.status_reason(this.status, study)}
    (kept, *of_days) = densities.kept_maps(area, [this, *days])
    scale = density.density_scale(found[1:], options=options)
    shapes = area_shapes(area)
    address = reverse("reports:maps_days", args=[study.slug])
    return {
        "state": "map",
        "grid": spec.grid,
        "map_document": _document(this, kept, shapes, grid_map=grid_map, scale=scale, options=options),
        "map_days": f"{address}?{options.query('')}" if study.days > 1 else "",
        "map_day": window.first_day if window.days == 1 else 0,
        "legend": density.density_legend(scale),
        "layers": shapes.layers,
        "n_zones": len(area.zones),
        "at_antennas": grid_map.at_antennas,
        "summary": _summary(this, spec),
        **_state_of(kept, is_missing=[each is None for each in of_days]),
        **_zones(study, area, this, kept),
        **_alternatives(this),
    }


def _document(
    this: LocationWindow,
    kept: DensityMap | None,
    shapes: AreaShapes,
    *,
    grid_map: GridMap,
    scale: Scale,
    options: ReportOptions,
) -> maps.MapDocument:
    grid = this.spec.grid
    frame = density.density_frame(this, kept, grid_map=grid_map, scale=scale, options=options)
    document = maps.map_document(shapes, frame)
    east, north = grid.x0_m + grid.n_x * grid.step_m, grid.y0_m + grid.n_y * grid.step_m
    document["shapes"]["bounds"] = [grid.x0_m, grid.y0_m, east, north]
    return document


def _state(study: Study, window: Window) -> dict[str, Any]:
    """Return the fragment about the computation."""
    kept = densities.map_on_its_way(study, window)
    if kept is None:  # only now is the tally needed
        found = locations.location_windows(study, [window])
        (kept,) = densities.kept_maps(Area.objects.get(study=study), found)
    context = {"study": study, "query": window_query(study, window)}
    return context | _state_of(kept, is_missing=[])


def _state_of(kept: DensityMap | None, *, is_missing: list[bool]) -> dict[str, Any]:
    is_done = kept is not None and kept.state == DensityMap.State.DONE
    return {
        "is_done": is_done,
        "is_running": kept is not None and kept.is_on_its_way,
        "has_failed": kept is not None and kept.state == DensityMap.State.FAILED,
        "stage": texts.stage_words(kept) if kept else "",
        "n_stages": densities.N_STAGES,
        "n_stages_done": kept.stage if kept else 0,
        "goodness": texts.goodness_words(kept) if kept and is_done else "",
        "n_missing_days": sum(is_missing),
    }


def _zones(study: Study, area: Area, this: LocationWindow, kept: DensityMap | None) -> dict[str, Any]:
    if kept is None or kept.state != DensityMap.State.DONE:
        return {"zone_rows": []}
    rows = density.zone_rows(area.shown_zones, kept)
    indicators = [each for each in study.indicators.all() if maps.zones_of(each)]
    reports = _reports(indicators, this.window)
    return {
        "zone_rows": rows,
        "better_view": texts.better_view_words(rows[: len(area.zones)], reports, zones=area.zones),
    }


def _reports(indicators: list[Indicator], window: Window) -> list[WindowReport]:
    """Reports of these indicators that have intervals, however wide, where they have the window."""
    with_intervals = (Status.OK, Status.NOT_RELIABLE)
    return [report for report in study_reports(indicators, window) if report.status in with_intervals]


def _summary(this: LocationWindow, spec: LocationSpec) -> str:
    text = gettext(
        "%(reports)s subscribers reported a place. On average, a reported place is %(mean)s m from "
        "the true place."
    )
    return text % {"reports": formats.number(this.n_reports), "mean": formats.number(spec.law.mean_m)}


def _alternatives(this: LocationWindow) -> dict[str, str]:
    """Text alternatives of both maps."""
    title = window_title(this.study, this.window)
    return {
        "noisy_summary": gettext("Map of reported places, %(days)s.") % {"days": title},
        "density_summary": gettext("Map of the deconvolved density, %(days)s.") % {"days": title},
    }
