"""Limits of zones: how many people each holds, now and some slots ahead. Administrators set them."""

from collections.abc import Sequence
from typing import Final

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods

from reports.accounts.access import account, administrators_only, study_of_visitors
from reports.forecasts import texts
from reports.forecasts.computing import SLOTS_AHEAD
from reports.forecasts.crowds import judge, set_limit
from reports.forecasts.models import CrowdLimit
from reports.slots.queries import NoSlotsError, SlotZone, presence
from reports.studies.models import Study
from reports.studies.policies import Role, study_for
from reports.studies.texts import crumbs_to

MOST: Final = 2**31 - 1


@require_http_methods(["GET", "HEAD", "POST"])
@administrators_only
def limits(request: HttpRequest, slug: str) -> HttpResponse:
    """All limits of a study, and a form for one; a limit without a number is removed."""
    study = study_of_visitors(study_for(request.user, slug, Role.ADMINISTRATOR))
    try:
        found = presence(study, first_day=study.days)  # of one day: only zones are needed
    except NoSlotsError:
        raise Http404 from None
    minutes, problem = found.spec.minutes, ""
    if request.method == "POST":
        problem = _save(request, study, found.zones)
        if not problem:
            return redirect("reports:crowd_limits", slug)
    rows = [
        (found.zones[limit.zone], limit, _ahead_text(limit.ahead, minutes=minutes), _people(limit))
        for limit in CrowdLimit.objects.filter(slots=found.slots)
    ]
    context = {
        "study": study,
        "zones": found.zones,
        "rows": rows,
        "choices": [(n, _ahead_text(n, minutes=minutes)) for n in _choices(minutes)],
        "problem": problem,
        "crumbs": [
            *crumbs_to(study),
            (gettext("Forecast"), reverse("reports:presence_forecast", args=[slug])),
        ],
    }
    return render(request, "forecasts/limits.html", context, status=400 if problem else 200)


def _save(request: HttpRequest, study: Study, zones: Sequence[SlotZone]) -> str:
    """Set or remove the limit of the form; returns why not, or an empty text."""
    given = {name: request.POST.get(name, "") for name in ("zone", "ahead", "capacity")}
    zone = next((each for each in zones if str(each.place) == given["zone"]), None)
    ahead = next((n for n in range(SLOTS_AHEAD + 1) if str(n) == given["ahead"]), None)
    text = given["capacity"].strip()
    capacity = int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(MOST)) else None
    if zone is None or ahead is None:
        return gettext("Choose a zone and a time from the lists.")
    if text and (capacity is None or not 1 <= capacity <= MOST):
        return gettext("Enter a whole number of at least 1, or leave the field empty to remove the limit.")
    set_limit(study, zone=zone, ahead=ahead, capacity=capacity, by=account(request).get_username())
    judge(study)
    messages.success(request, gettext("The limit was saved.") if text else gettext("The limit was removed."))
    return ""


def _choices(minutes: int) -> list[int]:
    """Slots ahead to choose from: the last published one, the next, and whole hours."""
    hours = [hours * 60 // minutes for hours in (1, 2, 3, 6, 12, 24)]
    return sorted({0, 1, *(n for n in hours if 1 <= n <= SLOTS_AHEAD)})


def _ahead_text(ahead: int, *, minutes: int) -> str:
    return texts.ahead_text(ahead * minutes) if ahead else gettext("Now (last published time slot)")


def _people(limit: CrowdLimit) -> str:
    if limit.slot is None:
        return gettext("not known yet")
    if limit.low is None or limit.high is None:
        return gettext("no interval: the history is too short")
    return texts.range_text((limit.low, limit.high))
