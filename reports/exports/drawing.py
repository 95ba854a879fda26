"""Charts drawn on the server, as vectors or pixels: the same bars, lines, intervals and colours as on pages.

Matplotlib is imported here only, and this module only when a chart is asked for. It keeps some state for the
whole process, so one chart is drawn at a time.
"""

import io
import logging
import os
import re
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.utils.translation import gettext

from reports import wording
from reports.charts import MAX_LINES, largest_categories
from reports.exports.facts import as_mapping, software_words
from reports.exports.selection import Scope, Selection
from reports.selectors import Estimate, WindowReport
from reports.status import Status

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The light colours of static/css/app.css: a file has no scheme to follow. A test compares them.
COLOURS: Final = {
    "--text": "#1a242e", "--muted": "#55626f", "--border": "#d6dde4", "--border-strong": "#7b8895",
    "--accent": "#0b5d8f", "--accent-soft": "#e3eff7",
    "--chart-1": "#2a6f9e", "--chart-2": "#c4571a", "--chart-3": "#2f7d4f", "--chart-4": "#8a4fa3",
    "--chart-5": "#a07a00", "--chart-6": "#b83a5e", "--chart-7": "#1b8a8f", "--chart-8": "#6b5b4d",
}  # fmt: skip
FONT: Final = "DejaVu Sans"  # comes with matplotlib, so that no system font is needed

MAX_ROWS: Final = 28  # categories of a window in one chart of a page
_WIDTH_IN = 7.6
_ROW_IN = 0.3
_DOTS_PER_INCH = 200
_LABEL_WIDTH = 26  # characters before a category's name wraps
_LINE_WIDTH = 135  # characters of small print in a line
_MAX_DAY_TICKS = 10
_MARKERS: Final = ("o", "s", "D", "^", "P", "X", "*", "h")
_PX = re.compile(rb"(font-size: [\d.]+)px")
_ONE_AT_A_TIME = Lock()


def to_png(selection: Selection) -> bytes:
    """Chart of a window or of the days, 1520 pixels wide."""
    with _ONE_AT_A_TIME:
        figure = _with_frame(selection)
        file = io.BytesIO()
        metadata = {"Title": selection.title, "Software": software_words(), **_described(selection)}
        figure.savefig(file, format="png", dpi=_DOTS_PER_INCH, metadata=metadata)
        return file.getvalue()


def to_svg(selection: Selection) -> bytes:
    """The same chart as vectors; letters are outlines, so that it looks the same everywhere."""
    with _ONE_AT_A_TIME:
        metadata = {"Title": selection.title, "Creator": software_words(), **_described(selection)}
        return _svg(_with_frame(selection), metadata=metadata)


def bare_svgs(selection: Selection) -> list[bytes]:
    """The chart alone, for pages with titles of their own; many categories of a window are several charts.

    Letters stay letters, of FONT, so that they can be searched and copied.
    """
    with _ONE_AT_A_TIME, _matplotlib().rc_context({"svg.fonttype": "none"}):
        if selection.scope == Scope.DAYS:
            figures = [_chart(selection, extra_in=(0.0, 0.0))]
        else:
            report = selection.reports[0]
            limits = _bounds(report.estimates)
            starts = range(0, len(report.estimates), MAX_ROWS)
            parts = [replace(report, estimates=report.estimates[at : at + MAX_ROWS]) for at in starts]
            figures = [_window_chart(part, extra_in=(0.0, 0.0), limits=limits) for part in parts]
        # A unit of these drawings is a point, and their letters are sized in units, written "px".
        return [_PX.sub(rb"\1pt", _svg(figure, metadata={})) for figure in figures]


def fonts() -> dict[str, Path]:
    """Files of the font by style: regular, bold, oblique."""
    folder = Path(str(_matplotlib().get_data_path())) / "fonts" / "ttf"
    styles = {"": "DejaVuSans.ttf", "B": "DejaVuSans-Bold.ttf", "I": "DejaVuSans-Oblique.ttf"}
    return {style: folder / name for style, name in styles.items()}


def text_alternative(selection: Selection) -> str:
    """What a chart shows, in words."""
    if selection.scope == Scope.WINDOW:
        return wording.report_summary(selection.reports[0])
    name = selection.reports[0].indicator.name
    return gettext("%(name)s: estimated share of the visitors of each day, with 95 %% bands.") % {
        "name": name
    }


@cache
def _matplotlib() -> Any:
    """The library with the settings of all charts: no mathematics in names, no chance in the output."""
    cache_folder = Path(settings.MOBILITY_DATA_DIR) / "matplotlib"
    os.environ.setdefault("MPLCONFIGDIR", str(cache_folder))  # the home may be read-only
    import matplotlib as mpl

    logging.getLogger("matplotlib").setLevel(logging.WARNING)
    mpl.rcParams.update(
        {
            "text.parse_math": False,
            "svg.fonttype": "path",
            "svg.hashsalt": "mobility-reports",
            "font.family": [FONT],
            "font.size": 9,
            "text.color": COLOURS["--text"],
            "axes.unicode_minus": True,
        }
    )
    return mpl


def _svg(figure: "Figure", *, metadata: dict[str, str]) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format="svg", metadata={"Date": None, **metadata})
    return file.getvalue()


def _described(selection: Selection) -> dict[str, str]:
    facts = "; ".join(f"{name}: {value}" for name, value in as_mapping(selection).items())
    return {"Description": f"{text_alternative(selection)} {facts}"}


# --- frame ------------------------------------------------------------------------------------


def _with_frame(selection: Selection) -> "Figure":
    """Chart with title, days and the small print that a chart out of its page needs."""
    top_in, bottom_in = 0.72, 0.72
    figure = _chart(selection, extra_in=(top_in, bottom_in))
    height_in = float(figure.get_figheight())
    report = selection.reports[0]
    subtitle = f"{selection.study.name} · {selection.days_title}"
    figure.text(0.02, 1 - 0.14 / height_in, report.indicator.name, size=13, weight="bold", va="top")
    lines = (
        (height_in - 0.46, subtitle, 9.0),
        (bottom_in - 0.12, _how_to_read(selection), 7.5),
        (bottom_in - 0.32, _small_print(selection), 7.5),
    )
    for y_in, text, size in lines:
        figure.text(0.02, y_in / height_in, text, size=size, color=COLOURS["--muted"], va="top")
    return figure


def _how_to_read(selection: Selection) -> str:
    if selection.scope == Scope.WINDOW:
        text = gettext("Share of visitors. Bars: estimates. Lines: 95 % intervals.")
    else:
        text = gettext("Share of the visitors of each day. Points: estimates. Bands: 95 % intervals.")
    return text


def _small_print(selection: Selection) -> str:
    report = selection.reports[0]
    words = gettext(
        "Plan version %(version)d: %(mechanism)s, epsilon %(epsilon)s of one answer, unit %(unit)s. "
        "%(software)s. Days in %(timezone)s time."
    ) % {
        "version": report.plan_version,
        "mechanism": report.mechanism,
        "epsilon": wording.epsilon(report.epsilon),
        "unit": report.unit,
        "software": software_words(),
        "timezone": report.study.timezone,
    }
    return textwrap.fill(f"{_size(selection)} {words}", _LINE_WIDTH, break_on_hyphens=False)


def _size(selection: Selection) -> str:
    """How many reports there are: of the window, or on the days with fewest and most."""
    if selection.scope == Scope.WINDOW:
        report = selection.reports[0]
        return gettext("%(reports)s reports of %(visitors)s visitors (both exact).") % {
            "reports": wording.number(report.n_reports),
            "visitors": wording.number(report.n_visitors),
        }
    sizes = [report.n_reports for report in selection.reports if report.n_reports is not None] or [0]
    return gettext("%(least)s to %(most)s reports a day (exact).") % {
        "least": wording.number(min(sizes)),
        "most": wording.number(max(sizes)),
    }


def _chart(selection: Selection, *, extra_in: tuple[float, float]) -> "Figure":
    if selection.scope == Scope.WINDOW:
        return _window_chart(selection.reports[0], extra_in=extra_in)
    return _days_chart(selection.reports, extra_in=extra_in)


def _axes(*, height_in: float, left: float, extra_in: tuple[float, float]) -> "tuple[Figure, Axes]":
    """Figure with room above and below its one plot, which has a grid and no box."""
    _matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    top_in, bottom_in = extra_in
    whole_in = height_in + top_in + bottom_in
    figure = Figure(figsize=(_WIDTH_IN, whole_in), facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_axes((left, bottom_in / whole_in, 0.985 - left, height_in / whole_in))
    for side in axes.spines.values():
        side.set_visible(False)
    axes.tick_params(length=0, colors=COLOURS["--text"], labelsize=8.5)
    axes.set_axisbelow(True)
    return figure, axes


# --- one window -------------------------------------------------------------------------------


def _window_chart(
    report: WindowReport, *, extra_in: tuple[float, float], limits: tuple[float, float] | None = None
) -> "Figure":
    """Bars from the first category down; an estimate that is not to be read has its word, and no bar."""
    estimates = report.estimates
    labels = [textwrap.fill(estimate.category, _LABEL_WIDTH) for estimate in estimates]
    rows = sum(max(1.0, 0.7 * (label.count("\n") + 1)) for label in labels)
    figure, axes = _axes(height_in=_ROW_IN * rows + 0.45, left=0.27, extra_in=extra_in)
    axes.set_position(_below_ticks(axes.get_position().bounds, figure.get_figheight()))
    for place, estimate in enumerate(estimates):
        _draw_bar(axes, place, estimate)
    low, high = limits or _bounds(estimates)
    room = 0.14 if all(estimate.status == Status.OK for estimate in estimates) else 0.22
    axes.set_xlim(low, high + room * (high - low))
    axes.set_ylim(len(estimates) - 0.4, -0.6)
    axes.set_yticks(range(len(estimates)), labels)
    axes.xaxis.tick_top()
    _percent_axis(axes.xaxis)
    axes.axvline(0, color=COLOURS["--border-strong"], linewidth=0.9)
    return figure


def _below_ticks(bounds: Sequence[float], height_in: float) -> tuple[float, float, float, float]:
    """Place of a plot with a row of ticks above it."""
    left, bottom, width, height = bounds
    return left, bottom, width, height - 0.25 / height_in


def _draw_bar(axes: "Axes", place: int, estimate: Estimate) -> None:
    low, high, share = estimate.ci_low, estimate.ci_high, estimate.frequency
    is_ok = estimate.status == Status.OK
    if share is not None and is_ok:
        axes.barh(place, share, height=0.62, color=COLOURS["--chart-1"])
    at = 0.0
    if low is not None and high is not None:
        axes.plot([low, high], [place, place], color=COLOURS["--text"], linewidth=1.3, solid_capstyle="butt")
        for end in (low, high):
            axes.plot([end, end], [place - 0.13, place + 0.13], color=COLOURS["--text"], linewidth=1.3)
        at = max(high, 0.0)
    word = wording.percent(share) if is_ok else _blank_words(estimate.status)
    axes.annotate(
        word, (at, place), xytext=(5, 0), textcoords="offset points", va="center", size=8.5,
        color=COLOURS["--text"] if is_ok else COLOURS["--muted"],
    )  # fmt: skip


def _blank_words(status: Status) -> str:
    return f"{wording.status_sign(status)} {wording.status_word(status)}"


def _bounds(estimates: Sequence[Estimate]) -> tuple[float, float]:
    lows = [estimate.ci_low for estimate in estimates if estimate.ci_low is not None]
    highs = [estimate.ci_high for estimate in estimates if estimate.ci_high is not None]
    return 1.05 * min(0.0, *lows, 0.0), max(0.01, *highs, 0.01)


# --- days -------------------------------------------------------------------------------------


def _days_chart(reports: Sequence[WindowReport], *, extra_in: tuple[float, float]) -> "Figure":
    """Lines with bands of the largest categories; a day that is not to be read leaves a gap."""
    shown = largest_categories(reports)[:MAX_LINES]
    legend_in = 0.25 * -(-len(shown) // 3) + 0.5
    top_in, bottom_in = extra_in
    figure, axes = _axes(height_in=3.2, left=0.085, extra_in=(top_in + 0.1, bottom_in + legend_in))
    for place, code in enumerate(shown):
        _draw_line(axes, reports, code=code, place=place)
    days = [report.window.first_day for report in reports]
    ticks = days[:: -(-len(days) // _MAX_DAY_TICKS)]
    study = reports[0].study
    axes.set_xticks(ticks, [wording.short_day(study.date_of(day)) for day in ticks])
    axes.set_xlim(days[0] - 0.4, days[-1] + 0.4)
    is_drawn = [any(report.estimates[code].status == Status.OK for code in shown) for report in reports]
    low, high = axes.get_ylim() if any(is_drawn) else (0.0, 1.0)
    axes.set_ylim(min(0.0, low), max(0.01, high))
    _percent_axis(axes.yaxis)
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


def _draw_line(axes: "Axes", reports: Sequence[WindowReport], *, code: int, place: int) -> None:
    colour = COLOURS[f"--chart-{place % MAX_LINES + 1}"]
    estimates = [report.estimates[code] for report in reports]
    days = [report.window.first_day for report in reports]
    to_read = [estimate.status == Status.OK for estimate in estimates]
    shares = [_or_gap(e.frequency, shown=ok) for e, ok in zip(estimates, to_read, strict=True)]
    lows = [_or_gap(e.ci_low, shown=ok) for e, ok in zip(estimates, to_read, strict=True)]
    highs = [_or_gap(e.ci_high, shown=ok) for e, ok in zip(estimates, to_read, strict=True)]
    marker = _MARKERS[place % len(_MARKERS)]
    axes.fill_between(days, lows, highs, color=colour, alpha=0.14, linewidth=0)
    for i in _alone(to_read):  # a band has no width there
        axes.plot([days[i]] * 2, [lows[i], highs[i]], color=colour, linewidth=5, alpha=0.25)
    axes.plot(
        days, shares, color=colour, linewidth=1.8, marker=marker, markersize=5, label=estimates[0].category
    )


def _mark_blank(axes: "Axes", report: WindowReport, *, status: Status) -> None:
    """A gap says why it is one."""
    axes.text(
        report.window.first_day, 0.03, _blank_words(status), rotation=90, ha="center", va="bottom", size=8.5,
        color=COLOURS["--muted"], transform=axes.get_xaxis_transform(),
    )  # fmt: skip


def _alone(to_read: Sequence[bool]) -> list[int]:
    """Places of days without a neighbour that is drawn."""
    padded = [False, *to_read, False]
    return [i for i, ok in enumerate(to_read) if ok and not padded[i] and not padded[i + 2]]


def _or_gap(value: float | None, *, shown: bool) -> float:
    return value if shown and value is not None else float("nan")


def _percent_axis(axis: Any) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(nbins=6))
    axis.set_major_formatter(FuncFormatter(_tick))
    axis.grid(visible=True, color=COLOURS["--border"], linewidth=0.7)


def _tick(share: float, _place: int | None) -> str:
    """Share at a tick: whole percents where they are, else one decimal."""
    hundredths = round(share * 100, 1)
    decimals = 0 if hundredths == round(hundredths) else 1
    return f"{wording.decimal(hundredths, decimals=decimals)}{wording.SPACE}%"
