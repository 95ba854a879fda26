"""The look of a PDF report: A4, one family of letters, colours of the pages, vector charts, numbered pages.

Why fpdf2: pure Python and typed; PDF/A with embedded fonts, the language of the document, bookmarks, and
texts for screen readers at charts. Distances are in mm, sizes of letters in points.
"""

import io
import logging
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time
from typing import Final

from django.utils.translation import get_language, gettext
from fpdf import FPDF
from fpdf.enums import Align, XPos, YPos
from fpdf.fonts import FontFace, TextStyle
from fpdf.util import Padding

from reports.base import formats
from reports.exports.drawing.canvas import COLOURS, FONT, Box, fonts
from reports.exports.pdf.xmp import xmp_metadata

MARGIN: Final = 20.0
_COVER_HEIGHT = 96.0
_HEAD_HEIGHT = 50.0
_LINE = 5.2  # of running text
_BOTTOM = 22.0  # margin below
_VIEW_BOX = re.compile(rb'viewBox="0 0 ([\d.]+) ([\d.]+)"')
# Matplotlib writes titles and metadata into its drawings, which a PDF has no use for.
logging.getLogger("fpdf.svg").setLevel(logging.ERROR)
logging.getLogger("fontTools").setLevel(logging.WARNING)


def rgb(name: str) -> tuple[int, int, int]:
    """Colour of the pages by its name, as three numbers of 0 to 255."""
    red, green, blue = bytes.fromhex(COLOURS[name].removeprefix("#"))
    return red, green, blue


def _whole_percents(text: str) -> str:
    """Text in which no line ends between a number and its sign."""
    return text.replace(" %", f"{formats.SPACE}%")


class Document(FPDF):
    """Pages in the making; `footer_words` are at the bottom of each but the first.

    `last_date` is the only date inside the file, so that the same data give the same bytes.
    """

    def __init__(
        self,
        *,
        title: str,
        footer_words: str,
        facts: Mapping[str, str],
        last_date: date,
        has_cover: bool = True,
    ) -> None:
        super().__init__(format="A4", enforce_compliance="PDF/A-2U")
        self.footer_words, self.has_cover = footer_words, has_cover
        for style, path in fonts().items():
            self.add_font(FONT, style, path)
        self.set_title(title)
        self.set_lang(get_language() or "en")
        self.set_xmp_metadata(xmp_metadata(title=title, facts=facts, last_date=last_date))
        self.set_creation_date(datetime.combine(last_date, time(), tzinfo=UTC))
        self.set_margins(MARGIN, MARGIN, MARGIN)
        self.set_auto_page_break(auto=True, margin=_BOTTOM)
        self.set_section_title_styles(*self._section_styles())

    def footer(self) -> None:
        """Line with plan, software and page number; the cover has none."""
        if self.page == 1 and self.has_cover:
            return
        self.set_y(-15)
        self.set_draw_color(*rgb("--border"))
        self.line(MARGIN, self.y, self.w - MARGIN, self.y)
        self._style(size=7.5, colour="--muted")
        self.cell(w=self.epw * 0.8, h=7, text=self.footer_words, align=Align.L)
        page = gettext("Page %(page)d of %(pages)s") % {"page": self.page, "pages": "{nb}"}
        self.cell(w=self.epw * 0.2, h=7, text=page, align=Align.R)

    def cover(self, *, kicker: str, title: str, subtitles: Sequence[str]) -> None:
        """Top of the first page: white on the colour of links and buttons; low where the page is no cover."""
        self.add_page()
        height, top = (_COVER_HEIGHT, 24) if self.has_cover else (_HEAD_HEIGHT, 10)
        self.set_fill_color(*rgb("--accent"))
        self.rect(0, 0, self.w, height, style="F")
        self.set_xy(MARGIN, top)
        self.set_text_color(255, 255, 255)
        self.set_font(FONT, "B", 10)
        self._lines(kicker.upper(), height=6)
        self.ln(7 if self.has_cover else 1)
        self.set_font(FONT, "B", 19 if not self.has_cover else 27 if len(title) <= 32 else 19)
        self._lines(title, height=11 if len(title) <= 32 else 8.5)
        self.ln(3)
        for place, subtitle in enumerate(subtitles):
            self.set_font(FONT, "B" if place == 0 else "", 12)
            self._lines(subtitle, height=6.6)
        self.set_y(height + (10 if self.has_cover else 6))

    def facts(self, facts: Sequence[tuple[str, str]]) -> None:
        """Few large figures side by side, each under its name."""
        width, top = self.epw / len(facts), self.y
        for place, (label, value) in enumerate(facts):
            self.set_xy(MARGIN + place * width, top)
            self._style(size=8.5, colour="--muted")
            self.cell(w=width, h=5, text=label)
            self.set_xy(MARGIN + place * width, top + 5.5)
            self._style(size=17, colour="--text", emphasis="B")
            self.cell(w=width, h=9, text=value)
        self.set_xy(MARGIN, top + 21)

    def lead(self, texts: Sequence[str]) -> None:
        """Draw the main message, on a soft ground with a bar."""
        top, page = self.y, self.page
        size, line = (10.5, 6.0) if len(texts) == 1 else (9.0, 4.9)
        self.set_fill_color(*rgb("--accent-soft"))
        for place, text in enumerate(texts):
            self._style(size=size, colour="--text")
            above = 4.0 if place == 0 else 1.0
            below = 4.0 if place == len(texts) - 1 else 1.0
            self.multi_cell(
                w=self.epw, h=line, text=_whole_percents(text), align=Align.L, fill=True,
                padding=Padding(above, 6, below, 7), new_x=XPos.LMARGIN, new_y=YPos.NEXT,
            )  # fmt: skip
        if self.page == page:
            self.set_fill_color(*rgb("--accent"))
            self.rect(MARGIN, top, 1.4, self.y - top, style="F")
        self.ln(7)

    def heading(self, text: str, *, level: int = 0, room: float = 40.0) -> None:
        """Title of a section, with a bookmark; on a new page where less than `room` is left below it."""
        if self.y + room > self.h - _BOTTOM - 16 and self.y > MARGIN:
            self.add_page()
        self.start_section(text, level=level)

    def paragraph(self, text: str, *, muted: bool = False) -> None:
        """Running text; what is muted is smaller."""
        self._style(size=8.5 if muted else 10, colour="--muted" if muted else "--text")
        self._lines(text, height=4.5 if muted else _LINE)
        self.ln(2.5)

    def bullets(self, texts: Sequence[str]) -> None:
        """A list."""
        for text in texts:
            self._style(size=10, colour="--text")
            if self.will_page_break(_LINE):
                self.add_page()
            self.set_x(MARGIN + 1)
            self.cell(w=5, h=_LINE, text="\u2022")
            self.multi_cell(
                w=self.epw - 6,
                h=_LINE,
                text=_whole_percents(text),
                align=Align.L,
                new_x=XPos.LMARGIN,
                new_y=YPos.NEXT,
            )
            self.ln(1.2)
        self.ln(2)

    def drawing(self, svg: bytes, *, words: str, pictures: Sequence[tuple[Box, bytes]] = ()) -> None:
        """Chart as wide as the text, or as high as a page; `words` are read aloud in its place.

        `pictures` lie upon it, at boxes from its lower left corner.
        """
        width, height = self.size_of(svg)
        if not self.has_room(height):
            self.add_page()
        top = self.y
        self.image(io.BytesIO(svg), x=MARGIN, w=width, alt_text=words)
        found = _VIEW_BOX.search(svg)
        scale = 72 * width / float(found[1]) if found else 0.0  # mm for an inch of the drawing
        for box, picture in pictures:
            y = top + height - scale * (box.bottom + box.height)
            self.image(
                io.BytesIO(picture), x=MARGIN + scale * box.left, y=y, w=scale * box.width, alt_text=words
            )
        self.set_y(top + height + 4)

    def has_room(self, height: float) -> bool:
        """Return whether the page has room for a drawing of a height."""
        return bool(self.y + height <= self.h - _BOTTOM)

    def size_of(self, svg: bytes) -> tuple[float, float]:
        """Width and height that a chart will have: with a title above it, it still fits on a page."""
        found = _VIEW_BOX.search(svg)
        ratio = float(found[2]) / float(found[1]) if found else 1.0
        width = min(self.epw, (self.h - MARGIN - _BOTTOM - 30) / ratio)
        return width, width * ratio

    def grid(
        self, head: Sequence[str], rows: Sequence[Sequence[str]], *, widths: Sequence[float], texts: int = 1
    ) -> None:
        """Table whose head is repeated on every page; columns after the first `texts` are to the right.

        `widths` are in mm.
        """
        self._style(size=8.5, colour="--text")
        self.set_draw_color(*rgb("--border"))
        self.set_fill_color(255, 255, 255)
        self.set_line_width(0.2)
        aligns = tuple("LEFT" if place < texts else "RIGHT" for place in range(len(head)))
        style = FontFace(emphasis="BOLD", color=rgb("--muted"), size_pt=8)
        with self.table(
            col_widths=tuple(widths), width=sum(widths), align="LEFT", text_align=aligns,
            headings_style=style, line_height=4.4, borders_layout="HORIZONTAL_LINES",
            padding=(1.3, 1.2, 1.3, 1.2), v_align="TOP",
        ) as table:  # fmt: skip
            for values in (head, *rows):
                row = table.row()
                for value in values:
                    row.cell(value)
        self.ln(4)

    def imprint(self, text: str) -> None:
        """Small words at the bottom of the cover."""
        if self.page == 1 and self.y < self.h - 45:
            self.set_y(self.h - 40)
            self.paragraph(text, muted=True)

    def finished(self) -> bytes:
        """The file."""
        return bytes(self.output())

    def _lines(self, text: str, *, height: float) -> None:
        self.multi_cell(w=self.epw, h=height, text=text, align=Align.L, new_x=XPos.LMARGIN, new_y=YPos.NEXT)

    def _style(self, *, size: float, colour: str, emphasis: str = "") -> None:
        self.set_font(FONT, emphasis, size)
        self.set_text_color(*rgb(colour))

    def _section_styles(self) -> list[TextStyle]:
        return [
            TextStyle(FONT, "B", size, rgb(colour), t_margin=above, b_margin=below)
            for size, colour, above, below in ((15, "--accent", 4, 3), (11.5, "--text", 3, 2))
        ]
