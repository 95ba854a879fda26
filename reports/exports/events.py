"""Events as files: a row for each category and period, with the sums and the interval of the sum."""

from collections.abc import Callable, Mapping
from datetime import date
from typing import Any, Final

from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from reports.accounts.access import any_study_or_404, indicator_or_404
from reports.base.attachments import attachment
from reports.base.csv_texts import csv_text
from reports.base.version import software
from reports.estimates.queries import LEVEL, Estimate, WindowReport
from reports.events.periods import PERIODS, PeriodKind
from reports.events.queries import DEFAULT, PeriodCount, PeriodReport, known_periods, period_reports
from reports.exports.errors import ExportError
from reports.exports.file_views import file_of_study, refused
from reports.exports.forecasts import to_json
from reports.exports.formats.choosing import content_type
from reports.exports.formats.columns import Kind
from reports.exports.formats.spreadsheet import MAX_ROWS, Sheet, workbook
from reports.studies.models import Indicator
from reports.studies.texts import answered_events_words

Record = dict[str, Any]
_KINDS: Final = {
    **dict.fromkeys(("first_day", "last_day"), Kind.DAY),
    **dict.fromkeys(("n_events", "n_reports", "reports", "plan_version"), Kind.COUNT),
    **dict.fromkeys(("epsilon", "ci_level"), Kind.NUMBER),
    **dict.fromkeys(("frequency", "std_error", "ci_low", "ci_high", "consistent"), Kind.SHARE),
    **dict.fromkeys(("events", "events_ci_low", "events_ci_high"), Kind.PEOPLE),
}

_MEANINGS: Final = {
    "category": _("Category of the indicator."),
    "events": _("Estimated number of events of the category."),
    "first_day": _("First day of the period in the study."),
    "is_whole": _("“no” if the study covers only part of the period."),
    "last_day": _("Last day of the period in the study."),
    "n_events": _("Number of events in the period, exact."),
    "n_reports": _("Number of answers that are used."),
    "period": _("Name of the period."),
    "reports": _("Number of random answers with this category. It is not a number of events."),
    "unit": _("Values that epsilon protects: one of an event's values, or all of them."),
}


def periods_record(indicator: Indicator, kind: PeriodKind) -> Record:
    """Estimates of each period, with rows also where no event was reported; no rows before the first file.

    Events are exact; those of a category are estimated.
    """
    found = period_reports(indicator, known_periods(indicator.study, kind))
    rows = [
        {
            **period_facts(each),
            "is_whole": "yes" if each.is_whole else "no",
            "n_reports": each.report.n_reports,
            **estimate_facts(each, estimate),
        }
        for each in found
        for estimate in each.report.estimates
    ]
    head = head_facts(indicator, found[0].report if found else None)
    return {**head, "period": kind, **tail_facts(indicator), "rows": rows}


def head_facts(indicator: Indicator, report: WindowReport | None) -> Record:
    """Indicator and plan; nothing of the plan without a report."""
    return {
        "study": indicator.study.slug,
        "indicator": indicator.slug,
        "plan_version": report and report.plan_version,
        "mechanism": report and report.mechanism,
        "epsilon": report and report.epsilon,
        "unit": report and report.unit,
        "max_events": report and report.plan.spec.get("max_events"),
    }


def period_facts(period: PeriodReport | PeriodCount) -> Record:
    """Days of a period and its exact number of events."""
    return {
        "period": period.name,
        "first_day": period.first_date.isoformat(),
        "last_day": period.last_date.isoformat(),
        "is_whole": period.is_whole,
        "n_events": period.n_events,
    }


def estimate_facts(period: PeriodReport, estimate: Estimate) -> Record:
    """A category in a period."""
    return {
        "category": estimate.category,
        "reports": estimate.reports,
        "frequency": estimate.frequency,
        "std_error": estimate.std_error,
        "ci_low": estimate.ci_low,
        "ci_high": estimate.ci_high,
        "consistent": estimate.consistent,
        "events": estimate.visitors,
        "events_ci_low": estimate.visitors_ci_low,
        "events_ci_high": estimate.visitors_ci_high,
        "status": _status(period, estimate),
    }


def _status(period: PeriodReport, estimate: Estimate) -> str:
    """Status of a figure; events of which none is answered, or has a value, give no share."""
    if not period.n_events:
        return "no_events"
    return str(estimate.status) if period.report.n_reports else "no_answers"


def tail_facts(indicator: Indicator) -> Record:
    """Confidence level, time zone and version of the software."""
    return {
        "ci_level": LEVEL,
        "timezone": indicator.study.timezone,
        "software_version": software()["version"],
    }


def to_csv(record: Mapping[str, Any]) -> bytes:
    """A row for each category and period."""
    rows = _flat(record)
    return csv_text(list(rows[0]), [list(row.values()) for row in rows]).encode()


def to_xlsx(record: Mapping[str, Any]) -> bytes:
    """A sheet that explains the figures, and one of them."""
    title = gettext("Events by period")
    title = f"{title} · {record['study']}"
    about = [
        (gettext("Study"), record["study"]),
        (gettext("Indicator"), record["indicator"]),
        (gettext("Time zone used for days"), record["timezone"]),
        (
            gettext("Periods"),
            gettext(
                "Each period is the sum of the counts of its days, and its interval is that of the sum. It "
                "is not a mean of daily shares. Periods that the study does not cover in full are marked "
                "“no” in is_whole."
            ),
        ),
        (
            gettext("Privacy unit"),
            gettext("One event. The number of events is exact; the number in a category is estimated."),
        ),
    ]
    if record["max_events"]:
        about.append((gettext("Answered events"), answered_events_words(record["max_events"])))
    rows = _flat(record)
    if len(rows) > MAX_ROWS:
        text = gettext("A spreadsheet can hold at most %(most)d rows, but there are %(rows)d. Choose CSV.")
        raise ExportError(text % {"most": MAX_ROWS, "rows": len(rows)})
    columns = [(name, _KINDS.get(name, Kind.TEXT)) for name in rows[0]]
    sheet = Sheet(name="events", columns=columns, rows=(list(row.values()) for row in rows))
    last = record["rows"][-1]["last_day"]
    return workbook(
        [sheet], title=title, last_date=date.fromisoformat(last), about={title: about}, meanings=_MEANINGS
    )


def _flat(record: Mapping[str, Any]) -> list[Record]:
    before = {name: record[name] for name in ("study", "indicator", "plan_version", "mechanism")}
    before |= {"epsilon": record["epsilon"], "unit": record["unit"]}
    after = {name: record[name] for name in ("ci_level", "timezone", "software_version")}
    return [{**before, **row, **after} for row in record["rows"]]


WRITERS: Final[Mapping[str, Callable[[Mapping[str, Any]], bytes]]] = {
    "csv": to_csv,
    "xlsx": to_xlsx,
    "json": to_json,
}


def check(record: Record) -> Record:
    """Return a record with figures; ExportError if there are none."""
    if not record["rows"]:
        raise ExportError(gettext("There are no figures yet, because no events have been published."))
    return record


@file_of_study
def download_periods(
    request: HttpRequest, slug: str, indicator_slug: str, file_format: str
) -> HttpResponseBase:
    """Figures of all periods of a kind."""
    study = any_study_or_404(request, slug)
    indicator = indicator_or_404(indicator_slug, among=list(study.indicators.all()))
    kind = next((each for each in PERIODS if each == request.GET.get("period", DEFAULT)), None)
    if file_format not in WRITERS or kind is None:
        raise Http404
    try:
        if not study.of_events:
            raise ExportError(gettext("This study counts visitors, not events."))
        content = WRITERS[file_format](check(periods_record(indicator, kind)))
    except ExportError as error:
        return refused(error)
    return attachment(
        content,
        content_type=content_type(file_format),
        name=f"{study.slug}_{indicator.slug}_{kind}.{file_format}",
    )
