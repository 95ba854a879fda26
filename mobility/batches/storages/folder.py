"""Staging in a folder: what one host needs, or several that mount the same one."""

import errno
import fcntl
import os
import secrets
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final

from django.conf import settings
from django.core.files.storage import FileSystemStorage

from mobility.base.runtime import private_folder, sync
from mobility.batches.storages import BLOCK_BYTES, Pieces

DELETERS: Final = 8


class StagingFolder(FileSystemStorage):
    """Files of mode 0600 in folders of mode 0700, below MOBILITY_STAGING_DIR."""

    @property
    def base_location(self) -> str:
        return str(settings.MOBILITY_STAGING_DIR)

    @property
    def location(self) -> str:
        return str(Path(self.base_location).absolute())

    def get_available_name(self, name: str, max_length: int | None = None) -> str:  # noqa: ARG002
        """A name is taken as it is: what is written again replaces what was there."""
        return name

    def _save(self, name: str, content: Pieces) -> str:
        path = Path(self.path(name))
        private_folder(Path(self.location))
        private_folder(path.parent)
        # Two workers may write the same object: readers see the one or the other, never a mixture.
        fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "wb", buffering=0) as file:
                for piece in content.chunks():
                    rest = _write_blocks(file.fileno(), piece) if content.is_read_once else piece
                    _write_all(file.fileno(), rest)
                os.fsync(file.fileno())
                if content.is_read_once:
                    _drop_cached(file.fileno())
            fresh.replace(path)
        except BaseException:
            fresh.unlink(missing_ok=True)
            raise
        sync(path.parent)
        return name

    def read_range(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        with Path(self.path(name)).open("rb", buffering=0) as file:
            file.seek(offset)
            return file.read(-1 if length is None else length)

    def read_into(self, name: str, buffer: memoryview) -> int:
        with Path(self.path(name)).open("rb", buffering=0) as file:
            count = _read_blocks(file.fileno(), buffer)
            if count is None:
                count = file.readinto(buffer)
                _drop_cached(file.fileno())
        return count

    def listdir(self, path: str) -> tuple[list[str], list[str]]:
        try:
            return super().listdir(path)
        except FileNotFoundError:  # nothing was ever staged
            return [], []

    def size(self, name: str) -> int:
        try:
            return super().size(name)
        except FileNotFoundError:  # deleted since it was listed
            return 0

    def delete_folder(self, name: str) -> None:
        folder = self.path(name)
        _, files = self.listdir(name)
        # A disk that forgets each file at once makes its deleter wait: several wait at a time.
        with ThreadPoolExecutor(DELETERS) as pool:
            list(pool.map(_try_unlink, (Path(folder, file) for file in files)))
        shutil.rmtree(folder, ignore_errors=True)

    def free_bytes(self) -> int | None:
        return shutil.disk_usage(private_folder(Path(self.location))).free


def _try_unlink(path: Path) -> None:
    with suppress(OSError):
        path.unlink()


def _drop_cached(descriptor: int) -> None:
    """Give the system's copy of a file back: of a large upload it would push out what databases need."""
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def _write_blocks(descriptor: int, data: bytes | memoryview) -> memoryview:
    """Write whole blocks at the beginning of a file from memory to disk; returns what is left to write.

    That may be all: not every disk can, and none from memory that is not laid out for it.
    """
    rest = memoryview(data)
    try:
        _go_past_cache(descriptor, is_past=True)
        while whole := len(rest) // BLOCK_BYTES * BLOCK_BYTES:
            rest = rest[os.write(descriptor, rest[:whole]) :]
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    _go_past_cache(descriptor, is_past=False)
    return rest


def _read_blocks(descriptor: int, buffer: memoryview) -> int | None:
    """Read a file from disk to memory, as `_write_blocks`; returns how much, or None where that cannot be."""
    count = 0
    try:
        _go_past_cache(descriptor, is_past=True)
        while count % BLOCK_BYTES == 0 and (more := os.readv(descriptor, [buffer[count:]])):
            count += more
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        _go_past_cache(descriptor, is_past=False)
        os.lseek(descriptor, 0, os.SEEK_SET)
        return None
    return count


def _go_past_cache(descriptor: int, *, is_past: bool) -> None:
    flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    fcntl.fcntl(descriptor, fcntl.F_SETFL, flags | os.O_DIRECT if is_past else flags & ~os.O_DIRECT)


def _write_all(descriptor: int, data: bytes | memoryview) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
