"""Figures of the page of movements: all visitors per day, and one figure per category."""

from collections.abc import Sequence
from typing import Any, Final

from django.utils.translation import gettext

from reports.base import formats
from reports.base.status import Status
from reports.estimates.charts import (
    SYMBOLS,
    Figure,
    axis_label,
    base_layout,
    category_axis,
    chart_text,
    day_axis,
    row_px,
    whiskers,
)
from reports.estimates.options import MAX_LINES
from reports.movement.figures import DayTotals, Derived, Movement, Point, Show, Unit
from reports.movement.texts import derived_text, value_text
from reports.studies.models import Study

_FIRST_LINES: Final = 5  # without a choice: more hide each other
_APART: Final = 0.09  # days between two categories, so that their intervals can be distinguished
_FLAT: Final[dict[str, Any]] = {"symbol": "line-ew-open", "size": 7, "line": {"width": 1}}
_LEGEND: Final[dict[str, Any]] = {
    "orientation": "h", "y": -0.14, "yanchor": "top", "x": 0, "itemclick": "toggle", "traceorder": "normal",
}  # fmt: skip


def totals_figure(study: Study, totals: Sequence[DayTotals]) -> Figure:
    """Bars of the visitors of each day, parted by whether they were there before, and who was there last."""
    days = [day.coverage.day for day in totals]
    parts = (
        (gettext("First-time"), [day.arrivals for day in totals], "--chart-1"),
        (gettext("Returning"), [day.returning for day in totals], "--chart-2"),
    )
    data = [
        _bars(study, days, values, name=name) | {"marker": {"color": colour}}
        for name, values, colour in parts
    ]
    last = [day.departures for day in totals]
    name = gettext("Last visit")
    data.append(
        _bars(study, days, last, name=name)
        | {
            "type": "scatter",
            "mode": "markers",
            "marker": {"color": "--text", "symbol": "diamond-open", "size": 10, "line": {"width": 2}},
        }
    )
    layout = base_layout(height_px=320)
    layout["xaxis"] |= day_axis(study, days=days)
    layout["yaxis"] |= {"rangemode": "tozero", "nticks": 5, "tickformat": ",.0f"}
    layout["legend"] = _LEGEND
    return {"data": data, "layout": layout | {"barmode": "stack", "bargap": 0.35}}


def movement_figure(found: Movement, *, study: Study, shown: Sequence[int]) -> Figure | None:
    """The chosen figure for the categories with the codes `shown`; None where there is nothing to draw.

    Lines over the days, or dots where there is one point or the two of a window. Where only bounds are
    known, or an estimate is not reliable, the interval alone is drawn.
    """
    if not any(estimate.ci_low is not None for point in found.points for estimate in point.estimates):
        return None
    if found.show in (Show.DAYS_PRESENT, Show.WINDOW):
        return _dots(found)
    data = [
        trace
        for place, code in enumerate(shown)
        for trace in _line(found, code=code, place=place, n_places=len(shown))
    ]
    layout = base_layout(height_px=440)
    layout["xaxis"] |= day_axis(study, days=[point.day for point in found.points])
    layout["yaxis"] |= _value_axis(found.unit) | {"nticks": 7}
    layout["legend"] = _LEGEND
    return {"data": data, "layout": layout | {"hovermode": "closest"}}


def largest_categories(found: Movement) -> list[int]:
    """Codes of the categories to draw without a choice: the largest, in plan order."""
    if not found.points:
        return []
    n_categories = len(found.points[0].estimates)
    if found.unit != Unit.VISITORS:
        return list(range(min(n_categories, _FIRST_LINES)))
    size = [sum(point.estimates[code].value or 0.0 for point in found.points) for code in range(n_categories)]
    by_size = sorted(range(n_categories), key=lambda code: -size[code])
    return sorted(by_size[:_FIRST_LINES])


def _bars(study: Study, days: Sequence[int], values: Sequence[int | None], *, name: str) -> dict[str, Any]:
    return {
        "type": "bar",
        "x": list(days),
        "y": list(values),
        "name": name,
        "hovertext": [
            f"{chart_text(formats.day_title(study.date_of(day)))}<br>"
            + formats.labelled(name, formats.number(value))
            for day, value in zip(days, values, strict=True)
        ],
        "hoverinfo": "text",
    }


def _line(found: Movement, *, code: int, place: int, n_places: int) -> list[dict[str, Any]]:
    """Estimates of one category with their intervals, joined; and, apart from them, intervals alone."""
    colour = f"--chart-{place % MAX_LINES + 1}"
    shift = (place - (n_places - 1) / 2) * _APART
    estimates = [point.estimates[code] for point in found.points]
    name = chart_text(estimates[0].shown_category)
    base = {
        "type": "scatter",
        "x": [point.day + shift for point in found.points],
        "name": name,
        "legendgroup": name,
        "hovertext": [
            _hover(point, estimate, unit=found.unit)
            for point, estimate in zip(found.points, estimates, strict=True)
        ],
        "hoverinfo": "text",
        "connectgaps": False,
    }
    traces = _estimates_and_intervals(estimates, unit=found.unit, axis="y", colour=colour)
    looks: tuple[dict[str, Any], dict[str, Any]] = (
        {
            "mode": "lines+markers",
            "line": {"color": colour, "width": 2},
            "marker": {"color": colour, "symbol": SYMBOLS[place % len(SYMBOLS)], "size": 8},
        },
        {"mode": "markers", "marker": _FLAT | {"color": colour}, "showlegend": False},
    )
    return [base | look | trace for look, trace in zip(looks, traces, strict=True)]


def _dots(found: Movement) -> Figure:
    """One row per category: a dot and its interval, for each point."""
    categories = [estimate.shown_category for estimate in found.points[0].estimates]
    labels = [axis_label(category) for category in categories]
    data = []
    for place, point in enumerate(found.points):
        colour = f"--chart-{place + 1}"
        shift = (place - (len(found.points) - 1) / 2) * 0.3
        base = {
            "type": "scatter",
            "mode": "markers",
            "y": [row + shift for row in range(len(categories))],
            "name": point_name(found, place),
            "legendgroup": str(place),
            "hovertext": [_hover(None, estimate, unit=found.unit) for estimate in point.estimates],
            "hoverinfo": "text",
        }
        looks: tuple[dict[str, Any], dict[str, Any]] = (
            {"marker": {"color": colour, "symbol": SYMBOLS[place], "size": 10}},
            {"marker": _FLAT | {"color": colour, "symbol": "line-ns-open"}, "showlegend": False},
        )
        traces = _estimates_and_intervals(point.estimates, unit=found.unit, axis="x", colour=colour)
        data += [base | look | trace for look, trace in zip(looks, traces, strict=True)]
    layout = base_layout(height_px=len(labels) * row_px(labels, one_line=34) + 110)
    layout["xaxis"] |= _value_axis(found.unit) | {"side": "top", "nticks": 5, "tickangle": 0}
    layout["yaxis"] |= category_axis(labels)
    layout |= {"legend": _LEGEND | {"y": -0.06}, "showlegend": len(found.points) > 1, "hovermode": "closest"}
    return {"data": data, "layout": layout}


def point_name(found: Movement, place: int) -> str:
    """Name the points of a figure without days."""
    if found.show == Show.WINDOW:
        return gettext("First-time") if place == 0 else gettext("Returning")
    return gettext("Days present")


def _estimates_and_intervals(
    estimates: Sequence[Derived], *, unit: Unit, axis: str, colour: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split into estimates, and intervals alone: bounds, and unreliable values."""
    found = []
    for alone in (False, True):
        middles = [
            _middle(estimate, unit=unit) if _is_alone(estimate) == alone else None for estimate in estimates
        ]
        error = _whiskers(estimates, middles, unit=unit, colour=f"{colour}/0.55" if alone else colour)
        found.append({axis: middles, f"error_{axis}": error})
    return found[0], found[1]


def _is_alone(estimate: Derived) -> bool:
    return estimate.value is None or estimate.status != Status.OK


def _middle(estimate: Derived, *, unit: Unit) -> float | None:
    """Return the place of an estimate; an interval alone uses its middle."""
    if estimate.ci_low is None or estimate.ci_high is None:
        return None
    middle = (estimate.ci_low + estimate.ci_high) / 2
    return _drawn(middle if estimate.value is None or _is_alone(estimate) else estimate.value, unit=unit)


def _whiskers(
    estimates: Sequence[Derived], middles: Sequence[float | None], *, unit: Unit, colour: str
) -> dict[str, Any]:
    up, down = [], []
    for estimate, middle in zip(estimates, middles, strict=True):
        if middle is None or estimate.ci_low is None or estimate.ci_high is None:
            up.append(0.0)
            down.append(0.0)
            continue
        up.append(_drawn(estimate.ci_high, unit=unit) - middle)
        down.append(middle - _drawn(estimate.ci_low, unit=unit))
    return whiskers(up=up, down=down, colour=colour)


def _drawn(value: float, *, unit: Unit) -> float:
    """Return the value at the precision of a screen; shares in percent."""
    return round(value * 100, 4) if unit == Unit.SHARE else round(value, 3)


def _value_axis(unit: Unit) -> dict[str, Any]:
    if unit == Unit.SHARE:
        return {"ticksuffix": formats.percent_sign(), "rangemode": "tozero"}
    return {"tickformat": ",.0f", "rangemode": "tozero"} if unit == Unit.VISITORS else {}


def _hover(point: Point | None, estimate: Derived, *, unit: Unit) -> str:
    value, interval = derived_text(estimate, unit=unit)
    lines = [chart_text(estimate.shown_category), f"{value} ({interval})" if interval else value]
    if point is not None:
        lines.insert(0, chart_text(formats.day_title(point.date)))
        if point.total is not None:
            total = value_text(point.total, unit=unit)
            lines.append(gettext("all visitors: %(total)s") % {"total": total})
    return "<br>".join(lines)
