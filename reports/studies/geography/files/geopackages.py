"""Checks of a GeoPackage before GDAL: SQL that computes without end, and pages that lead in a circle.

A GeoPackage is a SQLite database. Its tables have as much in them as the file has bytes; views, generated
columns, defaults and virtual tables can have anything, and can take permanently.
"""

import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from reports.studies.studyfile.problems import Problems

MAX_SECONDS: Final = 20.0  # a sound file of 200 MB takes one
MAX_TABLES: Final = 1_000
MAX_DEFAULT_BYTES: Final = 400_000_000  # written out for rows that are older than their column
_STEPS: Final = 10_000  # of SQLite's machine, between two looks at the clock
_RTREE: Final = re.compile(r"\s*CREATE\s+VIRTUAL\s+TABLE\s+\S+\s+USING\s+rtree\b", re.IGNORECASE)
_GENERATED: Final = (2, 3)  # how PRAGMA table_xinfo marks them: virtual, stored


def check_geopackage(path: Path, problems: Problems) -> None:
    """Note why a GeoPackage is refused, before anything of it is computed."""
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as database:
            deadline = time.monotonic() + MAX_SECONDS
            database.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
            database.execute("PRAGMA trusted_schema = OFF")
            database.execute("PRAGMA ignore_check_constraints = ON")
            reason = next(_reasons(database), None)
    except sqlite3.Error as error:
        reason = f"must be a GeoPackage that can be read: {error}"
        if "interrupted" in str(error):
            reason = f"must be a GeoPackage that can be checked within {MAX_SECONDS:.0f} s"
    if reason:
        problems.add("content", reason)


def _reasons(database: sqlite3.Connection) -> Iterator[str]:
    """Why a database is refused, the cheapest checks first."""
    schema = database.execute("SELECT type, name, coalesce(sql, '') FROM sqlite_master").fetchmany(
        5 * MAX_TABLES
    )
    tables = [name for kind, name, sql in schema if kind == "table" and not _is_virtual(sql)]
    for kind, name, sql in schema:
        if kind == "view":
            yield f"must hold tables only, but {name!r} is a view: save its rows as a table"
        if _is_virtual(sql) and not _RTREE.match(sql):
            yield f"must hold ordinary tables only, but {name!r} is a virtual one: save its rows as a table"
    if len(tables) > MAX_TABLES:
        yield f"must hold at most {MAX_TABLES} tables"
    for row in database.execute("PRAGMA quick_check(1)"):
        if row[0] != "ok":
            yield "must be a GeoPackage that is not damaged: save it again"
    for table in tables:
        yield from _reasons_of(database, table)


def _reasons_of(database: sqlite3.Connection, table: str) -> Iterator[str]:
    columns = database.execute("SELECT name, hidden, dflt_value FROM pragma_table_xinfo(?)", [table])
    found = columns.fetchall()
    for name, hidden, _ in found:
        if hidden in _GENERATED:
            yield f"must hold stored columns only, but {name!r} of {table!r} is computed: save its values"
    default_bytes = sum(len(default or "") for _, _, default in found)
    if default_bytes:
        quoted = table.replace('"', '""')
        (n_rows,) = database.execute(f'SELECT count(*) FROM "{quoted}"').fetchone()  # noqa: S608 - its name
        if n_rows * default_bytes > MAX_DEFAULT_BYTES:
            yield f"must have short defaults, but those of {table!r} are long: save the file again"


def _is_virtual(sql: str) -> bool:
    return sql.lstrip()[:14].upper().startswith("CREATE VIRTUAL")
