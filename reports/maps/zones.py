"""Zones of an indicator on a map: which class each has, and what is said of it. `static/js/map.js` draws.

A frame is one window, with a panel for each map that shows it. All frames of an indicator share one scale, so
that they can be compared.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from django.utils.translation import gettext

from reports.base import formats
from reports.base.status import Status
from reports.estimates.fingerprints import kept
from reports.estimates.options import ReportOptions, shown_value
from reports.estimates.picker import window_query
from reports.estimates.queries import Estimate, Window, WindowReport, indicator_reports, single_days_of
from reports.estimates.small_categories import below
from reports.maps.scale import HIDDEN, NOT_ASKED, NOT_READ, SCALES, Scale, values_of
from reports.maps.shapes import AreaShapes
from reports.studies.models import Area, Indicator, Study
from reports.studies.queries import has_unions

MapDocument = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class LegendRow:
    """A class of the legend; `place` is its number, counted from 1, or a name of what has no class."""

    place: str
    text: str


def zones_of(indicator: Indicator) -> list[str]:
    """Names of the zones that a map of the indicator shows; none where its categories are no zones.

    A few categories may be no zones, such as "NR"; most must be. Zones without shapes have no map, nor have
    visited zones, of which a report names one: they are a list.
    """
    if indicator.max_moves is not None:
        return []
    return shared_zones(_zones_with_shapes(indicator.study_id), indicator)


def mapped(indicators: Sequence[Indicator]) -> Indicator | None:
    """Return the first indicator of a study that has a map; moves and visits are lists only."""
    zones = _zones_with_shapes(indicators[0].study_id)
    return next((each for each in indicators if each.max_moves is None and shared_zones(zones, each)), None)


def _zones_with_shapes(study_id: int) -> list[str]:
    with_shapes = Area.objects.filter(study=study_id).exclude(outlines=[])
    return with_shapes.values_list("zones", flat=True).first() or []


def shared_zones(zones: Sequence[str], indicator: Indicator) -> list[str]:
    """Names of the zones that are categories of the indicator; none where most categories are no zones."""
    shared = set(zones) & set(indicator.categories)
    is_map = 2 * len(shared) > len(indicator.categories)
    return [name for name in zones if name in shared] if is_map else []


def windows_of_scale(indicator: Indicator) -> list[Window]:
    """Windows whose values the fixed bounds come from: each day, and all of them together."""
    study = indicator.study
    whole = [Window(1, study.days)] if study.days > 1 and has_unions(indicator) else []
    return [*single_days_of(study), *whole]


def map_scale(reports: Sequence[WindowReport], *, options: ReportOptions) -> Scale:
    """Return one scale for all windows of an indicator, from the reliable numbers; empty if no zone has one.

    Quantiles and equal widths follow the zones alone; round bounds leave room for the other categories too.
    """
    read = [report for report in reports if report.status == Status.OK]
    names = set(zones_of(read[0].indicator)) if read else set()
    found = [(report, each) for report in read for each in report.estimates]
    of_zones = [pair for pair in found if pair[1].category in names and pair[1].status == Status.OK]
    drawn = found if of_zones and options.classes == "round" else of_zones
    values = [_drawn(report, estimate, options=options) for report, estimate in drawn]
    return SCALES[options.classes](values_of([values]).ravel())


def scale_of(indicator: Indicator, *, options: ReportOptions) -> Scale:
    """Return the scale of `map_scale` for all windows of an indicator, made once for a state of its study."""

    def made() -> str:
        reports = indicator_reports(indicator, windows_of_scale(indicator))
        return json.dumps(asdict(map_scale(reports, options=options)))

    asked = (options.measure, options.values, options.layer, options.classes)
    found = json.loads(kept(indicator.study, "scale", indicator.pk, *asked, make=made))
    return Scale(**found | {"breaks": tuple(found["breaks"])})


def classes_names() -> dict[str, str]:
    """Names of the ways to choose the bounds of classes, as switches show them."""
    return {"round": gettext("Round"), "quantile": gettext("Quantiles"), "equal": gettext("Equal")}


def classes_words(options: ReportOptions) -> str:
    """Say how the bounds of the classes were chosen; nothing of round ones."""
    if options.classes == "quantile":
        return gettext(
            "The class limits are based on the figures of the zones for all individual days and for the "
            "whole study together. Each class contains about the same number of these figures."
        )
    if options.classes == "equal":
        return gettext("All classes have the same width.")
    return ""


def legend(scale: Scale, study: Study, *, options: ReportOptions) -> list[LegendRow]:
    """Classes of a scale in words, from the lowest, then what the study's rule for small categories hides."""
    labels = scale.labels(unit=_unit(options))
    rows = [LegendRow(place=str(place), text=text) for place, text in enumerate(labels, start=1)]
    if study.small_category:
        text = gettext("hidden (<%(n)s visitors, or would reveal such a figure)")
        rows.append(LegendRow(place="hidden", text=text % {"n": formats.number(below(study))}))
    return rows


def bounds_words(scale: Scale, *, options: ReportOptions) -> str:
    """Least and largest value that the scale was made for; empty if there are none."""
    if scale.is_empty:
        return ""
    decimals = 1 if options.measure == "frequency" else 0
    low, high = (formats.decimal(value, decimals=decimals) for value in (scale.low, scale.high))
    return gettext("%(low)s to %(high)s") % {"low": low, "high": high + _unit(options)}


def map_frame(
    report: WindowReport,
    *,
    names: Sequence[str],
    scale: Scale,
    options: ReportOptions,
    shown: Sequence[str] | None = None,
) -> MapDocument:
    """One window: class and text of each zone in `names`, in their order; `shown` are names for readers."""
    by_name = {estimate.category: estimate for estimate in report.estimates}
    found = [by_name.get(name) for name in names]
    return {
        "title": formats.window_title(report.first_date, report.last_date),
        "query": options.query(window_query(report.study, report.window)),
        "panels": [
            {
                "blank": formats.blank_words(report.status),
                "classes": [_class_of(report, each, scale=scale, options=options) for each in found],
                "texts": [
                    f"{each.shown_category if each else name}\n{_text(report, each, options=options)}"
                    for name, each in zip(shown or names, found, strict=True)
                ],
            }
        ],
    }


def map_document(shapes: AreaShapes, frame: MapDocument) -> MapDocument:
    """All that a page needs to draw one window."""
    return {"shapes": shapes.to_json(), "frame": frame}


def not_on_map(estimates: Sequence[Estimate], *, names: Sequence[str]) -> list[Estimate]:
    """Estimates of the categories that are no zone with a shape."""
    shown = set(names)
    return [estimate for estimate in estimates if estimate.category not in shown]


def _class_of(
    report: WindowReport, estimate: Estimate | None, *, scale: Scale, options: ReportOptions
) -> int:
    if estimate is None:
        return NOT_ASKED
    if estimate.is_hidden and report.study.small_category:
        return HIDDEN
    value = _drawn(report, estimate, options=options)
    if estimate.status != Status.OK or value is None:
        return NOT_READ
    return scale.class_of(value)


def _drawn(report: WindowReport, estimate: Estimate, *, options: ReportOptions) -> float | None:
    """Describe the values of the colours: percent or visitors; the estimate, or half of its interval."""
    shown = shown_value(report, estimate, options=options)
    value = shown.value
    if options.layer == "uncertainty":
        value = None if shown.low is None or shown.high is None else (shown.high - shown.low) / 2
    if value is None:
        return None
    return value * 100 if options.measure == "frequency" else value


def _text(report: WindowReport, estimate: Estimate | None, *, options: ReportOptions) -> str:
    """Estimate and interval of a zone, and the precision where that is what colours show."""
    if estimate is None:
        return gettext("not a category of this indicator")
    shown = shown_value(report, estimate, options=options)
    is_share = options.measure == "frequency"
    interval = formats.amount_range(shown.low, shown.high, options.measure)
    if estimate.status != Status.OK:
        word = formats.reason_words(estimate)
        return word if shown.low is None else f"{word} ({interval})"
    text = formats.amount(shown.value, options.measure)
    if not is_share:
        text = gettext("%(number)s visitors") % {"number": text}
    half = _drawn(report, estimate, options=options)
    if shown.high is not None and shown.high < 0:
        interval = gettext("%(interval)s: most likely close to zero") % {"interval": interval}
    if options.layer != "uncertainty" or half is None:
        return f"{text} ({interval})"
    width = formats.points(half / 100) if is_share else formats.number(half)
    return f"{text} ({interval})\n{formats.plus_minus(width)}"


def _unit(options: ReportOptions) -> str:
    return formats.percent_sign() if options.measure == "frequency" else ""
