"""Figures as plain dictionaries; `static/js/chart.js` draws them.

A colour is the name of a CSS custom property ("--chart-1", or "--chart-1/0.2" with an opacity), so that
figures follow the light or dark scheme of the reader. Texts are pseudo-HTML to Plotly, hence escaped.
"""

import textwrap
from collections.abc import Sequence
from html import escape
from math import ceil
from typing import Any, NamedTuple

from django.utils.translation import gettext

from reports.base import formats
from reports.base.status import Status
from reports.estimates import texts as estimates_texts
from reports.estimates.coverage import DayCoverage
from reports.estimates.options import MAX_LINES, ReportOptions, ordered, shown_value, shown_visitors
from reports.estimates.queries import Estimate, WindowReport
from reports.studies.models import Study

Figure = dict[str, Any]

_LABEL_LINES = 3
_CHARACTER = 0.04
_LABEL_WIDTH = 22  # characters before a category's name wraps: leaves room for bars on a phone
_MAX_DAY_TICKS = 8
DEFAULT_OPTIONS = ReportOptions()
PALE = 0.45  # opacity of a bar whose interval includes zero
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star", "hexagon")


class _Bar(NamedTuple):
    """Drawn value of an estimate: percent or visitors, 0 where there is nothing."""

    value: float
    low: float
    high: float


def report_figure(report: WindowReport, *, options: ReportOptions = DEFAULT_OPTIONS) -> Figure:
    """Horizontal bars with 95% intervals, one per category, in the order and measure of the options."""
    estimates = ordered(report, options=options)
    shown = [_bar(report, estimate, options=options) for estimate in estimates]
    labels = [axis_label(estimate.shown_category) for estimate in estimates]
    places = list(range(len(estimates)))
    bars = {
        "type": "bar",
        "orientation": "h",
        "y": places,
        "x": [bar.value for bar in shown],
        "error_x": whiskers(
            # A consistent value may lie outside of the interval, which is that of the unbiased estimate.
            up=[bar.high - bar.value for bar in shown],
            down=[bar.value - bar.low for bar in shown],
        ),
        "marker": {"color": [_bar_colour(estimate) for estimate in estimates]},
        "hovertext": _hovers([(report, estimate) for estimate in estimates], options=options),
        "hoverinfo": "text",
    }
    texts = [_bar_text(report, estimate, options=options) for estimate in estimates]
    layout = base_layout(height_px=len(labels) * row_px(labels, one_line=28) + 70)
    layout["xaxis"] |= {"range": _bar_range(shown, texts), "side": "top", "nticks": 5, "tickangle": 0}
    if options.measure == "frequency":
        layout["xaxis"]["ticksuffix"] = formats.percent_sign()
    else:
        layout["xaxis"] |= {"tickformat": ",.0f", "nticks": 4}
    layout["yaxis"] |= category_axis(labels)
    return {"data": [bars, _numbers(shown, texts)], "layout": layout | {"bargap": 0.35, "showlegend": False}}


def days_figure(
    reports: Sequence[WindowReport],
    *,
    shown: Sequence[int],
    measure: str = "frequency",
    values: str = "unbiased",
) -> Figure:
    """Lines over the days with 95% bands, for the categories with the codes `shown`.

    The reports are of one indicator, in the order of their last days, at which they are drawn.
    """
    data: list[dict[str, Any]] = []
    titles, options = _titles(reports), ReportOptions(measure=measure, values=values)
    for place, code in enumerate(shown):
        data += _line(reports, code=code, place=place, options=options, titles=titles)
    layout = base_layout(height_px=460)
    layout["xaxis"] |= day_axis(reports[0].study, days=[report.window.last_day for report in reports])
    layout["yaxis"] |= _share_axis(measure) | {"rangemode": "tozero", "nticks": 7}
    layout["legend"] = {"orientation": "h", "y": -0.12, "yanchor": "top", "x": 0, "itemclick": "toggle"}
    return {"data": data, "layout": layout | {"hovermode": "closest"}}


def visitors_figure(study: Study, coverage: Sequence[DayCoverage]) -> Figure:
    """Bars of the exact visitor totals of each day; the sign of its blank where a day has none."""
    days = [day.day for day in coverage]
    bars = {
        "type": "bar",
        "x": days,
        "y": [day.visitors and max(day.visitors, 0) for day in coverage],  # as in words: none, not less
        "marker": {"color": "--chart-1"},
        "hovertext": [f"{chart_text(formats.day_title(day.date))}<br>{_total(day)}" for day in coverage],
        "hoverinfo": "text",
    }
    blanks = {
        "type": "scatter",
        "mode": "text",
        "x": days,
        "y": [0 for _ in coverage],
        "text": [chart_text(formats.status_sign(day.status)) for day in coverage],
        "textposition": "top center",
        "hovertext": [f"{chart_text(formats.day_title(day.date))}<br>{_total(day)}" for day in coverage],
        "hoverinfo": "text",
    }
    layout = base_layout(height_px=260)
    layout["xaxis"] |= day_axis(study, days=days)
    layout["yaxis"] |= {"rangemode": "tozero", "nticks": 5, "tickformat": ",.0f"}
    return {"data": [bars, blanks], "layout": layout | {"bargap": 0.35, "showlegend": False}}


def _total(day: DayCoverage) -> str:
    if day.visitors is None:
        return chart_text(formats.status_word(day.status))
    return formats.counted(day.visitors)


def small_multiples(
    reports: Sequence[WindowReport],
    *,
    shown: Sequence[int],
    measure: str = "frequency",
    values: str = "unbiased",
) -> list[Figure]:
    """One small chart per category with the codes `shown`, all with the same axes."""
    titles, options = _titles(reports), ReportOptions(measure=measure, values=values)
    parts = [_line(reports, code=code, place=0, options=options, titles=titles) for code in shown]
    ends = [y for part in parts for trace in part for y in trace["y"] if y is not None]
    low, high = min([0.0, *ends]), max([1.0, *ends])
    days = [report.window.last_day for report in reports]
    figures = []
    for part in parts:
        layout = base_layout(height_px=170)
        layout["xaxis"] |= day_axis(reports[0].study, days=days, n_ticks=3)
        layout["yaxis"] |= _share_axis(measure) | {"range": [low * 1.05, high * 1.05], "nticks": 4}
        figures.append({"data": part, "layout": layout | {"hovermode": "closest", "showlegend": False}})
    return figures


def _share_axis(measure: str) -> dict[str, Any]:
    return {"ticksuffix": formats.percent_sign()} if measure == "frequency" else {"tickformat": ",.0f"}


def _titles(reports: Sequence[WindowReport]) -> list[str]:
    return [chart_text(formats.window_title(report.first_date, report.last_date)) for report in reports]


def _line(
    reports: Sequence[WindowReport], *, code: int, place: int, options: ReportOptions, titles: Sequence[str]
) -> list[dict[str, Any]]:
    """Band and line of one category; days without answers leave a gap."""
    colour = f"--chart-{place % MAX_LINES + 1}"
    estimates = [report.estimates[code] for report in reports]
    pairs = list(zip(reports, estimates, strict=True))
    bars = [_bar(report, estimate, options=options) for report, estimate in pairs]
    days = [report.window.last_day for report in reports]
    name = chart_text(estimates[0].shown_category)
    line = {
        "type": "scatter",
        "mode": "lines+markers",
        "x": days,
        "y": [
            bar.value if estimate.status == Status.OK else None
            for bar, estimate in zip(bars, estimates, strict=True)
        ],
        "name": name,
        "legendgroup": name,
        "line": {"color": colour, "width": 2},
        "marker": {"symbol": SYMBOLS[place % len(SYMBOLS)], "size": 8 if len(days) <= 31 else 5},
        "connectgaps": False,
        "hovertext": [
            f"{title}<br>{text}" for title, text in zip(titles, _hovers(pairs, options=options), strict=True)
        ],
        "hoverinfo": "text",
    }
    return [_band(days, bars, runs=_runs(estimates), name=name, colour=colour), line]


def _band(
    days: Sequence[int], bars: Sequence[_Bar], *, runs: Sequence[Sequence[int]], name: str, colour: str
) -> dict[str, Any]:
    x, y = _outline(days, bars, runs=runs)
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


def _outline(
    days: Sequence[int], bars: Sequence[_Bar], *, runs: Sequence[Sequence[int]]
) -> tuple[list[Any], list[Any]]:
    """Outline of the intervals: one closed shape per run of days with answers, None between them."""
    xs: list[Any] = []
    ys: list[Any] = []
    for run in runs:
        # A single day has no width: give it a little.
        x = [days[i] for i in run] if len(run) > 1 else [days[run[0]] - 0.12, days[run[0]] + 0.12]
        places = run if len(run) > 1 else [run[0], run[0]]
        if xs:
            xs.append(None)
            ys.append(None)
        xs += x + x[::-1]
        ys += [bars[i].high for i in places]
        ys += [bars[i].low for i in reversed(places)]
    return xs, ys


def _runs(estimates: Sequence[Estimate]) -> list[list[int]]:
    """Places of consecutive days with answers."""
    runs: list[list[int]] = []
    for place, estimate in enumerate(estimates):
        if estimate.frequency is None or estimate.status == Status.OUTAGE:
            continue
        if runs and runs[-1][-1] == place - 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    return runs


def base_layout(*, height_px: int) -> dict[str, Any]:
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
        "separators": f"{formats.decimal_sign()}{formats.thousands_sign()}",
        "dragmode": False,
        "xaxis": axis.copy(),
        "yaxis": axis.copy(),
    }


def day_axis(study: Study, *, days: Sequence[int], n_ticks: int = _MAX_DAY_TICKS) -> dict[str, Any]:
    ticks = days[:: ceil(len(days) / n_ticks)]
    return {
        "tickvals": ticks,
        "ticktext": [chart_text(formats.short_day(study.date_of(day))).replace(" ", "<br>") for day in ticks],
        "tickangle": 0,
        "zeroline": False,
        "range": [days[0] - 0.6, days[-1] + 0.6],
        "showgrid": False,
    }


def axis_of_times(times: Sequence[str], *, ticks: int) -> dict[str, Any]:
    """Points 0, 1, ... that follow each other, at most `ticks` of them named; a name may have <br>."""
    step = max(ceil(len(times) / ticks), 1)
    return {
        "tickvals": list(range(0, len(times), step)),
        "ticktext": list(times[::step]),
        "tickangle": 0,
        "zeroline": False,
        "range": [-0.6, len(times) - 0.4],
        "showgrid": False,
    }


def _bar(report: WindowReport, estimate: Estimate, *, options: ReportOptions) -> _Bar:
    shown = shown_value(report, estimate, options=options)
    drawn = _percent if options.measure == "frequency" else _whole
    return _Bar(*map(drawn, shown))


def _bar_text(report: WindowReport, estimate: Estimate, *, options: ReportOptions) -> str:
    if estimate.status != Status.OK:
        return _blank(estimate)
    value = shown_value(report, estimate, options=options).value
    return formats.amount(value, options.measure)


def _numbers(bars: Sequence[_Bar], texts: Sequence[str]) -> dict[str, Any]:
    """Return the estimate in figures, at the upper end of its interval."""
    return {
        "type": "scatter",
        "mode": "text",
        "y": list(range(len(bars))),
        "x": [max(bar.high, bar.value, 0.0) for bar in bars],
        "text": [f" {text}" for text in texts],
        "textposition": "middle right",
        "hoverinfo": "skip",
        "cliponaxis": False,
    }


def _bar_range(bars: Sequence[_Bar], texts: Sequence[str]) -> list[float]:
    """Return the range from the lowest to the highest bound, with room for the text at each bar."""
    low = min(0.0, *(bar.low for bar in bars))
    ends = [max(bar.high, bar.value, 0.0) for bar in bars]
    span = max(1.0, *ends) - low
    margin = 0.04 * span if low < 0 else 0.0  # whiskers stay clear of the names
    # A character takes up to a 25th of the bars in the narrow charts of a study's page.
    top = max(end + _CHARACTER * span * len(text) for end, text in zip(ends, texts, strict=True))
    return [low - margin, max(low + 1.34 * span, top)]


def _hovers(pairs: Sequence[tuple[WindowReport, Estimate]], *, options: ReportOptions) -> list[str]:
    """Name, shown value and interval of each; of one that is not reliable only the intervals.

    All at once, since a page has thousands, and each look-up of the reader's language takes longer than
    a text.
    """
    # No <b>: Plotly writes it as a style attribute, which the content policy refuses.
    read = [(report, estimate) for report, estimate in pairs if estimate.status == Status.OK]
    values = (shown_visitors(report, estimate, values=options.values).value for report, estimate in read)
    shares = estimates_texts.shares_words([estimate for _, estimate in read], options=options)
    told = zip(shares, formats.numbers(values), strict=True)
    people = gettext("%(number)s visitors")
    texts = []
    for _, estimate in pairs:
        if estimate.is_hidden:
            words = _blank(estimate)
        else:
            share, number = next(told) if estimate.status == Status.OK else _unreliable(estimate)
            words = f"{share}<br>{people % {'number': number}}"
        texts.append(f"{chart_text(estimate.shown_category)}<br>{words}")
    return texts


def _unreliable(estimate: Estimate) -> tuple[str, str]:
    """Share and visitors of an estimate whose interval alone is shown."""
    interval = formats.percent_range(estimate.ci_low, estimate.ci_high)
    return f"{_blank(estimate)} ({interval})", estimates_texts.visitors_range(estimate)


def _bar_colour(estimate: Estimate) -> str:
    """Draw a pale bar where the interval includes zero, and none for an unreliable estimate."""
    if estimate.status != Status.OK:
        return "rgba(0,0,0,0)"
    return "--chart-1" if (estimate.ci_low or 0.0) > 0 else f"--chart-1/{PALE}"


def _blank(estimate: Estimate) -> str:
    return formats.reason_words(estimate).replace("<", "&lt;")


def whiskers(
    *, up: Sequence[float], down: Sequence[float], colour: str = "--text", width: int = 4
) -> dict[str, Any]:
    """Intervals, by how far they reach from what is drawn; `width` in pixels."""
    return {
        "type": "data",
        "symmetric": False,
        "array": up,
        "arrayminus": down,
        "color": colour,
        "thickness": 1.5,
        "width": width,
    }


def category_axis(labels: Sequence[str]) -> dict[str, Any]:
    """Categories below each other, the first on top."""
    return {
        "range": [len(labels) - 0.4, -0.6],
        "tickvals": list(range(len(labels))),
        "ticktext": labels,
        "showgrid": False,
        "zeroline": False,
    }


def chart_text(text: str) -> str:
    """Escape a text for Plotly, which does not decode the entity of a quotation mark."""
    return escape(text, quote=False)


def axis_label(category: str) -> str:
    """Return a name for an axis; the table below every chart has longer ones in full."""
    lines = textwrap.wrap(category, _LABEL_WIDTH, max_lines=_LABEL_LINES, placeholder=" …")
    return "<br>".join(chart_text(line) for line in lines) or " "


def row_px(labels: Sequence[str], *, one_line: int) -> int:
    """Height of a row in which the label with the most lines does not reach into the next one."""
    n_lines = 1 + max((label.count("<br>") for label in labels), default=0)
    return one_line if n_lines == 1 else one_line + 16 * n_lines - 26


def _percent(value: float | None) -> float:
    """Share in percent at the precision of a screen."""
    return 0.0 if value is None else round(value * 100, 4)


def _whole(value: float | None) -> float:
    """Visitors, to the tenth."""
    return 0.0 if value is None else round(value, 1)
