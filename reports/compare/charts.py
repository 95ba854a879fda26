"""The figure of a comparison: a dot and a whisker per difference, with the line of no difference."""

from typing import Any, Final, Literal

from django.utils.translation import gettext, pgettext

from reports.base import formats
from reports.base.status import Status
from reports.compare import texts
from reports.compare.queries import Comparison, Row, Verdict
from reports.estimates.charts import (
    Figure,
    axis_label,
    base_layout,
    category_axis,
    chart_text,
    row_px,
    whiskers,
)

Finding = Literal["held", "alone", "none", "blank"]

# distinguished by shape and filling, not by colour only.
_LOOKS: Final[dict[Finding, dict[str, Any]]] = {
    "held": {"symbol": "circle", "color": "--chart-1", "size": 11},
    "alone": {"symbol": "diamond-open", "color": "--chart-2", "size": 11, "line": {"width": 2}},
    "none": {"symbol": "circle-open", "color": "--muted", "size": 9, "line": {"width": 2}},
    # Lies in the line of its interval: no place of an estimate is seen, but the legend has a mark.
    "blank": {"symbol": "line-ew-open", "color": "--muted", "size": 9, "line": {"width": 2}},
}


def comparison_figure(comparison: Comparison) -> Figure:
    """Differences with their 95% intervals, in plan order; significant ones have another mark."""
    rows = comparison.rows
    labels = [axis_label(row.shown_category) for row in rows]
    plot_px = len(rows) * row_px(labels, one_line=32)
    layout = base_layout(height_px=plot_px + 120)
    layout["xaxis"] |= {
        "range": _range(comparison),
        "tickformat": ",~r" if comparison.of == "frequency" else ",.0f",
        "title": {"text": _unit(comparison), "standoff": 6},
        "side": "top",
        "nticks": 6,
        "tickangle": 0,
        "zeroline": True,
        "zerolinewidth": 2,
    }
    layout["yaxis"] |= category_axis(labels)
    # The same distance below a plot of any height: 1 is the height of the plot.
    below = -12 / plot_px
    layout["legend"] = {"orientation": "h", "y": below, "yanchor": "top", "x": 0, "itemclick": False}
    layout |= {"showlegend": len(rows) > 1, "hovermode": "closest"}
    traces = [_trace(comparison, finding) for finding in _LOOKS]
    return {"data": [trace for trace in traces if trace["y"]], "layout": layout}


def _trace(comparison: Comparison, finding: Finding) -> dict[str, Any]:
    places = [place for place, row in enumerate(comparison.rows) if _finding(row) == finding]
    rows = [comparison.rows[place] for place in places]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": {
            "held": pgettext("legend", "difference detected"),
            "alone": pgettext("legend", "difference detected only before adjustment"),
            "none": pgettext("legend", "no difference detected"),
            "blank": formats.status_word(Status.NOT_RELIABLE),
        }[finding],
        "y": places,
        "x": [_shown(row.difference, comparison) for row in rows],
        "error_x": whiskers(
            up=[_shown(row.high - row.difference, comparison) for row in rows],
            down=[_shown(row.difference - row.low, comparison) for row in rows],
            width=5,
        ),
        "marker": _LOOKS[finding],
        "hovertext": [_hover(row, comparison) for row in rows],
        "hoverinfo": "text",
    }


def _finding(row: Row) -> Finding:
    if row.status != Status.OK:
        return "blank"
    if row.held != Verdict.NOT_SHOWN:
        return "held"
    return "alone" if row.alone != Verdict.NOT_SHOWN else "none"


def _shown(value: float, comparison: Comparison) -> float:
    """Points, or visitors, at the precision of a screen."""
    return round(value * 100, 4) if comparison.of == "frequency" else round(value, 1)


def _range(comparison: Comparison) -> list[float]:
    """All intervals, and the line of no difference."""
    low = min(0.0, *(_shown(row.low, comparison) for row in comparison.rows))
    high = max(0.0, *(_shown(row.high, comparison) for row in comparison.rows))
    room = 0.06 * ((high - low) or 1.0)
    return [low - room, high + room]


def _unit(comparison: Comparison) -> str:
    return gettext("percentage points") if comparison.of == "frequency" else gettext("visitors")


def _hover(row: Row, comparison: Comparison) -> str:
    is_read = row.status == Status.OK
    change = texts.change(row, comparison.of) if is_read else formats.status_word(row.status)
    interval = texts.change_range(row, comparison.of)
    # No <b>: Plotly writes it as a style attribute, which the content policy refuses.
    verdict = f"<br>{texts.verdict_word(row.held)}" if is_read else ""
    return f"{chart_text(row.shown_category)}<br>{change} ({interval}){verdict}"
