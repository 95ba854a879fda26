"""System checks: what would let messages or numbers go to the wrong people."""

from typing import Any, Final

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register  # noqa: A004 - Django's own name

from mobility.operations.alerts.channels import check_webhook_url
from reports.base.commands import INSTALLATION

MIN_TOKEN: Final = 32
MIN_SECRET: Final = 16
LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


@register(INSTALLATION)
def telling(**_: Any) -> list[CheckMessage]:
    """Alerts go where no one can read them on the way, and what is set up is complete."""
    found: list[CheckMessage] = []
    url, secret = settings.MOBILITY_ALERT_WEBHOOK_URL, settings.MOBILITY_ALERT_WEBHOOK_SECRET
    if url:
        try:
            check_webhook_url(url)
        except ValueError as error:
            hint = "http:// is allowed for this machine only"
            found.append(Error(str(error), hint=hint, id="mobility.E031"))
    if url and not secret:
        text = "MOBILITY_ALERT_WEBHOOK_SECRET must be set, got nothing"
        hint = "without it, the receiver cannot verify the sender of a message"
        found.append(Warning(text, hint=hint, id="mobility.W031"))
    if secret and len(secret) < MIN_SECRET:
        text = f"MOBILITY_ALERT_WEBHOOK_SECRET must have at least {MIN_SECRET} characters, got {len(secret)}"
        found.append(Error(text, hint="openssl rand -base64 24", id="mobility.E032"))
    if settings.EMAIL_HOST != "localhost" and not (
        settings.MOBILITY_ALERT_EMAIL_TO or settings.MOBILITY_DIGEST_DOMAINS
    ):
        text = "MOBILITY_ALERT_EMAIL_TO must contain addresses when MOBILITY_ALERT_EMAIL_URL is set, got none"
        found.append(Warning(text, hint="no e-mail is sent", id="mobility.W032"))
    is_sealed = settings.EMAIL_USE_TLS or settings.EMAIL_USE_SSL
    if settings.EMAIL_HOST not in LOOPBACK and not is_sealed:
        text = "MOBILITY_ALERT_EMAIL_URL must use TLS when the mail server is another host, got none"
        hint = "use smtp+tls:// or smtp+ssl://: without TLS, the network can read messages and the password"
        found.append(Warning(text, hint=hint, id="mobility.W033"))
    return found


@register(INSTALLATION)
def counting(**_: Any) -> list[CheckMessage]:
    """The token of /metrics cannot be guessed."""
    token = settings.MOBILITY_METRICS_TOKEN
    if token and len(token) < MIN_TOKEN:
        text = f"MOBILITY_METRICS_TOKEN must have at least {MIN_TOKEN} characters, got {len(token)}"
        return [Error(text, hint="openssl rand -base64 36", id="mobility.E033")]
    return []
