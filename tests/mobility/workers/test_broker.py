"""Messages in a real Redis: which comes first, and what becomes of those of a worker that stops."""

import signal
from pathlib import Path

import pytest
from kombu import Connection
from kombu.message import Message
from redis import Redis

from mobility import tasks
from mobility.celery import app
from reports.tasks import compute_density, make_export
from scripts import services
from tests.mobility.data_folder import celery_worker, until

SEPARATOR = "\x06\x16"


@pytest.fixture
def redis(broker: str):
    with Redis.from_url(broker) as client:
        client.flushall()
        yield client


def fetched(broker: str, number: int) -> list[tuple[str, str]]:
    """Return the messages that a worker with one process fetches, in order."""
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


def ask_to_wait(broker: str, began: Path) -> None:
    """Send a long task that comes before those with which a worker begins."""
    with Connection(broker) as connection:
        app.send_task("wait_long", args=(str(began),), connection=connection, priority=0)


def test_a_worker_that_is_told_to_stop_gives_its_task_back(broker: str, redis: Redis, tmp_path: Path) -> None:
    """Otherwise another worker would get it when the first one's claim runs out, after more than an hour."""
    began = tmp_path / "began"
    ask_to_wait(broker, began)
    away = "postgres://nobody@127.0.0.1:1/nowhere"  # it does not wait for databases
    own = {"DATABASE_URL": away, "VAULT_DATABASE_URL": f"{away}2", "MOBILITY_DATA_DIR": str(tmp_path / "var")}
    app_of_test = "tests.mobility.workers.slow_worker"
    with celery_worker({"REDIS_URL": broker, **own}, app=app_of_test) as worker:
        until(began.exists, within_s=90)
        worker.send_signal(signal.SIGTERM)
        worker.wait(timeout=60)
    assert ("wait_long", f"('{began}',)") in fetched(broker, int(redis.llen("celery")))


def test_a_message_of_a_lost_connection_is_lost_and_no_error_that_ends_a_worker(tmp_path: Path) -> None:
    """Giving it back and acknowledging it fail as on any connection that is lost, which Celery expects."""
    port = services.free_port()
    server, url = services.private_redis(folder=tmp_path, port=port), services.redis_url(port)
    held: list[Message] = []
    with services.running(server), Connection(url) as connection:
        ask_to_wait(url, Path("anywhere"))
        channel = connection.channel()
        consumer = connection.Consumer([app.amqp.queues["celery"]], channel=channel, accept=["json"])
        consumer.register_callback(lambda _, message: held.append(message))
        consumer.consume()
        connection.drain_events(timeout=5)
        server.stop(signal.SIGKILL)
        connection.collect(socket_timeout=1)
        channel._disconnect_pools()  # as a worker does that was just waiting for the next message
        for give_back in (held[0].ack, held[0].requeue, channel.qos.restore_unacked):
            with pytest.raises(connection.connection_errors):
                give_back()
