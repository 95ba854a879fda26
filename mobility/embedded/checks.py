"""System checks: what a start must refuse about keys, folders and databases."""

import os
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Error, register

from mobility.base import shared_main
from mobility.batches.publication.analyst_server import check_analyst_url
from reports.base.commands import INSTALLATION
from reports.transfer.messages import SENDER_NAME

UNVERSIONED = "var"  # the one folder inside the code that version control ignores


@register(INSTALLATION)
def folders(**_: Any) -> list[CheckMessage]:
    """The data folder can be written, and only by this user."""
    root: Path = settings.MOBILITY_DATA_DIR
    existing = next(folder for folder in (root, *root.parents) if folder.exists())
    if not os.access(existing, os.W_OK | os.X_OK):
        hint = "set MOBILITY_DATA_DIR to a folder that this account can write to"
        return [Error(f"MOBILITY_DATA_DIR must be writable, got {root}", hint=hint, id="mobility.E001")]
    if root.exists() and root.stat().st_mode & 0o077:
        text = f"MOBILITY_DATA_DIR must be private, got {root}"
        return [checks.Warning(text, hint="chmod 700", id="mobility.W001")]
    return []


@register(INSTALLATION)
def keystore(**_: Any) -> list[CheckMessage]:
    """Keys can neither be committed nor shipped with the code."""
    keys = Path(settings.MOBILITY_KEYSTORE_DIR).resolve()
    code: Path = settings.BASE_DIR
    if keys.is_relative_to(code) and not keys.is_relative_to(code / UNVERSIONED):
        text = f"MOBILITY_KEYSTORE_DIR must be outside the code folder, got {keys}"
        hint = "choose a folder that is not part of any backup or image"
        return [Error(text, hint=hint, id="mobility.E002")]
    return []


@register(INSTALLATION)
def databases(**_: Any) -> list[CheckMessage]:
    """The vault is its own database: an analyst's server must never hold it."""
    if not settings.HAS_VAULT:
        return _knows_no_vault()
    main, vault = (settings.DATABASES[alias] for alias in ("default", "vault"))
    if all(main.get(part) == vault.get(part) for part in ("HOST", "PORT", "NAME")):
        text = "VAULT_DATABASE_URL must name another database than DATABASE_URL"
        return [Error(text, hint="the two zones must not share a database", id="mobility.E003")]
    return []


def _knows_no_vault() -> list[CheckMessage]:
    """A server of analysts that knows the vault's address could be made to open it."""
    told = [name for name in ("VAULT_DATABASE_URL", "VAULT_DATABASE_URL_FILE") if os.environ.get(name)]
    if told:
        text = f"{told[0]} must be unset when MOBILITY_ZONE is analyst"
        return [Error(text, hint="this zone has no vault and must not have its address", id="mobility.E005")]
    return []


@register(INSTALLATION)
def handing_over(**_: Any) -> list[CheckMessage]:
    """An operator zone knows where its totals go, and sends them where no one can read or change them."""
    url: str = settings.MOBILITY_ANALYST_URL
    if not settings.HANDS_OVER:
        if not url:
            return []
        text = f"MOBILITY_ANALYST_URL must be unset when MOBILITY_ZONE is {settings.MOBILITY_ZONE}"
        hint = "only a separate operator zone hands over totals"
        return [Error(text, hint=hint, id="mobility.E006")]
    if not url:
        text = "MOBILITY_ANALYST_URL must be set when MOBILITY_ZONE is operator"
        hint = (
            "set it to the address of the analyst server. If this zone has shared its main database "
            f"with the analyst zone until now, follow {shared_main.PAGE}: no data is lost"
        )
        return [Error(text, hint=hint, id="mobility.E007")]
    try:
        check_analyst_url(url)
    except ValueError as error:
        return [Error(str(error), hint="https://reports.example.org", id="mobility.E008")]
    if not SENDER_NAME.fullmatch(settings.MOBILITY_SENDER_NAME):
        text = f"MOBILITY_SENDER_NAME must match {SENDER_NAME.pattern}, got {settings.MOBILITY_SENDER_NAME!r}"
        return [Error(text, id="mobility.E009")]
    return []
