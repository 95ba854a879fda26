"""Acceptance of files: one service for the browser's uploads, the API, the watched folder and the command.

A file is sealed frame by frame while it arrives. A frame is noted when it is durable, together with the state
of the content hash: d_0 = H(key, T("")), d_i = H(key, d_(i-1) || T(frame i)). H is keyed BLAKE3, and T the
AES-GMAC under another key, a universal hash: no one sees it. In studies of earlier releases T is nothing, and
in the oldest H is HMAC-SHA256. So an upload that broke off continues after its last whole frame, on any host.
"""

import hmac
import logging
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import cycle
from pathlib import PurePosixPath, PureWindowsPath
from typing import Protocol
from uuid import UUID, uuid4

from blake3 import blake3
from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext_noop as _

from mobility.base import errors
from mobility.base.runtime import step_back
from mobility.batches import requests, staging
from mobility.batches.finalisation import fail
from mobility.batches.states import has_ended
from mobility.extracts.profiles.definition import DEFAULT
from mobility.uploads import admission
from mobility.uploads.leases import Hold, free_until
from mobility.vault.models.batch import Batch
from mobility.vault.models.subscribers import VaultStudy
from mobility.vault.profiles import find_profile
from mobility.vault.sealing import tag
from mobility.vault.unlocking import UnlockedStudy, unlock
from reports.base.reasons import Reason
from reports.base.turns import after_pages

log = logging.getLogger(__name__)

READ_BYTES = 1 << 20
PROGRESS_S = 0.5
PAGES_FIRST_S = 0.1  # that a frame waits while the same process has pages to answer
WRITERS = 2  # threads that seal and store while the next frame arrives and is hashed
KINDS = {
    "events": Batch.Kind.EXTRACT,
    "subscribers": Batch.Kind.SUBSCRIBERS,
    "opt_out": Batch.Kind.OPT_OUT,
}


class Readable(Protocol):
    """Source of an upload's bytes."""

    def read(self, size: int, /) -> bytes: ...


def receive(
    stream: Readable,
    *,
    study: VaultStudy,
    filename: str,
    by: str,
    more_to_come: bool,
    bytes_total: int | None,
    profile: str = DEFAULT,
    validate_only: bool = False,
    batch_id: UUID | None = None,
) -> Batch:
    """Take a file in that comes in one stream, and queue it.

    Parameters
    ----------
    more_to_come : the days of this file stay open for further files
    bytes_total : announced length, if any; an upload that ends before it is refused
    profile : how the file is read
    validate_only : count everything, keep and publish nothing
    batch_id : of the batch; by default a new one

    Raises
    ------
    UploadBrokenError : the stream broke off, its cause says of what (UploadLapsedError: the sweep ended it,
        since its sender paused for too long); nothing of the batch is left
    MobilityError : as `begin`
    """
    rest_s = settings.MOBILITY_BATCH_LEASE_S
    batch = begin(
        study, filename=filename, by=by, profile=profile, more_to_come=more_to_come,
        validate_only=validate_only, bytes_total=bytes_total, rest_s=rest_s, batch_id=batch_id,
    )  # fmt: skip
    try:
        _append(batch, stream, Hold(batch, rest_s=rest_s))
        return complete(batch)
    except BaseException as error:  # no error may leave anything of an upload
        reason, has_lapsed = _why_broken(error, batch), _has_lapsed(error, batch)
        fail(batch, reason)
        if not isinstance(error, Exception):  # Ctrl-C
            raise
        cause = errors.UploadLapsedError(reason) if has_lapsed else error
        raise errors.UploadBrokenError(reason) from cause


def begin(
    study: VaultStudy,
    *,
    filename: str,
    by: str,
    profile: str = DEFAULT,
    more_to_come: bool = False,
    validate_only: bool = False,
    bytes_total: int | None = None,
    rest_s: float | None = None,
    batch_id: UUID | None = None,
) -> Batch:
    """Open an upload, of which nothing has arrived yet.

    Parameters
    ----------
    rest_s : seconds without a byte after which it ends; MOBILITY_UPLOAD_EXPIRES_S by default

    Raises
    ------
    StudyClosedError, KeyMissingError : the study takes nothing in
    ProfileMissingError : there is no profile of that name
    UploadTooLargeError, NoRoomError : it is too large, or would not fit
    QueueFullError : too much of the study waits already
    """
    opened = unlock(study)
    kind = KINDS[find_profile(study, profile, opened.definition).kind]
    admission.check_queue(study)
    admission.check_size(bytes_total, study=study, filename=filename)
    batch = Batch.objects.create(
        pk=batch_id or uuid4(),
        study=study,
        kind=kind,
        filename=file_name(filename),
        created_by=by,
        profile=profile,
        more_to_come=more_to_come and not opened.plan.events,  # each event counts at once
        validate_only=validate_only,
        bytes_total=bytes_total,
        content_hash=_chained(opened, b"", b"").hex(),
        alive_until=free_until(settings.MOBILITY_UPLOAD_EXPIRES_S if rest_s is None else rest_s),
        heard_at=timezone.now(),
    )
    try:
        staging.create_key(batch)
        study.refresh_from_db(fields=["closed_at"])
        unlock(study)  # anyone who has closed it in between has not seen this key
    except BaseException:
        fail(batch, _("the upload could not start: send the file again"))
        raise
    return batch


def file_name(given: str) -> str:
    """Name of the file alone, as it can be stored and shown: some browsers and scripts send a path.

    Names in a folder need not be text at all; what is no printable character is left out.
    """
    name = PurePosixPath(PureWindowsPath(given).name).name
    shown = "".join(char for char in name if char.isprintable())[:255]
    return "upload" if shown in ("", ".", "..") else shown


def append(batch: Batch, stream: Readable, *, offset: int, length: int | None = None) -> int:
    """Add what a connection brings to an upload; returns the byte at which the next one continues.

    An incomplete frame, when the stream ends before the file does, must be sent again. Complete frames
    stay, however the stream breaks.

    Parameters
    ----------
    length : announced bytes of the stream, if any

    Raises
    ------
    OffsetError : the upload continues elsewhere
    UploadTooLargeError : the stream has more bytes than the file was announced with; none is taken
    UploadBusyError : another connection is at it
    SupersededError, KeyMissingError : the upload is complete, or has ended
    NoRoomError : staging is full; whole frames stay
    """
    admission.check_room()
    hold = Hold(batch, rest_s=settings.MOBILITY_UPLOAD_EXPIRES_S)
    batch.refresh_from_db()
    end = offset + (length or 0)
    if offset != batch.bytes_received:
        hold.release()
        raise errors.OffsetError(batch.bytes_received)
    if batch.bytes_total is not None and end > batch.bytes_total:
        hold.release()
        raise errors.UploadTooLargeError(
            f"the file was announced with {batch.bytes_total:,} bytes, but this part would end at "
            f"byte {end:,}, so none of it was kept. If the file has grown, upload it again"
        )
    _append(batch, stream, hold)
    return batch.bytes_received


def complete(batch: Batch) -> Batch:
    """Queue an upload whose bytes have all arrived.

    Raises
    ------
    UploadBrokenError : some are missing
    StagingUnavailableError : they are not where they were stored
    """
    if batch.bytes_total is None:
        batch.bytes_total = batch.bytes_received
        batch.save(update_fields=["bytes_total"])
    if batch.bytes_received != batch.bytes_total:
        raise errors.UploadBrokenError(f"expected {batch.bytes_total} bytes, got {batch.bytes_received}")
    staging.check_whole(batch)
    requests.queue(batch)
    return batch


def _append(batch: Batch, stream: Readable, hold: Hold) -> None:
    """Seal and note frames until the stream ends; after any error, complete frames are noted."""
    try:
        with ThreadPoolExecutor(WRITERS, thread_name_prefix="seal", initializer=step_back) as pool:
            frames = _Frames(batch, hold, pool)
            try:
                for frame in _read_frames(stream, batch, frames.show_life):
                    frames.add(frame)
            finally:
                frames.finish()
    except (errors.KeyMissingError, errors.SupersededError) as error:
        if has_ended(batch):
            staging.discard(batch.pk)  # objects stored since it was cancelled
        elif isinstance(error, errors.KeyMissingError):
            raise errors.KeyAwayError(error) from None
        raise


def _read_frames(stream: Readable, batch: Batch, show_life: Callable[[], None]) -> Iterator[memoryview]:
    """Whole frames of a stream, each valid until WRITERS + 1 more have been asked for.

    Where no length was announced, the end of the stream is the end of the file, and of its last frame.
    """
    at, total = batch.bytes_received, batch.bytes_total
    longest = staging.FRAME_BYTES if total is None else min(staging.FRAME_BYTES, total - at)
    buffers = cycle([memoryview(bytearray(longest)) for _ in range(WRITERS + 2)])
    while total is None or at < total:
        after_pages(at_most_s=PAGES_FIRST_S)
        frame = next(buffers)[: None if total is None else total - at]
        count = _fill(frame, stream, show_life)
        if count == 0 or (count < len(frame) and total is not None):
            return
        at += count
        if total is None:
            admission.check_size(at, study=batch.study, filename=batch.filename, stored=at - count)
        yield frame[:count]


def _fill(frame: memoryview, stream: Readable, show_life: Callable[[], None]) -> int:
    """Read until the frame is full or the stream ends; returns how much was read."""
    readinto = getattr(stream, "readinto", None)  # files have it, bodies of requests do not
    count = 0
    while count < len(frame):
        part = frame[count : count + READ_BYTES]
        if readinto is not None:
            more = readinto(part) or 0
        else:
            data = stream.read(len(part))
            more = len(data)
            part[:more] = data
        if not more:
            break
        count += more
        show_life()
    return count


class _Frames:
    """Frames on their way: hashed in this thread, sealed and stored in others, noted in their order."""

    def __init__(self, batch: Batch, hold: Hold, pool: ThreadPoolExecutor) -> None:
        self._batch = batch
        self._hold = hold
        self._pool = pool
        self._study = unlock(batch.study)
        self._hash = bytes.fromhex(batch.content_hash)
        self._index = batch.bytes_received // staging.FRAME_BYTES
        self._on_their_way: deque[tuple[Future[None], int, bytes]] = deque()
        self._noted = time.monotonic()

    def add(self, frame: memoryview) -> None:
        self._hash = _chained(self._study, self._hash, frame)
        stored = self._pool.submit(staging.write_frame, self._batch, self._index, frame)
        self._on_their_way.append((stored, len(frame), self._hash))
        self._index += 1
        while len(self._on_their_way) > WRITERS:
            self._take_first()

    def show_life(self) -> None:
        """Note progress, not more often than needed."""
        if time.monotonic() - self._noted > PROGRESS_S:
            self._noted = time.monotonic()
            while self._on_their_way and self._on_their_way[0][0].done():
                self._take_first()
            self._hold.renew(**self._progress())

    def finish(self) -> None:
        """Wait for the rest, and note it."""
        try:
            while self._on_their_way:
                self._take_first()
        finally:
            self._hold.release(**self._progress())

    def _take_first(self) -> None:
        stored, size, digest = self._on_their_way.popleft()
        try:
            stored.result()
        except BaseException:
            self._on_their_way.clear()  # frames after a missing one do not count
            raise
        self._batch.bytes_received += size
        self._batch.content_hash = digest.hex()

    def _progress(self) -> dict[str, object]:
        return {"bytes_received": self._batch.bytes_received, "content_hash": self._batch.content_hash}


def _chained(study: UnlockedStudy, before: bytes, frame: bytes | memoryview) -> bytes:
    """State of the content hash after one more frame."""
    kinds = VaultStudy.ContentDigest
    if study.row.content_digest == kinds.HMAC_SHA256:
        state = hmac.new(study.content_key, before, "sha256")
        state.update(frame)
        return state.digest()
    if study.row.content_digest == kinds.GMAC:
        frame = tag(frame, key=study.frame_key)
    return blake3(before, key=study.content_key).update(frame).digest()


def _has_lapsed(error: BaseException, batch: Batch) -> bool:
    """Return whether the sweep ended the upload before its sender continued."""
    its_end = (errors.SupersededError, errors.KeyMissingError, errors.StagingUnavailableError)
    failed = Batch.objects.filter(pk=batch.pk, state=Batch.State.FAILED)
    return isinstance(error, its_end) and failed.exists()


def _why_broken(error: BaseException, batch: Batch) -> Reason:
    log.warning("upload_broken batch=%s error=%s", batch.pk, type(error).__name__)
    ended = Batch.objects.filter(pk=batch.pk, state__in=Batch.FINAL).first()
    if ended is not None:  # cancelled meanwhile
        return Reason(ended.failure)
    passed_on = (errors.UploadBrokenError, errors.SupersededError, errors.KeyMissingError)
    if isinstance(error, errors.MobilityError) and not isinstance(error, passed_on):
        return Reason(_("%(problem)s. Nothing was kept"), problem=error.reason)
    errno = error.errno if isinstance(error, OSError) else None
    text = _(
        "the upload was interrupted after %(received)s bytes (%(problem)s), and nothing was kept: send the "
        "file again"
    )
    if batch.bytes_total:
        text = _(
            "the upload was interrupted after %(received)s of %(total)s bytes (%(problem)s), and nothing "
            "was kept: send the file again"
        )
    return Reason(
        text,
        received=str(batch.bytes_received),
        total=str(batch.bytes_total),
        problem=os.strerror(errno) if errno else Reason(_("the upload ended early")),
    )
