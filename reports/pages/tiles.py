"""Small charts of all indicators of a study in one window."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from reports.estimates import charts
from reports.estimates import texts as estimates_texts
from reports.estimates.options import ReportOptions, ordered
from reports.estimates.queries import Window, WindowReport, reports_with_tallies
from reports.numbers.charts import survival_figure
from reports.studies.models import Indicator
from reports.studies.queries import has_unions

MOST_BARS: Final = 6
OPTIONS: Final = ReportOptions()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """An indicator in a window; no report where the indicator does not have the window.

    `left_out`: number of categories that the chart does not show, the smallest ones.
    """

    indicator: Indicator
    report: WindowReport | None = None
    figure: charts.Figure | None = None
    summary: str = ""
    left_out: int = 0

    @property
    def name(self) -> str:
        """Name of the figure in the page."""
        return f"figure-{self.indicator.slug}"


def tiles_of(indicators: Sequence[Indicator], window: Window) -> list[Tile]:
    """A tile for each indicator, in plan order."""
    asked = [[window] if window.days == 1 or has_unions(each) else [] for each in indicators]
    found = reports_with_tallies(indicators, asked)
    return [
        _tile(reports[0]) if reports else Tile(indicator=indicator)
        for indicator, (reports, _) in zip(indicators, found, strict=True)
    ]


def _tile(report: WindowReport) -> Tile:
    if not report.n_reports:
        return Tile(indicator=report.indicator, report=report)
    summary = estimates_texts.report_summary(report, options=OPTIONS)
    if report.cuts is not None:
        figure = survival_figure(report, options=OPTIONS)
        return Tile(indicator=report.indicator, report=report, figure=figure, summary=summary)
    first = tuple(ordered(report, options=OPTIONS)[:MOST_BARS])
    return Tile(
        indicator=report.indicator,
        report=report,
        figure=charts.report_figure(replace(report, estimates=first), options=OPTIONS),
        summary=summary,
        left_out=len(report.estimates) - len(first),
    )
