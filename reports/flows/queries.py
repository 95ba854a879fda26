"""Figures of flows: visitors or visitor-days by pair of places, with what is surely larger than noise."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp.estimation.joint.crosstab import Reports, Shares, shares_of
from ldp.estimation.joint.flows import sums_of_sets, sums_of_values
from ldp.estimation.multiple import above_zero
from reports.base.status import Status
from reports.crosstab.queries import MAX_CELLS, Figure, figures_of_whole, measure_all
from reports.estimates.queries import LEVEL, Window, WindowReport
from reports.flows.pairs import PlacePair

LARGEST: Final = 10  # pairs of the short list


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """People of one origin at one destination, by codes of the two parts."""

    origin: int
    destination: int
    figure: Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Flows:
    """People by origin and destination in one window; figures in `visitors` are visitor-days if of days.

    Parameters
    ----------
    reports : of the window, or of each of its days that has figures
    n_days_missing : days without figures, which no sum contains
    cells : by code of the origin, then of the destination; none where there would be too many
    is_listed : bool, shape (origins, destinations); pairs that someone surely has, all right at once in 95%
    outflow, inflow : totals by origin, and by destination
    moving, staying : of two zones that differ, and of one and the same; None unless both parts are zones
    """

    pair: PlacePair
    window: Window
    reports: tuple[WindowReport, ...]
    n_days_missing: int
    cells: list[list[Figure]]
    is_listed: NDArray[np.bool_]
    outflow: list[Figure]
    inflow: list[Figure]
    moving: Figure | None
    staying: Figure | None
    days: tuple[Reports, ...]

    @property
    def of_days(self) -> bool:
        """Return whether people are counted once on each of several days."""
        return self.pair.is_daily and self.window.days > 1

    @property
    def n_people(self) -> int:
        """Visitors of the network that figures are parts of, or their visitor-days."""
        return sum(day.n_population for day in self.days)

    @property
    def listed(self) -> list[Flow]:
        """Pairs of two places that are surely not noise, the largest first."""
        found = [
            Flow(origin=row, destination=column, figure=self.cells[row][column])
            for row, column in np.argwhere(self.is_listed[:-1, :-1]).tolist()
        ]
        return sorted(found, key=lambda flow: -(flow.figure.visitors or 0.0))

    def catchment(self, destination: int) -> list[tuple[Flow, Figure | None]]:
        """Origins of the people at a destination, the largest first.

        With the share of each among them on a single day; of several days it has no exact interval.
        """
        flows = [
            Flow(origin=row, destination=destination, figure=cells[destination])
            for row, cells in enumerate(self.cells)
        ]
        within: list[Figure | None] = [None] * len(flows)
        if len(self.days) == 1:
            codes = self.pair.joint.codes[:, [destination]]
            within = [*_of_whole(shares_of(self.days[0], parts=codes), total=1.0, scale=None)]
        return sorted(zip(flows, within, strict=True), key=lambda each: -(each[0].figure.visitors or 0.0))


class NoFlowsError(ValueError):
    """There are no figures in the window; `status` says why."""

    def __init__(self, status: Status) -> None:
        super().__init__(status)
        self.status = status


def flows_of(pair: PlacePair, window: Window) -> Flows:
    """Flows of a window: of a daily indicator the sum over its days, else each visitor once.

    Raises
    ------
    NoFlowsError : no day has answers that may be shown
    NoCrosstabError : counts have presence noise
    """
    by_day = [Window(day, day) for day in range(window.first_day, window.last_day + 1)]
    measured = measure_all(pair.joint, by_day if pair.is_daily else [window])
    there = [each for each in measured if each.reports is not None and each.report.status != Status.OUTAGE]
    if not there:
        raise NoFlowsError(measured[0].report.status)
    days = tuple(each.reports for each in there if each.reports is not None)
    total = float(sum(day.n_population for day in days))
    scale = 1 / float(pair.indicator.study.market_share)

    def figures(found: Shares) -> list[Figure]:
        return _of_whole(found, total=total, scale=scale)

    codes = pair.joint.codes
    counts = np.stack([each.counts for each in there])
    listed = above_zero(
        counts, n_reports=[day.n_reports for day in days], channel=days[0].channel, error=1 - LEVEL
    )
    cells = figures(sums_of_values(days))
    n_rows, n_columns = codes.shape
    both = sums_of_sets(days, [pair.moving, pair.staying]) if pair.has_zones_at_both_ends else None
    moving, staying = (None, None) if both is None else figures(both)
    return Flows(
        pair=pair,
        window=window,
        reports=tuple(each.report for each in there),
        n_days_missing=len(measured) - len(there),
        cells=[cells[row * n_columns : (row + 1) * n_columns] for row in range(n_rows)],
        is_listed=listed.reshape(codes.shape),
        outflow=figures(sums_of_sets(days, list(codes))),
        inflow=figures(sums_of_sets(days, list(codes.T))),
        moving=moving,
        staying=staying,
        days=days,
    )


def fits_a_page(flows: Flows) -> bool:
    """Return whether a table of all pairs is of use to readers."""
    return flows.is_listed.size <= MAX_CELLS


def _of_whole(found: Shares, *, total: float, scale: float | None) -> list[Figure]:
    """Figures of amounts, as shares of the total and, with a scale, as people of the population."""
    parts = Shares(**{name: getattr(found, name) / total for name in Shares.__slots__})
    return figures_of_whole(parts, window=Status.OK, scale=None if scale is None else total * scale)
