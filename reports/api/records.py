"""Plain values of studies, indicators and visitors, as the API sends them."""

from typing import Any

from ldp import PlanSpec
from reports.coverage import DayCoverage, coverage_of
from reports.exports.records import NOISY_NAMES
from reports.models import DayNote, Indicator, Plan, Study
from reports.noise import noisy_window
from reports.selectors import (
    Counts,
    StudySummary,
    Window,
    current_plan,
    has_unions,
    shown_visitors,
    windows_of,
    windows_of_indicator,
)
from reports.small_cells import hides_new_or_returning
from reports.statement import plan_facts, study_facts
from reports.status import Status, window_status


def study_line(summary: StudySummary) -> dict[str, Any]:
    """A study in the list."""
    study = summary.study
    return {
        "study": study.slug,
        "name": study.name,
        "state": study.state,
        "first_day": study.first_day.isoformat(),
        "last_day": study.last_day.isoformat(),
        "days": study.days,
        "n_indicators": summary.n_indicators,
        "n_visitors": summary.n_visitors,
    }


def study_record(study: Study, *, visitors: Counts) -> dict[str, Any]:
    """A study with its days and its plan."""
    facts = study_facts(study)
    plan = current_plan(study)
    coverage = coverage_of(study, visitors=visitors, notes=study.day_notes.all())
    return {
        "study": facts.pop("slug"),
        **facts,
        "indicators": [indicator.slug for indicator in study.indicators.all()],
        "n_windows": len(windows_of(study)),
        "n_visitors": shown_visitors(study, int(visitors[1, study.days])),
        "plan": plan_facts(plan, PlanSpec.from_json(plan.spec)),
        "coverage": [_day(study, day, visitors=visitors) for day in coverage.days],
    }


def indicator_record(indicator: Indicator, *, plan: Plan, spec: PlanSpec) -> dict[str, Any]:
    """One indicator of a plan."""
    return {
        "study": indicator.study.slug,
        "indicator": indicator.slug,
        "name": indicator.name,
        "kind": indicator.kind,
        "categories": indicator.categories,
        "unions_of_days": has_unions(indicator),
        "n_windows": len(windows_of_indicator(indicator)),
        "plan_version": plan.version,
        "mechanism": plan.mechanism,
        "epsilon": float(spec.indicators[spec.index(indicator.slug)].epsilon),
        "unit": plan.unit,
    }


def visitors_record(
    study: Study, window: Window, *, visitors: Counts, outages: frozenset[int]
) -> dict[str, Any]:
    """Visitors of one window: exact, or noisy with an interval."""
    n_visitors = int(visitors[window.first_day, window.last_day])
    return {
        "first_day": study.date_of(window.first_day).isoformat(),
        "last_day": study.date_of(window.last_day).isoformat(),
        "n_visitors": shown_visitors(study, n_visitors),
        "status": _status(study, window, n_visitors=n_visitors, outages=outages),
        **_noisy_ends(study, window, visitors=visitors),
    }


def _noisy_ends(study: Study, window: Window, *, visitors: Counts) -> dict[str, int | None]:
    """Interval of a noisy number of visitors; nothing of an exact one."""
    if study.presence is None:
        return {}
    total = noisy_window(study, visitors, first_day=window.first_day, last_day=window.last_day)
    ends = (None, None) if total is None else (total.ci_low, total.ci_high)
    return dict(zip(NOISY_NAMES, ends, strict=True))


def outages_of(notes: list[DayNote]) -> frozenset[int]:
    """Numbers of the days that people marked as an outage."""
    return frozenset(note.day for note in notes if note.kind == DayNote.Kind.OUTAGE)


def _day(study: Study, day: DayCoverage, *, visitors: Counts) -> dict[str, Any]:
    """A day with what was counted, as in files: pages leave out what is not to be read, programs judge."""
    first_time = int(visitors[1, day.day] - visitors[1, day.day - 1])
    is_hidden = day.status == Status.SUPPRESSED or hides_new_or_returning(
        study, visitors, first_day=day.day, last_day=day.day
    )
    return {
        "day": day.date.isoformat(),
        "n_visitors": shown_visitors(study, int(visitors[day.day, day.day])),
        "first_time": None if is_hidden else first_time,
        "status": day.status,
        "notes": [{"kind": note.kind, "text": note.text} for note in day.notes],
    }


def _status(study: Study, window: Window, *, n_visitors: int, outages: frozenset[int]) -> Status:
    """Status of a number of visitors: it is exact, or has an interval of its own."""
    is_here = study.presence is not None and window.first_day <= study.noisy_through
    return window_status(
        n_visitors=n_visitors,
        n_reports=int(is_here) if study.presence is not None else n_visitors,
        small_cell=study.small_cell,
        is_outage=outages.issuperset(range(window.first_day, window.last_day + 1)),
    )
