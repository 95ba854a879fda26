"""Comparisons: of windows, categories, a day and its baseline, studies. Each difference with its interval.

The differences come from `ldp.estimation.windows` and `ldp.estimation.contrasts`; here they are asked for,
scaled, and judged: one by one at 95%, and over all rows of a table together (Holm).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

import numpy as np
from django.db.models import QuerySet
from numpy.typing import NDArray

from ldp.errors import FewReportsError
from ldp.estimation.contrasts import Contrast, baseline_mean, classes_difference
from ldp.estimation.joint.association import MAX_TESTED_CELLS, Association
from ldp.estimation.multiple import excludes_zero, holm
from ldp.estimation.strata import (
    Strata,
    days_difference,
    has_shares,
    samples_of,
    sum_of,
    values_difference,
    windows_change,
    windows_difference,
)
from ldp.estimation.windows import Quantity, WindowEstimate
from reports.base.status import Status, estimates_status
from reports.estimates.queries import (
    LEVEL,
    Estimate,
    Window,
    WindowReport,
    has_small,
    reports_with_strata,
    single_days_of,
)
from reports.studies.models import Indicator, Study
from reports.studies.names import category_name

READABLE: Final = frozenset({Status.OK, Status.NOT_RELIABLE})

Mask = NDArray[np.bool_]
Intervals = Callable[[float], WindowEstimate]


class Kind(StrEnum):
    """Name of a compared figure."""

    WINDOWS = "windows"
    CATEGORIES = "categories"
    BASELINE = "baseline"
    STUDIES = "studies"


class Verdict(StrEnum):
    """Verdict on a difference."""

    HIGHER = "higher"
    LOWER = "lower"
    NOT_SHOWN = "not_shown"


class Reason(StrEnum):
    """Reason for having nothing to compare."""

    SAME_WINDOWS = "same_windows"
    SAME_CATEGORIES = "same_categories"
    BLANK = "blank"
    NOISY = "noisy"
    NUMBER = "number"
    GROUPS = "groups"
    SMALL = "small"
    NO_BASELINE = "no_baseline"
    OTHER_CATEGORIES = "other_categories"


class NoTest(StrEnum):
    """Reason for having no test of all categories together."""

    SHARED_PEOPLE = "shared_people"
    FIRST_DAYS = "first_days"
    SMALL = "small"
    FEW = "few"
    MANY = "many"


class NotComparableError(ValueError):
    """There is no difference to estimate; `report` is the one without numbers, if that is why."""

    def __init__(self, reason: Reason, report: WindowReport | None = None) -> None:
        super().__init__(reason.value)
        self.reason = reason
        self.report = report


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A share, or visitors (scaled to the population), with its 95% interval."""

    value: float | None
    low: float | None
    high: float | None
    status: Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One difference: `value` less `reference`. `alone` judges the row, `held` within its table.

    Where a side is not reliable, neither is the difference: nothing is judged, with any interval.
    """

    category: str
    value: Value
    reference: Value
    difference: float
    std_error: float
    low: float
    high: float
    alone: Verdict
    held: Verdict
    category_fr: str | None = None

    @property
    def shown_category(self) -> str:
        """Name of the category in the active language."""
        return category_name(self.category, self.category_fr)

    @property
    def status(self) -> Status:
        """Return whether the difference is reliable: only if both sides are."""
        return _status_of(self.value, self.reference)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """All rows of one question.

    Parameters
    ----------
    report, reference : reports of what is compared, and of what with; the same one for two categories, that
        of the first day for a baseline
    is_exact : False: the errors are upper bounds, and the intervals cover at least 95%
    category, category_fr : names of the category that the others are compared with, for two categories
    overall : of two windows: the test of all categories together, or why there is none
    baseline, left_out : days of the baseline, and those that have no numbers
    """

    kind: Kind
    of: Quantity
    report: WindowReport
    reference: WindowReport
    rows: tuple[Row, ...]
    is_exact: bool
    category: str = ""
    category_fr: str | None = None
    overall: Association | NoTest | None = None
    baseline: tuple[int, ...] = ()
    left_out: tuple[int, ...] = ()

    @property
    def shown_category(self) -> str:
        """Name of the category in the active language."""
        return category_name(self.category, self.category_fr)

    @property
    def status(self) -> Status:
        """Return the status that all rows share: it is one of whole reports."""
        return self.rows[0].status

    @property
    def n_held(self) -> int:
        return sum(row.held != Verdict.NOT_SHOWN for row in self.rows)

    @property
    def n_alone(self) -> int:
        """Rows that differ on their own, held or not."""
        return sum(row.alone != Verdict.NOT_SHOWN for row in self.rows)

    @property
    def largest(self) -> Row:
        """The largest difference; of those that hold if there are any, else of all."""
        held = [row for row in self.rows if row.held != Verdict.NOT_SHOWN]
        return max(held or self.rows, key=lambda row: abs(row.difference))


def compare_windows(indicator: Indicator, window: Window, reference: Window, *, of: Quantity) -> Comparison:
    """Per category, a window less another one of the same indicator.

    Raises
    ------
    NotComparableError : both are the same, or one has no numbers
    UnionNotAvailableError : a union of an indicator that people answer on some days only
    """
    if window == reference:
        raise NotComparableError(Reason.SAME_WINDOWS)
    (((report, other), strata),) = _read([indicator], [[window, reference]])
    _check_readable(strata, report, other)
    intervals = _scaled(_between_windows(strata, window, reference, of=of), indicator, of=of)
    rows = _shown(report, other)
    found = _comparison(Kind.WINDOWS, report, other, of=of, intervals=intervals, rows=rows)
    return replace(found, overall=_overall(strata, (report, other)))


def windows_test(
    indicator: Indicator, window: Window, reference: Window
) -> tuple[WindowReport, WindowReport, Association | NoTest]:
    """Both reports, and the test whether the shares of all categories are the same in both windows.

    Raises as `compare_windows`.
    """
    if window == reference:
        raise NotComparableError(Reason.SAME_WINDOWS)
    (((report, other), strata),) = _read([indicator], [[window, reference]])
    _check_readable(strata, report, other)
    return report, other, _overall(strata, (report, other))


def _overall(strata: Strata, reports: tuple[WindowReport, WindowReport]) -> Association | NoTest:
    """Test all categories together; not where it is unknown which reports both windows share."""
    if has_small(reports):
        return NoTest.SMALL
    if strata[0].channel.domain_size > MAX_TESTED_CELLS:
        return NoTest.MANY
    early, late = sorted(report.window for report in reports)
    if strata[0].kind == "daily" and early.first_day != late.first_day:
        return NoTest.FIRST_DAYS
    try:
        found = windows_change(strata, (early, late))
    except FewReportsError:
        return NoTest.FEW
    if found is None:
        return NoTest.FEW if early.touches(late) else NoTest.SHARED_PEOPLE
    return found


def compare_categories(
    indicator: Indicator, window: Window, *, reference: int, category: int | None, of: Quantity
) -> Comparison:
    """Categories less the category `reference` of the same window: one of them, or (None) all others.

    Raises
    ------
    NotComparableError : both are the same, or the window has no numbers
    UnionNotAvailableError : as in `compare_windows`
    """
    if category == reference:
        raise NotComparableError(Reason.SAME_CATEGORIES)
    (((report,), strata),) = _read([indicator], [[window]])
    _check_readable(strata, report)
    codes = range(len(indicator.categories))
    if report.estimates[reference].is_hidden:
        raise NotComparableError(Reason.SMALL)
    rows = np.array([code != reference and category in (None, code) for code in codes]) & _shown(report)
    if not rows.any():
        raise NotComparableError(Reason.SMALL)
    contrasts = values_difference(strata, window, reference=reference, of=of)
    comparison = _comparison(
        Kind.CATEGORIES,
        report,
        report,
        of=of,
        intervals=_scaled(_total(contrasts), indicator, of=of),
        rows=rows,
        references=[_value(report.estimates[reference], of=of)] * len(codes),
    )
    named = report.estimates[reference]
    return replace(comparison, category=named.category, category_fr=named.category_fr)


def compare_baseline(
    indicator: Indicator, day: int, *, baseline: Sequence[int] | None, of: Quantity
) -> Comparison:
    """A day less the mean of other days: the chosen ones, or (None) all others of the study.

    NotComparableError if the day has no numbers, or no other day has.
    """
    others = [other.first_day for other in single_days_of(indicator.study) if other.first_day != day]
    chosen = [other for other in others if baseline is None or other in baseline]
    asked = [Window(other, other) for other in (day, *chosen)]
    (((report, *reports), strata),) = _read([indicator], [asked], full=1)
    _check_readable(strata, report)
    readable = [other for other in reports if _is_readable(strata, other)]
    if not readable:
        raise NotComparableError(Reason.NO_BASELINE)
    days = [other.window.first_day for other in readable]
    contrasts = days_difference(strata, day=day, baseline=days, of=of)
    intervals = _total(contrasts)
    if len(days) == 1:  # perhaps they touch: then it is exact
        intervals = _between_windows(strata, report.window, readable[0].window, of=of)
    mean = _scaled(_total([baseline_mean(each) for each in contrasts]), indicator, of=of)(LEVEL)
    if of != "frequency":
        contrasts = days_difference(strata, day=day, baseline=days, of="frequency")
    shares = sum_of([baseline_mean(each) for each in contrasts], level=LEVEL)
    comparison = _comparison(
        Kind.BASELINE,
        report,
        readable[0],
        of=of,
        intervals=_scaled(intervals, indicator, of=of),
        rows=_shown(report, *readable),
        references=_means(mean, shares=shares),
    )
    left_out = tuple(other for other in chosen if other not in days)
    return replace(comparison, baseline=tuple(days), left_out=left_out)


def compare_studies(
    indicator: Indicator, window: Window, *, other: Indicator, other_window: Window, of: Quantity
) -> Comparison:
    """Per category, a window less a window of an indicator of another study, which has its own key.

    Raises
    ------
    NotComparableError : the categories are not the same, or a window has no numbers
    UnionNotAvailableError : as in `compare_windows`
    """
    if not _has_same_categories(indicator, other):
        raise NotComparableError(Reason.OTHER_CATEGORIES)
    (((report,), strata), ((reference,), other_strata)) = _read(
        [indicator, other], [[window], [other_window]]
    )
    _check_readable(strata, report)
    _check_readable(other_strata, reference)
    order = [other.categories.index(category) for category in indicator.categories]
    contrast = classes_difference(
        [replace(each, counts=each.counts[order]) for each in samples_of(other_strata, other_window)],
        samples_of(strata, window),
        of=of,
        scales=(1 / float(other.study.market_share), 1 / float(indicator.study.market_share)),
    )
    return _comparison(
        Kind.STUDIES,
        report,
        reference,
        of=of,
        intervals=_total([contrast]),
        rows=_shown(
            report, replace(reference, estimates=tuple(reference.estimates[place] for place in order))
        ),
        references=[_value(reference.estimates[place], of=of) for place in order],
    )


def comparable_indicators(indicator: Indicator, *, among: QuerySet[Study]) -> list[Indicator]:
    """Indicators of other studies with the same categories, in any order; newest study first."""
    others = (
        Indicator.objects.filter(study__in=among)
        .exclude(study=indicator.study_id)
        .select_related("study")
        .order_by("-study__first_day", "study__slug", "pk")
    )
    return [other for other in others if _has_same_categories(indicator, other)]


def _has_same_categories(indicator: Indicator, other: Indicator) -> bool:
    return sorted(indicator.categories) == sorted(other.categories)


def _read(
    indicators: Sequence[Indicator], windows: Sequence[Sequence[Window]], *, full: int | None = None
) -> list[tuple[list[WindowReport], Strata]]:
    """Read reports and tallies; NotComparableError if groups have different channels."""
    if any(each.protect for each in indicators):
        raise NotComparableError(Reason.GROUPS)
    return reports_with_strata(indicators, windows, full=full)


def _check_readable(strata: Strata, *reports: WindowReport) -> None:
    for report in reports:
        if report.study.presence is not None:
            # The noise of days that two windows share is not taken apart yet: no interval would be right.
            raise NotComparableError(Reason.NOISY)
        if report.cuts is not None:
            raise NotComparableError(Reason.NUMBER)
        if not _is_readable(strata, report):
            raise NotComparableError(Reason.BLANK, report)


def _is_readable(strata: Strata, report: WindowReport) -> bool:
    """Return whether there are shares: there are none where no one of a class reported."""
    return report.status in READABLE and has_shares(strata, report.window)


def _shown(*reports: WindowReport) -> Mask:
    """Categories that no report with estimates hides; NotComparableError if there are none."""
    of_reports = (report.estimates for report in reports if report.estimates)
    shown = np.array([[not each.is_hidden for each in estimates] for estimates in of_reports]).all(axis=0)
    if not shown.any():
        raise NotComparableError(Reason.SMALL)
    return np.asarray(shown, np.bool_)


def _between_windows(strata: Strata, window: Window, reference: Window, *, of: Quantity) -> Intervals:
    return lambda level: windows_difference(strata, first=reference, second=window, of=of, level=level)


def _total(contrasts: Sequence[Contrast]) -> Intervals:
    return lambda level: sum_of(contrasts, level=level)


def _scaled(intervals: Intervals, indicator: Indicator, *, of: Quantity) -> Intervals:
    """Visitors as those of the population, by the market share of the study; shares as they are."""
    scale = 1 / float(indicator.study.market_share) if of == "visitors" else 1.0
    if scale == 1:
        return intervals

    def at(level: float) -> WindowEstimate:
        found = intervals(level)
        names = ("value", "std_error", "ci_low", "ci_high")
        return replace(found, **{name: getattr(found, name) * scale for name in names})

    return at


def _comparison(
    kind: Kind,
    report: WindowReport,
    reference: WindowReport,
    *,
    of: Quantity,
    intervals: Intervals,
    rows: Mask | None = None,
    references: Sequence[Value] | None = None,
) -> Comparison:
    """Judge all categories, or those of `rows`; `references` are the values compared with."""
    found = intervals(LEVEL)
    chosen = np.ones(found.value.size, np.bool_) if rows is None else rows
    judged = excludes_zero(found), holm(intervals, rows=chosen, level=LEVEL)
    if references is None:
        references = [_value(estimate, of=of) for estimate in reference.estimates]
    return Comparison(
        kind=kind,
        of=of,
        report=report,
        reference=reference,
        rows=tuple(
            _row(estimate, references[place], found, place=place, judged=judged, of=of)
            for place, estimate in enumerate(report.estimates)
            if chosen[place]
        ),
        is_exact=found.is_exact,
    )


def _row(
    estimate: Estimate,
    reference: Value,
    found: WindowEstimate,
    *,
    place: int,
    judged: tuple[Mask, Mask],
    of: Quantity,
) -> Row:
    """One row; `judged` says which differ on their own, and which in their table."""
    value, difference = _value(estimate, of=of), float(found.value[place])
    is_read = _status_of(value, reference) == Status.OK
    alone, held = (_verdict(difference, is_shown=is_read and bool(mask[place])) for mask in judged)
    return Row(
        category=estimate.category,
        category_fr=estimate.category_fr,
        value=value,
        reference=reference,
        difference=difference,
        std_error=float(found.std_error[place]),
        low=float(found.ci_low[place]),
        high=float(found.ci_high[place]),
        alone=alone,
        held=held,
    )


def _verdict(difference: float, *, is_shown: bool) -> Verdict:
    if not is_shown:
        return Verdict.NOT_SHOWN
    return Verdict.HIGHER if difference > 0 else Verdict.LOWER


def _value(estimate: Estimate, *, of: Quantity) -> Value:
    if of == "visitors":
        numbers = (estimate.visitors, estimate.visitors_ci_low, estimate.visitors_ci_high)
    else:
        numbers = (estimate.frequency, estimate.ci_low, estimate.ci_high)
    value, low, high = numbers
    return Value(value=value, low=low, high=high, status=estimate.status)


def _means(found: WindowEstimate, *, shares: WindowEstimate) -> list[Value]:
    """Means of days; as of any report the widths of shares decide, which are narrower than those of a day."""
    status = estimates_status(Status.OK, ci_low=shares.ci_low.tolist(), ci_high=shares.ci_high.tolist())
    columns = zip(found.value.tolist(), found.ci_low.tolist(), found.ci_high.tolist(), strict=True)
    return [Value(value=value, low=low, high=high, status=status) for value, low, high in columns]


def _status_of(value: Value, reference: Value) -> Status:
    return Status.OK if value.status == reference.status == Status.OK else Status.NOT_RELIABLE
