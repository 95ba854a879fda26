"""Signs of life of a real worker: there while it works, renewed, and gone when it stops."""

import atexit
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.db import DatabaseError
from django.utils import timezone

from mobility.operations import recording, signs
from mobility.operations.models import WorkerSign
from tests.mobility.data_folder import Folder

PATIENCE_S = 40
ROOT = Path(__file__).parents[3]


def rows(folder: Folder, question: str) -> list[tuple[str, ...]]:
    with closing(sqlite3.connect(folder.paths.main_database, timeout=30)) as database:
        return database.execute(question).fetchall()


def until(answer: Callable[[], object]) -> object:
    deadline = time.monotonic() + PATIENCE_S
    while not (found := answer()):
        assert time.monotonic() < deadline, "it does not happen"
        time.sleep(0.2)
    return found


def seen(folder: Folder) -> datetime | None:
    found = rows(folder, "SELECT seen_at FROM operations_workersign")
    return datetime.fromisoformat(found[0][0]).replace(tzinfo=UTC) if found else None


@pytest.mark.slow
@pytest.mark.long
def test_a_worker_shows_life_notes_its_jobs_and_leaves_nothing_when_it_stops(folder: Folder) -> None:
    with folder.holding():
        first = until(lambda: seen(folder))
        assert abs((datetime.now(UTC) - first).total_seconds()) < PATIENCE_S
        ((queues, processes),) = rows(folder, "SELECT queues, processes FROM operations_workersign")
        assert (queues, processes > 0) == ('["celery"]', True)
        done = "SELECT name FROM operations_jobrun WHERE finished_at IS NOT NULL AND failed_at IS NULL"
        until(lambda: {"sweep", "look_after_ledger"} <= {name for (name,) in rows(folder, done)})
        until(lambda: (again := seen(folder)) and again > first)
    assert until(lambda: not folder.running())
    assert seen(folder) is None


@pytest.mark.slow
@pytest.mark.long
def test_a_worker_that_gives_its_tasks_back_leaves_nothing_either(folder: Folder, broker: str) -> None:
    """As docker/ and its systemd units stop it: Celery then says of no worker that it has shut down."""
    own = {"MOBILITY_DATA_DIR": str(folder.root), "REDIS_URL": broker, "MOBILITY_WORKER_GRACE_S": "1"}
    inherited = {name: value for name, value in os.environ.items() if not name.endswith("_URL")}
    assert folder.shell().wait(timeout=60) == 0  # makes the databases
    with subprocess.Popen(
        [sys.executable, "-m", "celery", "-A", "mobility", "worker", "-c", "1"], cwd=ROOT,
        env=inherited | own | {"REMAP_SIGTERM": "SIGQUIT", "DJANGO_SETTINGS_MODULE": "mobility.settings"},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    ) as worker:  # fmt: skip
        try:
            until(lambda: seen(folder))
            worker.send_signal(signal.SIGTERM)
            worker.wait(timeout=PATIENCE_S)
        finally:
            if worker.poll() is None:
                os.killpg(worker.pid, signal.SIGKILL)
    assert seen(folder) is None


@pytest.mark.django_db
def test_a_worker_goes_on_without_its_database(monkeypatch: pytest.MonkeyPatch, data_dir: object) -> None:
    """A sign that cannot be written is missed, and the timer of the worker goes on."""

    def refused(*_: object, **__: object) -> None:
        raise DatabaseError

    monkeypatch.setattr(signs, "show", refused)
    called: list[Callable[[], None]] = []
    timer = SimpleNamespace(call_repeatedly=lambda _, beat: called.append(beat))
    queues = SimpleNamespace(consume_from={"celery": None})
    worker = SimpleNamespace(
        hostname="celery@one", timer=timer, controller=SimpleNamespace(concurrency=2),
        app=SimpleNamespace(amqp=SimpleNamespace(queues=queues)),
    )  # fmt: skip
    monkeypatch.setattr(signs.connections["default"], "close", lambda: None)
    recording._begins(worker)
    atexit.unregister(signs.end)  # this process is no worker
    (beat,) = called
    beat()
    assert not WorkerSign.objects.exists()
    monkeypatch.undo()


@pytest.mark.django_db
def test_signs_of_two_zones_in_one_database_are_two(data_dir: object) -> None:
    now = timezone.now()
    WorkerSign.objects.create(name="celery@one", zone="operator", version="1", started_at=now, seen_at=now)
    for _ in range(2):
        signs.show("celery@one", queues=["celery"], processes=2, started_at=now)
    assert sorted(WorkerSign.objects.values_list("zone", flat=True)) == ["all", "operator"]
