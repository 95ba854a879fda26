"""What lies on this host: disks. Each host sees its own."""

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from django.conf import settings

from mobility.operations.findings import Finding, Level

GB: Final = 1_000_000_000
ERROR_SHARE: Final = 5  # a fifth of what warns


def disks() -> Iterator[Finding]:
    """Free space, once for each disk: folders that share one are told by the first of them."""
    seen: set[int] = set()
    for subject, folder in _folders().items():
        existing = _nearest(folder)
        device = existing.stat().st_dev
        if device not in seen:
            seen.add(device)
            yield _disk(subject, existing)


def _folders() -> dict[str, Path]:
    """Folders that a run writes. A bucket has no end that could be seen from here."""
    folders = {"data": Path(settings.MOBILITY_DATA_DIR)}
    if settings.HAS_VAULT:
        if "StagingFolder" in str(settings.STORAGES["staging"]):
            folders["staging"] = Path(settings.MOBILITY_STAGING_DIR)
        folders["keystore"] = Path(settings.MOBILITY_KEYSTORE_DIR)
    folders["backups"] = Path(settings.MOBILITY_BACKUP_DIR)
    return folders


def _nearest(folder: Path) -> Path:
    """The folder, or what is nearest above it: it may not be made yet, or be another account's."""
    for each in (folder, *folder.parents):
        with suppress(OSError):
            each.stat()
            return each
    return Path(folder.anchor)


def _disk(subject: str, folder: Path) -> Finding:
    usage = shutil.disk_usage(folder)
    wanted = settings.MOBILITY_DISK_FREE_GB * GB
    level = Level.OK
    if usage.free < wanted:
        level = Level.ERROR if usage.free < wanted / ERROR_SHARE else Level.WARNING
    facts = {
        "free_bytes": usage.free,
        "total_bytes": usage.total,
        "free_percent": round(100 * usage.free / usage.total, 1),
    }
    return Finding(code="disk_low", level=level, subject=subject, facts=facts)
