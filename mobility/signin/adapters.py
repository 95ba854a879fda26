"""Decisions of this site for allauth: who gets an account, what is a guess, how secrets are kept."""

import base64
import logging
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import generate_totp_secret
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialApp, SocialLogin
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from mobility.signin import limits
from mobility.signin.factors import is_last_of_required
from mobility.signin.oidc import newcomers
from mobility.signin.oidc.issuer import provider_id
from reports.accounts.models import find_account
from reports.accounts.names import folded

log = logging.getLogger(__name__)
QUIET = ("account/messages/logged_in.txt", "account/messages/logged_out.txt")


class AccountAdapter(DefaultAccountAdapter):
    """Accounts are made by administrators; there is no e-mail."""

    error_messages = DefaultAccountAdapter.error_messages | {
        "username_password_mismatch": _("The user name or password is incorrect."),
        "incorrect_password": _("The password is incorrect."),
        "enter_current_password": _("The password is incorrect."),
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def is_ajax(self, request: HttpRequest) -> bool:
        """Pages only: no answer in JSON, for any Accept header."""
        return False

    def get_client_ip(self, request: HttpRequest) -> str:
        return limits.client_address(request)

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        account = folded(credentials.get("username", ""))
        self._login_failed_rl_usage = limits.take_one(request, account=account)

    def authenticate(self, request: HttpRequest, **credentials: Any) -> User | None:
        """Find the account by its folded name, as no one else can have it."""
        found = find_account(credentials.get("username", ""))
        if found is not None:
            credentials["username"] = found.get_username()
        user: User | None = super().authenticate(request, **credentials)
        return user

    def validation_error(self, code: str, *args: Any) -> ValidationError:
        """Say how long to wait, also where codes and keys were wrong."""
        if code == "too_many_login_attempts":
            return limits.too_many(limits.longest_wait())
        error: ValidationError = super().validation_error(code, *args)
        return error

    def add_message(
        self, request: HttpRequest, level: int, message_template: str | None = None, *args: Any, **kwargs: Any
    ) -> None:
        """No message says what the page shows anyway."""
        if message_template not in QUIET:
            super().add_message(request, level, message_template, *args, **kwargs)

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """Send nothing: closed networks have no e-mail, and accounts no address."""


class SocialAdapter(DefaultSocialAccountAdapter):
    """People whom the OpenID provider knows: each gets their own account, without roles."""

    def list_apps(
        self, request: HttpRequest, provider: str | None = None, client_id: str | None = None
    ) -> list[SocialApp]:
        """The provider that the settings name, if they name one; none comes from the database."""
        if not settings.MOBILITY_OIDC_ISSUER:
            return []
        return [
            SocialApp(
                provider="openid_connect",
                provider_id=provider_id(settings.MOBILITY_OIDC_ISSUER),
                name=settings.MOBILITY_OIDC_NAME,
                client_id=settings.MOBILITY_OIDC_CLIENT_ID,
                secret=settings.MOBILITY_OIDC_CLIENT_SECRET,
                settings={"server_url": settings.MOBILITY_OIDC_ISSUER.rstrip("/")},
            )
        ]

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        return True

    def is_auto_signup_allowed(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        return True

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """Refuse an answer to a question that this browser did not ask.

        Raises
        ------
        PermissionDenied : the nonce of the token is not the one that was sent
        """
        sent = sociallogin.state.get("nonce")
        if not sent or sent != sociallogin.nonce:
            raise PermissionDenied("nonce must match the one that was sent")

    def populate_user(self, request: HttpRequest, sociallogin: SocialLogin, data: dict[str, Any]) -> User:
        """Neither a name nor an address is taken over, so that none can be mistaken for a local account's."""
        user: User = sociallogin.user
        user.username = newcomers.free_username(data.get("username") or data.get("name") or "")
        return user

    def save_user(self, request: HttpRequest, sociallogin: SocialLogin, form: None = None) -> User:
        """Make the account of a first sign-in, with the roles that the administrator mapped, if any."""
        user: User = super().save_user(request, sociallogin, form)
        newcomers.give_mapped_roles(user, groups=sociallogin.groups)
        return user


class SecondFactorAdapter(DefaultMFAAdapter):
    """One-time codes, recovery codes and security keys."""

    error_messages = DefaultMFAAdapter.error_messages | {
        "incorrect_code": _(
            "The code or key was not accepted. Each code is valid for 30 seconds and can be used once."
        ),
        "cannot_delete_authenticator": _(
            "Your role requires a second factor, and this is the only one on your account. Add another "
            "second factor before you remove this one."
        ),
    }

    def encrypt(self, text: str) -> str:
        """Seal a secret: who reads the database alone cannot make codes from it."""
        return _fernet().encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        try:
            return _fernet().decrypt(encrypted_text.encode()).decode()
        except InvalidToken:  # SECRET_KEY is another one: no code can be right
            log.error("second_factor_unreadable: SECRET_KEY has changed, see remove_second_factors")
            nobodys: str = generate_totp_secret()
            return nobodys

    def can_delete_authenticator(self, authenticator: Authenticator) -> bool:
        return not is_last_of_required(authenticator)

    def generate_authenticator_name(self, user: User, type: str) -> str:  # noqa: A002 - allauth's name
        count = Authenticator.objects.filter(user_id=user.pk, type=type).count()
        return gettext("Security key %(number)d") % {"number": count + 1}

    def get_totp_issuer(self) -> str:
        return f"{settings.MFA_TOTP_ISSUER} ({self._get_site_name()})"


def _fernet() -> MultiFernet:
    """The seal of second factors, under its own key that follows from SECRET_KEY."""
    secrets = [str(secret) for secret in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)]
    return MultiFernet([Fernet(base64.urlsafe_b64encode(_derived(secret))) for secret in secrets])


def _derived(secret: str) -> bytes:
    key = HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=b"mobility second factors")
    return key.derive(secret.encode())
