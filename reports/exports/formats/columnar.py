"""Reports as Parquet: one typed row per estimate; what the file says of itself is metadata of its schema."""

import io
import json
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from reports.exports.facts import as_mapping
from reports.exports.formats.columns import NAMES, Kind, columns_of, kind_of
from reports.exports.records import flat_rows
from reports.exports.selection import Selection

METADATA_KEY = b"mobility_reports"  # a JSON object with the facts of `reports.exports.facts`


def to_parquet(selection: Selection) -> bytes:
    """Table of a selection, with real dates, whole numbers and nulls."""
    columns = columns_of(list(flat_rows(selection.reports)))
    metadata = {METADATA_KEY: json.dumps(as_mapping(selection), ensure_ascii=False).encode()}
    schema = pa.schema([(name, _type_of(name)) for name in NAMES], metadata=metadata)
    arrays = [pa.array(_values(name, columns[name]), schema.field(name).type) for name in NAMES]
    file = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(arrays, schema=schema), file, compression="zstd")
    return file.getvalue()


def _type_of(name: str) -> Any:
    types = {Kind.TEXT: pa.string(), Kind.DAY: pa.date32(), Kind.COUNT: pa.int64()}
    return types.get(kind_of(name), pa.float64())


def _values(name: str, column: list[Any]) -> list[Any]:
    if kind_of(name) == Kind.DAY:
        return [date.fromisoformat(value) for value in column]
    return column
