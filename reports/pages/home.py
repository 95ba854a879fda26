"""The first page: one obvious next step for each role, and the studies of those who may read them."""

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from reports.accounts.access import account, readable, saved_views_of
from reports.estimates.coverage import study_overviews
from reports.studies import policies
from reports.studies.policies import READERS


@login_required
def home(request: HttpRequest) -> HttpResponse:
    """Return a person's possible actions here, and the state of each study."""
    policies.fetch_rights(request.user)
    is_reader = settings.HAS_REPORTS and bool(policies.roles_of(request.user) & READERS)
    context = {
        "rows": study_overviews(readable(request)) if is_reader else [],
        "is_reader": is_reader,
        "saved_views": saved_views_of(account(request)) if is_reader else [],
    }
    return render(request, "home.html", context)
