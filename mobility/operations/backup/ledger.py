"""Questions of backups and escrows to the ledger: can it be written, and which keys were destroyed."""

from typing import Any

from reports.ledger.key import LedgerKeyError, signing_key
from reports.ledger.models import LedgerEntry, LedgerHead, LedgerKind


def can_sign() -> bool:
    """Return whether the ledger can be written."""
    try:
        signing_key(may_make=not LedgerHead.objects.filter(number__gt=0).exists())
    except LedgerKeyError:
        return False
    return True


def destroyed_keys() -> set[str]:
    """Ids of the keys of which the ledger says last that they were destroyed."""
    kinds = (LedgerKind.KEY_CREATED, LedgerKind.KEY_DESTROYED)
    last: dict[str, str] = {}
    entries: Any = LedgerEntry.objects.filter(kind__in=[str(kind) for kind in kinds]).order_by("number")
    for kind, facts in entries.values_list("kind", "facts"):
        last[str(facts.get("key"))] = kind
    return {key for key, kind in last.items() if kind == LedgerKind.KEY_DESTROYED}
