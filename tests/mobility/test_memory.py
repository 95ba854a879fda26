"""Memory that arrays have freed is kept, and given to the next ones without the kernel."""

import subprocess
import sys

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
