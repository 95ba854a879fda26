"""The page "My account", and what is done there without allauth."""

from dataclasses import dataclass

from allauth.account.views import LoginView, PasswordChangeView
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from allauth.usersessions.internal.flows.sessions import end_other_sessions
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse_lazy
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_POST

from mobility.signin import factors
from mobility.signin.forms import PasswordForm
from reports.accounts.access import account as account_of

# Of what browsers say of themselves, first what only one of them says; each also names those that it is like.
BROWSERS = (
    ("Edg/", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
SYSTEMS = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS", "macOS"),
    ("Linux", "Linux"),
)
SHOWN_CHARS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondFactors:
    """Second factors and sessions of an account."""

    totp: Authenticator | None
    keys: list[Authenticator]
    codes_left: int | None
    is_missing: bool

    @property
    def exist(self) -> bool:
        return bool(self.totp or self.keys)


class SignInView(LoginView):
    """User name and password, and a button that leads to the provider where there is one."""

    template_name = "sign_in.html"

    def get_context_data(self, **kwargs: object) -> dict[str, object]:
        context: dict[str, object] = super().get_context_data(**kwargs)
        name = settings.MOBILITY_OIDC_NAME if settings.MOBILITY_OIDC_ISSUER else ""
        return context | {"provider_name": name, "has_accounts": User.objects.exists()}


sign_in = SignInView.as_view()


@require_GET
@login_required
def account(request: HttpRequest) -> HttpResponse:
    """Page of the own account: name, ways to sign in, sessions."""
    user = account_of(request)
    sessions = UserSession.objects.purge_and_list(user)
    context = {
        "factors": second_factors(user),
        "is_by_provider": SocialAccount.objects.filter(user=user).exists(),
        "provider_name": settings.MOBILITY_OIDC_NAME,
        "has_password": user.has_usable_password(),
        "sessions": [
            {"row": row, "browser": browser_in_words(row.user_agent)}
            for row in sorted(sessions, key=lambda row: row.created_at, reverse=True)
        ],
    }
    return render(request, "account/index.html", context)


def browser_in_words(user_agent: str) -> str:
    """ "Firefox, Linux"; what is not known, as it says itself."""
    known = [next((word for sign, word in words if sign in user_agent), "") for words in (BROWSERS, SYSTEMS)]
    return ", ".join(filter(None, known)) or user_agent[:SHOWN_CHARS] or "-"


def second_factors(user: User) -> SecondFactors:
    found = factors.factors_of(user)
    codes = Authenticator.objects.filter(user=user, type=Authenticator.Type.RECOVERY_CODES).first()
    return SecondFactors(
        totp=next((one for one in found if one.type == Authenticator.Type.TOTP), None),
        keys=[one for one in found if one.type == Authenticator.Type.WEBAUTHN],
        codes_left=len(codes.wrap().get_unused_codes()) if codes else None,
        is_missing=factors.is_missing(user),
    )


@require_POST
@login_required
def end_others(request: HttpRequest) -> HttpResponse:
    """Sign out everywhere else."""
    end_other_sessions(request, account_of(request))
    messages.success(request, gettext("You signed out of all your other sessions."))
    return redirect("account")


class ChangePasswordView(PasswordChangeView):
    """Change of a password; accounts of a provider have none, and get none."""

    form_class = PasswordForm
    template_name = "account/password.html"
    success_url = reverse_lazy("account")

    def dispatch(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        if not account_of(request).has_usable_password():
            raise Http404
        response: HttpResponseBase = super().dispatch(request, *args, **kwargs)
        return response

    def get_default_success_url(self) -> str:
        return str(self.success_url)


change_password = login_required(ChangePasswordView.as_view())
