"""The ledger: how its last check ended."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from django.utils import timezone

from mobility.operations.findings import Finding, Level, finding
from reports.ledger.models import LedgerHead

UNCHECKED_AFTER: Final = timedelta(hours=6)  # workers check it every hour


def checked() -> Iterator[Finding]:
    """Check that the chain was intact, and was checked lately."""
    head = LedgerHead.objects.filter(pk=LedgerHead.ONLY).first()
    entries = head.number if head else 0
    if head and head.problem:
        number = head.problem.get("number") or "?"
        yield finding("ledger_broken", Level.ERROR, entries=entries, number=number)
    elif head and entries and _is_unchecked(head):
        yield finding("ledger_broken", Level.NOTE, entries=entries, why="unchecked")
    else:
        yield finding("ledger_broken", entries=entries)


def _is_unchecked(head: LedgerHead) -> bool:
    since = head.checked_at or head.at
    return since is not None and timezone.now() - since > UNCHECKED_AFTER
