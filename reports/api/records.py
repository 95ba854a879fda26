"""Plain values of studies, indicators and visitors, as the API sends them."""

from typing import Any

from ldp import PlanSpec
from ldp.estimation.noisy_estimators import NoisyTotal
from reports.estimates.coverage import DayCoverage, coverage_of
from reports.estimates.models import DayNote
from reports.estimates.noise import noisy_first_time, noisy_window
from reports.estimates.queries import Counts, StudySummary, Window, windows_of, windows_of_indicator
from reports.estimates.small_cells import ShownVisitors
from reports.privacy.statement.document import plan_facts, study_facts
from reports.studies.models import Indicator, Study
from reports.studies.plan_models import Plan
from reports.studies.queries import current_plan, has_unions


def study_line(summary: StudySummary) -> dict[str, Any]:
    """A study in the list."""
    return study_head(summary.study) | {
        "n_indicators": summary.n_indicators,
        "n_visitors": summary.n_visitors,
    }


def study_head(study: Study) -> dict[str, Any]:
    """Names, state and days of a study: its line in the list of visitors and in that of events."""
    return {
        "study": study.slug,
        "name": study.name,
        "state": study.state,
        "first_day": study.first_day.isoformat(),
        "last_day": study.last_day.isoformat(),
        "days": study.days,
    }


def study_record(study: Study, *, visitors: Counts) -> dict[str, Any]:
    """A study with its days and its plan."""
    facts = study_facts(study)
    plan = current_plan(study)
    coverage = coverage_of(study, visitors=visitors, notes=study.day_notes.all())
    shown = ShownVisitors(study, visitors)
    return {
        "study": facts.pop("slug"),
        **facts,
        "indicators": [indicator.slug for indicator in study.indicators.all()],
        "n_windows": len(windows_of(study)),
        "n_visitors": shown.of(1, study.days),
        "plan": plan_facts(plan, plan.parsed),
        "coverage": [_day(shown, day) for day in coverage.days],
    }


def indicator_record(indicator: Indicator, *, plan: Plan, spec: PlanSpec) -> dict[str, Any]:
    """One indicator of a plan."""
    of_events = indicator.study.of_events
    return {
        "study": indicator.study.slug,
        "indicator": indicator.slug,
        "name": indicator.name,
        "kind": indicator.kind,
        "categories": indicator.categories,
        "unions_of_days": has_unions(indicator) and not of_events,
        "n_windows": 0 if of_events else len(windows_of_indicator(indicator)),
        "plan_version": plan.version,
        "mechanism": plan.mechanism,
        "epsilon": float(spec.indicators[spec.index(indicator.slug)].epsilon),
        "unit": plan.unit,
    }


def visitors_record(
    study: Study, window: Window, *, visitors: Counts, outages: frozenset[int]
) -> dict[str, Any]:
    """Visitors of one window: exact, or noisy with an interval."""
    shown, (first, last) = ShownVisitors(study, visitors), (window.first_day, window.last_day)
    is_outage = outages.issuperset(range(first, last + 1))
    return {
        "first_day": study.date_of(first).isoformat(),
        "last_day": study.date_of(last).isoformat(),
        "n_visitors": shown.of(first, last),
        "status": shown.status(first, last, is_outage=is_outage),
        **_noisy_ends(study, n_visitors=noisy_window(study, visitors, first_day=first, last_day=last)),
    }


def _noisy_ends(study: Study, **totals: NoisyTotal | None) -> dict[str, int | None]:
    """Intervals of noisy numbers of visitors, by their names; nothing of exact ones."""
    ends: dict[str, int | None] = {}
    for name, total in totals.items() if study.presence is not None else ():
        ends[f"{name}_ci_low"], ends[f"{name}_ci_high"] = (
            (None, None) if total is None else (total.ci_low, total.ci_high)
        )
    return ends


def outages_of(notes: list[DayNote]) -> frozenset[int]:
    """Numbers of the days that people marked as an outage."""
    return frozenset(note.day for note in notes if note.kind == DayNote.Kind.OUTAGE)


def _day(shown: ShownVisitors, day: DayCoverage) -> dict[str, Any]:
    """A day with its counts, as in files: pages leave out unreliable figures, programs judge."""
    study, number = shown.study, day.day
    return {
        "day": day.date.isoformat(),
        "n_visitors": shown.of(number, number),
        "first_time": shown.first_time(number),
        "status": day.status,
        "notes": [{"kind": note.kind, "text": note.text} for note in day.notes],
        **_noisy_ends(
            study,
            n_visitors=noisy_window(study, shown.unions, first_day=number, last_day=number),
            first_time=noisy_first_time(study, shown.unions, day=number),
        ),
    }
