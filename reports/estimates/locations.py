"""Reported places of a window, as they were counted: noisy, one report of each visitor who has a place."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
from django.utils.translation import gettext
from numpy.typing import NDArray

from ldp import union
from ldp.geo.location import LocationSpec
from reports.base.status import Status, is_suppressed, window_status
from reports.estimates.models import DayNote
from reports.estimates.queries import Window, WindowError, single_days_of, windows_of
from reports.studies.location_models import LocationTally
from reports.studies.models import Area, Indicator, Study
from reports.studies.plan_models import Plan

Ints = NDArray[np.int64]
_METHOD = b"2"  # of the deconvolution: a new number makes kept maps out of date


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LocationWindow:
    """Reports by square of the grid in one window; counts are int64, shape (n_y, n_x).

    They are exact as counts of reports, but zeros where `status` hides them. Where the small-cell rule
    suppresses the window, n_visitors and n_reports are None.
    """

    study: Study
    plan: Plan
    spec: LocationSpec
    window: Window
    counts: Ints
    n_visitors: int | None
    n_reports: int | None
    status: Status

    def fingerprint(self, area: Area) -> str:
        """SHA-256 of all that a deconvolved map of the window depends on."""
        digest = sha256(_METHOD)
        for part in (self.plan.spec_hash.encode(), self.counts.astype("<i8").tobytes()):
            digest.update(part)
        for field in (area.grid_land, area.grid_zones):
            digest.update(bytes(field or b""))
        digest.update(bytes([area.grid_at_antennas]))
        return digest.hexdigest()


def location_spec(study: Study) -> LocationSpec | None:
    """Return the promise of places in the study's plan in force; None where it has none."""
    plan = study.plans.order_by("-version").first()
    return None if plan is None else plan.parsed.location


def as_indicator(study: Study, spec: LocationSpec) -> Indicator:
    """Places as a daily indicator, which they are to a picker of windows; it is in no database."""
    return Indicator(study=study, slug="maps", kind=Indicator.Kind.DAILY, max_values=spec.max_values)


def windows_with_maps(study: Study, spec: LocationSpec) -> list[Window]:
    """Windows in which places can be counted: unions only where everyone reports on each present day."""
    return windows_of(study) if spec.max_values in (None, study.days) else single_days_of(study)


def check_mapped(window: Window, study: Study, spec: LocationSpec) -> None:
    """Raise WindowError unless places can be counted in the window."""
    if window not in windows_with_maps(study, spec):
        text = gettext(
            "Each person reports a place on only %(n)s of the study's days, so maps are available only "
            "for single days."
        )
        raise WindowError(text % {"n": spec.max_values})


def location_windows(study: Study, windows: Sequence[Window]) -> list[LocationWindow]:
    """Reported places in several windows; LocationTally.DoesNotExist if the plan in force asks for none."""
    tallies = LocationTally.objects.select_related("plan__study__visitor_tally")
    tally = tallies.filter(plan__study=study).order_by("-plan__version")[:1].get()
    plan = tally.plan
    spec = plan.parsed.location
    if spec is None:
        raise LocationTally.DoesNotExist(f"plan {plan} asks for no places")
    square = (study.days + 1, study.days + 1)
    visitors = np.frombuffer(plan.study.visitor_tally.counts, "<i8").reshape(square).astype(np.int64)
    counts = tally.array
    outages = set(study.day_notes.filter(kind=DayNote.Kind.OUTAGE).values_list("day", flat=True))
    return [
        _window(study, plan, spec, window, counts=counts, visitors=visitors, outages=outages)
        for window in windows
    ]


def _window(
    study: Study,
    plan: Plan,
    spec: LocationSpec,
    window: Window,
    *,
    counts: Ints,
    visitors: Ints,
    outages: set[int],
) -> LocationWindow:
    days = window._asdict()
    found = union(counts, **days).reshape(spec.grid.shape)
    n_visitors, n_reports = int(union(visitors, **days)), int(found.sum())
    status = window_status(
        n_visitors=n_visitors,
        n_reports=n_reports,
        small_cell=study.small_cell,
        is_outage=outages.issuperset(range(window.first_day, window.last_day + 1)),
    )
    is_hidden = is_suppressed(n_visitors, small_cell=study.small_cell)
    return LocationWindow(
        study=study,
        plan=plan,
        spec=spec,
        window=window,
        counts=np.zeros_like(found) if is_hidden else found,
        n_visitors=None if is_hidden else n_visitors,
        n_reports=None if is_hidden else n_reports,
        status=status,
    )
