"""The page of a board's digest: who gets it, and how often."""

from typing import Any, Final

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import User
from django.core.validators import validate_email
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from reports.accounts.access import account, openers_only, study_or_404
from reports.boards.actions import record_digest
from reports.boards.models import Board, BoardDigest
from reports.boards.queries import board_or_404
from reports.ledger.chain import Json
from reports.sharing.digests import end_digest, is_allowed
from reports.studies.policies import OPENERS, studies_for
from reports.studies.texts import crumbs_to

MAX_ADDRESSES: Final = 5


class DigestForm(forms.Form):
    """Recipients of a digest, and how often they get it."""

    addresses = forms.CharField(
        label=_("E-mail addresses, one per line"), widget=forms.Textarea(attrs={"rows": 3}), max_length=1000
    )
    every_days = forms.TypedChoiceField(
        label=_("Interval"), coerce=int,
        choices=(
            (1, _("Every day, for the last day with data")),
            (7, _("Every week, for the last seven days")),
        ),
    )  # fmt: skip

    def clean_addresses(self) -> list[str]:
        """Addresses of allowed domains, each once."""
        found = list(dict.fromkeys(self.cleaned_data["addresses"].split()))
        if len(found) > MAX_ADDRESSES:
            text = gettext("Enter at most %(n)d addresses. You entered %(found)d.")
            raise forms.ValidationError(text % {"n": MAX_ADDRESSES, "found": len(found)})
        for each in found:
            validate_email(each)
            if not is_allowed(each):
                text = gettext("“%(address)s” is not allowed. Addresses must end in: %(domains)s.")
                domains = ", ".join(settings.MOBILITY_DIGEST_DOMAINS)
                raise forms.ValidationError(text % {"address": each, "domains": domains})
        return found


@require_http_methods(["GET", "POST"])
@openers_only
def digest(request: HttpRequest, slug: str, board_id: int) -> HttpResponse:
    """Set up, change or stop one's own digest of a board."""
    study, owner = study_or_404(request, slug), account(request)
    board = board_or_404(study, board_id, reader=owner)
    if not studies_for(owner, *OPENERS).filter(pk=study.pk).exists():
        raise Http404
    found = BoardDigest.objects.filter(board=board, owner=owner).first()
    if request.method == "POST" and "stop" in request.POST:
        if found is not None:
            found.board = board
            end_digest(found, actor=owner.get_username())
            messages.success(request, gettext("This board is no longer sent by e-mail."))
        return redirect(request.path)
    initial = {"addresses": "\n".join(found.addresses), "every_days": found.every_days} if found else None
    form = DigestForm(request.POST or None, initial=initial)
    if request.method == "POST" and form.is_valid():
        _save(board, owner, form.cleaned_data)
        messages.success(request, gettext("Saved. The next e-mail will be sent within an hour."))
        return redirect(request.path)
    crumbs = [*crumbs_to(study), (board.name, reverse("reports:board", args=[slug, board.pk]))]
    context = {"study": study, "board": board, "digest": found, "form": form, "crumbs": crumbs}
    context["domains"] = settings.MOBILITY_DIGEST_DOMAINS
    return render(request, "boards/digest.html", context, status=400 if form.errors else 200)


def _save(board: Board, owner: User, asked: dict[str, Any]) -> None:
    values = asked | {"language": translation.get_language() or settings.LANGUAGE_CODE}
    values |= {"next_at": timezone.now(), "retry_at": None, "sent_state": "", "error": ""}
    found, is_new = BoardDigest.objects.update_or_create(board=board, owner=owner, defaults=values)
    facts: dict[str, Json] = {"addresses": len(asked["addresses"]), "every_days": asked["every_days"]}
    record_digest(found, "created" if is_new else "changed", actor=owner.get_username(), facts=facts)
