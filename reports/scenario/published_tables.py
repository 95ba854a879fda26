"""Tables of unions that another provider published: read from CSV, every problem with file, line and column.

A row is a number of people (`volume`) in a window (`first`, `last`: dates), of all people or of a `category`.
A volume of "#" is hidden: at least 1, and below the limit of the provider.
"""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final

from django.utils.translation import gettext

from ldp import UnionTable
from ldp.estimation.scenario.flows import MAX_DAYS
from reports.base import formats

HIDDEN: Final = "#"
HIDDEN_BELOW: Final = 20  # of Flux Vision
MAX_BYTES: Final = 5_000_000
_NEEDED: Final = ("first", "last", "volume")
_CATEGORY: Final = "category"
_DELIMITERS: Final = (",", ";", "\t")
_MOST_PROBLEMS: Final = 20

Days = tuple[int, int]
Limits = tuple[int, int]


class TableError(ValueError):
    """A table that cannot be read; one problem a line, translated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A number of the table: `limits` are the least and the most people."""

    line: int
    first: date
    last: date
    category: str
    limits: Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedTable:
    """Numbers of one file; `cells` in file order, each window and category once."""

    name: str
    cells: tuple[Cell, ...]

    @property
    def categories(self) -> list[str]:
        """Categories in file order; without the rows of all people."""
        return list(dict.fromkeys(cell.category for cell in self.cells if cell.category))

    @property
    def n_hidden(self) -> int:
        """Numbers that are not known."""
        return sum(cell.limits[0] < cell.limits[1] for cell in self.cells)


@dataclass(slots=True)
class _Problems:
    """Problems of a file, in its order: the text of the first ones, and how many there are."""

    name: str
    found: list[str] = field(default_factory=list)
    n: int = 0

    def add(self, line: int, column: str, text: str, **found: Any) -> None:
        self.n += 1
        if self.n > _MOST_PROBLEMS:
            return
        place = gettext("%(name)s, line %(line)d, column %(column)s") if column else _line_of()
        where = place % {"name": self.name, "line": line, "column": column}
        self.found.append(f"{where}: {text % found}")

    def check(self) -> None:
        """Raise TableError if there are any."""
        if self.found:
            left = self.n - _MOST_PROBLEMS
            more = [_of_file(self.name, gettext("further problems: %(n)d"), n=left)] if left > 0 else []
            raise TableError("\n".join([*self.found, *more]))


def read_table(content: bytes, *, name: str, hidden_below: int = HIDDEN_BELOW) -> PublishedTable:
    """Read a table from CSV: UTF-8, with a header; commas, semicolons or tabs.

    Parameters
    ----------
    content : of the file
    name : of the file, for messages
    hidden_below : a "#" stands for 1 to hidden_below - 1 people; at least 2

    Raises
    ------
    TableError : with file, line and column of every problem
    """
    if hidden_below < 2:
        raise TableError(
            gettext("the limit below which numbers are replaced by “#” must be at least 2, not %d")
            % hidden_below
        )
    if len(content) > MAX_BYTES:
        text = gettext("the table is too large: it has %(size)s bytes, and the limit is %(most)s")
        sizes = {"most": formats.number(MAX_BYTES), "size": formats.number(len(content))}
        raise TableError(_of_file(name, text, **sizes))
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        where = _line_of() % {"name": name, "line": line}
        rule = gettext("text must be UTF-8; save the file as UTF-8")
        raise TableError(f"{where}: {rule}") from None
    problems = _Problems(name)
    cells = tuple(_cells(text, problems=problems, most_hidden=hidden_below - 1))
    _check_once(cells, problems)
    problems.check()
    if not cells:
        raise TableError(_of_file(name, gettext("the table has a header but no rows; add at least one row")))
    return PublishedTable(name=name, cells=cells)


def days_of(tables: Sequence[PublishedTable]) -> tuple[date, int]:
    """First day of all windows, and days until the last one; TableError if there are more than 62."""
    first = min(cell.first for table in tables for cell in table.cells)
    last = max(cell.last for table in tables for cell in table.cells)
    days = (last - first).days + 1
    if days > MAX_DAYS:
        text = gettext(
            "together, the date ranges can span at most %(most)d days, but they span %(days)d: "
            "%(first)s to %(last)s"
        )
        raise TableError(text % {"most": MAX_DAYS, "days": days, "first": first, "last": last})
    return first, days


def totals_of(table: PublishedTable, *, first_day: date, days: int) -> Iterator[tuple[str, UnionTable]]:
    """All people by window: as printed, and as the sum of the categories; with the name of each source.

    Raises
    ------
    TableError : a window lacks a category, so that its sum is not known
    """
    printed = {cell: cell.limits for cell in table.cells if not cell.category}
    if printed:
        windows = {_window(cell, first_day): limits for cell, limits in printed.items()}
        yield table.name, UnionTable.of_windows(windows, days=days)
    sums: dict[Days, dict[str, Limits]] = {}
    for cell in table.cells:
        if cell.category:
            sums.setdefault(_window(cell, first_day), {})[cell.category] = cell.limits
    if sums:
        _check_whole(table, sums, first_day=first_day)
        source = gettext("%s, sum of categories") % table.name if printed else table.name
        added = {window: _added(limits) for window, limits in sums.items()}
        yield source, UnionTable.of_windows(added, days=days)


def category_table(table: PublishedTable, category: str, *, first_day: date, days: int) -> UnionTable:
    """Limits of the windows of one category."""
    cells = [cell for cell in table.cells if cell.category == category]
    return UnionTable.of_windows({_window(cell, first_day): cell.limits for cell in cells}, days=days)


def _cells(text: str, *, problems: _Problems, most_hidden: int) -> Iterator[Cell]:
    lines = io.StringIO(text, newline=None)  # lines may end in any way
    header = lines.readline()
    lines.seek(0)
    reader = csv.reader(lines, delimiter=max(_DELIMITERS, key=header.count))
    rows = _rows(reader, problems)
    names = [name.strip().lower() for name in next(rows, [])]
    for missing in (name for name in _NEEDED if name not in names):
        problems.add(
            1, missing, gettext("this column is missing from the header; columns found: %(n)d"), n=len(names)
        )
    for twice in (name for name in (*_NEEDED, _CATEGORY) if names.count(name) > 1):
        problems.add(1, twice, gettext("this column must appear exactly once in the header"))
    problems.check()
    for values in rows:
        if not any(value.strip() for value in values):
            continue
        if len(values) != len(names):
            text = gettext("a row must have %(most)d columns, but this one has %(n)d")
            problems.add(reader.line_num, "", text, most=len(names), n=len(values))
            continue
        row = dict(zip(names, (value.strip() for value in values), strict=True))
        cell = _cell(row, line=reader.line_num, problems=problems, most_hidden=most_hidden)
        if cell is not None:
            yield cell


def _rows(reader: Any, problems: _Problems) -> Iterator[list[str]]:
    try:
        yield from reader
    except csv.Error:
        text = gettext("a field is too long; a quotation mark may be missing")
        problems.add(reader.line_num, "", text)


def _cell(row: Mapping[str, str], *, line: int, problems: _Problems, most_hidden: int) -> Cell | None:
    ends: list[date] = []
    for column in ("first", "last"):
        try:
            ends.append(date.fromisoformat(row[column]))
        except ValueError:
            problems.add(line, column, gettext("must be a date such as 2017-05-31"))
    if len(ends) == 2 and ends[0] > ends[1]:
        text = gettext("must not be before “first” (%(first)s), but is %(last)s")
        problems.add(line, "last", text, first=ends[0], last=ends[1])
    volume = row["volume"]
    if volume == HIDDEN:
        limits = (1, most_hidden)
    elif volume.isascii() and volume.isdigit() and len(volume) <= 9:
        limits = (int(volume), int(volume))
    else:
        problems.add(line, "volume", gettext("must be a whole number of at most 9 digits, or #"))
        return None
    if len(ends) != 2 or ends[0] > ends[1]:
        return None
    return Cell(line=line, first=ends[0], last=ends[1], category=row.get(_CATEGORY, ""), limits=limits)


def _check_once(cells: Sequence[Cell], problems: _Problems) -> None:
    lines: dict[tuple[date, date, str], int] = {}
    for cell in cells:
        before = lines.setdefault((cell.first, cell.last, cell.category), cell.line)
        if before != cell.line:
            text = gettext("the same date range and category already appear on line %(before)d")
            problems.add(cell.line, "", text, before=before)


def _check_whole(
    table: PublishedTable, sums: Mapping[Days, Mapping[str, Limits]], *, first_day: date
) -> None:
    lines: dict[Days, int] = {}
    for cell in table.cells:
        if cell.category:
            lines.setdefault(_window(cell, first_day), cell.line)
    problems, known = _Problems(table.name), len(table.categories)
    for window, found in sums.items():
        if len(found) < known:
            text = gettext("a date range must have all %(known)d categories, but this one has %(n)d")
            problems.add(lines[window], _CATEGORY, text, known=known, n=len(found))
    problems.check()


def _line_of() -> str:
    return gettext("%(name)s, line %(line)d")


def _of_file(name: str, text: str, **found: Any) -> str:
    return f"{name}: {text % found}"


def _added(limits: Mapping[str, Limits]) -> Limits:
    return sum(low for low, _ in limits.values()), sum(high for _, high in limits.values())


def _window(cell: Cell, first_day: date) -> Days:
    return (cell.first - first_day).days + 1, (cell.last - first_day).days + 1
