"""Figures of events by period."""

from collections.abc import Sequence
from datetime import date
from typing import Any

from django.utils.translation import gettext

from reports.base import formats
from reports.base.status import Status
from reports.estimates.charts import axis_of_times, base_layout, chart_text, days_figure
from reports.estimates.queries import Estimate
from reports.estimates.texts import share_range
from reports.events.queries import PeriodCount, PeriodReport

_TICKS = 8


def shares_figure(periods: Sequence[PeriodReport], *, shown: Sequence[int]) -> dict[str, Any]:
    """Lines over the periods with 95% bands, for the categories with the codes `shown`."""
    figure = days_figure([each.report for each in periods], shown=shown)
    lines = [trace for trace in figure["data"] if "hovertext" in trace]
    for code, line in zip(shown, lines, strict=True):
        line["hovertext"] = [_hover(each, each.report.estimates[code]) for each in periods]
    days = [each.report.window.last_day for each in periods]
    margin = 0.6 + (days[-1] - days[0]) / 50
    ticks = periods[:: max(-(-len(periods) // _TICKS), 1)]
    figure["layout"]["xaxis"] |= {
        "range": [days[0] - margin, days[-1] + margin],
        "tickvals": [each.report.window.last_day for each in ticks],
        "ticktext": [_tick(each.name) for each in ticks],
    }
    return figure


def _tick(name: str) -> str:
    """Name of a period in two lines: the month, day, week or quarter, and the year."""
    year, _, rest = name.partition("-")
    if rest and rest[0].isdigit():
        day = date.fromisoformat(f"{name}-01"[:10])
        rest = formats.short_month(day) if len(rest) == 2 else formats.short_day(day)
    return "<br>".join(map(chart_text, filter(None, (rest, year))))


def _hover(period: PeriodReport, estimate: Estimate) -> str:
    """Period, category, share with its interval, and estimated number of events."""
    texts = [period.name, estimate.shown_category, formats.percent(estimate.frequency)]
    texts.append(share_range(estimate))
    if estimate.status == Status.OK:
        texts.append(gettext("about %(number)s events") % {"number": formats.number(estimate.visitors)})
    else:
        texts[2] = str(formats.status_word(estimate.status))
    return "<br>".join(chart_text(text) for text in texts)


def counts_figure(periods: Sequence[PeriodCount]) -> dict[str, Any]:
    """Bars of the exact number of events in each period."""
    places = list(range(len(periods)))
    bars = {
        "type": "bar",
        "x": places,
        "y": [each.n_events for each in periods],
        "marker": {"color": "--chart-1"},
        "hovertext": [f"{chart_text(each.name)}<br>{formats.number(each.n_events)}" for each in periods],
        "hoverinfo": "text",
    }
    layout = base_layout(height_px=260)
    layout["xaxis"] |= axis_of_times([_tick(each.name) for each in periods], ticks=_TICKS)
    layout["yaxis"] |= {"rangemode": "tozero", "nticks": 5, "tickformat": ",.0f"}
    return {"data": [bars], "layout": layout | {"bargap": 0.35, "showlegend": False}}
