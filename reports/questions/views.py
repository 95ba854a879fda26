"""The page of questions of a study."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from reports.accounts.access import readers_only, study_or_404
from reports.questions.answers import answers
from reports.questions.facts import Facts
from reports.studies.texts import crumbs_to


@require_safe
@readers_only
def questions(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the questions that this study answers, and why it cannot answer the others."""
    study = study_or_404(request, slug)
    found = answers(Facts(study))
    context = {
        "study": study,
        "answered": [each for each in found if each.links],
        "unanswered": [each for each in found if not each.links],
        "crumbs": crumbs_to(study),
    }
    return render(request, "questions/questions.html", context)
