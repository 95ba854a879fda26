"""Processes of workers: memory that arrays have freed is used again, it has a limit, and pages come first."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.conf import settings

from mobility.base.runtime import step_back

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="of the GNU C library and of Linux")
ARRAYS = """
import resource
import numpy as np
from mobility.base import memory
def faults(n):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(n):
        held = [np.ones(3 << 20, np.uint8) for _ in range(24)]
        del held
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults(2)
print(faults(10))
memory.keep_freed()
faults(2)
print(faults(10))
"""
LIMIT = """
import resource, threading
import numpy as np
import pyarrow as pa
from mobility.base import memory
unlimited = resource.getrlimit(resource.RLIMIT_DATA)
memory.limit(0)
print(resource.getrlimit(resource.RLIMIT_DATA) == unlimited)
memory.limit(300)
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
TASKS = """
import os, django, resource
from celery.fixups.django import DjangoWorkerFixup
from celery.signals import task_postrun, task_prerun, worker_process_init
from mobility.celery import app
from mobility.base import memory
django.setup()
from django.db import connections
before = os.nice(0)
worker_process_init.send(None)
limit = lambda: resource.getrlimit(resource.RLIMIT_DATA)[0]
given = limit()
memory.lift_limit()
lifted = limit()
task_prerun.send(None)
print(os.nice(0) - before, given > 500_000_000, lifted != given, limit() == given)
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


def printed(tmp_path, program: str) -> list[str]:
    environment = os.environ | {
        "MOBILITY_DATA_DIR": str(tmp_path), "MOBILITY_WORKER_NICE": "3", "MOBILITY_TASK_MEMORY_MB": "500",
        "DJANGO_SETTINGS_MODULE": "mobility.settings",
    }  # fmt: skip
    options = {"capture_output": True, "text": True, "env": environment}
    return subprocess.run([sys.executable, "-c", program], check=True, **options).stdout.split()


def test_freed_memory_is_used_again(tmp_path) -> None:
    usual, kept = map(int, printed(tmp_path, ARRAYS))
    assert kept < usual / 10


def test_a_process_has_a_limit_of_memory_that_threads_and_arrow_live_with(tmp_path) -> None:
    assert printed(tmp_path, LIMIT) == ["True", "refused", "refused"]


def test_processes_of_a_worker_step_back_and_keep_limits_and_connections_over_tasks(tmp_path) -> None:
    assert printed(tmp_path, TASKS) == ["3", "True", "True", "True", *["True"] * 5]


# --- work in the background gives way to pages -------------------------------------------------------------
AUTOGROUP = Path("/proc/self/autogroup")
CHILD = """
import multiprocessing, os
from pathlib import Path
from mobility.base.runtime import give_way

def child(by):
    before = os.nice(0)
    give_way(by)
    print(os.nice(0) - before, Path("/proc/self/autogroup").read_text().split()[-1])

multiprocessing.get_context("fork").Process(target=child, args=(7,)).start()
"""


def test_a_thread_steps_back_alone() -> None:
    def own_priority() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    before = own_priority()
    with ThreadPoolExecutor(1, initializer=step_back) as pool:
        assert pool.submit(own_priority).result() == 10
    assert own_priority() == before


@pytest.mark.skipif(not AUTOGROUP.exists(), reason="this kernel does not group processes by session")
@pytest.mark.parametrize(("leads", "session"), [(True, "7"), (False, "0")])
def test_a_session_steps_back_if_its_leader_is_the_worker(leads: bool, session: str) -> None:
    command = [sys.executable, "-c", CHILD]
    if not leads:
        command = ["sh", "-c", '"$@"; true', "sh", *command]
    options = {"cwd": settings.BASE_DIR, "start_new_session": True}
    done = subprocess.run(command, capture_output=True, text=True, check=True, **options)
    assert done.stdout.split() == ["7", session]
