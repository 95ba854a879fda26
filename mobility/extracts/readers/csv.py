"""CSV with a header, and the same with tabs, semicolons or pipes; in UTF-8 or Latin-1.

A row is a physical line: a quote that is never closed spoils its own line and none after it, and the line
numbers of bad rows are those that an editor shows. Blank lines are no rows. Quotes mean what they mean to
Python's csv module, except that they cannot hold the end of a line.

A file is in UTF-8 or in Latin-1. The first row that is more than ASCII tells, or the header; rows that
contradict it are bad, so that no value is ever read in two ways.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import cycle
from typing import Self

import numpy as np
from django.utils.translation import gettext_noop as _
from numpy.typing import NDArray

from mobility.base.errors import BatchFormatError
from mobility.extracts.readers import Layout, RowBlock, Source, Texts, read_only
from mobility.extracts.readers.bits import WIDTH
from mobility.extracts.readers.compression import Buffered
from mobility.extracts.readers.header import read_header
from mobility.extracts.readers.lines import (
    HIGH_BITS,
    LONE_CRS,
    NULS,
    QUOTES,
    SPARE,
    SPARE_LASTS,
    Lines,
    Places,
    Room,
    find_ends,
    split_any,
    split_plain,
)
from mobility.extracts.readers.text import (
    OTHER_ROW,
    UTF8,
    encoding_of,
    is_bad,
    is_utf8,
    kinds_of_rows,
    latin1_as_utf8,
)

# The longest line that can be read. A block has a cost in addition to its rows: smaller ones are slower.
BLOCK_BYTES = 4 << 20
LINE_END = re.compile(rb"\r\n|\n|\r")
HEADER_PIECE = 64 << 10


class LineTooLongError(Exception):
    """A line does not fit into a block."""


def read_csv(
    plain: Buffered, *, layout: Layout, source: Source, in_use: int = 1, header: bytes | None = None
) -> Iterator[RowBlock]:
    """Blocks of a stream of text; notes in `source` what it is.

    Parameters
    ----------
    in_use : how many blocks are in use at once; the arrays of an older one are overwritten
    header : of a stream that does not begin with one

    Raises
    ------
    BatchFormatError : the stream is no such text, or a column is missing; never shows content
    """
    line, splitter = 1, None
    try:
        for part in _whole_lines(plain, in_use=in_use):
            n_headers = 0
            if splitter is None:
                n_headers = 1 if header is None else 0
                splitter = _Splitter.of(
                    part.first_line() if header is None else header, layout=layout, source=source
                )
            block = splitter.block(part, line=line, n_headers=n_headers)
            line += block.n_lines
            yield block
    except LineTooLongError:
        raise _too_long(line - 1) from None
    if splitter is None:  # nothing at all
        _Splitter.of(header or b"", layout=layout, source=source)


def first_line(plain: Buffered) -> bytes:
    """The first line of a stream, without its end.

    Raises
    ------
    BatchFormatError : it is longer than any line may be
    """
    begun = bytearray()
    while piece := plain.read(min(HEADER_PIECE, BLOCK_BYTES - len(begun))):
        begun += piece
        if (end := LINE_END.search(begun)) is not None:
            return bytes(begun[: end.start()])
    if len(begun) == BLOCK_BYTES:
        raise _too_long(0)
    return bytes(begun)


def _too_long(lines_before: int) -> BatchFormatError:
    return BatchFormatError(
        _("line %(line)s is longer than %(limit)s MiB: check that this is a CSV file"),
        line=str(lines_before + 1),
        limit=BLOCK_BYTES >> 20,
    )


class _Part:
    """Whole lines of a stream, `data[:n]`, and the room for their fields; all of it is used again."""

    def __init__(self) -> None:
        self.buffer = bytearray(BLOCK_BYTES + WIDTH)
        self.writable = np.frombuffer(self.buffer, np.uint8)
        self.data = read_only(self.writable)
        self.n = 0
        self.room = Room()

    def first_line(self) -> bytes:
        return LINE_END.split(bytes(memoryview(self.buffer)[: self.n]), maxsplit=1)[0]


def _whole_lines(source: Buffered, *, in_use: int) -> Iterator[_Part]:
    """The stream in parts that end with a line; a part holds until another `in_use` are taken."""
    ring = cycle([_Part() for _ in range(in_use)])
    part, held = next(ring), 0
    while n := source.readinto(memoryview(part.buffer)[held:BLOCK_BYTES]):
        held += n
        # A carriage return at the very end may be half of the end of a line.
        cut = part.buffer.rfind(b"\n", 0, held) + 1 or part.buffer.rfind(b"\r", 0, held - 1) + 1
        if cut:
            rest = part.buffer[cut:held]
            part.n = cut
            yield part
            part, held = next(ring), len(rest)
            part.buffer[:held] = rest
        elif held == BLOCK_BYTES:
            raise LineTooLongError
    if held:
        part.n = held
        yield part


@dataclass(slots=True)
class _Splitter:
    """Cuts parts into the wanted fields.

    places : of each wanted column its place in the file
    slots : of each column of the file its place among those wanted, or -1
    """

    layout: Layout
    source: Source
    delimiter: int
    places: NDArray[np.uint64]
    slots: NDArray[np.int64]
    found: Places = field(default_factory=lambda: np.empty(0, np.int32))
    lasts: Places = field(default_factory=lambda: np.empty(0, np.int32))

    @classmethod
    def of(cls, header: bytes, *, layout: Layout, source: Source) -> Self:
        delimiter, names = read_header(header, layout=layout, source=source)
        wanted = layout.columns
        return cls(
            layout=layout,
            source=source,
            delimiter=delimiter,
            places=np.array([names.index(name) for name in wanted], np.uint64),
            slots=np.array([wanted.index(name) if name in wanted else -1 for name in names], np.int64),
        )

    def block(self, part: _Part, *, line: int, n_headers: int) -> RowBlock:
        """Rows of a part whose first line has number `line`; may overwrite its data."""
        if len(self.found) < part.n + 2 + SPARE:
            self.found = np.empty(part.n + 2 + SPARE, np.int32)  # the system gives what is used of it
            self.lasts = np.empty(part.n + 1 + SPARE_LASTS, np.int32)
        n_found, n_lasts, n_lines, has = find_ends(part.data, part.n, self.delimiter, self.found, self.lasts)
        is_clean = not has & (NULS | HIGH_BITS) or (
            self.source.encoding == UTF8 and not has & NULS and is_utf8(part.data, part.n)
        )
        # A row has at least its delimiters and the end of its line; one place more serves lines that are no
        # rows.
        begins, ends = part.room.fields(min(n_lines, (part.n + 1) // len(self.slots) + 1), len(self.places))
        lines = part.room.lines(n_lines)
        into = (line, n_headers, begins, ends, lines)
        if has & (QUOTES | LONE_CRS):
            counts = split_any(part.writable, part.n, self.delimiter, len(self.slots), self.slots, *into)
        else:
            found = self.found[:n_found], self.lasts[:n_lasts]
            counts = split_plain(part.data, *found, len(self.slots), self.places, self.slots[-1], *into)
        n_rows, n_misshapen, n_lines = counts
        misshapen = lines[len(lines) - n_misshapen :][::-1]
        begins, ends, lines = begins[:, :n_rows], ends[:, :n_rows], lines[:n_rows]
        bad_text, has_latin1 = lines[:0], False
        if not is_clean:
            begins, ends, lines, bad_text, has_latin1 = self._texts(part.data, begins, ends, lines)
        columns = {
            name: Texts(data=part.data, begins=begins[slot], ends=ends[slot])
            for slot, name in enumerate(self.layout.columns)
        }
        if has_latin1:
            columns = {name: latin1_as_utf8(texts) for name, texts in columns.items()}
        return RowBlock(
            columns=dict(columns),
            lines=lines,
            misshapen=misshapen,
            bad_text=bad_text,
            n_lines=n_lines,
        )

    def _texts(
        self, data: NDArray[np.uint8], begins: Places, ends: Places, lines: Lines
    ) -> tuple[Places, Places, Lines, Lines, bool]:
        """Return the rows that are text, the lines of the others, and whether any must be transcoded."""
        kinds = kinds_of_rows(data, begins, ends)
        self.source.encoding = self.source.encoding or encoding_of(kinds)
        bad = is_bad(kinds, encoding=self.source.encoding)
        has_latin1 = bool((kinds[~bad] == OTHER_ROW).any())
        if not bad.any():
            return begins, ends, lines, lines[:0], has_latin1
        begins, ends = begins.compress(~bad, axis=1), ends.compress(~bad, axis=1)
        return begins, ends, lines[~bad], lines[bad], has_latin1
