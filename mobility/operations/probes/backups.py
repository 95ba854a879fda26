"""Backups."""

from collections.abc import Iterator
from datetime import timedelta

from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone

from mobility.operations.findings import Finding, Level, finding, is_trial
from mobility.operations.models import Backup


def backed_up() -> Iterator[Finding]:
    """Check the age of the last backup."""
    last = made(Backup.Kind.BACKUP).first()
    if last is None:
        yield finding("backup_old", missing_level(), why="never")
        return
    age_s = round((timezone.now() - last.made_at).total_seconds())
    is_old = age_s > timedelta(days=settings.MOBILITY_BACKUP_DAYS).total_seconds()
    yield finding("backup_old", Level.WARNING if is_old else Level.OK, age_s=age_s, bytes=last.bytes)


def made(kind: Backup.Kind) -> QuerySet[Backup]:
    """Return this zone's backups of a kind, newest first."""
    return Backup.objects.filter(kind=kind, zone=settings.MOBILITY_ZONE).order_by("-made_at")


def missing_level() -> Level:
    """Return the severity of a missing backup."""
    return Level.NOTE if is_trial() else Level.WARNING
