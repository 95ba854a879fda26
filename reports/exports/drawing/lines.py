"""The charts of all days: lines with bands in one plot, or a small plot per category, as pages draw them."""

import textwrap
from collections.abc import Sequence
from math import isnan, nan
from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports.base import formats
from reports.base.status import Status
from reports.estimates.options import MAX_LINES, ReportOptions, shown_value
from reports.estimates.queries import WindowReport
from reports.exports.drawing.canvas import (
    COLOURS,
    least_span,
    new_figure,
    plain_axes,
    value_axis,
)

_MAX_TICKS = 10
_MARKERS: Final = ("o", "s", "D", "^", "P", "X", "*", "h")
_LEFT = 0.085  # of the figure, for values
_COLUMNS = 3  # of small plots
_SMALL_IN = 1.05
_SMALL_GAP_IN = 0.62  # above a small plot: its name, and the days of the one above
_NAME_WIDTH = 34  # characters of the name above a small plot


def days_chart(
    reports: Sequence[WindowReport],
    *,
    shown: Sequence[int],
    options: ReportOptions,
    extra_in: tuple[float, float],
) -> Figure:
    """Lines with bands of the categories with the codes `shown`; unreliable values leave a gap.

    Reports are in the order of their last days; `extra_in` is the room above and below, in inches.
    """
    top_in, bottom_in = extra_in[0] + 0.1, extra_in[1] + 0.25 * -(-len(shown) // 3) + 0.5
    whole_in = 3.2 + top_in + bottom_in
    figure = new_figure(height_in=whole_in)
    axes = plain_axes(figure, (_LEFT, bottom_in / whole_in, 0.985 - _LEFT, 3.2 / whole_in))
    for place, code in enumerate(shown):
        _draw_line(axes, reports, code=code, place=place, options=options)
    _day_axis(axes, reports, n_ticks=_MAX_TICKS)
    is_drawn = [any(report.estimates[code].status == Status.OK for code in shown) for report in reports]
    low, high = axes.get_ylim() if any(is_drawn) else (0.0, least_span(options.measure))
    axes.set_ylim(min(0.0, low), max(least_span(options.measure), high))
    value_axis(axes.yaxis, measure=options.measure)
    for report, drawn in zip(reports, is_drawn, strict=True):
        if not drawn:
            _mark_blank(axes, report, status=report.estimates[shown[0]].status)
    if any(is_drawn):
        handles, labels = axes.get_legend_handles_labels()
        axes.legend(
            handles, labels, loc="upper left", bbox_to_anchor=(0.0, -0.1), ncols=3, frameon=False,
            fontsize=8.5, borderaxespad=0.0,
        )  # fmt: skip
    return figure


def multiples_chart(
    reports: Sequence[WindowReport],
    *,
    shown: Sequence[int],
    options: ReportOptions,
    extra_in: tuple[float, float],
) -> Figure:
    """A small plot for each of the categories with the codes `shown`, all with the same axes."""
    n_rows = -(-len(shown) // _COLUMNS)
    step_in = _SMALL_IN + _SMALL_GAP_IN
    whole_in = extra_in[0] + n_rows * step_in + 0.3 + extra_in[1]
    figure = new_figure(height_in=whole_in)
    width = (0.985 - _LEFT) / _COLUMNS
    plots = []
    for place, code in enumerate(shown):
        row, column = divmod(place, _COLUMNS)
        bottom_in = whole_in - extra_in[0] - (row + 1) * step_in
        corner = (_LEFT + column * width, bottom_in / whole_in)
        axes = plain_axes(figure, (*corner, width - 0.075, _SMALL_IN / whole_in))
        _draw_line(axes, reports, code=code, place=0, options=options, size=0.6)
        name = reports[0].estimates[code].shown_category
        title = textwrap.shorten(name, _NAME_WIDTH, placeholder=" …")
        axes.set_title(title, size=8.5, loc="left", color=COLOURS["--text"])
        plots.append(axes)
    ends = [end for code in shown for report in reports for end in _read(report, code=code, options=options)]
    low = min([0.0, *(end for end in ends if not isnan(end))])
    high = max([least_span(options.measure), *(end for end in ends if not isnan(end))])
    for axes in plots:
        _day_axis(axes, reports, n_ticks=3)
        axes.set_ylim(1.05 * low, 1.05 * high)
        value_axis(axes.yaxis, measure=options.measure, n_ticks=3)
    return figure


def _day_axis(axes: Axes, reports: Sequence[WindowReport], *, n_ticks: int) -> None:
    days = [report.window.last_day for report in reports]
    ticks = days[:: -(-len(days) // n_ticks)]
    study = reports[0].study
    axes.set_xticks(ticks, [formats.short_day(study.date_of(day)) for day in ticks])
    axes.set_xlim(days[0] - 0.4, days[-1] + 0.4)


def _draw_line(
    axes: Axes,
    reports: Sequence[WindowReport],
    *,
    code: int,
    place: int,
    options: ReportOptions,
    size: float = 1.0,
) -> None:
    """Line and band of one category; `size` is that of its marks."""
    colour = COLOURS[f"--chart-{place % MAX_LINES + 1}"]
    days = [report.window.last_day for report in reports]
    values, lows, highs = zip(*(_read(report, code=code, options=options) for report in reports), strict=True)
    axes.fill_between(days, lows, highs, color=colour, alpha=0.14, linewidth=0)
    for i in _alone([not isnan(value) for value in values]):  # a band has no width there
        axes.plot([days[i]] * 2, [lows[i], highs[i]], color=colour, linewidth=5, alpha=0.25)
    axes.plot(
        days, values, color=colour, linewidth=1.8 * size, marker=_MARKERS[place % len(_MARKERS)],
        markersize=5 * size, label=reports[0].estimates[code].shown_category,
    )  # fmt: skip


def _read(report: WindowReport, *, code: int, options: ReportOptions) -> tuple[float, float, float]:
    """Value and interval of a category; a gap where they are unreliable."""
    estimate = report.estimates[code]
    shown = shown_value(report, estimate, options=options)
    if estimate.status != Status.OK or shown.value is None or shown.low is None or shown.high is None:
        return nan, nan, nan
    return shown.value, shown.low, shown.high


def _mark_blank(axes: Axes, report: WindowReport, *, status: Status) -> None:
    """A gap says why it is one."""
    axes.text(
        report.window.last_day, 0.03, formats.blank_words(status), rotation=90, ha="center", va="bottom",
        size=8.5, color=COLOURS["--muted"], transform=axes.get_xaxis_transform(),
    )  # fmt: skip


def _alone(to_read: Sequence[bool]) -> list[int]:
    """Places of days without a neighbour that is drawn."""
    padded = [False, *to_read, False]
    return [i for i, ok in enumerate(to_read) if ok and not padded[i] and not padded[i + 2]]
