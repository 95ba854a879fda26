"""Keys of studies and batches: one file each, in neither database and in no backup.

Destroying a key is how data is forgotten: what it sealed can never be read again.
"""

import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from mobility.errors import KeyMissingError
from mobility.runtime import private_folder

KEY_BYTES = 32
KEY_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,79}")


@dataclass(frozen=True, slots=True)
class Keystore:
    """A folder of mode 0700 with one file of mode 0600 per key."""

    folder: Path

    def create(self, key_id: str) -> bytes:
        """Make and keep a new key.

        Raises
        ------
        FileExistsError : there is one of that name; a key is never replaced
        """
        private_folder(self.folder).chmod(0o700)  # a folder of keys alone, so it may be narrowed
        key = secrets.token_bytes(KEY_BYTES)
        descriptor = os.open(self._path(key_id), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(key)
            file.flush()
            os.fsync(file.fileno())
        self._sync_folder()
        return key

    def read(self, key_id: str) -> bytes:
        """The key.

        Raises
        ------
        KeyMissingError : it was destroyed or never made here
        """
        try:
            key = self._path(key_id).read_bytes()
        except FileNotFoundError:
            raise KeyMissingError(
                f"key {key_id} is not in the keystore: it was destroyed or never made here"
            ) from None
        if len(key) != KEY_BYTES:
            raise KeyMissingError(f"key {key_id} is damaged: {len(key)} bytes instead of {KEY_BYTES}")
        return key

    def exists(self, key_id: str) -> bool:
        return self._path(key_id).exists()

    def names(self, *, prefix: str) -> list[str]:
        """What follows `prefix` in the ids of the keys that begin with it."""
        return [path.stem.removeprefix(prefix) for path in self.folder.glob(f"{prefix}*.key")]

    def destroy(self, key_id: str) -> None:
        """Overwrite and remove the key; nothing happens when it is gone already."""
        path = self._path(key_id)
        try:
            with path.open("r+b") as file:
                file.write(secrets.token_bytes(KEY_BYTES))
                file.flush()
                os.fsync(file.fileno())
                file.truncate(0)  # what is left if this is interrupted must not pass for a key
        except FileNotFoundError:
            return
        path.unlink(missing_ok=True)
        self._sync_folder()

    def _path(self, key_id: str) -> Path:
        if not KEY_ID.fullmatch(key_id):
            raise ValueError(f"key_id must match {KEY_ID.pattern}, got {key_id!r}")
        return self.folder / f"{key_id}.key"

    def _sync_folder(self) -> None:
        descriptor = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def keystore() -> Keystore:
    """The keystore of this installation."""
    return Keystore(settings.MOBILITY_KEYSTORE_DIR)
