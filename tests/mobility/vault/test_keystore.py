"""Keys as files: kept once, readable by one user, gone when destroyed."""

import os
import stat
from pathlib import Path

import pytest

from mobility.base.errors import KeyDestroyedError, KeyMissingError
from mobility.vault.keystore import KEY_BYTES, Keystore
from tests.mobility.pipeline import raising

KEY_ID = "study-fimu-2017"


@pytest.fixture
def keys(tmp_path: Path) -> Keystore:
    return Keystore(tmp_path / "keystore")


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_key_is_kept_as_it_was_made_for_this_user_alone_and_never_replaced(keys: Keystore) -> None:
    key = keys.create(KEY_ID)
    assert len(key) == KEY_BYTES == 32
    assert (keys.read(KEY_ID), keys.exists(KEY_ID)) == (key, True)
    file = keys.folder / f"{KEY_ID}.key"
    assert (file.read_bytes(), mode_of(keys.folder), mode_of(file)) == (key, 0o700, 0o600)
    assert key.hex() not in repr(keys) and repr(key) not in repr(keys)
    for size in (32, 0, 1, 31, 33, 64):
        file.write_bytes(bytes(size))
        with pytest.raises(FileExistsError):
            keys.create(KEY_ID)
        assert file.read_bytes() == bytes(size)
        if size != 32:
            with pytest.raises(KeyMissingError, match=f"key {KEY_ID} is damaged: {size} bytes instead of 32"):
                keys.read(KEY_ID)
    keys.folder.chmod(0o777)
    assert len({keys.create(f"batch-{n}") for n in range(20)}) == 20
    assert mode_of(keys.folder) == 0o700  # a folder that is too open is narrowed


def test_destroyed_is_gone_and_leaves_a_tombstone(keys: Keystore) -> None:
    kept, key = keys.create("kept"), keys.create(KEY_ID)
    keys.destroy(KEY_ID)
    assert sorted(path.name for path in keys.folder.iterdir()) == ["kept.key", f"{KEY_ID}.destroyed"]
    tombstone = keys.folder / f"{KEY_ID}.destroyed"
    assert (key in tombstone.read_bytes(), mode_of(tombstone)) == (False, 0o600)
    assert (keys.exists(KEY_ID), keys.read("kept")) == (False, kept)
    with pytest.raises(KeyMissingError, match="was destroyed and cannot be restored"):
        keys.read(KEY_ID)
    for _ in range(2):
        keys.destroy("never")
    keys.create("batch-1")
    keys.destroy("batch-1")  # a one-time key leaves nothing
    lost = "is not in the keystore: it was destroyed, or never created here"
    with pytest.raises(KeyMissingError, match=lost):
        keys.read("batch-1")
    assert keys.destroyed() == ["never", KEY_ID]


def test_a_destroyed_key_stays_destroyed(keys: Keystore) -> None:
    key = keys.create(KEY_ID)
    keys.destroy(KEY_ID)
    for make in (lambda: keys.create(KEY_ID), lambda: keys.put_back(KEY_ID, key)):
        with pytest.raises(KeyDestroyedError):
            make()
    assert not keys.exists(KEY_ID)
    (keys.folder / f"{KEY_ID}.key").write_bytes(key)
    with pytest.raises(KeyDestroyedError):
        keys.read(KEY_ID)
    keys.destroy(KEY_ID)
    assert not keys.exists(KEY_ID)


def test_a_key_is_put_back_once_and_over_a_damaged_one_only(keys: Keystore) -> None:
    file = keys.folder / f"{KEY_ID}.key"
    keys.put_back(KEY_ID, bytes(range(32)))
    assert (keys.read(KEY_ID), mode_of(file)) == (bytes(range(32)), 0o600)
    for over_damaged in (False, True):
        with pytest.raises(FileExistsError):
            keys.put_back(KEY_ID, bytes(32), over_damaged=over_damaged)
    with pytest.raises(ValueError, match="key must have 32 bytes, got 31"):
        keys.put_back("other", bytes(31))
    file.write_bytes(b"")
    assert keys.is_damaged(KEY_ID)
    keys.put_back(KEY_ID, bytes(range(32)), over_damaged=True)
    assert keys.read(KEY_ID) == bytes(range(32))
    assert not keys.is_damaged(KEY_ID) and not keys.is_damaged("other")


def test_a_key_is_whole_or_absent(keys: Keystore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full, or the power fails: what is left must not pass for a damaged key."""
    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space left"):
        patch.setattr(os, "fsync", raising(OSError(28, "No space left on device")))
        keys.create(KEY_ID)
    assert not list(keys.folder.iterdir())
    keys.create(KEY_ID)
    assert [path.name for path in keys.folder.iterdir()] == [f"{KEY_ID}.key"]


def test_what_a_crash_left_of_a_key_is_destroyed_with_it(keys, monkeypatch) -> None:
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Path, "hardlink_to", raising(KeyboardInterrupt))
        patch.setattr(Path, "unlink", lambda *_, **__: None)
        keys.create(KEY_ID)
    assert (keys.exists(KEY_ID), len(list(keys.folder.iterdir()))) == (False, 1)
    keys.destroy(KEY_ID)
    assert [path.name for path in keys.folder.iterdir()] == [f"{KEY_ID}.destroyed"]


def test_bytes_of_a_destroyed_key_are_overwritten(keys: Keystore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The place on the disk does not reveal the key: first it is written over, then cut off."""
    key, path, on_disk = keys.create(KEY_ID), keys.folder / f"{KEY_ID}.key", []
    monkeypatch.setattr(os, "fsync", lambda _: on_disk.append(path.read_bytes()) if path.exists() else None)
    keys.destroy(KEY_ID)
    overwritten = [held for held in on_disk if held != key]  # before it the tombstone is written
    assert len(overwritten[0]) == KEY_BYTES


def test_interrupted_destruction_leaves_no_wrong_key(keys: Keystore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key of other bytes would give every subscriber another pseudonym and a second answer."""
    keys.create(KEY_ID)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Path, "unlink", raising(KeyboardInterrupt))
        keys.destroy(KEY_ID)
    with pytest.raises(KeyMissingError, match="was destroyed"):
        keys.read(KEY_ID)
    assert (keys.folder / f"{KEY_ID}.key").read_bytes() == b""
    keys.destroy(KEY_ID)
    assert not keys.exists(KEY_ID)


def test_a_name_cannot_leave_the_folder(keys: Keystore) -> None:
    names = ["", ".", "..", "../main", "a/b", "/etc/passwd", "a.key", "A", "a b", "a\n", "\x00", "-a", "_a"]
    for key_id in (*names, "é", "a" * 81):
        for act in (keys.create, keys.read, keys.destroy, keys.exists, keys.is_destroyed):
            with pytest.raises(ValueError, match="key_id must match"):
                act(key_id)
    assert not keys.folder.exists() or not list(keys.folder.iterdir())
    assert keys.create("a" * 80) == keys.read("a" * 80)
