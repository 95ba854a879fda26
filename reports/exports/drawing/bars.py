"""The chart of one window: horizontal bars with their intervals, as its page draws them."""

import textwrap

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports.base import formats
from reports.base.status import Status
from reports.estimates.charts import PALE
from reports.estimates.options import ReportOptions, ShownValue, shown_value
from reports.estimates.queries import Estimate, WindowReport
from reports.exports.drawing.canvas import (
    COLOURS,
    WIDTH_IN,
    Box,
    least_span,
    new_figure,
    plain_axes,
    value_axis,
)

_ROW_IN = 0.3
_TICKS_IN = 0.25  # above the plot
_LEFT_IN = 2.05  # for names, and at most
_LEFT = 0.4  # of the width
_LETTER_IN = 0.075  # of a name, rather too wide
_LABEL_WIDTH = 26  # characters before a category's name wraps, in the widest room
_LABEL_LINES = 3
_WORD_IN = {True: 0.66, False: 0.98}  # room for a value behind its bar, or for the word of a blank


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
    top_in, bottom_in = extra_in
    bars_in = bars_height_in(report, width_in=WIDTH_IN)
    figure = new_figure(height_in=bars_in + top_in + bottom_in)
    draw_bars(figure, report, box=Box(0, bottom_in, WIDTH_IN, bars_in), options=options, limits=limits)
    return figure


def bars_height_in(report: WindowReport, *, width_in: float) -> float:
    """Height of the bars of a report and of their axis, in inches."""
    rows = sum(max(1.0, 0.7 * (label.count("\n") + 1)) for label in _labels(report, width_in=width_in))
    return _ROW_IN * rows + 0.2 + _TICKS_IN


def draw_bars(
    figure: Figure,
    report: WindowReport,
    *,
    box: Box,
    options: ReportOptions,
    limits: tuple[float, float] | None = None,
) -> None:
    """Draw the bars into a part of a figure, which is `bars_height_in` high."""
    estimates, labels = report.estimates, _labels(report, width_in=box.width)
    longest = max(len(line) for label in labels for line in label.split("\n"))
    left_in = min(_left_in(box.width), _LETTER_IN * longest + 0.15)
    plot = Box(box.left + left_in, box.bottom, 0.985 * box.width - left_in, box.height - _TICKS_IN)
    axes = plain_axes(figure, plot.of(figure))
    for place, estimate in enumerate(estimates):
        shown = shown_value(report, estimate, options=options)
        _draw_bar(axes, place, shown, estimate=estimate, measure=options.measure)
    low, high = limits or bounds(report, options=options)
    word_in = _WORD_IN[all(estimate.status == Status.OK for estimate in estimates)]
    room = word_in / (plot.width - word_in)
    axes.set_xlim(low, high + room * (high - low))
    axes.set_ylim(len(estimates) - 0.4, -0.6)
    axes.set_yticks(range(len(estimates)), labels)
    axes.xaxis.tick_top()
    value_axis(axes.xaxis, measure=options.measure, n_ticks=6 if box.width > WIDTH_IN / 2 else 3)
    axes.axvline(0, color=COLOURS["--border-strong"], linewidth=0.9)


def bounds(report: WindowReport, *, options: ReportOptions) -> tuple[float, float]:
    """Return the ends of the axis of values; a consistent value may lie outside of its interval."""
    shown = [shown_value(report, estimate, options=options) for estimate in report.estimates]
    lows = [part.low for part in shown if part.low is not None]
    highs = [end for part in shown for end in (part.high, part.value) if end is not None]
    return 1.05 * min(0.0, *lows, 0.0), max(least_span(options.measure), *highs, 0.0)


def _left_in(width_in: float) -> float:
    """Most room for names in a chart of a width, in inches."""
    return min(_LEFT_IN, _LEFT * width_in)


def _labels(report: WindowReport, *, width_in: float) -> list[str]:
    """Names in a few lines; data files and tables have the whole of a longer one."""
    n = round(_LABEL_WIDTH * _left_in(width_in) / _LEFT_IN)
    return [
        textwrap.fill(each.shown_category, n, max_lines=_LABEL_LINES, placeholder=" …")
        for each in report.estimates
    ]


def _draw_bar(axes: Axes, place: int, shown: ShownValue, *, estimate: Estimate, measure: str) -> None:
    is_ok, at = estimate.status == Status.OK, 0.0
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
    word = formats.amount(shown.value, measure) if is_ok else formats.reason_words(estimate)
    axes.annotate(
        word, (at, place), xytext=(5, 0), textcoords="offset points", va="center", size=8.5,
        color=COLOURS["--text"] if is_ok else COLOURS["--muted"],
    )  # fmt: skip
