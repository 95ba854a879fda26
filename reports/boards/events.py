"""Tiles of boards of events: the last periods of a kind, and the forecast of the next one."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from django.urls import reverse
from django.utils.translation import gettext

from ldp.estimation.series.forecast import LEVELS
from reports.base import formats
from reports.base.status import Status
from reports.boards.contents import Shown, Table
from reports.boards.models import Board
from reports.boards.offers import titles
from reports.boards.tiles import Kind, Tile, read_tiles
from reports.estimates.options import largest_categories
from reports.estimates.queries import Estimate
from reports.estimates.texts import share_range
from reports.events.charts import counts_figure, shares_figure
from reports.events.periods import PeriodKind
from reports.events.queries import (
    PERIODS_SHOWN,
    PeriodCount,
    PeriodReport,
    known_periods,
    period_counts,
    period_reports,
)
from reports.events.texts import shares_words
from reports.forecasts.queries import event_forecast
from reports.forecasts.texts import event_cells, event_forecast_words, interval_words, no_event_forecast
from reports.studies.models import Indicator
from reports.studies.queries import current_plan
from reports.studies.texts import answered_events_words

_ROWS: Final = 13  # of the forecast: all events, and the largest categories


def events_board_context(
    board: Board, indicators: Sequence[Indicator], kind: PeriodKind, *, with_hidden: bool = False
) -> dict[str, Any]:
    """Contents of a board of events, as `board_context` has them; `indicators` are all of the study."""
    tiles = [tile for tile in read_tiles(board.tiles) if with_hidden or not tile.is_hidden]
    by_slug = {each.slug: each for each in indicators}
    has_events = bool(known_periods(board.study, kind))
    shown = [_tile(board, tile, by_slug, kind, has_events=has_events) for tile in tiles]
    return {
        "study": board.study,
        "board": board,
        "tiles": shown,
        "chart_notes": _notes(board, shown),
        "has_charts": any(each.figure for each in shown),
    }


def _tile(
    board: Board, tile: Tile, indicators: Mapping[str, Indicator], kind: PeriodKind, *, has_events: bool
) -> Shown:
    if tile.kind == Kind.TEXT:
        return Shown(tile=tile, title=tile.title)
    if tile.kind == Kind.EVENTS:
        counts = period_counts(board.study, kind)[-PERIODS_SHOWN:]
        return _counts(tile, counts) if counts else _blank(tile, titles()[Kind.EVENTS])
    indicator, make = indicators.get(tile.of), _MADE.get(tile.kind)
    if indicator is None or make is None:
        title = tile.of or titles()[tile.kind]
        return Shown(tile=tile, title=title, blank=gettext("These figures are not available for this study."))
    return make(tile, indicator, kind) if has_events else _blank(tile, indicator.shown_name)


def _blank(tile: Tile, title: str) -> Shown:
    return Shown(tile=tile, title=title, blank=gettext("No data has been published for this study yet."))


def _counts(tile: Tile, counts: Sequence[PeriodCount]) -> Shown:
    rows = [(_name(each), formats.number(each.n_events)) for each in counts]
    return Shown(
        tile=tile,
        title=titles()[Kind.EVENTS],
        figure=counts_figure(counts),
        summary=gettext("The chart shows the exact number of events in each period."),
        table=Table((gettext("Period"), gettext("Events (exact)")), rows),
    )


def _shares(tile: Tile, indicator: Indicator, kind: PeriodKind) -> Shown:
    periods = period_reports(indicator, known_periods(indicator.study, kind)[-PERIODS_SHOWN:])
    drawn = largest_categories([each.report for each in periods])
    names = [indicator.shown_categories[code] for code in drawn]
    summary = gettext(
        "%(name)s (%(categories)s): estimates for each period, with bands for the 95%% intervals."
    )
    rows = [
        (_name(each), *(_share(each.report.estimates[code]) for code in drawn), formats.number(each.n_events))
        for each in periods
    ]
    return Shown(
        tile=tile,
        title=indicator.shown_name,
        page=_page(indicator, kind),
        figure=shares_figure(periods, shown=drawn),
        summary=summary % {"name": indicator.shown_name, "categories": ", ".join(names)},
        left_out=len(indicator.categories) - len(drawn),
        table=Table((gettext("Period"), *names, gettext("Events (exact)")), rows),
    )


def _forecast(tile: Tile, indicator: Indicator, kind: PeriodKind) -> Shown:
    found = event_forecast(indicator, kind)
    rows = [event_cells(each) for each in found.rows[:_ROWS]]
    return Shown(
        tile=tile,
        title=gettext("%(name)s: forecast") % {"name": indicator.shown_name},
        page=_page(indicator, kind),
        blank=no_event_forecast(found),
        summary=event_forecast_words(found),
        left_out=len(indicator.categories) + 1 - len(rows),
        table=Table((indicator.shown_name, gettext("Forecast"), *map(interval_words, LEVELS)), rows),
    )


_MADE: Final[Mapping[Kind, Callable[[Tile, Indicator, PeriodKind], Shown]]] = {
    Kind.INDICATOR: _shares,
    Kind.FORECAST: _forecast,
}


def _page(indicator: Indicator, kind: PeriodKind) -> str:
    address = reverse("reports:indicator", args=[indicator.study.slug, indicator.slug])
    return f"{address}?period={kind}"


def _name(period: PeriodCount | PeriodReport) -> str:
    return period.name if period.is_whole else f"{period.name} {gettext('(incomplete)')}"


def _share(estimate: Estimate) -> str:
    if estimate.status != Status.OK:
        return formats.status_word(estimate.status)
    return f"{formats.percent(estimate.frequency)} ({share_range(estimate)})"


def _notes(board: Board, tiles: Sequence[Shown]) -> list[str]:
    """Explain shares, forecasts and answers of people with several events, once for all tiles."""
    kinds = {each.tile.kind for each in tiles if not each.blank}
    found = []
    if Kind.INDICATOR in kinds:
        found.append(shares_words())
        if most := current_plan(board.study).parsed.max_events:
            found.append(answered_events_words(most))
    if Kind.FORECAST in kinds:
        found.append(
            gettext(
                "The intervals are for the true number of events, without the noise of answers. They hold if "
                "the model does."
            )
        )
    return found
