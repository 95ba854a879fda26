"""Speed and memory of `manage.py ingest` on the demo's extract, beside merely parsing the same files.

    python -m benchmarks.ingest [--subscribers N]

Prints one line per file: rows, seconds, rows per second, peak memory of the worker, and the ratio to the
floor: pyarrow reading the same CSV file into memory with one thread. The first file is taken in twice, in two
data folders, so that the time of compiling kernels shows once and does not count afterwards.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from pyarrow import csv

ROOT = Path(__file__).resolve().parent.parent
STUDY_FILE = ROOT / "mobility" / "demo" / "study.toml"
STUDY = "fimu-2017"


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
        week = joined(days, folder / "week.csv")
        report("day 1, compiling kernels", days[0], folder / "first")
        report("day 1", days[0], folder / "day")
        report("week in one file", week, folder / "week")


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


def parse_seconds(path: Path) -> float:
    """The floor: one thread, every column as text, misshapen rows skipped."""
    started = time.perf_counter()
    csv.read_csv(
        path,
        read_options=csv.ReadOptions(use_threads=False),
        parse_options=csv.ParseOptions(invalid_row_handler=lambda _: "skip"),
    )
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
