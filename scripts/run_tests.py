"""Run tests with the services that they need; start what is missing, and stop it afterwards.

`--long` runs those that take long, and without it the others. Other options go to pytest:
`make test ARGS="-k upload"`.
"""

import logging
import os
import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from scripts.services import install, postgres

ROOT = Path(__file__).resolve().parent.parent
log = logging.getLogger("run_tests")

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
NOTHING_COLLECTED = 5
LONG = "--long"


def main(words: list[str]) -> int:
    chosen = "long" if LONG in words else "not long"
    options = [word for word in words if word != LONG]
    # In the background of a script Ctrl-C is ignored, also by every process that the tests start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s", stream=sys.stderr)
    ensure_browser()
    if chosen == "long":
        ensure_proxy()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # stop the services all the same
    with ExitStack() as services:
        environment = os.environ | {"TEST_POSTGRES_URL": services.enter_context(postgres())}
        return max(
            run_default(options, environment, chosen=chosen),
            run_on_postgres(options, environment, chosen=chosen),
        )


def run_default(options: list[str], environment: dict[str, str], *, chosen: str) -> int:
    """Those that are chosen, on SQLite."""
    log.info("tests that are %s, on SQLite", chosen)
    return pytest(["-m", chosen, *options], environment)


def run_on_postgres(options: list[str], environment: dict[str, str], *, chosen: str) -> int:
    """The tests of what the databases must guarantee, again on PostgreSQL."""
    log.info("tests that are database and %s, on PostgreSQL", chosen)
    server = environment["TEST_POSTGRES_URL"].rpartition("/")[0]
    databases = {"DATABASE_URL": f"{server}/mobility_main", "VAULT_DATABASE_URL": f"{server}/mobility_vault"}
    return pytest(["-m", f"database and {chosen}", *options], environment | databases)


def pytest(options: list[str], environment: dict[str, str]) -> int:
    """Two processes; the tests of a file stay together, because some share a running server."""
    command = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadfile", *options]
    code = subprocess.run(command, check=False, env=environment, cwd=ROOT).returncode
    return 0 if code == NOTHING_COLLECTED else code


def ensure_browser() -> None:
    if not any(shutil.which(name) for name in BROWSERS):
        install("chromium")


def ensure_proxy() -> None:
    """For the test of a deployment. It takes root: nothing is installed for others."""
    if os.getuid() == 0 and not shutil.which("nginx"):
        install("nginx-light")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
