"""Sign-in through an OpenID provider: the authorization code flow with PKCE, state and nonce."""

import secrets
from typing import Any

import requests
from allauth.account.internal.decorators import login_not_required
from allauth.socialaccount.helpers import render_authentication_error
from allauth.socialaccount.internal import jwtkit
from allauth.socialaccount.models import SocialApp, SocialLogin, SocialToken
from allauth.socialaccount.providers import registry
from allauth.socialaccount.providers.base.constants import AuthProcess
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from allauth.utils import build_absolute_uri
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from mobility.signin.oidc.issuer import provider_id

MOST_GROUPS = 200


class Adapter(OpenIDConnectOAuth2Adapter):
    """Talks to the provider. Each of its answers is checked, not only that it came through TLS."""

    @property
    def openid_config(self) -> dict[str, Any]:
        config: dict[str, Any] = super().openid_config
        issuer = str(config.get("issuer", ""))
        if issuer.rstrip("/") != settings.MOBILITY_OIDC_ISSUER.rstrip("/"):
            raise OAuth2Error(f"issuer must be MOBILITY_OIDC_ISSUER, got {issuer!r}")
        return config

    def complete_login(
        self, request: HttpRequest, app: SocialApp, token: SocialToken, **kwargs: Any
    ) -> SocialLogin:
        """Return the provider's statement about the person.

        Raises
        ------
        OAuth2Error : there is no identity token, its signature, issuer, audience or time is wrong, or what
            else the provider tells is about another person
        """
        id_token = kwargs["response"].get("id_token")
        if not id_token:
            raise OAuth2Error("the provider must send an identity token")
        claims = jwtkit.verify_and_decode(
            credential=id_token,
            keys_url=self.openid_config["jwks_uri"],
            issuer=self.openid_config["issuer"],
            audience=app.client_id,
            lookup_kid=jwtkit.lookup_kid_jwk,
        )
        told = self._fetch_user_info(token.token) if "userinfo_endpoint" in self.openid_config else {}
        if told and told.get("sub") != claims.get("sub"):
            raise OAuth2Error("the provider must send user information for the person who signed in")
        login = self.get_provider().sociallogin_from_response(request, {**told, **claims})
        # For the checks of this sign-in, in adapters.py; nothing of it is stored.
        login.nonce, login.groups = claims.get("nonce"), claimed_groups({**told, **claims})
        return login

    def get_callback_url(self, request: HttpRequest, app: SocialApp) -> str:
        url: str = build_absolute_uri(request, reverse("oidc_callback"))
        return url


class Provider(OpenIDConnectProvider):
    """The one provider of this site. Additions to the address do not change the question."""

    oauth2_adapter_class = Adapter
    pkce_enabled_default = True

    def get_default_scope(self) -> list[str]:
        return ["openid", "profile", *settings.MOBILITY_OIDC_SCOPES]

    def get_redirect_from_request_kwargs(self, request: HttpRequest) -> dict[str, Any]:
        kwargs = super().get_redirect_from_request_kwargs(request)
        nonce = secrets.token_urlsafe(24)
        return {
            **kwargs,
            "process": AuthProcess.LOGIN,  # never "connect": an account is not linked to another one
            "scope": self.get_scope(),
            "auth_params": {"nonce": nonce},
            "nonce": nonce,
        }

    def extract_common_fields(self, data: dict[str, Any]) -> dict[str, Any]:
        return {"username": data.get("preferred_username"), "name": data.get("name")}

    def extract_email_addresses(self, data: dict[str, Any]) -> list[Any]:
        return []  # no address is kept, so none can link two accounts

    def extract_extra_data(self, data: dict[str, Any]) -> dict[str, Any]:
        return {}  # personal data of the provider are not kept


registry.register(Provider)  # allauth's own app would do so in every command, which takes 0.1 s


def claimed_groups(data: dict[str, Any]) -> list[str]:
    """Groups that the provider names; none unless MOBILITY_OIDC_GROUPS_CLAIM says where."""
    claim = settings.MOBILITY_OIDC_GROUPS_CLAIM
    value = data.get(claim, []) if claim else []
    values = value if isinstance(value, list) else [value]
    return [item for item in values if isinstance(item, str)][:MOST_GROUPS]


@require_POST
@login_not_required
def begin(request: HttpRequest) -> HttpResponse:
    """Send the visitor to the provider.

    By a page and not by a redirection: browsers hold redirections after a form against `form-action`, and to
    which hosts a provider passes someone on cannot be known.
    """
    provider = _adapter(request).get_provider()
    try:
        response = provider.redirect_from_request(request)
    except (requests.RequestException, OAuth2Error, KeyError, ValueError) as error:
        failed: HttpResponse = render_authentication_error(request, provider, exception=error)
        return failed
    if response.status_code != 302:
        return response  # type: ignore[no-any-return]
    context = {"address": response["Location"], "provider_name": settings.MOBILITY_OIDC_NAME}
    return render(request, "socialaccount/continue.html", context)


@require_GET
@login_not_required
def callback(request: HttpRequest) -> HttpResponse:
    """Take the provider's answer."""
    adapter = _adapter(request)
    try:
        response: HttpResponse = OAuth2CallbackView.adapter_view(adapter)(request)
    except (KeyError, ValueError) as error:  # an answer that is no JSON, or lacks a part
        response = render_authentication_error(request, adapter.get_provider(), exception=error)
    return response


def _adapter(request: HttpRequest) -> Adapter:
    if not settings.MOBILITY_OIDC_ISSUER:
        raise Http404
    return Adapter(request, provider_id(settings.MOBILITY_OIDC_ISSUER))
