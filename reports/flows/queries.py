"""Figures of flows: visitors, visitor-days or moves by pair of places, with what is larger than noise."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ldp.estimation.joint.crosstab import Reports, Shares, shares_of
from ldp.estimation.joint.flows import sums_of_sets, sums_of_values
from ldp.estimation.joint.moves import MoveDay, balanced_moves, move_day, moves_of_sets, moves_of_values
from ldp.estimation.multiple import above_zero
from ldp.estimation.unions import union
from ldp.privacy.moves import MoveSpec
from reports.base.status import Status
from reports.crosstab.joints import Codes, Joint
from reports.crosstab.queries import MAX_CELLS, Figure, blank_figure, figures_of_whole, measure_all
from reports.estimates.queries import LEVEL, Window, WindowReport, reports_with_tallies
from reports.flows.pairs import PlacePair
from reports.studies.models import Indicator, Study

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

    Of moves they are moves, and shares are moves per visitor-day.

    Parameters
    ----------
    reports : of the window, or of each of its days that has figures
    n_days_missing : days without figures, which no sum contains
    n_people, n_reports : visitors of the network that figures are parts of, or visitor-days, and reports
    cells : by code of the origin, then of the destination; none where there would be too many
    is_listed : bool, shape (origins, destinations); pairs that someone surely has, all right at once in 95%
    outflow, inflow : totals by origin, and by destination
    moving, staying : of two zones that differ, and of one and the same; None unless both parts are zones
    whole : all moves; None of people
    balanced : float64, as `cells`; the nearest moves of which as many reach each place as leave it; or None
    answers : of the window, if it is a single one, for further questions
    consistent : of people, consistent amounts by code of the joint indicator; None of moves
    """

    pair: PlacePair
    window: Window
    reports: tuple[WindowReport, ...]
    n_days_missing: int
    n_people: int
    n_reports: int
    cells: list[list[Figure]]
    is_listed: NDArray[np.bool_]
    outflow: list[Figure]
    inflow: list[Figure]
    moving: Figure | None
    staying: Figure | None
    whole: Figure | None = None
    balanced: NDArray[np.float64] | None = None
    answers: Reports | None
    consistent: NDArray[np.float64] | None = None

    @property
    def of_days(self) -> bool:
        """Return whether people are counted once on each of several days."""
        return self.pair.is_daily and self.window.days > 1

    @property
    def listed(self) -> list[Flow]:
        """Pairs of two places that are surely not noise and have figures to show, the largest first."""
        # People without a place are no flow; to or from outside they move.
        shown = self.is_listed if self.pair.moves is not None else self.is_listed[:-1, :-1]
        found = [
            Flow(origin=row, destination=column, figure=self.cells[row][column])
            for row, column in np.argwhere(shown).tolist()
            if self.cells[row][column].status == Status.OK
        ]
        return sorted(found, key=lambda flow: -(flow.figure.visitors or 0.0))

    @property
    def n_pairs(self) -> int:
        """Number of pairs that may be listed."""
        rows, columns = self.is_listed.shape
        return int((rows if self.pair.moves is not None else rows - 1) * (columns - 1))

    @property
    def is_reliable(self) -> bool:
        """Return whether pairs have figures to show, apart from those that a rule hides."""
        return all(each.status != Status.NOT_RELIABLE for row in self.cells for each in row)

    def shown(self, values: str) -> "Flows":
        """The flows with "consistent" or "unbiased" values."""

        def of(figures: list[Figure]) -> list[Figure]:
            return [each.shown(values) for each in figures]

        return replace(
            self,
            cells=[of(row) for row in self.cells],
            outflow=of(self.outflow),
            inflow=of(self.inflow),
            moving=None if self.moving is None else self.moving.shown(values),
            staying=None if self.staying is None else self.staying.shown(values),
        )

    def is_possible(self, origin: int, destination: int) -> bool:
        """Return whether there can be such a pair: no one moves from a place to itself."""
        return self.pair.moves is None or origin != destination

    def catchment(self, destination: int) -> list[tuple[Flow, Figure | None]]:
        """Origins of the people at a destination, the largest first.

        With the share of each among them on a single day; of several days it has no exact interval.
        """
        flows = [
            Flow(origin=row, destination=destination, figure=cells[destination])
            for row, cells in enumerate(self.cells)
            if self.is_possible(row, destination)
        ]
        within: list[Figure | None] = [None] * len(flows)
        codes = self.pair.codes[[flow.origin for flow in flows]][:, [destination]]
        if self.answers is not None and blank_figure(self.reports, codes) is None:
            consistent = None
            if self.consistent is not None:
                shares = self.consistent[codes.ravel()]
                consistent = shares / max(shares.sum(), np.finfo(np.float64).tiny)
            found = shares_of(self.answers, parts=codes)
            within = [*_of_whole(found, total=1.0, scale=None, consistent=consistent)]
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
    windows = by_day if pair.is_daily else [window]
    if pair.moves is not None:
        return _moves(pair, window, spec=pair.moves)
    if pair.joint is None:
        raise ValueError(f"{pair.indicator.slug} must be a joint indicator or moves")
    return _people(pair, window, windows, joint=pair.joint)


def _people(pair: PlacePair, window: Window, windows: Sequence[Window], *, joint: Joint) -> Flows:
    measured = measure_all(joint, windows, full=0)
    there = [each for each in measured if each.reports is not None and each.report.status != Status.OUTAGE]
    if not there:
        raise NoFlowsError(measured[0].report.status)
    days = tuple(each.reports for each in there if each.reports is not None)
    total = float(sum(day.n_population for day in days))
    scale = 1 / float(pair.indicator.study.market_share)

    # On each day as its report has them, so that all pages show the same numbers.
    consistent = np.sum(
        [each.n_population * of.consistent for each, of in zip(days, there, strict=True)], axis=0
    )

    def figures(found: Shares, sets: Iterable[Codes] | None = None) -> list[Figure]:
        amounts = consistent if sets is None else np.array([consistent[of].sum() for of in sets])
        return _of_whole(found, total=total, scale=scale, consistent=amounts)

    codes, of_days = pair.codes, [each.report for each in there]
    hidden = np.zeros(codes.size, np.bool_)
    if pair.indicator.study.small_category:
        hidden = np.any([[each.is_hidden for each in report.estimates] for report in of_days], axis=0)

    def kept(found: list[Figure], sets: Iterable[Codes]) -> list[Figure]:
        """Figures that are made of shown pairs only."""
        if not hidden.any():
            return found
        return [blank_figure(of_days, of) or each for each, of in zip(found, sets, strict=True)]

    counts = np.stack([each.counts for each in there])
    listed = above_zero(
        counts, n_reports=[day.n_reports for day in days], channel=days[0].channel, error=1 - LEVEL
    )
    both = sums_of_sets(days, [pair.moving, pair.staying]) if pair.has_zones_at_both_ends else None
    ends = [pair.moving, pair.staying]
    moving, staying = (None, None) if both is None else kept(figures(both, ends), ends)
    return Flows(
        pair=pair,
        window=window,
        reports=tuple(each.report for each in there),
        n_days_missing=len(measured) - len(there),
        n_people=sum(day.n_population for day in days),
        n_reports=sum(day.n_reports for day in days),
        cells=_in_rows(kept(figures(sums_of_values(days)), codes.reshape(-1, 1)), codes.shape[1]),
        is_listed=(listed & ~hidden).reshape(codes.shape),
        outflow=kept(figures(sums_of_sets(days, list(codes)), codes), codes),
        inflow=kept(figures(sums_of_sets(days, list(codes.T)), codes.T), codes.T),
        moving=moving,
        staying=staying,
        answers=days[0] if len(days) == 1 else None,
        consistent=consistent,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DaysOfItems:
    """Days of an indicator of which a person reports one item a day: those that have figures.

    reports, days : of each of them, at least one
    n_missing : days without figures
    counts : int64, shape (size,); reports of all days that support each item
    """

    reports: tuple[WindowReport, ...]
    days: list[MoveDay]
    n_missing: int
    counts: NDArray[np.int64]
    channel: Any

    @property
    def n_people(self) -> int:
        return sum(day.n_visitors for day in self.days)

    @property
    def n_reports(self) -> int:
        return sum(day.reports.n_reports for day in self.days)

    def are_someones(self, items: Codes) -> NDArray[np.bool_]:
        """Return which of some items someone surely has, all right at once in 95%."""
        # New bits each day: the reports that support an item which no one has add up to one binomial.
        return above_zero(self.counts[items], n_reports=self.n_reports, channel=self.channel, error=1 - LEVEL)


def days_of_items(indicator: Indicator, window: Window) -> DaysOfItems:
    """Read the days of a window. NoFlowsError if none has answers that may be shown."""
    windows = [Window(day, day) for day in range(window.first_day, window.last_day + 1)]
    ((reports, tallies),) = reports_with_tallies([indicator], [windows], full=0)
    there = [each for each in reports if each.n_reports and each.status != Status.OUTAGE]
    if not there:
        raise NoFlowsError(reports[0].status)
    counts = [union(tallies.counts, **each.window._asdict()) for each in there]
    return DaysOfItems(
        reports=tuple(there),
        days=[
            _move_day(each, of_day, channel=tallies.channel)
            for each, of_day in zip(there, counts, strict=True)
        ],
        n_missing=len(reports) - len(there),
        counts=np.sum(counts, axis=0),
        channel=tallies.channel,
    )


def items_figures(found: Shares, measured: DaysOfItems, *, study: Study, per_day: int) -> list[Figure]:
    """Figures of items of all visitors, as shares of the visitor-days."""
    scale = 1 / float(study.market_share)
    return _of_whole(found, total=float(measured.n_people), scale=scale, most=per_day)


def _moves(pair: PlacePair, window: Window, *, spec: MoveSpec) -> Flows:
    measured = days_of_items(pair.indicator, window)
    study, days = pair.indicator.study, measured.days

    def figures(found: Shares) -> list[Figure]:
        return items_figures(found, measured, study=study, per_day=spec.per_day)

    codes, is_edge = pair.codes, ~np.eye(len(pair.codes), dtype=np.bool_)
    listed = np.zeros(codes.shape, np.bool_)
    listed[is_edge] = measured.are_someones(codes[is_edge])
    sides = [codes[row][is_edge[row]] for row in range(len(codes))]
    others = [codes.T[row][is_edge[row]] for row in range(len(codes))]
    *totals, moving, whole = figures(
        moves_of_sets(days, [*sides, *others, pair.moving, codes[is_edge]], spec=spec)
    )
    return Flows(
        pair=pair,
        window=window,
        reports=measured.reports,
        n_days_missing=measured.n_missing,
        n_people=measured.n_people,
        n_reports=measured.n_reports,
        cells=_in_rows(figures(moves_of_values(days, spec=spec)), len(codes)),
        is_listed=listed,
        outflow=totals[: len(codes)],
        inflow=totals[len(codes) :],
        moving=moving,
        staying=None,
        whole=whole,
        balanced=balanced_moves(days, spec=spec).reshape(codes.shape) / float(study.market_share),
        answers=days[0].reports if len(days) == 1 else None,
    )


def _move_day(report: WindowReport, counts: NDArray[np.int64], *, channel: Any) -> MoveDay:
    return move_day(
        counts,
        channel=channel,
        n_reports=report.n_reports or 0,
        n_visitors=report.n_visitors or 0,
        level=LEVEL,
    )


def _in_rows(figures: list[Figure], n_columns: int) -> list[list[Figure]]:
    return [figures[start : start + n_columns] for start in range(0, len(figures), n_columns)]


def fits_a_page(flows: Flows) -> bool:
    """Return whether a table of all pairs is of use to readers."""
    return flows.is_listed.size <= MAX_CELLS


def _of_whole(
    found: Shares,
    *,
    total: float,
    scale: float | None,
    most: float = 1.0,
    consistent: NDArray[np.float64] | None = None,
) -> list[Figure]:
    """Figures of amounts, as shares of the total and, with a scale, as people of the population.

    `most` is what an estimated share of 1 stands for: widths are judged by it.
    """
    parts = Shares(**{name: getattr(found, name) / total for name in Shares.__slots__})
    scaled = None if scale is None else total * scale
    values = None if consistent is None else consistent / total
    return figures_of_whole(parts, window=Status.OK, scale=scaled, most=most, consistent=values)
