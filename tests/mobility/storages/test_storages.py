"""What staging asks of a storage, of both kinds of storage."""

import os
import threading
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import storages
from django.test import override_settings

from mobility.errors import StagingUnavailableError
from mobility.storages import Pieces, staging_storage
from tests.mobility.conftest import S3


def save(name: str, *pieces: bytes) -> None:
    staging_storage().save(name, Pieces(pieces))


@pytest.mark.usefixtures("any_staging")
class TestEvery:
    def test_what_is_saved_can_be_read_in_parts(self) -> None:
        save("a/x", b"0123", b"", b"456789")
        read = staging_storage().read_range
        assert read("a/x") == b"0123456789"
        assert read("a/x", 0, 4) == b"0123"
        assert read("a/x", 3, 2) == b"34"
        assert read("a/x", 8) == b"89"
        assert read("a/x", 4, 0) == b""

    def test_an_empty_object_is_an_object(self) -> None:
        save("a/x")
        assert staging_storage().read_range("a/x") == b""

    def test_a_second_save_replaces_the_first(self) -> None:
        save("a/x", b"long content")
        save("a/x", b"short")
        assert staging_storage().read_range("a/x") == b"short"
        assert staging_storage().listdir("a") == ([], ["x"])

    def test_a_missing_object_is_missing(self) -> None:
        with pytest.raises(FileNotFoundError):
            staging_storage().read_range("a/x")
        staging_storage().delete("a/x")

    def test_delete_removes_one_object(self) -> None:
        save("a/x", b"1")
        save("a/y", b"2")
        staging_storage().delete("a/x")
        assert staging_storage().listdir("a") == ([], ["y"])

    def test_delete_folder_spares_names_that_only_begin_alike(self) -> None:
        for name in ("a/x", "a/y", "ab/x"):
            save(name, b"1")
        staging_storage().delete_folder("a")
        staging_storage().delete_folder("never")
        assert staging_storage().listdir("")[0] == ["ab"]

    def test_nothing_is_listed_before_the_first_object(self) -> None:
        assert staging_storage().listdir("") == ([], [])

    def test_readers_never_see_a_mixture_of_two_writers(self) -> None:
        save("a/x", b"0" * 100_000)
        writers = [
            threading.Thread(target=lambda byte=byte: [save("a/x", byte * 100_000) for _ in range(10)])
            for byte in (b"1", b"2")
        ]
        for writer in writers:
            writer.start()
        while any(writer.is_alive() for writer in writers):
            found = staging_storage().read_range("a/x")
            assert len(found) == 100_000
            assert len(set(found)) == 1
        assert staging_storage().listdir("a") == ([], ["x"])


class TestFolder:
    def test_files_and_folders_are_of_their_owner_alone(self, data_dir: Path) -> None:
        previous = os.umask(0)
        try:
            save("a/x", b"1")
        finally:
            os.umask(previous)
        modes = {path.name: path.stat().st_mode & 0o777 for path in [data_dir, *data_dir.rglob("*")]}
        assert {"staging": 0o700, "a": 0o700, "x": 0o600}.items() <= modes.items()

    def test_a_save_that_fails_leaves_the_old_object_and_no_other(
        self, data_dir: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        save("a/x", b"old")

        def fail(_: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="No space"):
            save("a/x", b"new")
        assert staging_storage().read_range("a/x") == b"old"
        assert [path.name for path in (data_dir / "staging" / "a").iterdir()] == ["x"]

    def test_what_is_saved_is_durable(self, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        synced: list[str] = []
        real = os.fsync

        def note(descriptor: int) -> None:
            synced.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
            real(descriptor)

        monkeypatch.setattr(os, "fsync", note)
        save("a/x", b"1")
        assert [name.startswith(".x.") for name in synced] == [True, False]
        assert synced[1] == "a"

    def test_room_that_is_left_is_known(self, data_dir: Path) -> None:
        free = staging_storage().free_bytes()
        assert free is not None
        assert free > 0

    def test_a_name_cannot_leave_the_folder(self, data_dir: Path) -> None:
        with pytest.raises(Exception, match=r"traversal|outside"):
            save("../x", b"1")


class TestBucket:
    def test_objects_lie_below_the_prefix_and_are_private(self, staging_bucket: Any) -> None:
        save("a/x", b"1")
        assert [item.key for item in staging_bucket.objects.all()] == ["mobility/staged/a/x"]
        grants = staging_bucket.Object("mobility/staged/a/x").Acl().grants
        assert [(grant["Grantee"]["Type"], grant["Permission"]) for grant in grants] == [
            ("CanonicalUser", "FULL_CONTROL")
        ]

    def test_room_is_not_known(self, staging_bucket: Any) -> None:
        assert staging_storage().free_bytes() is None

    @pytest.mark.parametrize(
        ("change", "words"),
        [({"bucket_name": "another"}, "answered NoSuchBucket"),
         ({"endpoint_url": "http://127.0.0.1:9"}, "does not answer [(]EndpointConnectionError")],
    )  # fmt: skip
    def test_a_service_that_fails_can_be_asked_again(
        self, s3_server: str, change: dict[str, str], words: str
    ) -> None:
        options = S3 | {"endpoint_url": s3_server} | change
        staging = {"BACKEND": "mobility.storages.bucket.StagingBucket", "OPTIONS": options}
        with override_settings(STORAGES={"staging": staging}):
            storages["staging"].client_config.retries = {"total_max_attempts": 1}
            for attempt in (
                lambda: save("a/x", b"content"),
                lambda: staging_storage().read_range("a/x"),
                lambda: staging_storage().listdir(""),
                lambda: staging_storage().delete_folder("a"),
            ):
                with pytest.raises(StagingUnavailableError, match=words) as caught:
                    attempt()
                assert isinstance(caught.value, ConnectionError)
                assert "content" not in str(caught.value)
