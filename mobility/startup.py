"""Checks of a server or a worker before it serves; commands of `manage.py` run them themselves."""

import sys
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from django.conf import settings
from django.core.checks import ERROR, run_checks
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, connections

from mobility.base import locks
from mobility.operations.probes import databases

# With this code or 3 of a process gunicorn ends, with others it starts another one each time. 3 is also what
# any exception in a start gives, which may pass: units start again after 3, and never after this one.
EXIT_CODE = 4
# Late imports of the linear programs of scenarios: 40 MB, and 0.4 s that the first reader would wait.
SOLVER = ("scipy.optimize", "scipy.sparse.csgraph", "scipy.special")


def _refuse(*lines: str) -> NoReturn:
    print(*lines, sep="\n", file=sys.stderr, flush=True)  # noqa: T201
    raise SystemExit(EXIT_CODE)


def refuse_unreadable() -> None:
    """End this process where a setting means nothing, or names a file that cannot be read.

    Raises
    ------
    SystemExit : standard error then names the variable; a secret is never in it
    """
    try:
        hasattr(settings, "MOBILITY_ZONE")  # the first look at any reads them all
    except ImproperlyConfigured as error:
        _refuse(f"refusing to start: {error}")


def refuse_unsafe() -> None:
    """End this process where a system check finds an error. Django itself checks in commands only.

    Raises
    ------
    SystemExit : standard error then has every error, its hint and its id, and no secret
    """
    errors = [message for message in run_checks() if message.is_serious(ERROR) and not message.is_silenced()]
    if errors:
        lines = [f"{message.msg} ({message.id})\n  hint: {message.hint}" for message in errors]
        _refuse("refusing to start:", *lines)


def hold_files() -> None:
    """Keep `restore` from replacing files of SQLite while this process lives; wait while it is at it.

    A server of databases tells itself who is connected; who works on a file is seen by nothing else.
    """
    if has_files():
        locks.share_for_life(files_lock())


def load_solver() -> None:
    """Load what pages of scenarios compute with, in a web server that has them."""
    if settings.HAS_REPORTS:
        for name in SOLVER:
            import_module(name)


def has_files() -> bool:
    """Return whether a database is a file of SQLite."""
    return any(str(database["ENGINE"]).endswith("sqlite3") for database in settings.DATABASES.values())


def files_lock() -> Path:
    """Lock that servers and workers hold together, and `restore` alone."""
    lock: Path = settings.PATHS.run / "files.lock"
    return lock


def refuse_outdated() -> None:
    """End this process where a database lacks migrations of this code: pages and tasks would fail one by one.

    A database that does not answer stops nothing: it comes back, and may be a newer one by then.

    Raises
    ------
    SystemExit : standard error then says which database, how many, and what to do
    """
    behind = {}
    for alias in settings.DATABASES:
        if databases.answer(alias).level:
            continue
        try:
            behind[alias] = len(databases.pending(alias))
        except DatabaseError:
            continue
        finally:
            connections[alias].close()  # processes that are forked from this one inherit none
    if any(behind.values()):
        lines = [f"database {alias}: migrations not applied: {n}" for alias, n in behind.items() if n]
        hint = "make a backup, then run manage.py migrate for each database (docs/upgrading.md)"
        _refuse("refusing to start:", *lines, f"  hint: {hint}")


def refuse_shared() -> None:
    """End this process where both zones have one main database.

    Raises
    ------
    SystemExit : standard error then says how that is seen, and which page leads out of it
    """
    from mobility.base.shared_main import PAGE, why_shared  # noqa: PLC0415 - models, once apps are loaded

    try:
        why = why_shared()
    except DatabaseError:  # it does not answer, which stops nothing
        return
    finally:
        for alias in settings.DATABASES:
            connections[alias].close()
    if why:
        hint = f"give each zone its own main database; no data is lost: {PAGE}"
        _refuse("refusing to start:", why, f"  hint: {hint}")
