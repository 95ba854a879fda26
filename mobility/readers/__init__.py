"""Readers of extracts: a stream of bytes in, blocks of named columns out, in bounded memory."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Protocol

import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class RowBlock:
    """Some consecutive rows of an extract.

    columns : binary arrays of equal length by name, only those asked for; may hold lines without any value
    lines : physical line of each row (the header is line 1), int64
    misshapen : physical lines, within this block, that do not have as many columns as the header
    """

    columns: dict[str, pa.Array]
    lines: pa.Array
    misshapen: tuple[int, ...]


class Reader(Protocol):
    """One format of extracts."""

    def __call__(self, stream: BinaryIO, *, columns: Sequence[str]) -> Iterator[RowBlock]:
        """Blocks of the stream.

        Raises
        ------
        BatchFormatError : the stream is not in this format, or a column is missing; never shows content
        """
        ...
