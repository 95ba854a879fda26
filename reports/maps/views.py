"""Maps of the zones of an indicator: what the report page shows of them, and the days to play through."""

import json
from collections.abc import Sequence
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from reports.accounts.access import indicator_or_404, readers_only, study_or_404
from reports.estimates.fingerprints import kept
from reports.estimates.options import ReportOptions, ordered, shown_value
from reports.estimates.queries import Estimate, WindowReport, indicator_reports
from reports.maps import zones as maps
from reports.maps.shapes import AreaShapes, area_shapes
from reports.studies.models import Area, Indicator


def map_context(
    report: WindowReport,
    *,
    zones: Sequence[str],
    options: ReportOptions,
) -> dict[str, Any]:
    """Contents of the map view of a window's page; `zones` are `zones_of` the indicator, at least one."""
    indicator = report.indicator
    shapes = _shapes(indicator)
    scale = maps.scale_of(indicator, options=options)
    names = {"names": shapes.names, "shown": shapes.shown_names}
    frame = maps.map_frame(report, scale=scale, options=options, **names)
    bounds = maps.bounds_words(scale, options=options)
    days = reverse("reports:map_days", args=[report.study.slug, indicator.slug])
    return {
        "map_document": maps.map_document(shapes, frame),
        "map_days": f"{days}?{options.query('')}" if report.study.days > 1 else "",
        "map_day": report.window.first_day if report.window.days == 1 else 0,
        "legend": maps.legend(scale, report.study, options=options),
        "legend_bounds": bounds,
        "classes_words": maps.classes_words(options),
        "has_other_zones": len(set(shapes.names) - set(zones)) > 0,
        "layers": shapes.layers,
        "not_on_map": [
            _as_shown(report, each, options)
            for each in maps.not_on_map(ordered(report, options=options), names=shapes.names)
        ],
        "map_summary": _summary(report, frame=frame, bounds=bounds),
    }


def _as_shown(report: WindowReport, estimate: Estimate, options: ReportOptions) -> Estimate:
    """Return the estimate with the value that the map would show."""
    value = shown_value(report, estimate, options=options).value
    return (
        estimate._replace(frequency=value)
        if options.measure == "frequency"
        else estimate._replace(visitors=value)
    )


@require_safe
@readers_only
def map_days(request: HttpRequest, slug: str, indicator_slug: str) -> HttpResponse:
    """A frame for each day of the study, as JSON, with the scale of the page."""
    study = study_or_404(request, slug)
    indicator = indicator_or_404(indicator_slug, among=list(study.indicators.all()))
    if not maps.zones_of(indicator):
        raise Http404
    options = ReportOptions.from_query(request.GET)
    frames = kept(study, "map", indicator.pk, options, make=lambda: _frames(indicator, options))
    return HttpResponse(frames, content_type="application/json")


def _frames(indicator: Indicator, options: ReportOptions) -> str:
    reports = indicator_reports(indicator, maps.windows_of_scale(indicator))
    scale = maps.map_scale(reports, options=options)
    shapes = _shapes(indicator)
    names = {"names": shapes.names, "shown": shapes.shown_names}
    days = [report for report in reports if report.window.days == 1]
    frames = [maps.map_frame(report, scale=scale, options=options, **names) for report in days]
    return json.dumps({"frames": frames}, cls=DjangoJSONEncoder, ensure_ascii=False)


def _shapes(indicator: Indicator) -> AreaShapes:
    return area_shapes(Area.objects.get(study=indicator.study_id))


def _summary(report: WindowReport, *, frame: maps.MapDocument, bounds: str) -> str:
    """Return the text for screen readers in place of the map."""
    words = {"name": report.indicator.shown_name, "days": frame["title"], "bounds": bounds}
    if not bounds:
        return gettext("Map of %(name)s, %(days)s. No zone has a reliable value.") % words
    return gettext("Map of %(name)s, %(days)s. Colours show values from %(bounds)s.") % words
