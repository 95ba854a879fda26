"""Outcomes of the rows of an extract, and facts of its quality: numbers that add up."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

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
# A row of a subscriber who opted out is checked no further, also if something else is wrong.
IGNORED = ("opted_out", "outside_period", "outside_area", "outside_hours", "day_closed", "duplicate")
LINES_KEPT = 10
CELLS_KEPT = 1000
HOURS = 24
_SUMS = (
    "rows_read", "accepted", "n_lines", "unmatched_more", "unmatched_hidden", "located", "locatable_of",
)  # fmt: skip
_COUNTERS = ("ignored", "rejected", "empty", "unknown", "unmatched_cells")


@dataclass(slots=True)
class RowCounts:
    """Rows of an extract, or of a part of one, by outcome; before duplicates are known.

    rows_read : accepted + ignored + rejected
    lines : first line numbers by reason of rejection, in file order, LINES_KEPT at most
    n_lines : lines that were read, of any content
    empty : well-formed rows without a value, by column
    unknown : rows rejected as unknown_value, by each column whose value is unknown
    unmatched_cells : located in none of the area's cells: rows by what they say, CELLS_KEPT texts at most
    unmatched_more : such rows whose texts are not kept
    unmatched_hidden : such rows whose texts do not look like a cell of the area (`CellForms`), and are not
        kept either
    located, locatable_of : rows in a cell of the area's list, of those with a subscriber and a time; both 0
        where there is no list
    first_event, last_event : UTC seconds since 1970 over all times that could be read; None without any
    hours : int64, shape (days, 24); accepted rows by study day and local hour

    Notes
    -----
    From `empty` on, rows of subscribers who have opted out count nowhere.
    """

    rows_read: int = 0
    accepted: int = 0
    ignored: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    lines: dict[str, list[int]] = field(default_factory=dict)
    n_lines: int = 0
    empty: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    unmatched_cells: Counter[str] = field(default_factory=Counter)
    unmatched_more: int = 0
    unmatched_hidden: int = 0
    located: int = 0
    locatable_of: int = 0
    first_event: int | None = None
    last_event: int | None = None
    hours: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, HOURS), np.int64))

    def reject(self, reason: str, lines: NDArray[np.int64], *, count: int | None = None) -> None:
        """Count rejected rows and keep the first line numbers; never their content.

        `count` is how many rows there are where `lines` are only the first.
        """
        if len(lines):
            self.rejected[reason] += len(lines) if count is None else count
            kept = self.lines.setdefault(reason, [])
            kept.extend(int(line) for line in lines[: LINES_KEPT - len(kept)])

    def ignore(self, reason: str, count: int) -> None:
        if count:
            self.ignored[reason] += count

    def note_unknown(self, column: str, rows: NDArray[np.bool_]) -> None:
        """Note the rejected rows whose value in a column is unknown."""
        if n := int(rows.sum()):
            self.unknown[column] += n

    def add(self, later: "RowCounts") -> None:
        """Add the part of the same file that follows; its lines count from 1."""
        self.join(later, lines_before=self.n_lines)

    def join(self, later: "RowCounts", *, lines_before: int = 0) -> None:
        """Add, where `lines_before` are missing from the line numbers of `later`."""
        for reason, lines in later.lines.items():
            kept = self.lines.setdefault(reason, [])
            kept.extend(lines_before + line for line in lines[: LINES_KEPT - len(kept)])
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(later, name))
        for name in _COUNTERS:
            getattr(self, name).update(getattr(later, name))
        self._keep_most_frequent()
        self.note_events(later.first_event, later.last_event)
        if len(later.hours):
            self.hours = self.hours + later.hours if len(self.hours) else later.hours.copy()

    def note_events(self, first: int | None, last: int | None) -> None:
        """Extend the time between the first and the last event."""
        if first is not None and last is not None:
            self.first_event = first if self.first_event is None else min(self.first_event, first)
            self.last_event = last if self.last_event is None else max(self.last_event, last)

    def _keep_most_frequent(self) -> None:
        cells = self.unmatched_cells
        if len(cells) > CELLS_KEPT:
            ranked = sorted(cells.items(), key=lambda cell: (-cell[1], cell[0]))
            self.unmatched_more += sum(count for _, count in ranked[CELLS_KEPT:])
            self.unmatched_cells = Counter(dict(ranked[:CELLS_KEPT]))

    def to_json(self) -> dict[str, Any]:
        """Plain values that `from_json` reads."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        for name in _COUNTERS:
            plain[name] = dict(plain[name])
        return {**plain, "hours": self.hours.tolist()}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        # A chunk that an earlier version read has no "unknown".
        counters = {name: Counter(value.get(name, {})) for name in _COUNTERS}
        hours = np.array(value["hours"], np.int64).reshape(-1, HOURS)
        return cls(**{**value, **counters, "hours": hours})

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowCounts) and self.to_json() == other.to_json()
