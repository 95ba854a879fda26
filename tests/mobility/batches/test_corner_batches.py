"""Batches at the edges: small files of open days, slow tasks, outages, half-done merging, few people."""

import pytest

from mobility.batches import finalisation, reading, running
from mobility.batches.publication import publishing
from mobility.models import Batch, DayState, VaultDay, VaultStudy
from mobility.vault.studies import open_study
from tests.mobility.batches.test_totals import present_on
from tests.mobility.pipeline import Pipeline, fresh, only

pytestmark = pytest.mark.django_db(databases=["default", "vault"])


def run_until(pipeline: Pipeline, batch: Batch, *, shards: int) -> tuple[str, ...]:
    """Work on the batch until N shards have been requested; returns the task that comes next."""
    pipeline.queue.append(("advance", str(batch.pk)))
    while pipeline.queue:
        task, *ids = pipeline.queue.popleft()
        if task == "apply_shard":
            shards -= 1
            if shards < 0:
                return (task, *ids)
        getattr(running, task)(*ids)
    raise AssertionError("the batch has fewer shards")


def test_small_last_file_publishes_everybody_of_its_day(make_pipeline, extract, tmp_path):
    expected = make_pipeline(slug="at-once")
    expected.upload(extract[0])
    pipeline = make_pipeline(slug="small-last-file")
    pipeline.upload(extract[0], more_to_come=True)
    pipeline.upload(only(extract[0], present_on(extract, days=(1, 2), n=1).__contains__, tmp_path))
    assert pipeline.visitors(1, 1) == expected.visitors(1, 1) > 100
    pipeline.close_days(through=1)
    assert pipeline.visitors(1, 1) == expected.visitors(1, 1)


def test_day_that_was_never_published_can_be_undone_and_hides_nobody(pipeline, extract, tmp_path):
    people = present_on(extract, days=(1, 2), n=99)
    first = only(extract[0], people.__contains__, tmp_path)
    pipeline.upload(extract[0], more_to_come=True)
    assert DayState.objects.exists()
    assert (pipeline.void_day(1).waiting_subscribers, DayState.objects.exists()) == (0, False)
    (batch,) = pipeline.upload(first)
    assert batch.waiting_subscribers == 99
    assert pipeline.void_day(1).waiting_subscribers == 0
    other = min(present_on(extract, days=(2, 3), n=101) - people)
    (batch,) = pipeline.upload(only(extract[1], {other}.__contains__, tmp_path))
    assert (batch.waiting_subscribers, pipeline.visitors(1, 7)) == (1, 0)


def test_slow_publication_of_an_earlier_batch_cuts_nothing_of_the_next(make_pipeline, extract):
    expected = make_pipeline(slug="undisturbed")
    expected.upload(*extract[:2])
    pipeline = make_pipeline(slug="slow")
    (first,) = pipeline.upload(extract[0])
    task = run_until(pipeline, pipeline.receive(extract[1]), shards=1)
    publishing.publish(open_study(fresh(pipeline.study)), batch=first)
    assert pipeline.visitors(2, 2) == 0
    pipeline.queue.append(task)
    pipeline.work()
    assert pipeline.tallies() == expected.tallies()


def test_late_task_does_not_end_what_others_have_taken_further(pipeline, extract):
    pipeline.upload(extract[0])
    batch = pipeline.void_day(1)
    late = Batch.objects.get(pk=batch.pk)
    late.state = Batch.State.MERGING  # as it was when the task began
    finalisation.fail(late, "day 1 cannot be undone, because nothing was uploaded for it")
    assert (fresh(batch).state, batch.failure) == (Batch.State.DONE, "")


def test_chunks_that_disagree_on_the_encoding_are_read_in_order(make_pipeline, extract, tmp_path, request):
    lines = [line for line in extract[0].read_bytes().splitlines(keepends=True) if line.isascii()]
    for row in (2, 3, *range(len(lines) - 40, len(lines) - 30)):
        lines[row] = "é".encode() + lines[row]
    lines[-50] = "é".encode("latin-1") + lines[-50]  # alone in a file that is UTF-8
    path = tmp_path / "mixed.csv"
    path.write_bytes(b"".join(lines))
    whole = make_pipeline(slug="whole")
    (in_order,) = whole.upload(path)
    assert in_order.rows_rejected["bad_text"] == 1
    request.getfixturevalue("small_chunks")
    pipeline = make_pipeline(slug="chunks")
    (batch,) = pipeline.upload(path)
    assert (batch.reads_whole, batch.source) == (True, in_order.source)
    assert (batch.rows_rejected, batch.rejected_lines) == (in_order.rows_rejected, in_order.rejected_lines)
    assert pipeline.tallies() == whole.tallies()


def test_two_last_tasks_may_both_judge_the_file(pipeline, extract, monkeypatch):
    """One of them begins again while the other has all chunks before it."""
    judge = reading.judge

    def late(batch, study):
        reading.read_as_a_whole(batch)
        return judge(batch, study)

    monkeypatch.setattr(reading, "judge", late)
    (batch,) = pipeline.upload(extract[0])
    assert (batch.state, batch.failure, batch.reads_whole) == (Batch.State.DONE, "", True)


def test_undoing_a_day_that_was_published_by_half_counts(pipeline, extract):
    """Daily answers of it may have crossed: the certified loss has to know."""
    batch = pipeline.receive(extract[0])
    run_until(pipeline, batch, shards=1)
    finalisation.fail(batch, finalisation.stopped(fresh(batch), "MemoryError"))
    pipeline.queue.clear()
    pipeline.upload(extract[1])
    assert pipeline.visitors(1, 1) > 0
    pipeline.void_day(1)
    assert (pipeline.visitors(1, 1), VaultStudy.objects.get(pk=pipeline.study.pk).voided_days) == (0, 1)


def test_check_that_fails_leaves_nothing_and_what_is_in_already_can_be_checked(pipeline, extract):
    batch = pipeline.receive(extract[0], validate_only=True)
    run_until(pipeline, batch, shards=1)
    finalisation.fail(batch, finalisation.stopped(fresh(batch), "MemoryError"))
    assert ("Nothing was published" in fresh(batch).failure, VaultDay.objects.exists()) == (True, False)
    pipeline.queue.clear()
    (first,) = pipeline.upload(extract[0])
    (checked,) = pipeline.upload(extract[0], validate_only=True)
    assert (checked.duplicate_of, checked.rows_read) == (None, first.rows_read)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_answer_of_a_day_without_a_visit_counts_in_any_cut(make_pipeline, extract, tmp_path, order):
    """One event with values on day 1, and a visit without values on day 2."""
    people = present_on(extract, days=(1, 2), n=150)
    header, *rows = only(extract[0], people.__contains__, tmp_path).read_text().splitlines(keepends=True)
    n_values = header.count(",") - 2
    firsts = {row.split(",")[0]: row for row in reversed(rows)}
    parts = ["".join(firsts.values()), ""]
    for row in rows:
        subscriber, timestamp, cell, *_ = row.split(",")
        later = timestamp.replace("2017-05-31", "2017-06-01")
        parts[1] += f"{subscriber},{later},{cell}{',' * n_values}\n"
    at_once, cut = make_pipeline(slug="at-once"), make_pipeline(slug="cut")
    (tmp_path / "both.csv").write_text(header + "".join(parts))
    (batch,) = at_once.upload(tmp_path / "both.csv")
    for part in order:
        (tmp_path / f"{part}.csv").write_text(header + parts[part])
        cut.upload(tmp_path / f"{part}.csv")
    assert batch.reports > batch.subscriber_days / 2
    assert cut.tallies() == at_once.tallies()


def test_visitors_of_a_day_are_seen_for_the_least_minutes_or_longer(pipeline, extract, tmp_path):
    names, row = (line.split(",") for line in extract[0].read_text().splitlines()[:2])
    day = row[names.index("timestamp")][:10]
    lines = [",".join(names)]
    for person in range(240):
        for time in ("08:00:00", "09:00:00" if person < 120 else "08:59:59"):
            changed = {"msisdn": f"33600000{person:03}", "timestamp": f"{day}T{time}"}
            lines.append(",".join(changed.get(name, value) for name, value in zip(names, row, strict=True)))
    path = tmp_path / "an-hour.csv"
    path.write_text("\n".join([*lines, ""]))
    pipeline.upload(path)
    assert pipeline.visitors(1, 1) == 120
