"""A table as it is read and written: CSV or Parquet, in memory, and nowhere else before it is sanitised."""

import io
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mobility.base.errors import BatchFormatError
from mobility.extracts.profiles.errors import PreviewError
from mobility.extracts.profiles.sample import SAMPLE_BYTES, read_sample
from mobility.extracts.readers import Layout
from mobility.extracts.readers.compression import PARQUET_MAGIC
from mobility.extracts.readers.opening import read_extract
from mobility.tables.options import TableError

CSV, PARQUET = ".csv", ".parquet"
MAX_BYTES: Final = 2_000_000_000
LINES_NAMED: Final = 5  # of those with a problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Rows of a file.

    table : columns in file order; texts where the file is CSV, the file's types where it is Parquet, without
        dictionaries, which can have values of no row
    lines : int64 (n,); line of each row in CSV (the header is line 1), row from 1 in Parquet
    """

    table: pa.Table
    lines: NDArray[np.int64]

    def places(self, wrong: NDArray[np.bool_]) -> str:
        """Name the first rows that are marked, and say how many more there are; of at least one."""
        found = self.lines[wrong]
        more = len(found) - LINES_NAMED
        listed = ", ".join(map(str, found[:LINES_NAMED].tolist()))
        word = "row" if len(found) == 1 else "rows"
        return f"{word} {listed}" + (f" and {more} more" if more > 0 else "")


def read_rows(data: bytes) -> Rows:
    """Read a whole table.

    Parameters
    ----------
    data : bytes of a CSV file (plain, gzip or zstd) or of a Parquet file

    Raises
    ------
    TableError : it is none, damaged, or a column's name is empty or appears twice
    """
    try:
        found = _parquet(data) if data.startswith(PARQUET_MAGIC) else _csv(data)
    except (BatchFormatError, PreviewError) as error:
        raise TableError(str(error)) from None
    if not found.table.num_rows:
        raise TableError("the file has no rows")
    return found


def check_new(path: Path) -> None:
    """Raise TableError if there is a file of that name, or the name has no ending of a table."""
    if path.suffix.lower() not in (CSV, PARQUET):
        raise TableError(f"the name of the new file must end in {CSV} or {PARQUET}, got {path.name}")
    if path.exists():
        raise TableError(f"there is a file {path.name} already: choose another name")


def write_rows(table: pa.Table, path: Path) -> None:
    """Write a table whole or not at all: CSV or Parquet, as the ending of the name says.

    The file can be read by its owner alone. Until it is complete it has another name in the same folder.

    Raises
    ------
    TableError : there is a file of that name, or the name has another ending
    OSError : the folder cannot be written to
    """
    check_new(path)
    partial = path.with_name(f".{path.name}.partial")
    partial.unlink(missing_ok=True)  # sanitised rows of a run that was interrupted
    try:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            if path.suffix.lower() == CSV:
                pc.write_csv(table, file)
            else:
                pq.write_table(table, file)
            file.flush()
            os.fsync(file.fileno())
        path.hardlink_to(partial)  # unlike renaming, it replaces nothing
    except FileExistsError:
        raise TableError(f"there is a file {path.name} already: choose another name") from None
    finally:
        partial.unlink(missing_ok=True)


def _csv(data: bytes) -> Rows:
    sample = read_sample(data[:SAMPLE_BYTES], size=len(data))
    _check_names(sample.names)
    layout = Layout(columns=sample.names, delimiter=sample.delimiter)  # type: ignore[arg-type]
    parts: list[list[pa.Array]] = [[] for _ in sample.names]
    lines, wrong = [], []
    for block in read_extract(io.BytesIO(data), layout=layout):
        for part, name in zip(parts, sample.names, strict=True):
            part.append(pa.array(block.texts(name).to_list(), pa.binary()).cast(pa.string()))
        lines.append(block.lines.copy())
        wrong += [*block.misshapen.tolist(), *block.bad_text.tolist()]
    if wrong:
        line = min(wrong)
        raise TableError(
            f"line {line} has another number of columns than the header, or is not text ({len(wrong)} such "
            "lines): correct the file"
        )
    columns = [pa.chunked_array(part, pa.string()) for part in parts]
    table = pa.table(columns, names=list(sample.names))
    return Rows(table=table, lines=np.concatenate([np.empty(0, np.int64), *lines]))


def _parquet(data: bytes) -> Rows:
    try:
        file = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
        _check_names(file.schema_arrow.names)
        table = _without_dictionaries(file.read())
    except (pa.ArrowException, UnicodeDecodeError, OSError):
        raise TableError("the Parquet file is damaged or ends early: write it again") from None
    return Rows(table=table, lines=np.arange(1, table.num_rows + 1))


def _without_dictionaries(table: pa.Table) -> pa.Table:
    kinds = [(field.name, field.type) for field in table.schema]
    plain = [(name, kind.value_type if pa.types.is_dictionary(kind) else kind) for name, kind in kinds]
    return table.cast(pa.schema(plain))


def _check_names(names: Sequence[str]) -> None:
    if "" in names:
        raise TableError(f"column {names.index('') + 1} has no name: give it one in the header")
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise TableError(f"column {twice[0]!r} appears more than once: rename or remove one of them")
