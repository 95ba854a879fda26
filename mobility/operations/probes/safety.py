"""Findings of openings to intruders: unsafe settings, and a main database that zones share."""

import time
from collections.abc import Iterator
from functools import cache
from typing import Final

from django.conf import settings
from django.core import checks

from mobility.base.shared_main import why_shared
from mobility.operations.findings import Finding, Level, finding

KEPT_S: Final = 600  # settings change with a new start only; folders may change meanwhile
LOCAL_HOSTS: Final = frozenset({"127.0.0.1", "localhost", "[::1]", "::1"})


def checked() -> Iterator[Finding]:
    """Findings of the system checks: those of a deployment where pages are served with TLS."""
    # Ids only: the words of a check may name folders and hosts.
    found = {name: Level.ERROR if level >= checks.ERROR else Level.WARNING
             for name, level in _found(settings.HTTPS, int(time.monotonic() // KEPT_S))
             if level >= checks.WARNING}  # fmt: skip
    trouble = [finding("settings_unsafe", level, name) for name, level in sorted(found.items())]
    if settings.DEBUG:
        trouble.append(finding("settings_unsafe", Level.ERROR, "DEBUG", why="debug"))
    if not settings.HTTPS and not LOCAL_HOSTS.issuperset(settings.ALLOWED_HOSTS):
        trouble.append(finding("settings_unsafe", Level.WARNING, "HTTPS", why="no_https"))
    yield from trouble or [finding("settings_unsafe")]


def own_main() -> Iterator[Finding]:
    """Check that no other zone uses the main database."""
    seen = why_shared()
    yield finding("main_shared", Level.ERROR if seen else Level.OK, seen=seen)


@cache
def _found(is_deployed: bool, _turn: int) -> tuple[tuple[str, int], ...]:  # noqa: FBT001 - a key of a cache
    found = checks.run_checks(include_deployment_checks=is_deployed)
    return tuple((each.id or "", each.level) for each in found if not each.is_silenced())
