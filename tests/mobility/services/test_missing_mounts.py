"""A host that has not mounted what the others have: it destroys nothing, and its tasks are tried again."""

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from mobility.errors import MobilityError, StagingUnavailableError, StudyKeyMissingError
from mobility.keystore import keystore
from mobility.models import Batch
from mobility.services import endings, running
from mobility.services.closing import Leave, StudyNotClosedError, close_study
from tests.mobility.services.conftest import Pipeline
from tests.mobility.services.restoring.restored import SMALL, tenth_of_the_people

pytestmark = pytest.mark.django_db(databases=["default", "vault"])
State = Batch.State


@pytest.fixture
def pipeline(make_pipeline: Callable[..., Pipeline]) -> Pipeline:
    return make_pipeline(**SMALL)


@pytest.fixture
def few(extract: list[Path], tmp_path: Path) -> list[Path]:
    return tenth_of_the_people(extract, tmp_path)


def brought_to(pipeline: Pipeline, batch: Batch, state: str) -> list[tuple[str, ...]]:
    """Run a batch until it is in a state; what was asked for then."""
    pipeline.queue.append(("advance", str(batch.pk)))
    while batch.state != state:
        task, *ids = pipeline.queue.popleft()
        getattr(running, task)(*ids)
        batch.refresh_from_db()
    return list(pipeline.queue)


def staged(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in (root / "staging").rglob("*") if path.is_file()}


@pytest.mark.parametrize("state", [State.QUEUED, State.READING, State.MERGING])
@pytest.mark.parametrize(
    ("name", "error"), [("keystore", StudyKeyMissingError), ("staging", StagingUnavailableError)]
)
@pytest.mark.parametrize("is_empty", [False, True], ids=["no folder", "an empty mount point"])
def test_what_was_accepted_waits_and_goes_on(
    pipeline: Pipeline, few: list[Path], data_dir: Path,
    state: str, name: str, error: type[MobilityError], is_empty: bool,
) -> None:  # fmt: skip
    pipeline.upload(few[0])
    batch = pipeline.receive(few[1])
    asked = brought_to(pipeline, batch, state)
    before, key = staged(data_dir), keystore().read(batch.key_id)
    pipeline.queue.clear()

    (data_dir / name).rename(data_dir / "elsewhere")
    if is_empty:
        (data_dir / name).mkdir(mode=0o700)
    for task, *ids in asked * 4:  # more often than work that fails is tried
        with pytest.raises(error):
            getattr(running, task)(*ids)
    batch.refresh_from_db()
    assert (batch.state, batch.failure) == (state, "")
    if (data_dir / name).exists():
        (data_dir / name).rmdir()
    (data_dir / "elsewhere").rename(data_dir / name)
    assert staged(data_dir) == before
    assert keystore().read(batch.key_id) == key

    pipeline.queue.extend(asked)
    pipeline.work()
    batch.refresh_from_db()
    assert (batch.state, batch.rows_read) == (State.DONE, len(few[1].read_text().splitlines()) - 1)


def test_an_object_that_is_lost_alone_still_fails_its_batch(
    pipeline: Pipeline, few: list[Path], data_dir: Path
) -> None:
    batch = pipeline.receive(few[0])
    folder = data_dir / "staging" / str(batch.pk)
    (folder / "another").touch()
    (folder / "upload-000000").unlink()
    pipeline.finished(batch)
    assert batch.state == State.FAILED
    assert "frame 0 of the staged upload is gone: send the file again" in batch.failure


@pytest.mark.parametrize("name", ["keystore", "staging"])
def test_a_batch_is_given_up_where_it_is_lost_for_good_and_the_same_file_completes_it(
    pipeline: Pipeline, make_pipeline: Callable[..., Pipeline], few: list[Path], data_dir: Path, name: str
) -> None:
    whole = make_pipeline(slug="whole", **SMALL)
    whole.upload(few[0])
    batch = pipeline.receive(few[0])
    brought_to(pipeline, batch, State.MERGING)
    running.apply_shard(*pipeline.queue[0][1:])  # a part of it counts
    pipeline.queue.clear()
    (data_dir / name).rename(data_dir / "lost")
    with pytest.raises(CommandError, match="cannot be cancelled any more"):
        call_command("cancel_batch", str(batch.pk))
    out = StringIO()
    call_command("cancel_batch", str(batch.pk), "--give-up", stdout=out)
    assert json.loads(out.getvalue()) == {"batch": str(batch.pk), "state": "failed"}
    batch.refresh_from_db()
    assert batch.failure == (
        "stopped while merging: given up by command line. Part of it may be merged: upload the same file "
        "again to complete it, nothing counts twice"
    )
    with pytest.raises(CommandError, match="it has ended"):
        call_command("cancel_batch", str(batch.pk), "--give-up")

    if name == "keystore":  # from its escrow
        (data_dir / "lost").rename(data_dir / name)
    (again,) = pipeline.upload(few[0])
    assert (again.state, again.duplicate_of) == (State.DONE, None)
    assert pipeline.tallies() == whole.tallies()


@pytest.mark.django_db(databases=["default", "vault"], transaction=True)
def test_a_study_whose_key_is_lost_can_be_closed_when_its_batch_is_given_up(
    pipeline: Pipeline, few: list[Path], data_dir: Path
) -> None:
    batch = pipeline.receive(few[0])
    brought_to(pipeline, batch, State.MERGING)
    (data_dir / "keystore").rename(data_dir / "lost")
    leave = Leave(lost_key=True, drop_unpublished=True, cancel_batches=True)
    with pytest.raises(StudyNotClosedError, match="cancel_batch BATCH --give-up"):
        close_study(pipeline.study, by="olga", leave=leave)
    endings.give_up(batch, by="olga")
    certificate: Any = close_study(pipeline.study, by="olga", leave=leave)
    assert certificate["key_was_lost"]
