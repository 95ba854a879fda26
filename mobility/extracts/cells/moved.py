"""Cells with several registry rows: a mast that moved has its place of each day."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import date
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from reports.studies.studyfile import Cell

_LAST = -1


class MovedCells:
    """Return the registry row that is valid for a cell on a study day.

    codes : place of the first row of each cell, by cell_id; rows of one cell follow each other by date
    """

    def __init__(self, cells: Sequence[Cell]) -> None:
        rows: dict[str, list[int]] = defaultdict(list)
        for code, cell in enumerate(cells):
            rows[cell.cell_id].append(code)
        self._following = np.full(len(cells), _LAST, np.int32)
        for codes in rows.values():
            codes.sort(key=lambda code: cells[code].valid_from or date.min)
            self._following[codes[:-1]] = codes[1:]
        self._any = bool((self._following != _LAST).any())
        self.codes = {cell_id.encode(): codes[0] for cell_id, codes in rows.items()}

    def on_days(
        self,
        codes: NDArray[np.int32],
        days: NDArray[np.unsignedinteger[Any]],
        *,
        last_valid: NDArray[np.int64],
        end: int,
    ) -> NDArray[np.int32]:
        """Per event the code of the row that is valid on its day, or of the next one after; (n,).

        days : study days; 0 = outside, taken for `end`, the date after the last one
        last_valid : last study day of each row
        """
        if not self._any:
            return codes
        valid = np.empty_like(codes)
        _follow(codes, days, self._following, last_valid, end, valid)
        return valid


@numba.njit(cache=True, nogil=True)
def _follow(codes, days, following, last_valid, end, valid):  # type: ignore[no-untyped-def]
    for row in range(len(codes)):
        code, day = codes[row], days[row] if days[row] else end
        while code >= 0 and day > last_valid[code] and following[code] >= 0:
            code = following[code]
        valid[row] = code
