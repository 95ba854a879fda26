"""Extracts of any size for the ingest benchmark, the same bytes for the same size, and what they truly hold.

A row is 74 bytes on average and a subscriber has 20 rows in the week. Rows are in time order, as operators
send them, so that neighbours are of different people. One row in twenty lies outside the visitor hours, one
in twenty outside the area, one in 200 repeats the row before, one in 1,000 is malformed.
"""

import csv
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Final

import numba
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyarrow import csv as arrow_csv

from benchmarks.ingest_study import CATEGORIES, COLUMNS, DAYS, DEMO, first_day

ROWS_PER_SUBSCRIBER: Final = 20
N_OUTSIDE: Final = 24
BAD_TIMESTAMP: Final = "2017-02-30T12:00:00"
REJECTED: Final = ("wrong_columns", "bad_timestamp", "empty_subscriber", "unknown_value")
IGNORED: Final = ("outside_area", "outside_hours", "duplicate")

_PIECE_ROWS: Final = 1 << 20
_ROW_BYTES: Final = 128  # more than the longest row
_COPY_BYTES: Final = 4 << 20
_ROW_GROUP: Final = 1_000_000
_MIN_STAY_S: Final = 3600
_NOBODY: Final = np.uint32(0xFFFFFFFF)

Bytes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """Contents of an extract: rows by outcome, and visitors, counted while it was written."""

    rows: int
    rejected: dict[str, int]
    ignored: dict[str, int]
    subscribers: int  # visitors of any day
    visitors: tuple[int, ...]  # per study day
    repeated_at_night: int = 0  # of those outside of the hours

    @property
    def accepted(self) -> int:
        """Rows that count."""
        return self.rows - sum(self.rejected.values()) - sum(self.ignored.values())

    def at_any_hour(self) -> "Truth":
        """Count as a study with slots does, which takes rows of any hour."""
        others = {reason: rows for reason, rows in self.ignored.items() if reason != "outside_hours"}
        if repeated := others.get("duplicate", 0) + self.repeated_at_night:
            others["duplicate"] = repeated
        return replace(self, ignored=others, repeated_at_night=0)

    def without_misshapen(self) -> "Truth":
        """Write the rows in a format where each row has all columns."""
        others = {reason: rows for reason, rows in self.rejected.items() if reason != "wrong_columns"}
        return replace(self, rows=self.rows - self.rejected.get("wrong_columns", 0), rejected=others)


def write_csv(path: Path, *, rows: int, rows_per_subscriber: int = ROWS_PER_SUBSCRIBER) -> Truth:
    """Write an extract of `rows` rows.

    Raises
    ------
    ValueError : fewer rows than ten subscribers have
    """
    subscribers = rows // rows_per_subscriber
    if subscribers < 10:
        raise ValueError(f"rows must be >= {10 * rows_per_subscriber}, got {rows}")
    counts = np.zeros(len(REJECTED) + len(IGNORED) + 1, np.int64)
    present = np.zeros(subscribers, np.uint8)
    with path.open("wb") as file:
        file.write((",".join(COLUMNS) + "\n").encode())
        for day in range(DAYS):
            n_rows = rows // DAYS + (day < rows % DAYS)
            for piece in _day_pieces(day, n_rows, counts=counts, present=present):
                file.write(piece)
    named = [int(count) for count in counts]
    return Truth(
        rows=rows,
        rejected=_nonzero(REJECTED, named[: len(REJECTED)]),
        ignored=_nonzero(IGNORED, named[len(REJECTED) : -1]),
        subscribers=int(np.count_nonzero(present)),
        visitors=tuple(int(np.count_nonzero(present & (1 << day))) for day in range(DAYS)),
        repeated_at_night=named[-1],
    )


def _nonzero(names: tuple[str, ...], counts: list[int]) -> dict[str, int]:
    return {name: count for name, count in zip(names, counts, strict=True) if count}


def _day_pieces(day: int, n_rows: int, *, counts: NDArray[np.int64], present: Bytes) -> Iterator[memoryview]:
    """Rows of a day; `counts` and `present` (a bit a day) grow by them."""
    texts, n_inside = _cells()
    first_second = np.full(len(present), _NOBODY, np.uint32)
    last_second = np.full(len(present), _NOBODY, np.uint32)
    today = (first_day() + timedelta(days=day)).isoformat()
    values = _table([text for names in CATEGORIES.values() for text in names])
    starts = np.cumsum([0, *(len(names) for names in CATEGORIES.values())])
    out = np.empty(min(n_rows, _PIECE_ROWS) * _ROW_BYTES, np.uint8)
    previous = np.zeros(2, np.int64)
    for begin in range(0, n_rows, _PIECE_ROWS):
        end = min(begin + _PIECE_ROWS, n_rows)
        size = _write_rows(
            out, begin, end, n_rows, day, _text(f"{today}T"), _text(BAD_TIMESTAMP), *_table(texts), n_inside,
            *values, starts, first_second, last_second, previous, counts,
        )  # fmt: skip
        yield memoryview(out)[:size]
    stayed = (first_second != _NOBODY) & (last_second - first_second >= _MIN_STAY_S)
    present[stayed] |= np.uint8(1 << day)


def _cells() -> tuple[list[str], int]:
    """Cells of the area, then others; and how many belong to it."""
    with (DEMO / "cells.csv").open(newline="") as file:
        inside = [row["cell_id"] for row in csv.DictReader(file)]
    return [*inside, *(f"208-01-{9101 + n // 4}-{20011 + 37 * n}" for n in range(N_OUTSIDE))], len(inside)


def _text(text: str) -> Bytes:
    return np.frombuffer(text.encode(), np.uint8)


def _table(texts: list[str]) -> tuple[Bytes, NDArray[np.int64]]:
    """Texts as a padded array (n, longest), and their lengths."""
    padded = np.array([text.encode() for text in texts], np.bytes_)
    lengths = np.array([len(text.encode()) for text in texts], np.int64)
    return padded.view(np.uint8).reshape(len(texts), -1), lengths


@numba.njit(cache=True, nogil=True)
def _mixed(word):  # type: ignore[no-untyped-def]
    """Finaliser of splitmix64: a fixed, well spread function of a 64-bit word."""
    word = np.uint64(word) + np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@numba.njit(cache=True, nogil=True, inline="always")
def _below(word, bound):  # type: ignore[no-untyped-def]
    """`word` as a number of [0, bound)."""
    return np.int64(((word >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))


@numba.njit(cache=True, nogil=True)
def _second_of(row, n_rows):  # type: ignore[no-untyped-def]
    """Second of the day of a row: one in twenty before six o'clock, the others evenly after it."""
    night = n_rows // 20
    if row < night:
        return row * 21600 // night
    return 21600 + (row - night) * 64800 // (n_rows - night)


@numba.njit(cache=True, nogil=True)
def _person_of(row, day, n_people):  # type: ignore[no-untyped-def]
    """Return the subscriber of a row: about four in five have events on a day."""
    word = _mixed(np.uint64(day) << np.uint64(48) | np.uint64(row))
    while True:
        person = _below(word, n_people)
        if _below(_mixed(np.uint64(person) * np.uint64(8) + np.uint64(day)), 10_000) < 7_925:
            return person
        word = _mixed(word)


@numba.njit(cache=True, nogil=True)
def _put(out, at, text, length):  # type: ignore[no-untyped-def]
    for i in range(length):
        out[at + i] = text[i]
    return at + length


@numba.njit(cache=True, nogil=True)
def _put_text(out, at, text):  # type: ignore[no-untyped-def]
    return _put(out, at, text, len(text))  # not a number: `_put` would be compiled for each length


@numba.njit(cache=True, nogil=True)
def _put_number(out, at, number, digits):  # type: ignore[no-untyped-def]
    for i in range(digits - 1, -1, -1):
        out[at + i] = 48 + number % 10
        number //= 10
    return at + digits


@numba.njit(cache=True, nogil=True)
def _put_person(out, at, person):  # type: ignore[no-untyped-def]
    """A French number, or for one person in twelve a text with the network of the SIM card."""
    if person % 12 == 0:
        at = _put_text(out, at, b"roam-228")
        at = _put_number(out, at, 1 + person % 7, 2)
        at = _put_text(out, at, b"-")
    else:
        at = _put_text(out, at, b"336")
    return _put_number(out, at, (person * 48_271_549 + 7) % 100_000_000, 8)


@numba.njit(cache=True, nogil=True)
def _put_time(out, at, today, second):  # type: ignore[no-untyped-def]
    at = _put(out, at, today, len(today))
    at = _put_number(out, at, second // 3600, 2)
    at = _put_text(out, at, b":")
    at = _put_number(out, at, second // 60 % 60, 2)
    at = _put_text(out, at, b":")
    return _put_number(out, at, second % 60, 2)


@numba.njit(cache=True, nogil=True)
def _put_values(out, at, person, kind, values, lengths, starts):  # type: ignore[no-untyped-def]
    """The attributes of a person; kind 0 leaves the last one out, kind 3 writes one that no one knows."""
    word = _mixed(np.uint64(person) + np.uint64(1 << 40))
    for column in range(len(starts) - 1 - (kind == 0)):
        at = _put_text(out, at, b",")
        if kind == 3 and column == 2:
            at = _put_text(out, at, b"abc")
        else:
            place = starts[column] + _below(word, starts[column + 1] - starts[column])
            at = _put(out, at, values[place], lengths[place])
        word = _mixed(word)
    return _put_text(out, at, b"\n")


@numba.njit(cache=True, nogil=True)
def _write_rows(
    out, begin, end, n_rows, day, today, bad_time, cells, cell_lengths, n_inside, values, value_lengths,
    starts, first_second, last_second, previous, counts,
):  # type: ignore[no-untyped-def]  # fmt: skip
    """Write rows begin..end of a day into `out` and count them; returns the bytes written."""
    at = np.int64(0)
    for row in range(begin, end):
        word = _mixed(np.uint64(row) + (np.uint64(day + 1) << np.uint64(56)))
        person, second = _person_of(row, day, len(first_second)), _second_of(row, n_rows)
        if row > 0 and _below(word, 200) == 0:
            person, second = previous[0], previous[1]
        previous[0], previous[1] = person, second
        kind = -1
        if _below(_mixed(word), 1000) == 0:
            kind = np.int64(word % np.uint64(4))
        # The same in each second: a person who has two rows there has the same row twice.
        where = _mixed(np.uint64(person) * np.uint64(1024) + np.uint64(day * 24 + second // 3600))
        cell = _below(_mixed(where), n_inside)
        if _below(where, 20) == 0:
            cell = n_inside + _below(_mixed(where), len(cells) - n_inside)
        if kind != 2:
            at = _put_person(out, at, person)
        at = _put_text(out, at, b",")
        at = _put(out, at, bad_time, len(bad_time)) if kind == 1 else _put_time(out, at, today, second)
        at = _put_text(out, at, b",")
        at = _put(out, at, cells[cell], cell_lengths[cell])
        at = _put_values(out, at, person, kind, values, value_lengths, starts)
        if kind >= 0:
            counts[kind] += 1
        elif cell >= n_inside:
            counts[4] += 1
        elif second < 21600:
            counts[5] += 1
            counts[7] += last_second[person] == second
            last_second[person] = second
        elif last_second[person] == second:
            counts[6] += 1
        else:
            first_second[person] = min(first_second[person], second)
            last_second[person] = second
    return at


def write_gzip(source: Path, path: Path) -> None:
    """One gzip member of level 6, as `gzip` writes it; pieces are packed side by side on two threads."""
    with source.open("rb") as plain, path.open("wb") as out, ThreadPoolExecutor(2) as pool:
        out.write(b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff")
        crc, size = 0, 0
        while pieces := [piece for piece in (plain.read(_COPY_BYTES) for _ in range(8)) if piece]:
            for piece, packed in zip(pieces, pool.map(_deflated, pieces), strict=True):
                out.write(packed)
                crc, size = zlib.crc32(piece, crc), size + len(piece)
        out.write(zlib.compressobj(wbits=-15).flush())
        out.write(crc.to_bytes(4, "little") + (size & 0xFFFFFFFF).to_bytes(4, "little"))


def _deflated(piece: bytes) -> bytes:
    packer = zlib.compressobj(6, wbits=-15)
    return packer.compress(piece) + packer.flush(zlib.Z_SYNC_FLUSH)


def write_zstandard(source: Path, path: Path) -> None:
    """One frame of level 1."""
    with source.open("rb") as plain, pa.output_stream(path, compression="zstd") as out:
        while piece := plain.read(_COPY_BYTES):
            out.write(piece)


def write_parquet(source: Path, path: Path) -> None:
    """The rows that have all columns; texts in dictionaries, local times, row groups of a million."""
    types = dict.fromkeys(COLUMNS, pa.string()) | {"timestamp": pa.timestamp("ms")}
    convert = arrow_csv.ConvertOptions(column_types=types, null_values=[BAD_TIMESTAMP])
    parse = arrow_csv.ParseOptions(invalid_row_handler=lambda _: "skip")
    schema = pa.schema(list(types.items()))
    with (
        arrow_csv.open_csv(source, convert_options=convert, parse_options=parse) as batches,
        pq.ParquetWriter(path, schema, compression="zstd") as out,
    ):
        for group in _groups(batches):
            out.write_table(group, row_group_size=_ROW_GROUP)


def _groups(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Batches joined to tables of a row group; the last one is smaller."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(map(len, held)) >= _ROW_GROUP:
            table = pa.Table.from_batches(held)
            yield table.slice(0, _ROW_GROUP)
            held = table.slice(_ROW_GROUP).to_batches()
    if held:
        yield pa.Table.from_batches(held)


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A way to write the rows; `write` takes the plain file, None for that file itself."""

    name: str
    suffix: str
    write: Callable[[Path, Path], None] | None

    def make(self, plain: Path) -> Path:
        """Return the path of this format's file, next to the plain one."""
        if self.write is None:
            return plain
        path = plain.with_name(f"{plain.stem}{self.suffix}")
        self.write(plain, path)
        return path

    def truth_of(self, plain: Truth) -> Truth:
        """Return the contents of this format's file."""
        return plain.without_misshapen() if self.name == "parquet" else plain


FORMATS: Final = {
    each.name: each
    for each in (
        Format(name="csv", suffix=".csv", write=None),
        Format(name="gzip", suffix=".csv.gz", write=write_gzip),
        Format(name="zstd", suffix=".csv.zst", write=write_zstandard),
        Format(name="parquet", suffix=".parquet", write=write_parquet),
    )
}


def days_of(path: Path) -> dict[date, list[str]]:
    """Rows of a small plain file by the day in their timestamp; malformed ones go to the day before them."""
    found: dict[date, list[str]] = {}
    with path.open() as file:
        next(file)
        day = first_day()
        for line in file:
            text = line.split(",")[1]
            if text != BAD_TIMESTAMP:
                day = date.fromisoformat(text[:10])
            found.setdefault(day, []).append(line)
    return found
