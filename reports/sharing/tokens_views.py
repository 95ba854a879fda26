"""Tokens of programs that read: made here, shown once, listed with their last use, revoked."""

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_POST

from reports.accounts.access import account, openers_only
from reports.accounts.texts import role_words
from reports.sharing import actions as access
from reports.sharing.revoking import revoke
from reports.studies.labels import label_of
from reports.studies.models import Study
from reports.studies.policies import OPENERS, Role, roles_of, studies_for
from reports.studies.texts import crumbs_to


class TokenForm(forms.Form):
    """Form of a token: program, studies and validity."""

    name = forms.CharField(label=_("Name of the program"), max_length=access.NAME_MAX)
    study = forms.ModelChoiceField(
        label=_("Access to"),
        queryset=Study.objects.none(),  # set for each person
        required=False,
        empty_label=_("All studies you have access to, including future ones"),
        to_field_name="slug",
    )
    days = forms.IntegerField(
        label=_("Valid for (days)"), min_value=1, max_value=access.TOKEN_DAYS_MAX, initial=90
    )

    def __init__(self, data: object = None, *, user: User) -> None:
        super().__init__(data)  # type: ignore[arg-type]
        found: Any = self.fields["study"]
        found.queryset = studies_for(user, *OPENERS).order_by("-first_day", "slug")
        found.label_from_instance = lambda study: label_of(study, user)


@require_http_methods(["GET", "POST"])
@openers_only
def tokens(request: HttpRequest) -> HttpResponse:
    """List the tokens, and make one, whose text is shown this once."""
    user = account(request)
    form, text = TokenForm(user=user), ""
    if request.method == "POST":
        form = TokenForm(request.POST, user=user)
        if form.is_valid():
            try:
                _made, text = access.create_token(**form.cleaned_data, by=user)
                form = TokenForm(user=user)
            except access.AccessError as error:
                form.add_error(None, str(error))
    return render(request, "sharing/tokens.html", _context(user, form, text))


@require_POST
@openers_only
def revoke_token(request: HttpRequest, token_id: int) -> HttpResponse:
    """Close the door to a token."""
    token = get_object_or_404(access.tokens_of(account(request)), pk=token_id)
    revoke(token, actor=account(request).get_username())
    messages.success(request, gettext("The token “%(name)s” was revoked.") % {"name": token.name})
    return redirect("access:tokens")


def _context(user: User, form: TokenForm, text: str) -> dict[str, Any]:
    return {
        "rows": [
            {
                "token": token,
                "roles": role_words(roles_of(token.owner)),
                "state": access.state_of(token, maker=token.owner, study_id=token.study_id),
            }
            for token in access.tokens_of(user)
        ],
        "form": form,
        "token_text": text,
        "sees_all": Role.ADMINISTRATOR in roles_of(user),
        "crumbs": crumbs_to(),
    }
