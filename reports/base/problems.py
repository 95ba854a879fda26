"""Refusals as RFC 9457 has them: what went wrong, in one form for every status."""

from collections.abc import Sequence
from http import HTTPStatus

from django.http import Http404, JsonResponse
from django.utils.translation import gettext

CONTENT_TYPE = "application/problem+json"


class ProblemError(Exception):
    """Ends a request with a problem; `str()` is its detail, in words for the reader."""

    def __init__(self, status: int, detail: str) -> None:
        self.status = status
        super().__init__(detail)


class ExplainedHttp404(Http404):
    """Ends a request for a page that makes no sense for its study; `str()` says why, `way` leads on."""

    def __init__(self, detail: str, *, way: str) -> None:
        self.way = way
        super().__init__(detail)


class FieldError(Exception):
    """Ends a request whose body is wrong in one field; `str()` says what is, in words for the reader."""

    def __init__(self, field: str, detail: str) -> None:
        self.field = field
        super().__init__(detail)


def problem(status: int, detail: str, *, errors: Sequence[dict[str, str]] = ()) -> JsonResponse:
    """A refusal; `errors` names each parameter that is wrong, if any is."""
    content: dict[str, object] = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
    }
    if errors:
        content["errors"] = list(errors)
    return JsonResponse(content, status=status, content_type=CONTENT_TYPE)


def missing_problem() -> JsonResponse:
    """Answer that an address leads nowhere, in the same words whether it exists and is closed or does not."""
    return problem(404, gettext("This address does not exist, or you do not have access to it."))
