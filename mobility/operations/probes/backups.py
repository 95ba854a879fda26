"""Backups, and keys that are in no escrow."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone

from mobility.operations.findings import Finding, Level
from mobility.operations.models import Backup
from mobility.operations.probes.trial import is_trial

NO_ESCROW: Final = "none"


def backed_up() -> Iterator[Finding]:
    """How old the last backup is."""
    last = _made(Backup.Kind.BACKUP).first()
    if last is None:
        yield Finding(code="backup_old", level=_missing_level(), facts={"why": "never"})
        return
    age_s = round((timezone.now() - last.made_at).total_seconds())
    is_old = age_s > timedelta(days=settings.MOBILITY_BACKUP_DAYS).total_seconds()
    yield Finding(
        code="backup_old",
        level=Level.WARNING if is_old else Level.OK,
        facts={"age_s": age_s, "bytes": last.bytes},
    )


def escrowed() -> Iterator[Finding]:
    """Keys of open studies that are in no escrow; fine where none is to be. Only where there is a vault."""
    from mobility.vault.models.subscribers import VaultStudy

    kept = {key_id for each in _made(Backup.Kind.ESCROW) for key_id in each.contents}
    keys = VaultStudy.objects.filter(closed_at=None).values_list("key_id", flat=True)
    n_missing = len(set(keys) - kept)
    is_trouble = n_missing and settings.MOBILITY_ESCROW != NO_ESCROW
    yield Finding(
        code="escrow_old",
        level=_missing_level() if is_trouble else Level.OK,
        facts={"keys": n_missing, "escrow": settings.MOBILITY_ESCROW},
    )


def _made(kind: Backup.Kind) -> QuerySet[Backup]:
    return Backup.objects.filter(kind=kind, zone=settings.MOBILITY_ZONE).order_by("-made_at")


def _missing_level() -> Level:
    return Level.NOTE if is_trial() else Level.WARNING
