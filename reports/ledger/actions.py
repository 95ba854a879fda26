"""Adding to the ledger."""

import logging
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from django.db import transaction
from django.utils import timezone

from reports.ledger.chain import BEFORE_THE_FIRST, Json, SignedHead, canonical, entry_hash, moment
from reports.ledger.key import LedgerKeyError, replace_key, signing_key
from reports.ledger.models import LedgerEntry, LedgerHead, LedgerKind, LedgerWaiting

FACTS_MAX = 20_000  # bytes as canonical JSON
LENGTHS = {"actor": 150, "study": 64, "event_id": 120}  # of the columns
SALT_BYTES = 16
log = logging.getLogger(__name__)
WAITING_AT_ONCE = 1000


class LedgerFactsError(ValueError):
    """Facts that cannot be recorded."""


def record(
    kind: LedgerKind,
    *,
    actor: str = "",
    study: str = "",
    facts: Mapping[str, Json] | None = None,
    event_id: str = "",
    may_wait: bool = False,
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
    may_wait : if another transaction holds the head, store the entry as it is: the next one that holds the
        head adds it to the chain. So readers of the API do not queue

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
    own = LedgerWaiting(kind=str(kind), actor=actor, study=study, facts=content, event_id=event_id)
    with transaction.atomic():
        head = _locked_head(may_wait=may_wait)
        own.at = timezone.now()
        if head is not None:
            _append(head, [*_waiting(), own])
        else:
            own.signature = signing_key(may_make=False).sign(own.signed_bytes).hex()
            LedgerWaiting.objects.bulk_create([own], ignore_conflicts=True)


def chain_waiting() -> None:
    """Add the entries that wait to the chain, before someone reads it; without the key they wait on."""
    with suppress(LedgerKeyError):
        while LedgerWaiting.objects.exists():
            with transaction.atomic():
                head, _ = LedgerHead.objects.select_for_update().get_or_create(pk=LedgerHead.ONLY)
                _append(head, _waiting())


def renew_key(*, by: str) -> str:
    """Continue with a new key, and return its public half; LedgerKeyError unless the old one was lost."""
    before = LedgerHead.objects.filter(pk=LedgerHead.ONLY).values_list("public_key", flat=True).first()
    public_key = replace_key()
    _sign_again(before)
    facts: dict[str, Json] = {"key": "ledger", "public_key": public_key, "instead_of": before or None}
    record(LedgerKind.KEY_CREATED, actor=by, facts=facts)
    return public_key


def _sign_again(public_key: str | None) -> None:
    """Sign entries that wait by the new key, if the lost one had signed them; `public_key` is its half."""
    if public_key:
        lost = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key))
        for each in LedgerWaiting.objects.all():
            if _is_signed(each, lost):
                each.signature = signing_key(may_make=False).sign(each.signed_bytes).hex()
                each.save(update_fields=["signature"])


def recorded_events(kind: LedgerKind) -> set[str]:
    """Ids of the events of a kind that are in the ledger."""
    return set(
        LedgerEntry.objects.filter(kind=str(kind)).exclude(event_id="").values_list("event_id", flat=True)
    )


def _is_recorded(event_id: str) -> bool:
    return LedgerEntry.objects.filter(event_id=event_id).exists()


def _locked_head(*, may_wait: bool) -> LedgerHead | None:
    """Return the head, locked; None if another transaction holds it and the entry may wait."""
    if may_wait:
        found = LedgerHead.objects.filter(pk=LedgerHead.ONLY)
        if (head := found.select_for_update(skip_locked=True).first()) or found.exists():
            return head
    return LedgerHead.objects.select_for_update().get_or_create(pk=LedgerHead.ONLY)[0]


def _waiting() -> list[LedgerWaiting]:
    """Entries that wait, the oldest first; those that were not signed by the ledger's key are thrown away."""
    found = list(LedgerWaiting.objects.order_by("pk")[:WAITING_AT_ONCE])
    key = signing_key(may_make=False).public_key() if found else None
    genuine = [each for each in found if key is not None and _is_signed(each, key)]
    if forged := [each.pk for each in found if each not in genuine]:
        log.error("ledger_waiting_forged n=%s", len(forged))
        LedgerWaiting.objects.filter(pk__in=forged).delete()
    return genuine


def _is_signed(entry: LedgerWaiting, key: Ed25519PublicKey) -> bool:
    try:
        key.verify(bytes.fromhex(entry.signature), entry.signed_bytes)
    except (ValueError, InvalidSignature):
        return False
    return True


def _append(head: LedgerHead, added: Sequence[LedgerWaiting]) -> None:
    """Add to the chain, in this order, what it does not have, and sign its new end."""
    last, is_first = None, head.number == 0
    for each in added:
        if each.event_id and _is_recorded(each.event_id):
            continue
        last = entry = LedgerEntry(
            number=head.number + 1,
            at=each.at,
            kind=each.kind,
            actor=each.actor,
            study=each.study,
            facts=each.facts,
            event_id=each.event_id,
            salt=secrets.token_hex(SALT_BYTES),
            previous_hash=head.hash or BEFORE_THE_FIRST,
        )
        entry.hash = entry_hash(
            number=entry.number, previous_hash=entry.previous_hash, content_hash=entry.content.hash
        )
        entry.save()
        head.number, head.hash, head.at = entry.number, entry.hash, entry.at
    LedgerWaiting.objects.filter(pk__in=[each.pk for each in added if each.pk]).delete()
    if last is None:
        return
    key = signing_key(may_make=is_first)
    signed = SignedHead.signed(number=last.number, entry=last.hash, at=moment(last.at), key=key)
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
