"""Parquet: columns by name, a part of a row group at a time.

A value is the text that a CSV file of the same rows would hold, so that a subscriber has one pseudonym in
every format: whole numbers are their digits. Floating-point numbers are refused, since they are not exact.
Rows count from 1.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from django.utils.translation import gettext_noop as _
from numpy.typing import NDArray

from mobility.base.errors import BatchFormatError
from mobility.extracts.readers import Column, Layout, RowBlock, Texts
from mobility.extracts.readers.compression import Buffered, is_of_storage
from mobility.extracts.readers.header import shortened
from mobility.extracts.readers.parquet_footer import RowGroup, check_footer, check_row_groups, read_row_groups
from mobility.extracts.readers.parquet_pages import check_pages
from mobility.extracts.readers.text import UTF8, is_bad, is_plain, kinds_of_rows
from mobility.extracts.readers.thrift import NoPageError
from reports.base.reasons import Reason
from reports.studies.studyfile.formats import EPOCH_MS, EPOCH_S, ISO

BATCH_ROWS = range(64 << 10, (96 << 10) + 1)  # the more, the faster where rows are short, and the more memory
BATCH_BYTES = 4 << 20  # of plain pages
MAX_LOOKED_UP = 1 << 18  # texts of a dictionary that are looked up before rows ask: 1 MB of pages has fewer
BUFFER_BYTES = 256 << 10  # of each column that is read
DAMAGED = _("the Parquet file is damaged or ends early: write it again and send it in full")


def read_parquet(file: Buffered, *, layout: Layout, groups: range | None = None) -> Iterator[RowBlock]:
    """Blocks of a Parquet file, or of some of its row groups; rows count from 1 with the first that is read.

    Raises
    ------
    BatchFormatError : damaged, a column is missing, or has a type that cannot be read exactly
    """
    with _judged():
        yield from _blocks(file, layout=layout, groups=groups)


def group_sizes(file: Buffered) -> list[tuple[int, int]]:
    """Rows and compressed bytes of each row group.

    Raises
    ------
    BatchFormatError : damaged
    """
    with _judged():
        _, groups = _opened(file)
        return [(group.n_rows, sum(chunk.n_bytes for chunk in group.columns)) for group in groups]


@contextmanager
def _judged() -> Iterator[None]:
    """Blame the file for errors of Arrow, unless its storage or the memory failed."""
    try:
        yield
    except MemoryError:  # Arrow's is one of both: the file may be sound
        raise
    except (pa.ArrowException, NoPageError, UnicodeDecodeError, OSError) as error:
        if isinstance(error, OSError) and is_of_storage(error):
            raise
        raise BatchFormatError(DAMAGED) from None


def _blocks(file: Buffered, *, layout: Layout, groups: range | None) -> Iterator[RowBlock]:
    reader, row_groups = _opened(file)
    _check_columns(reader, layout=layout)
    places = {name: _place_of(reader, name) for name in layout.columns}
    groups = range(len(row_groups)) if groups is None else groups
    pages = check_pages(file, row_groups=row_groups, columns=places, groups=groups)
    # Arrow keeps all values of a row group where some pages have places in a dictionary and others values.
    texts = [
        name for name in pages.by_place if reader.schema.column(places[name]).physical_type == "BYTE_ARRAY"
    ]
    reader = _reader(file, read_dictionary=texts)
    first, dictionaries = 1, _Dictionaries()
    n_rows = sum(row_groups[number].n_rows for number in groups)
    batches = reader.iter_batches(
        _batch_rows(pages.plain_bytes, n_rows=n_rows),
        row_groups=list(groups),
        columns=list(layout.columns),
        use_threads=False,
    )
    for batch in batches:
        yield _block(batch, first=first, layout=layout, dictionaries=dictionaries)
        first += len(batch)


def _batch_rows(plain_bytes: int, *, n_rows: int) -> int:
    """Return how many rows take about BATCH_BYTES, within BATCH_ROWS."""
    rows = BATCH_BYTES * n_rows // max(plain_bytes, 1)
    return min(max(rows, BATCH_ROWS[0]), BATCH_ROWS[-1])


def _opened(file: Buffered) -> tuple[pq.ParquetFile, list[RowGroup]]:
    size = check_footer(file)
    reader = _reader(file)
    row_groups = read_row_groups(file, size=size, n_columns=reader.metadata.num_columns)
    check_row_groups(row_groups, size=size)
    return reader, row_groups


def _reader(file: Buffered, *, read_dictionary: list[str] | None = None) -> pq.ParquetFile:
    file.seek(0)
    return pq.ParquetFile(
        pa.PythonFile(file, mode="r"),
        read_dictionary=read_dictionary,
        buffer_size=BUFFER_BYTES,  # else whole columns of a row group are held
        pre_buffer=False,
        page_checksum_verification=True,
    )


def _check_columns(reader: pq.ParquetFile, *, layout: Layout) -> None:
    schema = reader.schema_arrow
    missing = [name for name in layout.columns if name not in schema.names]
    if missing:
        raise BatchFormatError(
            _(
                "the Parquet file has no column %(missing)s, which the profile requires; it has %(count)s "
                "columns: %(found)s. Choose another profile, or rename the columns"
            ),
            missing=missing,
            count=len(schema.names),
            found=shortened(schema.names),
        )
    for name in layout.columns:
        if schema.names.count(name) > 1:
            raise BatchFormatError(
                _("the Parquet file has more than one column %(name)s: rename or remove one of them"),
                name=[name],
            )
        problem = _problem(schema.field(name).type, name=name, layout=layout)
        if problem:
            raise problem
    stamp = layout.timestamp
    if stamp is not None and reader.schema.column(_place_of(reader, stamp)).physical_type == "INT96":
        raise BatchFormatError(
            _(
                "column %(name)s has timestamps of type INT96, which do not include a time zone: write "
                "TIMESTAMP_MICROS (in Spark: spark.sql.parquet.outputTimestampType) or text"
            ),
            name=[stamp],
        )


def _problem(kind: pa.DataType, *, name: str, layout: Layout) -> BatchFormatError | None:
    """Why a column of this type cannot be read, or nothing."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if name == layout.timestamp:
        if pa.types.is_timestamp(kind):
            return None
        if pa.types.is_integer(kind) and layout.timestamp_format == ISO:
            return BatchFormatError(
                _(
                    "column %(name)s contains integers: set timestamp_format in the profile to "
                    '"%(seconds)s" or "%(milliseconds)s"'
                ),
                name=[name],
                seconds=EPOCH_S,
                milliseconds=EPOCH_MS,
            )
        wanted = Reason(_("timestamps, text or integers"))
    else:
        wanted = Reason(_("text or integers"))
    if _is_text(kind) or pa.types.is_integer(kind) or pa.types.is_null(kind):
        return None
    if pa.types.is_decimal(kind) and kind.scale == 0:
        return None
    text = _("column %(name)s has type %(type)s: write %(wanted)s")
    if pa.types.is_floating(kind):
        text = _("column %(name)s contains floating-point numbers, which are not exact: write %(wanted)s")
    elif pa.types.is_nested(kind):  # the names of its parts could be long
        text = _("column %(name)s has a nested type: write %(wanted)s")
    return BatchFormatError(text, name=[name], type=str(kind)[:100], wanted=wanted)


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_string_view(kind)
        or pa.types.is_binary_view(kind)
    )


def _place_of(reader: pq.ParquetFile, name: str) -> int:
    """Place of a column that is no list or record, among the leaves of all columns."""
    for index in range(len(reader.schema)):
        column = reader.schema.column(index)
        if column.path == name and column.name == name:
            return index
    raise BatchFormatError(_("column %(name)s of the Parquet file must be plain, not nested"), name=[name])


def _block(batch: pa.RecordBatch, *, first: int, layout: Layout, dictionaries: "_Dictionaries") -> RowBlock:
    columns = {
        name: _values(batch.column(name), name, is_time=name == layout.timestamp, dictionaries=dictionaries)
        for name in layout.columns
    }
    lines = np.arange(first, first + len(batch), dtype=np.int64)
    kept, bad_text = lines, lines[:0]
    found = [bad for bad in map(_bad_rows, columns.values()) if bad is not None]
    if found:
        bad = np.logical_or.reduce(found)
        columns = {name: _of_rows(column, ~bad) for name, column in columns.items()}
        kept, bad_text = lines[~bad], lines[bad]
    return RowBlock(columns=columns, lines=kept, misshapen=lines[:0], bad_text=bad_text, n_lines=len(batch))


def _of_rows(column: Column, rows: NDArray[np.bool_]) -> Column:
    return column.of_rows(rows) if isinstance(column, Texts) else column.filter(pa.array(rows))


def _values(column: pa.Array, name: str, *, is_time: bool, dictionaries: "_Dictionaries") -> Column:
    """Timestamps as they are, and everything else as texts; a null is an empty one."""
    if is_time and pa.types.is_timestamp(column.type):
        return column
    if not pa.types.is_dictionary(column.type):
        return _texts(_as_binary(column))
    texts = dictionaries.texts_of(name, column.dictionary)
    texts = replace(texts, of_row=_places(column.indices, n_texts=len(column.dictionary)))
    return texts if texts.found is not None else texts.one_each()


class _Dictionaries:
    """Texts of the last dictionary of each column, the same object while the dictionary stays the same.

    Arrow hands out a copy of the dictionary with each batch. The one that is kept here is compared by its
    content, and its memory is not used again while it is kept.
    """

    def __init__(self) -> None:
        self._last: dict[str, tuple[pa.Array, Texts]] = {}

    def texts_of(self, name: str, dictionary: pa.Array) -> Texts:
        """Texts of a dictionary, and an empty one after them; of a large one nothing is remembered."""
        last = self._last.get(name)
        if last is not None and last[0].equals(dictionary):
            return last[1]
        texts = _texts(_as_binary(dictionary))
        texts = Texts(
            data=texts.data,
            begins=np.append(texts.begins, np.int32(0)),
            ends=np.append(texts.ends, np.int32(0)),
            found={} if len(dictionary) <= MAX_LOOKED_UP else None,
        )
        self._last[name] = dictionary, texts
        return texts


def _places(indices: pa.Array, *, n_texts: int) -> NDArray[np.int32]:
    """Place of each row's text in a dictionary; of a null the one after the last text."""
    if indices.type != pa.int32():
        indices = indices.cast(pa.int32())
    n_nulls = indices.null_count
    of_row: NDArray[np.int32] = (indices.fill_null(n_texts) if n_nulls else indices).to_numpy()
    # Arrow looks at few of them.
    if len(of_row) and not 0 <= of_row.min() <= of_row.max() < n_texts + bool(n_nulls):
        raise pa.ArrowInvalid("indices outside the dictionary")
    if n_nulls and np.count_nonzero(of_row == n_texts) != n_nulls:
        raise pa.ArrowInvalid("indices after the end of the dictionary")
    return of_row


def _as_binary(column: pa.Array) -> pa.Array:
    """Texts as they are, numbers as their digits, nulls as nothing."""
    if not _is_text(column.type):
        column = column.cast(pa.string())
    column = column.cast(pa.binary())
    return column.fill_null(b"") if column.null_count else column


def _texts(column: pa.BinaryArray) -> Texts:
    _, offsets, data = column.buffers()
    places = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    texts = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    return Texts(data=texts, begins=places[:-1], ends=places[1:])


def _bad_rows(column: Column) -> NDArray[np.bool_] | None:
    """Rows whose value is not text in UTF-8; None if there are none."""
    if not isinstance(column, Texts):
        return None
    bad = column.once(_bad_texts, lambda: _bad_texts(column))
    if bad is not None and column.of_row is not None:
        bad = bad[column.of_row]
    return bad if bad is not None and bad.any() else None


def _bad_texts(texts: Texts) -> NDArray[np.bool_] | None:
    """Texts that are not in UTF-8; None where a look at all bytes tells that there are none."""
    begins, ends = texts.begins, texts.ends
    if not len(begins) or is_plain(texts.data[begins.min() : ends.max()]):
        return None
    return is_bad(kinds_of_rows(texts.data, begins[None], ends[None]), encoding=UTF8)
