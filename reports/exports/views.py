"""Downloads of pages as files."""

import json
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.translation import gettext

from reports.accounts.access import any_study_or_404, indicator_or_404, readable, sees_all, study_or_404
from reports.base.attachments import attachment
from reports.compare import texts
from reports.compare.queries import Kind, NotComparableError, comparable_indicators
from reports.compare.query import (
    AddressError,
    address_error,
    asked_of,
    compared,
    is_complete,
    kind_of,
    measure_of,
)
from reports.estimates.options import (
    GROUP,
    GROUPS,
    DaysOptions,
    ReportOptions,
    asked_categories,
    asks_for_groups,
)
from reports.estimates.picker import asked_days, requested_window
from reports.estimates.queries import UnionNotAvailableError, WindowError, check_union, visitor_unions
from reports.exports.errors import ExportError
from reports.exports.file_views import file_of_study, file_response, format_or_404, refused
from reports.exports.findings.comparisons import comparison_findings
from reports.exports.formats.choosing import (
    COMPARISON,
    MOVEMENT,
    SCENARIO,
    Format,
    group_formats,
    has_groups,
)
from reports.exports.recipes import BUNDLE, POPULATION, Recipe
from reports.exports.selection import Scope
from reports.movement.query import NAMES
from reports.movement.query import asked_of as asked_of_movement
from reports.privacy.statement.document import privacy_statement
from reports.scenario.queries import refusal
from reports.scenario.query import question_of
from reports.studies.models import Indicator


@file_of_study
def download_study(request: HttpRequest, slug: str, file_format: str) -> HttpResponseBase:
    """All indicators: in all windows as data, over all days for reading."""
    study, found = study_or_404(request, slug), format_or_404(Scope.STUDY, file_format)
    return file_response(request, study, Recipe(scope=Scope.STUDY, ending=found.ending))


@file_of_study
def download_window(
    request: HttpRequest, slug: str, indicator_slug: str, file_format: str
) -> HttpResponseBase:
    """One indicator in the window that the address names."""
    indicator = _indicator(request, slug, indicator_slug)
    found = format_or_404(Scope.WINDOW, file_format)
    study = indicator.study
    if (text := _no_groups(request, Scope.WINDOW, found)) is not None:
        return refused(ExportError(text))
    try:
        window = requested_window(request.GET, indicator=indicator, visitors=visitor_unions(study))
        check_union(indicator, window)
    except WindowError as error:
        return refused(error)
    recipe = Recipe(
        scope=Scope.WINDOW,
        ending=found.ending,
        indicator=indicator.slug,
        first_day=window.first_day,
        last_day=window.last_day,
        options=ReportOptions.from_query(request.GET).query("") if found.is_drawn else _of_data(request),
    )
    return file_response(request, study, recipe)


@file_of_study
def download_days(request: HttpRequest, slug: str, indicator_slug: str, file_format: str) -> HttpResponseBase:
    """One indicator on each day that the page shows; what is drawn as the page shows it."""
    indicator = _indicator(request, slug, indicator_slug)
    found = format_or_404(Scope.DAYS, file_format)
    if (text := _no_groups(request, Scope.DAYS, found)) is not None:
        return refused(ExportError(text))
    options = _of_data(request)
    if found.is_drawn:
        categories = asked_categories(request.GET, n_categories=len(indicator.categories))
        chosen = urlencode([("category", code) for code in categories])
        options = DaysOptions.from_query(request.GET).query(chosen)
    days = asked_days(request.GET, indicator.study)
    recipe = Recipe(
        scope=Scope.DAYS,
        ending=found.ending,
        indicator=indicator.slug,
        first_day=days.first_day if days else 0,
        last_day=days.last_day if days else 0,
        options=options,
    )
    return file_response(request, indicator.study, recipe)


@file_of_study
def download_comparison(
    request: HttpRequest, slug: str, indicator_slug: str, file_format: str
) -> HttpResponse:
    """The comparison that the address names, as its page names it."""
    indicator, query = _indicator(request, slug, indicator_slug), request.GET
    kind = kind_of(query)
    others = comparable_indicators(indicator, among=readable(request)) if kind == Kind.STUDIES else []
    if not is_complete(query, kind):
        return refused(ExportError(gettext("The page address must specify both sides of the comparison.")))
    try:
        asked = asked_of(query, kind, indicator=indicator, others=others)
        comparison = compared(kind, indicator, asked, of=measure_of(query))
    except NotComparableError as error:
        return refused(ExportError(texts.not_comparable(error)))
    except UnionNotAvailableError as error:
        return refused(error)
    except (AddressError, WindowError) as error:
        return refused(ExportError(address_error(error, indicator)))
    findings, found = comparison_findings(comparison), format_or_404(COMPARISON, file_format)
    try:
        content = found.write(findings)
    except ExportError as error:
        return refused(error)
    return attachment(content, content_type=found.content_type, name=f"{findings.name}.{file_format}")


@file_of_study
def download_movement(
    request: HttpRequest, slug: str, indicator_slug: str, file_format: str
) -> HttpResponseBase:
    """Totals and the figure that the address names, as its page names it, of all categories."""
    indicator = _indicator(request, slug, indicator_slug)
    format_or_404(MOVEMENT, file_format)
    try:
        asked_of_movement(request.GET, indicator=indicator)
    except WindowError as error:
        return refused(error)
    options = urlencode([(name, request.GET[name]) for name in NAMES if request.GET.get(name)])
    recipe = Recipe(scope=MOVEMENT, ending=file_format, indicator=indicator.slug, options=options)
    return file_response(request, indicator.study, recipe)


@file_of_study
def download_scenario(
    request: HttpRequest, slug: str, file_format: str, indicator_slug: str = ""
) -> HttpResponseBase:
    """The answer to the question that the address names, with categories and likely patterns."""
    study = study_or_404(request, slug)
    indicator = _indicator(request, slug, indicator_slug) if indicator_slug else None
    found = format_or_404(SCENARIO, file_format)
    if text := refusal(study, indicator):
        return refused(ExportError(text))
    try:
        question = question_of(request.GET, study=study)
    except WindowError as error:
        return refused(error)
    recipe = Recipe(scope=SCENARIO, ending=found.ending, indicator=indicator_slug, options=question.query)
    return file_response(request, study, recipe)


@file_of_study
def download_bundle(request: HttpRequest, slug: str) -> HttpResponseBase:
    """All that someone else needs to recompute every number of a study."""
    return file_response(request, study_or_404(request, slug), Recipe(scope=BUNDLE, ending="zip"))


@file_of_study
def download_population(request: HttpRequest, slug: str) -> HttpResponseBase:
    """Synthetic people who have the published figures of a study."""
    return file_response(request, study_or_404(request, slug), Recipe(scope=POPULATION, ending="zip"))


@file_of_study
def download_statement(request: HttpRequest, slug: str) -> HttpResponse:
    """The privacy statement as JSON."""
    study = any_study_or_404(request, slug)
    found = privacy_statement(study, with_names=sees_all(request.user))
    text = json.dumps(found, indent=1, ensure_ascii=False)
    return attachment(text, content_type="application/json", name=f"{study.slug}_statement.json")


def _of_data(request: HttpRequest) -> str:
    """Options of data: only whether they are groups."""
    return urlencode({GROUP: GROUPS}) if asks_for_groups(request.GET) else ""


def _no_groups(request: HttpRequest, scope: Scope, found: Format) -> str | None:
    """Return why a file cannot have the groups that the address asks for."""
    if not asks_for_groups(request.GET) or has_groups(scope, found):
        return None
    return gettext("Groups of categories are available as %(names)s only.") % {"names": group_formats()}


def _indicator(request: HttpRequest, slug: str, indicator_slug: str) -> Indicator:
    return indicator_or_404(indicator_slug, among=list(study_or_404(request, slug).indicators.all()))
