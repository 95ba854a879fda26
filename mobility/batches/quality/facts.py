"""Facts of a batch's rows, kept as JSON in `Batch.checks`: counts, never a row or a value of a person.

Keys of the JSON:
empty : {column: rows with an empty value}, every column that is read
columns : {reason: [columns that it can concern]}; of unknown_value those that had one, most rows first
unmatched_cells : [[cell, rows], ...] that the area does not list, most frequent first
unmatched_more : rows with further such cells; unmatched_hidden : rows with texts that do not look like a cell
located, locatable_of : rows whose cell is listed, of those with a readable subscriber and time
first_event, last_event : UTC epoch seconds, None without a readable time
hours : {study day: [accepted rows in each of 24 local hours]}, days with rows only
and once its shards are merged: duplicates, duplicates_of, subscribers, day_subscribers {study day: n}.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from mobility.extracts.profiles.definition import Profile
from mobility.extracts.rows.counts import RowCounts

HOURS_A_DAY = 24
# Below it the column is rather not the one of the cells: its texts could be anything.
LEAST_LOCATED = 0.5

Hours = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Part of a total: "10 of 40,312"; never one without the other."""

    part: int
    of: int

    @property
    def value(self) -> float | None:
        """Return the share in [0, 1]; None of nothing."""
        return self.part / self.of if self.of else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Contents of `Batch.checks`; see the module. Optional facts are None until shards are merged."""

    empty: Mapping[str, int]
    columns: Mapping[str, tuple[str, ...]]
    unmatched_cells: tuple[tuple[str, int], ...]
    unmatched_more: int
    unmatched_hidden: int
    located: int
    locatable_of: int
    first_event: int | None
    last_event: int | None
    hours: Mapping[int, Hours]
    duplicates: int | None
    duplicates_of: int | None
    subscribers: int | None
    day_subscribers: Mapping[int, int]

    @classmethod
    def of(cls, checks: Mapping[str, Any]) -> Self:
        """Read the JSON; a batch of which nothing was read has empty facts."""
        return cls(
            empty=checks.get("empty", {}),
            columns={reason: tuple(names) for reason, names in checks.get("columns", {}).items()},
            unmatched_cells=tuple((cell, rows) for cell, rows in checks.get("unmatched_cells", ())),
            unmatched_more=checks.get("unmatched_more", 0),
            unmatched_hidden=checks.get("unmatched_hidden", 0),
            located=checks.get("located", 0),
            locatable_of=checks.get("locatable_of", 0),
            first_event=checks.get("first_event"),
            last_event=checks.get("last_event"),
            hours={int(day): tuple(hours) for day, hours in checks.get("hours", {}).items()},
            duplicates=checks.get("duplicates"),
            duplicates_of=checks.get("duplicates_of"),
            subscribers=checks.get("subscribers"),
            day_subscribers={int(day): n for day, n in checks.get("day_subscribers", {}).items()},
        )

    @property
    def unmatched(self) -> Share:
        """Rows whose cell the area does not list."""
        rows = sum(rows for _, rows in self.unmatched_cells) + self.unmatched_more + self.unmatched_hidden
        return Share(part=rows, of=self.locatable_of)

    @property
    def is_rather_no_cell(self) -> bool:
        """Return whether the column of the cells is rather another one, or the list of another area."""
        return is_rather_no_cell(self.located, of=self.locatable_of)


def checks_of(counts: RowCounts, *, profile: Profile) -> dict[str, Any]:
    """Facts of the rows of a whole batch, as JSON.

    Parameters
    ----------
    counts : of all its chunks, added up
    profile : how the file was read
    """
    listed = _listed(counts)
    unlisted = counts.unmatched_cells.total() - sum(rows for _, rows in listed)
    hours = counts.hours.tolist()
    return {
        "empty": {column: counts.empty.get(column, 0) for column in profile.all_columns},
        "columns": columns_of_reasons(profile) | columns_of_unknown(counts),
        "unmatched_cells": listed,
        "unmatched_more": counts.unmatched_more,
        "unmatched_hidden": counts.unmatched_hidden + unlisted,
        "located": counts.located,
        "locatable_of": counts.locatable_of,
        "first_event": counts.first_event,
        "last_event": counts.last_event,
        "hours": {str(day): of_day for day, of_day in enumerate(hours, start=1) if any(of_day)},
    }


def merged_checks(
    checks: Mapping[str, Any],
    *,
    rows: int,
    duplicates: int,
    subscribers: int,
    day_subscribers: Mapping[int, int],
) -> dict[str, Any]:
    """`checks` with what only the shards know.

    Parameters
    ----------
    rows : accepted before duplicates were known, the denominator of `duplicates`
    subscribers : distinct ones of the batch
    day_subscribers : distinct ones of each study day
    """
    return {
        **checks,
        "duplicates": duplicates,
        "duplicates_of": rows,
        "subscribers": subscribers,
        "day_subscribers": {str(day): n for day, n in sorted(day_subscribers.items()) if n},
    }


def columns_of_reasons(profile: Profile) -> dict[str, list[str]]:
    """Columns that each reason can concern; reasons of whole lines have none."""
    of_times = ("bad_timestamp", "nonexistent_time", "outside_period", "outside_hours", "day_closed")
    found = {
        **dict.fromkeys(("empty_subscriber", "opted_out"), profile.subscriber),
        **dict.fromkeys(of_times, profile.timestamp),
        **dict.fromkeys(("empty_cell", "outside_area"), profile.cell),
    }
    named = {reason: [name] for reason, name in found.items() if name}
    values = [*profile.value_columns]
    return named | ({"unknown_value": values} if values else {})


def columns_of_unknown(counts: RowCounts) -> dict[str, list[str]]:
    """Columns whose unknown values had rows rejected, most rows first."""
    columns = [column for column, _ in counts.unknown.most_common()]
    return {"unknown_value": columns} if columns else {}


def is_rather_no_cell(located: int, *, of: int) -> bool:
    """Return whether too few rows have a listed cell for their column to be the one of the cells."""
    return located < LEAST_LOCATED * of


def _listed(counts: RowCounts) -> list[tuple[str, int]]:
    """Unmatched cells with their rows; none where the column is rather not the one of the cells."""
    if is_rather_no_cell(counts.located, of=counts.locatable_of):
        return []
    return sorted(counts.unmatched_cells.items(), key=lambda each: (-each[1], each[0]))
