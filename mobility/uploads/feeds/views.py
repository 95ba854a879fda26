"""Page of a study's feeds: who may send files without a person, since when, and until when."""

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext, gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST

from mobility.base.errors import MobilityError
from mobility.batches import queries
from mobility.batches.pages.access import crumbs_to, vault_study_or_404
from mobility.uploads.feeds import actions as service
from mobility.vault.models.profiles import FeedToken
from mobility.vault.profiles import usual_profile
from reports.studies.policies import Role, require_role, studies_for

people = require_role(*service.MAKERS)


class FeedForm(forms.Form):
    """Form of a token: program and validity."""

    name = forms.CharField(label=gettext_lazy("Name of the program"), max_length=80)
    days = forms.IntegerField(
        label=gettext_lazy("Valid for (days)"), min_value=1, max_value=service.DAYS_MAX, initial=365
    )


@require_http_methods(["GET", "POST"])
@people
def feeds(request: HttpRequest, slug: str) -> HttpResponse:
    """List the tokens of a study, and make one, whose text is shown this once."""
    study = vault_study_or_404(request, slug, *service.MAKERS)
    form, text = FeedForm(), ""
    if request.method == "POST":
        form = FeedForm(request.POST)
        if form.is_valid():
            try:
                _, text = service.create_token(study, by=request.user.get_username(), **form.cleaned_data)
                form = FeedForm()
            except MobilityError as error:
                form.add_error(None, error.reason.words)
    head = queries.study_head(study.pk)
    context = {
        "study": head,
        "tokens": service.tokens_of(study),
        "form": form,
        "token_text": text,
        "profile": usual_profile(study.pk),
        "put_url": request.build_absolute_uri(reverse("api:extract", args=[study.slug, "FILE"])),
        "crumbs": _crumbs(request, head),
    }
    return render(request, "uploads/feeds.html", context)


@require_POST
@people
def revoke_feed(request: HttpRequest, slug: str, token_id: int) -> HttpResponse:
    """Close the door to a token."""
    study = vault_study_or_404(request, slug, *service.MAKERS)
    token = get_object_or_404(FeedToken, pk=token_id, study=study)
    service.revoke(token, by=request.user.get_username())
    messages.success(request, gettext("The token “{name}” was revoked.").format(name=token.name))
    return redirect("operator:feeds", slug=slug)


def _crumbs(request: HttpRequest, study: queries.StudyHead) -> list[tuple[str, str]]:
    if studies_for(request.user, Role.OPERATOR).filter(slug=study.slug).exists():
        return crumbs_to(study.shown_name, study.slug)
    own = (study.shown_name, reverse("administrator:study", args=[study.slug]))
    return [(gettext("Administration"), reverse("administrator:studies")), own]
