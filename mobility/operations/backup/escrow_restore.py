"""Keys back from an escrow: missing or damaged ones, never destroyed ones, and never over a whole key."""

import logging
import re
from collections.abc import Collection
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from django.conf import settings
from django.db import DatabaseError

from mobility.base.errors import OperationsError
from mobility.base.runtime import write_private
from mobility.operations.backup import escrow
from mobility.operations.backup.folder import digest_of
from mobility.operations.backup.ledger import can_sign, destroyed_keys
from mobility.operations.backup.reconcile import reconcile
from mobility.vault.keystore import KEY_ID, keystore
from reports.ledger.actions import record
from reports.ledger.models import LedgerKind

if settings.HAS_VAULT:  # the models of a vault exist there only
    from mobility.plans.recovery import closed_there
    from mobility.vault.models.subscribers import VaultStudy

log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class Outcome:
    """Ids of keys by what became of them.

    refused : they were destroyed; the copy in the escrow must be destroyed, too
    disputed : the list of the escrow alone says so, and an open study needs them; or only the analysts'
        server calls their study closed: as they were, here or not
    unasked : the analysts' server, which runs apart, did not say whether their studies were closed
    present : the same key is there already
    differs : another key is there under that name, and stays
    """

    restored: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    disputed: list[str] = field(default_factory=list)
    unasked: list[str] = field(default_factory=list)
    present: list[str] = field(default_factory=list)
    differs: list[str] = field(default_factory=list)


def restore_keys(
    folder: Path,
    *,
    private_key: X25519PrivateKey,
    by: str,
    closed: Collection[str] = (),
    without_asking: bool = False,
) -> dict[str, Any]:
    """Put keys back that are missing here, then settle what a restore has left open.

    Parameters
    ----------
    closed : slugs of studies that are known elsewhere to have been closed
    without_asking : put keys back also where an analyst server that runs apart does not answer

    Raises
    ------
    OperationsError : the escrow cannot be read or opened, or the database does not say which keys were
        destroyed; no key was put back
    """
    listed = escrow.read_escrow(folder)
    opened = {
        key_id: escrow.unsealed(folder, key_id, private_key=private_key) for key_id in sorted(listed.keys)
    }
    _destroyed(listed, closed=closed)  # first: where no one can say it, nothing is put back
    outcome = Outcome()
    for key_id in sorted(set(opened) & set(escrow.signing_files())):
        _put_signing(key_id, escrow.signing_files()[key_id], opened.pop(key_id), outcome)
    disputed = _bury(listed, closed=closed)
    called_closed, unasked = _asked(opened)  # signed with the key that has just come back
    if not without_asking:
        disputed |= called_closed - set(keystore().destroyed())
    outcome.disputed = sorted(disputed)
    for key_id in sorted(set(opened) - set(outcome.disputed)):
        _put(key_id, opened[key_id], outcome, waits=key_id in unasked and not without_asking)
    _note(folder, listed)
    if can_sign():
        facts: dict[str, Any] = {"keys": outcome.restored, "refused": outcome.refused}
        record(LedgerKind.KEYS_RESTORED, actor=by, facts=facts)
    log.info("keys_restored keys=%s refused=%s", len(outcome.restored), len(outcome.refused))
    return {**asdict(outcome), **reconcile(by=by, closed=closed)}


def _note(folder: Path, listed: escrow.EscrowList) -> None:
    """There is this escrow: the restored database may be older than it."""
    sizes = {key_id: (folder / f"{key_id}.sealed").stat().st_size for key_id in listed.keys}
    made_at = datetime.fromisoformat(listed.made_at)
    escrow.note_escrow(digest_of(folder), sizes, made_at=made_at)
    escrow.note_beside_keys(listed.keys, made_at)


def _bury(listed: escrow.EscrowList, *, closed: Collection[str]) -> set[str]:
    """Leave tombstones of destroyed keys; ids of those that only the escrow calls so, though they are needed.

    No one signs the list of an escrow. It keeps a key from coming back, but destroys none: neither one that
    is here, nor one that an open study waits for.
    """
    destroyed = _destroyed(listed, closed=closed)
    keys = keystore()
    told = {key_id for key_id in listed.destroyed if KEY_ID.fullmatch(key_id)}
    told -= {*destroyed, *keys.destroyed(), *escrow.signing_files()}
    disputed = {key_id for key_id in told if keys.exists(key_id)} | (told & _needed())
    for key_id in sorted((destroyed | told) - disputed - set(keys.destroyed()) - set(escrow.signing_files())):
        keys.destroy(key_id)
    return disputed


def _destroyed(listed: escrow.EscrowList, *, closed: Collection[str]) -> set[str]:
    """Keys that were destroyed, by the databases and by what is known elsewhere."""
    try:
        found = {*destroyed_keys(), *_closed_in_vault(closed)}
    except DatabaseError as error:
        raise OperationsError(
            f"the databases cannot list the destroyed keys ({type(error).__name__}): restore the "
            "databases first, or run migrate if they are new"
        ) from None
    # The vault may not know the study: then its name tells.
    of_closed = [re.compile(rf"study-{re.escape(slug)}(-[0-9a-f]{{8}})?") for slug in closed]
    found |= {key_id for key_id in listed.keys if any(each.fullmatch(key_id) for each in of_closed)}
    return {key_id for key_id in found if KEY_ID.fullmatch(key_id)}


def _asked(key_ids: Collection[str]) -> tuple[set[str], set[str]]:
    """Keys of studies that an analyst server that runs apart calls closed, and those it says nothing of."""
    if not settings.HANDS_OVER:
        return set(), set()
    known = dict(VaultStudy.objects.values_list("key_id", "slug"))
    slugs = {key_id: {known[key_id]} if key_id in known else _slugs(key_id) for key_id in key_ids}
    closed, unanswered = closed_there(set().union(*slugs.values()))
    called_closed = {key_id for key_id in key_ids if slugs[key_id] & closed}
    return called_closed, {key_id for key_id in key_ids if slugs[key_id] & unanswered} - called_closed


def _slugs(key_id: str) -> set[str]:
    """Return the slugs of studies that the vault does not know: what the name of the key allows."""
    name = key_id.removeprefix(escrow.STUDY_PREFIX)
    return {name, re.sub(r"-[0-9a-f]{8}$", "", name)}


def _needed() -> set[str]:
    """Keys of studies that are open here."""
    if not settings.HAS_VAULT:
        return set()
    return set(VaultStudy.objects.filter(closed_at=None).values_list("key_id", flat=True))


def _closed_in_vault(closed: Collection[str]) -> set[str]:
    if not settings.HAS_VAULT:
        return set()
    studies = VaultStudy.objects.values_list("slug", "key_id", "closed_at")
    return {key_id for slug, key_id, closed_at in studies if closed_at is not None or slug in closed}


def _put(key_id: str, key: bytes, outcome: Outcome, *, waits: bool) -> None:
    keys = keystore()
    if keys.is_destroyed(key_id):
        outcome.refused.append(key_id)
    elif keys.exists(key_id) and not keys.is_damaged(key_id):
        (outcome.present if keys.read(key_id) == key else outcome.differs).append(key_id)
    elif waits:
        outcome.unasked.append(key_id)
    else:
        keys.put_back(key_id, key, over_damaged=True)
        outcome.restored.append(key_id)


def _put_signing(key_id: str, path: Path, key: bytes, outcome: Outcome) -> None:
    if path.exists() and not escrow.is_damaged_pem(path):
        (outcome.present if path.read_bytes() == key else outcome.differs).append(key_id)
    else:
        write_private(path, key.decode())
        outcome.restored.append(key_id)
