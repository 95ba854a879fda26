"""Storage of staged uploads: whether it can be used, and its orphans. Ciphertext only."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final
from uuid import uuid4

from mobility.base.errors import StagingUnavailableError
from mobility.batches import staging
from mobility.batches.storages import Pieces, staging_storage
from mobility.operations.doctor.diagnosis import Diagnoses, error, fine, warning_if
from mobility.vault.models.batch import Batch

MARK: Final = "doctor"
ADVICE: Final = (
    "correct MOBILITY_STAGING_*: the account needs the rights to list, get, put and delete objects"
)


def usable() -> Diagnoses:
    """Return whether an object can be written, read, listed and deleted."""
    try:
        with marked() as (folder, content):
            storage = staging_storage()
            if storage.read_range(f"{folder}/{MARK}") != content:
                what = "data read from staging differs from the data written"
                yield error("storage_unusable", what, ADVICE)
                return
            _, names = storage.listdir(folder)
            if MARK not in names:
                yield error("storage_unusable", "a file written to staging is not listed", ADVICE)
                return
    except (OSError, StagingUnavailableError) as failure:
        yield error("storage_unusable", f"staging cannot be used ({type(failure).__name__})", ADVICE)
        return
    yield fine("storage_unusable")


@contextmanager
def marked() -> Iterator[tuple[str, bytes]]:
    """An object of a few random bytes that is gone afterwards: its folder, and its content."""
    folder, content = str(uuid4()), secrets.token_bytes(16)
    storage = staging_storage()
    try:
        storage.save(f"{folder}/{MARK}", Pieces([content]))
        yield folder, content
    finally:
        with suppress(OSError, StagingUnavailableError):
            storage.delete_folder(folder)


def orphans() -> Diagnoses:
    """Staged objects of no active batch: workers remove them, if one runs."""
    staged = staging.staged_batches()
    at_work = set(
        Batch.objects.filter(pk__in=staged).exclude(state__in=Batch.FINAL).values_list("pk", flat=True)
    )
    left = staged - at_work
    if left:
        left &= staging.staged_batches()  # missing ones belonged to batches that have just ended
    what = f"{len(left)} folders of ended or unknown batches remain; their keys are destroyed"
    todo = "start a worker, which removes those of ended batches; other installations may share the storage"
    yield warning_if(left, "storage_orphans", what, todo)
