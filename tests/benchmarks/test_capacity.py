"""Capacity: costs of batches that are foretold, and the shards, chunks and tasks of a country."""

import io
import json

import pytest

from benchmarks import capacity
from benchmarks.capacity import Cost, Work
from mobility.batches.reading import chunk_bytes
from mobility.extracts.readers.chunks import plan_chunks
from mobility.plans.studies import shard_count

ROW_S, PERSON_S, TASK_S = 1e-6, 4e-6, 0.05
WAL_PERSON, WAL_TASK = 30.0, 20_000.0


def batch(*, workers=1, rows, rows_per_subscriber):
    subscribers = rows // rows_per_subscriber
    shards = capacity.shards_of(subscribers)
    work = Work(workers=workers, rows=rows, file_bytes=rows * 74, subscribers=subscribers, shards=shards)
    cpu_s = ROW_S * rows + PERSON_S * subscribers + TASK_S * work.tasks
    return {
        "workers": workers, "rows": rows, "file_bytes": rows * 74, "subscribers": subscribers,
        "shards": shards, "worker_cpu_s": cpu_s,
        "database_cpu_s": TASK_S * work.tasks, "batch_s": 2 + 1.5 * cpu_s / workers,
        "wal_bytes": WAL_PERSON * subscribers + WAL_TASK * work.tasks, "stored_bytes": 12 * subscribers,
        "commits": 9 * work.tasks, "messages": 2 * work.tasks, "peak_mb": 300.0,
        "worker_received": [rows * 100 // workers] * workers, "worker_sent": [rows * 20 // workers] * workers,
    }  # fmt: skip


BATCHES = [
    batch(rows=1_000_000, rows_per_subscriber=20), batch(rows=4_000_000, rows_per_subscriber=20),
    batch(rows=2_000_000, rows_per_subscriber=5), batch(rows=6_000_000, rows_per_subscriber=10),
    batch(rows=6_000_000, rows_per_subscriber=10, workers=2),
]  # fmt: skip


def test_a_model_finds_the_constants_of_costs_and_its_errors_are_of_batches_that_it_has_not_seen():
    model = capacity.fit(BATCHES)
    assert model.costs["worker_cpu_s"].per_row == pytest.approx(ROW_S, rel=1e-6)
    assert model.costs["worker_cpu_s"].per_task == pytest.approx(TASK_S, rel=1e-6)
    wal = Cost(per_subscriber=pytest.approx(WAL_PERSON), per_task=pytest.approx(WAL_TASK))
    assert model.costs["wal_bytes"] == wal
    assert (model.fixed_s, model.waiting) == (pytest.approx(2), pytest.approx(1.5))
    noisy = [each | {"wal_bytes": n} for each, n in zip(BATCHES, (9e6, 1e6, 5e6, 1e6, 1e6), strict=True)]
    for cost in capacity.fit(noisy).costs.values():
        assert min(cost.per_row, cost.per_subscriber, cost.per_task) >= 0
    with pytest.raises(ValueError, match="3 batches of one worker are needed, got 2"):
        capacity.fit([BATCHES[0], BATCHES[1], BATCHES[4]])
    slow = BATCHES[-1] | {"worker_cpu_s": 2 * BATCHES[-1]["worker_cpu_s"]}
    checked = capacity.errors(capacity.fit(BATCHES), [*BATCHES[:-1], slow])
    assert [work.workers for work, _ in checked] == [1, 2]
    assert max(abs(each) for each in checked[0][1].values()) < 1e-3
    assert checked[1][1]["worker_cpu_s"] == pytest.approx(-0.5)


def test_what_a_country_needs_is_the_sum_of_shards_chunks_and_tasks_as_in_the_product():
    country = {"subscribers": 100_000_000, "rows_per_subscriber": 15, "row_bytes": 74, "hours": 8}
    model = capacity.fit(BATCHES)
    day, cut = (capacity.needs(model, **country, files=files) for files in (1, 2))
    chunks = -(-1_500_000_000 * 74 // (64 << 20))
    assert (day.rows, day.shards, day.tasks) == (1_500_000_000, 1024, 1024 + chunks)
    cpu_s = ROW_S * 1.5e9 + PERSON_S * 1e8 + TASK_S * day.tasks
    assert day.cpu_hours == pytest.approx(cpu_s / 3600)
    assert day.cores == pytest.approx(cpu_s / 28_800 / capacity.BUSY)
    assert day.wal_bytes_per_s == pytest.approx((WAL_PERSON * 1e8 + WAL_TASK * day.tasks) / 28_800)
    assert cut.wal_bytes > 1.5 * day.wal_bytes  # each file brings every shard up to date
    files = Work(workers=1, rows=1, file_bytes=4 * 9_000_000, subscribers=1, shards=4, files=4)
    assert files.tasks == 4 * (2 + 4)  # each is cut separately
    for subscribers in (1, 99_000, 400_001, 6_400_000, 100_000_000):
        assert capacity.shards_of(subscribers) == shard_count(subscribers)
    for size in (1, 9 << 20, 36_991_808, 147_973_860, 444 << 20, 600_000_001, 111 * 10**9):
        plans = plan_chunks(io.BytesIO(b"a,b\n"), size=size, target_bytes=chunk_bytes(size))
        assert capacity.chunks_of(size) == len(plans), size
    measured = json.loads(capacity.MEASURED.read_text())
    assert measured
    for each in measured:
        assert Work.of(each).tasks == each["chunks"] + each["shards"]
