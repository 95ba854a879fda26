"""Requirements of staging on a storage, of both kinds of storage."""

import os
from pathlib import Path

import pytest
from django.core.files.storage import storages
from django.test import override_settings

from mobility.base.errors import StagingUnavailableError
from mobility.batches.storages import BLOCK_BYTES, Pieces, staging_storage, whole_blocks
from tests.mobility.conftest import S3
from tests.mobility.pipeline import raising


def save(name, *pieces):
    staging_storage().save(name, Pieces(pieces))


@pytest.mark.usefixtures("any_staging")
class TestEvery:
    def test_what_is_saved_can_be_read_in_parts(self):
        save("a/x", b"0123", b"", b"456789")
        save("a/empty")
        read = staging_storage().read_range
        parts = {(): b"0123456789", (0, 4): b"0123", (3, 2): b"34", (8,): b"89", (4, 0): b""}
        assert ({part: read("a/x", *part) for part in parts}, read("a/empty")) == (parts, b"")

    def test_a_second_save_replaces_the_first_and_delete_removes_one_object(self):
        storage = staging_storage()
        assert storage.listdir("") == ([], [])
        with pytest.raises(FileNotFoundError):
            storage.read_range("a/x")
        storage.delete("a/x")
        for content in (b"long content", b"short"):
            save("a/x", content)
        save("a/y", b"2")
        assert (storage.read_range("a/x"), sorted(storage.listdir("a")[1])) == (b"short", ["x", "y"])
        storage.delete("a/x")
        assert storage.listdir("a") == ([], ["y"])

    def test_delete_folder_spares_names_that_only_begin_alike(self):
        for name in ("a/x", "a/y", "ab/x"):
            save(name, b"1")
        for name in ("a", "never"):
            staging_storage().delete_folder(name)
        assert staging_storage().listdir("")[0] == ["ab"]


class TestFolder:
    def test_files_and_folders_are_of_their_owner_alone(self, data_dir):
        previous = os.umask(0)
        try:
            save("a/x", b"1")
        finally:
            os.umask(previous)
        modes = {path.name: path.stat().st_mode & 0o777 for path in [data_dir, *data_dir.rglob("*")]}
        assert {"staging": 0o700, "a": 0o700, "x": 0o600}.items() <= modes.items()
        assert staging_storage().free_bytes() > 0

    def test_a_save_that_fails_leaves_the_old_object_and_no_other(self, data_dir, monkeypatch):
        save("a/x", b"old")
        monkeypatch.setattr(os, "fsync", raising(OSError(28, "No space left on device")))
        with pytest.raises(OSError, match="No space"):
            save("a/x", b"new")
        assert staging_storage().read_range("a/x") == b"old"
        assert [path.name for path in (data_dir / "staging" / "a").iterdir()] == ["x"]

    @pytest.mark.parametrize("size", [1, BLOCK_BYTES, 5 * BLOCK_BYTES + 28])
    def test_what_is_read_once_comes_back_however_its_memory_lies(self, size):
        for at in (0, 1):  # as a disk takes it, and as none does
            content, found = (whole_blocks(size + BLOCK_BYTES)[at:] for _ in range(2))
            content[:size] = os.urandom(size)
            staging_storage().save("a/x", Pieces([content[:size]], is_read_once=True))
            assert staging_storage().read_into("a/x", found) == size
            assert found[:size] == content[:size] == staging_storage().read_range("a/x")

    def test_what_is_saved_is_durable(self, data_dir, monkeypatch):
        synced = []
        name_of = lambda descriptor: Path(f"/proc/self/fd/{descriptor}").readlink().name  # noqa: E731
        monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(name_of(descriptor)))
        save("a/x", b"1")
        assert ([name.startswith(".x.") for name in synced], synced[1]) == ([True, False], "a")

    def test_two_writers_of_one_object_have_a_file_each(self, data_dir, monkeypatch):
        """Until they put it in its place: readers see the one or the other."""
        opened = []
        monkeypatch.setattr(os, "fsync", lambda _: opened.extend((data_dir / "staging" / "a").iterdir()))
        for content in (b"1", b"2"):
            save("a/x", content)
        assert len({path.name for path in opened if path.name.startswith(".x.")}) == 2

    def test_a_name_cannot_leave_the_folder(self, data_dir):
        with pytest.raises(Exception, match=r"traversal|outside"):
            save("../x", b"1")


class TestBucket:
    def test_objects_lie_below_the_prefix_and_are_private(self, staging_bucket):
        save("a/x", b"1")
        assert [item.key for item in staging_bucket.objects.all()] == ["mobility/staged/a/x"]
        (grant,) = staging_bucket.Object("mobility/staged/a/x").Acl().grants
        assert (grant["Grantee"]["Type"], grant["Permission"]) == ("CanonicalUser", "FULL_CONTROL")
        assert staging_storage().free_bytes() is None  # room is not known

    @pytest.mark.parametrize(
        ("change", "words"),
        [({"bucket_name": "another"}, "returned NoSuchBucket"),
         ({"endpoint_url": "http://127.0.0.1:9"}, "not responding [(]EndpointConnectionError")],
    )  # fmt: skip
    def test_a_service_that_fails_can_be_asked_again(self, s3_server, change, words):
        options = S3 | {"endpoint_url": s3_server} | change
        staging = {"BACKEND": "mobility.batches.storages.bucket.StagingBucket", "OPTIONS": options}
        with override_settings(STORAGES={"staging": staging}):
            storage = storages["staging"]
            storage.client_config.retries = {"total_max_attempts": 1}
            attempts = {save: ("a/x", b"content"), storage.read_range: ("a/x",), storage.listdir: ("",)}
            for attempt, given in {**attempts, storage.delete_folder: ("a",)}.items():
                with pytest.raises(StagingUnavailableError, match=words) as caught:
                    attempt(*given)
                assert isinstance(caught.value, ConnectionError)
                assert "content" not in str(caught.value)
