"""Log of requests: an id for the log and for the client, its view, its duration.

A view's name, never its address: addresses hold slugs, ids and the secrets of share links.
"""

import logging
import re
import time
import uuid
from typing import Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.translation import gettext

from mobility.base.logs import REQUEST_ID
from mobility.base.middleware import Middleware
from mobility.operations.metrics.requests import observe
from reports.base.outages import API
from reports.base.problems import problem

log = logging.getLogger(__name__)
HEADER: Final = "X-Request-ID"
# Possible request ids of a proxy: nothing that could break a line of a log or pass for another field.
GIVEN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{7,63}")
METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
# Bodies before a sign-in: forms to sign in, second factors, passwords of share links.
MAX_UNKNOWN_BYTES: Final = 100_000
MAX_FORM_BYTES: Final = 6_000_000  # first rows of an extract, drafts of studies
STUDY_FILES: Final = re.compile(r"/administrator/create/|/studies/[^/]+/maps/layers/")
MAX_STUDY_FILES_BYTES: Final = 1_000_000_000  # the forms say themselves what they take
STREAMED: Final = re.compile(r"/(operator/[^/]+/uploads|api/v1/studies/[^/]+/extracts|api/v1/intake)/")
PLAIN: Final = "text/plain; charset=utf-8"


class RequestIdMiddleware(Middleware):
    """Each request has an id: the one that a proxy gave in X-Request-ID, or a new one."""

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        given = request.headers.get(HEADER, "")
        name = given if GIVEN_ID.fullmatch(given) else uuid.uuid4().hex
        request.META["HTTP_X_REQUEST_ID"] = name  # pages of errors show it
        token = REQUEST_ID.set(name)
        began = time.perf_counter()
        try:
            response = self.get_response(request)
            response.headers[HEADER] = name
            self._tell(request, response, seconds=time.perf_counter() - began)
        finally:
            REQUEST_ID.reset(token)
        return response

    @staticmethod
    def _tell(request: HttpRequest, response: HttpResponseBase, *, seconds: float) -> None:
        view = view_of(request)
        if settings.MOBILITY_METRICS_TOKEN:
            observe(
                view=view, method=method_of(request), status=response.status_code, seconds=seconds,
                come_again="Retry-After" in response.headers,
            )  # fmt: skip
        if settings.LOG_REQUESTS:
            log.info(
                "request_answered method=%s view=%s status=%s ms=%.0f",
                method_of(request), view, response.status_code, seconds * 1000,
            )  # fmt: skip


def view_of(request: HttpRequest) -> str:
    """Name of the address: `reports:study`; `unknown` where there is none."""
    match = request.resolver_match
    return (match.view_name if match else "") or "unknown"


def method_of(request: HttpRequest) -> str:
    method = request.method or ""
    return method if method in METHODS else "other"


class BodyLimitMiddleware(Middleware):
    """Refuse a body that is too large for who sends it, before any of it is read.

    After the session is known, and before a view or the check of forms reads. Where files go through as they
    come, their views know the sender by then and count bytes themselves.
    """

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        length = request.headers.get("Content-Length", "")
        size = int(length) if length.isascii() and length.isdigit() else 0
        if size > MAX_UNKNOWN_BYTES and not STREAMED.match(request.path_info):
            most = _most(request)
            if size > most:
                text = gettext(
                    "The request body is %(size)s bytes, which exceeds the limit of %(most)s bytes."
                )
                detail = text % {"most": most, "size": size}
                if request.path_info.startswith(API):
                    return problem(413, detail)
                return HttpResponse(detail, status=413, content_type=PLAIN)
        return self.get_response(request)


def _most(request: HttpRequest) -> int:
    """Bytes that a body may have."""
    if not request.user.is_authenticated:
        return MAX_UNKNOWN_BYTES
    return MAX_STUDY_FILES_BYTES if STUDY_FILES.fullmatch(request.path_info) else MAX_FORM_BYTES
