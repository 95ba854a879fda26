"""Smoothed shares of streams, days of a change, and visitor-days: from published figures of single days."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from statistics import NormalDist
from typing import Final, Self

import numpy as np

from ldp.estimation.series.smoothing import SmoothedDays, smooth_shares
from ldp.estimation.series.visitor_days import DayShares, visitor_days
from ldp.protocols.channels import PureChannel
from reports.base import formats
from reports.base.status import Status
from reports.estimates.queries import LEVEL, WindowReport

LEAST_DAYS: Final = 2  # with estimates
Z: Final = NormalDist().inv_cdf((1 + LEVEL) / 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothedShare:
    """A category on one day; shares, which may leave [0, 1].

    live, live_error : by the days until this one, and its standard error under the model; None where unknown
    smoothed, smoothed_error : the same by all published days
    is_change : the day's estimate is unlike the days before
    """

    day: int
    date: date
    live: float | None
    live_error: float | None
    smoothed: float | None
    smoothed_error: float | None
    is_change: bool

    @property
    def ends(self) -> tuple[float, float] | tuple[None, None]:
        """Return the 95% interval of the smoothed share under the model."""
        if self.smoothed is None or self.smoothed_error is None:
            return None, None
        return self.smoothed - Z * self.smoothed_error, self.smoothed + Z * self.smoothed_error

    @property
    def range_words(self) -> str:
        """Return the interval in words."""
        return formats.percent_range(*self.ends)


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothedCategory:
    """All days of a category; `code` is its place in the indicator."""

    code: int
    category: str
    shown_category: str
    days: tuple[SmoothedShare, ...]

    def of_days(self, reports: Sequence[WindowReport]) -> Self:
        """Return the days of some reports, smoothed by all days."""
        wanted = {report.window.last_day for report in reports}
        return replace(self, days=tuple(each for each in self.days if each.day in wanted))


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitorDays:
    """Visitors of a category, added over days, scaled; who comes on two days counts twice."""

    category: str
    shown_category: str
    value: float
    low: float
    high: float

    @property
    def range_words(self) -> str:
        """Return the 95% interval in words."""
        return formats.number_range(self.low, self.high)


def _are_days_of_a_stream(reports: Sequence[WindowReport]) -> bool:
    return bool(reports) and reports[-1].window.days == 1 and reports[0].is_stream


def smoothed_categories(reports: Sequence[WindowReport]) -> list[SmoothedCategory]:
    """Smooth the days of a stream; empty for another indicator, and where fewer than two days have figures.

    reports : of single days, in their order. Categories that are hidden on a day are left out: the other days
        would reveal them. Days that are not reliable count: their estimates are unbiased, and weigh little.
    """
    if not _are_days_of_a_stream(reports):
        return []
    codes = _shown_codes(reports)
    shares = np.array([[_share_of(report, code) for code in codes] for report in reports], np.float64)
    known = np.flatnonzero(~np.isnan(shares).all(axis=1)) if codes else np.zeros(0, np.int64)
    if known.size < LEAST_DAYS:
        return []
    found = smooth_shares(
        shares,
        n_reports=np.array([report.n_reports or 0 for report in reports]),
        n_visitors=np.array([report.n_visitors or 0 for report in reports]),
        channel=_channel(reports[0]),
    )
    return [
        SmoothedCategory(
            code=code,
            category=reports[0].estimates[code].category,
            shown_category=reports[0].estimates[code].shown_category,
            days=tuple(
                _share(report, found, day=day, place=place, is_known=day <= known[-1])
                for day, report in enumerate(reports)
            ),
        )
        for place, code in enumerate(codes)
    ]


def _shown_codes(reports: Sequence[WindowReport]) -> list[int]:
    hidden = {code for report in reports for code, each in enumerate(report.estimates) if each.is_hidden}
    return [code for code in range(len(reports[0].estimates)) if code not in hidden]


def _share_of(report: WindowReport, code: int) -> float:
    share = report.estimates[code].frequency
    return np.nan if share is None or report.status == Status.OUTAGE else share


def _channel(report: WindowReport) -> PureChannel:
    spec = report.plan.parsed
    return spec.channel(spec.index(report.indicator.slug))


def _share(
    report: WindowReport, found: SmoothedDays, *, day: int, place: int, is_known: bool
) -> SmoothedShare:
    numbers = [
        found.filtered[day, place],
        found.filtered_variances[day, place] ** 0.5,
        found.smoothed[day, place],
        found.smoothed_variances[day, place] ** 0.5,
    ]
    live, live_error, smoothed, smoothed_error = (
        None if np.isnan(number) or not is_known else float(number) for number in numbers
    )
    return SmoothedShare(
        day=report.window.last_day,
        date=report.last_date,
        live=live,
        live_error=live_error,
        smoothed=smoothed,
        smoothed_error=smoothed_error,
        is_change=bool(found.changes[day, place]),
    )


def visitor_days_of(reports: Sequence[WindowReport]) -> tuple[int, list[VisitorDays]]:
    """Days of a stream with figures, and visitors of each category added over them; 0 days where none can be.

    Nothing where a category is hidden on a day.
    """
    if not _are_days_of_a_stream(reports):
        return 0, []
    known = [each for each in reports if each.n_reports and each.status != Status.OUTAGE]
    if not known or any(each.is_hidden for report in known for each in report.estimates):
        return 0, []
    spec = reports[0].plan.parsed
    days = [
        DayShares(
            day=report.window.last_day,
            shares=np.array([each.frequency for each in report.estimates], np.float64),
            n_reports=report.n_reports or 0,
            n_visitors=report.n_visitors or 0,
        )
        for report in known
    ]
    found = visitor_days(days, channel=_channel(reports[0]), window_days=spec.window_days or 1, level=LEVEL)
    scale = 1 / float(reports[0].study.market_share)
    rows = zip(reports[0].estimates, found.value, found.ci_low, found.ci_high, strict=True)
    return len(known), [
        VisitorDays(
            category=each.category,
            shown_category=each.shown_category,
            value=float(value * scale),
            low=float(low * scale),
            high=float(high * scale),
        )
        for each, value, low, high in rows
    ]
