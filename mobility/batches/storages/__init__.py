"""Storage of staged ciphertext: a folder of this host, or a bucket that several hosts share.

Both are storages of Django (STORAGES["staging"]). In addition, an object is complete or absent, durable
when `save` returns, and a part of it can be read. Nothing is spooled to a temporary file.
"""

from collections.abc import Iterator, Sequence
from typing import Final, Protocol, cast

import numpy as np
from django.core.files.base import File
from django.core.files.storage import storages

BLOCK_BYTES: Final = 4096  # in which a disk takes from memory and gives to it, without a copy by the system


class Pieces(File):  # type: ignore[type-arg]
    """Content of an object that lies in several parts, which are never joined where that is not needed.

    is_read_once : as a whole and much later; caching it is a waste
    """

    def __init__(self, pieces: Sequence[bytes | memoryview], *, is_read_once: bool = False) -> None:
        super().__init__(None)
        self._pieces = pieces
        self.is_read_once = is_read_once
        self.size = sum(len(piece) for piece in pieces)

    def chunks(self, chunk_size: int | None = None) -> Iterator[bytes | memoryview]:  # noqa: ARG002 - of the parent
        yield from self._pieces


class StagingStorage(Protocol):
    """Interface of a staging storage.

    Raises
    ------
    FileNotFoundError : there is no such object
    StagingUnavailableError : the storage does not answer now
    """

    def save(self, name: str, content: Pieces) -> str: ...
    def delete(self, name: str) -> None: ...
    def listdir(self, path: str) -> tuple[list[str], list[str]]: ...

    def size(self, name: str) -> int:
        """Bytes of an object; 0 when it is gone."""

    def read_range(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        """Bytes of an object, all of it by default."""

    def read_into(self, name: str, buffer: memoryview) -> int:
        """Read a whole object, once, into memory that is used again; returns its length, or the buffer's.

        Into what `whole_blocks` made it is fastest.
        """

    def delete_folder(self, name: str) -> None:
        """Delete every object whose name begins with `name` and a slash; there may be none."""

    def free_bytes(self) -> int | None:
        """Room that is left, if that is known."""


def staging_storage() -> StagingStorage:
    """The storage of this installation."""
    return cast(StagingStorage, storages["staging"])


def whole_blocks(size: int) -> memoryview:
    """Memory of at least `size` bytes that a disk can take from and give to as it is."""
    n = -(-size // BLOCK_BYTES) * BLOCK_BYTES
    room = np.empty(n + BLOCK_BYTES, np.uint8)
    start = -room.ctypes.data % BLOCK_BYTES
    return room[start : start + n].data
