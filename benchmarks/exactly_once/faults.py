"""Faults of a run: processes are killed and restarted, as a machine or its supervisor would."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Final

import psutil
import psycopg

from benchmarks.exactly_once import slow_upload
from benchmarks.exactly_once.chance import Chance
from benchmarks.exactly_once.scenarios import Upload
from benchmarks.exactly_once.world import World
from benchmarks.installation import ROOT
from scripts import services

AWAY_S: Final = 0.5  # how long something is gone at most
SLOW_S: Final = 1.0  # duration of a file for the killed sender
COMMIT_S: Final = 30.0
POLL_S: Final = 0.002
MAIN, VAULT = "DATABASE_URL", "VAULT_DATABASE_URL"


class Fault:
    """Strikes once in a run; this one never does."""

    latest = 1.0  # of the time that an undisturbed run takes

    def __init__(self, world: World, chance: Chance) -> None:
        self.world = world
        self.chance = chance

    def before(self, slug: str, number: int, upload: Upload) -> None:
        """Called before each file is sent."""

    def strike(self) -> None:
        """Called once, at a random time after the first file is sent, during the sending."""

    def afterwards(self, slug: str, uploads: Sequence[Upload]) -> None:
        """Called when all files are sent and the fault has struck: what the operator does then."""

    def _stay_away(self) -> None:
        time.sleep(self.chance.seconds(AWAY_S))

    @contextmanager
    def _connected(self, variable: str, *, database: str | None = None) -> Iterator[psycopg.Connection]:
        server, _, own = self.world.installation.environment[variable].rpartition("/")
        with psycopg.connect(f"{server}/{database or own}", autocommit=True) as connection:
            yield connection


class KilledProcess(Fault):
    """One process of a worker is killed."""

    def strike(self) -> None:
        worker = self.chance.one_of(self.world.installation.workers)
        for child in psutil.Process(worker.pid).children():
            child.kill()


class KilledWorker(Fault):
    """A worker is killed with all of its processes, and started again."""

    def strike(self) -> None:
        worker = self.chance.one_of(self.world.installation.workers)
        worker.kill()
        self._stay_away()
        worker.start(until_it_answers=False)


class KilledRedis(Fault):
    """Redis is killed; it starts again without a message."""

    def strike(self) -> None:
        redis = self.world.installation.redis
        redis.stop(signal.SIGKILL)
        self._stay_away()
        redis.start()


class CutConnections(Fault):
    """Every connection to both databases is cut."""

    def strike(self) -> None:
        for variable in (MAIN, VAULT):
            with self._connected(variable, database="postgres") as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE datname = 'mobility' AND pid <> pg_backend_pid()"
                )


class CrashedDatabase(Fault):
    """A database server stops at once, without finishing anything, and starts again."""

    def strike(self) -> None:
        server = self.chance.one_of(list(self.world.installation.postgres.values()))
        server.stop(signal.SIGQUIT)
        self._stay_away()
        server.start()


class CrashedBetween(Fault):
    """The main database stops between the commit of the vault and the publication."""

    latest = 0.3  # something must be left to publish

    def strike(self) -> None:
        # Our own connection goes with the server.
        with suppress(psycopg.OperationalError), self._connected(MAIN) as main:
            main.execute("BEGIN")
            # Anyone who publishes has to wait here, so that the moment in between lasts; who only looks, as a
            # batch does that has nothing to publish, continues.
            main.execute("LOCK TABLE reports_publication IN EXCLUSIVE MODE")
            crossed = {row[0] for row in main.execute("SELECT publication_id FROM reports_publication")}
            self._wait_for_commit(crossed)
            self.world.installation.postgres["default"].stop(signal.SIGQUIT)
        self._stay_away()
        self.world.installation.postgres["default"].start()

    def _wait_for_commit(self, crossed: set[object]) -> None:
        deadline = time.monotonic() + COMMIT_S
        with self._connected(VAULT) as vault:
            while not self._committed(vault) - crossed:
                if time.monotonic() > deadline:
                    raise RuntimeError("nothing was committed that could be published")
                time.sleep(POLL_S)

    @staticmethod
    def _committed(vault: psycopg.Connection) -> set[object]:
        return {row[0] for row in vault.execute("SELECT id FROM mobility_vaultpublication")}


class RestoredDatabase(Fault):
    """The main database is replaced by the dump made after the first file."""

    def __init__(self, world: World, chance: Chance) -> None:
        super().__init__(world, chance)
        self._dump = world.folder / "yesterday.dump"
        self._dump.unlink(missing_ok=True)

    def before(self, slug: str, number: int, upload: Upload) -> None:  # noqa: ARG002
        if number == 1:
            self.world.settle(slug, [])
            part = self._dump.with_suffix(".part")
            self._program("pg_dump", "--format=custom", f"--file={part}", self._url("mobility"))
            part.replace(self._dump)

    def strike(self) -> None:
        while not self._dump.exists():
            time.sleep(POLL_S)
        self._stay_away()
        with self._connected(MAIN, database="postgres") as connection:
            connection.execute("CREATE DATABASE restored")
            self._program("pg_restore", f"--dbname={self._url('restored')}", str(self._dump))
            connection.execute("DROP DATABASE mobility WITH (FORCE)")
            connection.execute("ALTER DATABASE restored RENAME TO mobility")

    def afterwards(self, slug: str, uploads: Sequence[Upload]) -> None:
        """The vault hands over all that the older database lacks, with the next file."""
        self.world.settle(slug, uploads)
        self.world.send(slug, uploads[-1])

    def _url(self, database: str) -> str:
        return self.world.installation.environment[MAIN].rpartition("/")[0] + f"/{database}"

    def _program(self, name: str, *arguments: str) -> None:
        programs = services.postgres_programs()
        assert programs is not None  # noqa: S101
        subprocess.run([programs / name, *arguments], check=True, capture_output=True)


class KilledSender(Fault):
    """The process that sends a file is killed; the file is sent again."""

    def __init__(self, world: World, chance: Chance) -> None:
        super().__init__(world, chance)
        self._number = chance.below(3)

    def before(self, slug: str, number: int, upload: Upload) -> None:
        if number != self._number:
            return
        more = [slow_upload.MORE_TO_COME] if upload.more_to_come else []
        command = [
            sys.executable, "-m", slow_upload.__name__, slug, str(upload.path), str(SLOW_S), *more,
        ]  # fmt: skip
        with subprocess.Popen(
            command, cwd=ROOT, env=self.world.installation.environment, stdout=subprocess.PIPE
        ) as sender:
            assert sender.stdout is not None  # noqa: S101
            sender.stdout.readline()
            time.sleep(self.chance.seconds(1.2 * SLOW_S))
            sender.kill()


FAULTS: Final[Mapping[str, Callable[[World, Chance], Fault]]] = {
    "nothing": Fault,
    "process killed": KilledProcess,
    "worker killed": KilledWorker,
    "Redis killed": KilledRedis,
    "connections cut": CutConnections,
    "database crashed": CrashedDatabase,
    "main database crashed before publication": CrashedBetween,
    "main database restored": RestoredDatabase,
    "sender killed": KilledSender,
}
