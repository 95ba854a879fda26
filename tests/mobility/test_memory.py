"""Memory that arrays have freed is kept, and given to the next ones without the kernel."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ARRAYS = """
import resource
import numpy as np
from mobility import memory
{prepare}
def faults(n):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(n):
        held = [np.ones(3 << 20, np.uint8) for _ in range(24)]
        del held
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults(2)
print(faults(20))
"""


def faults(prepare: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", ARRAYS.format(prepare=prepare)], capture_output=True, text=True, check=True
    )
    return int(done.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="mallopt is the GNU C library's")
def test_freed_memory_is_used_again() -> None:
    assert faults("memory.keep_freed()") < faults("") / 10


LIMIT = """
import threading
import numpy as np
import pyarrow as pa
from mobility import memory
memory.limit({megabytes})
threads = [threading.Thread(target=lambda: np.ones(1 << 20).sum()) for _ in range(8)]
[thread.start() for thread in threads], [thread.join() for thread in threads]
for make in (lambda n: np.ones(n, np.uint8), pa.allocate_buffer):
    held = make(100 << 20)
    del held
    try:
        make(400 << 20)
        print("more")
    except MemoryError:
        memory.lift_limit()
        make(400 << 20)
        memory.hold_limit()
        print("refused")
"""


@pytest.mark.parametrize(("megabytes", "found"), [(300, "refused"), (0, "more")])
@pytest.mark.skipif(sys.platform != "linux", reason="the kernel counts what is asked for privately")
def test_a_process_has_a_limit_of_memory_that_threads_and_arrow_live_with(megabytes: int, found: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIMIT.format(megabytes=megabytes)], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [found, found]


BEHAVE = """
import os, django, resource
from celery.signals import task_prerun, worker_process_init
import mobility.celery
from mobility import memory
django.setup()
before = os.nice(0)
worker_process_init.send(None)
limit = lambda: resource.getrlimit(resource.RLIMIT_DATA)[0]
given = limit()
memory.lift_limit()
lifted = limit()
task_prerun.send(None)
print(os.nice(0) - before, given > 500_000_000, lifted != given, limit() == given)
"""
CONNECTIONS = """
import django
from celery.fixups.django import DjangoWorkerFixup
from celery.signals import task_postrun, task_prerun
from mobility.celery import app
django.setup()
from django.db import connections
vault = connections["vault"]
vault.ensure_connection()
first = vault.connection
vault.close_at = None
after_task = DjangoWorkerFixup(app).close_database
for moment in (after_task, lambda: task_prerun.send(None), lambda: task_postrun.send(None)):
    moment()
    print(vault.connection is first)
for signal in (task_prerun, task_postrun):
    vault.ensure_connection()
    vault.close_at = 0
    signal.send(None)
    print(vault.connection is None)
"""


def behaviour(tmp_path: Path, program: str) -> list[str]:
    environment = os.environ | {
        "MOBILITY_DATA_DIR": str(tmp_path), "MOBILITY_WORKER_NICE": "3", "MOBILITY_TASK_MEMORY_MB": "500",
        "DJANGO_SETTINGS_MODULE": "mobility.settings",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
    )
    return done.stdout.split()


def test_processes_of_a_worker_step_back_and_have_their_limit_in_each_task(tmp_path: Path) -> None:
    """The limit of a task that has met it was lifted."""
    assert behaviour(tmp_path, BEHAVE) == ["3", "True", "True", "True"]


def test_tasks_keep_connections_that_are_not_too_old(tmp_path: Path) -> None:
    assert behaviour(tmp_path, CONNECTIONS) == ["True"] * 5
