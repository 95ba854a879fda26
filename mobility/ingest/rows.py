"""Rows of an extract to coded events: pseudonyms, days, cells and values; every other row is counted."""

import zlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date

import numba
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ldp import PlanSpec
from ldp.cmac import cmac64
from ldp.entropy import KeyedPrf
from ldp.mechanisms.choices import choose_indicator
from mobility.ingest import timestamps
from mobility.ingest.events import NO_VALUE, Events
from mobility.readers import Layout, RowBlock
from reports.studyfile import AreaDefinition, StudyDefinition

# In the order in which they are looked for: the first that holds is the row's.
REJECTED = (
    "wrong_columns",
    "bad_text",
    "empty_subscriber",
    "bad_timestamp",
    "nonexistent_time",
    "empty_cell",
    "unknown_value",
)
IGNORED = ("outside_period", "outside_area", "outside_hours", "day_closed", "duplicate")
LINES_KEPT = 10
_OUTSIDE = np.int64(-1)
_EMPTY = np.int64(-2)


@dataclass(slots=True)
class RowCounts:
    """Rows by outcome; `rows_read` = accepted + ignored + rejected, before duplicates are known."""

    rows_read: int = 0
    accepted: int = 0
    ignored: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    lines: dict[str, list[int]] = field(default_factory=dict)

    def reject(self, reason: str, lines: NDArray[np.int64]) -> None:
        """Count rejected rows and keep the first line numbers; never what stands there."""
        if len(lines):
            self.rejected[reason] += len(lines)
            kept = self.lines.setdefault(reason, [])
            kept.extend(int(line) for line in lines[: LINES_KEPT - len(kept)])

    def ignore(self, reason: str, count: int) -> None:
        if count:
            self.ignored[reason] += count


@dataclass(frozen=True, slots=True, kw_only=True)
class _Texts:
    """The distinct texts of a column and the place of each row's among them."""

    distinct: pa.Array
    of_row: NDArray[np.int32]

    @classmethod
    def of(cls, column: pa.Array) -> "_Texts":
        encoded = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)
        return cls(distinct=encoded.dictionary, of_row=encoded.indices.to_numpy(zero_copy_only=False))

    def trimmed(self) -> list[bytes]:
        return [text.strip() for text in self.distinct.to_pylist()]

    def trimmed_buffers(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Bytes and offsets of the trimmed texts; where no text has blanks around it, nothing is copied."""
        data, offsets = _buffers(self.distinct.cast(pa.large_binary()))
        if _has_blanks_around(data, offsets):
            return _buffers(pa.array(self.trimmed(), pa.large_binary()))
        return data, offsets


class CellCodes:
    """Code of each cell, and the study days on which it belongs to the area."""

    def __init__(self, area: AreaDefinition | None, *, first_day: date, days: int) -> None:
        self._closed = area is not None
        cells = area.cells if area is not None else ()
        self._codes = {cell.cell_id.encode(): code for code, cell in enumerate(cells)}
        self.first_valid = np.ones(max(len(cells), 1), np.int64)
        self.last_valid = np.full(max(len(cells), 1), days, np.int64)
        for code, cell in enumerate(cells):
            if cell.valid_from is not None:
                self.first_valid[code] = (cell.valid_from - first_day).days + 1
            if cell.valid_to is not None:
                self.last_valid[code] = (cell.valid_to - first_day).days + 1

    def codes_of(self, texts: _Texts) -> NDArray[np.int64]:
        """Per row: code, or _OUTSIDE, or _EMPTY. Without an area every text, even an empty one, is a cell."""
        if not self._closed:
            # Codes only tell rows of one second apart; a list of all texts of a file would have no bound.
            codes = [zlib.crc32(text) for text in texts.trimmed()]
        else:
            codes = [self._codes.get(t, int(_OUTSIDE)) if t else int(_EMPTY) for t in texts.trimmed()]
        return np.array(codes, np.int64)[texts.of_row]

    def valid_on(self, codes: NDArray[np.int64], day: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Whether each cell belongs to the area on the row's day."""
        if not self._closed:
            return np.ones(len(codes), np.bool_)
        known = np.maximum(codes, 0)
        return (codes >= 0) & (self.first_valid[known] <= day) & (day <= self.last_valid[known])


class RowCoder:
    """Turns blocks of rows of one batch into events.

    Parameters
    ----------
    definition, plan : of the study, as the vault approved them
    pseudonym_key : 16 bytes; the identifier leaves through it and is gone
    prf : of the sanitising key; only the value of the indicator that a subscriber answers is kept
    closed_days : days whose rows are ignored
    """

    def __init__(
        self,
        definition: StudyDefinition,
        plan: PlanSpec,
        *,
        pseudonym_key: bytes,
        prf: KeyedPrf,
        closed_days: frozenset[int] = frozenset(),
    ) -> None:
        self._extract = definition.extract
        self._visitor = definition.visitor
        self._clock = timestamps.study_clock(
            definition.timezone, first_day=definition.first_day, days=definition.days
        )
        self._cells = CellCodes(definition.area, first_day=definition.first_day, days=definition.days)
        self._static = [
            (index, indicator.column, {name.encode(): code for code, name in enumerate(indicator.categories)})
            for index, indicator in enumerate(definition.indicators)
            if indicator.column is not None
        ]
        self._plan = plan
        self._pseudonym_key = pseudonym_key
        self._prf = prf
        self._closed = np.zeros(256, np.bool_)
        self._closed[sorted(closed_days)] = True
        self.slots = min(len(self._static), 1) if plan.is_sampled else len(self._static)

    @property
    def columns(self) -> list[str]:
        """Columns that a reader must deliver."""
        extract = self._extract
        names = [
            extract.subscriber,
            extract.timestamp,
            extract.cell,
            *(column for _, column, _ in self._static),
        ]
        return list(dict.fromkeys(name for name in names if name is not None))

    @property
    def layout(self) -> Layout:
        """What a reader must deliver."""
        return Layout(
            columns=tuple(self.columns),
            timestamp=self._extract.timestamp,
            timestamp_format=self._extract.timestamp_format,
            delimiter=self._extract.delimiter,
        )

    def events_of(self, block: RowBlock, counts: RowCounts) -> Events:
        """Events of the accepted rows of a block; `counts` grows by all its rows."""
        columns, lines = block.columns, block.lines
        counts.rows_read += len(lines) + len(block.misshapen) + len(block.bad_text)
        counts.reject("wrong_columns", block.misshapen)
        counts.reject("bad_text", block.bad_text)
        subscribers = _Texts.of(columns[self._extract.subscriber])
        pseudonyms, is_empty = self._pseudonyms(subscribers)
        times = self._times(columns[self._extract.timestamp])
        cells = self._cell_codes(columns, len(lines))
        values, unknown = self._static_values(columns, len(lines))
        alive = np.ones(len(lines), np.bool_)
        for reason, rows in {
            "empty_subscriber": is_empty[subscribers.of_row],
            "bad_timestamp": times.outcome == timestamps.BAD,
            "nonexistent_time": times.outcome == timestamps.NONEXISTENT,
            "empty_cell": cells == _EMPTY,
            "unknown_value": unknown,
        }.items():
            counts.reject(reason, lines[alive & rows])
            alive &= ~rows
        self._ignore(alive, times, cells, counts)
        counts.accepted += int(alive.sum())
        rows = np.flatnonzero(alive)
        return Events(
            pseudonym=pseudonyms[subscribers.of_row[rows]],
            second=times.second[rows],
            cell=cells[rows].astype(np.uint32),
            day=times.day[rows],
            codes=self._asked_codes(values, pseudonyms, subscribers.of_row, rows),
        )

    def _ignore(
        self,
        alive: NDArray[np.bool_],
        times: timestamps.EventTimes,
        cells: NDArray[np.int64],
        counts: RowCounts,
    ) -> None:
        """Take the rows that the study does not ask about out of `alive`."""
        minute = times.minute
        for reason, rows in {
            "outside_period": times.outcome == timestamps.OUTSIDE_PERIOD,
            "outside_area": ~self._cells.valid_on(cells, times.day),
            "outside_hours": (minute < self._visitor.from_minute) | (minute > self._visitor.to_minute),
            "day_closed": self._closed[times.day],
        }.items():
            counts.ignore(reason, int((alive & rows).sum()))
            alive &= ~rows

    def _pseudonyms(self, subscribers: _Texts) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        data, offsets = subscribers.trimmed_buffers()
        return cmac64(self._pseudonym_key, data, offsets), np.diff(offsets) == 0

    def _times(self, column: pa.Array) -> timestamps.EventTimes:
        if pa.types.is_timestamp(column.type):
            return timestamps.event_times_of(column, clock=self._clock)
        data, offsets = _buffers(column.cast(pa.large_binary()))
        form = self._extract.timestamp_format
        return timestamps.event_times(data, offsets, clock=self._clock, form=form)

    def _cell_codes(self, columns: Mapping[str, pa.Array], n: int) -> NDArray[np.int64]:
        if self._extract.cell is None:
            return np.zeros(n, np.int64)
        return self._cells.codes_of(_Texts.of(columns[self._extract.cell]))

    def _static_values(
        self, columns: Mapping[str, pa.Array], n: int
    ) -> tuple[dict[int, NDArray[np.uint16]], NDArray[np.bool_]]:
        """Code of each static indicator per row, and the rows with a value outside the categories."""
        unknown = np.zeros(n, np.bool_)
        values: dict[int, NDArray[np.uint16]] = {}
        for index, column, code_of in self._static:
            texts = _Texts.of(columns[column])
            found = np.array(
                [int(NO_VALUE) if not text else code_of.get(text, -1) for text in texts.trimmed()], np.int64
            )
            codes = found[texts.of_row]
            unknown |= codes < 0
            values[index] = codes.astype(np.uint16)
        return values, unknown

    def _asked_codes(
        self,
        values: dict[int, NDArray[np.uint16]],
        pseudonyms: NDArray[np.uint64],
        subscriber_of_row: NDArray[np.int32],
        rows: NDArray[np.int64],
    ) -> NDArray[np.uint16]:
        """Raw codes that may be answered: all of them, or the one of the indicator that was picked."""
        codes = np.full((len(rows), self.slots), NO_VALUE, np.uint16)
        if not self._plan.is_sampled:
            for slot, index in enumerate(values):
                codes[:, slot] = values[index][rows]
        elif self.slots:
            plan = self._plan
            asked = choose_indicator(pseudonyms, prf=self._prf, d=plan.d, shares=plan.shares)
            asked = asked[subscriber_of_row[rows]]
            for index, of_row in values.items():
                mine = asked == index
                codes[mine, 0] = of_row[rows[mine]]
        return codes


def _buffers(texts: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Bytes and offsets of a large_binary array."""
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return (np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)), ends


@numba.njit(cache=True, nogil=True)
def _has_blanks_around(data, offsets):  # type: ignore[no-untyped-def]
    """Whether `bytes.strip` would take anything away from any text."""
    for i in range(len(offsets) - 1):
        if offsets[i] < offsets[i + 1]:
            first, last = data[offsets[i]], data[offsets[i + 1] - 1]
            if first == 32 or 9 <= first <= 13 or last == 32 or 9 <= last <= 13:
                return True
    return False
