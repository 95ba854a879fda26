"""The API with its refusals as problems, and its description as OpenAPI document."""

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from http import HTTPStatus
from typing import Any, Final

from django.core.signals import got_request_exception
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.log import log_response
from django.utils.translation import gettext, gettext_noop
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError

from reports.base.outages import AWAY, come_again_problem
from reports.base.problems import CONTENT_TYPE, FieldError, ProblemError, missing_problem, problem
from reports.base.version import software
from reports.estimates.queries import WindowError

_FEATURES: Final = re.compile(r"/studies/[^/]+/features(/|$)")
AGAIN_S: Final = 5  # until an answer that a worker computes may be there
DESCRIPTION = gettext_noop(
    "Read-only reports on how many people visit a place. Every estimate comes with its error, and every "
    "missing value with its reason. Authenticate with a token (Authorization: Bearer) or by signing in "
    "to this site."
)


class DocumentedApi(NinjaAPI):
    """Operations that only read; nothing but JSON or CSV, and problems (RFC 9457)."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            title="Mobility reports",
            version=software()["version"],
            description=DESCRIPTION,
            openapi_url=None,
            docs_url=None,
            urls_namespace="reading-operations",
            **options,
        )
        for kind, handler in _HANDLERS.items():
            self.add_exception_handler(kind, handler)

    @cached_property
    def document(self) -> dict[str, Any]:
        """OpenAPI 3.1 as plain values, made once a process: it takes longer than most answers."""
        found: dict[str, Any] = dict(self.get_openapi_schema(path_prefix=reverse("reading:root").strip("/")))
        for methods in found["paths"].values():
            for operation in methods.values():
                operation["operationId"] = operation["operationId"].rpartition("_")[2]
                _describe_answers(operation)
        found.pop("servers", None)
        return found

    def get_openapi_operation_id(self, operation: Any) -> str:
        return str(operation.view_func.__name__)


def _describe_answers(operation: dict[str, Any]) -> None:
    """Refusals have their own media type; answers have the headers that save the next request."""
    for status, found in operation["responses"].items():
        content = found.get("content", {})
        if int(status) >= 400:
            found["content"] = {CONTENT_TYPE: content["application/json"]}
        elif any(parameter["name"] == "format" for parameter in operation["parameters"]) and content:
            content["text/csv"] = {"schema": {"type": "string"}}
        if int(status) < 400:
            found["headers"] = {
                "ETag": {
                    "description": "send it back as If-None-Match: 304 if nothing has changed",
                    "schema": {"type": "string"},
                }
            }


def _refused(request: HttpRequest, error: Any) -> HttpResponse:
    status = _unprocessable(request) if error.status == HTTPStatus.UNPROCESSABLE_ENTITY else error.status
    refusal = problem(status, str(error))
    if error.status == HTTPStatus.SERVICE_UNAVAILABLE:
        refusal["Retry-After"] = str(AGAIN_S)
    return refusal


def _unknown(_request: HttpRequest, _error: Any) -> HttpResponse:
    refusal = problem(
        401,
        gettext(
            "The token is missing, unknown, expired or revoked, and the request does not come from a "
            "signed-in session."
        ),
    )
    refusal["WWW-Authenticate"] = 'Bearer realm="mobility"'
    return refusal


def _unprocessable(request: HttpRequest) -> int:
    """Status for parameters that mean nothing: OGC API Features (Core 7.5.1) requires 400."""
    return 400 if is_of_features(request.path) else 422


def is_of_features(path: str) -> bool:
    """Return whether an address belongs to OGC API Features."""
    return _FEATURES.search(path) is not None


def _invalid(request: HttpRequest, error: Any) -> HttpResponse:
    errors = [
        {"parameter": _name_of(found["loc"]), "detail": found["msg"].removeprefix("Value error, ")}
        for found in error.errors
    ]
    if any(found["loc"][0] == "body" for found in error.errors):
        return problem(400, gettext("Some fields in the question are invalid."), errors=errors)
    return problem(_unprocessable(request), gettext("Some parameters are invalid."), errors=errors)


def _name_of(place: Sequence[str | int]) -> str:
    """A parameter of an address, or a field of a body with the way to it: where.age.0."""
    return ".".join(map(str, place[2:])) if place[0] == "body" else str(place[-1])


def _misasked(_request: HttpRequest, error: FieldError) -> HttpResponse:
    errors = [{"parameter": error.field, "detail": str(error)}]
    return problem(400, gettext("Some fields in the question are invalid."), errors=errors)


def _broken(request: HttpRequest, error: Any) -> HttpResponse:
    """Handle our errors and outages of databases: logged like those of any page."""
    got_request_exception.send(sender=None, request=request)
    if isinstance(error, AWAY):
        refusal: HttpResponse = come_again_problem()
    else:
        refusal = problem(500, gettext("An internal error occurred and has been logged."))
    log_response(
        "%s: %s", refusal.reason_phrase, request.path, response=refusal, request=request, exception=error
    )
    return refusal


_HANDLERS: Final[dict[type[Exception], Callable[[HttpRequest, Any], HttpResponse]]] = {
    ProblemError: _refused,
    FieldError: _misasked,
    WindowError: lambda request, error: problem(_unprocessable(request), str(error)),
    AuthenticationError: _unknown,
    ValidationError: _invalid,
    Http404: lambda *_: missing_problem(),
    HttpError: lambda _, error: problem(error.status_code, str(error)),
    Exception: _broken,
}
