"""Figures that follow from the tallies alone, at no further epsilon: totals, which are exact.

Presence is counted without noise, so every number here is a count or a ratio of counts and has no
error. Per category see `reports.movement.queries`.
"""

from dataclasses import dataclass
from datetime import date

from reports.base.status import Status, window_status
from reports.estimates.queries import Counts, Window, visitor_unions
from reports.estimates.small_cells import ShownVisitors
from reports.studies.models import Study


@dataclass(frozen=True, slots=True, kw_only=True)
class Returning:
    """Visitors of a window who come back: exact where both bounds are equal, None where they are hidden."""

    least: int | None = None
    most: int | None = None

    @property
    def is_exact(self) -> bool:
        return self.least == self.most


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyFigures:
    """Key figures of a study; all exact, in visitors of the operator (not scaled).

    A visit is one visitor on one day. It is a first one if the visitor was on no earlier day of the study,
    else a return; there are as many first visits as visitors. None where no one has been there yet, or where
    the small-cell rule suppresses so few; `status` says which. Where it suppresses a single day, or few
    visits are returns, `n_visits` and what is made of it are None, too: they would reveal these few.

    `several_days` are visitors of more than one day of the window, None if it has no such figure; `before`
    are those who were there on an earlier day of the study, too, None if there is none.
    """

    status: Status
    days_with_visitors: int
    n_visitors: int | None = None
    n_visits: int | None = None
    busiest_day: date | None = None
    busiest_visitors: int | None = None
    mean_days: float | None = None
    several_days: Returning | None = None
    before: Returning | None = None

    @property
    def return_visits(self) -> int | None:
        if self.n_visits is None or self.n_visitors is None:
            return None
        return self.n_visits - self.n_visitors

    @property
    def return_share(self) -> float | None:
        """Share of the visits that are returns, in [0, 1)."""
        returns = self.return_visits
        return None if returns is None or not self.n_visits else returns / self.n_visits


def key_figures(study: Study, *, visitors: Counts | None = None, window: Window | None = None) -> KeyFigures:
    """Key figures of a study over a window, by default all of its days; none of one with presence noise.

    `visitors` is `visitor_unions(study)`, shape (days + 1, days + 1); otherwise it is read (one query).
    """
    unions = visitor_unions(study) if visitors is None else visitors
    first, last = window or (1, study.days)
    daily = unions.diagonal()[first : last + 1]
    n_visitors = int(unions[first, last])
    if study.presence is not None:  # sums and ratios of noisy totals: their errors are not computed
        return KeyFigures(status=Status.NOT_RELIABLE, days_with_visitors=study.noisy_through)
    status = window_status(
        n_visitors=n_visitors, n_reports=n_visitors, small_cell=study.small_cell, is_outage=False
    )
    days_with_visitors = int((daily > 0).sum())
    if status != Status.OK:
        return KeyFigures(status=status, days_with_visitors=days_with_visitors)
    busiest = first + int(daily.argmax())  # the first of equals
    shown = ShownVisitors(study, unions)
    busiest_visitors = shown.of(busiest, busiest)
    # The rule of small cells looks at the visits of all days only.
    is_whole = last - first + 1 == study.days
    several = shown.several_days(first, last)
    n_visits = shown.visits() if is_whole else None if study.small_cell else int(daily.sum())
    return KeyFigures(
        status=status,
        days_with_visitors=days_with_visitors,
        n_visitors=n_visitors,
        n_visits=n_visits,
        busiest_day=None if busiest_visitors is None else study.date_of(busiest),
        busiest_visitors=busiest_visitors,
        mean_days=None if n_visits is None else n_visits / n_visitors,
        several_days=None if several is None else Returning(least=several[0], most=several[1]),
        before=_before(shown, first, last) if first > 1 else None,
    )


def _before(shown: ShownVisitors, first: int, last: int) -> Returning:
    cut = shown.cut((1, first - 1), (first, last))
    return Returning() if cut is None else Returning(least=cut.both, most=cut.both)
