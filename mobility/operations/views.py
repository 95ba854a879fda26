"""The status page, of every zone."""

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe
from django_htmx.http import HttpResponseClientRefresh

from mobility.operations.status import status as status_now
from reports.studies.policies import OVERSEERS, require_role

EVERY_S = 15


@require_safe
def status(request: HttpRequest) -> HttpResponseBase:
    """Render the status page; a refresh gets the changing part alone."""
    is_fragment = bool(request.htmx)  # type: ignore[attr-defined]
    if is_fragment and not request.user.is_authenticated:
        return HttpResponseClientRefresh()  # the session has ended: the page leads to the sign-in
    return _shown(request, "operations/_state.html" if is_fragment else "operations/status.html")


@require_role(*OVERSEERS)
def _shown(request: HttpRequest, template: str) -> HttpResponse:
    return render(request, template, {"status": status_now(), "every_s": EVERY_S})
