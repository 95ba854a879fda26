"""Subject of a file: one window of an indicator, its days, or a whole study."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from django.utils.translation import gettext

from reports.base import formats
from reports.estimates.groups import in_groups
from reports.estimates.options import (
    GROUPS,
    DaysOptions,
    ReportOptions,
    reports_of,
    shown_categories,
    windows_shown,
)
from reports.estimates.queries import (
    Window,
    WindowReport,
    indicator_reports,
    loaded_reports,
    single_days_of,
    study_reports,
    window_report,
)
from reports.studies.models import Indicator, Study
from reports.studies.queries import has_unions

_AS_IT_IS = ReportOptions()
_EACH_DAY = DaysOptions()


class Scope(StrEnum):
    WINDOW = "window"
    DAYS = "days"
    STUDY = "study"


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Reports that go into one file, in plan order, then by first and last day; at least one.

    Parameters
    ----------
    name : of the file, without its ending
    options, days_options : how the page shows a window, or the days; what is drawn follows them, data do not
    categories : codes that were chosen for the chart of the days; none = the largest
    """

    scope: Scope
    study: Study
    name: str
    reports: tuple[WindowReport, ...]
    options: ReportOptions = _AS_IT_IS
    days_options: DaysOptions = _EACH_DAY
    categories: tuple[int, ...] = ()

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
        name = self.study.shown_name
        return f"{self.indicator.shown_name} · {name}" if self.indicator else name

    @property
    def measure(self) -> str:
        """Return the drawn measure: "frequency" or "visitors"."""
        return self.days_options.measure if self.scope == Scope.DAYS else self.options.measure

    @property
    def values(self) -> str:
        """Return the drawn values: "consistent" or "unbiased"."""
        return self.days_options.values if self.scope == Scope.DAYS else self.options.values

    @property
    def is_cumulative(self) -> bool:
        """Return whether the days are unions of the days 1..j."""
        return self.scope == Scope.DAYS and self.reports[-1].window.days > 1

    @property
    def shown(self) -> list[int]:
        """Codes of the categories in the chart of the days."""
        return shown_categories(self.categories, reports=self.reports, options=self.days_options)

    @property
    def days_title(self) -> str:
        """The days in words."""
        days = {"days": formats.window_title(self.first_date, self.last_date)}
        if self.scope != Scope.DAYS:
            return days["days"]
        if self.is_cumulative:
            return gettext("Cumulative since the first day: %(days)s") % days
        return gettext("Each day: %(days)s") % days


def select_window(indicator: Indicator, window: Window, *, options: ReportOptions = _AS_IT_IS) -> Selection:
    """One indicator in one window, or its groups if the options say so; WindowError if it has none."""
    report = window_report(indicator, window)
    name = f"{indicator.study.slug}_{indicator.slug}_{report.first_date}_{report.last_date}"
    if options.group == GROUPS:
        report, name = in_groups(report), f"{name}_groups"
    return Selection(scope=Scope.WINDOW, study=indicator.study, name=name, reports=(report,), options=options)


def select_days(
    indicator: Indicator,
    *,
    options: DaysOptions = _EACH_DAY,
    categories: Sequence[int] = (),
    days: Window | None = None,
    by_group: bool = False,
) -> Selection:
    """One indicator, or its groups, on each day, or, if the options say so, up to each.

    `days`: only these of its study. WindowError if there are no groups.
    """
    reports = reports_of(days, indicator_reports(indicator, windows_shown(indicator, options=options)))
    ending = "cumulative" if reports[-1].window.days > 1 else "days"
    if by_group:
        reports, ending = [in_groups(each) for each in reports], f"groups_{ending}"
    if days is not None:
        ending += f"_{reports[0].last_date}_{reports[-1].last_date}"
    return Selection(
        scope=Scope.DAYS,
        study=indicator.study,
        name=f"{indicator.study.slug}_{indicator.slug}_{ending}",
        reports=tuple(reports),
        days_options=options,
        categories=tuple(categories),
    )


def select_study(study: Study) -> Selection:
    """All indicators in all their windows."""
    reports = study_reports(list(study.indicators.all()), None)
    return Selection(scope=Scope.STUDY, study=study, name=study.slug, reports=tuple(reports))


def select_summary(study: Study) -> Selection:
    """All indicators over all days; day by day where people answer on some days only. For reading."""
    indicators = list(study.indicators.all())
    whole, days = [Window(1, study.days)], single_days_of(study)
    windows = [whole if has_unions(indicator) else days for indicator in indicators]
    reports = [report for found, _ in loaded_reports(indicators, windows) for report in found]
    return Selection(scope=Scope.STUDY, study=study, name=study.slug, reports=tuple(reports))
