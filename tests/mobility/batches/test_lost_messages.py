"""A real Redis loses its messages while a batch is at work: what has not begun is asked for again at once."""

import signal
import time
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from kombu import Connection
from kombu.message import Message
from redis import Redis

from mobility import tasks
from mobility.batches import dispatching, fairness, reading, running
from mobility.batches.broker import has_forgotten
from mobility.celery import app
from mobility.operations.sweeping import sweep
from mobility.vault.models.batch import Batch, Chunk
from mobility.workers import queues
from scripts import services
from tests.mobility.pipeline import fresh

pytestmark = pytest.mark.django_db(databases=["default", "vault"])


class Broker:
    """A separate Redis, and the steps of a worker of one process with its messages."""

    def __init__(self, folder: Path) -> None:
        self._port = services.free_port()
        self.server = services.private_redis(folder=folder, port=self._port)
        self.url = services.redis_url(self._port)

    def send(self, task: str, *ids: str | int, **_: int) -> None:
        with Connection(self.url) as connection:
            getattr(tasks, task).apply_async(args=ids, connection=connection)

    def length(self) -> int:
        return queues.depth("celery")[0]

    def work_one(self) -> tuple[str, list[str | int]] | None:
        """Fetch a message, do what it says, and acknowledge it; None: there is none."""
        done: list[tuple[str, list[str | int]]] = []

        def work(body: Any, message: Message) -> None:
            task, ids = message.headers["task"].rpartition(".")[2], body[0]
            getattr(running, task)(*ids)
            message.ack_log_error(dispatching.log, (Exception,))
            done.append((task, ids))

        with Connection(self.url) as connection:
            consumer = connection.Consumer([app.amqp.queues["celery"]], callbacks=[work], accept=["json"])
            consumer.qos(prefetch_count=1)
            with consumer:
                while not done and self.length():
                    connection.drain_events(timeout=5)
        return done[0] if done else None

    def work_steps(self) -> None:
        """Only the first level runs: chunks and shards continue waiting."""
        with Redis(port=self._port) as redis:
            while redis.llen("celery"):
                self.work_one()

    def work(self) -> None:
        while self.work_one():
            pass

    def is_flushed(self) -> None:
        with Redis(port=self._port) as redis:
            redis.flushall()

    def is_restarted(self) -> None:
        self.server.stop(signal.SIGKILL)
        self.server.start()

    def comes_back_with_an_old_dump(self) -> None:
        """Restore an old dump, as a Redis that saves now and then: it has a mark, no later messages."""
        with Redis(port=self._port) as redis:
            lists = {name: redis.lrange(name, 0, -1) for name in redis.keys("celery*")}
            redis.delete(*lists)
            redis.save()
            for name, messages in lists.items():
                redis.rpush(name, *messages)
        self.is_restarted()


@pytest.fixture
def broker(pipeline, tmp_path, settings, monkeypatch):
    folder = tmp_path / "redis"
    folder.mkdir()
    broker = Broker(folder)
    settings.CELERY_BROKER_URL = broker.url
    settings.MOBILITY_WORKER_PROCESSES = 2
    monkeypatch.setattr(dispatching, "send", broker.send)
    with services.running(broker.server):
        yield broker


@pytest.mark.parametrize("lose", [Broker.is_flushed, Broker.comes_back_with_an_old_dump])
def test_a_batch_goes_on_with_the_next_sweep(make_pipeline, broker, pipeline, small_chunks, extract, lose):
    """No lease runs out in this test: each lasts for two minutes."""
    batch = pipeline.receive(extract[0])
    sweep()
    while Chunk.objects.filter(batch=batch, is_done=True).count() < 2:
        assert broker.work_one()
    for state in (Batch.State.READING, Batch.State.MERGING):
        while fresh(batch).state != state:
            assert broker.work_one()
        assert broker.length() > 0
        lose(broker)
        assert broker.length() == 0
        for _ in range(2):
            sweep()
            assert broker.length() == 1
    broker.work()
    assert fresh(batch).state == Batch.State.DONE
    assert pipeline.visitors(1, 1) == batch.subscriber_days > 0


@pytest.mark.usefixtures("small_chunks")
def test_what_only_waits_for_longer_than_a_lease_is_not_asked_for_twice(broker, pipeline, extract, settings):
    """No one takes chunks for eight leases; then one is lost though others wait."""
    settings.MOBILITY_BATCH_LEASE_S = 0.1
    batch = pipeline.receive(extract[0])
    sweep()
    broker.work_steps()
    waiting = broker.length()
    for _ in range(8):
        time.sleep(0.15)
        sweep()
        broker.work_steps()
        assert broker.length() == waiting == 4
    long_ago = timezone.now() - 2 * fairness.CLOCKS_DIFFER
    Chunk.objects.filter(batch=batch, index=2).update(alive_until=long_ago)
    time.sleep(0.15)
    sweep()
    broker.work_steps()
    assert broker.length() == waiting + 1


def test_what_has_begun_is_not_asked_for_again(broker, pipeline, small_chunks, extract, monkeypatch):
    """A broker that dies every minute does not use up the attempts of a task that takes an hour."""
    batch, real = pipeline.receive(extract[0]), reading.read_chunk

    def disturbed(batch: Batch, chunk: Chunk, *rest: Any) -> None:
        if chunk.index == 0:
            for _ in range(running.MAX_ATTEMPTS):
                broker.is_flushed()
                sweep()
                assert broker.work_one() == ("advance", [str(batch.pk)])  # by another process
        real(batch, chunk, *rest)

    monkeypatch.setattr(reading, "read_chunk", disturbed)
    sweep()
    done = []
    while work := broker.work_one():
        done.append(work)
    assert done.count(("read_chunk", [str(batch.pk), 0])) == 1
    assert Chunk.objects.filter(batch=batch).count() > 4
    assert fresh(batch).state == Batch.State.DONE


def test_one_of_all_who_look_is_told(broker):
    assert [has_forgotten() for _ in range(3)] == [True, False, False]
    broker.is_restarted()
    assert [has_forgotten() for _ in range(3)] == [True, False, False]
    broker.server.stop()
    assert not has_forgotten()  # nothing can be handed to it either
