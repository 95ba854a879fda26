"""Presence by slot as Parquet: typed columns with real times; facts are metadata of the schema."""

import io
import json
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from reports.exports.formats.columnar import METADATA_KEY
from reports.exports.presence.tables import ZONE_NAMES, SlotTable, provenance


def to_parquet(table: SlotTable) -> bytes:
    """One row per slot and zone."""
    found, zones = table.found, table.zones
    slots, n_zones = np.arange(table.slots.start, table.slots.stop), len(zones)
    moment = pa.timestamp("s", tz=found.study.timezone)
    rows = [row for slot in table.slots for row in table._zone_rows(slot)]
    by_name = dict(zip(ZONE_NAMES, zip(*rows, strict=True), strict=True))
    days = [date.toordinal(found.study.date_of(int(day))) for day in found.clock.day[slots]]
    epoch = date(1970, 1, 1).toordinal()
    columns = {
        "study": pa.array([found.study.slug] * table.n_rows).dictionary_encode(),
        "day": pa.array(np.repeat(np.array(days, np.int32) - epoch, n_zones), pa.date32()),
        "slot_start": pa.array(np.repeat(found.clock.start[slots], n_zones), moment),
        "slot_end": pa.array(np.repeat(found.clock.end[slots], n_zones), moment),
        "level": pa.array(by_name["level"], pa.string()).dictionary_encode(),
        "zone": pa.array(by_name["zone"], pa.string()).dictionary_encode(),
        "count": pa.array(by_name["count"], pa.int64()),
        **{name: pa.array(by_name[name], pa.float64()) for name in ZONE_NAMES[3:]},
        "status": pa.array(
            np.repeat([str(found.status(int(slot))) for slot in slots], n_zones).tolist(), pa.string()
        ).dictionary_encode(),
    }
    metadata = {METADATA_KEY: json.dumps(provenance(table), ensure_ascii=False).encode()}
    file = io.BytesIO()
    made = pa.table(columns).replace_schema_metadata(metadata)
    pq.write_table(made, file, compression="zstd")
    return file.getvalue()
