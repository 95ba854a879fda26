"""Redis and the Celery worker: shared by commands, started again if they die, stopped by the last command."""

import fcntl
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from django.conf import settings

from mobility.base import locks
from mobility.base.messages import say
from mobility.embedded.redis_program import redis_program
from mobility.embedded.service import Service, ServiceError
from reports.base.later import later

REDIS_TIMEOUT_S = 15.0
WORKER_TIMEOUT_S = 90.0  # the first start on a machine compiles kernels
redis_answers = later("mobility.embedded.answers.redis_answers")
worker_answers = later("mobility.embedded.answers.worker_answers")
RESTARTS, RESTARTS_S = 5, 600.0  # more within that time: the failure is not transient


@contextmanager
def workers() -> Iterator[Callable[[], None]]:
    """Redis and a worker run inside this block; calling what it gives starts again what is gone.

    Raises
    ------
    ServiceError : one of them does not come up, or is gone again and again; with REDIS_URL set: no worker
        answers there
    """
    if not settings.EMBEDDED_REDIS:
        if not worker_answers(3.0):
            text = "no worker is responding at REDIS_URL: start one with `celery -A mobility worker`"
            raise ServiceError(text)
        yield lambda: None
        return
    redis, worker = Service("redis"), Service("worker")
    with ended_by_signals(), locks.opened(_users_lock()) as users:
        try:
            with locks.exclusive(_start_lock()):
                fcntl.flock(users, fcntl.LOCK_SH)
                _start_missing(redis, worker)
            yield _Watch(redis, worker).look
        finally:
            with undisturbed(), locks.exclusive(_start_lock()):
                fcntl.flock(users, fcntl.LOCK_UN)
                if not locks.is_used(_users_lock()):
                    worker.stop()
                    redis.stop(grace_s=5.0)


def check_alive(*services: Service) -> None:
    """Raise ServiceError when one of the services is gone."""
    for service in services:
        if not service.is_alive():
            raise ServiceError(f"{service.name} stopped unexpectedly\n{service.last_words()}")


class _Watch:
    """Starts again those of our services that died; one that always dies is no fault that passes."""

    def __init__(self, redis: Service, worker: Service) -> None:
        self._redis, self._worker = redis, worker
        self._ours = [service for service in (redis, worker) if service.is_alive()]
        self._restarts: deque[float] = deque(maxlen=RESTARTS)

    def look(self) -> None:
        """Start what is gone.

        Raises
        ------
        ServiceError : it was started RESTARTS times within RESTARTS_S seconds, or does not come up
        """
        gone = [service for service in self._ours if not service.is_alive()]
        if not gone:
            return
        now = time.monotonic()
        if len(self._restarts) == RESTARTS and now - self._restarts[0] < RESTARTS_S:
            check_alive(*gone)
        self._restarts.append(now)
        with locks.exclusive(_start_lock()):  # another command may have done it while this one waited
            for service in gone:
                if not service.is_alive():
                    say(f"{service.name} stopped unexpectedly; restarting")
            _start_missing(self._redis, self._worker)


def in_use() -> bool:
    """Return whether some command uses the embedded services now."""
    return locks.is_used(_users_lock())


def ended_by_signals() -> AbstractContextManager[None]:
    """SIGTERM and a closed terminal end the block like Ctrl-C does: through its `finally`."""

    def leave(number: int, _: FrameType | None) -> None:
        sys.exit(128 + number)

    return _handling(leave, signal.SIGTERM, signal.SIGHUP)


def undisturbed() -> AbstractContextManager[None]:
    """Nothing interrupts the stopping: it is bounded in time."""
    return _handling(signal.SIG_IGN, signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def _handling(handler: Any, *numbers: signal.Signals) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def _start_missing(redis: Service, worker: Service) -> None:
    redis_ran = redis_answers()
    if not redis_ran:
        if not redis.is_alive():
            say("starting Redis")
            redis.start(_redis_command())
        redis.wait_until(redis_answers, timeout_s=REDIS_TIMEOUT_S)
    if worker.is_alive() or (redis_ran and worker_answers(1.0)):
        return
    say(f"starting a worker with {settings.MOBILITY_WORKER_PROCESSES} processes")
    worker.start(_worker_command())
    worker.wait_until(lambda: worker_answers(0.5), timeout_s=WORKER_TIMEOUT_S)


def _redis_command() -> list[str]:
    """A queue that no one else can reach and that keeps nothing on disk."""
    paths = settings.PATHS
    return [
        redis_program().path, "--port", "0", "--unixsocket", str(paths.redis_socket),
        "--unixsocketperm", "700", "--save", "", "--appendonly", "no", "--dir", str(paths.run),
    ]  # fmt: skip


def _worker_command() -> list[str]:
    return [
        sys.executable, "-m", "celery", "-A", "mobility", "worker",
        "--pool", "prefork", "--loglevel", "INFO", "--without-gossip", "--without-mingle",
    ]  # fmt: skip


def _users_lock() -> Path:
    return settings.PATHS.run / "users.lock"


def _start_lock() -> Path:
    return settings.PATHS.run / "start.lock"
