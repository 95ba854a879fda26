"""Figures of each class of subscribers in a window."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from ldp import ClassReports, NoReportsError, Pooled, pooled_if_alike
from ldp.estimation.estimators import Estimates
from reports.base.status import Status, estimates_status
from reports.estimates.queries import LEVEL, Window, WindowReport, loaded_reports
from reports.privacy.statement.document import ClassProtection, class_protections
from reports.studies.models import Indicator


class NoClassesError(ValueError):
    """The study has no classes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Share of a category, with its 95% interval; the numbers are None where no one answered."""

    category: str
    shown_category: str
    status: Status
    frequency: float | None = None
    std_error: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassRow:
    """One class; its visitors, answers and shares are None and empty where the small-cell rule hides them.

    epsilon : of one answer to the indicator, certified
    """

    protection: ClassProtection
    epsilon: Decimal
    n_visitors: int | None
    n_reports: int | None
    shares: tuple[Share, ...] = ()

    @property
    def half_width(self) -> float | None:
        """Half of the width of the intervals, on average."""
        halves = [
            (each.ci_high - each.ci_low) / 2
            for each in self.shares
            if each.ci_low is not None and each.ci_high is not None
        ]
        return sum(halves) / len(halves) if halves else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ByClass:
    """All classes in a window.

    is_hidden : they or one of them have few visitors, so that no numbers are shown
    pooled : the test of equal shares, and the estimates that assume them; None where there is no test
    alike : shares that assume equal shares; empty if the test refuses them
    """

    report: WindowReport
    rows: tuple[ClassRow, ...]
    is_hidden: bool
    pooled: Pooled | None = None
    alike: tuple[Share, ...] = ()


def by_class(indicator: Indicator, window: Window) -> ByClass:
    """Figures of the classes; NoClassesError in a study without them.

    If a class has fewer visitors than `small_cell`, the window has no numbers, and so none has any.
    """
    (((report,), loaded),) = loaded_reports([indicator], [[window]])
    found = [each.reports(window) for each in loaded.classes]
    if not found:
        raise NoClassesError(f"study {indicator.study.slug!r} has no classes")
    protections = class_protections(report.plan)
    is_hidden = report.status == Status.SUPPRESSED
    index = [entry.slug for entry in protections[0].certificate.indicators].index(indicator.slug)
    rows = tuple(
        ClassRow(
            protection=protection,
            epsilon=protection.certificate.indicators[index].epsilon,
            n_visitors=None if is_hidden else own.n_visitors,
            n_reports=None if is_hidden else own.n_reports,
            shares=() if is_hidden else _shares_of(report, own),
        )
        for protection, own in zip(protections, found, strict=True)
    )
    pooled = _pooled(found) if report.status in (Status.OK, Status.NOT_RELIABLE) else None
    return ByClass(
        report=report,
        rows=rows,
        is_hidden=is_hidden,
        pooled=pooled,
        alike=() if pooled is None or pooled.estimates is None else _shares(report, pooled.estimates),
    )


def _pooled(classes: Sequence[ClassReports]) -> Pooled | None:
    try:
        return pooled_if_alike(classes, error=1 - LEVEL, level=LEVEL)
    except NoReportsError:
        return None


def _shares_of(report: WindowReport, own: ClassReports) -> tuple[Share, ...]:
    if own.n_reports:
        return _shares(report, own.estimates(level=LEVEL))
    return tuple(
        Share(category=each, shown_category=shown, status=Status.NOT_COLLECTED)
        for each, shown in _names(report.indicator)
    )


def _shares(report: WindowReport, found: Estimates) -> tuple[Share, ...]:
    columns = (found.frequency, found.std_error, found.ci_low, found.ci_high)
    numbers = zip(*(column.tolist() for column in columns), strict=True)
    window = Status.OUTAGE if report.status == Status.OUTAGE else Status.OK
    status = estimates_status(window, ci_low=found.ci_low.tolist(), ci_high=found.ci_high.tolist())
    return tuple(
        Share(
            category=category,
            shown_category=shown,
            status=status,
            frequency=frequency,
            std_error=std_error,
            ci_low=ci_low,
            ci_high=ci_high,
        )
        for (category, shown), (frequency, std_error, ci_low, ci_high) in zip(
            _names(report.indicator), numbers, strict=True
        )
    )


def _names(indicator: Indicator) -> list[tuple[str, str]]:
    return list(zip(indicator.categories, indicator.shown_categories, strict=True))
