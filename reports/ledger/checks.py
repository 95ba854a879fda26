"""Checking the ledger and keeping how it ended, so that a page can say so without reading every entry."""

import logging
from datetime import timedelta

from django.utils import timezone

from reports.ledger.actions import chain_waiting
from reports.ledger.chain import SignedHead
from reports.ledger.check import Chain, check_tables
from reports.ledger.models import LedgerHead

CHECKED_LATELY = timedelta(minutes=50)
log = logging.getLogger(__name__)


def check_ledger(*, public_key: str | None = None, earlier: SignedHead | None = None) -> Chain:
    """Check the whole ledger (some thousand entries a second) and note when, how far, and what was wrong.

    Parameters are those of `reports.ledger.check.check_tables`.
    """
    chain_waiting()
    report = check_tables(public_key=public_key, earlier=earlier)
    # Not save(): an entry that is added meanwhile moves the head.
    LedgerHead.objects.filter(pk=LedgerHead.ONLY).update(
        checked_at=timezone.now(), checked_number=report.entries, problem=report.to_json()["problem"]
    )
    return report


def check_now_and_then() -> None:
    """Check the ledger unless someone has done so lately: any number of workers may ask."""
    lately = timezone.now() - CHECKED_LATELY
    if LedgerHead.objects.filter(checked_at__gt=lately).exists():
        return
    report = check_ledger()
    if report.problem is not None:
        log.error("ledger_broken number=%s problem=%s", report.problem.number, report.problem.what)
