"""The footer of a Parquet file, judged before it is believed.

A few bytes of it can announce more row groups than memory holds, or point a thousand row groups at the same
page: then a small file has more rows than a worker could ever read.
"""

import io
from typing import Final

import pyarrow.parquet as pq

from mobility.base.errors import BatchFormatError
from mobility.extracts.readers.compression import PARQUET_MAGIC, Buffered
from mobility.extracts.readers.thrift import NoPageError, Thrift

MAX_FOOTER_BYTES: Final = 64 << 20  # parsed, it is some ten times larger
MAX_ROW_GROUPS: Final = 32_768
FREE_ROWS: Final = 1_000_000  # rows that a file of any size may have
MAX_ROWS_PER_BYTE: Final = 1_000  # gzip makes at most 1,000 bytes of one, and no row of text is that short
_TAIL_BYTES: Final = 8  # length of the footer, and the magic bytes
# Fields of the footer, of a row group, and of a column in it.
_ROW_GROUPS, _COLUMNS, _ENCRYPTED = 4, 1, 8


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
            f"the footer of the Parquet file has {length >> 20} MiB, more than "
            f"{MAX_FOOTER_BYTES >> 20}: write fewer and larger row groups, or fewer columns"
        )
    return size


def check_columns(file: Buffered, *, size: int, n_columns: int) -> None:
    """Check that each row group of a file that Arrow opened has all columns, and none is encrypted.

    Arrow ends the process where it is asked about others.

    Raises
    ------
    NoPageError
    """
    file.seek(size - _TAIL_BYTES)
    length = int.from_bytes(file.read(4), "little")
    file.seek(size - _TAIL_BYTES - length)
    footer = Thrift(file.read(length))
    try:
        for field, kind in footer.fields():
            if field != _ROW_GROUPS:
                footer.value(kind)
                continue
            for _ in range(footer.structs(kind)):
                _check_group(footer, n_columns=n_columns)
    except IndexError:
        raise NoPageError from None


def _check_group(footer: Thrift, *, n_columns: int) -> None:
    for field, kind in footer.fields():
        if field != _COLUMNS:
            footer.value(kind)
            continue
        n = footer.structs(kind)
        if n != n_columns or any(_ENCRYPTED in footer.struct() for _ in range(n)):
            raise NoPageError


def check_row_groups(metadata: pq.FileMetaData, *, size: int) -> None:
    """Check how many row groups and rows a file of `size` bytes says it has.

    Raises
    ------
    BatchFormatError : too many, or more than its bytes can hold
    """
    if metadata.num_row_groups > MAX_ROW_GROUPS:
        raise BatchFormatError(
            f"the Parquet file has {metadata.num_row_groups} row groups, more than {MAX_ROW_GROUPS}: "
            "write row groups of 100,000 rows or more, or several files"
        )
    rows = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
    negative = next((number for number, n_rows in enumerate(rows, start=1) if n_rows < 0), 0)
    if negative:
        raise BatchFormatError(f"row group {negative} of the Parquet file declares fewer than 0 rows")
    most = max(FREE_ROWS, MAX_ROWS_PER_BYTE * size)
    if sum(rows) > most:
        raise BatchFormatError(
            f"the Parquet file declares {sum(rows)} rows in {size} bytes, more than {most}: its row "
            "groups share pages, or repeat a row; write each row once"
        )
