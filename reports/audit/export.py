"""The ledger as a file of JSON Lines: an entry in each line, the signed head in the last one."""

import json
from collections.abc import Iterator
from typing import Any

from reports.ledger.actions import chain_waiting
from reports.ledger.check import HEAD, line_of
from reports.ledger.models import LedgerEntry, LedgerHead

ROWS_AT_ONCE = 2000


def ledger_lines(*, study: str | None = None) -> Iterator[str]:
    """Lines of the whole ledger as it is now.

    Of entries that do not concern `study` (a slug), only number and hashes are written: the chain through
    them can be checked, and nothing of them can be read.
    """
    chain_waiting()
    head = LedgerHead.objects.filter(pk=LedgerHead.ONLY).first()
    last = head.number if head else 0
    after = 0
    while after < last:
        # In steps by number: a reader that is slow holds no transaction open.
        entries = LedgerEntry.objects.order_by("number").filter(number__gt=after, number__lte=last)
        found = list(entries[:ROWS_AT_ONCE])
        if not found:
            break  # some are missing: anyone who checks the file sees it by the head
        for entry in found:
            yield _line(line_of(entry, is_left_out=study not in (None, entry.study)))
        after = found[-1].number
    if head is not None and head.number:
        yield _line({HEAD: head.signed.to_json()})


def _line(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"
