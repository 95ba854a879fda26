"""Parts of an extract that can be read apart, by any worker and in any order.

A line of text belongs to the chunk in whose bytes it begins, where a line begins at byte 0 or after a line
feed. Together the chunks give what reading from the beginning to the end gives; their lines count from 1 in
each. An unusual file is one chunk.
"""

import io
from collections.abc import Iterator

from mobility.base.errors import BatchFormatError
from mobility.extracts.chunk_plans import BYTES, ROW_GROUPS, WHOLE, ChunkPlan
from mobility.extracts.readers import Layout, RowBlock, Source
from mobility.extracts.readers.compression import (
    HEAD_BYTES,
    PARQUET_MAGIC,
    Buffered,
    buffered,
    compression_of,
    refuse_other,
)
from mobility.extracts.readers.csv import first_line, read_csv
from mobility.extracts.readers.opening import CSV, PARQUET, read_extract
from mobility.extracts.readers.parquet import group_sizes, read_parquet

PIECE_BYTES = 64 << 10
GRAIN_BYTES = 4 << 20  # frames of a sealed upload: a chunk that ends inside one has it opened twice


def plan_chunks(stream: io.RawIOBase, *, size: int, target_bytes: int) -> list[ChunkPlan]:
    """Cut an extract into chunks, in the order of its rows; what is wrong with it shows when it is read.

    Parameters
    ----------
    stream : its plain bytes; it can seek
    size : how many they are
    target_bytes : of a chunk, about
    """
    file = buffered(_Lent(stream))
    file.seek(0)
    head = file.read(HEAD_BYTES)
    try:
        if head.startswith(PARQUET_MAGIC):
            return _row_groups(file, target_bytes=target_bytes) or [ChunkPlan.whole(size)]
        refuse_other(head)
    except BatchFormatError:
        return [ChunkPlan.whole(size)]
    step = max(target_bytes // GRAIN_BYTES, 1) * GRAIN_BYTES
    if compression_of(head) or size <= step:
        return [ChunkPlan.whole(size)]
    return [ChunkPlan(kind=BYTES, begin=begin, end=min(begin + step, size)) for begin in range(0, size, step)]


def _row_groups(file: Buffered, *, target_bytes: int) -> list[ChunkPlan]:
    plans: list[ChunkPlan] = []
    begin, held, first_row, rows = 0, 0, 1, 0
    sizes = group_sizes(file)
    for number, (n_rows, n_bytes) in enumerate(sizes, start=1):
        held += n_bytes
        rows += n_rows
        if held >= target_bytes or number == len(sizes):
            plans.append(ChunkPlan(kind=ROW_GROUPS, begin=begin, end=number, first_row=first_row))
            begin, held, first_row, rows = number, 0, first_row + rows, 0
    return plans


def read_chunk(
    stream: io.RawIOBase, plan: ChunkPlan, *, layout: Layout, source: Source, in_use: int = 1
) -> Iterator[RowBlock]:
    """Blocks of one chunk, whose lines count from 1 (in the first chunk that is the header).

    Parameters
    ----------
    stream : the plain bytes of the whole extract; it can seek
    plan : as `plan_chunks` made it
    layout, source, in_use : as of `read_extract`

    Raises
    ------
    BatchFormatError : as `read_extract`; the line that it names is right only for the whole
    """
    stream.seek(0)
    if plan.kind == WHOLE:
        yield from read_extract(_Lent(stream), layout=layout, source=source, in_use=in_use)
    elif plan.kind == ROW_GROUPS:
        source.format = PARQUET
        yield from read_parquet(buffered(_Lent(stream)), layout=layout, groups=range(plan.begin, plan.end))
    else:
        source.format = CSV
        header = first_line(buffered(_Lent(stream))) if plan.begin else None
        lines = buffered(_Lines(stream, begin=plan.begin, end=plan.end))
        yield from read_csv(lines, layout=layout, source=source, in_use=in_use, header=header)


class _Lent(io.RawIOBase):
    """A stream that stays open when a buffer over it goes."""

    def __init__(self, stream: io.RawIOBase) -> None:
        super().__init__()
        self._stream = stream

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        return self._stream.readinto(buffer) or 0


class _Lines(io.RawIOBase):
    """The lines of a stream that begin in a range of its bytes."""

    def __init__(self, stream: io.RawIOBase, *, begin: int, end: int) -> None:
        super().__init__()
        self._stream = stream
        self._last = end - 1  # the first line feed from here on ends the last line
        self._at = _first_begin(stream, begin=begin, end=end)
        self._is_done = self._at == end
        stream.seek(self._at)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        if self._is_done:
            return 0
        left = self._last - self._at
        count = self._stream.readinto(buffer[: left if left > 0 else PIECE_BYTES]) or 0
        if left <= 0:
            feed = bytes(buffer[:count]).find(b"\n")
            self._is_done = feed >= 0
            count = feed + 1 if self._is_done else count
        self._at += count
        return count


def _first_begin(stream: io.RawIOBase, *, begin: int, end: int) -> int:
    """Return the start of the first line of a range; `end` if none starts there."""
    if begin == 0:
        return 0
    at = begin - 1  # a line feed here makes a line begin at once
    stream.seek(at)
    piece = memoryview(bytearray(PIECE_BYTES))
    while at < end - 1 and (count := stream.readinto(piece[: end - 1 - at])):
        feed = bytes(piece[:count]).find(b"\n")
        if feed >= 0:
            return at + feed + 1
        at += count
    return end
