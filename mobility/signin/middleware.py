"""Rules for every page: headers, and the second factor of those who need one."""

import math
from collections.abc import Callable
from typing import Any

from allauth.core.internal import ratelimit
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render

from mobility.base.middleware import Middleware
from mobility.signin import factors, limits

# Nothing of a device is asked for, but security keys.
UNUSED = (
    "accelerometer", "autoplay", "camera", "display-capture", "encrypted-media", "geolocation", "gyroscope",
    "magnetometer", "microphone", "midi", "payment", "screen-wake-lock", "usb", "xr-spatial-tracking",
)  # fmt: skip
PERMISSIONS_POLICY = ", ".join(
    [
        *(f"{feature}=()" for feature in UNUSED),
        "publickey-credentials-create=(self)",
        "publickey-credentials-get=(self)",
    ]
)
# Views open to people who still have to add a second factor.
WITHOUT_FACTOR = frozenset(
    {
        "account", "account_change_password", "account_login", "account_reauthenticate", "login", "logout",
        "mfa_activate_totp", "mfa_add_webauthn", "mfa_index", "set_language",
    }
)  # fmt: skip


class HeadersMiddleware(Middleware):
    """Headers that neither Django nor django-csp sets."""

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        response.headers.setdefault("Permissions-Policy", PERMISSIONS_POLICY)
        response.headers.setdefault("Cross-Origin-Resource-Policy", "same-origin")
        return response


class NoStoreMiddleware(Middleware):
    """Mark every answer as private and not cacheable: page, file or API."""

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        response.headers["Cache-Control"] = "private, no-store"
        return response


class LimitsMiddleware(Middleware):
    """Limit readings without an account, by address and by link, and long computations, by account."""

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], args: Any, kwargs: Any
    ) -> HttpResponse | None:
        link = kwargs.get("token")
        for action in _counted(request):
            if not ratelimit.consume(request, app=limits.APP, action=action, key=link, limit_get=True):
                left = limits.seconds_left(request, action=action, key=link)
                context = {"is_account": action == limits.TABLES}
                response = render(request, "429.html", context, status=429)
                response["Retry-After"] = str(max(1, math.ceil(left)))
                return response
        return None


def _counted(request: HttpRequest) -> tuple[str, ...]:
    """Return the limits that a request counts towards."""
    name = request.resolver_match.view_name if request.resolver_match else ""
    if name in ("access:shared", "access:embedded") and request.method != "HEAD":
        return limits.WITHOUT_ACCOUNT
    if name == "tables" and request.method == "POST" and request.user.is_authenticated:
        return (limits.TABLES,)
    return ()


class SecondFactorMiddleware(Middleware):
    """Where a role needs a second factor, its people add one before they see anything else."""

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], args: Any, kwargs: Any
    ) -> HttpResponse | None:
        match = request.resolver_match
        name = match.view_name if match else ""
        if name not in WITHOUT_FACTOR and request.user.is_authenticated and factors.is_missing(request.user):
            return redirect("account")
        return None
