"""A whole installation for benchmarks: databases, Redis and its own workers, and its commands.

Every part is a real process that can be stopped or killed, and started again.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import django
import psycopg
from celery import Celery
from django.conf import settings

from scripts import services

ROOT: Final = Path(__file__).resolve().parent.parent
DATABASES: Final = ("default", "vault")
WORKER_START_S: Final = 120.0  # the first start on a machine compiles kernels
STOP_S: Final = 20.0
POLL_S: Final = 0.05
MIGRATE: Final = f"""
from django.core.management import call_command
for alias in {DATABASES}:
    call_command("migrate", database=alias, interactive=False, verbosity=0)
print(0)
"""


class Worker:
    """A Celery worker with its processes: its own session, so that one signal reaches all.

    Parameters
    ----------
    runs_in : words before its command: in which network, on which processors
    """

    def __init__(
        self,
        number: int,
        *,
        processes: int,
        environment: Mapping[str, str],
        folder: Path,
        code: Path = ROOT,
        runs_in: Sequence[str] = (),
    ) -> None:
        self.code = code
        self.name = f"worker{number}@bench"
        self._command = [
            *runs_in, sys.executable, "-m", "celery", "-A", "mobility", "worker", "--hostname", self.name,
            "--concurrency", str(processes), "--pool", "prefork", "--loglevel", "INFO",
            "--without-gossip", "--without-mingle",
        ]  # fmt: skip
        self._environment = dict(environment)
        self.log = folder / f"worker{number}.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Process id of the parent of its processes."""
        if self._process is None:
            raise RuntimeError(f"{self.name} does not run")
        return self._process.pid

    def start(self, *, until_it_answers: bool = True) -> None:
        """Start it; returns when it takes tasks.

        Raises
        ------
        SystemExit : it does not come up; the text ends with its log
        """
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=self.code,
                env=self._environment, start_new_session=True,
            )  # fmt: skip
        if until_it_answers:
            self._wait()

    def _wait(self) -> None:
        deadline = time.monotonic() + WORKER_START_S
        # Not the current application: tasks of this process would lose their priorities.
        with Celery(broker=self._environment["REDIS_URL"], set_as_current=False) as app:
            while not app.control.ping(destination=[self.name], timeout=0.5, limit=1):
                if self._process is None or self._process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit(f"{self.name} does not start\n{self.log.read_text(errors='replace')}")

    def kill(self) -> None:
        """End all of its processes at once, as a machine that loses its power."""
        self._stop(signal.SIGKILL)

    def stop(self) -> None:
        """Let it end what it does."""
        self._stop(signal.SIGTERM)

    def _stop(self, number: signal.Signals) -> None:
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            if number == signal.SIGKILL:
                os.killpg(self._process.pid, number)
            else:
                self._process.send_signal(number)
        try:
            self._process.wait(timeout=STOP_S)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._process = None


class Installation(AbstractContextManager["Installation"]):
    """Starts at the beginning of a `with` block and is gone at its end.

    Parameters
    ----------
    folder : for everything that it writes
    is_postgres : a PostgreSQL server for each database, else SQLite
    is_durable : PostgreSQL waits for the disk at each commit
    workers, processes : Celery workers, and processes of each
    environment : further settings
    host, network : address of the servers and the loopback interface, and who may come in from there
    code : folder of the software, which may be an earlier release
    """

    def __init__(
        self,
        folder: Path,
        *,
        is_postgres: bool = False,
        is_durable: bool = True,
        workers: int = 1,
        processes: int = 2,
        environment: Mapping[str, str] | None = None,
        host: str = services.LOOPBACK,
        network: str = "",
        code: Path = ROOT,
    ) -> None:
        self.code = code
        self.data = folder / "data"
        self._services = folder / "services"
        ports = {name: services.free_port() for name in ("redis", *DATABASES)}
        inherited = {name: value for name, value in os.environ.items() if not name.endswith("_URL")}
        self.environment = inherited | {
            "DJANGO_SETTINGS_MODULE": "mobility.settings",
            "MOBILITY_DATA_DIR": str(self.data),
            "REDIS_URL": services.redis_url(ports["redis"], host=host),
            "MOBILITY_ALLOW_OPEN_REDIS": "true",  # also in networks that it made
            **(environment or {}),
        }
        self.redis = services.private_redis(folder=self._folder("redis"), port=ports["redis"], host=host)
        self.postgres: dict[str, services.Server] = {}
        if is_postgres:
            programs = services.postgres_programs() or services.installed_postgres()
            for alias in DATABASES:
                self.postgres[alias] = services.postgres_server(
                    programs, folder=self._folder(alias), port=ports[alias], is_durable=is_durable,
                    host=host, network=network,
                )  # fmt: skip
            for variable, alias in (("DATABASE_URL", "default"), ("VAULT_DATABASE_URL", "vault")):
                self.environment[variable] = services.postgres_url(ports[alias], "mobility", host=host)
        self.workers = [
            Worker(
                number,
                processes=processes,
                environment=self.environment,
                folder=self._folder(f"log{number}"),
                code=code,
            )
            for number in range(1, workers + 1)
        ]

    def _folder(self, name: str) -> Path:
        folder = self._services / name
        folder.mkdir(parents=True, exist_ok=True)
        for parent in (folder, self._services, self._services.parent):
            parent.chmod(0o755)  # PostgreSQL runs under another account
        return folder

    def __enter__(self) -> Self:
        # A stopped process ends its children.
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
        try:
            self.redis.start()
            for server in self.postgres.values():
                server.start()
            if self.postgres:
                self._make_databases()
            # The first command makes secrets and, without PostgreSQL, the databases.
            self.manage("shell", "--no-imports", "-c", MIGRATE if self.postgres else "print(0)")
            for worker in self.workers:
                worker.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self.workers:
            worker.stop()
        for server in (*self.postgres.values(), self.redis):
            server.stop()

    def _make_databases(self) -> None:
        for variable in ("DATABASE_URL", "VAULT_DATABASE_URL"):
            server, _, name = self.environment[variable].rpartition("/")
            with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE {name}".encode())

    def connect(self) -> None:
        """Make Django of this process that of the installation.

        Raises
        ------
        RuntimeError : a module read the settings when it was imported: they are of another installation
        """
        if settings.configured:
            raise RuntimeError("import modules of the product after Installation.connect()")
        os.environ.update(self.environment)
        django.setup()

    def manage(self, *words: str) -> Any:
        """JSON value that a command prints.

        Raises
        ------
        SystemExit : the command fails; the text is what it said
        """
        return json.loads(self.run_text(*words))

    def run_text(self, *words: str) -> str:
        """Return the output of a command.

        Raises
        ------
        SystemExit : the command fails; the text is what it said
        """
        with self.command(*words) as process:
            output, errors = process.communicate()
        if process.returncode != 0:
            raise SystemExit(f"manage.py {words[0]} failed\n{errors}")
        return output

    def command(self, *words: str) -> "subprocess.Popen[str]":
        """`manage.py`, started as a person would start it."""
        return subprocess.Popen(
            [sys.executable, "manage.py", *words], cwd=self.code, text=True, env=self.environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
