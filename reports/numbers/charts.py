"""The survival curve of a number: share of the visitors at or above each cut, with its band."""

from reports.base import formats
from reports.base.status import Status
from reports.estimates.charts import Figure, base_layout, chart_text
from reports.estimates.options import ReportOptions, shown_value
from reports.estimates.queries import WindowReport


def survival_figure(report: WindowReport, *, options: ReportOptions) -> Figure:
    """Points with 95% intervals over the cuts, or intervals alone where they are not reliable."""
    if report.cuts is None:
        raise ValueError(f"{report.indicator} must be a number")
    shown = [shown_value(report, each, options=options) for each in report.estimates]
    factor, is_share = (100, True) if options.measure == "frequency" else (1, False)
    places = [place for place, each in enumerate(shown) if each.low is not None]
    cuts = [report.cuts.cuts[place] for place in places]
    low, high = ([factor * (getattr(shown[i], end) or 0.0) for i in places] for end in ("low", "high"))
    band = {
        "type": "scatter",
        "mode": "lines",
        "x": cuts + cuts[::-1],
        "y": high + low[::-1],
        "fill": "toself",
        "fillcolor": "--chart-1/0.14",
        "line": {"width": 0},
        "hoverinfo": "skip",
    }
    line = {
        "type": "scatter",
        "mode": "lines+markers",
        "x": cuts,
        "y": [
            factor * (shown[i].value or 0.0) if report.estimates[i].status == Status.OK else None
            for i in places
        ],
        "line": {"color": "--chart-1", "width": 2},
        "hovertext": [
            f"{chart_text(report.estimates[i].shown_category)}<br>"
            + formats.amount_range(shown[i].low, shown[i].high, options.measure)
            for i in places
        ],
        "hoverinfo": "text",
    }
    layout = base_layout(height_px=360)
    layout["xaxis"] |= {"title": {"text": chart_text(report.cuts.unit)}, "zeroline": False, "nticks": 8}
    layout["yaxis"] |= {"rangemode": "tozero", "nticks": 6} | (
        {"ticksuffix": formats.percent_sign()} if is_share else {"tickformat": ",.0f"}
    )
    return {"data": [band, line], "layout": layout | {"showlegend": False, "hovermode": "closest"}}
