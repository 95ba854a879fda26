"""Work in the background gives way to pages: processes of a worker, and threads that seal uploads."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.conf import settings

from mobility.runtime import step_back

AUTOGROUP = Path("/proc/self/autogroup")
CHILD = """
import multiprocessing, os
from pathlib import Path
from mobility.runtime import give_way

def child(by):
    before = os.nice(0)
    give_way(by)
    print(os.nice(0) - before, Path("/proc/self/autogroup").read_text().split()[-1])

multiprocessing.get_context("fork").Process(target=child, args=(7,)).start()
"""


def priority(thread: int) -> int:
    return os.getpriority(os.PRIO_PROCESS, thread)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere threads have no priority of their own")
def test_a_thread_steps_back_alone() -> None:
    before = priority(threading.get_native_id())
    with ThreadPoolExecutor(1, initializer=step_back) as pool:
        assert pool.submit(lambda: priority(threading.get_native_id())).result() == 10
    assert priority(threading.get_native_id()) == before


@pytest.mark.skipif(not AUTOGROUP.exists(), reason="this kernel does not group processes by session")
@pytest.mark.parametrize(("leads", "session"), [(True, "7"), (False, "0")])
def test_a_session_steps_back_if_its_leader_is_the_worker(leads: bool, session: str) -> None:
    """In a session that somebody else leads, as a terminal, only the process itself does."""
    command = [sys.executable, "-c", CHILD]
    if not leads:
        command = ["sh", "-c", '"$@"; true', "sh", *command]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=settings.BASE_DIR, start_new_session=True
    )
    assert done.stdout.split() == ["7", session]
