"""Limits for failed sign-ins, for readings of shared reports, and for questions that take long."""

import ipaddress
import math
import time

from allauth.core.internal import ratelimit
from django.conf import settings
from django.core.cache import cache
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.translation import ngettext

APP = "allauth.account"  # the limits are in its setting ACCOUNT_RATE_LIMITS
BY_ADDRESS, BY_ACCOUNT = "sign_in_address", "login_failed"
WITHOUT_ACCOUNT = ("shared_address", "shared_link")
TABLES = "tables"
NO_ADDRESS = "0.0.0.0"  # noqa: S104 - not bound: anyone who has none shares one count


def client_address(request: HttpRequest) -> str:
    """Address of the visitor; from X-Forwarded-For only as far as MOBILITY_TRUSTED_PROXIES wrote it.

    Of n trusted proxies each adds the address that it sees, so the n-th from the right is the visitor; what
    precedes it may be forged. Limits count the whole network of an IPv6 address
    (ALLAUTH_RATE_LIMIT_IPV6_PREFIX).
    """
    trusted = settings.ALLAUTH_TRUSTED_PROXY_COUNT
    hops = [hop.strip() for hop in request.headers.get("x-forwarded-for", "").split(",") if hop.strip()]
    seen = hops[-trusted] if 0 < trusted <= len(hops) else request.META.get("REMOTE_ADDR", "")
    try:
        address = ipaddress.ip_address(seen)
    except ValueError:
        return NO_ADDRESS
    # A socket for both families writes IPv4 as ::ffff:192.0.2.9: all of them are in one network of IPv6.
    return str((address.version == 6 and address.ipv4_mapped) or address)


def take_one(request: HttpRequest, *, account: str) -> ratelimit.RateLimitUsage:
    """Count an attempt, before its password is looked at; it can be given back when it succeeds.

    Raises
    ------
    ValidationError : too many have failed; it says for how long no more are taken
    """
    taken: list[ratelimit.SingleRateLimitUsage] = []
    for action in (BY_ADDRESS, BY_ACCOUNT):
        usage = ratelimit.consume(request, app=APP, action=action, key=account)
        if not usage:
            raise too_many(seconds_left(request, action=action, key=account))
        taken += usage.usage
    return ratelimit.RateLimitUsage(usage=taken)


def seconds_left(request: HttpRequest, *, action: str, key: str | None) -> float:
    """Seconds until one more attempt of an account, or reading of a link, is taken; 0 if that is now."""
    left = 0.0
    for rate in ratelimit.get_rates(app=APP, action=action):
        times = cache.get(ratelimit.get_cache_key(request, app=APP, action=action, rate=rate, key=key), [])
        if len(times) >= rate.amount:  # newest first
            left = max(left, times[rate.amount - 1] + rate.duration - time.time())
    return left


def longest_wait() -> float:
    """Seconds after which any account is free again."""
    return max(float(rate.duration) for rate in ratelimit.get_rates(app=APP, action=BY_ACCOUNT))


def too_many(seconds: float) -> ValidationError:
    """Text of a blocked sign-in: the same for accounts that exist and those that do not."""
    minutes = max(1, math.ceil(seconds / 60))
    text = ngettext(
        "Too many failed attempts. Try again in %(minutes)d minute.",
        "Too many failed attempts. Try again in %(minutes)d minutes.",
        minutes,
    )
    return ValidationError(text % {"minutes": minutes}, code="too_many_login_attempts")
