"""The door of the API: imports it when the first program knocks, and turns every refusal into a problem."""

import json
from collections.abc import Mapping
from functools import cache
from types import ModuleType
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import Resolver404, ResolverMatch, URLResolver
from django.urls.resolvers import RoutePattern
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe

from reports.base.problems import problem
from reports.ledger.handouts import record_answer

ALLOWED = "GET, HEAD"
POSTED = frozenset({"queries"})  # operations whose question is in the body; they read as all others do


@require_safe
def root(_request: HttpRequest) -> HttpResponse:
    """Redirect the bare address to the overview."""
    return redirect("reading:docs")


# Nothing here writes, POST included, so that no token against forged requests is needed; other methods get a
# clear refusal.
@csrf_exempt
def answer(request: HttpRequest, rest: str) -> HttpResponseBase:
    """Answer of the operation at this address."""
    try:
        match = _resolver().resolve(rest)
    except Resolver404:
        return problem(
            404, gettext("This address does not exist. For a list of all addresses, see /api/v1/docs/.")
        )
    allowed = "POST" if match.url_name in POSTED else ALLOWED
    if request.method not in allowed.split(", "):
        return _not_allowed(allowed)
    if request.method == "POST":
        return _posted(request, match)
    asked, request.method = request.method, "GET"  # the server leaves the body of HEAD out
    try:
        response: HttpResponseBase = match.func(request, *match.args, **match.kwargs)
    finally:
        request.method = asked
    if asked == "GET" and response.status_code == 200 and "study" in match.kwargs:
        _note(request, response, what=match.url_name or "", kwargs=match.kwargs, query=request.GET)
    return response


def _posted(request: HttpRequest, match: ResolverMatch) -> HttpResponseBase:
    response: HttpResponseBase = match.func(request, *match.args, **match.kwargs)
    if response.status_code == 200:
        question = json.loads(request.body)
        _note(request, response, what=match.url_name or "", kwargs=match.kwargs, query=question)
    return response


def _note(
    request: HttpRequest,
    response: HttpResponseBase,
    *,
    what: str,
    kwargs: dict[str, Any],
    query: Mapping[str, Any],
) -> None:
    """Numbers of a study have left: that is in the ledger."""
    reader, names = site().reader_of(request), ("indicator", "collection", "from", "to", "datetime", "period")
    asked = {name: kwargs.get(name) or query.get(name) for name in names}
    record_answer(
        study=kwargs["study"],
        by=reader.user.get_username(),
        token_id=reader.token_id,
        facts={"way": "api", "what": what} | {name: text for name, text in asked.items() if text},
        version=response["ETag"].strip('"'),
        now=timezone.now(),
    )


def _not_allowed(allowed: str) -> HttpResponse:
    if allowed == ALLOWED:
        text = gettext("Method not allowed: this API is read-only (GET).")
    else:
        text = gettext("Method not allowed: send the question in the body of a POST request.")
    refusal = problem(405, text)
    refusal["Allow"] = allowed
    return refusal


@cache
def _resolver() -> URLResolver:
    return URLResolver(RoutePattern(""), site().api.urls[0])


def site() -> ModuleType:
    """The API itself."""
    from reports.api import site as found  # noqa: PLC0415 - ninja and pydantic: 0.6 s, in every web process

    return found
