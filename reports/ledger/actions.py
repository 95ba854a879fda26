"""Adding to the ledger."""

import secrets
from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.utils import timezone

from reports.ledger.chain import BEFORE_THE_FIRST, Json, SignedHead, canonical, entry_hash, moment
from reports.ledger.key import replace_key, signing_key
from reports.ledger.models import LedgerEntry, LedgerHead, LedgerKind

FACTS_MAX = 20_000  # bytes as canonical JSON
LENGTHS = {"actor": 150, "study": 64, "event_id": 120}  # of the columns
SALT_BYTES = 16


class LedgerFactsError(ValueError):
    """Facts that cannot be recorded."""


def record(
    kind: LedgerKind,
    *,
    actor: str = "",
    study: str = "",
    facts: Mapping[str, Json] | None = None,
    event_id: str = "",
) -> None:
    """Add an entry, in the caller's transaction of the main database.

    Call it last in a transaction: it holds the head of the ledger to the end, and others wait for it.

    Parameters
    ----------
    actor : name of the account, or what acted ("command line"); empty: no one is known
    study : slug; empty: it concerns no study
    facts : text, whole numbers, truth values and lists or objects of these. Counts, hashes, ids and names of
        accounts; never a raw value, an identifier of a subscriber or a secret: nothing is ever removed
    event_id : of what may be tried twice; what was recorded under it before is not recorded again

    Raises
    ------
    LedgerFactsError : facts are too long, or hold something else, as a fraction
    LedgerKeyError : the key that signs the ledger is missing
    """
    content = dict(facts or {})
    _check(content)
    _check_length(actor=actor, study=study, event_id=event_id)
    if event_id and _is_recorded(event_id):  # no one has to wait for the lock
        return
    with transaction.atomic():
        head, _ = LedgerHead.objects.select_for_update().get_or_create(pk=LedgerHead.ONLY)
        if event_id and _is_recorded(event_id):
            return
        entry = LedgerEntry(
            number=head.number + 1,
            at=timezone.now(),
            kind=str(kind),
            actor=actor,
            study=study,
            facts=content,
            event_id=event_id,
            salt=secrets.token_hex(SALT_BYTES),
            previous_hash=head.hash or BEFORE_THE_FIRST,
        )
        _append(entry, head)


def renew_key(*, by: str) -> str:
    """Continue with a new key, and return its public half; LedgerKeyError unless the old one was lost."""
    before = LedgerHead.objects.filter(pk=LedgerHead.ONLY).values_list("public_key", flat=True).first()
    public_key = replace_key()
    facts: dict[str, Json] = {"key": "ledger", "public_key": public_key, "instead_of": before or None}
    record(LedgerKind.KEY_CREATED, actor=by, facts=facts)
    return public_key


def recorded_events(kind: LedgerKind) -> set[str]:
    """Ids of the events of a kind that are in the ledger."""
    return set(
        LedgerEntry.objects.filter(kind=str(kind)).exclude(event_id="").values_list("event_id", flat=True)
    )


def _is_recorded(event_id: str) -> bool:
    return LedgerEntry.objects.filter(event_id=event_id).exists()


def _append(entry: LedgerEntry, head: LedgerHead) -> None:
    entry.hash = entry_hash(
        number=entry.number, previous_hash=entry.previous_hash, content_hash=entry.content.hash
    )
    key = signing_key(may_make=head.number == 0)
    signed = SignedHead.signed(number=entry.number, entry=entry.hash, at=moment(entry.at), key=key)
    entry.save()
    head.number, head.hash, head.at = entry.number, entry.hash, entry.at
    head.public_key, head.signature = signed.public_key, signed.signature
    head.save(update_fields=["number", "hash", "at", "public_key", "signature"])


def _check(facts: dict[str, Json]) -> None:
    """Only what reads back the same from any database can be hashed."""
    _check_value(facts)
    if len(canonical(facts)) > FACTS_MAX:
        raise LedgerFactsError(f"facts must have at most {FACTS_MAX} bytes, got {len(canonical(facts))}")


def _check_length(**texts: str) -> None:
    for name, text in texts.items():
        if len(text) > LENGTHS[name]:
            raise LedgerFactsError(f"{name} must have at most {LENGTHS[name]} characters, got {len(text)}")


def _check_value(value: Any) -> None:
    if isinstance(value, dict):
        if not all(isinstance(name, str) for name in value):
            raise LedgerFactsError("names of facts must be text")
        for name, part in value.items():
            _check_value(name)
            _check_value(part)
    elif isinstance(value, list):
        for part in value:
            _check_value(part)
    elif isinstance(value, str):
        if "\0" in value or any("\ud800" <= letter <= "\udfff" for letter in value):
            raise LedgerFactsError("facts must be text without NUL and half characters")
    elif value is not None and not isinstance(value, bool | int):
        raise LedgerFactsError(
            f"facts must be text, whole numbers or truth values, got {type(value).__name__}"
        )
