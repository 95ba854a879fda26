"""Figures of the tiles of a board in one window: each tally is read once, however many tiles show it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, NamedTuple

from django.urls import reverse
from django.utils.translation import gettext, ngettext

from ldp.estimation.windows import IndicatorTallies
from reports.base import formats
from reports.base.status import Status
from reports.boards.models import Board
from reports.boards.offers import titles
from reports.boards.tiles import OF_INDICATORS, Kind, Tile, read_tiles
from reports.crosstab.queries import NoCrosstabError
from reports.estimates import charts
from reports.estimates import texts as estimates_texts
from reports.estimates.coverage import DayCoverage, coverage_of
from reports.estimates.derived import key_figures
from reports.estimates.loading import Loaded, tallies_of
from reports.estimates.noise import has_totals, noisy_window
from reports.estimates.options import ReportOptions, largest, shown_value
from reports.estimates.picker import window_query
from reports.estimates.queries import (
    Counts,
    Estimate,
    Window,
    WindowReport,
    loaded_reports,
)
from reports.estimates.texts import KeyFact
from reports.flows import texts as flows_texts
from reports.flows.pairs import place_pairs
from reports.flows.queries import Flows, NoFlowsError, flows_of
from reports.flows.top_lists import TopList, top_list
from reports.flows.visited import Visited, visited_items, visited_of
from reports.maps.views import map_context
from reports.maps.zones import classes_names, mapped, zones_of
from reports.numbers import texts as numbers_texts
from reports.numbers.charts import survival_figure
from reports.numbers.queries import number_of
from reports.studies.models import Indicator
from reports.studies.queries import has_unions
from reports.studies.texts import status_reason

MOST_BARS: Final = 6  # of a chart
MOST_WIDE: Final = 12  # of a wide one
_AS_IT_IS: Final = ReportOptions()


class Table(NamedTuple):
    """Words of a table; the first cell of each row is its name."""

    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A tile with its figures in a window.

    Parameters
    ----------
    page : address of the page of the figures, with the days; "" if there is none
    blank : why there are no figures, in words; "" if there are
    options : how charts and maps show them
    summary : the figures in words, for readers who see no chart
    drawn : the report with the categories of the chart, in its order
    left_out : number of categories that the chart does not show, the smallest ones
    table : figures of a study of events; with a chart they are folded
    """

    tile: Tile
    title: str
    page: str = ""
    blank: str = ""
    options: ReportOptions = _AS_IT_IS
    summary: str = ""
    report: WindowReport | None = None
    figure: charts.Figure | None = None
    drawn: WindowReport | None = None
    left_out: int = 0
    facts: tuple[KeyFact, ...] = ()
    days: tuple[DayCoverage, ...] = ()
    top: TopList | None = None
    map: Mapping[str, Any] | None = None
    table: Table | None = None

    @property
    def name(self) -> str:
        """Name of the figure in the page."""
        return f"figure-{self.tile.key}"

    @property
    def map_name(self) -> str:
        """Name of the data of the map in the page."""
        return f"map-{self.tile.key}"

    @property
    def class_choices(self) -> list[tuple[str, str]]:
        """Values and names of the buttons that choose the classes of a map."""
        return list(classes_names().items()) if self.tile.kind == Kind.MAP else []

    @property
    def rows(self) -> list[tuple[str, str, str, str]]:
        """Values of the chart as a table: category, value, status if there is none, interval."""
        if self.drawn is None:
            return []
        return [_row(self.drawn, each, options=self.options) for each in self.drawn.estimates]

    @property
    def left_words(self) -> str:
        """Say that the chart does not show some categories."""
        return ngettext(
            "%(n)s smaller category is not shown.", "%(n)s smaller categories are not shown.", self.left_out
        ) % {"n": self.left_out}

    @property
    def largest(self) -> list[tuple[str, str, str]]:
        """Rows of the largest flows: names, and cells of the table."""
        if self.top is None:
            return []
        return [
            (
                self.top.between.join(names),
                flows_texts.people_cell(figure),
                flows_texts.share_cell(figure, of_moves=self.top.of_moves),
            )
            for names, figure in self.top.rows
        ]


def study_tiles(indicators: Sequence[Indicator]) -> list[Tile]:
    """Tiles of a study's page: a chart or the largest moves of each indicator, then one map of zones."""
    on_map = mapped(indicators)
    kinds = [(Kind.INDICATOR if each.max_moves is None else Kind.FLOWS, each.slug) for each in indicators]
    if on_map is not None:
        kinds.append((Kind.MAP, on_map.slug))
    return [Tile(key=place, kind=kind, of=slug) for place, (kind, slug) in enumerate(kinds, start=1)]


def board_context(
    board: Board,
    indicators: Sequence[Indicator],
    window: Window,
    *,
    visitors: Counts,
    with_hidden: bool = False,
) -> dict[str, Any]:
    """Contents of a board in a window, for its page and share links; `indicators` are all of the study."""
    tiles = [tile for tile in read_tiles(board.tiles) if with_hidden or not tile.is_hidden]
    shown = shown_tiles(indicators, tiles, window, visitors=visitors)
    return {
        "study": board.study,
        "board": board,
        "tiles": shown,
        "chart_notes": chart_notes(shown),
        "has_charts": any(each.figure for each in shown),
        "has_bars": any(each.tile.kind == Kind.INDICATOR and each.figure for each in shown),
        "has_maps": any(each.map for each in shown),
    }


def chart_notes(tiles: Sequence[Shown]) -> list[str]:
    """Say once for all charts and maps why some have no estimates, and explain their categories."""
    reports = [(each, each.report) for each in tiles if each.report is not None and not each.blank]
    reasons = [each.summary for each, report in reports if report.status != Status.OK]
    explained = [note for _, report in reports for note in estimates_texts.category_notes(report)]
    return list(dict.fromkeys(filter(None, (*reasons, *explained))))


def shown_tiles(
    indicators: Sequence[Indicator], tiles: Sequence[Tile], window: Window, *, visitors: Counts
) -> list[Shown]:
    """Figures of tiles, in their order.

    Parameters
    ----------
    indicators : all of the study
    visitors : `visitor_unions` of the study
    """
    return _Contents(indicators, tiles, window, visitors).shown()


class _Contents:
    """All that the tiles of a board show."""

    def __init__(
        self, indicators: Sequence[Indicator], tiles: Sequence[Tile], window: Window, visitors: Counts
    ) -> None:
        self.study, self.tiles, self.window, self.visitors = indicators[0].study, tiles, window, visitors
        self.query = window_query(self.study, window)
        self.indicators = {each.slug: each for each in indicators}
        self.reports: dict[str, tuple[WindowReport, Loaded]] = {}

    def shown(self) -> list[Shown]:
        if not has_totals(self.study, self.visitors):
            return [self._without_data(tile) for tile in self.tiles]
        self._read()
        return [self._shown(tile) for tile in self.tiles]

    def _read(self) -> None:
        """Read the report of every indicator."""
        charts_of = {tile.of for tile in self.tiles if tile.kind in (Kind.INDICATOR, Kind.NUMBER, Kind.MAP)}
        found = [each for slug, each in self.indicators.items() if slug in charts_of and self._is_there(each)]
        for (report,), loaded in loaded_reports(found, [[self.window]] * len(found)):
            self.reports[report.indicator.slug] = report, loaded

    def _is_there(self, indicator: Indicator) -> bool:
        return self.window.days == 1 or has_unions(indicator)

    def _shown(self, tile: Tile) -> Shown:
        if tile.kind == Kind.TEXT:
            return self._text(tile)
        if tile.kind == Kind.FIGURES:
            return self._figures(tile)
        if tile.kind == Kind.VISITORS:
            return self._visitors(tile)
        if tile.of not in self.indicators:
            return self._blank(tile, gettext("These figures are not available for this study."))
        if tile.kind == Kind.FLOWS:
            return self._flows(tile)
        if tile.of not in self.reports:
            return self._blank(tile, gettext("Only single days are available for this indicator."))
        return self._of_report(tile, *self.reports[tile.of])

    def _blank(self, tile: Tile, words: str) -> Shown:
        return Shown(tile=tile, title=self._title(tile), page=self._page(tile), blank=words)

    def _without_data(self, tile: Tile) -> Shown:
        if tile.kind == Kind.TEXT:
            return self._text(tile)
        return self._blank(tile, gettext("No data has been published for this study yet."))

    def _text(self, tile: Tile) -> Shown:
        return Shown(tile=tile, title=tile.title)

    def _figures(self, tile: Tile) -> Shown:
        found = key_figures(self.study, visitors=self.visitors, window=self.window)
        facts = estimates_texts.key_facts(found)
        noisy = noisy_window(self.study, self.visitors, **self.window._asdict())
        if noisy is not None:
            facts = [estimates_texts.noisy_fact(noisy)]
        blank = "" if facts else status_reason(found.status, self.study)
        return Shown(tile=tile, title=self._title(tile), facts=tuple(facts), blank=blank)

    def _visitors(self, tile: Tile) -> Shown:
        days = self._coverage[self.window.first_day - 1 : self.window.last_day]
        return Shown(
            tile=tile,
            title=self._title(tile),
            days=days,
            figure=charts.visitors_figure(self.study, days),
            summary=gettext("Number of visitors on each day (days shown: %(n)d).") % {"n": len(days)},
        )

    @cached_property
    def _coverage(self) -> tuple[DayCoverage, ...]:
        return coverage_of(self.study, visitors=self.visitors, notes=self.study.day_notes.all()).days

    def _flows(self, tile: Tile) -> Shown:
        try:
            found = self._flows_or_visits(tile.of)
        except NoFlowsError as error:
            return self._blank(tile, status_reason(error.status, self.study))
        except NoCrosstabError as error:
            return self._blank(tile, str(error))
        if found is None:
            return self._blank(tile, gettext("These figures are not available for this study."))
        return Shown(tile=tile, title=self._title(tile), page=self._page(tile), top=top_list(found))

    def _flows_or_visits(self, slug: str) -> Flows | Visited | None:
        for items in visited_items(self.study):
            if items.indicator.slug == slug:
                return visited_of(items, self.window)
        pair = next((each for each in place_pairs(self.study) if each.indicator.slug == slug), None)
        if pair is None or not (pair.is_daily or self._is_there(pair.indicator)):
            return None
        return flows_of(pair, self.window)

    def _of_report(self, tile: Tile, report: WindowReport, loaded: Loaded) -> Shown:
        options = _options(tile)
        shown = Shown(
            tile=tile,
            title=self._title(tile),
            page=self._page(tile),
            options=options,
            report=report,
            summary=estimates_texts.report_summary(report, options=options),
        )
        if not report.n_reports:
            words = status_reason(report.status, self.study) or gettext("No answers on these days.")
            return replace(shown, blank=words)
        if tile.kind == Kind.NUMBER:
            return self._number(shown, report, tallies_of(loaded))
        if tile.kind == Kind.MAP:
            zones = zones_of(report.indicator)
            found = map_context(report, zones=zones, options=options)
            return replace(shown, map=found | {"options": options})
        return _chart(shown, report)

    def _number(self, shown: Shown, report: WindowReport, tallies: IndicatorTallies) -> Shown:
        number = number_of(report, tallies)
        facts = tuple(numbers_texts.facts_of(number))
        blank = "" if facts else numbers_texts.mean_sentence(number)
        return replace(shown, summary=numbers_texts.mean_sentence(number), facts=facts, blank=blank)

    @cached_property
    def _visited(self) -> set[str]:
        return {items.indicator.slug for items in visited_items(self.study)}

    def _title(self, tile: Tile) -> str:
        if tile.kind not in OF_INDICATORS:
            return titles()[tile.kind]
        indicator = self.indicators.get(tile.of)
        name = {"name": indicator.shown_name if indicator else tile.of}
        if tile.kind == Kind.NUMBER:
            return gettext("%(name)s: mean and median") % name
        if tile.kind == Kind.FLOWS:
            if tile.of in self._visited:
                return gettext("%(name)s: most visited") % name
            return gettext("%(name)s: largest flows") % name
        if tile.kind == Kind.MAP:
            return gettext("%(name)s: map") % name
        return gettext("%(name)s: visitors") % name if tile.measure == "visitors" else name["name"]

    def _page(self, tile: Tile) -> str:
        """Address of the page with all figures of a tile."""
        slug = self.study.slug
        if tile.of not in self.indicators:
            return ""
        if tile.kind == Kind.FLOWS:
            page = "visited" if tile.of in self._visited else "flows"
            return f"{reverse(f'reports:{page}', args=[slug])}?indicator={tile.of}&{self.query}"
        if not self._is_there(self.indicators[tile.of]):
            return reverse("reports:days", args=[slug, tile.of])
        return f"{reverse('reports:indicator', args=[slug, tile.of])}?{_options(tile).query(self.query)}"


def _options(tile: Tile) -> ReportOptions:
    view = "map" if tile.kind == Kind.MAP else "both"
    return ReportOptions(measure=tile.measure, classes=tile.classes, view=view)


def _chart(shown: Shown, report: WindowReport) -> Shown:
    options = shown.options
    if report.cuts is not None:
        return replace(shown, figure=survival_figure(report, options=options), drawn=report)
    most = MOST_WIDE if shown.tile.is_wide else MOST_BARS
    first = tuple(largest(report, options=options, most=most))
    drawn = replace(report, estimates=first)
    left_out = len(report.estimates) - len(first)
    figure = charts.report_figure(drawn, options=options)
    return replace(shown, figure=figure, drawn=drawn, left_out=left_out)


def _row(report: WindowReport, estimate: Estimate, *, options: ReportOptions) -> tuple[str, str, str, str]:
    found, is_ok = shown_value(report, estimate, options=options), estimate.status == Status.OK
    if estimate.below is not None:
        return estimate.shown_category, formats.reason_words(estimate), "", ""
    return (
        estimate.shown_category,
        formats.amount(found.value, options.measure) if is_ok else "",
        "" if is_ok else str(estimate.status),
        formats.amount_range(found.low, found.high, options.measure),
    )
