"""Findings of openings to intruders: unsafe settings, and a main database that zones share."""

import time
from collections.abc import Iterator
from functools import cache
from typing import Final

from django.conf import settings
from django.core import checks

from mobility.base.shared_main import why_shared
from mobility.operations.findings import Finding, Level

KEPT_S: Final = 600  # settings change with a new start only; folders may change meanwhile
LOCAL_HOSTS: Final = frozenset({"127.0.0.1", "localhost", "[::1]", "::1"})


def checked() -> Iterator[Finding]:
    """Findings of the system checks: those of a deployment where pages are served with TLS."""
    yield from _checked(settings.HTTPS, int(time.monotonic() // KEPT_S))


def own_main() -> Iterator[Finding]:
    """Check that no other zone uses the main database."""
    seen = why_shared()
    level = Level.ERROR if seen else Level.OK
    yield Finding(code="main_shared", level=level, facts={"seen": seen})


@cache
def _found(is_deployed: bool, _turn: int) -> tuple[tuple[str, int], ...]:  # noqa: FBT001 - a key of a cache
    found = checks.run_checks(include_deployment_checks=is_deployed)
    return tuple((each.id or "", each.level) for each in found if not each.is_silenced())


def _checked(is_deployed: bool, turn: int) -> Iterator[Finding]:  # noqa: FBT001
    # Ids only: the words of a check may name folders and hosts.
    found = {name: Level.ERROR if level >= checks.ERROR else Level.WARNING
             for name, level in _found(is_deployed, turn) if level >= checks.WARNING}  # fmt: skip
    trouble = [
        Finding(code="settings_unsafe", level=level, subject=name) for name, level in sorted(found.items())
    ]
    if settings.DEBUG:
        facts = {"why": "debug"}
        trouble.append(Finding(code="settings_unsafe", level=Level.ERROR, subject="DEBUG", facts=facts))
    if not settings.HTTPS and not LOCAL_HOSTS.issuperset(settings.ALLOWED_HOSTS):
        facts = {"why": "no_https"}
        trouble.append(Finding(code="settings_unsafe", level=Level.WARNING, subject="HTTPS", facts=facts))
    yield from trouble or [Finding(code="settings_unsafe", level=Level.OK)]
