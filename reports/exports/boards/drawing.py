"""Tiles of a board in rows of one or two, as its page shows them, in the light colours. Inches."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from reports.base import formats
from reports.boards.contents import Shown
from reports.exports.boards.blocks import SMALL, Block, blocks_of, text_block
from reports.exports.boards.selection import BoardFile
from reports.exports.drawing.canvas import COLOURS, ONE_AT_A_TIME, Box, new_figure, png_bytes
from reports.exports.drawing.letters import legible

PAGE_IN: Final = 6.7  # width of a board: the text of an A4 page
_GAP_IN: Final = 0.15  # between tiles
_PAD_IN: Final = 0.13  # inside of a tile


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Tiles side by side: a wide one, or one or two small ones; `width` is that of each."""

    tiles: tuple[Shown, ...]
    width: float
    blocks: tuple[tuple[Block, ...], ...]

    @property
    def height(self) -> float:
        return max(sum(block.height for block in each) for each in self.blocks) + 2 * _PAD_IN

    @property
    def words(self) -> str:
        """The row in words, for readers who see no picture."""
        return " ".join(_words(tile) for tile in self.tiles)


def to_png(found: BoardFile) -> bytes:
    """The whole board as one picture, 1,400 pixels wide."""
    facts = "; ".join(f"{name}: {value}" for name, value in found.facts.items())
    metadata = {
        "Title": f"{found.board.name} · {found.study.shown_name}",
        "Software": found.facts["software"],
        "Description": facts,
    }
    with ONE_AT_A_TIME:
        rows = rows_of(found.tiles)
        head, foot = _head(found), _foot(found)
        edges = sum(block.height for block in (*head, *foot))
        height = edges + sum(row.height + _GAP_IN for row in rows) + 2 * _GAP_IN
        figure = new_figure(width_in=PAGE_IN + 2 * _GAP_IN, height_in=height)
        top = _draw_below(figure, head, top=height - _GAP_IN)
        for row in rows:
            draw_row(figure, row, left=_GAP_IN, top=top)
            top -= row.height + _GAP_IN
        _draw_below(figure, foot, top=top)
        return png_bytes(figure, metadata=metadata)


def rows_of(tiles: Iterable[Shown]) -> list[Row]:
    """Tiles in the rows of the page: small ones by twos, as far as no wide one is between them."""
    rows: list[list[Shown]] = []
    for tile in tiles:
        is_beside = rows and len(rows[-1]) == 1 and not (tile.tile.is_wide or rows[-1][0].tile.is_wide)
        if is_beside:
            rows[-1].append(tile)
        else:
            rows.append([tile])
    return [_row(row) for row in rows]


def draw_row(
    figure: Figure, row: Row, *, left: float, top: float, are_pictures_apart: bool = False
) -> list[tuple[Box, bytes]]:
    """Draw a row below `top`; with pictures apart, returns them with their places."""
    pictures = []
    inner = row.width - 2 * _PAD_IN
    for place, blocks in enumerate(row.blocks):
        start = left + place * (row.width + _GAP_IN)
        _frame(figure, Box(start, top - row.height, row.width, row.height))
        at = top - _PAD_IN
        for block in blocks:
            at -= block.height
            if block.is_picture and are_pictures_apart:
                box = Box(start + _PAD_IN, at, inner, block.height)
                pictures.append((box, _pixels(block, width=inner)))
            else:
                block.draw(figure, start + _PAD_IN, at)
    return pictures


def _row(tiles: Sequence[Shown]) -> Row:
    width = PAGE_IN if tiles[0].tile.is_wide else (PAGE_IN - _GAP_IN) / 2
    blocks = tuple(tuple(blocks_of(tile, width=width - 2 * _PAD_IN)) for tile in tiles)
    return Row(tiles=tuple(tiles), width=width, blocks=blocks)


def _head(found: BoardFile) -> list[Block]:
    days = legible(f"{found.study.shown_name} · {found.days_title}")
    return [
        text_block(legible(found.board.name), size=15, width=PAGE_IN, weight="bold"),
        text_block(days, size=9, width=PAGE_IN, below=_GAP_IN),
    ]


def _foot(found: BoardFile) -> list[Block]:
    texts = [legible(text) for text in (*found.reading_words, found.source_words)]
    return [text_block(text, size=SMALL, width=PAGE_IN, colour="--muted") for text in texts]


def _draw_below(figure: Figure, blocks: Sequence[Block], *, top: float) -> float:
    """Draw blocks from a height down; returns where they end."""
    for block in blocks:
        top -= block.height
        block.draw(figure, _GAP_IN, top)
    return top


def _pixels(block: Block, *, width: float) -> bytes:
    figure = new_figure(width_in=width, height_in=block.height)
    block.draw(figure, 0.0, 0.0)
    return png_bytes(figure, metadata={})


def _frame(figure: Figure, box: Box) -> None:
    figure.add_artist(
        FancyBboxPatch(
            (box.left, box.bottom), box.width, box.height, boxstyle="round,pad=0,rounding_size=0.08",
            transform=figure.dpi_scale_trans, facecolor="none", edgecolor=COLOURS["--border"], linewidth=0.8,
        )
    )  # fmt: skip


def _words(tile: Shown) -> str:
    """All that a tile says, in words."""
    parts = [tile.title, tile.blank, tile.tile.text, tile.summary]
    for fact in tile.facts:
        parts.append(
            f"{fact.label}{formats.colon()} {fact.value or formats.status_word(fact.status)} {fact.more}"
        )
    for day in tile.days:
        word = formats.status_word(day.status) if day.visitors is None else formats.counted(day.visitors)
        parts.append(f"{formats.day_title(day.date)}{formats.colon()} {word}")
    for name, value, _, interval in tile.rows:
        if value:
            parts.append(
                f"{name}{formats.colon()} {value} ({interval})"
                if interval
                else f"{name}{formats.colon()} {value}"
            )
    parts.append(tile.top.words if tile.top is not None else "")
    return " ".join(f"{text.strip().rstrip('.')}." for text in parts if text)
