"""Admission: an upload that would not fit, or only wait, is refused before its bytes are received.

The sender keeps it, and gets a time for the next try; so nothing is lost.
"""

from datetime import timedelta
from pathlib import PurePath
from typing import Any

from django.conf import settings
from django.db.models import Count, F, QuerySet, Sum
from django.utils import timezone

from mobility.base.errors import NoRoomError, QueueFullError, UploadTooLargeError
from mobility.batches import staging
from mobility.extracts.rows.widths import code_slots, packed_row_bytes
from mobility.vault.models.batch import Batch
from mobility.vault.models.subscribers import VaultStudy

RESTS_AFTER_S = 300  # without a byte
COME_AGAIN = "send the file again later"
# Minimum bytes of a row as it is sent: measured were 74 to 114 as text, 14 with gzip, and 7.3 to
# 9.9 as Parquet. Its length after reading is separate.
TEXT_ROW_BYTES = 60
ROW_BYTES = {".gz": 12, ".gzip": 12, ".zst": 10, ".zstd": 10, ".parquet": 7}


def check_queue(study: VaultStudy) -> None:
    """Refuse another file while too many of the study wait; other studies are let in.

    Raises
    ------
    QueueFullError : too many files, or bytes, of the study wait
    """
    waiting = Batch.objects.filter(study=study, state=Batch.State.QUEUED, kind__in=Batch.FILES)
    found = waiting.aggregate(files=Count("pk"), size=Sum("bytes_total"))
    files, size = found["files"], found["size"] or 0
    if files >= settings.MOBILITY_MAX_WAITING_BATCHES:
        raise QueueFullError(
            f"{files:,} file(s) of this study are waiting (MOBILITY_MAX_WAITING_BATCHES), so no more "
            f"are accepted until some have been processed: {COME_AGAIN}"
        )
    if files and size >= settings.MOBILITY_MAX_WAITING_BYTES:
        raise QueueFullError(
            f"{size:,} bytes of this study are waiting (MOBILITY_MAX_WAITING_BYTES), so no more are "
            f"accepted until some have been processed: {COME_AGAIN}"
        )


def check_size(size: int | None, *, study: VaultStudy, filename: str, stored: int = 0) -> None:
    """Refuse a file that is too large, or would not fit in addition to uploads and their coded rows.

    Without room for what is read, a large file would wait for room that it takes itself.

    Parameters
    ----------
    size : bytes, as far as they are known
    stored : how many of them are staged already

    Raises
    ------
    UploadTooLargeError, NoRoomError
    """
    largest = settings.MOBILITY_MAX_UPLOAD_BYTES
    if size is not None and size > largest:
        raise UploadTooLargeError(
            f"a file must have at most {largest:,} bytes (MOBILITY_MAX_UPLOAD_BYTES): send it in parts"
        )
    free = staging.free_bytes()
    if free is None:
        return
    needed = staging.sealed_bytes((size or 0) - stored)
    reserve = settings.MOBILITY_STAGING_RESERVE_BYTES
    reading = _reading_takes(study, filename, size or 0)
    left = max(free - reserve - _announced() - reading, 0)
    if needed >= left:
        raise NoRoomError(
            f"the file needs {needed:,} bytes of staging, but only {left:,} are available after the "
            f"reserve of {reserve:,} bytes (MOBILITY_STAGING_RESERVE_BYTES), uploads in progress, and "
            f"{reading:,} bytes for reading them and this file: free space in MOBILITY_STAGING_DIR, "
            "wait until earlier batches have ended, or send the file in parts"
        )


def check_room() -> None:
    """Refuse to continue with an upload while staging is down to its reserve; what has arrived of it stays.

    Raises
    ------
    NoRoomError
    """
    free = staging.free_bytes()
    if free is not None and free <= settings.MOBILITY_STAGING_RESERVE_BYTES:
        raise NoRoomError(
            f"{free:,} bytes of staging are left, which is less than the reserve for running batches "
            "(MOBILITY_STAGING_RESERVE_BYTES): resume this upload when earlier batches have ended; "
            "the received data is kept"
        )


def reading_bytes(filename: str, size: int, *, slots: int) -> int:
    """Return the additional room that reading a file takes at most, estimated from its name and length."""
    row_bytes = ROW_BYTES.get(PurePath(filename.lower()).suffix, TEXT_ROW_BYTES)
    return size * packed_row_bytes(slots) // row_bytes


def _slots(indicators: list[dict[str, Any]], mechanism: str, *, has_classes: bool) -> int:
    n_static = sum(indicator.get("kind", "static") == "static" for indicator in indicators)
    return code_slots(n_static, is_sampled=mechanism.startswith("smp-"), has_classes=has_classes)


def _announced() -> int:
    """Bytes that uploads under way have announced and not brought yet."""
    return _coming().aggregate(all=Sum(F("bytes_total") - F("bytes_received")))["all"] or 0


def _coming() -> QuerySet[Batch]:
    """Uploads under way whose length is known; one that rests closes no door."""
    return Batch.objects.filter(
        state=Batch.State.RECEIVING,
        bytes_total__isnull=False,
        heard_at__gt=timezone.now() - timedelta(seconds=RESTS_AFTER_S),
    )


def _reading_takes(study: VaultStudy, filename: str, size: int) -> int:
    """Room for reading what is here, what comes, and this file: of each study one is read at a time."""
    unread = Batch.objects.filter(
        state__in=(Batch.State.QUEUED, Batch.State.READING), kind__in=Batch.FILES,
        bytes_total__isnull=False, waits_since=None,  # for a key or a storage: it closes no door to others
    )  # fmt: skip
    files = [(study.pk, filename, size)]
    files += (unread | _coming()).values_list("study", "filename", F("bytes_total") - F("bytes_read"))
    owners = VaultStudy.objects.filter(pk__in={owner for owner, _, _ in files})
    # Not whole definitions: lists of cells can be long.
    found = owners.values_list("pk", "definition__indicators", "plan__mechanism", "plan__classes")
    slots = {
        pk: _slots(indicators, mechanism, has_classes=bool(classes))
        for pk, indicators, mechanism, classes in found
    }
    largest: dict[int, int] = {}
    for owner, name, unread_bytes in files:
        takes = reading_bytes(name, max(unread_bytes, 0), slots=slots[owner])
        largest[owner] = max(largest.get(owner, 0), takes)
    return sum(largest.values())
