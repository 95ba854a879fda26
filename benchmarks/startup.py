"""Processor time that processes take until they work: commands that only read, --help, web servers, a worker.

    python -m benchmarks.startup [--rounds 5]

Prints a table: the least of some rounds, also as a multiple of what Django takes with only three of its apps.
Commands are asked for a study that does not exist.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
DJANGO: Final = "django.contrib.auth django.contrib.contenttypes django.contrib.sessions"
BASE: Final = f"""
import django
from django.conf import settings
settings.configure(INSTALLED_APPS={DJANGO.split()})
django.setup()
"""
WEB: Final = """
from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver
import mobility
get_wsgi_application(), get_resolver().url_patterns
"""
WORKER: Final = (
    "import django, mobility.celery; django.setup(); mobility.celery.app.loader.import_default_modules()"
)
COMMANDS: Final = [
    path.stem
    for package in ("mobility", "reports")
    for path in sorted((ROOT / package).rglob("management/commands/*.py"))
    if path.stem != "__init__"
]
MANAGE: Final = "manage.py"
PROCESSES: Final = {
    "Django with three apps": ("all", ["-c", BASE]),
    "`coverage`": ("all", [MANAGE, "coverage", "none"]),
    "`export_report`": ("all", [MANAGE, "export_report", "none"]),
    "`statement`": ("all", [MANAGE, "statement", "none"]),
    "`worker_health`": ("all", [MANAGE, "worker_health"]),
    "web server of analysts": ("analyst", ["-c", WEB]),
    "web server of both zones": ("all", ["-c", WEB]),
    "worker of both zones": ("all", ["-c", WORKER]),
}


def seconds(arguments: list[str], *, zone: str, folder: str) -> float:
    """Processor seconds of a process, its own and the kernel's."""
    own = {"MOBILITY_DATA_DIR": folder, "MOBILITY_ZONE": zone}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=os.environ | own, capture_output=True, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(folder: str, *, rounds: int) -> dict[str, float]:
    """The least of some rounds; all processes take turns, so that a slow moment hits each of them."""
    asked = dict(PROCESSES)
    asked |= {f"`{name} --help`": ("all", [MANAGE, name, "--help"]) for name in COMMANDS}
    taken = dict.fromkeys(asked, float("inf"))
    for _ in range(rounds):
        for name, (zone, arguments) in asked.items():
            taken[name] = min(taken[name], seconds(arguments, zone=zone, folder=folder))
    return taken


def table(taken: dict[str, float]) -> str:
    """Markdown; of --help the quickest and the slowest."""
    helps = sorted((each for each in taken if "--help" in each), key=taken.__getitem__)
    base = taken[next(iter(PROCESSES))]
    lines = ["| process | processor seconds | times Django |", "| --- | --- | --- |"]
    for name in (*PROCESSES, helps[0], helps[-1]):
        lines.append(f"| {name} | {taken[name]:.2f} | {taken[name] / base:.1f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory(prefix="mobility-startup-") as folder:
        seconds([MANAGE, "worker_health"], zone="all", folder=folder)  # makes the databases
        sys.stdout.write(table(measure(folder, rounds=rounds)) + "\n")


if __name__ == "__main__":
    main()
