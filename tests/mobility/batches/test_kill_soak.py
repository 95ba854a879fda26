"""The soak of exactly-once in short: each fault once, on real servers and workers. `make soak` runs more."""

import subprocess
import sys

import pytest
from django.conf import settings

from benchmarks.exactly_once.faults import FAULTS

# 4 MiB and more a file, so that each is read in several chunks.
ROWS = 200_000


@pytest.mark.long
def test_whatever_is_killed_tallies_end_the_same() -> None:
    done = subprocess.run(
        [
            sys.executable, "-m", "benchmarks.exactly_once",
            "--runs", str(len(FAULTS)), "--rows", str(ROWS),
        ],
        cwd=settings.BASE_DIR, text=True, capture_output=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    for fault in FAULTS:
        assert any(line.startswith("run") and fault in line for line in lines), fault
    assert lines[-1] == f"{len(FAULTS)} runs, 0 with a difference"
