"""People: accounts, what they may do, and in which studies. Administrators change, privacy officers see."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from reports.accounts import actions as people
from reports.accounts import grants
from reports.accounts.access import account, administrators_only, overseers_only
from reports.accounts.actions import AccessChangeError
from reports.accounts.matrix import Account, accounts_with_rights
from reports.accounts.names import NAME_MAX
from reports.accounts.texts import ROLE_MEANINGS, ROLE_WORDS, role_words
from reports.studies.grant_models import StudyGrant, today
from reports.studies.labels import label_of
from reports.studies.models import Study
from reports.studies.policies import SEES_ALL, Role, Somebody, roles_of

ALL = "*"  # the choice of all studies; no slug has a star


class RolesForm(forms.Form):
    """Roles and rights of an account."""

    roles = forms.TypedMultipleChoiceField(
        label=_("Roles"),
        choices=[(role.value, words) for role, words in ROLE_WORDS.items()],
        coerce=Role,
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )


class AccountForm(RolesForm):
    """A new account."""

    username = forms.CharField(
        label=_("Name"),
        max_length=NAME_MAX,
        help_text=_("User name for signing in: letters, digits and @ . + - _"),
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none"}),
    )
    field_order = ("username", "roles")


class GrantForm(forms.Form):
    """Form of a grant: study and last day."""

    study = forms.ChoiceField(label=_("Study"), error_messages={"required": _("Choose a study.")})
    until = forms.DateField(
        label=_("Access ends after (UTC)"),
        required=False,
        widget=forms.DateInput(attrs={"type": "date"}),
        help_text=_("Leave empty for no end date."),
    )

    def __init__(self, data: object = None, *, by: Somebody) -> None:
        super().__init__(data)  # type: ignore[arg-type]
        found = Study.objects.order_by("-first_day", "slug")
        field: Any = self.fields["study"]
        field.choices = [
            ("", gettext("Choose")),
            *((each.slug, label_of(each, by)) for each in found),
            (ALL, gettext("All studies, including future ones")),
        ]
        self.fields["until"].widget.attrs["min"] = today().isoformat()

    @property
    def chosen(self) -> Study | None:
        """The study; None = all of them."""
        slug = self.cleaned_data["study"]
        return None if slug == ALL else Study.objects.get(slug=slug)


@require_safe
@overseers_only
def accounts(request: HttpRequest) -> HttpResponse:
    """All accounts with their roles and studies."""
    rows = [_row(each) for each in accounts_with_rights(User.objects.all(), studies=[])]
    return render(request, "accounts/people.html", {"rows": rows, "may_change": _may_change(request)})


@require_http_methods(["GET", "POST"])
@administrators_only
def new_account(request: HttpRequest) -> HttpResponse:
    """Make an account; its password is shown this once, on the page where studies are opened to it."""
    form = AccountForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            made, password = people.create_account(**form.cleaned_data, by=account(request))
        except AccessChangeError as error:
            form.add_error("username", str(error))
        else:
            return _page(request, made, password=password)
    context = {"form": form, "roles": _role_choices(form), "crumbs": _crumbs()}
    return render(request, "accounts/new.html", context, status=422 if form.errors else 200)


@require_safe
@overseers_only
def person(request: HttpRequest, account_id: int) -> HttpResponse:
    """One account: what it may do, in which studies, and until when."""
    return _page(request, get_object_or_404(User, pk=account_id))


@require_POST
@administrators_only
def change_roles(request: HttpRequest, account_id: int) -> HttpResponse:
    """Let an account do what is ticked, and nothing else."""
    form = RolesForm(request.POST)
    return _change(
        request,
        account_id,
        form,
        lambda found, by: people.set_roles(found, roles=form.cleaned_data["roles"], by=by),
        gettext("The roles were changed. The change takes effect immediately."),
    )


@require_POST
@administrators_only
def give_grant(request: HttpRequest, account_id: int) -> HttpResponse:
    """Open a study to an account."""
    form = GrantForm(request.POST, by=request.user)
    return _change(
        request,
        account_id,
        form,
        lambda found, by: grants.give_grant(
            found, study=form.chosen, until=form.cleaned_data["until"], by=by
        ),
        gettext("The account now has access to the study."),
    )


@require_POST
@administrators_only
def withdraw_grant(request: HttpRequest, account_id: int, grant_id: int) -> HttpResponse:
    """Close a study to an account."""
    found = StudyGrant.objects.select_related("user", "study")
    grant = get_object_or_404(found, pk=grant_id, user=account_id)
    return _change(
        request,
        account_id,
        forms.Form(request.POST),
        lambda _found, by: grants.withdraw_grant(grant, by=by),
        gettext("The account, its tokens and its share links no longer have access to all studies.")
        if grant.study is None
        else gettext("The account, its tokens and its share links no longer have access to the study."),
    )


@require_POST
@administrators_only
def change_active(request: HttpRequest, account_id: int) -> HttpResponse:
    """Shut an account out, or let it in again."""
    is_active = request.POST.get("active") == "1"
    told = (
        gettext("The account can sign in again.")
        if is_active
        else gettext(
            "The account is disabled. Its sessions, tokens, share links and feeds have permanently "
            "stopped working."
        )
    )
    return _change(
        request,
        account_id,
        forms.Form(request.POST),
        lambda found, by: people.set_active(found, is_active=is_active, by=by),
        told,
    )


@require_POST
@administrators_only
def new_password(request: HttpRequest, account_id: int) -> HttpResponse:
    """Give an account a new password, which is shown this once."""
    found = get_object_or_404(User, pk=account_id)
    try:
        password = people.replace_password(found, by=account(request))
    except AccessChangeError as error:
        messages.error(request, str(error))
        return redirect("people:person", account_id)
    return _page(request, found, password=password)


def _change(
    request: HttpRequest,
    account_id: int,
    form: forms.Form,
    change: Callable[[User, User], object],
    told: str,
) -> HttpResponse:
    """Change an account, and say that it is done, or why not, on its page."""
    found = get_object_or_404(User, pk=account_id)
    try:
        if not form.is_valid():
            raise AccessChangeError(" ".join(str(each) for errors in form.errors.values() for each in errors))
        change(found, account(request))
    except AccessChangeError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, told)
    return redirect("people:person", account_id)


def _page(request: HttpRequest, found: User, *, password: str = "") -> HttpResponse:
    row = accounts_with_rights(User.objects.filter(pk=found.pk), studies=[])[0]
    is_own = row.user == request.user
    form = RolesForm(initial={"roles": [role.value for role in row.roles]})
    context = {
        **_row(row),
        "password": password,
        "is_own": is_own,
        "may_change": _may_change(request) and not is_own,
        "role_choices": _role_choices(form),
        "grant_form": GrantForm(by=request.user),
        "crumbs": _crumbs(),
    }
    return render(request, "accounts/person.html", context)


def _row(found: Account) -> dict[str, Any]:
    return {
        "person": found.user,
        "role_words": role_words(found.roles),
        "sees_all": bool(SEES_ALL & set(found.roles)),
        "needs_grants": bool(set(found.roles) - SEES_ALL),
        "grants": found.grants,
    }


def _role_choices(form: forms.Form) -> list[tuple[Any, str]]:
    """Boxes of a form with what each role means."""
    return [(box, str(ROLE_MEANINGS[Role(box.data["value"])])) for box in form["roles"]]


def _may_change(request: HttpRequest) -> bool:
    return Role.ADMINISTRATOR in roles_of(request.user)


def _crumbs() -> list[tuple[str, str]]:
    return [(gettext("People"), reverse("people:people"))]
