"""System checks: what a start must refuse about sign-in."""

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from reports.base.commands import INSTALLATION
from reports.studies.policies import Role

HERE = ("localhost", "127.0.0.1", "::1")


@register(INSTALLATION)
def provider(**_: Any) -> list[CheckMessage]:
    """An OpenID provider is complete, and reached by TLS."""
    issuer: str = settings.MOBILITY_OIDC_ISSUER
    if not issuer:
        return []
    found: list[CheckMessage] = []
    if not (settings.MOBILITY_OIDC_CLIENT_ID and settings.MOBILITY_OIDC_CLIENT_SECRET):
        text = "MOBILITY_OIDC_CLIENT_ID and MOBILITY_OIDC_CLIENT_SECRET must be set with MOBILITY_OIDC_ISSUER"
        hint = "the provider issues both when you register a client"
        found.append(Error(text, hint=hint, id="signin.E001"))
    parts = urlsplit(issuer)
    if parts.scheme != "https" and parts.hostname not in HERE:
        text = f"MOBILITY_OIDC_ISSUER must begin with https://, got {issuer!r}"
        hint = "without TLS, anyone on the network path can impersonate the provider"
        found.append(Error(text, hint=hint, id="signin.E002"))
    return found


@register(INSTALLATION)
def mapping(**_: Any) -> list[CheckMessage]:
    """Groups of the provider lead to roles that there are."""
    unknown = sorted(set(settings.MOBILITY_OIDC_GROUPS.values()) - {role.value for role in Role})
    if unknown:
        text = f"MOBILITY_OIDC_GROUPS must map to roles, got {', '.join(unknown)}"
        hint = f"roles are {', '.join(role.value for role in Role)}"
        return [Error(text, hint=hint, id="signin.E003")]
    if settings.MOBILITY_OIDC_GROUPS and not settings.MOBILITY_OIDC_GROUPS_CLAIM:
        text = "MOBILITY_OIDC_GROUPS_CLAIM must be set when MOBILITY_OIDC_GROUPS is set"
        return [Error(text, hint="the claim that contains the groups, often groups", id="signin.E004")]
    return []
