"""PostgreSQL's own programs: found, led to a database, and run.

Passwords reach them by their environment, never by their arguments, which every account can read.
"""

import os
import re
import shutil
import subprocess
from typing import Final

from django.db.backends.base.base import BaseDatabaseWrapper

from mobility.base.errors import OperationsError

PROGRAMS: Final = ("pg_dump", "pg_restore", "psql")
SAID_MAX: Final = 300  # characters


def program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise OperationsError(
            f"{name} was not found: install the PostgreSQL client programs (postgresql-client)"
        )
    return found


def check_versions(connection: BaseDatabaseWrapper) -> None:
    """Raise OperationsError unless the programs are there and not older than the server."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version_num")
        server = int(cursor.fetchone()[0]) // 10_000
    for name in PROGRAMS:
        printed = run([program(name), "--version"], env=None, what=name)
        found = re.search(r"(\d+)", printed)
        if found is None or int(found[1]) < server:
            raise OperationsError(
                f"{name} must have version {server} or later, like the server, got "
                f"{printed.strip()!r}: install postgresql-client-{server}"
            )


def addressed(connection: BaseDatabaseWrapper) -> tuple[list[str], dict[str, str]]:
    """Arguments and environment that lead a program to a database, as Django's `dbshell` does."""
    words, env = connection.client.settings_to_cmd_args_env(connection.settings_dict, [])
    _, *arguments = words
    if connection.settings_dict.get("NAME"):
        arguments = [*arguments[:-1], f"--dbname={arguments[-1]}"]
    return arguments, dict(env or {})


def run(command: list[str], *, env: dict[str, str] | None, what: str) -> str:
    """Return the output of a program."""
    done = subprocess.run(
        command, env=os.environ | (env or {}), capture_output=True, text=True, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if done.returncode != 0:
        raise failure(what, done.stderr)
    return done.stdout


def failure(what: str, said: str) -> OperationsError:
    """A program ended badly; `said`: what it wrote on standard error."""
    first = (said.strip().splitlines() or ["no error message"])[0]
    return OperationsError(f"{what} failed: {first[:SAID_MAX]}")
