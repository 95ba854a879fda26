"""Contents of the page of a number by category: a table, and a map where the categories are zones."""

from typing import Any

from django.utils.text import capfirst
from django.utils.translation import gettext

from reports.base import formats
from reports.base.status import Status
from reports.estimates.queries import WindowReport
from reports.maps import zones as maps
from reports.maps.scale import NOT_ASKED, NOT_READ, fixed_scale, values_of
from reports.maps.shapes import area_shapes
from reports.numbers import texts
from reports.numbers.by_category import CategoryMean, MeansReport, means_report
from reports.studies.models import Area


def means_context(report: WindowReport) -> dict[str, Any]:
    """Card of the means; nothing of an indicator that joins no number with another one."""
    spec = report.plan.parsed
    if spec.number_part(spec.index(report.indicator.slug)) is None:
        return {}
    found = means_report(report.indicator, report.window)
    return {
        "means_by": found,
        "means_rows": [(each.shown_category, *_cells(found, each)) for each in found.means],
        "means_rounding": texts.rounding_words(found.joint.scale),
        **_map(found),
    }


def _cells(found: MeansReport, each: CategoryMean) -> tuple[str, str, str, str]:
    """Mean and its interval, share and its interval."""
    mean, share, scale = each.mean, each.share, found.joint.scale
    is_shown = mean.status == Status.OK and mean.value is not None
    value = texts.figure_text(mean.value or 0.0, scale) if is_shown else _blank(mean.status)
    known = formats.percent(share.value) if share.status == Status.OK else _blank(share.status)
    return (
        value,
        texts.interval_text(mean, scale),
        known,
        formats.percent_range(share.ci_low, share.ci_high),
    )


def _blank(status: Status) -> str:
    return capfirst(formats.status_word(Status.NOT_RELIABLE if status == Status.OK else status))


def _map(found: MeansReport) -> dict[str, Any]:
    """Zones in the colours of their means; nothing where the categories are no zones with shapes."""
    if not maps.zones_of(found.joint.by):
        return {}
    shapes, scale = area_shapes(Area.objects.get(study=found.report.indicator.study_id)), found.joint.scale
    of_name = {each.category: each for each in found.means}
    read = {name: each for name, each in of_name.items() if each.mean.status == Status.OK}
    colours = fixed_scale(values_of([[each.mean.value for each in read.values()]]))
    zones = [of_name.get(name) for name in shapes.names]
    frame = {
        "title": formats.window_title(found.report.first_date, found.report.last_date),
        "query": "",
        "panels": [
            {
                "blank": "" if read else formats.blank_words(Status.NOT_RELIABLE),
                "classes": [
                    NOT_ASKED
                    if each is None
                    else NOT_READ
                    if each.category not in read or each.mean.value is None
                    else colours.class_of(each.mean.value)
                    for each in zones
                ],
                "texts": [
                    f"{shown}\n{_hover(found, each)}"
                    for shown, each in zip(shapes.shown_names, zones, strict=True)
                ],
            }
        ],
    }
    labels = enumerate(colours.labels(unit=f" {scale.unit}"), start=1)
    names = {"number": found.joint.number.shown_name, "by": found.joint.by.shown_name}
    return {
        "means_map": maps.map_document(shapes, frame),
        "means_legend": [maps.LegendRow(place=str(place), text=text) for place, text in labels],
        "means_others": None in zones,
        "means_layers": shapes.layers,
        "means_summary": gettext("Map of the mean of %(number)s by %(by)s.") % names,
    }


def _hover(found: MeansReport, each: CategoryMean | None) -> str:
    if each is None:
        return gettext("not a category of this indicator")
    value, interval, *_ = _cells(found, each)
    return f"{value} ({interval})"
