"""Events by period as the API sends them: what pages and files have."""

from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.translation import gettext

from reports.api.answers import Page, answer, as_json, page_of_rows
from reports.api.auth import any_study_of, reader_of
from reports.api.records import study_head
from reports.base.problems import ProblemError
from reports.estimates.fingerprints import state_of
from reports.events.periods import PeriodKind
from reports.events.queries import events_by_day, known_periods, period_counts, period_reports
from reports.exports.events import estimate_facts, head_facts, period_facts, tail_facts
from reports.exports.forecasts import events_record
from reports.forecasts.queries import event_forecast
from reports.studies.models import Indicator, Study


def studies_answer(request: HttpRequest, page: Page) -> HttpResponseBase:
    """Studies of events that the reader may read, newest first."""
    seen = reader_of(request).studies(Study.Units.EVENTS).order_by("-first_day", "slug")
    found = list(seen.prefetch_related("indicators"))

    def build() -> Any:
        rows = [_line(study) for study in page.cut(found)]
        return page_of_rows(request, rows, page=page, count=len(found))

    return answer(request, state=state_of(found), build=build)


def event_study_of(request: HttpRequest, slug: str) -> Study:
    """The study of events, if the reader may read it; otherwise ProblemError (404)."""
    found = any_study_of(request, slug)
    if not found.of_events:
        raise ProblemError(404, gettext("This study counts visitors, not events."))
    return found


def counts_answer(request: HttpRequest, study: Study, kind: PeriodKind, page: Page) -> HttpResponseBase:
    """Exact number of events in each period."""

    def build() -> Any:
        found = period_counts(study, kind)
        rows = [period_facts(each) for each in page.cut(found)]
        return page_of_rows(request, rows, page=page, count=len(found))

    return answer(request, state=state_of([study]), build=build)


def estimates_answer(
    request: HttpRequest, indicator: Indicator, kind: PeriodKind, page: Page
) -> HttpResponseBase:
    """Estimates of all categories in each period."""

    def build() -> Any:
        periods = known_periods(indicator.study, kind)
        rows = [
            {
                **head_facts(indicator, each.report),
                **period_facts(each),
                "n_reports": each.report.n_reports,
                "estimates": [estimate_facts(each, estimate) for estimate in each.report.estimates],
                **tail_facts(indicator),
            }
            for each in period_reports(indicator, page.cut(periods))
        ]
        return page_of_rows(request, rows, page=page, count=len(periods))

    return answer(request, state=[state_of([indicator.study]), indicator.pk], build=build)


def forecast_answer(request: HttpRequest, indicator: Indicator, kind: PeriodKind) -> HttpResponseBase:
    """The kept forecast of the next period; no rows until a worker has computed it."""
    found = event_forecast(indicator, kind)
    state = [indicator.pk, kind, found.row.fingerprint, str(found.row.computed_at)]
    return answer(request, state=state, build=lambda: as_json(events_record(found)))


def _line(study: Study) -> dict[str, Any]:
    return study_head(study) | {
        "indicators": [indicator.slug for indicator in study.indicators.all()],
        "n_events": sum(events_by_day(study)),
    }
