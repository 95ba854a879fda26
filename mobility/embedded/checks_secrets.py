"""System checks of secrets: an installation that others can reach has none that they can guess."""

import ipaddress
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Error, register

from reports.base.commands import INSTALLATION

SECRET_KEY_MIN = 32
DIFFERENT_MIN = 8  # characters of a key: fewer are a pattern that someone typed
PASSWORD_MIN = 12  # characters of a password that other machines can try
PASSWORD_DIFFERENT_MIN = 5
NAME_MIN = 4  # characters of a user's name that a random password does not have by chance
# Placeholders of secrets in documentation, images and tutorials.
KNOWN: Final = frozenset(
    {
        "admin", "administrator", "analyst", "change-me", "change_me", "changeit", "changeme", "default",
        "example", "guest", "letmein", "minioadmin", "mobility", "operator", "pass", "passw0rd", "password",
        "postgres", "redis", "root", "secret", "test", "vault", "xxx", "...",
    }
)  # fmt: skip
EXAMPLES: Final = ("change-me", "change_me", "changeme", "django-insecure", "example", "insecure", "password")
ENDS_OF_SECRETS: Final = ("KEY_FILE", "PASSWORD_FILE", "SECRET_FILE", "TOKEN_FILE", "URL_FILE")
OPEN_TO_OTHERS = 0o077


@register(INSTALLATION)
def secret_key(**_: Any) -> list[CheckMessage]:
    """Anyone with it can sign in as anyone."""
    key: str = settings.SECRET_KEY
    is_example = any(word in key.lower() for word in EXAMPLES)
    if len(key) >= SECRET_KEY_MIN and len(set(key)) >= DIFFERENT_MIN and not is_example:
        return []
    text = f"SECRET_KEY must be random and have at least {SECRET_KEY_MIN} characters"
    hint = "generate one with openssl rand -base64 48, or leave SECRET_KEY unset"
    return [Error(text, hint=hint, id="mobility.E010")]


@register(INSTALLATION)
def passwords_of_databases(**_: Any) -> list[CheckMessage]:
    """A database that other machines reach has a password that is no example."""
    found: list[CheckMessage] = []
    for alias, database in settings.DATABASES.items():
        if not database.get("HOST") or is_this_machine(str(database["HOST"])):
            continue
        options: Any = database.get("OPTIONS", {})
        is_certified = "sslcert" in options or "passfile" in options
        password, user = str(database.get("PASSWORD") or ""), str(database.get("USER") or "")
        if _is_weak(password, user=user) and not (is_certified and not password):
            variable = {"default": "DATABASE_URL", "vault": "VAULT_DATABASE_URL"}.get(alias, alias)
            found.append(_weak(f"the password in {variable}", number=11))
    return found


@register(INSTALLATION)
def password_of_redis(**_: Any) -> list[CheckMessage]:
    """Anyone who can write to the broker gives work to workers."""
    parts = urlsplit(settings.REDIS_URL)
    if parts.scheme not in ("redis", "rediss") or is_this_machine(parts.hostname or ""):
        return []
    password = unquote(parts.password or "")
    if not password and settings.MOBILITY_ALLOW_OPEN_REDIS:
        return []
    return [_weak("the password in REDIS_URL", number=12)] if _is_weak(password) else []


@register(INSTALLATION)
def secrets_of_services(**_: Any) -> list[CheckMessage]:
    """Secrets of the OpenID provider, the bucket, the metrics and the webhook, where they are used."""
    storages: dict[str, Any] = settings.STORAGES
    staging = storages["staging"].get("OPTIONS", {})
    used = {
        "MOBILITY_OIDC_CLIENT_SECRET": settings.MOBILITY_OIDC_CLIENT_SECRET,
        "MOBILITY_STAGING_S3_SECRET_KEY": staging.get("secret_key") or "",
        "MOBILITY_METRICS_TOKEN": settings.MOBILITY_METRICS_TOKEN,
        "MOBILITY_ALERT_WEBHOOK_SECRET": settings.MOBILITY_ALERT_WEBHOOK_SECRET,
    }
    return [_weak(name, number=13) for name, secret in used.items() if secret and _is_weak(secret, length=1)]


@register(INSTALLATION)
def debugging(**_: Any) -> list[CheckMessage]:
    """Pages of errors show code and settings."""
    others = [host for host in settings.ALLOWED_HOSTS if not is_this_machine(host)]
    is_test_client = others == ["testserver"]  # the framework's own, in tests
    if not settings.DEBUG or not (settings.HTTPS or others) or is_test_client:
        return []
    text = "DEBUG must be false when HTTPS is true or ALLOWED_HOSTS includes another host"
    return [Error(text, hint="debug pages show code and settings to strangers", id="mobility.E014")]


@register(INSTALLATION)
def files_of_secrets(**_: Any) -> list[CheckMessage]:
    """A file that holds a secret is for the account of the service alone."""
    hint = "run chmod 400, and make the account that runs this the owner"
    texts = [
        f"{name} must name a file that other accounts cannot read"
        for name, file in sorted(_files())
        if file.is_file() and file.stat().st_mode & OPEN_TO_OTHERS
    ]
    return [checks.Warning(text, hint=hint, id="mobility.W002") for text in texts]


def is_this_machine(host: str) -> bool:
    """Return whether `host` can be reached from this machine only; a folder is one of Unix sockets."""
    name = host.strip("[]").lower()
    if name.startswith("/") or name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _is_weak(password: str, *, user: str = "", length: int = PASSWORD_MIN) -> bool:
    small = password.lower()
    has_name = small == user.lower() or (len(user) >= NAME_MIN and user.lower() in small)
    has_example = any(word in small for word in EXAMPLES)
    is_short = len(password) < length or len(set(password)) < PASSWORD_DIFFERENT_MIN
    return is_short or has_name or has_example or small in KNOWN


def _weak(what: str, *, number: int) -> CheckMessage:
    text = (
        f"{what} must have at least {PASSWORD_MIN} characters, at least {PASSWORD_DIFFERENT_MIN} of "
        "them different, and must not be its user name or a word from examples"
    )
    return Error(text, hint="generate one with openssl rand -hex 24", id=f"mobility.E{number:03}")


def _files() -> Iterator[tuple[str, Path]]:
    for name, value in os.environ.items():
        is_ours = name.startswith("MOBILITY_") or name.removesuffix("_FILE") in (
            "SECRET_KEY", "DATABASE_URL", "VAULT_DATABASE_URL", "REDIS_URL",
        )  # fmt: skip
        if is_ours and value and name.endswith(ENDS_OF_SECRETS):
            yield name, Path(value)
