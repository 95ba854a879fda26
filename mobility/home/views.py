"""The first page: one obvious next step for each role, and the studies of those who may read them."""

from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.db import OperationalError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from reports.accounts.access import account, readable, readable_events, saved_views_of
from reports.boards.queries import boards_last_used
from reports.estimates.coverage import study_overviews
from reports.studies import policies
from reports.studies.policies import READERS

if settings.HAS_VAULT:  # the models of a vault exist there only
    from mobility.home.waiting import tasks_of

BOARDS_SHOWN = 5


@login_required
def home(request: HttpRequest) -> HttpResponse:
    """Return a person's possible actions here, what waits for them, and the state of each study."""
    policies.fetch_rights(request.user)
    is_reader = settings.HAS_REPORTS and bool(policies.roles_of(request.user) & READERS)
    context: dict[str, Any] = {"is_reader": is_reader}
    if is_reader:
        reader, studies, of_events = account(request), readable(request), readable_events(request)
        context |= {
            "rows": study_overviews(studies),
            "of_events": of_events.order_by("-first_day", "slug"),
            "saved_views": saved_views_of(reader),
            "boards": boards_last_used(reader, among=studies | of_events, at_most=BOARDS_SHOWN),
        }
    if settings.HAS_VAULT:
        try:
            context["tasks"] = tasks_of(account(request))
        except OperationalError:  # reports can be read without the vault
            context["tasks_unknown"] = True
    return render(request, "home/home.html", context)
