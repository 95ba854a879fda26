"""Choice of the reader for an extract: its first bytes tell, never its name."""

import io
from collections.abc import Iterator
from typing import BinaryIO

from mobility.extracts.readers import Layout, RowBlock, Source
from mobility.extracts.readers.compression import (
    PARQUET_MAGIC,
    Buffered,
    buffered,
    compression_of,
    decompressed,
    refuse_other,
    with_head,
)
from mobility.extracts.readers.csv import read_csv
from mobility.extracts.readers.parquet import read_parquet

CSV, PARQUET = "csv", "parquet"


def read_extract(
    stream: BinaryIO | io.RawIOBase, *, layout: Layout, source: Source | None = None, in_use: int = 1
) -> Iterator[RowBlock]:
    """Blocks of an extract of any format, from its beginning to its end; notes in `source` what it is.

    Parameters
    ----------
    stream : its bytes; only Parquet asks it to seek
    layout : what it must hold
    in_use : how many blocks are in use at once; the arrays of an older one are overwritten

    Raises
    ------
    BatchFormatError : it is of no known format, damaged, or a column is missing; never shows content
    """
    source = Source() if source is None else source
    file = buffered(stream)
    head, whole = with_head(file)
    if head.startswith(PARQUET_MAGIC):
        source.format = PARQUET
        yield from read_parquet(file, layout=layout)
        return
    yield from read_csv(
        plain_text(whole, head=head, source=source), layout=layout, source=source, in_use=in_use
    )


def plain_text(file: Buffered, *, head: bytes, source: Source) -> Buffered:
    """The text of a file that begins with `head`, without compression; notes in `source` what it has.

    Raises
    ------
    BatchFormatError : it is something else
    """
    refuse_other(head)
    source.format, source.compression = CSV, compression_of(head)
    if not source.compression:
        return file
    head, plain = with_head(decompressed(file, compression=source.compression))
    refuse_other(head, inside=source.compression)
    return plain
