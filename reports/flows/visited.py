"""Zones that people visit on a day, and pairs of them: figures, with what is larger than noise."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Final

import numpy as np
from django.http import QueryDict
from django.utils.translation import gettext
from numpy.typing import NDArray

from ldp.estimation.joint.moves import moves_of_values
from ldp.privacy.moves import MoveSpec
from reports.base.status import Status
from reports.crosstab.queries import Figure
from reports.crosstab.query import INDICATOR
from reports.estimates.picker import window_query
from reports.estimates.queries import Window, WindowError, WindowReport
from reports.flows.queries import days_of_items, items_figures
from reports.flows.query import asked_days
from reports.studies.models import Area, Indicator, Study
from reports.studies.queries import current_plan

MOST_SHOWN: Final = 500  # rows of the page's table: of more, only those that are larger than noise


@dataclass(frozen=True, kw_only=True)
class VisitedItems:
    """An indicator of visited zones, or of pairs of them; the code of an item is its place in the lists."""

    indicator: Indicator
    spec: MoveSpec
    area: Area

    @property
    def in_pairs(self) -> bool:
        return self.spec.items == "pairs"

    @property
    def names(self) -> list[tuple[str, ...]]:
        """One or two zones of each item, in the active language."""
        return self._items(self.area.shown_zones)

    @property
    def file_names(self) -> list[tuple[str, ...]]:
        """Zones of each item in files, which are the same in each language."""
        return self._items(self.area.zones)

    @property
    def is_complete(self) -> bool:
        """Return whether every item of a day counts in full, as no one can have more of them."""
        return self.spec.per_day >= self.spec.nothing

    def _items(self, zones: Sequence[str]) -> list[tuple[str, ...]]:
        return list(combinations(zones, 2 if self.in_pairs else 1))


@dataclass(frozen=True, kw_only=True)
class Visited:
    """Visitors of each zone, or of both zones of each pair, on a day: of several days, visitor-days.

    Parameters
    ----------
    reports : of each day that has figures
    n_days_missing : days without figures, which no sum contains
    n_people, n_reports : visitors of the network that shares are of, or visitor-days, and reports
    figures : by code of the item
    is_listed : bool, shape (items,); those that someone surely visited, all right at once in 95%
    """

    items: VisitedItems
    window: Window
    reports: tuple[WindowReport, ...]
    n_days_missing: int
    n_people: int
    n_reports: int
    figures: list[Figure]
    is_listed: NDArray[np.bool_]

    @property
    def is_reliable(self) -> bool:
        """Return whether items have figures to show."""
        return all(each.status != Status.NOT_RELIABLE for each in self.figures)

    @cached_property
    def listed(self) -> list[int]:
        """Codes of the items that are surely not noise and have figures to show, the largest first."""
        found = np.flatnonzero(self.is_listed).tolist()
        return self._largest([code for code in found if self.figures[code].status == Status.OK])

    @cached_property
    def shown(self) -> list[int]:
        """Codes of a page's table: the list, and then all others if they are not too many."""
        others = sorted({*range(len(self.figures))} - {*self.listed})
        return self.listed + (self._largest(others) if len(self.figures) <= MOST_SHOWN else [])

    def _largest(self, codes: list[int]) -> list[int]:
        return sorted(codes, key=lambda code: -(self.figures[code].visitors or 0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitedView:
    """Contents of the page."""

    items: VisitedItems
    window: Window

    def query(self, kept: str = "") -> str:
        """The view as a part of an address: `kept`, by default its days, and the indicator."""
        days = kept or window_query(self.items.indicator.study, self.window)
        return f"{days}&{INDICATOR}={self.items.indicator.slug}"


def visited_items(study: Study) -> list[VisitedItems]:
    """Indicators of visited zones and of pairs of them, in plan order."""
    area = Area.objects.filter(study=study).first()
    specs = {
        each.slug: each.moves
        for each in current_plan(study).parsed.indicators
        if each.moves is not None and each.moves.items != "moves"
    }
    found = study.indicators.select_related("study").filter(slug__in=specs).order_by("position")
    return [
        VisitedItems(indicator=each, spec=spec, area=area)
        for each in found
        if area is not None and (spec := specs[each.slug]) is not None
    ]


def visited_view(query: QueryDict, found: Sequence[VisitedItems]) -> VisitedView:
    """The view that an address asks for, by default of all days and the first of `found`.

    Raises
    ------
    WindowError : the address names something that there is not
    """
    slug = query.get(INDICATOR, "")
    items = next((each for each in found if slug in ("", each.indicator.slug)), None)
    if items is None:
        known = ", ".join(each.indicator.slug for each in found)
        text = gettext(
            "This study has no indicator of visited zones named “%(name)s”. Available indicators: %(known)s."
        )
        raise WindowError(text % {"name": slug[:40], "known": known})
    return VisitedView(items=items, window=asked_days(query, items.indicator.study))


def visited_of(items: VisitedItems, window: Window) -> Visited:
    """Visits of a window, summed over its days. NoFlowsError if no day has answers that may be shown."""
    measured = days_of_items(items.indicator, window)
    shares = moves_of_values(measured.days, spec=items.spec)
    study, per_day = items.indicator.study, items.spec.per_day
    figures = items_figures(shares, measured, study=study, per_day=per_day)
    return Visited(
        items=items,
        window=window,
        reports=measured.reports,
        n_days_missing=measured.n_missing,
        n_people=measured.n_people,
        n_reports=measured.n_reports,
        figures=figures[: items.spec.nothing],
        is_listed=measured.are_someones(np.arange(items.spec.nothing)),
    )
