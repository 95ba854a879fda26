"""Fixtures of the operator zone's tests."""

import shutil

import pytest
from django.core.files.storage import storages
from moto.server import ThreadedMotoServer

from tests.mobility.data_folder import Folder

S3 = {"bucket_name": "staging", "access_key": "only-for", "secret_key": "tests", "region_name": "us-east-1"}


@pytest.fixture
def folder(tmp_path):
    """An empty data folder for real commands; nothing that they start outlives the test."""
    made = Folder(tmp_path / "var")
    yield made
    made.stop_all()


@pytest.fixture(scope="session")
def first_command(tmp_path_factory):
    """A data folder after a first command, and what that command said; for the session: it takes seconds."""
    made = Folder(tmp_path_factory.mktemp("prepared") / "var")
    _, messages = made.shell().communicate(timeout=120)
    return made, messages


@pytest.fixture
def prepared_folder(first_command, folder):
    template, _ = first_command
    shutil.copytree(template.root, folder.root, ignore=shutil.ignore_patterns("run"))
    return folder


@pytest.fixture(scope="session")
def s3_server():
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(scope="session")
def bucket_storage(s3_server):
    """The storage itself; for the session, since every client of S3 takes a second to make."""
    from mobility.batches.storages.bucket import StagingBucket

    return StagingBucket(**S3, endpoint_url=s3_server, location="mobility/staged")


@pytest.fixture
def staging_bucket(bucket_storage, monkeypatch):
    """Staging in a bucket, which is empty; yields the bucket as boto3 sees it."""
    bucket = bucket_storage.bucket
    bucket.create()
    monkeypatch.setitem(storages._storages, "staging", bucket_storage)
    yield bucket
    bucket.objects.delete()
    bucket.delete()


@pytest.fixture(params=["folder", "bucket"])
def any_staging(request, data_dir):
    if request.param == "bucket":
        request.getfixturevalue("staging_bucket")
