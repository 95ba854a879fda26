"""Readers of extracts: a stream of bytes in, blocks of named columns out, in bounded memory."""

from collections.abc import Callable, Hashable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reports.studies.studyfile.formats import ISO, Delimiter

Scalar = TypeVar("Scalar", bound=np.generic)
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Required columns of an extract.

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
    """Format of an extract, filled in by its reader.

    format : "csv" or "parquet"
    compression : of the whole file; empty if there is none
    delimiter, encoding : of text; the encoding is known when the file has been read
    """

    format: str = ""
    compression: str = ""
    delimiter: str = ""
    encoding: str = ""

    def facts(self) -> dict[str, str]:
        """Facts by name; text that is all ASCII is UTF-8 too."""
        encoding = self.encoding or ("utf-8" if self.delimiter else "")
        facts = asdict(self) | {"encoding": encoding}
        return {name: fact for name, fact in facts.items() if fact}


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """The texts of a column, as slices of bytes that no one has copied.

    data : uint8; valid UTF-8 within each text
    begins, ends : int32 (m,); text i is data[begins[i]:ends[i]]
    of_row : int32 (n,), which text each row has; None: text i is that of row i
    found : results of `once`, for all rows with the same dictionary of texts
    """

    data: NDArray[np.uint8]
    begins: NDArray[np.int32]
    ends: NDArray[np.int32]
    of_row: NDArray[np.int32] | None = None
    found: dict[Hashable, Any] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "data", read_only(self.data))

    def __len__(self) -> int:
        return len(self.begins if self.of_row is None else self.of_row)

    def of_rows(self, rows: NDArray[np.integer[Any]] | NDArray[np.bool_]) -> "Texts":
        """Texts of some of the rows."""
        if self.of_row is not None:
            return replace(self, of_row=self.of_row[rows])
        return Texts(data=self.data, begins=self.begins[rows], ends=self.ends[rows])

    def one_each(self) -> "Texts":
        """Return the same with one text per row."""
        if self.of_row is None:
            return self
        return Texts(data=self.data, begins=self.begins[self.of_row], ends=self.ends[self.of_row])

    def once(self, what: Hashable, compute: Callable[[], Found]) -> Found:
        """Return what `compute` finds for the texts: once for a dictionary, however many blocks use it.

        `what` stands for `compute`; other computations have another
        """
        if self.found is None:
            return compute()
        if what not in self.found:  # two threads may both compute the same
            self.found[what] = compute()
        found: Found = self.found[what]
        return found

    def to_list(self) -> list[bytes]:
        """Each row's text, copied."""
        texts = [
            self.data[begin:end].tobytes()
            for begin, end in zip(self.begins.tolist(), self.ends.tolist(), strict=True)
        ]
        return texts if self.of_row is None else [texts[place] for place in self.of_row.tolist()]


Column: TypeAlias = Texts | pa.Array


def read_only(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """A view that cannot be written to. Kernels that only read get no other, or both would be compiled."""
    view = array.view()
    view.flags.writeable = False
    return view


@dataclass(frozen=True, slots=True, kw_only=True)
class RowBlock:
    """Some consecutive rows of an extract.

    columns : of equal length by name, only those asked for: texts (empty where there is no value), or an
        array of Arrow timestamps
    lines : int64 (n,); physical line of each row (the header is line 1); in Parquet its row, from 1
    misshapen : int64; lines, within this block, that do not have as many columns as the header
    bad_text : int64; lines with a wanted value that is no text: NUL bytes, or not in the file's encoding
    n_lines : how many lines this block covers, with the header and blank ones; in Parquet how many rows

    Notes
    -----
    Its arrays are used again: they hold until a reader is asked for the next block (or, where a reader knows
    told that several blocks are in use at once, for as many more).
    """

    columns: dict[str, Column]
    lines: NDArray[np.int64]
    misshapen: NDArray[np.int64]
    bad_text: NDArray[np.int64]
    n_lines: int

    def texts(self, name: str) -> Texts:
        """A column that was not asked for as timestamps."""
        column = self.columns[name]
        assert isinstance(column, Texts)  # noqa: S101 - nothing else can be anything else
        return column

    @property
    def n_rows(self) -> int:
        """Rows that were read, good or bad."""
        return len(self.lines) + len(self.misshapen) + len(self.bad_text)
