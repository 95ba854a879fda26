"""System checks: what a start must refuse about keys, folders and databases."""

import os
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Error, register

UNVERSIONED = "var"  # the one folder inside the code that version control ignores


@register
def folders(**_: Any) -> list[CheckMessage]:
    """The data folder can be written, and only by this user."""
    root: Path = settings.MOBILITY_DATA_DIR
    existing = next(folder for folder in (root, *root.parents) if folder.exists())
    if not os.access(existing, os.W_OK | os.X_OK):
        hint = "set MOBILITY_DATA_DIR to a folder of the user that runs this"
        return [Error(f"MOBILITY_DATA_DIR must be writable, got {root}", hint=hint, id="mobility.E001")]
    if root.exists() and root.stat().st_mode & 0o077:
        return [
            checks.Warning(
                f"MOBILITY_DATA_DIR must be private, got {root}", hint="chmod 700", id="mobility.W001"
            )
        ]
    return []


@register
def keystore(**_: Any) -> list[CheckMessage]:
    """Keys can neither be committed nor shipped with the code."""
    keys = Path(settings.MOBILITY_KEYSTORE_DIR).resolve()
    code: Path = settings.BASE_DIR
    if keys.is_relative_to(code) and not keys.is_relative_to(code / UNVERSIONED):
        text = f"MOBILITY_KEYSTORE_DIR must be outside of the code, got {keys}"
        return [Error(text, hint="choose a folder that no backup or image copies", id="mobility.E002")]
    return []


@register
def retention(**_: Any) -> list[CheckMessage]:
    """The log of share links outlives the hour in which wrong passwords count."""
    days: int = settings.MOBILITY_SHARE_LOG_DAYS
    if days < 1:
        return [Error(f"MOBILITY_SHARE_LOG_DAYS must be at least 1, got {days}", id="mobility.E004")]
    return []


@register
def databases(**_: Any) -> list[CheckMessage]:
    """The vault is a database of its own: an analyst's server must never hold it."""
    places = [
        tuple(settings.DATABASES[alias].get(part) for part in ("HOST", "PORT", "NAME"))
        for alias in ("default", "vault")
    ]
    if places[0] == places[1]:
        text = "VAULT_DATABASE_URL must name another database than DATABASE_URL"
        return [Error(text, hint="the two zones share no database", id="mobility.E003")]
    return []
