"""Staged bytes of a batch: an upload and the chunks read from it. Ciphertext from first byte to last.

An upload is a row of frames of FRAME_BYTES, the last one shorter. Each is sealed and stored on its own, so
that an upload that broke off continues after its last whole frame. How many there are follows from
`Batch.bytes_total`; the context of a frame says which one it is. A frame that is sent again gets a new nonce.
"""

import io
import logging
import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import pairwise
from uuid import UUID

from django.utils.translation import gettext_noop as _

from mobility.base.errors import KeyAwayError, KeyMissingError, SealBrokenError, StagingUnavailableError
from mobility.batches.states import has_ended
from mobility.batches.storages import Pieces, staging_storage, whole_blocks
from mobility.vault.keystore import keystore
from mobility.vault.models.batch import Batch
from mobility.vault.sealing import SEAL_BYTES, seal, seal_into, stream_key, unseal, unseal_into
from reports.base.reasons import Reason

log = logging.getLogger(__name__)

FRAME_BYTES = 4 << 20
FRAMES_KEPT = 8  # of a file in which several places are read side by side: Parquet has a place per column
UPLOAD = "upload"
CHUNKS = "chunks"
_scratch = threading.local()  # a thread's buffer for sealed frames


def create_key(batch: Batch) -> None:
    """Make the one-time key under which everything staged for the batch is sealed."""
    keystore().create(batch.key_id)


def destroy(batch: Batch) -> None:
    """Destroy key and bytes; the key first, so that nothing readable is left whenever this is interrupted."""
    keystore().destroy(batch.key_id)
    discard(batch.pk)


def discard(batch_id: UUID) -> None:
    """Delete what is staged under the id of a batch whose key is gone; the sweep comes back for the rest."""
    try:
        staging_storage().delete_folder(str(batch_id))
    except StagingUnavailableError as error:
        log.warning("staging_left_behind batch=%s reason=%s", batch_id, error)


def discard_frames(batch: Batch) -> None:
    """Begin to delete an upload that has been read; what is left goes with the rest of the batch.

    Its first and last frame stay: `_check_mounted` looks for them. A disk may take milliseconds for each
    frame, so a thread deletes them while shards take the batch.
    """
    names = [_frame_name(batch, index) for index in range(1, _frame_count(batch.bytes_total) - 1)]
    if names:
        threading.Thread(target=_delete, args=(names,), name="discard").start()


def _delete(names: Sequence[str]) -> None:
    storage = staging_storage()
    try:
        for name in names:
            storage.delete(name)
    except (OSError, StagingUnavailableError) as error:
        log.warning("frames_left_behind error=%s", type(error).__name__)


def staged_batches() -> set[UUID]:
    """Ids of batches of which anything is staged, whether or not they still exist."""
    folders, _ = staging_storage().listdir("")
    found = set()
    for name in folders:
        try:
            found.add(UUID(name))
        except ValueError:  # not ours
            log.warning("staging_holds_a_stranger")
    return found


def bytes_left(batch_id: UUID) -> int:
    """Return the bytes now staged under the id of a batch.

    Raises
    ------
    StagingUnavailableError
    """
    storage = staging_storage()
    _, names = storage.listdir(str(batch_id))
    return sum(storage.size(f"{batch_id}/{name}") for name in names)


def free_bytes() -> int | None:
    """Room that is left for uploads, if that is known."""
    return staging_storage().free_bytes()


def write_frame(batch: Batch, index: int, plain: bytes | memoryview) -> None:
    """Seal one frame of the upload; it is durable on return. Writing it again replaces it.

    Raises
    ------
    KeyMissingError : the batch has ended, or another keystore is mounted; what is stored by then stays
    """
    # The key is read for each frame: an upload whose batch was cancelled stops here.
    key = stream_key(keystore().read(batch.key_id), UPLOAD)
    if len(getattr(_scratch, "buffer", b"")) < sealed_bytes(len(plain)):
        _scratch.buffer = whole_blocks(sealed_bytes(len(plain)))
    sealed = seal_into(plain, _scratch.buffer, key=key, context=_frame_context(batch, index))
    staging_storage().save(_frame_name(batch, index), Pieces([sealed], is_read_once=True))
    if not keystore().exists(batch.key_id):  # cancelled meanwhile: its folder was deleted before
        raise KeyMissingError(
            _("key %(key)s was destroyed while part of the file was being stored"), key=batch.key_id
        )


class UploadReader(io.RawIOBase):
    """Read the plaintext of an upload at any place, a few frames in memory at a time.

    Where frames are read in order, the next one is fetched while the last one is worked on.

    Attributes
    ----------
    bytes_read : how much of the upload has come out; what is read twice counts once

    Raises
    ------
    KeyMissingError : at construction; the batch has ended
    KeyAwayError : at construction; another keystore is mounted, or none
    SealBrokenError : on read, if a frame was altered or is gone; then on every read that follows
    StagingUnavailableError : on read, if nothing of the batch is there
    """

    def __init__(self, batch: Batch) -> None:
        super().__init__()
        self._batch = batch
        self._key = stream_key(_one_time_key(batch), UPLOAD)
        self._storage = staging_storage()
        self._length = batch.bytes_total or 0
        self._at = 0
        self._broken = Reason()
        self._kept: OrderedDict[int, bytearray] = OrderedDict()
        self._n_kept, self._n_kept_after_jump = 1, FRAMES_KEPT
        longest = sealed_bytes(min(FRAME_BYTES, self._length)) + 1
        self._sealed, self._fetched = (whole_blocks(longest) for _ in range(2))
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="fetch")
        self._ahead: tuple[int, Future[int]] | None = None  # frame that is being fetched
        self._last = -1  # frame that was opened last
        self._following: dict[int, int] = {}  # frames that are read after others than the one before them
        self._came_out = [0] * _frame_count(self._length)  # how far into each frame
        self.bytes_read = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def expect(self, *places: int) -> None:
        """Say that these places will be read, one after the other, and in order from the last one on.

        Then each is fetched ahead, and none is kept for anyone who comes back.
        """
        self._n_kept_after_jump = 1
        frames = [place // FRAME_BYTES for place in places if place < self._length]
        self._following = {one: other for one, other in pairwise(frames) if one != other}

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        super().close()

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._length}[whence]
        target = max(base + offset, 0)
        if target != self._at:  # anyone who jumps comes back
            self._n_kept = self._n_kept_after_jump
        self._at = target
        return self._at

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        if self._broken:  # later bytes must not look like the plaintext
            raise SealBrokenError(self._broken)
        if self._at >= self._length:
            return 0
        index, start = divmod(self._at, FRAME_BYTES)
        size = self._size(index)
        target = memoryview(buffer).cast("B")
        if start == 0 and len(target) >= size and index not in self._kept:
            self._unseal(index, target[:size])
            count = size
        else:
            rest = memoryview(self._frame(index, size))[start:]
            count = min(len(target), len(rest))
            target[:count] = rest[:count]
        self._note(index, start + count)
        self._at += count
        return count

    def _size(self, index: int) -> int:
        return min(FRAME_BYTES, self._length - index * FRAME_BYTES)

    def _note(self, index: int, end: int) -> None:
        more = end - self._came_out[index]
        if more > 0:
            self._came_out[index] = end
            self.bytes_read += more

    def _frame(self, index: int, size: int) -> bytearray:
        if index in self._kept:
            self._kept.move_to_end(index)
            return self._kept[index]
        plain = bytearray()
        while len(self._kept) >= self._n_kept:
            _, plain = self._kept.popitem(last=False)
        if len(plain) != size:
            plain = bytearray(size)
        self._unseal(index, memoryview(plain))
        self._kept[index] = plain
        return plain

    def _unseal(self, index: int, target: memoryview) -> None:
        context = _frame_context(self._batch, index)
        try:
            unseal_into(self._sealed_frame(index), target, key=self._key, context=context)
        except (SealBrokenError, FileNotFoundError) as error:
            text = _("frame %(index)s of the staged upload is damaged: send the file again")
            if isinstance(error, FileNotFoundError):
                _check_mounted(self._batch)
                text = _("frame %(index)s of the staged upload is missing: send the file again")
            self._broken = Reason(text, index=str(index))
            raise SealBrokenError(self._broken) from None

    def _sealed_frame(self, index: int) -> memoryview:
        """A frame as it is stored; valid until the next one is asked for."""
        number, ahead = self._ahead or (-1, None)
        self._ahead = None
        if ahead is not None and number == index:
            count = ahead.result()
            self._sealed, self._fetched = self._fetched, self._sealed
        else:
            if ahead is not None:
                wait([ahead])  # its buffer is needed; what became of it is not
            count = self._fetch(index, self._sealed)
        following = self._following.pop(index, index + 1 if index == self._last + 1 else len(self._came_out))
        if following < len(self._came_out):
            self._ahead = following, self._pool.submit(self._fetch, following, self._fetched)
        self._last = index
        return self._sealed[:count]

    def _fetch(self, index: int, into: memoryview) -> int:
        return self._storage.read_into(_frame_name(self._batch, index), into)


def chunk_key(batch: Batch) -> bytes:
    """Key of the batch's chunks: read once, used for every segment.

    Raises
    ------
    KeyMissingError : the batch has ended
    KeyAwayError : another keystore is mounted, or none
    """
    return stream_key(_one_time_key(batch), CHUNKS)


def write_chunk(batch: Batch, name: str, segments: Iterable[tuple[int, bytes]]) -> dict[str, list[list[int]]]:
    """Seal segments into one object; durable on return. Writing it again replaces it.

    Parameters
    ----------
    name : of the object, among those of the batch
    segments : (shard, bytes); a shard may have several, whose order is kept

    Raises
    ------
    StagingUnavailableError : the upload of the batch is not there

    Returns
    -------
    {shard: [[offset, length], ...]} for `read_segments`
    """
    key = chunk_key(batch)
    _check_mounted(batch)  # bytes under the mount point are lost when it is mounted
    places: dict[str, list[list[int]]] = {}
    sealed: list[bytes] = []
    offset = 0
    for shard, plain in segments:
        sealed.append(seal(plain, key=key, context=_segment_context(batch, name, offset)))
        places.setdefault(str(shard), []).append([offset, len(sealed[-1])])
        offset += len(sealed[-1])
    staging_storage().save(f"{batch.pk}/{name}", Pieces(sealed))
    return places


def read_segments(batch: Batch, name: str, places: Sequence[Sequence[int]], *, key: bytes) -> list[bytes]:
    """Plain bytes of the segments at these places of a chunk's object; `key` is `chunk_key`.

    Raises
    ------
    SealBrokenError : the object was altered or is gone
    StagingUnavailableError : nothing of the batch is there
    """
    found = []
    for offset, length in places:
        try:
            sealed = staging_storage().read_range(f"{batch.pk}/{name}", offset, length)
        except FileNotFoundError:
            _check_mounted(batch)
            text = _("the staged object %(name)s is missing: send the file again")
            raise SealBrokenError(text, name=name) from None
        found.append(unseal(sealed, key=key, context=_segment_context(batch, name, offset)))
    return found


def delete_chunk(batch: Batch, name: str) -> None:
    """Delete one object of the batch; it may be gone."""
    staging_storage().delete(f"{batch.pk}/{name}")


def sealed_bytes(size: int) -> int:
    """Room that an upload of `size` bytes takes."""
    return size + SEAL_BYTES * _frame_count(size)


def check_whole(batch: Batch) -> None:
    """Raise StagingUnavailableError unless all frames of an upload are there: its sender must keep it."""
    names = staging_storage().listdir(str(batch.pk))[1]
    found, wanted = sum(name.startswith(f"{UPLOAD}-") for name in names), _frame_count(batch.bytes_total)
    if found < wanted:
        raise StagingUnavailableError(
            _(
                "this host finds %(found)s of %(wanted)s frames of the upload in staging: check that "
                "MOBILITY_STAGING_DIR is mounted"
            ),
            found=found,
            wanted=wanted,
        )


def _check_mounted(batch: Batch) -> None:
    """Raise StagingUnavailableError where the upload of a batch is not there, which stays until it ends.

    One object may be lost. If the first and the last frame are, it is more likely that this host has not
    mounted what the others have: then the batch must not fail, which would destroy what they see.
    """
    n_frames = _frame_count(batch.bytes_total)
    is_there = any(staging_storage().size(_frame_name(batch, index)) for index in {0, n_frames - 1})
    if n_frames and not is_there and keystore().exists(batch.key_id):
        raise StagingUnavailableError(
            _("this host does not find the file in staging: check that MOBILITY_STAGING_DIR is mounted")
        )


def _frame_count(size: int | None) -> int:
    return -(-(size or 0) // FRAME_BYTES)


def _one_time_key(batch: Batch) -> bytes:
    """Key of a batch; only of one that has ended it may be gone."""
    try:
        return keystore().read(batch.key_id)
    except KeyMissingError as error:
        if not has_ended(batch):
            raise KeyAwayError(error) from None
        raise


def _frame_name(batch: Batch, index: int) -> str:
    return f"{batch.pk}/{UPLOAD}-{index:06d}"


def _frame_context(batch: Batch, index: int) -> str:
    return f"{batch.pk}/{UPLOAD}/{index}"


def _segment_context(batch: Batch, name: str, offset: int) -> str:
    return f"{batch.pk}/{CHUNKS}/{name}/{offset}"
