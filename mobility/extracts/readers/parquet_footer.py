"""The footer of a Parquet file, judged before it is believed.

A few bytes of it can announce more row groups than memory holds, or point a thousand row groups at the same
page: then a small file has more rows than a worker could ever read.
"""

import io
from collections.abc import Sequence
from typing import Final, NamedTuple

from django.utils.translation import gettext_noop as _

from mobility.base.errors import BatchFormatError
from mobility.extracts.readers.compression import PARQUET_MAGIC, Buffered
from mobility.extracts.readers.thrift import STRUCT, NoPageError, Thrift

MAX_FOOTER_BYTES: Final = 64 << 20  # parsed, it is some ten times larger
MAX_ROW_GROUPS: Final = 32_768
FREE_ROWS: Final = 1_000_000  # rows that a file of any size may have
MAX_ROWS_PER_BYTE: Final = 1_000  # gzip makes at most 1,000 bytes of one, and no row of text is that short
_TAIL_BYTES: Final = 8  # length of the footer, and the magic bytes
# Fields of the footer, of a row group, of a column in it, and of the metadata of that.
_ROW_GROUPS = 4
_COLUMNS, _ROWS = 1, 3
_METADATA, _ENCRYPTED = 3, 8
_BYTES, _DATA_PAGE, _DICTIONARY_PAGE = 7, 9, 11


def check_footer(file: Buffered) -> int:
    """Check how long the footer says it is, and return the bytes of the whole file.

    Raises
    ------
    BatchFormatError : it is longer than that of any extract
    """
    size = file.seek(0, io.SEEK_END)
    if size < 2 * _TAIL_BYTES:
        return size
    file.seek(size - _TAIL_BYTES)
    tail = file.read(_TAIL_BYTES)
    length = int.from_bytes(tail[:4], "little")
    if tail.endswith(PARQUET_MAGIC) and MAX_FOOTER_BYTES < length <= size:
        raise BatchFormatError(
            _(
                "the footer of the Parquet file has %(size)s MiB, more than %(limit)s: write fewer and "
                "larger row groups, or fewer columns"
            ),
            size=str(length >> 20),
            limit=str(MAX_FOOTER_BYTES >> 20),
        )
    return size


class Chunk(NamedTuple):
    """Bytes of a column in a row group: its first data page, its dictionary page if any, its length."""

    data_page: int
    dictionary_page: int | None
    n_bytes: int


class RowGroup(NamedTuple):
    """Rows, and the bytes of each column."""

    n_rows: int
    columns: tuple[Chunk, ...]


def read_row_groups(file: Buffered, *, size: int, n_columns: int) -> list[RowGroup]:
    """Row groups of a file that Arrow opened, of which each has all columns, and none is encrypted.

    Arrow ends the process where it is asked about a column that it does not accept: so it is never asked.

    Raises
    ------
    NoPageError
    """
    file.seek(size - _TAIL_BYTES)
    length = int.from_bytes(file.read(4), "little")
    file.seek(size - _TAIL_BYTES - length)
    footer, groups = Thrift(file.read(length)), []
    try:
        for field, kind in footer.fields():
            if field == _ROW_GROUPS:
                groups = [_group(footer, n_columns=n_columns) for _ in range(footer.structs(kind))]
            else:
                footer.value(kind)
    except IndexError:
        raise NoPageError from None
    return groups


def _group(footer: Thrift, *, n_columns: int) -> RowGroup:
    n_rows, columns = 0, None
    for field, kind in footer.fields():
        if field == _COLUMNS:
            n = footer.structs(kind)
            if n != n_columns:
                raise NoPageError
            columns = tuple(_chunk(footer) for _ in range(n))
        elif field == _ROWS:
            n_rows = footer.long(kind)
        else:
            footer.value(kind)
    if columns is None:
        raise NoPageError
    return RowGroup(n_rows, columns)


def _chunk(footer: Thrift) -> Chunk:
    places: dict[int, int] = {}
    for field, kind in footer.fields():
        if field == _ENCRYPTED:
            raise NoPageError
        if field != _METADATA:
            footer.value(kind)
            continue
        if kind != STRUCT:
            raise NoPageError
        for place, of in footer.fields():
            if place in (_DATA_PAGE, _DICTIONARY_PAGE, _BYTES):
                places[place] = footer.long(of)
            else:
                footer.value(of)
    if not {_DATA_PAGE, _BYTES} <= places.keys():
        raise NoPageError
    return Chunk(places[_DATA_PAGE], places.get(_DICTIONARY_PAGE), places[_BYTES])


def check_row_groups(groups: Sequence[RowGroup], *, size: int) -> None:
    """Check how many row groups and rows a file of `size` bytes says it has.

    Raises
    ------
    BatchFormatError : too many, or more than its bytes can hold
    """
    if len(groups) > MAX_ROW_GROUPS:
        raise BatchFormatError(
            _(
                "the Parquet file has %(groups)s row groups, more than %(limit)s: write row groups of "
                "100,000 rows or more, or several files"
            ),
            groups=str(len(groups)),
            limit=str(MAX_ROW_GROUPS),
        )
    rows = [group.n_rows for group in groups]
    for number, n_rows in enumerate(rows, start=1):
        if n_rows < 0:
            raise BatchFormatError(
                _("row group %(group)s of the Parquet file declares %(rows)s rows: write the file again"),
                group=str(number),
                rows=str(n_rows),
            )
    most = max(FREE_ROWS, MAX_ROWS_PER_BYTE * size)
    if sum(rows) > most:
        raise BatchFormatError(
            _(
                "the Parquet file declares %(rows)s rows in %(size)s bytes, more than %(limit)s: its row "
                "groups share pages, or repeat a row; write each row once"
            ),
            rows=str(sum(rows)),
            size=str(size),
            limit=str(most),
        )
