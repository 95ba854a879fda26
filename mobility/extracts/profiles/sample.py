"""The first rows of a file, from its first bytes: held in memory while a page is made, and never kept."""

import csv
import io
import re
import zlib
from dataclasses import dataclass
from itertools import islice
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from django.utils.translation import gettext

from mobility.base.errors import BatchFormatError
from mobility.extracts.profiles.errors import PreviewError
from mobility.extracts.readers.compression import (
    GZIP,
    PARQUET_MAGIC,
    ZSTD,
    buffered,
    compression_of,
    refuse_other,
)
from mobility.extracts.readers.header import BYTES, UTF8_BOM
from mobility.extracts.readers.parquet_footer import RowGroup, read_row_groups
from mobility.extracts.readers.parquet_pages import check_pages
from mobility.extracts.readers.text import LATIN1, UTF8
from mobility.extracts.readers.thrift import NoPageError
from reports.studies.studyfile.formats import DELIMITERS

SAMPLE_BYTES: Final = 256 << 10  # that a browser sends
PLAIN_BYTES: Final = 1 << 20  # that are read of what it decompresses to
PARQUET_BYTES: Final = 4 << 20  # of plain pages that are open side by side
ROWS: Final = 200
BLANKS: Final = " \t\n\r\v\f"  # around a text; no others are taken away when a file is ingested
LINE_END = re.compile("\r\n|\n|\r")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The first rows of a file.

    names : of its columns, in order
    rows : texts, trimmed, one per column
    misshapen : rows that have another number of columns, and are left out
    format, compression, delimiter, encoding : as `mobility.extracts.readers.Source` names them; empty where
        unknown
    """

    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    misshapen: int
    format: str
    compression: str = ""
    delimiter: str = ""
    encoding: str = ""

    def column(self, name: str) -> list[str]:
        """Texts of a column; of none if there is no such column, or more than one."""
        if self.names.count(name) != 1:
            return []
        place = self.names.index(name)
        return [row[place] for row in self.rows]


def read_sample(data: bytes, *, size: int, delimiter: str | None = None, most: int | None = ROWS) -> Sample:
    """Read the first rows of a file.

    Parameters
    ----------
    data : its first bytes, at most SAMPLE_BYTES
    size : bytes of the whole file
    delimiter : None = found from the header
    most : rows to read; None = all that the bytes hold in full, of Parquet about PLAIN_BYTES of text

    Raises
    ------
    PreviewError : nothing can be shown; says why and what to do, never shows content
    """
    if not data:
        raise PreviewError(gettext("The file is empty. Choose another file."))
    is_whole = size <= len(data)
    try:
        if data.startswith(PARQUET_MAGIC):
            return _parquet(data, is_whole=is_whole, most=most)
        refuse_other(data)
        compression = compression_of(data)
        plain, is_all = _plain(data, compression=compression)
        refuse_other(plain, inside=compression)
    except BatchFormatError as error:
        raise PreviewError(error.reason) from None
    return _text(plain, is_whole=is_whole and is_all, compression=compression, delimiter=delimiter, most=most)


def _plain(data: bytes, *, compression: str) -> tuple[bytes, bool]:
    """The beginning of the text, as much as the bytes tell, and whether that is all that they hold."""
    if compression == GZIP:
        decompressor = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        try:
            plain = decompressor.decompress(data, PLAIN_BYTES)
        except zlib.error:
            raise PreviewError(gettext("The gzip stream is damaged. Compress the file again.")) from None
        return plain, decompressor.eof
    if compression == ZSTD:
        return _plain_zstd(data)
    return data[:PLAIN_BYTES], len(data) <= PLAIN_BYTES


def _plain_zstd(data: bytes) -> tuple[bytes, bool]:
    stream = pa.CompressedInputStream(pa.BufferReader(data), ZSTD)
    parts: list[bytes] = []
    held = 0
    try:
        while held < PLAIN_BYTES:
            part = stream.read(64 << 10)
            if not part:
                return b"".join(parts), True
            parts.append(part)
            held += len(part)
    except OSError:  # the stream continues where the sample ends
        if not parts:
            raise PreviewError(
                gettext(
                    "The preview cannot read the beginning of this zstd file. Either the file is damaged, "
                    "or it can only be read in full. Choose an uncompressed file or a gzip file."
                )
            ) from None
    return b"".join(parts), False


def _text(
    plain: bytes, *, is_whole: bool, compression: str, delimiter: str | None, most: int | None
) -> Sample:
    if b"\x00" in plain:
        raise PreviewError(
            gettext("The file contains NUL bytes, so it is not UTF-8 or Latin-1 text. Choose a text file.")
        )
    if not is_whole:  # the last line may be cut
        plain = plain[: max(plain.rfind(b"\n"), plain.rfind(b"\r", 0, len(plain) - 1)) + 1]
    encoding = UTF8
    try:
        text = plain.removeprefix(UTF8_BOM).decode()
    except UnicodeDecodeError:
        encoding, text = LATIN1, plain.decode(LATIN1)
    header, *lines = LINE_END.split(text)
    if not header.strip():
        raise PreviewError(gettext("Line 1 is empty. Add a header with the column names."))
    found = delimiter or max(DELIMITERS, key=lambda name: len(_fields(header, name)))
    names = _fields(header, found)
    rows = [_fields(line, found) for line in islice(filter(None, lines), most)]
    good = tuple(tuple(field.strip(BLANKS) for field in row) for row in rows if len(row) == len(names))
    return Sample(
        names=tuple(names),
        rows=good,
        misshapen=len(rows) - len(good),
        format="csv",
        compression=compression,
        delimiter=found,
        encoding=encoding,
    )


def _fields(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=BYTES[delimiter]))
    except csv.Error:  # a field of more than 128 KiB
        raise PreviewError(gettext("A line is too long. Check that this is a CSV file.")) from None


def _parquet(data: bytes, *, is_whole: bool, most: int | None) -> Sample:
    if not is_whole:
        raise PreviewError(
            gettext(
                "This Parquet file is larger than the preview limit of %(limit)s KiB. Choose a file "
                "that contains only the first rows. You can also define the profile in a file and "
                "run manage.py create_profile."
            )
            % {"limit": SAMPLE_BYTES >> 10}
        )
    try:
        names, rows = _parquet_rows(data, most=most)
    except (pa.ArrowException, NoPageError, UnicodeDecodeError, OSError):
        raise PreviewError(gettext("The Parquet file is damaged. Create the file again.")) from None
    return Sample(
        names=tuple(names),
        rows=tuple(rows),
        misshapen=0,
        format="parquet",
    )


def _parquet_rows(data: bytes, *, most: int | None) -> tuple[list[str], list[tuple[str, ...]]]:
    """Names of all columns, and the texts of the first rows; those of lists and records are empty."""
    file = pq.ParquetFile(io.BytesIO(data), page_checksum_verification=True)
    row_groups = read_row_groups(
        buffered(io.BytesIO(data)), size=len(data), n_columns=file.metadata.num_columns
    )
    leaves = [file.schema.column(place) for place in range(len(file.schema))]
    plain = [
        (place, leaf.path)
        for place, leaf in enumerate(leaves)
        if leaf.path == leaf.name and not leaf.max_repetition_level
    ]
    _check_parquet_pages(data, row_groups, places=[place for place, _ in plain])
    batches = file.iter_batches(ROWS, columns=[path for _, path in plain], use_threads=False)
    fields = list(file.schema_arrow)
    rows: list[tuple[str, ...]] = []
    held = 0  # characters: a small file may repeat a long value for millions of rows
    while (most is None or len(rows) < most) and held < PLAIN_BYTES and (batch := next(batches, None)):
        part = _rows(batch, fields)
        rows += part
        held += sum(len(text) + 1 for row in part for text in row)
    return [field.name for field in fields], rows[:most]


def _rows(batch: pa.RecordBatch, fields: list[pa.Field]) -> list[tuple[str, ...]]:
    """Texts of the rows of a batch, which has the columns without lists and records."""
    read = iter(each for each in batch.columns if not pa.types.is_nested(each.type))
    columns = [
        [""] * len(batch) if pa.types.is_nested(field.type) else _texts(next(read)) for field in fields
    ]
    return list(zip(*columns, strict=True))


def _check_parquet_pages(data: bytes, row_groups: list[RowGroup], *, places: list[int]) -> None:
    try:
        check_pages(
            buffered(io.BytesIO(data)),
            row_groups=row_groups,
            columns={str(place): place for place in places},  # names may be repeated
            groups=range(len(row_groups)),
            max_bytes=PARQUET_BYTES,
        )
    except BatchFormatError:
        raise PreviewError(
            gettext(
                "The data pages of the Parquet file are too large for a preview. Choose a file that "
                "contains only the first rows."
            )
        ) from None


def _texts(column: pa.Array) -> list[str]:
    """Values as text; those that have none, as nothing."""
    try:
        texts = column.cast(pa.string()).to_pylist()
    except (pa.ArrowException, UnicodeDecodeError):
        return [""] * len(column)
    return ["" if text is None else str(text).strip(BLANKS) for text in texts]
