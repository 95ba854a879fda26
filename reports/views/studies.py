"""The list of studies, and the page of one."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_GET

from reports import charts, wording
from reports.models import Area, Study
from reports.selectors import Counts, current_plan, study_summaries, visitor_unions
from reports.statement import certified
from reports.views.access import readers_only, study_or_404


@require_GET
@readers_only
def studies(request: HttpRequest) -> HttpResponse:
    """All studies, one line each."""
    return render(request, "reports/studies.html", {"rows": study_summaries()})


@require_GET
@readers_only
def study(request: HttpRequest, slug: str) -> HttpResponse:
    """What, where, when, who counts, how answers are protected, visitors per day, indicators."""
    found = study_or_404(slug)
    plan = current_plan(found)
    spec, certificate = certified(plan)
    visitors = visitor_unions(found)
    context = {
        "study": found,
        "area": Area.objects.filter(study=found).first(),
        "plan": plan,
        "spec": spec,
        "certificate": certificate,
        "indicators": list(found.indicators.all()),
        "visitor_rule": wording.visitor_rule(found),
        "n_visitors": int(visitors[1, found.days]),
        "n_windows": found.days * (found.days + 1) // 2,
        "days": day_rows(found, visitors),
        "figure": charts.visitors_figure(found, visitors),
        "crumbs": [(gettext("Studies"), reverse("reports:studies"))],
    }
    return render(request, "reports/study.html", context)


def day_rows(study: Study, visitors: Counts) -> list[dict[str, object]]:
    """Visitors of each day, and how many of them were there for the first time."""
    return [
        {
            "date": study.date_of(day),
            "visitors": int(visitors[day, day]),
            # whoever is in days 1..day but not in 1..day-1
            "first_time": int(visitors[1, day] - visitors[1, day - 1]),
        }
        for day in range(1, study.days + 1)
    ]
