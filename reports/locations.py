"""Reported places of a window, as counts on the grid. Never points of a person."""

from dataclasses import dataclass
from datetime import date

import numpy as np
from django.utils.translation import gettext
from numpy.typing import NDArray

from ldp import PlanSpec, union
from reports.geography.stored import GridMap
from reports.location_statement import LocationProtection, location_protection
from reports.models import DayNote, LocationTally, Plan, Study
from reports.selectors import UnionNotAvailableError, Window, unions_of
from reports.status import Status, window_status

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LocationReport:
    """Noisy counts of one window, with the plan that they were collected under.

    counts : int64 (n_y, n_x), reports by square; None where the small-cell rule suppresses the window, as are
        the numbers of visitors and of reports
    grid_map : the grid, and zone and land of its squares
    """

    study: Study
    window: Window
    first_date: date
    last_date: date
    plan: Plan
    protection: LocationProtection
    grid_map: GridMap
    counts: Counts | None
    n_visitors: int | None
    n_reports: int | None
    status: Status
    notes: tuple[DayNote, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Locations:
    """All reported places of a study, ready to be cut into windows; each is read once.

    counts : int64 (squares, days + 1, days + 1), visitors : int64 (days + 1, days + 1) by window
    """

    study: Study
    plan: Plan
    protection: LocationProtection
    grid_map: GridMap
    counts: Counts
    visitors: Counts
    notes: tuple[DayNote, ...]

    @property
    def has_unions(self) -> bool:
        """Whether a union of several days can be counted: everyone reports on each present day."""
        return self.protection.spec.max_values in (None, self.study.days)

    def report(self, window: Window) -> LocationReport:
        """Counts of a window.

        Raises
        ------
        UnionNotAvailableError : a union of days of places that people report on some days only
        """
        self._check_union(window)
        days = {"first_day": window.first_day, "last_day": window.last_day}
        counts = union(self.counts, **days)
        n_visitors, n_reports = int(self.visitors[window.first_day, window.last_day]), int(counts.sum())
        outages = {note.day for note in self.notes if note.kind == DayNote.Kind.OUTAGE}
        status = window_status(
            n_visitors=n_visitors,
            n_reports=n_reports,
            small_cell=self.study.small_cell,
            is_outage=outages.issuperset(range(window.first_day, window.last_day + 1)),
        )
        is_hidden = status == Status.SUPPRESSED
        return LocationReport(
            study=self.study,
            window=window,
            first_date=self.study.date_of(window.first_day),
            last_date=self.study.date_of(window.last_day),
            plan=self.plan,
            protection=self.protection,
            grid_map=self.grid_map,
            counts=None if is_hidden else counts.reshape(self.grid_map.grid.shape),
            n_visitors=None if is_hidden else n_visitors,
            n_reports=None if is_hidden else n_reports,
            status=status,
            notes=tuple(note for note in self.notes if window.first_day <= note.day <= window.last_day),
        )

    def _check_union(self, window: Window) -> None:
        if window.days > 1 and not self.has_unions:
            text = gettext(
                "window of places must be a single day: people report them on %(n)d of %(days)d days, got "
                "days %(first)d to %(last)d"
            )
            days = {"first": window.first_day, "last": window.last_day, "days": self.study.days}
            raise UnionNotAvailableError(text % {**days, "n": self.protection.spec.max_values})


def locations_of(study: Study) -> Locations | None:
    """Reported places of a study; None of a study that asks for none."""
    # One statement: between two, a publication could land, and there would be more reports than visitors.
    tallies = LocationTally.objects.filter(plan__study=study)
    related = tallies.select_related("plan__study__visitor_tally", "plan__study__area")
    tally = related.order_by("-plan__version").first()
    if tally is None:
        return None
    plan = tally.plan
    protection = location_protection(PlanSpec.from_json(plan.spec), extra_days=plan.voided_days)
    grid_map = plan.study.area.grid_map
    if protection is None or grid_map is None:
        raise ValueError(f"the tally of places of {study.slug} must have a plan and an area with its grid")
    return Locations(
        study=study,
        plan=plan,
        protection=protection,
        grid_map=grid_map,
        counts=tally.array,
        visitors=unions_of(plan.study.visitor_tally),
        notes=tuple(study.day_notes.all()),
    )
