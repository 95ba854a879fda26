"""Figures of events: a period is the sum of the counts of its days, with the interval of that sum."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

import numpy as np
from django.http import QueryDict

from reports.estimates.queries import WindowReport, indicator_reports
from reports.events.periods import PERIODS, Period, PeriodKind, periods_of
from reports.studies.models import Indicator, Study
from reports.studies.queries import visitors_of
from reports.studies.tally_models import VisitorTally

DEFAULT: Final[PeriodKind] = "month"
PERIODS_SHOWN: Final = 53  # of a page; the weeks of a year


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodReport:
    """Figures of one period.

    name, is_whole : as of `Period`
    report : its `n_visitors` are the events of the period
    """

    name: str
    is_whole: bool
    report: WindowReport

    @property
    def first_date(self) -> date:
        return self.report.first_date

    @property
    def last_date(self) -> date:
        return self.report.last_date

    @property
    def n_events(self) -> int:
        return self.report.n_visitors or 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodCount:
    """Exact number of events of one period."""

    name: str
    first_date: date
    last_date: date
    is_whole: bool
    n_events: int


def asked_period(query: QueryDict) -> PeriodKind:
    """Kind of period that an address names; months without a valid one."""
    return next((kind for kind in PERIODS if kind == query.get("period")), DEFAULT)


def known_periods(study: Study, kind: PeriodKind) -> list[Period]:
    """Return the periods up to the last day with events; none before the first file."""
    last = last_day_of(study)
    return periods_of(study, kind, last=last) if last else []


def period_counts(study: Study, kind: PeriodKind) -> list[PeriodCount]:
    """Events in each of the known periods."""
    sums = np.cumsum([0, *events_by_day(study)])
    return [
        PeriodCount(
            name=name,
            first_date=study.date_of(window.first_day),
            last_date=study.date_of(window.last_day),
            is_whole=is_whole,
            n_events=int(sums[window.last_day] - sums[window.first_day - 1]),
        )
        for name, window, is_whole in known_periods(study, kind)
    ]


def period_reports(indicator: Indicator, periods: Sequence[Period]) -> list[PeriodReport]:
    """Estimates of an indicator in some periods."""
    reports = indicator_reports(indicator, [period.window for period in periods])
    return [
        PeriodReport(name=period.name, is_whole=period.is_whole, report=report)
        for period, report in zip(periods, reports, strict=True)
    ]


def events_by_day(study: Study) -> list[int]:
    """Events of each day, the first one first; exact."""
    tally = VisitorTally.objects.get(study=study)
    tally.study = study
    counts: list[int] = visitors_of(tally)[0, 1:].tolist()
    return counts


def last_day_of(study: Study) -> int:
    """Return the last study day with events; 0 if there are none."""
    found = np.flatnonzero(events_by_day(study))
    return int(found[-1]) + 1 if found.size else 0
