"""PostgreSQL's own programs: which are taken, what they are told, and what is left when they break off."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Protocol

import psycopg
import pytest
from django.conf import settings as live
from django.db import connections

from mobility.models import VaultStudy
from mobility.operations import restore as restoring
from mobility.operations.backup import make_backup
from mobility.operations.backup_dumps import count_rows, load
from mobility.operations.errors import OperationsError

pytestmark = [
    pytest.mark.database,
    pytest.mark.django_db(databases=["default", "vault"], transaction=True),
    pytest.mark.skipif("postgresql" not in live.DATABASES["default"]["ENGINE"], reason="PostgreSQL only"),
]


class Shim(Protocol):
    def __call__(self, words: str, *, of: str = "vault") -> None: ...


@pytest.fixture
def place(tmp_path: Path, data_dir: Path) -> Path:
    return tmp_path / "backups"


@pytest.fixture
def as_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shim:
    """What becomes of the SQL that the real pg_restore writes of a database: it, and `words`."""
    real = shutil.which("pg_restore")

    def put(words: str, *, of: str = "vault") -> None:
        text = f"""#!/bin/sh
real={real}
case "$*" in *--file=-*/{of}.dump) $real "$@" {words}; exit ;; esac
exec $real "$@"
"""
        _program(tmp_path / "bin" / "pg_restore", text)

    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    return put


def _program(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o700)


def a_study(slug: str) -> None:
    VaultStudy.objects.create(
        slug=slug, definition={}, plan={}, plan_hash="0" * 64, key_id=f"study-{slug}-0a1b2c3d", n_shards=4
    )


def slugs() -> set[str]:
    return set(VaultStudy.objects.values_list("slug", flat=True))


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("| head --lines=-40; exit 1", "pg_restore failed"),
        ("| head --bytes=3000; kill -9 $$", "pg_restore failed"),
        ("; echo 'SELECT 1 / 0;'", "psql failed: .*division by zero"),
    ],
)
def test_a_load_that_breaks_off_leaves_what_was_there(
    place: Path, as_script: Shim, words: str, why: str
) -> None:
    a_study("before")
    dump = make_backup(place, by="olga").folder / "vault.dump"
    a_study("since")
    rows = count_rows("vault")
    as_script(words)
    with pytest.raises(OperationsError, match=why):
        load(dump, alias="vault")
    assert slugs() == {"before", "since"}
    assert count_rows("vault") == rows


def test_a_restore_that_breaks_off_says_what_it_left(
    place: Path, as_script: Shim, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restoring, "_check_nobody_works", lambda: None)
    folder = make_backup(place, by="olga").folder
    a_study("since")
    as_script("; echo 'SELECT 1 / 0;'")
    with pytest.raises(OperationsError, match=r"vault: .*; default is that of the backup already"):
        restoring.restore(folder, by="olga", replaces=True)
    assert slugs() == {"since"}
    as_script("; echo 'SELECT 1 / 0;'", of="default")
    with pytest.raises(OperationsError, match=r"default: .*; the databases are as they were"):
        restoring.restore(folder, by="olga", replaces=True)
    assert count_rows("default")["operations_backup"] == 0  # that of the backup, from before it was noted


def test_what_the_dump_does_not_know_goes(place: Path) -> None:
    a_study("before")
    dump = make_backup(place, by="olga").folder / "vault.dump"
    a_study("since")
    before = count_rows("vault")
    with connections["vault"].cursor() as cursor:
        cursor.execute("CREATE TABLE of_later (id int)")
        cursor.execute("CREATE FUNCTION of_later() RETURNS int LANGUAGE sql AS 'SELECT 1'")
    load(dump, alias="vault")
    assert slugs() == {"before"}
    assert set(count_rows("vault")) == set(before)
    with connections["vault"].cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM pg_proc WHERE proname = 'of_later'")
        assert cursor.fetchone()[0] == 0


def test_programs_later_than_the_server_restore_too(place: Path, as_script: Shim) -> None:
    """They begin with settings that it does not have. A row that reads like one of these stays."""
    with connections["vault"].cursor() as cursor:
        cursor.execute("CREATE TABLE one_line (words text)")
        cursor.execute("INSERT INTO one_line VALUES ('SET of_later = 0;')")
    try:
        dump = make_backup(place, by="olga").folder / "vault.dump"
        as_script("| sed '0,/^SET lock_timeout/s//SET of_later = 0;\\n&/'")
        load(dump, alias="vault")
        with connections["vault"].cursor() as cursor:
            cursor.execute("SELECT words FROM one_line")
            assert cursor.fetchall() == [("SET of_later = 0;",)]
    finally:
        with connections["vault"].cursor() as cursor:
            cursor.execute("DROP TABLE one_line")


def test_a_missing_program_is_said_so(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(place))
    with pytest.raises(OperationsError, match="pg_dump is not found: install PostgreSQL's client"):
        make_backup(place, by="olga")


def test_an_older_program_is_refused(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = tmp_path / "bin" / "pg_dump"
    _program(old, "#!/bin/sh\necho 'pg_dump (PostgreSQL) 9.6.24'\n")
    monkeypatch.setenv("PATH", f"{old.parent}:{os.environ['PATH']}")
    with pytest.raises(OperationsError, match=r"pg_dump must be of version \d+ or later"):
        make_backup(place, by="olga")


def test_other_roles_that_work_on_it_are_seen() -> None:
    """Where two zones share the main database, each has a role of its own."""
    connection = connections["default"]
    connection.ensure_connection()
    before = restoring._others("default")
    with connection.cursor() as cursor:
        cursor.execute("DROP ROLE IF EXISTS other_zone")
        cursor.execute("CREATE ROLE other_zone LOGIN PASSWORD 'only for tests'")
    try:
        parameters = connection.get_connection_params() | {
            "user": "other_zone",
            "password": "only for tests",
        }
        with psycopg.connect(**parameters):
            assert restoring._others("default") == before + 1
            with connection.cursor() as cursor:  # roles see less of each other than a superuser does
                cursor.execute("SET ROLE pg_signal_backend")
                try:
                    assert restoring._others("default") == before + 1
                finally:
                    cursor.execute("RESET ROLE")
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP ROLE other_zone")


def test_no_password_is_an_argument(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, commands = subprocess.Popen, []

    def start(command: list[str], **options: Any) -> Any:
        commands.append(" ".join(command))
        if any(word.startswith("--dbname=") for word in command):
            assert options["env"]["PGPASSWORD"] == "s3"
        return real(command, **options)

    monkeypatch.setattr(subprocess, "Popen", start)
    for alias in ("default", "vault"):
        monkeypatch.setitem(connections[alias].settings_dict, "PASSWORD", "s3")
    load(make_backup(place, by="olga").folder / "vault.dump", alias="vault")
    led = [command for command in commands if "--dbname=" in command]
    assert [Path(command.split()[0]).name for command in led] == ["pg_dump", "pg_dump", "psql"]
    assert not [command for command in commands if "s3" in command]
