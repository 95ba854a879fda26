"""Tiles that a study offers: what can be added to a board, and what a new board begins with."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from django.utils.translation import gettext

from reports.boards.tiles import Kind, Tile, with_tile
from reports.flows.pairs import place_pairs
from reports.flows.visited import visited_items
from reports.forecasts.actions import has_days_forecast
from reports.maps.zones import mapped, zones_of
from reports.studies.models import Study
from reports.studies.queries import current_plan

FIRST_CHARTS: Final = 2  # of indicators that are proposed for a new board


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A tile that can be added; `name` is that of the indicator, "" of other kinds."""

    kind: Kind
    of: str = ""
    name: str = ""

    @property
    def value(self) -> str:
        """Name of the offer in a form."""
        return f"{self.kind}:{self.of}"


def offers_of(study: Study) -> list[Offer]:
    """All tiles of a study, by kind, indicators in plan order."""
    if study.of_events:
        return [Offer(kind=Kind.EVENTS), *_of_events(study), Offer(kind=Kind.TEXT)]
    return [
        Offer(kind=Kind.FIGURES),
        Offer(kind=Kind.VISITORS),
        *_of_indicators(study),
        Offer(kind=Kind.TEXT),
    ]


def titles() -> dict[Kind, str]:
    """Names of the kinds, as pages call them."""
    return {
        Kind.FIGURES: gettext("Key figures"),
        Kind.VISITORS: gettext("Visitors per day"),
        Kind.EVENTS: gettext("Number of events"),
        Kind.INDICATOR: gettext("Indicators"),
        Kind.NUMBER: gettext("Mean and median"),
        Kind.MAP: gettext("Maps"),
        Kind.FLOWS: gettext("Flows"),
        Kind.FORECAST: gettext("Forecasts of the next period"),
        Kind.TEXT: gettext("Text"),
    }


def all_figures(study: Study) -> list[Offer]:
    """One of each sort, and every indicator whose combinations are not its subject."""
    pairs = {pair.indicator.slug for pair in place_pairs(study)}
    return [
        offer
        for offer in offers_of(study)
        if offer.kind != Kind.TEXT and not (offer.kind == Kind.INDICATOR and offer.of in pairs)
    ]


def proposed(study: Study) -> list[Offer]:
    """Figures for one page: totals, charts of the first indicators, and one map or forecast."""
    on_map = None if study.of_events else mapped(list(study.indicators.all()))
    offers = all_figures(study)
    forecasts = [each for each in offers if each.kind == Kind.FORECAST]
    charts = [
        each for each in offers if each.kind == Kind.INDICATOR and (not on_map or each.of != on_map.slug)
    ]
    others = {Kind.FIGURES: "", Kind.VISITORS: "", Kind.EVENTS: "", Kind.MAP: on_map and on_map.slug}
    chosen = [*charts[:FIRST_CHARTS], *forecasts[:1]]
    return [each for each in offers if others.get(each.kind) == each.of or each in chosen]


def tiles_of(offers: Sequence[Offer]) -> list[Tile]:
    """Tiles of a new board, in the order of the offers."""
    tiles: list[Tile] = []
    for offer in offers:
        tiles = with_tile(tiles, offer.kind, of=offer.of)
    return tiles


def _of_events(study: Study) -> Iterator[Offer]:
    kinds = [Kind.INDICATOR, Kind.FORECAST] if has_days_forecast(study) else [Kind.INDICATOR]
    for kind in kinds:
        for each in study.indicators.all():
            yield Offer(kind=kind, of=each.slug, name=each.shown_name)


def _of_indicators(study: Study) -> Iterator[Offer]:
    indicators = list(study.indicators.all())
    specs = {each.slug: each for each in current_plan(study).parsed.indicators}
    for each in indicators:
        if each.max_moves is None:  # moves and visits are lists only
            yield Offer(kind=Kind.INDICATOR, of=each.slug, name=each.shown_name)
    for each in indicators:
        if specs[each.slug].scale is not None:
            yield Offer(kind=Kind.NUMBER, of=each.slug, name=each.shown_name)
    for each in indicators:
        if zones_of(each):
            yield Offer(kind=Kind.MAP, of=each.slug, name=each.shown_name)
    for pair in place_pairs(study):
        yield Offer(kind=Kind.FLOWS, of=pair.indicator.slug, name=pair.indicator.shown_name)
    for items in visited_items(study):
        yield Offer(kind=Kind.FLOWS, of=items.indicator.slug, name=items.indicator.shown_name)
