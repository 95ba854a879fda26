"""Run the tests with the services that they need, then say what they cost; leave nothing behind.

`--long` runs the tests that take long; without it the others run. `--long --changed-since REVISION` runs only
those that guard what changed since that revision. `--set-budget` writes tests/budget.toml. Other options go
to pytest: `make test ARGS="-k upload"`.
"""

import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil

from scripts import test_costs
from scripts.long_tests import guarding
from scripts.services import install, postgres

ROOT: Final = Path(__file__).resolve().parent.parent
log = logging.getLogger("run_tests")

BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")
E2E: Final = "tests/e2e"
NOTHING_COLLECTED: Final = 5
INTERRUPTED: Final = 130
# Long tests are given to processes in the groups of tests/conftest.py, whose order is kept.
DISTRIBUTION: Final = {True: ("loadgroup", "--no-loadscope-reorder"), False: ("worksteal",)}
GRACE_S: Final = 30


@dataclass
class Run:
    """One call: what is run, where it may write, and what it cost so far."""

    options: list[str]
    folder: Path
    is_long: bool
    postgres_url: str
    costs: dict[str, list[test_costs.Cost]] = field(default_factory=dict)

    @property
    def chosen(self) -> str:
        """Expression for pytest's marks."""
        return "long" if self.is_long else "not long"

    def everything(self) -> int:
        """Run what is chosen, on SQLite and on PostgreSQL; the fast ones at the same time."""
        if self.is_long:
            return max(self.default(), self.on_postgres())
        postgres = self._start_on_postgres(in_background=True)
        return max(self.default(), self._end(postgres))

    def default(self) -> int:
        """Run those that are chosen, on SQLite."""
        modules = modules_with("long") if self.is_long else ["tests"]
        return self._end(self._start("long" if self.is_long else "fast", self.chosen, modules, {}))

    def on_postgres(self) -> int:
        """Run the tests of what the databases must guarantee, again on PostgreSQL."""
        if self.is_long and not any(test.is_of_database for test in self.costs["long"]):
            return 0
        return self._end(self._start_on_postgres())

    def _start_on_postgres(self, *, in_background: bool = False) -> "Started":
        server = self.postgres_url.rpartition("/")[0]
        names = {"DATABASE_URL": "main", "VAULT_DATABASE_URL": "vault"}
        # Another run may use the same server.
        databases = {key: f"{server}/mobility_{name}_{os.getpid()}" for key, name in names.items()}
        name = "long_postgres" if self.is_long else "postgres"
        modules = [
            path for path in modules_with("database") if not self.is_long or path in modules_with("long")
        ]
        return self._start(
            name, f"database and {self.chosen}", modules, databases, in_background=in_background
        )

    def _start(
        self,
        name: str,
        marks: str,
        modules: list[str],
        databases: dict[str, str],
        *,
        in_background: bool = False,
    ) -> "Started":
        """Begin a run of pytest; one in the background is one process, which gives way to all others."""
        log.info("tests that are %s%s", marks, ", on PostgreSQL" if databases else ", on SQLite")
        folder = self.folder / "".join(word[0] for word in name.split("_"))
        command = [
            *(["nice"] if in_background else []), sys.executable, "-m", "pytest",
            "-n", "0" if in_background else "2", "--dist", *DISTRIBUTION[self.is_long], "-m", marks,
            "-p", "tests.costs", "--costs", str(self.folder / f"{name}.jsonl"),
            "-o", f"cache_dir={self.folder / 'cache'}", "--basetemp", str(folder), *self.options,
            *([] if any(map(is_path, self.options)) else modules),
        ]  # fmt: skip
        # Without compiled modules, tests take three times as long to collect, and processes to start.
        changes = {"TEST_POSTGRES_URL": self.postgres_url, "PYTHONDONTWRITEBYTECODE": ""}
        changes["MIGRATED_DIR"] = str(self.folder)
        output = self.folder / f"{name}.out" if in_background else None
        return Started(name, start(command, os.environ | changes | databases, output=output), output)

    def _end(self, started: "Started") -> int:
        code = wait_for(started.process)
        if started.output:
            sys.stdout.write(started.output.read_text(encoding="utf-8"))
        self.costs[started.name] = test_costs.read_tests(self.folder / f"{started.name}.jsonl")
        for line in test_costs.report(started.name, self.costs[started.name]):
            sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
        return 0 if code == NOTHING_COLLECTED else code


@dataclass(frozen=True)
class Started:
    """A run of pytest that has begun; the file that its output goes to, if it is shown at the end only."""

    name: str
    process: subprocess.Popen[bytes]
    output: Path | None


def main(words: list[str]) -> int:
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s", stream=sys.stderr)
    # In the background of a script Ctrl-C is ignored, also by every process that the tests start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # stop the services all the same
    is_long, sets_budget = "--long" in words, "--set-budget" in words
    options = [word for word in words if word not in ("--long", "--set-budget")]
    if "--changed-since" in options:
        place = options.index("--changed-since")
        options[place : place + 2] = guarding(options[place + 1])
        if not options:
            log.info("nothing that a long test guards has changed")
            return 0
    ensure_programs(is_long=is_long)
    try:
        with nothing_left_behind() as folder, ExitStack() as services:
            run = Run(options, folder, is_long, services.enter_context(postgres()))
            loop_s = test_costs.reference_s()
            code = run.everything()
            loop_s = (loop_s + test_costs.reference_s()) / 2
            judge(run, loop_s=loop_s, sets_budget=sets_budget)
            return code
    except KeyboardInterrupt:
        log.info("interrupted; everything that was started is stopped")
        return INTERRUPTED


def modules_with(mark: str) -> list[str]:
    """Return the modules of tests that name a mark, so that no others are collected; all of E2E are long."""
    found = {path for path in ROOT.glob("tests/**/test_*.py") if f"mark.{mark}" in path.read_text("utf-8")}
    if mark == "long":
        found.update((ROOT / E2E).glob("test_*.py"))
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


def is_path(word: str) -> bool:
    """Return whether an option for pytest says where the tests are."""
    return (ROOT / word.partition("::")[0]).exists()


def judge(run: Run, *, loop_s: float, sets_budget: bool) -> None:
    """Warn of folders above their budget; a part of the tests has none."""
    if sets_budget:
        test_costs.write_budget(run.costs, loop_s=loop_s)
    elif not run.options:
        for name, tests in run.costs.items():
            for line in test_costs.over_budget(name, tests, loop_s=loop_s):
                log.warning("%s", line)


def start(
    command: list[str], environment: dict[str, str], *, output: Path | None = None
) -> subprocess.Popen[bytes]:
    """Start a command of the tests; its output is shown, or written to a file."""
    with output.open("wb") if output else nullcontext() as file:
        return subprocess.Popen(command, env=environment, cwd=ROOT, stdout=file, stderr=file)


def wait_for(process: subprocess.Popen[bytes]) -> int:
    """Wait for the end. A Ctrl-C is left to it for a while: its fixtures can stop what they started."""
    try:
        return process.wait()
    except BaseException:
        try:
            process.send_signal(signal.SIGINT)
            process.wait(GRACE_S)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            process.kill()
        raise


@contextmanager
def nothing_left_behind() -> Iterator[Path]:
    """A folder for all that is written; at the end it and every process that was started are gone."""
    folder = Path(tempfile.mkdtemp(prefix="mt-"))  # short: paths of sockets must be
    folder.chmod(0o755)  # PostgreSQL runs under its own account
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
    try:
        yield folder
    finally:
        end_children()
        shutil.rmtree(folder, ignore_errors=True)


def end_children() -> None:
    """End every process that was started here, also one whose parent has died: it has our TMPDIR."""
    left = [each for each in psutil.process_iter() if each.pid != os.getpid() and _is_ours(each)]
    for process in left:
        if words := _words(process):
            log.info("ending process %s, which was left: %s", process.pid, " ".join(words)[:100])
            _signal(process, signal.SIGTERM)
    _, alive = psutil.wait_procs(left, timeout=5)
    for process in alive:
        _signal(process, signal.SIGKILL)
    psutil.wait_procs(alive, timeout=5)


def _is_ours(process: psutil.Process) -> bool:
    try:
        return bool(process.environ().get("TMPDIR") == os.environ["TMPDIR"])
    except (psutil.Error, OSError):
        return False


def _words(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    with suppress(psutil.NoSuchProcess):
        process.send_signal(number)


def ensure_programs(*, is_long: bool) -> None:
    """Install what the tests need and is missing; nginx, for the test of a deployment, takes root."""
    if not any(shutil.which(name) for name in BROWSERS):
        install("chromium")
    if is_long and os.getuid() == 0 and not shutil.which("nginx"):
        install("nginx-light")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
