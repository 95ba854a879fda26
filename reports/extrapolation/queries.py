"""People that the visitors of a window stand for: those of each category, divided by its market share."""

from dataclasses import dataclass, replace
from decimal import Decimal
from statistics import NormalDist
from typing import Final

import numpy as np
from django.utils.translation import gettext

from ldp.estimation.estimators import Estimates
from ldp.estimation.joint.linear import LinearChannel, LinearEstimate
from ldp.estimation.joint.scaling import Floats, scaled_categories, scaled_total
from reports.base.status import Status, estimates_status
from reports.estimates.queries import LEVEL, Window, WindowReport, indicator_reports, window_report
from reports.studies.models import Indicator
from reports.studies.studyfile.category_shares import CategoryShare, CategoryShares

_Z: Final = Decimal(NormalDist().inv_cdf((1 + LEVEL) / 2))


class NoSharesError(ValueError):
    """The study has no market shares for the categories of the indicator; `str()` says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """A number of people with its 95% interval; None where there is none."""

    status: Status
    value: float | None = None
    std_error: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryPeople:
    """One category: its visitors as the network sees them, its market share, and the people it stands for."""

    category: str
    shown_category: str
    share: CategoryShare
    seen: People
    people: People


@dataclass(frozen=True, slots=True, kw_only=True)
class Extrapolation:
    """All people of a window; `shares` is None where no shares are valid on all of its days.

    Shares and `rows` are in the order of the categories.
    """

    report: WindowReport
    shares: CategoryShares | None
    total: People
    rows: tuple[CategoryPeople, ...] = ()


def has_shares(indicator: Indicator) -> bool:
    """Return whether the study has market shares for the categories of an indicator, for any days."""
    return any(each.indicator == indicator.slug for each in indicator.study.shares_by_category)


def extrapolation(report: WindowReport) -> Extrapolation:
    """People of the window of a report; NoSharesError without shares for any days.

    Under the small-category rule there is nothing where a category is hidden: the total would give it.
    """
    of_indicator = [
        each for each in report.study.shares_by_category if each.indicator == report.indicator.slug
    ]
    if not of_indicator:
        text = gettext("The study has no market shares for the categories of %(name)s.")
        raise NoSharesError(text % {"name": report.indicator.shown_name})
    shares = next((each for each in of_indicator if each.is_valid(report.first_date, report.last_date)), None)
    status = _status(report)
    spec = report.plan.parsed
    channel = spec.channel(spec.index(report.indicator.slug))
    if status != Status.OK or shares is None or not isinstance(channel, LinearChannel):
        return Extrapolation(
            report=report,
            shares=shares,
            total=People(status=Status.NOT_COLLECTED if status == Status.OK else status),
        )
    return _found(report, shares, channel=channel)


def extrapolations(indicator: Indicator, window: Window) -> tuple[Extrapolation, list[Extrapolation]]:
    """People of a window, and of each of its days where it has several; errors as of `extrapolation`."""
    days = [Window(day, day) for day in range(window.first_day, window.last_day + 1)]
    found = extrapolation(window_report(indicator, window))
    if len(days) == 1:
        return found, []
    return found, [extrapolation(each) for each in indicator_reports(indicator, days)]


def _status(report: WindowReport) -> Status:
    """Return why there are no figures, or OK; widths of shares do not say how exact their sum is."""
    hidden = [each for each in report.estimates if each.is_hidden]
    if hidden:
        return Status.SUPPRESSED
    if report.status in (Status.OK, Status.NOT_RELIABLE):
        return Status.OK if report.n_reports and report.n_visitors else Status.NOT_COLLECTED
    return report.status


def _found(report: WindowReport, shares: CategoryShares, *, channel: LinearChannel) -> Extrapolation:
    share_values = np.array([float(each.share) for each in shares.shares])
    asked = {"shares": share_values, "share_errors": np.array([_error(each) for each in shares.shares])}
    n_visitors, n_reports = report.n_visitors or 0, report.n_reports or 0
    estimates = _estimates(report)
    total, expected = (
        scaled_total(
            each, **asked, channel=channel, n_reports=n_reports, n_population=n_visitors, level=LEVEL
        )
        for each in (estimates, _even(estimates))
    )
    people = scaled_categories(estimates, **asked, n_population=n_visitors, level=LEVEL)
    one = np.ones_like(share_values)
    seen = scaled_categories(
        estimates, shares=one, share_errors=0 * one, n_population=n_visitors, level=LEVEL
    )
    most = n_visitors / float(share_values.min())
    rows = zip(report.estimates, shares.shares, seen, people, strict=True)
    return Extrapolation(
        report=report,
        shares=shares,
        total=_people(total, _reading(expected, most=most)),
        rows=tuple(
            CategoryPeople(
                category=each.category,
                shown_category=each.shown_category,
                share=share,
                seen=_people(one_seen, report.status),
                people=_people(all_of_it, report.status),
            )
            for each, share, one_seen, all_of_it in rows
        ),
    )


def _even(estimates: Estimates) -> Estimates:
    """Return estimates of as many visitors in each category."""
    even = np.full_like(estimates.frequency, 1 / estimates.frequency.size)
    return replace(estimates, frequency=even, consistent=even)


def _reading(expected: LinearEstimate, *, most: float) -> Status:
    """Judge a total by the width of its interval, were all categories of the same size.

    Its own width grows with the total: near the limit, only the lowest totals would be shown.
    """
    return estimates_status(Status.OK, ci_low=[expected.ci_low / most], ci_high=[expected.ci_high / most])


def _people(found: LinearEstimate, status: Status) -> People:
    return People(
        status=status,
        value=found.value,
        std_error=found.std_error,
        ci_low=found.ci_low,
        ci_high=found.ci_high,
    )


def _estimates(report: WindowReport) -> Estimates:
    def column(name: str) -> Floats:
        return np.array([getattr(each, name) for each in report.estimates], np.float64)

    return Estimates(**{name: column(name) for name in Estimates.__slots__})


def _error(share: CategoryShare) -> float:
    """Standard error of a share: its interval is read as a normal one of 95%."""
    if share.low is None or share.high is None:
        return 0.0
    return float((share.high - share.low) / 2 / _Z)
