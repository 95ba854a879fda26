"""Keys of studies and batches: one file each, in neither database and in no backup.

Destroying a key is how data is forgotten: what it sealed can never be read again. A destroyed key leaves a
tombstone of its name, so that it stays destroyed when a copy of it turns up. One-time keys leave none: they
come by the thousand, and no one copies them.
"""

import json
import os
import re
import secrets
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

from django.conf import settings
from django.utils.translation import gettext_noop as _

from mobility.base.errors import KeyDestroyedError, KeyMissingError
from mobility.base.runtime import private_folder, sync, write_private

KEY_BYTES = 32
ESCROWS = "escrows.jsonl"  # ids and days, no secret
ONE_TIME_PREFIX = "batch-"
KEY_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,79}")


@dataclass(frozen=True, slots=True)
class Keystore:
    """A folder of mode 0700 with one file of mode 0600 per key, ID.key, and per tombstone, ID.destroyed."""

    folder: Path

    def create(self, key_id: str) -> bytes:
        """Make and keep a new key.

        Raises
        ------
        FileExistsError : there is one of that name; a key is never replaced
        KeyDestroyedError : one of that name was destroyed
        """
        key = secrets.token_bytes(KEY_BYTES)
        self.put_back(key_id, key)
        return key

    def put_back(self, key_id: str, key: bytes, *, over_damaged: bool = False) -> None:
        """Keep a key that was kept elsewhere, whole or not at all.

        Parameters
        ----------
        over_damaged : in place of one that has another length than a key

        Raises
        ------
        FileExistsError : there is one of that name; a whole key is never replaced
        KeyDestroyedError : it was destroyed here, and stays so permanently
        """
        if len(key) != KEY_BYTES:
            raise ValueError(f"key must have {KEY_BYTES} bytes, got {len(key)}")
        self._refuse_destroyed(key_id)
        private_folder(self.folder).chmod(0o700)  # a folder of keys alone, so it may be narrowed
        path = self._path(key_id)
        fresh = self.folder / f".{path.name}.{secrets.token_hex(4)}"
        try:
            descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(key)
                file.flush()
                os.fsync(file.fileno())
            if over_damaged and self.is_damaged(key_id):
                path.unlink()
            path.hardlink_to(fresh)  # unlike renaming, it replaces nothing
        finally:
            fresh.unlink(missing_ok=True)
        sync(self.folder)

    def read(self, key_id: str) -> bytes:
        """The key.

        Raises
        ------
        KeyMissingError : it was destroyed or never made here
        """
        self._refuse_destroyed(key_id)  # anyone who copied the file back has not undone that
        try:
            key = self._path(key_id).read_bytes()
        except FileNotFoundError:
            raise KeyMissingError(
                _("key %(key)s is not in the keystore: it was destroyed, or never created here"), key=key_id
            ) from None
        if len(key) != KEY_BYTES:
            text = _("key %(key)s is damaged: %(size)s bytes instead of %(wanted)s")
            raise KeyMissingError(text, key=key_id, size=len(key), wanted=KEY_BYTES)
        return key

    def is_damaged(self, key_id: str) -> bool:
        """Return whether there is a file of that name that is no key."""
        path = self._path(key_id)
        return path.exists() and path.stat().st_size != KEY_BYTES

    def exists(self, key_id: str) -> bool:
        return self._path(key_id).exists()

    def names(self, *, prefix: str) -> list[str]:
        """Return the rest of the ids of keys that begin with `prefix`."""
        return [path.stem.removeprefix(prefix) for path in self.folder.glob(f"{prefix}*.key")]

    def note_escrow(self, key_ids: Iterable[str], *, made_at: datetime) -> None:
        """Record with the keys that copies went into an escrow: a restored database may not know."""
        private_folder(self.folder)
        line = json.dumps({"made_at": made_at.astimezone(UTC).isoformat(), "keys": sorted(key_ids)})
        descriptor = os.open(self.folder / ESCROWS, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(f"\n{line}\n")  # begins a new line also after one that was cut off
            file.flush()
            os.fsync(file.fileno())
        sync(self.folder)

    def escrow_days(self, key_id: str) -> tuple[date, ...]:
        """Days, in UTC, on which copies of a key went into an escrow, in order."""
        path, days = self.folder / ESCROWS, set[date]()
        for line in path.read_text().splitlines() if path.exists() else []:
            with suppress(ValueError):  # empty, or cut off: that escrow never came to be
                told = json.loads(line)
                if key_id in told["keys"]:
                    days.add(datetime.fromisoformat(told["made_at"]).date())
        return tuple(sorted(days))

    def is_destroyed(self, key_id: str) -> bool:
        """Return whether a tombstone says that the key of that name was destroyed."""
        return self._tombstone(key_id).exists()

    def destroyed(self) -> list[str]:
        """Ids of the keys with a tombstone, sorted."""
        return sorted(path.name.removesuffix(".destroyed") for path in self.folder.glob("*.destroyed"))

    def destroyed_at(self, key_id: str) -> str | None:
        """When the key was destroyed, as its tombstone says; None: it was not, or it was lost."""
        try:
            words = self._tombstone(key_id).read_text().split()
        except FileNotFoundError:
            return None
        return words[0] if len(words) == 1 else None

    def destroy(self, key_id: str, *, was_lost: bool = False) -> None:
        """Overwrite and remove the key, and leave its tombstone, also where the key is gone already.

        Parameters
        ----------
        was_lost : the key's place is unknown: its tombstone keeps it from coming back, and says so
        """
        path = self._path(key_id)
        if not key_id.startswith(ONE_TIME_PREFIX) and not self.is_destroyed(key_id):
            # First: a key that is half destroyed must not come back either.
            lost = " lost" if was_lost else ""
            write_private(self._tombstone(key_id), f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}{lost}\n")
            sync(self.folder)
        for left in (*self.folder.glob(f".{path.name}.*"), path):  # of one that was being written
            _overwrite(left)
        if self.folder.exists():
            sync(self.folder)

    def _path(self, key_id: str) -> Path:
        if not KEY_ID.fullmatch(key_id):
            raise ValueError(f"key_id must match {KEY_ID.pattern}, got {key_id!r}")
        return self.folder / f"{key_id}.key"

    def _tombstone(self, key_id: str) -> Path:
        return self._path(key_id).with_suffix(".destroyed")

    def _refuse_destroyed(self, key_id: str) -> None:
        if self.is_destroyed(key_id):
            raise KeyDestroyedError(_("key %(key)s was destroyed and cannot be restored"), key=key_id)


def _overwrite(path: Path) -> None:
    try:
        with path.open("r+b") as file:
            file.write(secrets.token_bytes(KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
            file.truncate(0)  # a rest after an interruption must not pass for a key
    except FileNotFoundError:
        return
    path.unlink(missing_ok=True)


def keystore() -> Keystore:
    """The keystore of this installation."""
    return Keystore(settings.MOBILITY_KEYSTORE_DIR)
