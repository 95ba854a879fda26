"""Movements as a table: totals of every day, and the figure that the page shows, of all categories."""

from collections.abc import Iterator
from typing import Any

from reports.base.status import Status
from reports.exports.findings.tables import Findings, Record, head_of, interval_codes, tail_of
from reports.exports.formats.columns import Kind as Holds
from reports.movement import texts as words
from reports.movement.figures import OF_A_DAY, Derived, Movement, Point, Show, Unit

_DAYS = ("cohort_day", "day", "window_first_day", "window_last_day")


def movement_findings(found: Movement) -> Findings:
    """All that the page of movements says; a row without category is about all visitors."""
    indicator, show = found.report.indicator, found.show
    said = (
        (words.verdict(found), words.WORDS[show].meaning, words.interval_words(found))
        if show
        else (words.reason_for_nothing(indicator),)
    )
    return Findings(
        name=f"{found.report.study.slug}_{indicator.slug}_movement{f'_{show}' if show else ''}",
        title=words.summary(found, indicator=indicator) or indicator.shown_name,
        sheet="movement",
        reports=(found.report,),
        words=(*(str(text) for text in said), words.reason_for_less(indicator)),
        before=head_of(found.report),
        rows=[*_totals(found), *_figures(found)],
        after=tail_of(found.report),
        kinds=dict.fromkeys(_DAYS, Holds.DAY)
        | dict.fromkeys(("value", "ci_low", "ci_high", "consistent", "market_share"), Holds.NUMBER),
        codes={"interval": interval_codes()},
    )


def _totals(found: Movement) -> Iterator[Record]:
    """Exact numbers: of the study, then of every day."""
    key = found.key
    for figure, unit, value in (
        ("different_visitors", Unit.VISITORS, key.n_visitors),
        ("visits", Unit.VISITORS, key.n_visits),
        ("days_present", Unit.DAYS, key.mean_days),
    ):
        status = key.status if key.status != Status.OK or value is not None else Status.SUPPRESSED
        yield _record(figure=figure, unit=unit, value=value, interval="count", status=status)
    for day in found.totals:
        status = day.coverage.status
        for figure, count in (
            ("visitors", day.coverage.visitors),
            ("arrivals", day.arrivals),
            ("returning", day.returning),
            ("departures", day.departures),
        ):
            is_hidden = count is None and status == Status.OK
            yield _record(
                figure=figure,
                day=day.coverage.date.isoformat(),
                value=count,
                interval="count",
                status=Status.SUPPRESSED if is_hidden else status,
            )


def _figures(found: Movement) -> Iterator[Record]:
    """The figure of the page per category, and its total where that is not among those of the days."""
    for place, point in enumerate(found.points):
        where = _where(found, point, place=place)
        if found.show in (*OF_A_DAY, Show.WINDOW):
            yield _record(**where, **_total(point))
        for estimate in point.estimates:
            yield _record(**where, **_estimate(estimate, is_exact=point.is_exact))


def _where(found: Movement, point: Point, *, place: int) -> dict[str, Any]:
    """Figure, unit and days of a point."""
    study = found.report.study
    figure = str(found.show)
    if found.show == Show.WINDOW and found.window is not None:
        return {
            "figure": ("window_new", "window_returning")[place],
            "window_first_day": study.date_of(found.window.first_day).isoformat(),
            "window_last_day": study.date_of(found.window.last_day).isoformat(),
        }
    if found.show == Show.DAYS_PRESENT:
        return {"figure": figure, "unit": found.unit}
    cohort = study.date_of(found.cohort).isoformat() if found.cohort else None
    return {"figure": figure, "unit": found.unit, "cohort_day": cohort, "day": point.date.isoformat()}


def _total(point: Point) -> dict[str, Any]:
    """Values of all visitors: exact, or exact bounds."""
    if point.total is not None or point.low is None:
        return {"value": point.total, "interval": "count", "status": point.status}
    return {"ci_low": point.low, "ci_high": point.high, "interval": "bounds", "status": point.status}


def _estimate(estimate: Derived, *, is_exact: bool) -> dict[str, Any]:
    return {
        "category": estimate.category,
        "value": estimate.value,
        "ci_low": estimate.ci_low,
        "ci_high": estimate.ci_high,
        "consistent": estimate.consistent,
        "interval": "exact" if is_exact else "at_least",
        "status": estimate.status,
    }


def _record(
    *,
    figure: str,
    interval: str,
    status: Status,
    unit: Unit = Unit.VISITORS,
    category: str | None = None,
    value: float | None = None,
    ci_low: float | None = None,
    ci_high: float | None = None,
    consistent: float | None = None,
    **days: str | None,
) -> Record:
    """One row, with all columns; without numbers there is no interval of any kind."""
    is_blank = value is None and ci_low is None
    return {
        "figure": figure,
        "category": category,
        **{name: days.get(name) for name in _DAYS},
        "value_unit": str(unit),
        "value": value,
        "ci_low": ci_low,
        "ci_high": ci_high,
        "consistent": consistent,
        "interval": None if is_blank else interval,
        "status": str(status),
    }
