"""Keys as files: kept once, readable by one user, gone when destroyed."""

import os
import stat
from pathlib import Path

import pytest

from mobility.errors import KeyMissingError
from mobility.keystore import KEY_BYTES, Keystore, keystore

KEY_ID = "study-fimu-2017"


@pytest.fixture
def keys(tmp_path: Path) -> Keystore:
    return Keystore(tmp_path / "keystore")


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_key_is_kept_as_it_was_made(keys: Keystore) -> None:
    key = keys.create(KEY_ID)
    assert len(key) == KEY_BYTES == 32
    assert keys.read(KEY_ID) == key
    assert keys.exists(KEY_ID)
    assert (keys.folder / f"{KEY_ID}.key").read_bytes() == key


def test_keys_differ(keys: Keystore) -> None:
    assert len({keys.create(f"batch-{n}") for n in range(20)}) == 20


def test_only_this_user_may_read(keys: Keystore) -> None:
    keys.create(KEY_ID)
    assert mode_of(keys.folder) == 0o700
    assert mode_of(keys.folder / f"{KEY_ID}.key") == 0o600


def test_a_folder_that_is_too_open_is_narrowed(keys: Keystore) -> None:
    keys.folder.mkdir(mode=0o777)
    keys.folder.chmod(0o777)
    keys.create(KEY_ID)
    assert mode_of(keys.folder) == 0o700


def test_a_key_is_never_replaced(keys: Keystore) -> None:
    key = keys.create(KEY_ID)
    with pytest.raises(FileExistsError):
        keys.create(KEY_ID)
    assert keys.read(KEY_ID) == key


def test_a_damaged_key_is_not_replaced_either(keys: Keystore) -> None:
    keys.create(KEY_ID)
    (keys.folder / f"{KEY_ID}.key").write_bytes(b"")
    with pytest.raises(FileExistsError):
        keys.create(KEY_ID)


def test_destroyed_is_gone_and_leaves_nothing(keys: Keystore) -> None:
    kept = keys.create("kept")
    keys.create(KEY_ID)
    keys.destroy(KEY_ID)
    assert [path.name for path in keys.folder.iterdir()] == ["kept.key"]
    assert not keys.exists(KEY_ID)
    with pytest.raises(KeyMissingError, match="is not in the keystore: it was destroyed or never made here"):
        keys.read(KEY_ID)
    assert keys.read("kept") == kept


def test_destroying_twice_or_before_anything_was_kept_does_no_harm(keys: Keystore) -> None:
    keys.destroy(KEY_ID)
    keys.create(KEY_ID)
    keys.destroy(KEY_ID)
    keys.destroy(KEY_ID)


def test_bytes_of_a_destroyed_key_are_overwritten(keys: Keystore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever finds its place on the disk does not find the key: first it is written over, then cut off."""
    key = keys.create(KEY_ID)
    path = keys.folder / f"{KEY_ID}.key"
    on_disk = []
    real_fsync = os.fsync

    def fsync(descriptor: int) -> None:
        real_fsync(descriptor)
        if path.exists():
            on_disk.append(path.read_bytes())

    monkeypatch.setattr(os, "fsync", fsync)
    keys.destroy(KEY_ID)
    assert len(on_disk[0]) == KEY_BYTES
    assert on_disk[0] != key


def test_interrupted_destruction_leaves_no_wrong_key(keys: Keystore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key of other bytes would give every subscriber another pseudonym and a second answer."""
    keys.create(KEY_ID)

    def crash(self: Path, *, missing_ok: bool = False) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Path, "unlink", crash)
        keys.destroy(KEY_ID)
    with pytest.raises(KeyMissingError, match="damaged: 0 bytes instead of 32"):
        keys.read(KEY_ID)
    keys.destroy(KEY_ID)
    assert not keys.exists(KEY_ID)


@pytest.mark.parametrize("size", [0, 1, 31, 33, 64])
def test_a_damaged_key_is_refused(keys: Keystore, size: int) -> None:
    keys.create(KEY_ID)
    (keys.folder / f"{KEY_ID}.key").write_bytes(bytes(size))
    with pytest.raises(KeyMissingError, match=f"key {KEY_ID} is damaged: {size} bytes instead of 32"):
        keys.read(KEY_ID)


@pytest.mark.parametrize(
    "key_id",
    [
        "",
        ".",
        "..",
        "../main",
        "a/b",
        "/etc/passwd",
        "a.key",
        "A",
        "a b",
        "a\n",
        "\x00",
        "-a",
        "_a",
        "é",
        "a" * 81,
    ],
)
def test_a_name_cannot_leave_the_folder(keys: Keystore, key_id: str) -> None:
    for act in (keys.create, keys.read, keys.destroy, keys.exists):
        with pytest.raises(ValueError, match="key_id must match"):
            act(key_id)
    assert not keys.folder.exists() or not list(keys.folder.iterdir())


def test_longest_name(keys: Keystore) -> None:
    name = "a" * 80
    assert keys.create(name) == keys.read(name)


def test_no_key_shows_in_the_text_of_the_keystore(keys: Keystore) -> None:
    key = keys.create(KEY_ID)
    assert key.hex() not in repr(keys)
    assert repr(key) not in repr(keys)


def test_keystore_of_the_installation_is_in_its_data_folder(data_dir: Path) -> None:
    keystore().create(KEY_ID)
    assert (data_dir / "keystore" / f"{KEY_ID}.key").is_file()
