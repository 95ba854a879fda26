"""Other libraries at the same file: only parsing it, a plain group-by, and the whole job without us.

    python -m benchmarks.ingest_peers "polars parse" FILE

It prints a JSON object {rows, seconds, peak_mb}; the clock starts when everything is imported, and memory is
the peak above what there was then. Each runs in its own process.
"""

import json
import sys
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.ingest_study import AREA_FILES, CATEGORIES, COLUMNS, DEMO
from mobility.base import memory

SUBSCRIBER, TIMESTAMP, CELL = COLUMNS[:3]
EPSILON: Final = 1.0
MIN_STAY: Final = "60min"
OPENING_HOUR: Final = 6

Job = Callable[[Path], int]


def polars_parse(path: Path) -> int:
    """All columns as text, into memory, on all cores."""
    import polars

    if path.suffix == ".parquet":
        return polars.read_parquet(path).height
    return polars.read_csv(path, infer_schema=False, truncate_ragged_lines=True).height


def polars_batches(path: Path) -> int:
    """All columns as text, batch by batch in bounded memory, on all cores."""
    import polars

    rows = (
        polars.scan_parquet(path)
        if path.suffix == ".parquet"
        else polars.scan_csv(path, infer_schema=False, truncate_ragged_lines=True)
    )
    return sum(batch.height for batch in rows.collect_batches())


def polars_group(path: Path) -> int:
    """First and last time of each subscriber and day, as a stream; the visitor rule without its filters."""
    import polars

    rows = (
        polars.scan_parquet(path).with_columns(polars.col(TIMESTAMP).dt.to_string())
        if path.suffix == ".parquet"
        else polars.scan_csv(path, infer_schema=False, truncate_ragged_lines=True)
    )
    time_of = polars.col(TIMESTAMP)
    days = rows.group_by(SUBSCRIBER, time_of.str.head(10).alias("day")).agg(
        time_of.min().alias("first"), time_of.max().alias("last"), polars.len().alias("rows")
    )
    return int(days.collect(engine="streaming")["rows"].sum())


def pyarrow_parse(path: Path) -> int:
    """All columns as text, into memory, on all cores; misshapen rows are skipped."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import csv

    if path.suffix == ".parquet":
        return int(pq.read_table(path).num_rows)
    with pa.input_stream(path, compression="detect") as stream:
        table = csv.read_csv(
            stream,
            parse_options=csv.ParseOptions(invalid_row_handler=lambda _: "skip"),
            convert_options=csv.ConvertOptions(column_types=dict.fromkeys(COLUMNS, pa.string())),
        )
    return int(table.num_rows)


def pandas_job(path: Path) -> int:
    """The visitor rule by pandas, then Smp[GRR] of six attributes by multi-freq-ldpy, once per visitor."""
    import pandas
    from multi_freq_ldpy.mdim_freq_est import SMP_solution as smp

    rows = pandas.read_csv(path, dtype=str)
    n_rows = len(rows)
    cells = pandas.read_csv(DEMO / AREA_FILES[0], dtype=str)["cell_id"]
    known = {name: {value: code for code, value in enumerate(values)} for name, values in CATEGORIES.items()}
    codes = pandas.DataFrame({name: rows[name].map(code_of) for name, code_of in known.items()})
    rows[TIMESTAMP] = pandas.to_datetime(rows[TIMESTAMP], format="%Y-%m-%dT%H:%M:%S", errors="coerce")
    is_good = rows[SUBSCRIBER].notna() & rows[TIMESTAMP].notna() & codes.notna().all(axis=1)
    is_good &= rows[CELL].isin(cells) & (rows[TIMESTAMP].dt.hour >= OPENING_HOUR)
    rows = rows[is_good].drop_duplicates([SUBSCRIBER, TIMESTAMP, CELL])
    codes = codes.loc[rows.index].astype(np.int64)
    days = rows.groupby([SUBSCRIBER, rows[TIMESTAMP].dt.date])[TIMESTAMP].agg(["min", "max"])
    visits = days[days["max"] - days["min"] >= pandas.Timedelta(MIN_STAY)]
    visitors = visits.index.get_level_values(0).unique()
    first_values = codes.groupby(rows[SUBSCRIBER]).first().loc[visitors]
    sizes = [len(values) for values in CATEGORIES.values()]
    reports = [
        smp.SMP_GRR_Client(values, sizes, len(sizes), EPSILON) for values in first_values.to_numpy().tolist()
    ]
    smp.SMP_GRR_Aggregator_MI(reports, sizes, len(sizes), EPSILON)
    return n_rows


PARSERS: Final[Mapping[str, Job]] = {
    "polars parse": polars_parse,
    "polars batches": polars_batches,
    "pyarrow parse": pyarrow_parse,
}
GROUPERS: Final[Mapping[str, Job]] = {"polars group-by": polars_group}
DOERS: Final[Mapping[str, Job]] = {"pandas + multi-freq-ldpy": pandas_job}
JOBS: Final[Mapping[str, Job]] = {**PARSERS, **GROUPERS, **DOERS}
IMPORTS: Final[Mapping[str, tuple[str, ...]]] = {
    "polars": ("polars",),
    "pyarrow": ("pyarrow.csv", "pyarrow.parquet"),
    "pandas": ("pandas", "multi_freq_ldpy.mdim_freq_est.SMP_solution"),
}


def main() -> None:
    name, path = sys.argv[1], Path(sys.argv[2])
    for module in IMPORTS[name.split()[0]]:
        import_module(module)
    memory.reset_peak()
    idle_mb, started = peak_mb(), time.perf_counter()
    rows = JOBS[name](path)
    seconds = time.perf_counter() - started
    found = {"rows": rows, "seconds": seconds, "peak_mb": peak_mb() - idle_mb}
    sys.stdout.write(json.dumps(found) + "\n")


def peak_mb() -> float:
    """Largest resident size so far, of this process alone."""
    peak = memory.peak_mb()
    if peak is None:
        raise SystemExit("/proc does not tell the memory of a process")
    return peak


if __name__ == "__main__":
    main()
