"""Whole batches whose files are staged in a bucket: the same totals as in a folder, and nothing is left."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mobility.errors import StagingUnavailableError
from mobility.models import Batch
from mobility.services import running, staging
from tests.mobility.services.conftest import Pipeline

pytestmark = pytest.mark.django_db(databases=["default", "vault"], transaction=True)


def test_totals_are_those_of_a_folder(
    make_pipeline: Callable[..., Pipeline],
    extract: list[Path],
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(staging, "FRAME_BYTES", 10_000)
    in_folder = make_pipeline(slug="in-folder")
    in_folder.upload(*extract[:2])
    bucket = request.getfixturevalue("staging_bucket")
    in_bucket = make_pipeline(slug="in-bucket")
    batch = in_bucket.receive(extract[0])
    staged = [item.get()["Body"].read() for item in bucket.objects.all()]
    assert len(staged) == -(-extract[0].stat().st_size // 10_000)
    identifier = extract[0].read_bytes().split(b"\n")[1].split(b",")[0]
    assert not any(identifier in item for item in staged)
    assert in_bucket.finished(batch).state == Batch.State.DONE
    in_bucket.upload(extract[1])
    assert in_bucket.tallies() == in_folder.tallies()
    assert [item.key for item in bucket.objects.all()] == []


def test_a_refused_batch_leaves_nothing_in_the_bucket(
    pipeline: Pipeline, tmp_path: Path, staging_bucket: Any
) -> None:
    wrong = tmp_path / "wrong.csv"
    wrong.write_text("a,b\n1,2\n")
    batch = pipeline.receive(wrong)
    assert len(list(staging_bucket.objects.all())) == 1
    assert pipeline.finished(batch).state == Batch.State.FAILED
    assert list(staging_bucket.objects.all()) == []


def test_a_service_that_was_away_costs_time_and_nothing_else(
    pipeline: Pipeline, extract: list[Path], staging_bucket: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = pipeline.receive(extract[0])
    storage = type(staging.staging_storage())
    real = storage.read_into

    def away(*_: object) -> int:
        raise StagingUnavailableError("the staging bucket does not answer")

    monkeypatch.setattr(storage, "read_into", away)
    with pytest.raises(StagingUnavailableError):  # the task is tried again
        running.advance(str(batch.pk))
    monkeypatch.setattr(storage, "read_into", real)
    assert pipeline.finished(batch).state == Batch.State.DONE
