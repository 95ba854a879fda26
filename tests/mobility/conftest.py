"""Fixtures of the operator zone's tests."""

import json
import shutil
from dataclasses import replace

import pytest
from django.core.files.storage import storages
from django.db import connections, transaction
from django.test import override_settings
from shapely import box, to_geojson
from shapely.geometry import shape

from mobility.base.runtime import private_folder
from mobility.demo.extract import write_extract
from mobility.extracts.readers import chunks
from reports.studies.studyfile import StudyDefinition
from scripts import services
from tests.conftest import folder_settings
from tests.demo_study import parsed_study, study_text
from tests.mobility.data_folder import Folder
from tests.mobility.pipeline import N_SUBSCRIBERS, only, pipelines

S3 = {"bucket_name": "staging", "access_key": "only-for", "secret_key": "tests", "region_name": "us-east-1"}


@pytest.fixture
def folder(tmp_path):
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


@pytest.fixture
def migrated_folder(db, folder):
    """A data folder with the databases of the tests: a first command would need seconds to make others."""
    folder.root.mkdir(mode=0o700, exist_ok=True)
    for alias, file in (("default", folder.paths.main_database), ("vault", folder.paths.vault_database)):
        file.write_bytes(connections[alias].connection.serialize())
    return folder


@pytest.fixture(scope="session")
def broker(tmp_path_factory):
    port = services.free_port()
    with services.running(services.private_redis(folder=tmp_path_factory.mktemp("redis"), port=port)):
        yield services.redis_url(port)


@pytest.fixture(scope="session")
def s3_server():
    from moto.server import ThreadedMotoServer  # half a second, which most runs need not

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(scope="session")
def bucket_storage(s3_server):
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


@pytest.fixture(scope="session")
def extract(tmp_path_factory):
    folder = tmp_path_factory.mktemp("extract")
    write_extract(folder, seed=5, n_subscribers=N_SUBSCRIBERS)
    return sorted(folder.glob("*.csv"))


@pytest.fixture
def few(extract, tmp_path):
    return [only(path, lambda who: who.endswith("3"), tmp_path) for path in extract[:3]]


@pytest.fixture(scope="session")
def definition() -> StudyDefinition:
    """The demo's study, with a rectangle around each zone: each task reads all outlines again."""
    read = parsed_study(study_text())
    assert read.area
    return replace(read, area=replace(read.area, geojson=rectangles(read.area.geojson)))


def rectangles(zones):
    around = lambda zone: json.loads(to_geojson(box(*shape(zone["geometry"]).bounds)))  # noqa: E731
    return zones | {"features": [each | {"geometry": around(each)} for each in zones["features"]]}


@pytest.fixture
def make_pipeline(db, data_dir, definition):
    with pipelines(definition) as make:
        yield make


@pytest.fixture(scope="module")
def kept(django_db_setup, django_db_blocker, tmp_path_factory):
    """Rows and files that are made once for the tests of a module, none of which has transactions."""
    root = private_folder(tmp_path_factory.mktemp("kept") / "var")
    aliases = ("default", "vault")
    with (
        django_db_blocker.unblock(),
        override_settings(**folder_settings(root)),
        transaction.atomic(using=aliases[0]),
        transaction.atomic(using=aliases[1]),
    ):
        yield root
        for alias in aliases:
            transaction.set_rollback(True, using=alias)


@pytest.fixture
def pipeline(make_pipeline):
    return make_pipeline()


@pytest.fixture
def small_chunks(settings, monkeypatch):
    monkeypatch.setattr(chunks, "GRAIN_BYTES", 30_000)
    settings.MOBILITY_CHUNK_BYTES = 30_000
