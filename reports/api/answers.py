"""Delivery of answers: unchanged ones are not sent again, and long lists come in pages."""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import get_conditional_response, patch_vary_headers
from django.utils.http import quote_etag
from django.utils.translation import get_language, gettext

from reports.base.problems import ProblemError, problem
from reports.base.version import software
from reports.estimates.queries import WindowReport
from reports.exports.records import CONTENT_TYPES, render, report_record

# Inputs of an answer, except its address: the reader, and the language.
VARY = ("Authorization", "Cookie", "Accept-Language")


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """Body of an answer."""

    text: str
    content_type: str = "application/json"
    links: dict[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The part of a list that a program asks for."""

    limit: int
    offset: int

    def cut(self, rows: Sequence[Any]) -> Sequence[Any]:
        return rows[self.offset : self.offset + self.limit]


def answer(request: HttpRequest, *, state: object, build: Callable[[], Content]) -> HttpResponseBase:
    """Send what `build` makes, unless the reader has it already: then nothing is computed.

    `state` is all that the answer depends on, except address, language and version of the software.
    """
    etag = _etag(request, state)
    response = get_conditional_response(request, etag=etag)
    if response is None:
        content = build()
        response = HttpResponse(content.text, content_type=content.content_type)
        if content.links:
            response["Link"] = ", ".join(f'<{url}>; rel="{name}"' for name, url in content.links.items())
    elif response.status_code == 412:
        response = problem(412, gettext("The response has changed and no longer has this ETag."))
    response["ETag"] = etag
    patch_vary_headers(response, VARY)
    return response


def as_json(value: object) -> Content:
    """Return JSON as in exports: every letter as it is, no NaN."""
    return Content(text=json.dumps(value, ensure_ascii=False, allow_nan=False))


def one_report(report: WindowReport, *, file_format: str) -> Content:
    """A report as JSON object, or as rows of CSV."""
    if file_format == "csv":
        return _csv([report])
    return as_json(report_record(report))


def page_of_reports(
    request: HttpRequest, reports: Iterable[WindowReport], *, page: Page, count: int, file_format: str
) -> Content:
    """Reports of one page of windows; as CSV, only the header Link names the next."""
    links = page_links(request, page, count=count)
    if file_format == "csv":
        return _csv(reports, links=links)
    return page_of_rows(request, [report_record(report) for report in reports], page=page, count=count)


def page_of_rows(request: HttpRequest, rows: Sequence[object], *, page: Page, count: int) -> Content:
    """Rows of one page, how many there are in all, and where the next ones are."""
    links = page_links(request, page, count=count)
    body = {"items": list(rows), "count": count, "next": links.get("next")}
    return Content(text=as_json(body).text, links=links)


def page_links(request: HttpRequest, page: Page, *, count: int) -> dict[str, str]:
    """Addresses of the neighbouring pages, by their relation (RFC 8288); none repeats a row of this one."""
    links = {}
    end = page.offset + page.limit
    if end < count:
        links["next"] = _page_url(request, Page(limit=page.limit, offset=end))
    before = min(page.offset, count)  # rows before this page
    if before:
        limit = min(page.limit, before)
        links["prev"] = _page_url(request, Page(limit=limit, offset=before - limit))
    return links


def refuse_unknown(request: HttpRequest, *known: str) -> None:
    """A misspelled parameter must not be answered as if it were not there: ProblemError."""
    unknown = [name for name in request.GET if name not in known]
    if unknown:
        text = gettext("Unknown parameter %(name)s. Valid parameters: %(known)s.")
        names = ", ".join(known) or gettext("none")
        raise ProblemError(422, text % {"name": repr(unknown[0][:40]), "known": names})


def _csv(reports: Iterable[WindowReport], *, links: dict[str, str] | None = None) -> Content:
    text = render(reports, file_format="csv")
    return Content(text=text, content_type=CONTENT_TYPES["csv"], links=links)


def _page_url(request: HttpRequest, page: Page) -> str:
    query = request.GET.copy()
    query["limit"], query["offset"] = str(page.limit), str(page.offset)
    return request.build_absolute_uri(f"{request.path}?{query.urlencode()}")


def _etag(request: HttpRequest, state: object) -> str:
    parts = [software(), get_language(), request.get_full_path(), state]
    return quote_etag(hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()[:32])
