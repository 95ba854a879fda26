"""Figures of a number in a window: mean, quantiles, difference of two means, each with its interval."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.http import QueryDict
from django.utils.translation import gettext

from ldp import union
from ldp.errors import LdpError, NoReportsError
from ldp.estimation.joint.linear import LinearEstimate
from ldp.estimation.numbers.figures import NumberChannel, mean_difference, number_mean, number_survival
from ldp.estimation.numbers.threshold import QuantileEstimate, threshold_quantile
from ldp.estimation.windows import IndicatorTallies
from ldp.protocols.numbers.threshold import Scale
from reports.base.status import Status, estimates_status
from reports.estimates.picker import day_in_address
from reports.estimates.queries import LEVEL, Window, WindowReport, reports_with_tallies, window_from_dates
from reports.studies.models import Indicator, Study

QUANTILES: Final = (0.1, 0.25, 0.5, 0.75, 0.9)
MEDIAN: Final = 0.5
_READABLE: Final = frozenset({Status.OK, Status.NOT_RELIABLE})


class NoNumberError(ValueError):
    """The indicator is no number, or there is nothing to compare; `str()` says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A mean or a difference of means with its 95% interval, in the unit of the number; None = there is none.

    is_exact : False: the error is an upper bound
    """

    status: Status
    value: float | None = None
    std_error: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    is_exact: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberReport:
    """A number in one window.

    quantiles : by the share of visitors below, QUANTILES; None where there are no figures
    """

    report: WindowReport
    scale: Scale
    mean: Figure
    quantiles: dict[float, QuantileEstimate] | None

    @property
    def median(self) -> QuantileEstimate | None:
        return None if self.quantiles is None else self.quantiles[MEDIAN]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanComparison:
    """Mean in a window, in a reference, and the first less the second."""

    number: NumberReport
    reference: NumberReport
    difference: Figure


def number_report(indicator: Indicator, window: Window) -> NumberReport:
    """Figures of a number in a window.

    Raises
    ------
    NoNumberError : the indicator is no number
    UnionNotAvailableError : a union of an indicator that people answer on some days only
    """
    return number_reports(indicator, [window])[0]


def number_reports(indicator: Indicator, windows: Sequence[Window]) -> list[NumberReport]:
    """Figures of a number in several windows; raises what `number_report` raises."""
    ((reports, tallies),) = reports_with_tallies([indicator], [windows])
    return [number_of(report, tallies) for report in reports]


def compare_means(indicator: Indicator, window: Window, reference: Window) -> MeanComparison:
    """Mean of a window less that of another one; raises what `number_report` raises."""
    if window == reference:
        raise NoNumberError(gettext("Both date ranges are the same. Choose two different date ranges."))
    (((report, other), tallies),) = reports_with_tallies([indicator], [[window, reference]])
    number, with_number = number_of(report, tallies), number_of(other, tallies)
    return MeanComparison(
        number=number, reference=with_number, difference=_difference(number, with_number, tallies)
    )


def reference_window(query: QueryDict, *, study: Study) -> Window | None:
    """Days to compare with, `with_from` and `with_to` of an address; None without. WindowError for others."""
    typed = query.get("with_from", "")
    if not typed:
        return None
    first, last = day_in_address(typed), day_in_address(query.get("with_to") or typed)
    return window_from_dates(study, min(first, last), max(first, last))


def number_of(report: WindowReport, tallies: IndicatorTallies) -> NumberReport:
    """Figures of a number from its report and the tallies that it is from; NoNumberError for another one."""
    scale, channel = report.cuts, tallies.channel
    if scale is None or not isinstance(channel, NumberChannel):
        text = gettext("%(name)s is not a number, so it has no mean.")
        raise NoNumberError(text % {"name": report.indicator.shown_name})
    status = _window_status(report)
    blank = NumberReport(report=report, scale=scale, mean=Figure(status=report.status), quantiles=None)
    if status not in _READABLE or not report.n_visitors or not report.n_reports:
        return blank
    counts = union(tallies.counts, **report.window._asdict())
    asked: dict[str, Any] = {"channel": channel, "n_population": report.n_visitors, "level": LEVEL}
    try:
        mean = number_mean(counts, scale=scale, **asked)
        shares = number_survival(counts, **asked)
    except NoReportsError:  # on some cut
        return blank
    return NumberReport(
        report=report,
        scale=scale,
        mean=_figure(mean, status=status, scale=scale),
        quantiles={share: threshold_quantile(shares, scale=scale, share=share) for share in QUANTILES},
    )


def _difference(number: NumberReport, reference: NumberReport, tallies: IndicatorTallies) -> Figure:
    sides = number.mean, reference.mean
    if any(side.value is None for side in sides):
        return Figure(status=next(side.status for side in sides if side.value is None))
    windows = {"first": reference.report.window, "second": number.report.window}
    try:
        found, is_exact = mean_difference(tallies, scale=number.scale, level=LEVEL, **windows)
    except LdpError:  # a part with few visitors, or without reports
        return Figure(status=Status.NOT_RELIABLE)
    statuses = [side.status for side in sides if side.status != Status.OK]
    return _figure(
        found, status=statuses[0] if statuses else Status.OK, scale=number.scale, is_exact=is_exact
    )


def _figure(found: LinearEstimate, *, status: Status, scale: Scale, is_exact: bool = True) -> Figure:
    """A figure whose interval, as a share of the whole range, decides whether it is reliable."""
    whole = scale.cuts[-1] - scale.minimum
    width = (found.ci_high - found.ci_low) / whole
    return Figure(
        status=estimates_status(status, ci_low=[0.0], ci_high=[width]),
        value=found.value,
        std_error=found.std_error,
        ci_low=found.ci_low,
        ci_high=found.ci_high,
        is_exact=is_exact,
    )


def _window_status(report: WindowReport) -> Status:
    """Status of the window alone: shares of single cuts say nothing about the mean."""
    return Status.OK if report.status == Status.NOT_RELIABLE else report.status
