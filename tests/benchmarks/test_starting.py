"""Programs of the Makefile start alone, where no one has set up Django."""

import subprocess
import sys
from pathlib import Path

from benchmarks import soak

FOLDER = Path(soak.__file__).parent
SETS_UP = "startup"  # sets Django up as soon as it is imported, which would help those after it


def test_every_benchmark_can_be_imported_without_django():
    modules = sorted(each.stem for each in FOLDER.glob("[!_]*.py") if each.stem != SETS_UP)
    modules += ["exactly_once.__main__", "reproduce.__main__"]
    assert {"soak", "joint_coverage", "synthesise"} < set(modules)
    code = "".join(f"import benchmarks.{each}\n" for each in modules)
    started = subprocess.run(
        [sys.executable, "-c", code], cwd=FOLDER.parent, capture_output=True, text=True, check=False
    )
    assert started.returncode == 0, started.stderr[-2000:]
