"""What a file is about: one window of an indicator, its days, or a whole study."""

from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from django.utils.translation import gettext

from reports import wording
from reports.models import Indicator, Study
from reports.selectors import (
    Window,
    WindowReport,
    indicator_reports,
    single_days_of,
    study_reports,
    window_report,
)


class Scope(StrEnum):
    WINDOW = "window"
    DAYS = "days"
    STUDY = "study"


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Reports that go into one file, in plan order, then by first and last day; at least one.

    `name` is that of the file, without its ending.
    """

    scope: Scope
    study: Study
    name: str
    reports: tuple[WindowReport, ...]

    @property
    def indicator(self) -> Indicator | None:
        """The one indicator; None of a whole study."""
        return None if self.scope == Scope.STUDY else self.reports[0].indicator

    @property
    def first_date(self) -> date:
        return min(report.first_date for report in self.reports)

    @property
    def last_date(self) -> date:
        """Last day that the file is about: the only date in it that is not a window's."""
        return max(report.last_date for report in self.reports)

    @property
    def title(self) -> str:
        """Indicator and study."""
        return f"{self.indicator.name} · {self.study.name}" if self.indicator else self.study.name

    @property
    def days_title(self) -> str:
        """The days in words."""
        days = wording.window_title(self.first_date, self.last_date)
        return gettext("Each day: %(days)s") % {"days": days} if self.scope == Scope.DAYS else days


def select_window(indicator: Indicator, window: Window) -> Selection:
    """One indicator in one window; WindowError if it does not have it."""
    report = window_report(indicator, window)
    name = f"{indicator.study.slug}_{indicator.slug}_{report.first_date}_{report.last_date}"
    return Selection(scope=Scope.WINDOW, study=indicator.study, name=name, reports=(report,))


def select_days(indicator: Indicator) -> Selection:
    """One indicator on each day of its study."""
    reports = indicator_reports(indicator, single_days_of(indicator.study))
    name = f"{indicator.study.slug}_{indicator.slug}_days"
    return Selection(scope=Scope.DAYS, study=indicator.study, name=name, reports=tuple(reports))


def select_study(study: Study) -> Selection:
    """All indicators in all their windows."""
    reports = study_reports(list(study.indicators.all()), None)
    return Selection(scope=Scope.STUDY, study=study, name=study.slug, reports=tuple(reports))
