"""Files count in the order in which they came in, also when the queue has lost the request for one."""

from collections.abc import Callable
from pathlib import Path

import pytest
from django.utils import timezone

from mobility.models import Batch
from mobility.services.liveness import activate
from mobility.services.sweeping import sweep
from tests.mobility.services.conftest import Pipeline

pytestmark = [
    pytest.mark.database,
    pytest.mark.django_db(databases=["default", "vault"], transaction=True),
]


def test_batch_waits_for_those_that_came_before(pipeline: Pipeline, extract: list[Path]) -> None:
    first, second = (pipeline.receive(path) for path in extract[:2])
    pipeline.finished(second)  # nobody has been asked for the first one
    first.refresh_from_db()
    assert first.state == second.state == Batch.State.DONE
    assert first.finished_at < second.started_at


def test_part_that_was_not_asked_for_comes_before_the_last_one(
    pipeline: Pipeline, extract: list[Path], tmp_path: Path
) -> None:
    """The other way round the days would be published with half of their rows."""
    header, *rows = extract[0].read_text().splitlines(keepends=True)
    files = [tmp_path / f"part-{number}.csv" for number in range(2)]
    for number, file in enumerate(files):
        file.write_text(header + "".join(rows[number::2]))
    pipeline.receive(files[0], more_to_come=True)
    last = pipeline.finished(pipeline.receive(files[1]))
    assert last.state == Batch.State.DONE
    assert last.notes["late_change"] == 0
    assert pipeline.visitors(1, 1) == last.subscriber_days > 0


def test_batch_that_was_active_already_goes_on(pipeline: Pipeline, extract: list[Path]) -> None:
    """Its worker died before it began to read, and an upload that had begun earlier ended meanwhile."""
    first, second = (pipeline.receive(path) for path in extract[:2])
    assert activate(second)
    pipeline.finished(second)
    first.refresh_from_db()
    assert first.state == second.state == Batch.State.DONE


def test_batch_that_is_still_received_holds_up_nobody(pipeline: Pipeline, extract: list[Path]) -> None:
    first, second = (pipeline.receive(path) for path in extract[:2])
    Batch.objects.filter(pk=first.pk).update(state=Batch.State.RECEIVING, alive_until=timezone.now())
    assert pipeline.finished(second).state == Batch.State.DONE


def test_a_sweep_asks_for_one_batch_of_each_study(
    make_pipeline: Callable[..., Pipeline], extract: list[Path]
) -> None:
    """Those behind it are asked for when it ends: a thousand that wait are one message."""
    first, second = make_pipeline(slug="first"), make_pipeline(slug="second")
    waiting = [pipeline.receive(path) for pipeline in (first, second) for path in extract[:3]]
    sweep()
    assert sorted(first.queue) == sorted(("advance", str(waiting[index].pk)) for index in (0, 3))
    first.queue.clear()
    assert activate(waiting[1])
    Batch.objects.filter(study=first.study).update(alive_until=None)
    sweep()
    assert list(first.queue) == [("advance", str(waiting[1].pk))]
    first.work()
    assert set(first.study.batches.values_list("state", flat=True)) == {Batch.State.DONE}
