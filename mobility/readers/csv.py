"""CSV with a header, plain or gzip."""

import csv
import gzip
import io
import zlib
from collections.abc import Iterator, Sequence
from typing import BinaryIO, cast

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv

from mobility.errors import BatchFormatError
from mobility.readers import RowBlock

BLOCK_BYTES = 4 << 20  # also the longest line that can be read
HEADER_BYTES_MAX = 64 << 10
GZIP_MAGIC = b"\x1f\x8b"
UTF8_BOM = b"\xef\xbb\xbf"


def read_csv(stream: BinaryIO, *, columns: Sequence[str]) -> Iterator[RowBlock]:
    """Blocks of a CSV stream; see `Reader`."""
    source = _plain(stream)
    try:
        _check_header(source, columns=columns)
        yield from _blocks(source, columns=columns)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise BatchFormatError(
            "the gzip stream is damaged or ends early: compress the file again and send it whole"
        ) from None


def _plain(stream: BinaryIO) -> "io.BufferedReader[io.RawIOBase]":
    buffered = io.BufferedReader(cast(io.RawIOBase, stream), HEADER_BYTES_MAX)
    if buffered.peek(2)[:2] != GZIP_MAGIC:
        return buffered
    return io.BufferedReader(cast(io.RawIOBase, gzip.GzipFile(fileobj=buffered)), HEADER_BYTES_MAX)


def _check_header(source: "io.BufferedReader[io.RawIOBase]", *, columns: Sequence[str]) -> None:
    head = source.peek(HEADER_BYTES_MAX)
    if not head.strip(b"\r\n\t " + UTF8_BOM):
        raise BatchFormatError("the file is empty: expected a header line with the names of the columns")
    line = head.removeprefix(UTF8_BOM).splitlines()[0]
    try:
        names = next(csv.reader([line.decode()]))
    except (UnicodeDecodeError, csv.Error):
        raise BatchFormatError("line 1: the header is not text in UTF-8 with commas") from None
    missing = [name for name in columns if name not in names]
    if missing:
        raise BatchFormatError(
            f"line 1: no column {_listed(missing)}; expected {_listed(columns)} as the study file says, "
            f"found {len(names)} columns, none of that name"
        )
    twice = [name for name in columns if names.count(name) > 1]
    if twice:
        raise BatchFormatError(f"line 1: column {_listed(twice)} appears more than once")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)


def _blocks(source: "io.BufferedReader[io.RawIOBase]", *, columns: Sequence[str]) -> Iterator[RowBlock]:
    misshapen: list[int] = []

    def note_misshapen(row: arrow_csv.InvalidRow) -> str:
        misshapen.append(row.number)
        return "skip"

    line = 1
    try:
        reader = arrow_csv.open_csv(
            source,
            # Line numbers are only known to the reader without threads.
            read_options=arrow_csv.ReadOptions(use_threads=False, block_size=BLOCK_BYTES),
            parse_options=arrow_csv.ParseOptions(
                invalid_row_handler=note_misshapen, ignore_empty_lines=False, newlines_in_values=False
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(columns, pa.binary()),
                include_columns=list(columns),
                strings_can_be_null=False,
            ),
        )
        for batch in reader:
            block = _block(batch, after=line, misshapen=misshapen)
            line += batch.num_rows + len(misshapen)
            misshapen.clear()
            yield block
    except pa.ArrowInvalid as error:
        raise _translated(error, after=line) from None
    if misshapen:  # a last block in which no row had its shape
        empty = pa.array([], pa.binary())
        yield RowBlock(
            columns=dict.fromkeys(columns, empty), lines=pa.array([], pa.int64()), misshapen=tuple(misshapen)
        )


def _block(batch: pa.RecordBatch, *, after: int, misshapen: list[int]) -> RowBlock:
    """Number the rows of a batch: the lines after `after`, without the misshapen ones."""
    n = batch.num_rows
    candidates = np.arange(after + 1, after + 1 + n + len(misshapen), dtype=np.int64)
    lines = np.setdiff1d(candidates, np.array(misshapen, dtype=np.int64), assume_unique=True)[:n]
    return RowBlock(
        columns={name: batch.column(name) for name in batch.schema.names},
        lines=pa.array(lines),
        misshapen=tuple(misshapen),
    )


def _translated(error: pa.ArrowInvalid, *, after: int) -> BatchFormatError:
    """The reader's own messages quote rows, so none of their text may leave this module."""
    if "straddling" in str(error):
        return BatchFormatError(
            f"after line {after}: a line is longer than {BLOCK_BYTES >> 20} MiB, or a quote is never closed"
        )
    return BatchFormatError(f"after line {after}: the text is not CSV with a comma and double quotes")
