"""The operations of the API. Importing this imports its framework: `door` does so, when it is asked."""

from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.translation import gettext, gettext_noop

from reports.api import schemas
from reports.api.answers import (
    Page,
    answer,
    as_json,
    one_report,
    page_of_reports,
    page_of_rows,
    refuse_unknown,
)
from reports.api.auth import Session, Token, any_study_of, reader_of, study_of
from reports.api.classes import classes_answer
from reports.api.comparisons import change_answer
from reports.api.crosstab import association_answer, model_answer, query_answer
from reports.api.document import DocumentedApi
from reports.api.events import schemas as event_schemas
from reports.api.events.answers import (
    counts_answer,
    estimates_answer,
    event_study_of,
    forecast_answer,
    studies_answer,
)
from reports.api.extrapolation import extrapolation_answer
from reports.api.features.operations import router as features
from reports.api.flows import findings_answer
from reports.api.numbers import means_answer, number_answer
from reports.api.parameters import (
    AllSquares,
    Days,
    Format,
    From,
    Group,
    LevelName,
    Limit,
    Number,
    Offset,
    PeriodName,
    SquareLimit,
    To,
    WithFrom,
    WithTo,
    ZoneNames,
)
from reports.api.places import located_window, page_of_squares
from reports.api.presence import schemas as slot_schemas
from reports.api.presence.answers import presence_answer
from reports.api.presence.forecasts import days_answer, slots_answer
from reports.api.presence.smoothed import smoothed_answer
from reports.api.records import indicator_record, outages_of, study_line, study_record, visitors_record
from reports.api.scenarios import scenario_answer
from reports.base.problems import ProblemError
from reports.estimates.fingerprints import state_of
from reports.estimates.groups import in_groups
from reports.estimates.options import GROUPS
from reports.estimates.queries import (
    Window,
    WindowReport,
    indicator_reports,
    single_days_of,
    study_summaries,
    visitor_unions,
    window_between,
    window_report,
    windows_of,
    windows_of_indicator,
)
from reports.events.queries import DEFAULT
from reports.exports.findings.flows import asked_flows
from reports.exports.findings.visited import asked_visits
from reports.exports.places.selection import select_places, zones_document
from reports.maps.actions import state_of_places
from reports.privacy.composition import composition_facts
from reports.privacy.statement.document import privacy_statement
from reports.studies.models import Indicator, Study
from reports.studies.queries import current_plan

PAGE = 50
ESTIMATES_MAX = 20_000  # of a part: it is computed while its reader waits
SQUARES = 1000

STUDY = "/studies/{slug:study}"
INDICATOR = STUDY + "/indicators/{slug:indicator}"

api = DocumentedApi(auth=[Token(), Session(csrf=False)])


def answers(schema: Any) -> dict[int, Any]:
    """Successful answer and refusals of an operation."""
    return {200: schema, 304: None, **dict.fromkeys((401, 404, 422), schemas.Problem)}


@api.get("/studies", response=answers(schemas.StudyPage), summary=gettext_noop("Studies"))
def studies(request: HttpRequest, limit: Limit = PAGE, offset: Offset = 0) -> HttpResponseBase:
    """All studies that you can read, newest first, one line each."""
    refuse_unknown(request, "limit", "offset")
    reader = reader_of(request)
    page = Page(limit=limit, offset=offset)
    seen = reader.studies(Study.Units.VISITORS).order_by("-first_day", "slug")

    def build() -> Any:
        rows = [study_line(row) for row in study_summaries(reader.studies(Study.Units.VISITORS))]
        return page_of_rows(request, page.cut(rows), page=page, count=len(rows))

    return answer(request, state=state_of(list(seen)), build=build)


@api.get(STUDY, response=answers(schemas.StudyRecord), summary=gettext_noop("Study details"), by_alias=True)
def study(request: HttpRequest, study: str) -> HttpResponseBase:
    """Place, days, visitor definition and plan of a study, and the data of each day."""
    refuse_unknown(request)
    found = study_of(request, study)
    return answer(
        request,
        state=state_of([found]),
        build=lambda: as_json(study_record(found, visitors=visitor_unions(found))),
    )


@api.get(STUDY + "/visitors", response=answers(schemas.VisitorPage), summary=gettext_noop("Visitors"))
def visitors(
    request: HttpRequest,
    study: str,
    first: From = None,
    last: To = None,
    limit: Limit = PAGE,
    offset: Offset = 0,
) -> HttpResponseBase:
    """Distinct visitors of every window, or of those between two days: exact, or noisy with an interval."""
    refuse_unknown(request, "from", "to", "limit", "offset")
    found = study_of(request, study)
    page = Page(limit=limit, offset=offset)
    around = window_between(found, first, last)
    windows = [
        window
        for window in windows_of(found)
        if around.first_day <= window.first_day and window.last_day <= around.last_day
    ]

    def build() -> Any:
        unions, outages = visitor_unions(found), outages_of(list(found.day_notes.all()))
        rows = [
            visitors_record(found, window, visitors=unions, outages=outages) for window in page.cut(windows)
        ]
        return page_of_rows(request, rows, page=page, count=len(windows))

    return answer(request, state=state_of([found]), build=build)


@api.get(STUDY + "/statement", response=answers(schemas.Statement), summary=gettext_noop("Privacy statement"))
def statement(request: HttpRequest, study: str) -> HttpResponseBase:
    """The privacy guarantee, its limits and exact parameters, and the retention of data."""
    refuse_unknown(request)
    found = any_study_of(request, study)
    others = composition_facts(found, with_names=False)  # it changes with studies that are not asked for
    state = [state_of([found]), others]
    return answer(request, state=state, build=lambda: as_json(privacy_statement(found)))


@api.get(STUDY + "/indicators", response=answers(schemas.IndicatorPage), summary=gettext_noop("Indicators"))
def indicators(request: HttpRequest, study: str, limit: Limit = PAGE, offset: Offset = 0) -> HttpResponseBase:
    """The questions of a study, with their categories, in the order of its plan."""
    refuse_unknown(request, "limit", "offset")
    found = any_study_of(request, study)
    page = Page(limit=limit, offset=offset)

    def build() -> Any:
        rows = list(found.indicators.select_related("study"))
        return page_of_rows(request, _indicator_records(found, page.cut(rows)), page=page, count=len(rows))

    return answer(request, state=state_of([found]), build=build)


@api.get(INDICATOR, response=answers(schemas.IndicatorRecord), summary=gettext_noop("Indicator details"))
def indicator(request: HttpRequest, study: str, indicator: str) -> HttpResponseBase:
    """One question of a study."""
    refuse_unknown(request)
    found = _indicator_of(any_study_of(request, study), indicator)
    return answer(
        request,
        state=state_of([found.study]),
        build=lambda: as_json(_indicator_records(found.study, [found])[0]),
    )


@api.get(
    INDICATOR + "/estimates",
    response=answers(schemas.Report),
    summary=gettext_noop("Estimates for one window (date range)"),
)
def estimates(
    request: HttpRequest,
    study: str,
    indicator: str,
    first: From = None,
    last: To = None,
    format: Format = "json",  # noqa: A002 - named so in addresses
    group: Group = "all",
) -> HttpResponseBase:
    """The report of one window: each category with its share, its visitors and their intervals."""
    refuse_unknown(request, "from", "to", "format", "group")
    found = _indicator(request, study, indicator)
    window = window_between(found.study, first, last)
    return answer(
        request,
        state=state_of([found.study]),
        build=lambda: one_report(_shown(window_report(found, window), group), file_format=format),
    )


@api.get(
    INDICATOR + "/days", response=answers(schemas.ReportPage), summary=gettext_noop("Estimates for all days")
)
def days(
    request: HttpRequest,
    study: str,
    indicator: str,
    limit: Limit = PAGE,
    offset: Offset = 0,
    format: Format = "json",  # noqa: A002 - named so in addresses
    group: Group = "all",
) -> HttpResponseBase:
    """A report for each day of the study."""
    refuse_unknown(request, "limit", "offset", "format", "group")
    found = _indicator(request, study, indicator)
    page = Page(limit=limit, offset=offset)
    return _reports(request, found, single_days_of(found.study), page=page, file_format=format, group=group)


@api.get(
    INDICATOR + "/windows",
    response=answers(schemas.ReportPage),
    summary=gettext_noop("Estimates for all windows (date ranges)"),
)
def windows(
    request: HttpRequest,
    study: str,
    indicator: str,
    limit: Limit = PAGE,
    offset: Offset = 0,
    format: Format = "json",  # noqa: A002 - named so in addresses
    group: Group = "all",
) -> HttpResponseBase:
    """A report for each run of consecutive days, by first and last day."""
    refuse_unknown(request, "limit", "offset", "format", "group")
    found = _indicator(request, study, indicator)
    page = Page(limit=limit, offset=offset)
    return _reports(request, found, windows_of_indicator(found), page=page, file_format=format, group=group)


@api.get(
    INDICATOR + "/number",
    response=answers(schemas.NumberAnswer),
    summary=gettext_noop("Mean and quantiles of a numeric indicator"),
)
def number(
    request: HttpRequest,
    study: str,
    indicator: str,
    first: From = None,
    last: To = None,
    with_first: WithFrom = None,
    with_last: WithTo = None,
) -> HttpResponseBase:
    """Mean, quantiles and their intervals; with other days, the difference of both means too."""
    refuse_unknown(request, "from", "to", "with_from", "with_to")
    found = _indicator(request, study, indicator)
    reference = None if with_first is None else window_between(found.study, with_first, with_last)
    return number_answer(request, found, window_between(found.study, first, last), reference)


@api.get(
    INDICATOR + "/means",
    response=answers(schemas.MeansAnswer),
    summary=gettext_noop("Mean of a numeric indicator by category"),
)
def means(
    request: HttpRequest, study: str, indicator: str, first: From = None, last: To = None
) -> HttpResponseBase:
    """Mean in each category of another indicator, such as a zone, and the share of visitors in it."""
    refuse_unknown(request, "from", "to")
    found = _indicator(request, study, indicator)
    return means_answer(request, found, window_between(found.study, first, last))


@api.get(
    INDICATOR + "/extrapolation",
    response=answers(schemas.ExtrapolationAnswer),
    summary=gettext_noop("Total scaled to the population by category"),
)
def extrapolation(
    request: HttpRequest, study: str, indicator: str, first: From = None, last: To = None
) -> HttpResponseBase:
    """People that the visitors of a window and of each of its days stand for, and the unscaled numbers."""
    refuse_unknown(request, "from", "to")
    found = _indicator(request, study, indicator)
    return extrapolation_answer(request, found, window_between(found.study, first, last))


@api.get(
    INDICATOR + "/classes",
    response=answers(schemas.ClassesAnswer),
    summary=gettext_noop("Shares by class of subscribers"),
)
def classes(
    request: HttpRequest, study: str, indicator: str, first: From = None, last: To = None
) -> HttpResponseBase:
    """Shares in each class, which has its own epsilon, and in all of them if a test finds no difference."""
    refuse_unknown(request, "from", "to")
    found = _indicator(request, study, indicator)
    return classes_answer(request, found, window_between(found.study, first, last))


@api.get(
    STUDY + "/scenario",
    response=answers(schemas.Scenario),
    summary=gettext_noop("Visitors on a combination of days"),
)
def scenario(
    request: HttpRequest,
    study: str,
    present: Days = "",
    absent: Days = "",
    exactly: Number = "",
    in_a_row: Number = "",
    nights: Number = "",
) -> HttpResponseBase:
    """Return the least and most people who came on chosen days; without a question, on all days."""
    asked = {"present": present, "absent": absent, "exactly": exactly, "in_a_row": in_a_row, "nights": nights}
    refuse_unknown(request, *asked)
    return scenario_answer(request, study_of(request, study), None, asked=asked)


@api.get(
    INDICATOR + "/scenario",
    response=answers(schemas.Scenario),
    summary=gettext_noop("Visitors on a combination of days, by category"),
)
def scenario_categories(
    request: HttpRequest,
    study: str,
    indicator: str,
    present: Days = "",
    absent: Days = "",
    exactly: Number = "",
    in_a_row: Number = "",
    nights: Number = "",
) -> HttpResponseBase:
    """Return a scenario by category of a static indicator; status 503: ask again soon."""
    asked = {"present": present, "absent": absent, "exactly": exactly, "in_a_row": in_a_row, "nights": nights}
    refuse_unknown(request, *asked)
    found = _indicator(request, study, indicator)
    return scenario_answer(request, found.study, found, asked=asked)


@api.get(
    STUDY + "/presence", response=answers(slot_schemas.PresencePage), summary=gettext_noop("Presence by time")
)
def presence(
    request: HttpRequest,
    study: str,
    first: From = None,
    last: To = None,
    zone: ZoneNames = (),  # type: ignore[assignment]
    level: LevelName = None,
    limit: Limit = PAGE,
    offset: Offset = 0,
    format: Format = "json",  # noqa: A002 - named so in addresses
) -> HttpResponseBase:
    """Return people by zone in each time slot, with 95% intervals; with many zones, fewer slots a page."""
    refuse_unknown(request, "from", "to", "zone", "level", "limit", "offset", "format")
    page = Page(limit=limit, offset=offset)
    days = (first.isoformat() if first else "", last.isoformat() if last else "")
    found = study_of(request, study)
    return presence_answer(
        request, found, days=days, zones=zone, level=level, page=page, most=ESTIMATES_MAX, file_format=format
    )


@api.get(
    STUDY + "/presence/forecast",
    response=answers(slot_schemas.Forecast),
    summary=gettext_noop("Forecast by time slot"),
)
def presence_forecast(request: HttpRequest, study: str) -> HttpResponseBase:
    """Return the next slots by zone; empty until they are computed."""
    refuse_unknown(request)
    return slots_answer(request, study_of(request, study))


@api.get(
    STUDY + "/forecast",
    response=answers(slot_schemas.Forecast),
    summary=gettext_noop("Forecast by day"),
)
def forecast(request: HttpRequest, study: str, indicator: str = "") -> HttpResponseBase:
    """Return visitors, or shares of an indicator."""
    refuse_unknown(request, "indicator")
    if indicator:
        found = _indicator(request, study, indicator)
        return days_answer(request, found.study, found)
    return days_answer(request, study_of(request, study), None)


@api.get(
    INDICATOR + "/smoothed",
    response=answers(slot_schemas.Smoothed),
    summary=gettext_noop("Smoothed shares by day"),
)
def smoothed(request: HttpRequest, study: str, indicator: str) -> HttpResponseBase:
    """Return estimates and smoothed shares of a daily indicator of an smp-stream plan, and visitor-days."""
    refuse_unknown(request)
    return smoothed_answer(request, _indicator(request, study, indicator))


@api.post(
    STUDY + "/queries",
    response={200: schemas.QueryAnswer, **dict.fromkeys((400, 401, 404, 422), schemas.Problem)},
    summary=gettext_noop("Share of selected categories"),
)
def queries(request: HttpRequest, study: str, question: schemas.Query) -> HttpResponseBase:
    """Return the share of the visitors with some categories of an indicator, or of each of its parts."""
    refuse_unknown(request)
    found = study_of(request, study)
    return query_answer(request, found, question)


@api.get(
    INDICATOR + "/change",
    response=answers(schemas.Change),
    summary=gettext_noop("Test of two date ranges"),
)
def change(
    request: HttpRequest,
    study: str,
    indicator: str,
    first: From = None,
    last: To = None,
    with_first: WithFrom = None,
    with_last: WithTo = None,
) -> HttpResponseBase:
    """Test whether all categories have the same shares in both date ranges; default: the first day."""
    refuse_unknown(request, "from", "to", "with_from", "with_to")
    found = _indicator(request, study, indicator)
    reference = window_between(found.study, with_first or found.study.first_day, with_last)
    return change_answer(request, found, window=window_between(found.study, first, last), reference=reference)


@api.get(
    INDICATOR + "/association",
    response=answers(schemas.Association),
    summary=gettext_noop("Association between two indicators"),
)
def association(
    request: HttpRequest,
    study: str,
    indicator: str,
    rows: str = "",
    columns: str = "",
    first: From = None,
    last: To = None,
) -> HttpResponseBase:
    """Test whether two parts of a joint indicator go together; default: its two largest."""
    refuse_unknown(request, "rows", "columns", "from", "to")
    found = _indicator(request, study, indicator)
    window = window_between(found.study, first, last)
    return association_answer(request, found, rows=rows, columns=columns, window=window)


@api.get(
    STUDY + "/model",
    response=answers(schemas.ModelAnswer),
    summary=gettext_noop("Three-way table (model)"),
)
def model(
    request: HttpRequest,
    study: str,
    rows: str = "",
    columns: str = "",
    third: str = "",
    first: From = None,
    last: To = None,
) -> HttpResponseBase:
    """Modelled shares of the combinations of three indicators that are asked in pairs only."""
    refuse_unknown(request, "from", "to", "rows", "columns", "third")
    found = study_of(request, study)
    return model_answer(request, found, window_between(found, first, last), [rows, columns, third])


@api.get(
    STUDY + "/flows",
    response=answers(schemas.Flows | schemas.Moves),
    summary=gettext_noop("Flows between places"),
)
def flows(
    request: HttpRequest, study: str, first: From = None, last: To = None, indicator: str = ""
) -> HttpResponseBase:
    """Return people by origin and destination, or moves."""
    refuse_unknown(request, "from", "to", "indicator")
    found = study_of(request, study)
    window = window_between(found, first, last)
    return findings_answer(request, found, window, indicator=indicator, asked=asked_flows)


@api.get(STUDY + "/visited", response=answers(schemas.Visited), summary=gettext_noop("Visited zones"))
def visited(
    request: HttpRequest, study: str, first: From = None, last: To = None, indicator: str = ""
) -> HttpResponseBase:
    """Return people by zone that they visit on a day, or by pair of such zones."""
    refuse_unknown(request, "from", "to", "indicator")
    found = study_of(request, study)
    window = window_between(found, first, last)
    return findings_answer(request, found, window, indicator=indicator, asked=asked_visits)


@api.get(STUDY + "/places", response=answers(schemas.Places), summary=gettext_noop("Reported places"))
def places(request: HttpRequest, study: str, first: From = None, last: To = None) -> HttpResponseBase:
    """Reported places of one window by zone: reports, and subscribers with their intervals."""
    refuse_unknown(request, "from", "to")
    found = study_of(request, study)
    window = located_window(found, window_between(found, first, last))
    return answer(
        request,
        state=[state_of([found]), state_of_places(found, window)],
        build=lambda: as_json(zones_document(select_places(found, window))),
    )


@api.get(STUDY + "/places/grid", response=answers(schemas.SquarePage), summary=gettext_noop("Grid squares"))
def places_grid(
    request: HttpRequest,
    study: str,
    first: From = None,
    last: To = None,
    is_all: AllSquares = False,  # noqa: FBT002 - an option of addresses
    limit: SquareLimit = SQUARES,
    offset: Offset = 0,
) -> HttpResponseBase:
    """Reports and density of one window, for squares with a report or a twentieth of a subscriber."""
    refuse_unknown(request, "from", "to", "all", "limit", "offset")
    found = study_of(request, study)
    page = Page(limit=limit, offset=offset)
    window = located_window(found, window_between(found, first, last))
    return answer(
        request,
        state=[state_of([found]), state_of_places(found, window)],
        build=lambda: page_of_squares(request, select_places(found, window), page=page, is_all=is_all),
    )


@api.get("/events", response=answers(event_schemas.EventStudyPage), summary=gettext_noop("Studies of events"))
def events(request: HttpRequest, limit: Limit = PAGE, offset: Offset = 0) -> HttpResponseBase:
    """All studies of events that you can read, newest first, one line each."""
    refuse_unknown(request, "limit", "offset")
    return studies_answer(request, Page(limit=limit, offset=offset))


@api.get(
    STUDY + "/periods", response=answers(event_schemas.PeriodPage), summary=gettext_noop("Events by period")
)
def periods(
    request: HttpRequest,
    study: str,
    period: PeriodName = DEFAULT,
    limit: Limit = PAGE,
    offset: Offset = 0,
) -> HttpResponseBase:
    """Exact number of events of a study of events in each period, up to the last day with events."""
    refuse_unknown(request, "period", "limit", "offset")
    found = event_study_of(request, study)
    return counts_answer(request, found, period, Page(limit=limit, offset=offset))


@api.get(
    INDICATOR + "/periods",
    response=answers(event_schemas.PeriodEstimatesPage),
    summary=gettext_noop("Events by period and category"),
)
def series(
    request: HttpRequest,
    study: str,
    indicator: str,
    period: PeriodName = DEFAULT,
    limit: Limit = PAGE,
    offset: Offset = 0,
) -> HttpResponseBase:
    """Estimates for each period, which is the sum of its days; with many categories, fewer periods a page."""
    refuse_unknown(request, "period", "limit", "offset")
    found = _indicator_of(event_study_of(request, study), indicator)
    most = max(1, ESTIMATES_MAX // len(found.categories))
    return estimates_answer(request, found, period, Page(limit=min(limit, most), offset=offset))


@api.get(
    INDICATOR + "/next-period",
    response=answers(event_schemas.EventForecast),
    summary=gettext_noop("Forecast of events"),
)
def next_period(
    request: HttpRequest, study: str, indicator: str, period: PeriodName = DEFAULT
) -> HttpResponseBase:
    """Return a model's expected numbers of events in the next period; empty until they are computed."""
    refuse_unknown(request, "period")
    return forecast_answer(request, _indicator_of(event_study_of(request, study), indicator), period)


api.add_router("", features)


@api.get("/openapi.json", include_in_schema=False)
def openapi(request: HttpRequest) -> HttpResponseBase:
    """The description of this API, for programs that write programs."""
    refuse_unknown(request)
    return answer(request, state=None, build=lambda: as_json(api.document))


def _reports(
    request: HttpRequest,
    found: Indicator,
    asked: Sequence[Window],
    *,
    page: Page,
    file_format: str,
    group: str,
) -> HttpResponseBase:
    most = max(1, ESTIMATES_MAX // len(found.categories))
    bounded = Page(limit=min(page.limit, most), offset=page.offset)

    def build() -> Any:
        reports = [_shown(each, group) for each in indicator_reports(found, list(bounded.cut(asked)))]
        return page_of_reports(request, reports, page=bounded, count=len(asked), file_format=file_format)

    return answer(request, state=[state_of([found.study]), found.pk], build=build)


def _shown(report: WindowReport, group: str) -> WindowReport:
    return in_groups(report) if group == GROUPS else report


def _indicator(request: HttpRequest, study_slug: str, slug: str) -> Indicator:
    return _indicator_of(study_of(request, study_slug), slug)


def _indicator_of(within: Study, slug: str) -> Indicator:
    found = within.indicators.select_related("study").filter(slug=slug).first()
    if found is None:
        raise ProblemError(404, gettext("The study has no indicator with this name."))
    return found


def _indicator_records(found: Study, rows: Sequence[Indicator]) -> list[dict[str, Any]]:
    plan = current_plan(found)
    spec = plan.parsed
    return [indicator_record(row, plan=plan, spec=spec) for row in rows]
