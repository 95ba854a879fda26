"""Cells of rows: their codes, the days on which they belong to the area, and those that no one listed."""

import zlib
from datetime import date
from functools import cached_property
from typing import Any, Final

import numba
import numpy as np
from numpy.typing import NDArray

from mobility.extracts.cells.moved import MovedCells
from mobility.extracts.cells.unlisted import CellForms
from mobility.extracts.readers import Texts
from mobility.extracts.rows.counts import CELLS_KEPT, RowCounts
from mobility.extracts.rows.lookups import (
    CodeTable,
    is_same,
    of_rows,
    slot_of,
    trimmed,
    without_blanks,
    words_of,
)
from reports.studies.studyfile import AreaDefinition

OUTSIDE: Final = -1
EMPTY: Final = -2
LONGEST_KEPT = np.uint64(64)  # bytes; what is longer is no name of a cell, and is only counted
_FREE = -1
_BITS = 12  # of a table of CELLS_KEPT texts
_CRC_OF_BYTE = np.array(
    [~zlib.crc32(bytes([byte]), 0xFFFFFFFF) & 0xFFFFFFFF for byte in range(256)], np.uint32
)


class CellCodes:
    """Code of each cell, and the study days on which it belongs to the area.

    is_listed : whether there is an area; without one every text, even an empty one, is a cell of it
    first_valid, last_valid : int64, by code; days of the study, which may lie beyond it
    """

    def __init__(self, area: AreaDefinition | None, *, first_day: date, days: int) -> None:
        self.is_listed = area is not None
        cells = area.cells if area is not None else ()
        self._moved, self._date_after = MovedCells(cells), days + 1
        self._names = [cell.cell_id for cell in cells]
        self._table = CodeTable(self._moved.codes, empty=EMPTY, otherwise=OUTSIDE)
        self.first_valid = np.ones(max(len(cells), 1), np.int64)
        # The last night continues after the last day.
        self.last_valid = np.full(max(len(cells), 1), days + 1, np.int64)
        for code, cell in enumerate(cells):
            if cell.valid_from is not None:
                self.first_valid[code] = (cell.valid_from - first_day).days + 1
            if cell.valid_to is not None:
                self.last_valid[code] = (cell.valid_to - first_day).days + 1

    @cached_property
    def forms(self) -> CellForms:
        """Pattern of a cell of the area."""
        return CellForms(self._names)

    def codes_of(self, texts: Texts, days: NDArray[np.unsignedinteger[Any]]) -> NDArray[np.int32]:
        """Per row: code, or OUTSIDE, or EMPTY; without an area 32 bits that depend on the text alone.

        days : study day of each row, which a mast that moved has its code by; 0 = outside
        """
        if self.is_listed:
            codes = self._table.codes(texts)
            return self._moved.on_days(codes, days, last_valid=self.last_valid, end=self._date_after)
        # Codes only tell rows of one second apart; a list of all texts of a file would have no bound.
        codes = texts.once(_checksums, lambda: _checksums_of(texts))
        return codes if texts.of_row is None else of_rows(codes, texts.of_row)


def count_unmatched(texts: Texts, counts: RowCounts, *, forms: CellForms) -> None:
    """Note unlisted texts of the cell column that look like a cell."""
    texts = trimmed(texts.one_each())
    firsts, rows = np.empty(CELLS_KEPT, np.int32), np.zeros(CELLS_KEPT, np.int64)
    n, more = _count_distinct(texts.data, texts.begins, texts.ends, LONGEST_KEPT, firsts, rows)
    names = Texts(data=texts.data, begins=texts.begins[firsts[:n]], ends=texts.ends[firsts[:n]]).to_list()
    for name, count in zip(names, rows[:n].tolist(), strict=True):
        text = name.decode()
        if forms.has(text):
            counts.unmatched_cells[text] += count
        else:
            counts.unmatched_hidden += count
    counts.unmatched_more += more


def _checksums_of(texts: Texts) -> NDArray[np.int32]:
    codes = np.empty(len(texts.begins), np.uint32)
    _checksums(texts.data, texts.begins, texts.ends, _CRC_OF_BYTE, codes)
    return codes.view(np.int32)


@numba.njit(cache=True, nogil=True)
def _checksums(data, begins, ends, crc_of_byte, codes):  # type: ignore[no-untyped-def]
    """CRC-32 of each trimmed text."""
    for row in range(len(begins)):
        at, end = without_blanks(data, np.uint64(begins[row]), np.uint64(ends[row]))
        crc = np.uint32(0xFFFFFFFF)
        while at < end:
            crc = crc_of_byte[(crc ^ data[at]) & np.uint32(0xFF)] ^ (crc >> np.uint32(8))
            at += np.uint64(1)
        codes[row] = ~crc


@numba.njit(cache=True, nogil=True)
def _count_distinct(data, begins, ends, longest, firsts, rows):  # type: ignore[no-untyped-def]
    """Count the rows of each of the first distinct texts: how many these are, and rows with any other."""
    slots = np.full(1 << _BITS, _FREE, np.int32)
    last = np.uint64(len(slots) - 1)
    n, more = 0, 0
    for row in range(len(begins)):
        begin, size = np.uint64(begins[row]), np.uint64(ends[row] - begins[row])
        if size > longest:
            more += 1
            continue
        words = words_of(data, begin, size)
        slot = slot_of(data, begin, size, words, last)
        while slots[slot] != _FREE:
            first = firsts[slots[slot]]
            other, other_size = np.uint64(begins[first]), np.uint64(ends[first] - begins[first])
            is_found = other_size == size and words_of(data, other, size) == words
            if is_found and is_same(data, begin, data, other, size):
                break
            slot = (slot + np.uint64(1)) & last
        if slots[slot] != _FREE:
            rows[slots[slot]] += 1
        elif n < len(firsts):
            slots[slot], firsts[n], rows[n] = n, row, 1
            n += 1
        else:
            more += 1
    return n, more
