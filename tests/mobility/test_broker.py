"""Messages in a real Redis: which comes first, and what becomes of those of a worker that stops."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from kombu import Connection
from redis import Redis

from mobility import tasks
from mobility.celery import app
from reports.tasks import compute_density, make_export
from scripts import services

ROOT = Path(__file__).parents[2]
SEPARATOR = "\x06\x16"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory):
    port = services.free_port()
    server = services.private_redis(folder=tmp_path_factory.mktemp("redis"), port=port)
    with services.running(server):
        yield services.redis_url(port)


@pytest.fixture
def redis(broker: str):
    with Redis.from_url(broker) as client:
        client.flushall()
        yield client


def fetched(broker: str, number: int) -> list[tuple[str, str]]:
    """What a worker with one process fetches, one message after the other."""
    found: list[tuple[str, str]] = []

    def note(_: object, message) -> None:
        found.append((message.headers["task"].rpartition(".")[2], message.headers["argsrepr"]))
        message.ack()

    with Connection(broker) as connection:
        consumer = connection.Consumer([app.amqp.queues["celery"]], callbacks=[note], accept=["json"])
        consumer.qos(prefetch_count=1)
        with consumer:
            while len(found) < number:
                connection.drain_events(timeout=5)
    return found


def test_what_is_short_comes_first_then_what_somebody_waits_for_then_batches(broker, redis) -> None:
    with Connection(broker) as connection:
        for index in range(3):
            tasks.read_chunk.apply_async(args=("huge", index), connection=connection)
            tasks.apply_shard.apply_async(args=("other", index), connection=connection)
        compute_density.apply_async(args=(7,), connection=connection)
        make_export.apply_async(args=(8,), connection=connection)
        for task in (tasks.sweep, tasks.hand_over, tasks.look_after_ledger):
            task.apply_async(connection=connection)
        tasks.advance.apply_async(args=("small",), connection=connection)
    assert {name: redis.llen(f"celery{name}") for name in ("", SEPARATOR + "3", SEPARATOR + "6")} == {
        "": 4, SEPARATOR + "3": 2, SEPARATOR + "6": 6,
    }  # fmt: skip
    assert fetched(broker, 12) == [
        ("sweep", "()"), ("hand_over", "()"), ("look_after_ledger", "()"), ("advance", "('small',)"),
        ("compute_density", "(7,)"), ("make_export", "(8,)"),
        ("read_chunk", "('huge', 0)"), ("apply_shard", "('other', 0)"),
        ("read_chunk", "('huge', 1)"), ("apply_shard", "('other', 1)"),
        ("read_chunk", "('huge', 2)"), ("apply_shard", "('other', 2)"),
    ]  # fmt: skip


@pytest.mark.slow
def test_a_worker_that_is_told_to_stop_gives_its_task_back(broker: str, redis: Redis, tmp_path: Path) -> None:
    """Otherwise another worker would get it when the first one's claim runs out, after more than an hour."""
    began = tmp_path / "began"
    away = "postgres://nobody@127.0.0.1:1/nowhere"  # a worker does not wait for its databases
    environment = os.environ | {
        "MOBILITY_DATA_DIR": str(tmp_path / "var"), "REDIS_URL": broker, "REMAP_SIGTERM": "SIGQUIT",
        "DATABASE_URL": away, "VAULT_DATABASE_URL": away + "2", "MOBILITY_WORKER_GRACE_S": "1",
        "DJANGO_SETTINGS_MODULE": "mobility.settings",
    }  # fmt: skip
    command = [sys.executable, "-m", "celery", "-A", "tests.mobility.slow_worker", "worker", "-c", "1"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with Connection(broker) as connection:
        app.send_task("wait_long", args=(str(began),), connection=connection, priority=6)
    with subprocess.Popen(command, cwd=ROOT, env=environment, start_new_session=True, **quiet) as worker:
        try:
            deadline = time.monotonic() + 90
            while not began.exists():
                assert time.monotonic() < deadline
                time.sleep(0.1)
            worker.send_signal(signal.SIGTERM)
            worker.wait(timeout=30)
        finally:
            if worker.poll() is None:
                os.killpg(worker.pid, signal.SIGKILL)
    assert ("wait_long", f"('{began}',)") in fetched(broker, int(redis.llen(f"celery{SEPARATOR}6")))
