"""Parts of a tile: texts, large figures, bars and maps, with their heights. Inches."""

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from reports.base import formats
from reports.base.status import Status
from reports.boards.contents import Shown
from reports.boards.tiles import Kind
from reports.estimates.coverage import DayCoverage
from reports.estimates.queries import WindowReport
from reports.estimates.texts import KeyFact
from reports.exports.drawing.bars import bars_height_in, draw_bars
from reports.exports.drawing.canvas import COLOURS, Box, plain_axes
from reports.exports.drawing.letters import legible, legible_selection
from reports.exports.drawing.maps import beside_words, draw_map, zone_map
from reports.exports.drawing.pages import in_order
from reports.exports.selection import Scope, Selection
from reports.flows import texts as flows_texts
from reports.flows.top_lists import TopList

SMALL: Final = 7.5  # points, of small print
_LETTER: Final = 0.0078  # width of a letter of one point, on average and rather too wide
_BOLD: Final = 1.12  # times as wide
_LEADING: Final = 0.0195  # height of a line of one point
_FACT_IN: Final = 1.5  # least width of a key figure
_FACT_GAP_IN: Final = 0.1
_FACT_PARTS: Final = 3
_DAYS_IN: Final = 1.7  # height of the bars of days
_NARROW_IN: Final = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A part of a tile; `draw` takes its lower left corner.

    `is_picture` where it has hatching, which a PDF can only show as pixels.
    """

    height: float
    draw: Callable[[Figure, float, float], None]
    is_picture: bool = False


def blocks_of(tile: Shown, *, width: float) -> list[Block]:
    """Parts of a tile, from the top."""
    title = [text_block(legible(tile.title), size=10.5, width=width, weight="bold")] if tile.title else []
    return [*title, *_content(tile, width=width)]


def text_block(
    text: str,
    *,
    size: float,
    width: float,
    colour: str = "--text",
    weight: str = "normal",
    below: float = 0.06,
) -> Block:
    """Words in lines of a width, with some room `below`."""
    lines = _wrapped(text, size=size * (_BOLD if weight == "bold" else 1.0), width=width)
    height = len(lines) * size * _LEADING + below

    def draw(figure: Figure, left: float, bottom: float) -> None:
        _write(figure, (left, bottom + height), "\n".join(lines), size=size, colour=colour, weight=weight)

    return Block(height=height, draw=draw)


def _content(tile: Shown, *, width: float) -> list[Block]:
    if tile.blank:
        return [text_block(legible(tile.blank), size=8.5, width=width, colour="--muted")]
    if tile.tile.kind == Kind.TEXT:
        paragraphs = [text for text in tile.tile.text.split("\n") if text.strip()]
        return [text_block(legible(text), size=9, width=width) for text in paragraphs]
    if tile.facts:
        return [_facts(tile.facts, width=width)]
    if tile.days:
        return [_days(tile.days, width=width)]
    if tile.top is not None:
        return _top(tile.top, width=width)
    if tile.report is None:
        return []
    return _map(tile, tile.report, width=width) if tile.map else _bars(tile, tile.report, width=width)


def _selection(tile: Shown, report: WindowReport) -> Selection:
    return Selection(scope=Scope.WINDOW, study=report.study, name="", reports=(report,), options=tile.options)


def _map(tile: Shown, report: WindowReport, *, width: float) -> list[Block]:
    """Zones in colours, and what is not on the map."""
    found = zone_map(_selection(tile, report))  # zones are found by their names, which must be complete
    height = found.height_in(width)

    def draw(figure: Figure, left: float, bottom: float) -> None:
        draw_map(figure, found, box=Box(left, bottom, width, height))

    beside = beside_words(report, options=tile.options)
    small = [text_block(legible(beside), size=SMALL, width=width, colour="--muted")] if beside else []
    return [Block(height=height, draw=draw, is_picture=True), *small]


def _bars(tile: Shown, report: WindowReport, *, width: float) -> list[Block]:
    """Bars of the categories of the page, and the small print of its chart."""
    at_most = len(report.estimates) - tile.left_out
    shown = in_order(legible_selection(_selection(tile, report)), at_most=at_most)
    height = bars_height_in(shown, width_in=width)

    def draw(figure: Figure, left: float, bottom: float) -> None:
        draw_bars(figure, shown, box=Box(left, bottom, width, height), options=tile.options)

    notes = [tile.left_words] if tile.left_out else []
    notes += [formats.blank_words(report.status)] if report.status != Status.OK else []
    small = [text_block(legible(text), size=SMALL, width=width, colour="--muted") for text in notes]
    return [Block(height=height + 0.05, draw=draw), *small]


def _top(top: TopList, *, width: float) -> list[Block]:
    blocks = [text_block(top.words, size=8, width=width)]
    for names, figure in top.rows:
        title = top.between.join(legible(name) for name in names)
        blocks.append(text_block(title, size=8, width=width, weight="bold", below=0.0))
        text = flows_texts.amount(figure, of_moves=top.of_moves)
        blocks.append(text_block(text, size=8, width=width))
    return blocks


def _facts(facts: Sequence[KeyFact], *, width: float) -> Block:
    """Large figures side by side, in as many rows as they need."""
    in_a_row = min(len(facts), max(1, int(width / _FACT_IN)))
    column = width / in_a_row
    cells = [_fact(fact, width=column - _FACT_GAP_IN) for fact in facts]
    rows = [cells[start : start + in_a_row] for start in range(0, len(cells), in_a_row)]
    heights = [[max(each[part].height for each in row) for part in range(_FACT_PARTS)] for row in rows]

    def draw(figure: Figure, left: float, bottom: float) -> None:
        top = bottom + sum(map(sum, heights))
        for row, parts in zip(rows, heights, strict=True):
            for part, height in enumerate(parts):
                for place, cell in enumerate(row):
                    cell[part].draw(figure, left + place * column, top - cell[part].height)
                top -= height

    return Block(height=sum(map(sum, heights)), draw=draw)


def _fact(fact: KeyFact, *, width: float) -> list[Block]:
    """Name, figure, and what is small, each in as many lines as it needs."""
    value = fact.value or formats.status_word(fact.status)
    return [
        text_block(fact.label, size=SMALL, width=width, colour="--muted", below=0.03),
        text_block(value, size=12, width=width, weight="bold", below=0.02),
        text_block(fact.more, size=SMALL, width=width, colour="--muted", below=0.08),
    ]


def _days(days: Sequence[DayCoverage], *, width: float) -> Block:
    """Bars of the visitors of each day; the sign of its blank where a day has none."""
    ticks = days[:: -(-len(days) // (5 if width < _NARROW_IN else 8))]
    values = [max(day.visitors or 0, 0) for day in days]

    def draw(figure: Figure, left: float, bottom: float) -> None:
        box = Box(left + 0.5, bottom + 0.2, width - 0.55, _DAYS_IN - 0.25)
        axes = plain_axes(figure, box.of(figure))
        axes.bar([day.day for day in days], values, width=0.65, color=COLOURS["--chart-1"])
        for day in days:
            if day.visitors is None:
                axes.text(day.day, 0, formats.status_sign(day.status), ha="center", va="bottom", size=8)
        axes.set_xticks([day.day for day in ticks], [formats.short_day(day.date) for day in ticks])
        axes.set_xlim(days[0].day - 0.6, days[-1].day + 0.6)
        axes.set_ylim(0, max(*values, 1) * 1.05)
        axes.yaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: formats.number(value)))
        axes.grid(visible=True, axis="y", color=COLOURS["--border"], linewidth=0.7)

    return Block(height=_DAYS_IN, draw=draw)


def _wrapped(text: str, *, size: float, width: float) -> list[str]:
    return textwrap.wrap(text, int(width / (size * _LETTER)), break_on_hyphens=False)


def _write(
    figure: Figure,
    corner: tuple[float, float],
    text: str,
    *,
    size: float,
    colour: str = "--text",
    weight: str = "normal",
) -> None:
    """Write lines below their upper left corner."""
    figure.text(
        *corner, text, size=size, color=COLOURS[colour], weight=weight, va="top", linespacing=1.25,
        transform=figure.dpi_scale_trans,
    )  # fmt: skip
