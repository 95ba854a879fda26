"""Making a backup: a dump of each database of this zone, never a key and nothing that is staged.

The main database comes first and the vault second. So the analysts' data are never newer than the vault: the
vault's outbox hands over again what the main dump lacks, each publication once by its id. Closing a study
empties its outbox, and a new study or plan is written to both: where one of these happens in between, both
are dumped again.
"""

import logging
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.db import DatabaseError, transaction
from django.utils import timezone

from mobility.base.errors import OperationsError
from mobility.operations.backup.dumps import Ask, check_readable, dump
from mobility.operations.backup.folder import (
    MANIFEST,
    PREFIX,
    Manifest,
    Owner,
    check_parts,
    digest_of,
    new_folder,
    prune,
    read_manifest,
    stamp,
)
from mobility.operations.installation import own_code
from mobility.operations.models import Backup
from reports.base.version import software
from reports.ledger.actions import record
from reports.ledger.chain import Json, SignedHead, moment
from reports.ledger.key import LedgerKeyError
from reports.ledger.models import LedgerKind

if settings.HAS_VAULT:  # the models of a vault exist there only
    from mobility.plans.models import PlanDraft
    from mobility.vault.models.subscribers import VaultStudy

log = logging.getLogger(__name__)

TRIES: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A backup that was made, and older ones that went. problem: why the ledger does not know of it."""

    folder: Path
    manifest: Manifest
    digest: str
    pruned: list[str]
    problem: str = ""

    def to_json(self) -> dict[str, Any]:
        return {
            "backup": str(self.folder),
            "made_at": self.manifest.made_at.isoformat(),
            "zone": self.manifest.zone,
            "installation": self.manifest.installation,
            "bytes": self.manifest.size,
            "sha256": self.digest,
            "parts": {part.alias: part.bytes for part in self.manifest.parts},
            "keys": self.manifest.keys,
            "pruned": self.pruned,
        }


def make_backup(parent: Path, *, by: str, keep: int | None = None) -> Made:
    """Write a backup into a new folder below `parent`, and remove old ones there.

    Parameters
    ----------
    keep : number that stay, of any age; None: as long as MOBILITY_BACKUP_KEEP_DAYS says

    Raises
    ------
    OperationsError : it cannot be made; nothing is left of it

    Notes
    -----
    An error after it is complete (`problem`) does not remove it: a database that has just died needs it.
    """
    made_at = timezone.now()
    try:
        owner = _owner()
        with new_folder(parent, f"{PREFIX}{stamp(made_at)}{owner.suffix}") as folder:
            manifest = _dumped(folder, made_at)
            _check(folder, manifest)
            (folder / MANIFEST).write_bytes(manifest.to_bytes())  # last
    except DatabaseError as error:
        raise OperationsError(f"a database is not responding ({type(error).__name__})") from None
    except OSError as error:
        raise OperationsError(f"{error.filename or parent}: {error.strerror}") from None
    final = parent / folder.name.removesuffix(".part")
    digest = digest_of(final)
    try:
        problem = _recorded(manifest, digest, by=by)
    except DatabaseError as error:
        problem = f"a database is not responding ({type(error).__name__})"
    # For any problem: one that lasts would fill the disk, night by night.
    days = settings.MOBILITY_BACKUP_KEEP_DAYS
    pruned = prune(parent, owner=owner, keep=keep, keep_days=days, now=made_at)
    log.info("backup_made bytes=%s pruned=%s", manifest.size, len(pruned))
    return Made(folder=final, manifest=manifest, digest=digest, pruned=pruned, problem=problem)


def verify_backup(folder: Path) -> Manifest:
    """Check that a backup is complete and readable.

    Raises
    ------
    OperationsError : it is not
    """
    manifest = read_manifest(folder)
    _check(folder, manifest)
    return manifest


def _check(folder: Path, manifest: Manifest) -> None:
    check_parts(folder, manifest)
    for part in manifest.parts:
        check_readable(folder / part.file, vendor=part.vendor)


def _dumped(folder: Path, made_at: datetime) -> Manifest:
    for _ in range(TRIES):
        before = _shape()
        main, seen = dump("default", folder, look=_look_at_main)
        parts = [main]
        if settings.HAS_VAULT:
            vault, keys = dump("vault", folder, look=_look_at_vault)
            parts, seen = [main, vault], seen | keys
        if _shape() == before:
            zone, seen = settings.MOBILITY_ZONE, {"keys": [], **seen}
            return Manifest(software=software(), zone=zone, made_at=made_at, parts=parts, **seen)
        for part in parts:
            (folder / part.file).unlink()
    raise OperationsError("studies were created or closed during every attempt: try again later")


def _shape() -> object:
    """Return values that must be equal before and after, so that both dumps fit."""
    if not settings.HAS_VAULT:
        return None
    with transaction.atomic(using="vault"):
        studies = VaultStudy.objects.order_by("pk").values_list("pk", "plan_hash", "closed_at")
        drafts = PlanDraft.objects.order_by("pk").values_list("pk", "announced_at")
        return list(studies), list(drafts)


def _look_at_main(ask: Ask) -> dict[str, Any]:
    seen = {"installation": ask("SELECT code FROM operations_installation")[0][0]}
    rows = ask("SELECT number, hash, at, public_key, signature FROM reports_ledgerhead WHERE number > 0")
    if not rows:
        return seen | {"ledger_head": None}
    number, entry, at, public_key, signature = rows[0]
    at = datetime.fromisoformat(at) if isinstance(at, str) else at
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    head = SignedHead(number=number, hash=entry, at=moment(at), public_key=public_key, signature=signature)
    return seen | {"ledger_head": head.to_json()}


def _look_at_vault(ask: Ask) -> dict[str, Any]:
    rows = ask("SELECT key_id FROM mobility_vaultstudy WHERE certificate IS NULL ORDER BY key_id")
    return {"keys": [str(key_id) for (key_id,) in rows]}


def _owner() -> Owner:
    noted = Backup.objects.filter(kind=Backup.Kind.BACKUP).values_list("digest", flat=True)
    return Owner(zone=settings.MOBILITY_ZONE, code=own_code(), noted=set(noted))


def _recorded(manifest: Manifest, digest: str, *, by: str) -> str:
    """Record that it was made; return why the ledger could not be written, or nothing."""
    facts: dict[str, Json] = {"manifest_sha256": digest, "bytes": manifest.size}
    try:
        with transaction.atomic():
            _note(manifest, digest)
            record(LedgerKind.BACKUP_MADE, actor=by, facts=facts)
    except LedgerKeyError as error:
        _note(manifest, digest)
        return str(error)
    return ""


def _note(manifest: Manifest, digest: str) -> None:
    Backup.objects.create(
        kind=Backup.Kind.BACKUP,
        zone=manifest.zone,
        made_at=manifest.made_at,
        bytes=manifest.size,
        digest=digest,
        contents={part.alias: part.bytes for part in manifest.parts},
    )
