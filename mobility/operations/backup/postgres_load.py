"""A dump in place of all that a PostgreSQL database holds, in one transaction: if it fails, all is as it was.

pg_restore alone cannot do that: it cannot drop objects unknown to the dump, and its output is
fit for its own server version only (from 17 on `transaction_timeout`, which 15 and 16 refuse). So it
writes SQL, and psql runs it between what is said here.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import IO, Final, cast

from django.db.backends.base.base import BaseDatabaseWrapper

from mobility.operations.backup.postgres_programs import addressed, check_versions, failure, program, run

# All tables and functions, but those of extensions.
EMPTY: Final = """
DO $$
DECLARE item text;
BEGIN
  FOR item IN SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public' LOOP
    EXECUTE 'DROP TABLE IF EXISTS public.' || item || ' CASCADE';
  END LOOP;
  FOR item IN SELECT p.oid::regprocedure::text FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace
      AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e') LOOP
    EXECUTE 'DROP FUNCTION IF EXISTS ' || item || ' CASCADE';
  END LOOP;
END $$;
"""
SETTING: Final = re.compile(rb"SET (\w+) = ")
FIRST_OBJECT: Final = b"-- Name: "


def load_postgres(connection: BaseDatabaseWrapper, path: Path) -> None:
    """Raise OperationsError: it failed, and the database is as it was."""
    check_versions(connection)
    begin, known = _beginning(connection)
    arguments, env = addressed(connection)
    connection.close()
    psql = [program("psql"), "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--no-password", *arguments]
    with _without_schema(path) as kept:
        written = [program("pg_restore"), "--no-owner", "--no-privileges", "--file=-", f"--use-list={kept}"]
        _replay([*written, str(path)], psql, env=env, begin=begin, known=known)


def _beginning(connection: BaseDatabaseWrapper) -> tuple[str, set[str]]:
    """Return the statements that empty the database, and names of the settings that its server has.

    It is done as the owner of the database: of two zones that share one, either may restore.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_get_userbyid(datdba), pg_has_role(datdba, 'MEMBER') FROM pg_database "
            "WHERE datname = current_database()"
        )
        owner, is_member = cursor.fetchone()
        cursor.execute("SELECT name FROM pg_settings")
        known = {str(name) for (name,) in cursor.fetchall()}
    role = f"SET LOCAL ROLE {connection.ops.quote_name(owner)};\n" if is_member else ""
    return f"BEGIN;\nSET LOCAL client_min_messages = warning;\n{role}{EMPTY}", known


@contextmanager
def _without_schema(path: Path) -> Iterator[str]:
    """A list of what to load. The schema is there, and stays as the server's people have set it up."""
    listed = run([program("pg_restore"), "--list", str(path)], env=None, what="pg_restore --list")
    with tempfile.NamedTemporaryFile("w", suffix=".list") as kept:
        kept.writelines(line for line in listed.splitlines(keepends=True) if " SCHEMA - " not in line)
        kept.flush()
        yield kept.name


def _replay(
    restore: list[str], psql: list[str], *, env: dict[str, str], begin: str, known: Collection[str]
) -> None:
    """Pipe one program's output into the other, and commit only when both have ended."""
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as said_by_psql:
        ended = None
        with (
            suppress(BrokenPipeError),  # psql ended, and says why
            subprocess.Popen(restore, stdin=DEVNULL, stdout=PIPE, stderr=said) as source,
            subprocess.Popen(
                psql, env=os.environ | env, stdin=PIPE, stdout=DEVNULL, stderr=said_by_psql
            ) as target,
        ):
            script, sink = cast("IO[bytes]", source.stdout), cast("IO[bytes]", target.stdin)
            sink.write(begin.encode())
            sink.writelines(_header(script, known))
            shutil.copyfileobj(script, sink)
            ended = source.wait()
            if ended == 0:
                sink.write(b"COMMIT;\n")  # without it, what was done is undone when psql's input ends
        if ended:
            raise failure("pg_restore", _text(said))
        if target.returncode != 0:
            raise failure("psql", _text(said_by_psql))


def _header(script: IO[bytes], known: Collection[str]) -> Iterator[bytes]:
    """Return the lines up to the first object, without settings that the server does not have."""
    for line in script:
        found = SETTING.match(line)
        if found is None or found[1].decode() in known:
            yield line
        if line.startswith(FIRST_OBJECT):
            return


def _text(said: IO[bytes]) -> str:
    said.seek(0)
    return said.read().decode(errors="replace")
