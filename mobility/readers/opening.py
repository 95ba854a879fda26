"""Which reader an extract needs: its first bytes tell, never its name."""

import io
from collections.abc import Iterator
from typing import BinaryIO

from mobility.readers import Layout, RowBlock, Source
from mobility.readers.compression import (
    PARQUET_MAGIC,
    buffered,
    compression_of,
    decompressed,
    refuse_other,
    with_head,
)
from mobility.readers.csv import read_csv
from mobility.readers.parquet import read_parquet

CSV, PARQUET = "csv", "parquet"


def read_extract(
    stream: BinaryIO | io.RawIOBase, *, layout: Layout, source: Source | None = None
) -> Iterator[RowBlock]:
    """Blocks of an extract of any format; notes in `source` what it is.

    Parameters
    ----------
    stream : its bytes; only Parquet asks it to seek
    layout : what it must hold

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
    refuse_other(head)
    source.format, source.compression = CSV, compression_of(head)
    if source.compression:
        head, whole = with_head(decompressed(whole, compression=source.compression))
        refuse_other(head, inside=source.compression)
    yield from read_csv(whole, layout=layout, source=source)
