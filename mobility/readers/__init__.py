"""Readers of extracts: a stream of bytes in, blocks of named columns out, in bounded memory."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reports.studyfile.formats import ISO, Delimiter


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What an extract must hold.

    columns : names of the columns to deliver, in this order
    timestamp : which of them holds timestamps; None if none does
    timestamp_format : how they are written where they are text or numbers
    delimiter : of text; None = found from the header
    """

    columns: tuple[str, ...]
    timestamp: str | None = None
    timestamp_format: str = ISO
    delimiter: Delimiter | None = None


@dataclass(slots=True)
class Source:
    """What an extract turned out to be; a reader fills it in while it reads.

    format : "csv" or "parquet"
    compression : of the whole file; empty if there is none
    delimiter, encoding : of text; the encoding is known when the file has been read
    """

    format: str = ""
    compression: str = ""
    delimiter: str = ""
    encoding: str = ""

    def facts(self) -> dict[str, str]:
        """What there is to tell, by name; text that is all ASCII is UTF-8 too."""
        encoding = self.encoding or ("utf-8" if self.delimiter else "")
        facts = {
            "format": self.format,
            "compression": self.compression,
            "delimiter": self.delimiter,
            "encoding": encoding,
        }
        return {name: fact for name, fact in facts.items() if fact}


@dataclass(frozen=True, slots=True, kw_only=True)
class RowBlock:
    """Some consecutive rows of an extract.

    columns : arrays of equal length by name, only those asked for: binary, or a dictionary of binary (UTF-8,
        empty where there is no value), or timestamps of Arrow
    lines : int64 (n,); physical line of each row (the header is line 1); in Parquet its row, from 1
    misshapen : int64; lines, within this block, that do not have as many columns as the header
    bad_text : int64; lines with a wanted value that is no text: NUL bytes, or not in the file's encoding
    """

    columns: dict[str, pa.Array]
    lines: NDArray[np.int64]
    misshapen: NDArray[np.int64]
    bad_text: NDArray[np.int64]
