"""Figures as plain dictionaries; `static/js/chart.js` draws them.

A colour is the name of a CSS custom property ("--chart-1", or "--chart-1/0.2" with an opacity), so that
figures follow the light or dark scheme of the reader. Texts are pseudo-HTML to Plotly, hence escaped.
"""

import textwrap
from collections.abc import Sequence
from html import escape
from math import ceil
from typing import Any

from django.utils.translation import gettext

from reports import wording
from reports.models import Study
from reports.selectors import Counts, Estimate, WindowReport

Figure = dict[str, Any]

MAX_LINES = 8  # more cannot be told apart
_FIRST_LINES = 5  # without a choice: bands of more hide each other
_LABEL_WIDTH = 22  # characters before a category's name wraps: leaves room for bars on a phone
_MAX_DAY_TICKS = 8
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star", "hexagon")


def report_figure(report: WindowReport) -> Figure:
    """Horizontal bars with 95 % intervals, one per category, in plan order."""
    estimates = report.estimates
    labels = [_label(estimate.category) for estimate in estimates]
    places = list(range(len(estimates)))
    bars = {
        "type": "bar",
        "orientation": "h",
        "y": places,
        "x": [_percent(estimate.frequency) for estimate in estimates],
        "error_x": _error_bars(estimates),
        "marker": {"color": "--chart-1"},
        "hovertext": [_hover(estimate) for estimate in estimates],
        "hoverinfo": "text",
    }
    row_px = 34 if any("<br>" in label for label in labels) else 28
    layout = _layout(height_px=len(labels) * row_px + 70)
    layout["xaxis"] |= {
        "range": _bar_range(estimates),
        "ticksuffix": " %",
        "side": "top",
        "nticks": 5,
        "tickangle": 0,
    }
    layout["yaxis"] |= {
        "range": [len(labels) - 0.4, -0.6],
        "tickvals": places,
        "ticktext": labels,
        "showgrid": False,
        "zeroline": False,
    }
    return {"data": [bars, _numbers(estimates)], "layout": layout | {"bargap": 0.35, "showlegend": False}}


def days_figure(reports: Sequence[WindowReport], *, shown: Sequence[int]) -> Figure:
    """Lines over the days with 95 % bands, for the categories with the codes `shown`."""
    data: list[dict[str, Any]] = []
    for place, code in enumerate(shown):
        data += _line(reports, code=code, place=place)
    layout = _layout(height_px=460)
    days = [report.window.first_day for report in reports]
    layout["xaxis"] |= _day_axis(reports[0].study, days=days)
    layout["yaxis"] |= {"ticksuffix": " %", "rangemode": "tozero", "nticks": 7}
    layout["legend"] = {"orientation": "h", "y": -0.12, "yanchor": "top", "x": 0, "itemclick": "toggle"}
    return {"data": data, "layout": layout | {"hovermode": "closest"}}


def visitors_figure(study: Study, visitors: Counts) -> Figure:
    """Bars of the exact visitor totals of each day."""
    days = list(range(1, study.days + 1))
    totals = [int(visitors[day, day]) for day in days]
    bars = {
        "type": "bar",
        "x": days,
        "y": totals,
        "marker": {"color": "--chart-1"},
        "hovertext": [
            f"{escape(wording.day_title(study.date_of(day)))}<br>{wording.number(total)}"
            for day, total in zip(days, totals, strict=True)
        ],
        "hoverinfo": "text",
    }
    layout = _layout(height_px=260)
    layout["xaxis"] |= _day_axis(study, days=days)
    layout["yaxis"] |= {"rangemode": "tozero", "nticks": 5, "tickformat": ",.0f"}
    return {"data": [bars], "layout": layout | {"bargap": 0.35, "showlegend": False}}


def largest_categories(reports: Sequence[WindowReport]) -> list[int]:
    """Codes of the categories to draw without a choice: the largest, in plan order."""
    n_categories = len(reports[0].estimates)
    size = [
        sum(report.estimates[code].consistent or 0.0 for report in reports) for code in range(n_categories)
    ]
    by_size = sorted(range(n_categories), key=lambda code: -size[code])
    return sorted(by_size[:_FIRST_LINES])


def _line(reports: Sequence[WindowReport], *, code: int, place: int) -> list[dict[str, Any]]:
    """Band and line of one category; days without answers leave a gap."""
    colour = f"--chart-{place % MAX_LINES + 1}"
    estimates = [report.estimates[code] for report in reports]
    days = [report.window.first_day for report in reports]
    name = escape(estimates[0].category)
    line = {
        "type": "scatter",
        "mode": "lines+markers",
        "x": days,
        "y": [None if e.frequency is None else _percent(e.frequency) for e in estimates],
        "name": name,
        "legendgroup": name,
        "line": {"color": colour, "width": 2},
        "marker": {"symbol": _SYMBOLS[place % len(_SYMBOLS)], "size": 8},
        "connectgaps": False,
        "hovertext": [
            f"{escape(wording.day_title(report.first_date))}<br>{_hover(estimate)}"
            for report, estimate in zip(reports, estimates, strict=True)
        ],
        "hoverinfo": "text",
    }
    return [_band(days, estimates, name=name, colour=colour), line]


def _band(days: Sequence[int], estimates: Sequence[Estimate], *, name: str, colour: str) -> dict[str, Any]:
    x, y = _outline(days, estimates)
    return {
        "type": "scatter",
        "mode": "lines",
        "x": x,
        "y": y,
        "fill": "toself",
        "fillcolor": f"{colour}/0.14",
        "line": {"width": 0},
        "legendgroup": name,
        "showlegend": False,
        "hoverinfo": "skip",
    }


def _outline(days: Sequence[int], estimates: Sequence[Estimate]) -> tuple[list[Any], list[Any]]:
    """Outline of the intervals: one closed shape per run of days with answers, None between them."""
    xs: list[Any] = []
    ys: list[Any] = []
    for run in _runs(estimates):
        # A single day has no width of its own: give it a little.
        x = [days[i] for i in run] if len(run) > 1 else [days[run[0]] - 0.12, days[run[0]] + 0.12]
        places = run if len(run) > 1 else [run[0], run[0]]
        if xs:
            xs.append(None)
            ys.append(None)
        xs += x + x[::-1]
        ys += [_percent(estimates[i].ci_high) for i in places]
        ys += [_percent(estimates[i].ci_low) for i in reversed(places)]
    return xs, ys


def _runs(estimates: Sequence[Estimate]) -> list[list[int]]:
    """Places of consecutive days with answers."""
    runs: list[list[int]] = []
    for place, estimate in enumerate(estimates):
        if estimate.frequency is None:
            continue
        if runs and runs[-1][-1] == place - 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    return runs


def _layout(*, height_px: int) -> dict[str, Any]:
    axis = {
        "fixedrange": True,  # a finger on the chart scrolls the page
        "gridcolor": "--border",
        "zerolinecolor": "--border-strong",
        "automargin": True,
        "ticks": "",
    }
    return {
        "height": height_px,
        "margin": {"l": 10, "r": 10, "t": 10, "b": 10},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "system-ui, sans-serif", "size": 12.5, "color": "--text"},
        "hoverlabel": {
            "bgcolor": "--surface-2",
            "bordercolor": "--border-strong",
            "font": {"color": "--text"},
        },
        "separators": f".{wording.SPACE}",
        "dragmode": False,
        "xaxis": axis.copy(),
        "yaxis": axis.copy(),
    }


def _day_axis(study: Study, *, days: Sequence[int]) -> dict[str, Any]:
    ticks = days[:: ceil(len(days) / _MAX_DAY_TICKS)]
    return {
        "tickvals": ticks,
        "ticktext": [escape(wording.short_day(study.date_of(day))).replace(" ", "<br>") for day in ticks],
        "tickangle": 0,
        "zeroline": False,
        "range": [days[0] - 0.6, days[-1] + 0.6],
        "showgrid": False,
    }


def _numbers(estimates: Sequence[Estimate]) -> dict[str, Any]:
    """The estimate in figures, beside the upper end of its interval."""
    return {
        "type": "scatter",
        "mode": "text",
        "y": list(range(len(estimates))),
        "x": [max(_percent(estimate.ci_high), 0.0) for estimate in estimates],
        "text": [f" {wording.percent(estimate.frequency)}" for estimate in estimates],
        "textposition": "middle right",
        "hoverinfo": "skip",
        "cliponaxis": False,
    }


def _error_bars(estimates: Sequence[Estimate]) -> dict[str, Any]:
    return {
        "type": "data",
        "symmetric": False,
        "array": [_percent(e.ci_high) - _percent(e.frequency) for e in estimates],
        "arrayminus": [_percent(e.frequency) - _percent(e.ci_low) for e in estimates],
        "color": "--text",
        "thickness": 1.5,
        "width": 4,
    }


def _bar_range(estimates: Sequence[Estimate]) -> list[float]:
    """From the lowest to the highest bound, with room for the number beside the longest bar."""
    low = min(0.0, *(_percent(e.ci_low) for e in estimates))
    high = max(1.0, *(_percent(e.ci_high) for e in estimates))
    return [low * 1.05, high + 0.34 * (high - low)]


def _hover(estimate: Estimate) -> str:
    share = wording.percent(estimate.frequency)
    interval = wording.percent_range(estimate.ci_low, estimate.ci_high)
    visitors = gettext("%(number)s visitors") % {"number": wording.number(estimate.visitors)}
    # No <b>: Plotly writes it as a style attribute, which the content policy refuses.
    return f"{escape(estimate.category)}<br>{share} ({interval})<br>{visitors}"


def _label(category: str) -> str:
    return "<br>".join(escape(line) for line in textwrap.wrap(category, _LABEL_WIDTH)) or " "


def _percent(value: float | None) -> float:
    """Share in percent at the precision of a screen."""
    return 0.0 if value is None else round(value * 100, 4)
