"""Strictness of checks for this installation."""

from django.conf import settings
from django.db import connections


def is_trial() -> bool:
    """A trial on one machine may go without care; where a database server was set up, people rely on it."""
    return bool(settings.EMBEDDED_REDIS) and connections["default"].vendor == "sqlite"
