"""Encryption at rest: whole blobs of the vault, and streams that are ciphertext from their first byte.

AES-256-GCM throughout. A stream is cut into frames of 1 MiB; the nonce of a frame is its number and whether
it is the last, so that frames cannot be dropped, swapped or cut off unnoticed (the STREAM construction of
Hoang, Reyhanitabar, Rogaway and Vizár, CRYPTO 2015). Each stream has a key of its own, derived from the batch
key and the stream's name.
"""

import io
import os
from typing import BinaryIO, Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from ldp.entropy import derive_subkey
from mobility.errors import SealBrokenError

FRAME_BYTES = 1 << 20
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
    """Read the plaintext of a sealed stream, one frame in memory at a time.

    Raises
    ------
    SealBrokenError : on read, if a frame was altered, or the stream ends before its last frame; then on every
        read that follows
    """

    def __init__(self, source: BinaryIO, *, key: bytes) -> None:
        super().__init__()
        self._source = source
        self._cipher = AESGCM(key)
        self._index = 0
        self._is_broken = False
        self._frame = memoryview(b"")
        self._next = source.read(FRAME_BYTES + TAG_BYTES)
        self.bytes_read = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        if not self._frame and not self._open_frame():
            return 0
        count = min(len(buffer), len(self._frame))
        buffer[:count] = self._frame[:count]
        self._frame = self._frame[count:]
        self.bytes_read += count
        return count

    def _open_frame(self) -> bool:
        if self._is_broken:  # whatever follows must not look like the rest, or the end, of the plaintext
            raise self._broken()
        if self._index and not self._next:
            return False
        sealed, self._next = self._next, self._source.read(FRAME_BYTES + TAG_BYTES)
        try:
            plain = self._cipher.decrypt(_frame_nonce(self._index, last=not self._next), sealed, None)
        except (InvalidTag, ValueError):
            self._is_broken = True
            raise self._broken() from None
        self._index += 1
        self._frame = memoryview(plain)
        return bool(plain)

    def _broken(self) -> SealBrokenError:
        return SealBrokenError(f"staged data is damaged at frame {self._index}: send the file again")


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
