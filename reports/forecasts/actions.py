"""Forecasts of a study: asked for when figures are published, computed by a worker, kept."""

import hashlib
import json
from collections.abc import Iterator

from django.db.models import Q
from django.utils import timezone

from reports.base.tasks import send_on_commit
from reports.estimates.fingerprints import state_of
from reports.forecasts.computing import VERSION, Result, days_result, events_result, slots_result
from reports.forecasts.holidays import country_of
from reports.forecasts.models import KeptForecast
from reports.studies.models import Indicator, Study
from reports.studies.slot_models import StudySlots

Kind, State = KeptForecast.Kind, KeptForecast.State
TASK = "reports.tasks.refresh_forecasts"
LEAST_DAYS = 14  # of a study whose days are forecast: two of each weekday


def has_days_forecast(study: Study) -> bool:
    """Return whether a study is long enough for forecasts of its days."""
    return study.days >= LEAST_DAYS


def kept_forecast(study: Study, kind: KeptForecast.Kind, indicator: Indicator | None = None) -> KeptForecast:
    """The row of a forecast; an empty, unsaved one where no one has asked for it yet."""
    found = KeptForecast.objects.filter(study=study, kind=kind, indicator=indicator).first()
    return found or KeptForecast(study=study, kind=kind, indicator=indicator, fingerprint="")


def is_current(row: KeptForecast) -> bool:
    """Return whether a forecast is of all that is published now."""
    return row.state == State.DONE and row.fingerprint == _fingerprint(row.study)


def ask_for_forecasts(study: Study) -> None:
    """Ask a worker for what is out of date."""
    send_on_commit(TASK, study.pk, robust=True)


def refresh(study: Study) -> int:
    """Compute forecasts of a study that are out of date; return how many."""
    return sum(compute(row) for row in _rows(study))


def ask_for_due() -> None:
    """Ask a worker for each study with a forecast that is out of date."""
    for study in Study.objects.filter(Q(slots__isnull=False) | Q(days__gte=LEAST_DAYS)):
        if any(not is_current(row) for row in _rows(study)):
            ask_for_forecasts(study)


def compute(row: KeptForecast) -> bool:
    """Compute a forecast unless it is current, or on its way; after an error it is marked as failed."""
    fingerprint = _fingerprint(row.study)
    if row.pk is None:
        row, _ = KeptForecast.objects.get_or_create(
            study=row.study, kind=row.kind, indicator=row.indicator, defaults={"fingerprint": ""}
        )
    if not row.is_to_be_computed(fingerprint):
        return False
    row.fingerprint, row.state = fingerprint, State.RUNNING
    row.save()
    mine = KeptForecast.objects.filter(pk=row.pk, fingerprint=fingerprint)
    try:
        result = _result(row)
    except Exception:
        mine.update(state=State.FAILED)
        raise
    now = timezone.now()
    # Newer figures may have come: then someone else computes it again, and this result would be too old.
    mine.update(
        state=State.DONE,
        result=result,
        n_known=result.get("n_known", 0),
        computed_at=now,
        changed_at=now,
    )
    row.refresh_from_db()
    return True


def _rows(study: Study) -> Iterator[KeptForecast]:
    if StudySlots.objects.filter(study=study).exists():
        yield kept_forecast(study, Kind.SLOTS)
    if has_days_forecast(study):
        for indicator in (*([] if study.of_events else [None]), *study.indicators.all()):
            yield kept_forecast(study, Kind.DAYS, indicator)


def _result(row: KeptForecast) -> Result:
    if row.kind == Kind.SLOTS:
        return slots_result(row.study, before=row.result)
    if row.indicator is not None and row.study.of_events:
        return events_result(row.indicator)
    return days_result(row.study, row.indicator)


def _fingerprint(study: Study) -> str:
    _, *published = state_of([study])  # its fields change pages, but no forecast, except for the rule below
    limits = [study.small_cell, study.small_category] if study.small_category else [study.small_cell]
    parts = [VERSION, *limits, country_of(study.timezone), published]
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()
