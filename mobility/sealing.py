"""Encryption at rest: whole blobs of the vault, and streams that are ciphertext from their first byte.

AES-256-GCM throughout. A stream is cut into frames of 1 MiB; the nonce of a frame is its number and whether
it is the last, so that frames cannot be dropped, swapped or cut off unnoticed (the STREAM construction of
Hoang, Reyhanitabar, Rogaway and Vizár, CRYPTO 2015). Each stream has a key of its own, derived from the batch
key and the stream's name.
"""

import io
import os
from collections import OrderedDict
from typing import BinaryIO, Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from ldp.entropy import derive_subkey
from mobility.errors import SealBrokenError

FRAME_BYTES = 1 << 20
FRAMES_KEPT = 12
TAG_BYTES = 16
NONCE_BYTES = 12


class Sink(Protocol):
    """Where ciphertext goes."""

    def write(self, data: bytes, /) -> object: ...


def stream_key(batch_key: bytes, name: str) -> bytes:
    """Key of one stream of a batch."""
    return derive_subkey(batch_key, purpose=f"stream/{name}", length=32)


def _frame_nonce(index: int, *, last: bool) -> bytes:
    return index.to_bytes(NONCE_BYTES - 1, "big") + bytes([last])


class SealingWriter:
    """Write plaintext in, ciphertext frames come out; `close` writes the last frame."""

    def __init__(self, sink: Sink, *, key: bytes) -> None:
        self._sink = sink
        self._cipher = AESGCM(key)
        self._pending = bytearray()
        self._index = 0

    def write(self, data: bytes) -> None:
        self._pending += data
        # The last frame may be full, so a full frame leaves only when more has come.
        while len(self._pending) > FRAME_BYTES:
            self._put(bytes(self._pending[:FRAME_BYTES]), last=False)
            del self._pending[:FRAME_BYTES]

    def close(self) -> None:
        self._put(bytes(self._pending), last=True)
        self._pending.clear()

    def _put(self, frame: bytes, *, last: bool) -> None:
        self._sink.write(self._cipher.encrypt(_frame_nonce(self._index, last=last), frame, None))
        self._index += 1


class SealedReader(io.RawIOBase):
    """Read the plaintext of a sealed stream at any place, a few frames in memory at a time.

    Raises
    ------
    SealBrokenError : on read, if a frame was altered, or the stream ends before its last frame; then on every
        read that follows
    """

    def __init__(self, source: BinaryIO, *, key: bytes) -> None:
        super().__init__()
        self._source = source
        self._cipher = AESGCM(key)
        sealed = source.seek(0, io.SEEK_END)
        # An empty file is no empty stream: that has a frame too.
        self._frames = max(-(-sealed // (FRAME_BYTES + TAG_BYTES)), 1)
        self._length = max(sealed - self._frames * TAG_BYTES, 0)
        self._at = 0
        self._is_broken = False
        self._kept: OrderedDict[int, memoryview] = OrderedDict()
        self._n_kept = 1
        self._came_out = [0] * self._frames  # how far into each frame
        self.bytes_read = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._length}[whence]
        self._at = max(base + offset, 0)
        # Whoever jumps comes back: several columns are read side by side.
        self._n_kept = FRAMES_KEPT
        return self._at

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        index, start = divmod(self._at, FRAME_BYTES)
        if index >= self._frames:
            if self._is_broken:
                raise self._broken(self._frames - 1)
            return 0
        rest = self._frame(index)[start:]
        count = min(len(buffer), len(rest))
        buffer[:count] = rest[:count]
        self._at += count
        more = start + count - self._came_out[index]
        if count and more > 0:
            self._came_out[index] += more
            self.bytes_read += more
        return count

    def _frame(self, index: int) -> memoryview:
        if self._is_broken:  # whatever follows must not look like the rest, or the end, of the plaintext
            raise self._broken(index)
        if index in self._kept:
            self._kept.move_to_end(index)
            return self._kept[index]
        self._source.seek(index * (FRAME_BYTES + TAG_BYTES))
        sealed = self._source.read(FRAME_BYTES + TAG_BYTES)
        nonce = _frame_nonce(index, last=index == self._frames - 1)
        try:
            plain = memoryview(self._cipher.decrypt(nonce, sealed, None))
        except (InvalidTag, ValueError):
            self._is_broken = True
            raise self._broken(index) from None
        while len(self._kept) >= self._n_kept:
            self._kept.popitem(last=False)
        self._kept[index] = plain
        return plain

    @staticmethod
    def _broken(index: int) -> SealBrokenError:
        return SealBrokenError(f"staged data is damaged at frame {index}: send the file again")


def seal(plain: bytes, *, key: bytes, context: str) -> bytes:
    """Encrypt one blob; `context` names the place it belongs to and is authenticated with it."""
    nonce = os.urandom(NONCE_BYTES)
    return nonce + AESGCM(key).encrypt(nonce, plain, context.encode())


def unseal(sealed: bytes, *, key: bytes, context: str) -> bytes:
    """Decrypt what `seal` made for the same place.

    Raises
    ------
    SealBrokenError : altered, of another key, or moved from another place
    """
    try:
        return AESGCM(key).decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], context.encode())
    except (InvalidTag, ValueError):
        raise SealBrokenError(f"sealed data of {context} is damaged or belongs elsewhere") from None
