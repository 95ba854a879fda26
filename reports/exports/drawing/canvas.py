"""Common parts of charts in files: the font, the colours of the pages, and plots without a box."""

import io
import logging
import re
import textwrap
from pathlib import Path
from threading import Lock
from typing import Any, Final, NamedTuple

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from reports.base import formats

# The light colours of static/css/app.css: a file has no scheme to follow. A test compares them.
COLOURS: Final = {
    "--text": "#1a242e", "--muted": "#55626f", "--border": "#d6dde4", "--border-strong": "#7b8895",
    "--accent": "#0b5d8f", "--accent-soft": "#e3eff7",
    "--chart-1": "#2a6f9e", "--chart-2": "#c4571a", "--chart-3": "#2f7d4f", "--chart-4": "#8a4fa3",
    "--chart-5": "#a07a00", "--chart-6": "#b83a5e", "--chart-7": "#1b8a8f", "--chart-8": "#6b5b4d",
}  # fmt: skip
FONT: Final = "DejaVu Sans"  # comes with matplotlib, so that no system font is needed

# Matplotlib keeps some state for the whole process.
ONE_AT_A_TIME: Final = Lock()

WIDTH_IN: Final = 7.6
_PX = re.compile(rb"(font(?:-size)?: [^;\"]*?[\d.]+)px")
_DOTS_PER_INCH = 200
_LINE_WIDTH = 135  # characters of small print in a line


# No mathematics in names, and no chance in the output.
logging.getLogger("matplotlib").setLevel(logging.WARNING)
matplotlib.rcParams.update(
    {
        "text.parse_math": False,
        "text.hinting": "no_hinting",  # letters are where their outlines are
        "svg.fonttype": "path",
        "svg.hashsalt": "mobility-reports",
        "font.family": [FONT],
        "font.size": 9,
        "text.color": COLOURS["--text"],
        "axes.unicode_minus": True,
    }
)


def fonts() -> dict[str, Path]:
    """Files of the font by style: regular, bold, oblique."""
    folder = Path(str(matplotlib.get_data_path())) / "fonts" / "ttf"
    styles = {"": "DejaVuSans.ttf", "B": "DejaVuSans-Bold.ttf", "I": "DejaVuSans-Oblique.ttf"}
    return {style: folder / name for style, name in styles.items()}


class Box(NamedTuple):
    """A part of a figure, in inches from its lower left corner."""

    left: float
    bottom: float
    width: float
    height: float

    def of(self, figure: "Figure") -> tuple[float, float, float, float]:
        """Return the same part as shares of a figure."""
        width_in, height_in = figure.get_size_inches()
        return self.left / width_in, self.bottom / height_in, self.width / width_in, self.height / height_in


def new_figure(*, height_in: float, width_in: float = WIDTH_IN) -> "Figure":
    """Empty white figure, as wide as a page of a report."""
    figure = Figure(figsize=(width_in, height_in), facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def png_bytes(figure: "Figure", *, metadata: dict[str, str]) -> bytes:
    """A picture, 1520 pixels wide."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=_DOTS_PER_INCH, metadata=metadata)
    return file.getvalue()


def svg_bytes(figure: "Figure", *, metadata: dict[str, str]) -> bytes:
    """Vectors, without the moment at which they were drawn."""
    file = io.BytesIO()
    figure.savefig(file, format="svg", metadata={"Date": None, **metadata})
    return file.getvalue()


def letters_stay() -> Any:
    """Context in which vectors keep letters as letters, for PDF; they are outlines elsewhere."""
    return matplotlib.rc_context({"svg.fonttype": "none"})


def plain_svg(figure: "Figure") -> bytes:
    """Vectors for a page of a PDF.

    A unit of these drawings is a point, and their letters are sized in units, written "px".
    """
    return _PX.sub(rb"\1pt", svg_bytes(figure, metadata={}))


def filled(text: str) -> str:
    """Small print in lines as wide as a figure."""
    return textwrap.fill(text, _LINE_WIDTH, break_on_hyphens=False)


def write_around(figure: "Figure", *, title: str, subtitle: str, words: str, words_in: float) -> None:
    """Write title and subtitle at the top, and small print `words_in` inches above the bottom."""
    height_in = float(figure.get_figheight())
    figure.text(0.02, 1 - 0.14 / height_in, title, size=13, weight="bold", va="top")
    for y_in, text, size in ((height_in - 0.46, subtitle, 9.0), (words_in, words, 7.5)):
        figure.text(0.02, y_in / height_in, text, size=size, color=COLOURS["--muted"], va="top")


def plain_axes(figure: "Figure", bounds: tuple[float, float, float, float]) -> "Axes":
    """A plot with a grid and no box; `bounds` are left, bottom, width, height as shares of the figure."""
    axes = figure.add_axes(bounds)
    for side in axes.spines.values():
        side.set_visible(False)
    axes.tick_params(length=0, colors=COLOURS["--text"], labelsize=8.5)
    axes.set_axisbelow(True)
    return axes


def value_axis(axis: Any, *, measure: str, n_ticks: int = 6) -> None:
    """Ticks of an axis of values: shares in percent, or visitors."""
    axis.set_major_locator(MaxNLocator(nbins=n_ticks))
    axis.set_major_formatter(FuncFormatter(_percent_tick if measure == "frequency" else _visitors_tick))
    axis.grid(visible=True, color=COLOURS["--border"], linewidth=0.7)


def least_span(measure: str) -> float:
    """Return the minimum reach of an axis: 1%, or a visitor."""
    return 0.01 if measure == "frequency" else 1.0


def _percent_tick(share: float, _place: int | None) -> str:
    """Share at a tick: whole percents where they are, else one decimal."""
    hundredths = round(share * 100, 1)
    decimals = 0 if hundredths == round(hundredths) else 1
    return f"{formats.decimal(hundredths, decimals=decimals)}{formats.percent_sign()}"


def _visitors_tick(visitors: float, _place: int | None) -> str:
    return formats.number(visitors)
