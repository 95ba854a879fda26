"""Ledger entries for files and API answers: subject, window and recipient."""

import hashlib
from collections.abc import Mapping
from datetime import datetime

from reports.ledger.actions import LENGTHS, record
from reports.ledger.chain import Json
from reports.ledger.models import LedgerKind


def record_file(*, study: str, by: str, facts: Mapping[str, Json]) -> None:
    """Add that a page or a command has handed out a file of a study."""
    record(LedgerKind.EXPORT_MADE, actor=by, study=study, facts=facts)


def record_answer(
    *, study: str, by: str, token_id: int | None, facts: Mapping[str, Json], version: str, now: datetime
) -> None:
    """Add that the API has answered with numbers of a study, to a program's token or a person in a browser.

    `version` is a hash of what was asked for and of the state of the study. A program that asks for the same
    again and again, and would read the same, is in the ledger once in an hour.
    """
    reader = f"token {token_id}" if token_id is not None else by
    event = f"export/{version}/{now:%Y-%m-%dT%H}/{reader}"
    if len(event) > LENGTHS["event_id"]:  # cut off, two readers with long names would be one
        event = f"export/{hashlib.sha256(event.encode()).hexdigest()}"
    record(
        LedgerKind.EXPORT_MADE,
        actor=by,
        study=study,
        facts=dict(facts) | ({} if token_id is None else {"token": str(token_id)}),
        event_id=event,
        may_wait=True,
    )
