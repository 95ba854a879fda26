"""The keystore: is it there and private, has every open study its key, which keys are due or in no escrow.

Only where there is a vault.
"""

import os
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Final

from django.conf import settings
from django.utils import timezone

from mobility.base.errors import MobilityError
from mobility.operations.findings import Finding, Level, finding
from mobility.operations.models import Backup
from mobility.operations.probes.backups import made, missing_level
from mobility.operations.probes.host import is_silent
from mobility.plans.queries import unerased
from mobility.vault.keystore import keystore
from mobility.vault.models.subscribers import VaultStudy

NO_ESCROW: Final = "none"
ERASED_WITHIN: Final = timedelta(minutes=10)  # a closing that goes well takes seconds


def usable() -> Iterator[Finding]:
    """Return whether the folder of keys can be used, and by this account alone."""
    folder = Path(settings.MOBILITY_KEYSTORE_DIR)
    if is_silent(folder):  # its disk is reported
        return
    open_studies = VaultStudy.objects.filter(closed_at=None)
    if why := _why_unusable(folder, is_needed=open_studies.exists()):
        yield finding("keystore_unusable", Level.ERROR, why=why)
        return
    keys = list(open_studies.values_list("slug", "key_id"))
    yield finding("keystore_unusable", keys=len(keys))
    missing = [finding("key_missing", Level.ERROR, slug, why=why)
               for slug, key_id in keys if (why := _why_no_key(key_id))]  # fmt: skip
    yield from missing or [finding("key_missing", keys=len(keys))]


def due() -> Iterator[Finding]:
    """Keys that are promised to be destroyed within MOBILITY_KEY_DUE_DAYS, or should have been.

    Also those of studies that were closed, as long as their erasure has not come to its end.
    """
    today = timezone.now().date()
    studies = VaultStudy.objects.filter(closed_at=None, definition__key_until__isnull=False)
    found = list(_unerased())
    for slug, text in studies.values_list("slug", "definition__key_until").order_by("slug"):
        if text is None:  # JSON's null is there
            continue
        left = (date.fromisoformat(text) - today).days
        if left < 0:
            found.append(finding("key_due", Level.ERROR, slug, why="over", day=text, days_left=left))
        elif left <= settings.MOBILITY_KEY_DUE_DAYS:
            found.append(finding("key_due", Level.WARNING, slug, day=text, days_left=left))
    yield from found or [finding("key_due")]


def escrowed() -> Iterator[Finding]:
    """Keys of open studies that are in no escrow; fine where none is wanted."""
    kept = {key_id for each in made(Backup.Kind.ESCROW) for key_id in each.contents}
    keys = VaultStudy.objects.filter(closed_at=None).values_list("key_id", flat=True)
    n_missing = len(set(keys) - kept)
    level = missing_level() if n_missing and settings.MOBILITY_ESCROW != NO_ESCROW else Level.OK
    yield finding("escrow_old", level, keys=n_missing, escrow=settings.MOBILITY_ESCROW)


def _unerased() -> Iterator[Finding]:
    for study in unerased():
        if study.closed_at is not None and timezone.now() - study.closed_at >= ERASED_WITHIN:
            day = study.closed_at.date().isoformat()
            yield finding("key_due", Level.ERROR, study.slug, why="unerased", day=day)


def _why_unusable(folder: Path, *, is_needed: bool) -> str:
    """Return why the folder cannot be used: absent, closed to us or open to others; empty: it can."""
    if not folder.is_dir():
        return "absent" if is_needed else ""  # it is made with the first key
    if folder.stat().st_mode & 0o077:
        return "open"
    return "" if os.access(folder, os.R_OK | os.W_OK | os.X_OK) else "closed"


def _why_no_key(key_id: str) -> str:
    store = keystore()
    try:
        store.read(key_id)
    except (MobilityError, OSError):
        return "damaged" if store.exists(key_id) else "missing"
    return ""
