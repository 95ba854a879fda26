"""Speed and memory of `manage.py ingest` on the demo's extract in every format, beside merely parsing it.

    python -m benchmarks.ingest [--subscribers N]

Prints one line per file: rows, seconds, rows per second, peak memory of the worker, and the ratio to the
floor: pyarrow reading the same file into memory with one thread. The first file is taken in twice, in two
data folders, so that the time of compiling kernels shows once and does not count afterwards. Then what the
readers alone cost, in processor time of this process: the same file to blocks, and blocks to coded events.
"""

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

ROOT = Path(__file__).resolve().parent.parent
STUDY_FILE = ROOT / "mobility" / "demo" / "study.toml"
STUDY = "fimu-2017"
COPY_BYTES = 1 << 20
ROW_GROUP = 200_000
SKIP_MISSHAPEN = csv.ParseOptions(invalid_row_handler=lambda _: "skip")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--subscribers", help="a smaller population than 88,935")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mobility-bench-") as name:
        folder = Path(name)
        extract = folder / "extract"
        size = ["--subscribers", options.subscribers] if options.subscribers else []
        manage(folder / "none", "make_extract", "--out", str(extract), *size)
        days = sorted(extract.glob("*.csv"))
        report("day 1, compiling kernels", days[0], folder / "first")
        report("day 1", days[0], folder / "day")
        week = joined(days, folder / "week.csv")
        files = [week, *(write(week) for write in (gzipped, zstandard, parquet))]
        for path in files:
            report(f"week, {path.suffix[1:]}", path, folder / f"data-{path.suffix[1:]}")
        for path in files:
            report_reading(path)


def report(title: str, path: Path, data_dir: Path) -> None:
    """Take `path` into a new installation and print what it cost."""
    manage(data_dir, "create_study", str(STUDY_FILE))
    batch = manage(data_dir, "ingest", STUDY, str(path))
    floor_s = parse_seconds(path)
    sys.stdout.write(
        f"{title:<26} {batch['rows_read']:>10,} rows {batch['seconds']:>7.2f} s "
        f"{batch['rows_per_second']:>10,} rows/s {batch['peak_rss_mb']:>6.0f} MB peak, "
        f"{batch['seconds'] / floor_s:.1f} x the time of parsing alone\n"
    )


def manage(data_dir: Path, *words: str) -> Any:
    """JSON value that a command prints."""
    done = subprocess.run(
        [sys.executable, "manage.py", *words], cwd=ROOT, text=True, capture_output=True, check=False,
        env=os.environ | {"MOBILITY_DATA_DIR": str(data_dir)},
    )  # fmt: skip
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def joined(days: list[Path], path: Path) -> Path:
    with path.open("wb") as out:
        for number, day in enumerate(days):
            header, _, rows = day.read_bytes().partition(b"\n")
            out.write(rows if number else header + b"\n" + rows)
    return path


def gzipped(path: Path) -> Path:
    packed = path.with_suffix(".gz")
    with gzip.open(packed, "wb", compresslevel=6) as out:
        out.writelines(pieces(path))
    return packed


def zstandard(path: Path) -> Path:
    packed = path.with_suffix(".zst")
    with pa.output_stream(packed, compression="zstd") as out:
        for piece in pieces(path):
            out.write(piece)
    return packed


def pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(COPY_BYTES):
            yield piece


def parquet(path: Path) -> Path:
    """The rows that have the shape of the header, all columns as text."""
    with path.open() as file:
        names = file.readline().strip().split(",")
    as_text = csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()))
    packed = path.with_suffix(".parquet")
    table = csv.read_csv(path, parse_options=SKIP_MISSHAPEN, convert_options=as_text)
    pq.write_table(table, packed, row_group_size=ROW_GROUP, compression="zstd")
    return packed


def parse_seconds(path: Path) -> float:
    """The floor: one thread, every column as text, misshapen rows skipped."""
    started = time.perf_counter()
    if path.suffix == ".parquet":
        pq.read_table(path, use_threads=False)
    else:
        with pa.input_stream(path, compression="detect") as stream:
            csv.read_csv(
                stream,
                read_options=csv.ReadOptions(use_threads=False),
                parse_options=SKIP_MISSHAPEN,
            )
    return time.perf_counter() - started


def report_reading(path: Path) -> None:
    """Processor time of the readers, and of them with the coding of rows; the second run of each counts."""
    read, coded = (best_of(lambda work=work: work(path)) for work in (read_blocks, code_rows))
    sys.stdout.write(
        f"readers, {path.suffix[1:]:<17} {read[0]:>10,} rows {read[0] / read[1] / 1e6:>6.1f} M rows/s "
        f"to blocks, {coded[0] / coded[1] / 1e6:.1f} M rows/s to coded events\n"
    )


def best_of(work: Callable[[], int]) -> tuple[int, float]:
    """Rows, and seconds of the better of two runs."""
    seconds = []
    for _ in range(2):
        started = time.process_time()
        rows = work()
        seconds.append(time.process_time() - started)
    return rows, min(seconds)


def read_blocks(path: Path) -> int:
    from mobility.readers.opening import read_extract

    with path.open("rb") as file:
        blocks = read_extract(file, layout=row_coder().layout)
        return sum(len(block.lines) + len(block.misshapen) + len(block.bad_text) for block in blocks)


def code_rows(path: Path) -> int:
    from mobility.ingest.rows import RowCounts
    from mobility.readers.opening import read_extract

    counts, coder = RowCounts(), row_coder()
    with path.open("rb") as file:
        for block in read_extract(file, layout=coder.layout):
            coder.events_of(block, counts)
    return counts.rows_read


def row_coder() -> Any:
    """The demo's, under a fixed key."""
    from ldp.entropy import KeyedPrf
    from mobility.ingest.rows import RowCoder
    from reports.studyfile import parse_study

    text, folder = STUDY_FILE.read_bytes(), STUDY_FILE.parent
    definition = parse_study(text, filename=STUDY_FILE.name, read=lambda name: (folder / name).read_bytes())
    return RowCoder(definition, definition.plan_spec(), pseudonym_key=bytes(16), prf=KeyedPrf(bytes(16)))


if __name__ == "__main__":
    main()
