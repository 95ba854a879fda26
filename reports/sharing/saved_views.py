"""Views that a person keeps: a report page under a name."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_POST

from reports.accounts.access import account, openers_only, saved_views_of
from reports.sharing import actions
from reports.studies.texts import crumbs_to


@require_http_methods(["GET", "POST"])
@openers_only
def saved(request: HttpRequest) -> HttpResponse:
    """List the kept views, or keep the page that the form names and go back to it."""
    user = account(request)
    if request.method == "POST":
        return _keep(request)
    context = {"views": saved_views_of(user), "crumbs": crumbs_to()}
    return render(request, "sharing/saved.html", context)


@require_POST
@openers_only
def remove_saved(request: HttpRequest, view_id: int) -> HttpResponse:
    """Forget a kept view."""
    view = get_object_or_404(saved_views_of(account(request)), pk=view_id)
    view.delete()
    messages.success(request, gettext("“%(name)s” was removed from your saved views.") % {"name": view.name})
    return redirect("access:saved")


def _keep(request: HttpRequest) -> HttpResponse:
    address = request.POST.get("address", "")
    try:
        view = actions.save_view(name=request.POST.get("name", ""), address=address, by=account(request))
    except actions.AccessError as error:
        messages.error(request, str(error))
        # The page with the form, but only if it is one of this site.
        return redirect(address if actions.is_report_address(address) else "access:saved")
    messages.success(
        request, gettext("Saved as “%(name)s”. You can find it on the studies page.") % {"name": view.name}
    )
    return redirect(view.address)
