"""Readers of extracts: a stream of bytes in, blocks of named columns out, in bounded memory."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class RowBlock:
    """Some consecutive rows of an extract.

    columns : binary arrays of equal length by name, only those asked for
    lines : int64 (n,); physical line of each row (the header is line 1)
    misshapen : int64; physical lines, within this block, that do not have as many columns as the header
    """

    columns: dict[str, pa.Array]
    lines: NDArray[np.int64]
    misshapen: NDArray[np.int64]


class Reader(Protocol):
    """One format of extracts."""

    def __call__(self, stream: BinaryIO, *, columns: Sequence[str]) -> Iterator[RowBlock]:
        """Blocks of the stream.

        Raises
        ------
        BatchFormatError : the stream is not in this format, or a column is missing; never shows content
        """
        ...
