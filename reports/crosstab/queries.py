"""Figures of joint indicators: tables, and the share of a choice of categories, each with its error."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan, nan
from typing import Final

import numpy as np
from django.utils.translation import gettext

from ldp import union
from ldp.estimation.joint.crosstab import CrossTable, Floats, Reports, Shares, cross_table
from ldp.estimation.windows import IndicatorTallies
from reports.base.status import Status, estimates_status
from reports.crosstab.joints import Codes, Joint
from reports.crosstab.query import View
from reports.estimates.queries import LEVEL, Counts, Window, WindowReport, has_small, reports_with_tallies

MAX_CELLS: Final = 4000  # of a table: larger ones are of no use to readers


class NoCrosstabError(ValueError):
    """The study has joint indicators, but no figures can be made of them; `str()` says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A share with its 95% interval, and the visitors that it stands for, scaled by the market share.

    All numbers are None where there is none; visitors also of shares that are not of all visitors.
    `consistent` and `consistent_visitors` are made of the consistent frequencies, where these are of use.
    """

    status: Status
    share: float | None = None
    std_error: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    visitors: float | None = None
    visitors_ci_low: float | None = None
    visitors_ci_high: float | None = None
    below: int | None = None
    consistent: float | None = None
    consistent_visitors: float | None = None

    def shown(self, values: str) -> "Figure":
        """The figure with "consistent" or "unbiased" values; the interval is that of the unbiased one."""
        if values != "consistent" or self.consistent is None:
            return self
        return replace(self, share=self.consistent, visitors=self.consistent_visitors)

    @property
    def is_hidden(self) -> bool:
        """Return whether a rule for small numbers hides it."""
        return self.status in (Status.SUPPRESSED, Status.SMALL)

    @property
    def holds_zero(self) -> bool:
        """Return whether the interval includes 0."""
        return self.ci_low is None or self.ci_low <= 0


_SUM_OF_HIDDEN: Final = Figure(status=Status.SUPPRESSED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Answers to a joint indicator in one window; `reports` is None where there are none to show.

    counts : ndarray of int64, shape (combinations,); reports that support each
    """

    joint: Joint
    report: WindowReport
    reports: Reports | None
    counts: Counts

    @property
    def consistent(self) -> Floats:
        """Frequencies that the report shows by default; hidden ones share what the others leave."""
        if self.reports is None:
            raise NoCrosstabError
        if not has_small([self.report]):
            return self.reports.estimates.consistent
        shown = np.array([nan if each.is_hidden else each.consistent for each in self.report.estimates])
        hidden = np.isnan(shown)
        return np.where(hidden, max(1 - np.nansum(shown), 0.0) / hidden.sum(), shown)

    def answer(self, choice: Mapping[int, Sequence[int]]) -> Figure:
        """Share of the visitors with some categories of each part; all of those where none are chosen."""
        if self.reports is None:
            return Figure(status=self.report.status)
        codes = self.joint.chosen(choice)
        blank = None if codes.size == self.counts.size else blank_figure([self.report], codes)
        if blank is not None:
            return blank
        found = self.reports.answer(codes)
        # Of one figure its own width counts: there is no other whose reading it could bias.
        ends = {"ci_low": [found.ci_low], "ci_high": [found.ci_high]}
        return _figure(
            (found.value, found.std_error, found.ci_low, found.ci_high),
            status=estimates_status(_window_status(self.report), **ends),
            scale=self.report.scale,
            consistent=float(self.consistent[codes].sum()),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Figures of a table with its margins, of all codes; pages show `shown_rows` and `shown_columns`.

    rows, columns : margins; of all visitors, or of those in the table where cells are of a row or a column
    whole : of the visitors in the table among all
    """

    view: View
    cells: list[list[Figure]]
    rows: list[Figure]
    columns: list[Figure]
    whole: Figure
    shown_rows: list[int]
    shown_columns: list[int]

    def shown(self, values: str) -> "Table":
        """The table with "consistent" or "unbiased" values."""
        return replace(
            self,
            cells=[[each.shown(values) for each in row] for row in self.cells],
            rows=[each.shown(values) for each in self.rows],
            columns=[each.shown(values) for each in self.columns],
            whole=self.whole.shown(values),
        )


def measure(joint: Joint, window: Window) -> Measured:
    """Read the answers of a window; NoCrosstabError if they have presence noise."""
    return measure_all(joint, [window])[0]


def measure_all(joint: Joint, windows: Sequence[Window], *, full: int | None = None) -> list[Measured]:
    """Read the answers of some windows; NoCrosstabError if they have presence noise.

    `full` as of `reports_with_tallies`.
    """
    study = joint.indicator.study
    if study.presence is not None:
        raise NoCrosstabError(
            gettext(
                "Cross-tabulations are not available for this study. Its counts contain presence "
                "noise, and the error of a sum of such counts is not computed."
            )
        )
    ((reports, tallies),) = reports_with_tallies([joint.indicator], [list(windows)], full=full)
    return [
        Measured(
            joint=joint,
            report=report,
            reports=reports_of(report, tallies),
            counts=union(tallies.counts, **report.window._asdict()),
        )
        for report in reports
    ]


def blank_figure(reports: Sequence[WindowReport], codes: Codes) -> Figure | None:
    """Return what stands for a sum over some codes if one of them is hidden; None if none is."""
    if not reports[0].study.small_category:
        return None
    hidden = [
        each
        for report in reports
        for each in (report.estimates[code] for code in codes.ravel())
        if each.is_hidden
    ]
    if not hidden:
        return None
    is_itself = len(reports) == 1 and codes.size == 1
    return Figure(status=hidden[0].status, below=hidden[0].below) if is_itself else _SUM_OF_HIDDEN


def reports_of(report: WindowReport, tallies: IndicatorTallies) -> Reports | None:
    """Answers of a report's window, for questions about several values; None if there are none to show."""
    if not report.n_reports or not report.n_visitors:
        return None
    found = Reports.of_counts(
        union(tallies.counts, **report.window._asdict()),
        channel=tallies.channel,  # type: ignore[arg-type]
        n_reports=report.n_reports,
        n_population=report.n_visitors,
        level=LEVEL,
    )
    if not has_small([report]):
        return found
    return with_errors_of_shown(found, np.array([each.is_hidden for each in report.estimates]))


def with_errors_of_shown(reports: Reports, hidden: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Reports:
    """Let no error depend on how the hidden categories share what the others leave.

    The variance of a sum weighs all frequencies: those of many sums would give each of the hidden ones.
    """
    shown = np.where(hidden, 0.0, np.maximum(reports.estimates.frequency, 0.0))
    left = np.where(hidden, max(1 - shown.sum(), 0.0) / hidden.sum(), shown)
    estimates = replace(reports.estimates, consistent=left / left.sum())
    return replace(reports, estimates=estimates)


def table_of(measured: Measured, view: View, *, found: CrossTable | None = None) -> Table | None:
    """The table of a view; None if it would be too large.

    `found` are other estimates of its shares; by default those of its answers alone.

    Raises
    ------
    NoCrosstabError : there are no answers
    """
    if measured.reports is None:
        raise NoCrosstabError
    if view.row_part.size * view.column_part.size > MAX_CELLS:
        return None
    consistent: _Consistent | None = None
    if found is None:
        found = cross_table(measured.reports, layout=layout_of(view), base=view.base)
        consistent = _consistent(measured.consistent, view)
    scale = measured.report.scale if view.base == "all" else None
    window = _window_status(measured.report)
    cells = list(_cells(found, view, window=window, scale=scale, consistent=consistent))
    of_rows, of_columns, of_whole = (None, None, None) if consistent is None else consistent[1:]
    rows = figures_of_whole(found.rows, window=window, scale=scale, consistent=of_rows)
    columns = figures_of_whole(found.columns, window=window, scale=scale, consistent=of_columns)
    (whole,) = figures_of_whole(found.whole, window=window, scale=measured.report.scale, consistent=of_whole)
    table = Table(
        view=view,
        cells=cells,
        rows=rows,
        columns=columns,
        whole=whole,
        shown_rows=_shown(rows, view),
        shown_columns=_shown(columns, view),
    )
    return _without_hidden(table, measured.report) if has_small([measured.report]) else table


def _without_hidden(table: Table, report: WindowReport) -> Table:
    """Keep figures that are made of shown combinations only, those that they are shares of included."""
    view, layout = table.view, layout_of(table.view)
    lines = list(layout), list(layout.transpose(1, 0, 2))

    def kept(figure: Figure, codes: Codes) -> Figure:
        return blank_figure([report], codes) or figure

    def codes_of(row: int, column: int) -> Codes:
        wholes = {"row": lines[0][row], "column": lines[1][column]}
        return np.asarray(wholes.get(view.base, layout[row, column]))

    margins = [
        [
            kept(each, line if view.base == "all" else layout)
            for each, line in zip(margin, of_margin, strict=True)
        ]
        for margin, of_margin in zip((table.rows, table.columns), lines, strict=True)
    ]
    return Table(
        view=view,
        cells=[
            [kept(each, codes_of(row, column)) for column, each in enumerate(cells)]
            for row, cells in enumerate(table.cells)
        ],
        rows=margins[0],
        columns=margins[1],
        whole=table.whole if layout.size == len(report.estimates) else kept(table.whole, layout),
        shown_rows=_shown(margins[0], view),
        shown_columns=_shown(margins[1], view),
    )


def layout_of(view: View) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Codes of each cell, with the third part in the last axis."""
    codes = view.joint.codes
    if view.third is None:
        return codes.transpose(view.rows, view.columns)[:, :, np.newaxis]
    turned = codes.transpose(view.rows, view.columns, view.third)
    return turned if view.within is None else turned[:, :, [view.within]]


_Consistent = tuple[Floats, Floats, Floats, Floats]


def _consistent(frequencies: Floats, view: View) -> _Consistent:
    """Consistent shares of the cells, rows, columns and all of a table, as `cross_table` has them."""
    layout = layout_of(view)
    cells = frequencies[layout].sum(axis=2)
    rows, columns, whole = cells.sum(axis=1), cells.sum(axis=0), cells.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = {"all": cells, "row": cells / rows[:, np.newaxis], "column": cells / columns}[view.base]
        of_table = 1.0 if view.base == "all" or layout.size == frequencies.size else whole
        return shares, rows / of_table, columns / of_table, np.array([whole])


def _cells(
    found: CrossTable, view: View, *, window: Status, scale: float | None, consistent: _Consistent | None
) -> Iterator[list[Figure]]:
    """Rows of figures; the widths of all shares of one whole decide on the status of each of them."""
    low, high = found.cells.ci_low, found.cells.ci_high
    if view.base == "all":
        low, high = low.reshape(1, -1), high.reshape(1, -1)
    elif view.base == "column":
        low, high = low.T, high.T
    of_whole = [
        estimates_status(window, ci_low=lows, ci_high=highs)
        for lows, highs in zip(low.tolist(), high.tolist(), strict=True)
    ]
    n_rows, n_columns = found.cells.value.shape
    for row in range(n_rows):
        statuses = {
            "all": of_whole * n_columns,
            "row": of_whole[row : row + 1] * n_columns,
            "column": of_whole,
        }[view.base]
        of_row = None if consistent is None else consistent[0][row]
        yield _with_statuses(found.cells[row], statuses, scale=scale, consistent=of_row)


def figures_of_whole(
    shares: Shares,
    *,
    window: Status,
    scale: float | None,
    most: float = 1.0,
    consistent: Floats | None = None,
) -> list[Figure]:
    """Figures of the parts of one whole; `most` is what an estimated share of 1 stands for."""
    low, high = (each / most for each in (shares.ci_low, shares.ci_high))
    status = estimates_status(window, ci_low=low.tolist(), ci_high=high.tolist())
    return _with_statuses(shares, [status] * shares.value.size, scale=scale, consistent=consistent)


def _with_statuses(
    shares: Shares, statuses: Sequence[Status], *, scale: float | None, consistent: Floats | None
) -> list[Figure]:
    columns = (shares.value, shares.std_error, shares.ci_low, shares.ci_high)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    values = [nan] * len(statuses) if consistent is None else consistent.tolist()
    return [
        _figure(row, status=status, scale=scale, consistent=value)
        for row, status, value in zip(rows, statuses, values, strict=True)
    ]


def _figure(numbers: Sequence[float], *, status: Status, scale: float | None, consistent: float) -> Figure:
    """A figure of value, error and interval; a value that is nan is unknown."""
    share, std_error, low, high, value = [None if isnan(each) else each for each in (*numbers, consistent)]
    people, people_low, people_high, of_value = [
        None if each is None or scale is None else each * scale for each in (share, low, high, value)
    ]
    return Figure(
        status=Status.NOT_RELIABLE if share is None and status == Status.OK else status,
        share=share,
        std_error=std_error,
        ci_low=low,
        ci_high=high,
        visitors=people,
        visitors_ci_low=people_low,
        visitors_ci_high=people_high,
        consistent=value,
        consistent_visitors=of_value,
    )


def _window_status(report: WindowReport) -> Status:
    """Status of the window alone: whether all combinations are reliable says nothing about sums of them."""
    return Status.OK if report.status == Status.NOT_RELIABLE else report.status


def _shown(margin: Sequence[Figure], view: View) -> list[int]:
    """Codes to show: people without a value only if asked for, or if there are surely some."""
    has_no_value = view.with_no_value or margin[-1].is_hidden or not margin[-1].holds_zero
    return list(range(len(margin) if has_no_value else len(margin) - 1))
