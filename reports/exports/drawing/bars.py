"""The chart of one window: horizontal bars with their intervals, as its page draws them."""

import textwrap

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports.base import formats
from reports.base.status import Status
from reports.estimates.charts import PALE
from reports.estimates.options import ReportOptions, ShownValue, shown_value
from reports.estimates.queries import WindowReport
from reports.exports.drawing.canvas import (
    COLOURS,
    least_span,
    new_figure,
    plain_axes,
    value_axis,
)

_ROW_IN = 0.3
_TICKS_IN = 0.25  # above the plot
_LEFT = 0.27  # of the figure, for names
_LABEL_WIDTH = 26  # characters before a category's name wraps
_LABEL_LINES = 3


def window_chart(
    report: WindowReport,
    *,
    options: ReportOptions,
    extra_in: tuple[float, float],
    limits: tuple[float, float] | None = None,
) -> Figure:
    """Draw bars from the first estimate down; an unreliable one has its word, and no bar.

    `extra_in` is the room above and below, in inches; `limits` of the axis are else those of this report.
    """
    estimates = report.estimates
    labels = [_label(estimate.shown_category) for estimate in estimates]
    rows = sum(max(1.0, 0.7 * (label.count("\n") + 1)) for label in labels)
    top_in, bottom_in = extra_in
    plot_in = _ROW_IN * rows + 0.2
    whole_in = plot_in + _TICKS_IN + top_in + bottom_in
    figure = new_figure(height_in=whole_in)
    axes = plain_axes(figure, (_LEFT, bottom_in / whole_in, 0.985 - _LEFT, plot_in / whole_in))
    for place, estimate in enumerate(estimates):
        shown = shown_value(report, estimate, options=options)
        _draw_bar(axes, place, shown, status=estimate.status, measure=options.measure)
    low, high = limits or bounds(report, options=options)
    room = 0.14 if all(estimate.status == Status.OK for estimate in estimates) else 0.22
    axes.set_xlim(low, high + room * (high - low))
    axes.set_ylim(len(estimates) - 0.4, -0.6)
    axes.set_yticks(range(len(estimates)), labels)
    axes.xaxis.tick_top()
    value_axis(axes.xaxis, measure=options.measure)
    axes.axvline(0, color=COLOURS["--border-strong"], linewidth=0.9)
    return figure


def bounds(report: WindowReport, *, options: ReportOptions) -> tuple[float, float]:
    """Return the ends of the axis of values; a consistent value may lie outside of its interval."""
    shown = [shown_value(report, estimate, options=options) for estimate in report.estimates]
    lows = [part.low for part in shown if part.low is not None]
    highs = [end for part in shown for end in (part.high, part.value) if end is not None]
    return 1.05 * min(0.0, *lows, 0.0), max(least_span(options.measure), *highs, 0.0)


def _label(category: str) -> str:
    """A name in a few lines; data files and tables have the whole of a longer one."""
    return textwrap.fill(category, _LABEL_WIDTH, max_lines=_LABEL_LINES, placeholder=" …")


def _draw_bar(axes: Axes, place: int, shown: ShownValue, *, status: Status, measure: str) -> None:
    is_ok, at = status == Status.OK, 0.0
    if shown.value is not None and is_ok:
        alpha = PALE if shown.may_be_zero else 1.0
        axes.barh(place, shown.value, height=0.62, color=COLOURS["--chart-1"], alpha=alpha)
        at = max(shown.value, 0.0)
    if shown.low is not None and shown.high is not None:
        ends = [shown.low, shown.high]
        axes.plot(ends, [place, place], color=COLOURS["--text"], linewidth=1.3, solid_capstyle="butt")
        for end in ends:
            axes.plot([end, end], [place - 0.13, place + 0.13], color=COLOURS["--text"], linewidth=1.3)
        at = max(shown.high, at)
    word = formats.amount(shown.value, measure) if is_ok else formats.blank_words(status)
    axes.annotate(
        word, (at, place), xytext=(5, 0), textcoords="offset points", va="center", size=8.5,
        color=COLOURS["--text"] if is_ok else COLOURS["--muted"],
    )  # fmt: skip
