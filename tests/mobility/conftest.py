"""Fixtures of the operator zone's tests."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import storages
from moto.server import ThreadedMotoServer

from tests.mobility.data_folder import Folder

S3 = {"bucket_name": "staging", "access_key": "only-for", "secret_key": "tests", "region_name": "us-east-1"}


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    """A data folder for real commands; nothing that they start outlives the test."""
    made = Folder(tmp_path / "var")
    yield made
    made.stop_all()


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    """Address of a server that speaks S3."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(scope="session")
def bucket_storage(s3_server: str) -> Any:
    """The storage itself; for the session, since every client of S3 takes a second to make."""
    from mobility.storages.bucket import StagingBucket

    return StagingBucket(**S3, endpoint_url=s3_server, location="mobility/staged")


@pytest.fixture
def staging_bucket(bucket_storage: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Staging in a bucket, which is empty; yields the bucket as boto3 sees it."""
    bucket = bucket_storage.bucket
    bucket.create()
    monkeypatch.setitem(storages._storages, "staging", bucket_storage)
    yield bucket
    bucket.objects.delete()
    bucket.delete()


@pytest.fixture(params=["folder", "bucket"])
def any_staging(request: pytest.FixtureRequest, data_dir: Path) -> None:
    """Run the test twice: staged in a folder, and in a bucket."""
    if request.param == "bucket":
        request.getfixturevalue("staging_bucket")
