"""The ledger: how its last check ended."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from django.utils import timezone

from mobility.operations.findings import Fact, Finding, Level
from reports.ledger.models import LedgerHead

UNCHECKED_AFTER: Final = timedelta(hours=6)  # workers check it every hour


def checked() -> Iterator[Finding]:
    """Check that the chain was intact, and was checked lately."""
    head = LedgerHead.objects.filter(pk=LedgerHead.ONLY).first()
    entries = head.number if head else 0
    facts: dict[str, Fact] = {"entries": entries}
    level = Level.OK
    if head and head.problem:
        level = Level.ERROR
        facts["number"] = head.problem.get("number") or "?"
    elif head and entries and _is_unchecked(head):
        level = Level.NOTE
        facts["why"] = "unchecked"
    yield Finding(code="ledger_broken", level=level, facts=facts)


def _is_unchecked(head: LedgerHead) -> bool:
    since = head.checked_at or head.at
    return since is not None and timezone.now() - since > UNCHECKED_AFTER
