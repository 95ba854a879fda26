"""Removing the demo, after a page that says what goes."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods

from mobility.base.errors import MobilityError
from mobility.demo.removal import NoDemoError, demo_study, remove_demo
from reports.accounts.access import administrators_only


@require_http_methods(["GET", "POST"])
@administrators_only
def remove(request: HttpRequest) -> HttpResponse:
    """Say what goes; remove it when that is confirmed."""
    try:
        study = demo_study()
    except NoDemoError as error:
        raise Http404 from error
    problem = ""
    if request.method == "POST":
        try:
            remove_demo(by=request.user.get_username())
        except MobilityError as error:
            problem = str(error)
        else:
            messages.success(request, gettext("The demo has been removed."))
            return redirect("home")
    context = {"study": study, "problem": problem}
    return render(request, "demo/remove_demo.html", context, status=409 if problem else 200)
