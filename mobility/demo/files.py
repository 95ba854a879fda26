"""Folders of the demo's files."""

from pathlib import Path

from django.conf import settings


def folder() -> Path:
    """Everything but the passwords."""
    return Path(settings.MOBILITY_DATA_DIR, "demo")


def accounts_file() -> Path:
    """Passwords of the demo's accounts."""
    return Path(settings.MOBILITY_DATA_DIR, "demo-accounts.json")
