"""A backup is complete or absent, holds no key, shows changes, and is restored where it belongs.

Installations that put backups into one folder leave each other's alone.
"""

import json
import os
import re
import shutil
import stat
import subprocess
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import psycopg
import pytest
from allauth.usersessions.models import UserSession
from django.conf import settings as live
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core.cache import cache
from django.core.management import CommandError, call_command
from django.db import OperationalError, connections

from mobility.base import locks
from mobility.base.errors import OperationsError
from mobility.operations.backup import making as backups
from mobility.operations.backup import restore as restoring
from mobility.operations.backup.dumps import count_rows, load
from mobility.operations.backup.folder import MANIFEST, Manifest, Owner, prune, read_manifest
from mobility.operations.backup.making import make_backup, verify_backup
from mobility.operations.backup.restore import restore
from mobility.operations.installation import known_code, own_code
from mobility.operations.models import Backup, Installation
from mobility.vault.models.subscribers import VaultStudy
from reports.ledger.actions import record
from reports.ledger.chain import SignedHead
from reports.ledger.models import LedgerEntry, LedgerHead, LedgerKind
from tests.mobility.data_folder import until
from tests.mobility.operations.probe_world import vault_row
from tests.mobility.pipeline import raising

of_databases = pytest.mark.django_db(databases=["default", "vault"], transaction=True)
OTHER = "0" * 32
NOTHING = {"software": {}, "parts": [], "keys": [], "ledger_head": None}


@pytest.fixture
def place(tmp_path, data_dir, monkeypatch):
    monkeypatch.setattr(restoring, "_check_nobody_works", lambda: None)
    return tmp_path / "backups"


@pytest.fixture
def made(place):
    return make_backup(place, by="olga")


def edited(folder, change):
    told = json.loads((folder / MANIFEST).read_text())
    change(told)
    (folder / MANIFEST).write_text(json.dumps(told))


def kept(place, capsys, *, said):
    """Return the JSON that a failing command prints of its backup."""
    with pytest.raises(CommandError, match=said):
        call_command("backup", "--out", str(place))
    return json.loads(capsys.readouterr().out)


@of_databases
class TestMaking:
    @pytest.mark.database
    def test_it_says_what_it_holds_and_only_this_account_can_read_it(self, place, person):
        person("anna")
        vault_row()
        record(LedgerKind.SIGN_IN_SUCCEEDED, actor="anna")
        before = os.umask(0o022)
        try:
            made = make_backup(place, by="olga")
        finally:
            os.umask(before)
        manifest = verify_backup(made.folder)
        assert Manifest.from_bytes(manifest.to_bytes()) == manifest == read_manifest(made.folder)
        main, vault = manifest.parts
        assert (main.alias, vault.alias) == ("default", "vault")
        assert main.rows["auth_user"] == vault.rows["mobility_vaultstudy"] == 1
        assert ["operations", "0001_initial"] in main.migrations
        assert manifest.keys == ["study-fair-0a1b2c3d"]
        head = SignedHead.from_json(manifest.ledger_head)
        assert head.number == 1
        assert head.is_signed_by(LedgerHead.objects.get().public_key)
        row = Backup.objects.get()
        assert (row.kind, row.digest, row.bytes) == (Backup.Kind.BACKUP, made.digest, made.manifest.size)
        assert LedgerEntry.objects.get(kind="backup.made").facts["manifest_sha256"] == made.digest
        assert [stat.S_IMODE(path.stat().st_mode) for path in (place, made.folder)] == [0o700] * 2
        assert [stat.S_IMODE(path.stat().st_mode) for path in made.folder.iterdir()] == [0o600] * 3

    @pytest.mark.database
    def test_nobody_signs_in_with_a_backup(self, place, client, person):
        anna = person("anna")
        client.force_login(anna)
        key = client.session.session_key
        UserSession.objects.create(user=anna, ip="192.0.2.1", session_key=key, user_agent="browser")
        cache.set("guess-of-anna", "guessed-3-times")
        folder = make_backup(place, by="olga").folder
        dump = next(folder.glob("default.*"))
        held = dump.read_bytes()
        if dump.suffix == ".dump":
            words = ["pg_restore", "--file=-", str(dump)]
            held = subprocess.run(words, capture_output=True, check=True).stdout
        assert b"anna" in held
        assert not [text for text in (key, "guess-of-anna") if text.encode() in held]
        rows = verify_backup(folder).parts[0].rows
        assert (rows["django_session"], rows["usersessions_usersession"], rows["signin_cache"]) == (0, 0, 0)
        assert Session.objects.count() == UserSession.objects.count() == 1
        load(dump, alias="default")
        assert count_rows("default") == dict(rows)

    @pytest.mark.parametrize(
        "error", [OperationsError("pg_dump was not found"), OSError(28, "No space left")]
    )
    def test_one_that_fails_leaves_nothing(self, place, monkeypatch, error):
        first_dump = [backups.dump]

        def failing(*given, **options):
            if not first_dump:
                raise error
            return first_dump.pop()(*given, **options)

        monkeypatch.setattr(backups, "dump", failing)
        with pytest.raises(CommandError, match=r"the backup failed: .*(not found|No space left)"):
            call_command("backup", "--out", str(place))
        assert list(place.iterdir()) == []
        assert not Backup.objects.exists()
        assert not LedgerEntry.objects.exists()

    def test_one_that_the_ledger_cannot_know_is_kept_and_said_so(self, place, settings, data_dir, capsys):
        settings.MOBILITY_LEDGER_KEY_FILE = data_dir / "ledger_key.pem"
        record(LedgerKind.SIGN_IN_SUCCEEDED, actor="anna")
        Path(settings.MOBILITY_LEDGER_KEY_FILE).unlink()
        told = kept(place, capsys, said=r"could not be recorded in the ledger: .*renew_ledger_key")
        assert [str(path) for path in place.iterdir()] == [told["backup"]]
        assert (Backup.objects.get().digest, LedgerEntry.objects.count()) == (told["sha256"], 1)

    def test_one_that_cannot_be_recorded_is_kept_and_said_so(self, place, monkeypatch, capsys):
        monkeypatch.setattr(backups, "record", raising(OperationalError("the server went away")))
        olds = [make_old(place, days=days) for days in (1, 2, 3, 4, 5, 6, 50)]
        told = kept(place, capsys, said="in the ledger: a database is not responding")
        assert (verify_backup(Path(told["backup"])).size, told["pruned"]) == (told["bytes"], [olds[-1].name])
        assert not Backup.objects.exists()

    def test_a_study_created_between_both_dumps_makes_it_begin_again(self, place, monkeypatch):
        real, asked = backups.dump, []

        def creating(alias, folder, **options):
            asked.append(alias)
            if asked == ["default", "vault"]:
                vault_row()
            return real(alias, folder, **options)

        monkeypatch.setattr(backups, "dump", creating)
        manifest = make_backup(place, by="olga").manifest
        assert (asked, manifest.keys) == (["default", "vault", "default", "vault"], ["study-fair-0a1b2c3d"])


def make_old(place, *, days, code=""):
    made_at = datetime.now(UTC) - timedelta(days=days)
    folder = place / f"backup-{days}"
    folder.mkdir(mode=0o700, parents=True)
    told = Manifest(**NOTHING, zone="all", made_at=made_at, installation=code or own_code())
    (folder / MANIFEST).write_bytes(told.to_bytes())
    return folder


@of_databases
class TestPruning:
    def test_old_ones_go_and_the_newest_stay(self, place, made):
        for days in range(10, 90, 10):
            make_old(place, days=days)
        (place / "backup-of-somebody").mkdir()
        make_old(place, days=99, code=OTHER)
        every = {"owner": Owner(zone="all", code=own_code()), "now": made.manifest.made_at}
        assert prune(place, keep=None, keep_days=0, **every) == []
        assert prune(place, keep=None, keep_days=75, **every) == ["backup-80"]
        assert prune(place, keep=None, keep_days=5, **every) == ["backup-70"]
        gone = prune(place, keep=3, keep_days=0, **every)
        assert gone == ["backup-30", "backup-40", "backup-50", "backup-60"]
        left = {path.name for path in place.iterdir()}
        assert left == {made.folder.name, "backup-10", "backup-20", "backup-99", "backup-of-somebody"}

    def test_of_what_broke_off_it_removes_its_own_and_the_one_just_made_stays(self, place):
        later = make_old(place, days=-400)  # in spite of others' clocks
        left = [place / f"backup-1-{code[:8]}.part" for code in (own_code(), OTHER)]
        for folder in left:
            folder.mkdir(parents=True)
            os.utime(folder, (0, 0))
        made = make_backup(place, by="olga", keep=1)
        assert ([folder.exists() for folder in left], made.pruned) == ([False, True], [later.name])
        assert made.folder.is_dir()


@of_databases
class TestReading:
    def test_a_changed_byte_and_a_missing_dump_are_seen(self, made):
        for name in ("default", "vault"):
            (path,) = made.folder.glob(f"{name}.*")
            right = path.read_bytes()
            changed = bytearray(right)
            changed[len(right) // 2] ^= 1
            path.write_bytes(changed)
            with pytest.raises(CommandError, match=f"{path.name} was changed or truncated"):
                call_command("verify_backup", str(made.folder))
            path.unlink()
            with pytest.raises(CommandError, match="is missing"):
                call_command("verify_backup", str(made.folder))
            path.write_bytes(right)

    @pytest.mark.database
    def test_a_dump_that_cannot_be_read_is_none_and_loading_it_leaves_what_was_there(self, made):
        """The hash alone does not say that it was ever a database."""
        path = next(made.folder.glob("vault.*"))
        path.write_bytes(b"no database" * 200)
        facts = {"bytes": path.stat().st_size, "sha256": sha256(path.read_bytes()).hexdigest()}
        edited(made.folder, lambda told: told["parts"][1].update(facts))
        with pytest.raises(OperationsError, match=r"cannot be read|pg_restore --list failed"):
            verify_backup(made.folder)
        vault_row()
        with pytest.raises(OperationsError, match=r"vault.* cannot be loaded|pg_restore --list failed"):
            load(path, alias="vault")
        assert VaultStudy.objects.count() == 1


@of_databases
class TestRestoring:
    def test_what_does_not_fit_here_is_refused(self, made):
        vault_row()
        with pytest.raises(OperationsError, match=r"is not empty .*--replace"):
            restore(made.folder, by="olga")
        right = (made.folder / MANIFEST).read_bytes()
        for change, why in (
            (lambda told: told.update(zone="operator"), "to zone operator, but this is zone all"),
            (lambda told: told["parts"][0]["migrations"].append(["reports", "9999_later"]),
             r"by a newer version .*reports\.9999_later"),
            (lambda told: told["parts"].pop(), "the backup contains the databases"),
            (lambda told: told.update(format=2), "another format than 1"),
        ):  # fmt: skip
            edited(made.folder, change)
            with pytest.raises(OperationsError, match=why):
                restore(made.folder, by="olga", replaces=True)
            (made.folder / MANIFEST).write_bytes(right)
        assert VaultStudy.objects.count() == 1

    def test_nobody_may_work_meanwhile_and_without_a_person_it_must_be_told_yes(self, made, monkeypatch):
        monkeypatch.undo()
        monkeypatch.setattr(restoring, "_worker_answers", lambda: True)
        with pytest.raises(OperationsError, match="a worker is responding"):
            restore(made.folder, by="olga", replaces=True)
        with pytest.raises(CommandError, match="use --yes"):
            call_command("restore", str(made.folder))

    @pytest.mark.database
    def test_a_backup_of_another_installation_needs_a_word(self, place, person):
        assert known_code() == ""  # from its first backup on it has one
        made = make_backup(place, by="olga")
        brought = made.manifest.installation
        assert brought == known_code() == own_code()
        assert len(brought) == 32
        person("anna")
        Installation.objects.update(code=OTHER)
        with pytest.raises(OperationsError, match=f"to installation {brought}, .*--other-installation"):
            restore(made.folder, by="olga", replaces=True)
        assert User.objects.filter(username="anna").exists()
        restore(made.folder, by="olga", replaces=True, stays_other=True)
        assert (User.objects.exists(), own_code()) == (False, OTHER)
        Installation.objects.all().delete()  # an empty machine, as after a fire
        restore(made.folder, by="olga", replaces=True)
        assert own_code() == brought

    def test_its_own_needs_none_a_copy_gets_a_new_code_and_an_old_one_changes_none(self, made):
        restore(made.folder, by="olga", replaces=True)
        assert own_code() == made.manifest.installation
        restore(made.folder, by="olga", replaces=True, stays_other=True)
        assert own_code() not in ("", made.manifest.installation)
        edited(made.folder, lambda told: told.pop("installation"))
        Installation.objects.update(code=OTHER)
        restore(made.folder, by="olga", replaces=True)
        assert own_code() == OTHER


def told(folder, *words):
    with folder.command(*words) as process:
        output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return json.loads(output)


@pytest.mark.long
def test_files_that_a_web_server_has_are_not_replaced_and_one_that_starts_meanwhile_waits(prepared_folder):
    folder = prepared_folder
    backup = told(folder, "backup", "--out", str(folder.root / "safe"))["backup"]
    lock = folder.paths.run / "files.lock"
    with locks.exclusive(lock):  # as `restore` holds it
        # As systemd starts a web server, not as `run` does.
        server = folder.script("-c", "import mobility.wsgi; print('serves', flush=True); input()")
        waits = re.compile(f" -> .*:{lock.stat().st_ino} ")
        until(lambda: waits.search(Path("/proc/locks").read_text()) or server.poll() is not None)
        assert server.poll() is None, server.communicate()
    with server:
        assert server.stdout.readline() == "serves\n"
        with folder.command("restore", backup, "--yes", "--replace") as process:
            _, errors = process.communicate(timeout=120)
        assert process.returncode != 0
        assert "stop the web server" in errors
        server.communicate("\n", timeout=60)
    told(folder, "restore", backup, "--yes", "--replace")


@pytest.fixture
def as_script(tmp_path, monkeypatch):
    """Return the SQL that the real pg_restore writes of a database, changed, and `words`."""
    real = shutil.which("pg_restore")

    def put(words, *, of="vault"):
        case = f'case "$*" in *--file=-*/{of}.dump) {real} "$@" {words}; exit ;; esac'
        _program(tmp_path / "bin" / "pg_restore", f'#!/bin/sh\n{case}\nexec {real} "$@"\n')

    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    return put


def _program(path, text):
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o700)


def sql(*statements, of="vault"):
    with connections[of].cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return cursor.fetchall() if cursor.description else []


def slugs():
    return set(VaultStudy.objects.values_list("slug", flat=True))


@of_databases
@pytest.mark.database
@pytest.mark.skipif("postgresql" not in live.DATABASES["default"]["ENGINE"], reason="PostgreSQL only")
class TestOfPostgres:
    def test_a_load_that_breaks_off_leaves_what_was_there(self, place, as_script):
        vault_row("before")
        dump = make_backup(place, by="olga").folder / "vault.dump"
        vault_row("since")
        rows = count_rows("vault")
        for words, why in (
            ("| head --lines=-40; exit 1", "pg_restore failed"),
            ("| head --bytes=3000; kill -9 $$", "pg_restore failed"),
            ("; echo 'SELECT 1 / 0;'", "psql failed: .*division by zero"),
        ):
            as_script(words)
            with pytest.raises(OperationsError, match=why):
                load(dump, alias="vault")
            assert (slugs(), count_rows("vault")) == ({"before", "since"}, rows)

    def test_a_restore_that_breaks_off_says_what_it_left(self, place, as_script):
        folder = make_backup(place, by="olga").folder
        vault_row("since")
        for alias, said in (
            ("vault", r"vault: .*; default already has the contents of the backup"),
            ("default", r"default: .*; the databases have not changed"),
        ):
            as_script("; echo 'SELECT 1 / 0;'", of=alias)
            with pytest.raises(OperationsError, match=said):
                restoring.restore(folder, by="olga", replaces=True)
            assert slugs() == {"since"}
        assert count_rows("default")["operations_backup"] == 0  # that of the backup, from before it was noted

    def test_what_the_dump_does_not_know_goes_and_no_password_is_an_argument(self, place, monkeypatch):
        real, commands = subprocess.Popen, []

        def start(command, **options):
            commands.append(" ".join(command))
            if any(word.startswith("--dbname=") for word in command):
                assert options["env"]["PGPASSWORD"] == "s3"
            return real(command, **options)

        monkeypatch.setattr(subprocess, "Popen", start)
        for alias in ("default", "vault"):
            monkeypatch.setitem(connections[alias].settings_dict, "PASSWORD", "s3")
        vault_row("before")
        dump = make_backup(place, by="olga").folder / "vault.dump"
        vault_row("since")
        before = count_rows("vault")
        function = "CREATE FUNCTION of_later() RETURNS int LANGUAGE sql AS 'SELECT 1'"
        sql("CREATE TABLE of_later (id int)", function)
        load(dump, alias="vault")
        assert (slugs(), set(count_rows("vault"))) == ({"before"}, set(before))
        assert sql("SELECT COUNT(*) FROM pg_proc WHERE proname = 'of_later'") == [(0,)]
        led = [command for command in commands if "--dbname=" in command]
        assert [Path(command.split()[0]).name for command in led] == ["pg_dump", "pg_dump", "psql"]
        assert not [command for command in commands if "s3" in command]

    def test_a_program_that_is_missing_or_older_is_said_so(self, place, tmp_path, monkeypatch):
        old = tmp_path / "bin" / "pg_dump"
        _program(old, "#!/bin/sh\necho 'pg_dump (PostgreSQL) 9.6.24'\n")
        for path, why in (
            (place, "pg_dump was not found: install the PostgreSQL client"),
            (f"{old.parent}:{os.environ['PATH']}", r"pg_dump must have version \d+ or later"),
        ):
            monkeypatch.setenv("PATH", str(path))
            with pytest.raises(OperationsError, match=why):
                make_backup(place, by="olga")

    def test_other_roles_that_work_on_it_are_seen(self) -> None:
        connection = connections["default"]
        connection.ensure_connection()
        before = restoring._others("default")
        made = "CREATE ROLE other_zone LOGIN PASSWORD 'only for tests'"
        sql("DROP ROLE IF EXISTS other_zone", made, of="default")
        try:
            other = {"user": "other_zone", "password": "only for tests"}
            with psycopg.connect(**connection.get_connection_params() | other):
                assert restoring._others("default") == before + 1
                sql("SET ROLE pg_signal_backend", of="default")  # roles see less than a superuser does
                try:
                    assert restoring._others("default") == before + 1
                finally:
                    sql("RESET ROLE", of="default")
        finally:
            sql("DROP ROLE other_zone", of="default")
