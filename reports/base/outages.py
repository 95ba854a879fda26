"""Answer of a request during an outage of a database: 503, try again. The fault is not the request's."""

import sys
from http import HTTPStatus
from typing import Final

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template import loader
from django.utils.translation import gettext
from django.views.defaults import page_not_found, server_error

from reports.base.problems import ExplainedHttp404, missing_problem, problem

AWAY: Final = (OperationalError, InterfaceError)  # a database did not answer, or broke the connection off
RETRY_AFTER_S: Final = 5
OF_PROGRAMS: Final = ("PUT", "PATCH", "DELETE")  # sent by browsers only in scripts, as uploads by tus
API: Final = "/api/"


def is_outage(error: BaseException | None) -> bool:
    """Return whether a database did not answer, also where another error was raised because of it."""
    while error is not None and not isinstance(error, AWAY):
        error = error.__cause__ or error.__context__
    return error is not None


def failed(request: HttpRequest) -> HttpResponse:
    """Answer to a request that ended with an exception: 503 if a database did not answer, else 500.

    Django calls this while it handles the exception, and tells the log of it.
    """
    if not isinstance(sys.exc_info()[1], AWAY):
        return server_error(request)
    if request.path_info.startswith(API):
        return come_again_problem()
    return come_again_page(request_id=request.META.get("HTTP_X_REQUEST_ID", ""))


def missing(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer that an address leads nowhere, to programs as a problem."""
    if request.path_info.startswith(API) or request.method in OF_PROGRAMS:
        return missing_problem()
    if isinstance(exception, ExplainedHttp404):
        context = {"reason": str(exception), "way": exception.way}
        return render(request, "404.html", context, status=HTTPStatus.NOT_FOUND)
    return page_not_found(request, exception)


def come_again_page(*, request_id: str = "") -> HttpResponse:
    """Return the page for people; without the request, since its account is known from a database."""
    page = loader.get_template("503.html").render({"request_id": request_id})
    return _come_again(HttpResponse(page, status=HTTPStatus.SERVICE_UNAVAILABLE))


def come_again_problem() -> HttpResponse:
    """Return the problem document for programs."""
    detail = gettext("The databases are not responding. Try again.")
    return _come_again(problem(HTTPStatus.SERVICE_UNAVAILABLE, detail))


def _come_again(response: HttpResponse) -> HttpResponse:
    response["Retry-After"] = str(RETRY_AFTER_S)
    response["Cache-Control"] = "no-store"
    return response
