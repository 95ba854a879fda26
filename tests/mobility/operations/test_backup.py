"""A backup is whole or absent, holds no key, and says when it was changed."""

import json
import os
import stat
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.core.cache import cache
from django.core.management import CommandError, call_command
from django.db import OperationalError
from django.test import Client
from pytest_django.fixtures import Settings

from mobility.models import VaultStudy
from mobility.operations import backup as backups
from mobility.operations import restore as restoring
from mobility.operations.backup import make_backup, verify_backup
from mobility.operations.backup_dumps import count_rows, load
from mobility.operations.backup_folder import MANIFEST, Manifest, Owner, prune, read_manifest
from mobility.operations.errors import OperationsError
from mobility.operations.installation import own_code
from mobility.operations.models import Backup
from mobility.operations.restore import restore
from reports.ledger_chain import SignedHead
from reports.models import LedgerEntry, LedgerHead, LedgerKind
from reports.services.ledger import record

pytestmark = [
    pytest.mark.database,
    pytest.mark.django_db(databases=["default", "vault"], transaction=True),
]


@pytest.fixture
def place(tmp_path: Path, data_dir: Path) -> Path:
    return tmp_path / "backups"


def a_study(slug: str = "fair") -> VaultStudy:
    return VaultStudy.objects.create(
        slug=slug, definition={}, plan={}, plan_hash="0" * 64, key_id=f"study-{slug}-0a1b2c3d", n_shards=4
    )


def test_it_says_what_it_holds(place: Path, person: Callable[..., Any]) -> None:
    person("anna")
    a_study()
    record(LedgerKind.SIGN_IN_SUCCEEDED, actor="anna")
    made = make_backup(place, by="olga")
    manifest = verify_backup(made.folder)
    main, vault = manifest.parts
    assert (main.alias, vault.alias) == ("default", "vault")
    assert main.rows["auth_user"] == 1
    assert vault.rows["mobility_vaultstudy"] == 1
    assert ["operations", "0001_initial"] in main.migrations
    assert manifest.keys == ["study-fair-0a1b2c3d"]
    head = SignedHead.from_json(manifest.ledger_head)
    assert head.number == 1
    assert head.is_signed_by(LedgerHead.objects.get().public_key)
    row = Backup.objects.get()
    assert (row.kind, row.digest, row.bytes) == (Backup.Kind.BACKUP, made.digest, made.manifest.size)
    assert LedgerEntry.objects.get(kind="backup.made").facts["manifest_sha256"] == made.digest


def test_nobody_signs_in_with_a_backup(place: Path, client: Client, person: Callable[..., Any]) -> None:
    """The key of a session is its cookie."""
    anna = person("anna")
    client.force_login(anna)
    key = client.session.session_key
    UserSession.objects.create(user=anna, ip="192.0.2.1", session_key=key, user_agent="browser")
    cache.set("guess-of-anna", "guessed-3-times")
    folder = make_backup(place, by="olga").folder
    dump = next(folder.glob("default.*"))
    held = dump.read_bytes()
    if dump.suffix == ".dump":
        held = subprocess.run(["pg_restore", "--file=-", str(dump)], capture_output=True, check=True).stdout
    assert b"anna" in held
    assert not [text for text in (key, "guess-of-anna") if text.encode() in held]
    rows = verify_backup(folder).parts[0].rows
    assert (rows["django_session"], rows["usersessions_usersession"], rows["signin_cache"]) == (0, 0, 0)
    assert Session.objects.count() == UserSession.objects.count() == 1
    load(dump, alias="default")
    assert count_rows("default") == dict(rows)


def test_only_this_account_can_read_it(place: Path) -> None:
    before = os.umask(0o022)
    try:
        folder = make_backup(place, by="olga").folder
    finally:
        os.umask(before)
    assert stat.S_IMODE(place.stat().st_mode) == stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert len(list(folder.iterdir())) == 3


@pytest.mark.parametrize("error", [OperationsError("pg_dump is not found"), OSError(28, "No space left")])
def test_one_that_fails_leaves_nothing(
    place: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    real = backups.dump

    def failing(alias: str, folder: Path, **options: Any) -> Any:
        if alias == "vault":
            raise error
        return real(alias, folder, **options)

    monkeypatch.setattr(backups, "dump", failing)
    with pytest.raises(CommandError, match=r"no backup was made: .*(not found|No space left)"):
        call_command("backup", "--out", str(place))
    assert list(place.iterdir()) == []
    assert not Backup.objects.exists()
    assert not LedgerEntry.objects.exists()


def test_one_that_the_ledger_cannot_know_is_kept_and_said_so(
    place: Path, settings: Settings, data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.MOBILITY_LEDGER_KEY_FILE = data_dir / "ledger_key.pem"
    record(LedgerKind.SIGN_IN_SUCCEEDED, actor="anna")
    Path(settings.MOBILITY_LEDGER_KEY_FILE).unlink()
    with pytest.raises(CommandError, match=r"the ledger does not know of it: .*renew_ledger_key"):
        call_command("backup", "--out", str(place))
    told = json.loads(capsys.readouterr().out)
    assert [str(path) for path in place.iterdir()] == [told["backup"]]
    assert Backup.objects.get().digest == told["sha256"]
    assert LedgerEntry.objects.count() == 1


def test_one_that_cannot_be_recorded_is_kept_and_said_so(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A database that has just died needs it."""

    def failing(*_: Any, **options: Any) -> None:
        raise OperationalError("the server went away")

    monkeypatch.setattr(backups, "record", failing)
    olds = [make_old(place, days=days) for days in (1, 2, 3, 4, 5, 6, 50)]
    with pytest.raises(CommandError, match="the ledger does not know of it: a database does not answer"):
        call_command("backup", "--out", str(place))
    told = json.loads(capsys.readouterr().out)
    assert verify_backup(Path(told["backup"])).size == told["bytes"]
    assert told["pruned"] == [olds[-1].name]
    assert not Backup.objects.exists()


def make_old(place: Path, *, days: int) -> Path:
    """A manifest without its parts is enough for pruning."""
    made_at = datetime.now(UTC) - timedelta(days=days)
    folder = place / f"backup-{days}"
    folder.mkdir(mode=0o700, parents=True)
    told = Manifest(
        software={}, zone="all", made_at=made_at, parts=[], keys=[], ledger_head=None, installation=own_code()
    )
    (folder / MANIFEST).write_bytes(told.to_bytes())
    return folder


def test_a_study_created_between_both_dumps_makes_it_begin_again(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, asked = backups.dump, []

    def creating(alias: str, folder: Path, **options: Any) -> Any:
        asked.append(alias)
        if asked == ["default", "vault"]:
            a_study()
        return real(alias, folder, **options)

    monkeypatch.setattr(backups, "dump", creating)
    manifest = make_backup(place, by="olga").manifest
    assert asked == ["default", "vault", "default", "vault"]
    assert manifest.keys == ["study-fair-0a1b2c3d"]


@pytest.mark.parametrize("name", ["default", "vault"])
def test_a_changed_byte_is_seen(place: Path, name: str) -> None:
    folder = make_backup(place, by="olga").folder
    (path,) = folder.glob(f"{name}.*")
    held = bytearray(path.read_bytes())
    held[len(held) // 2] ^= 1
    path.write_bytes(held)
    with pytest.raises(CommandError, match=f"{path.name} was changed or cut"):
        call_command("verify_backup", str(folder))
    path.unlink()
    with pytest.raises(CommandError, match="is missing"):
        call_command("verify_backup", str(folder))


def test_a_dump_that_cannot_be_read_is_none(place: Path) -> None:
    """The hash alone does not say that it was ever a database."""
    folder = make_backup(place, by="olga").folder
    path = next(folder.glob("vault.*"))
    path.write_bytes(b"no database" * 200)
    told = json.loads((folder / MANIFEST).read_text())
    (part,) = (part for part in told["parts"] if part["alias"] == "vault")
    part |= {"bytes": path.stat().st_size, "sha256": sha256(path.read_bytes()).hexdigest()}
    (folder / MANIFEST).write_text(json.dumps(told))
    with pytest.raises(OperationsError, match=r"cannot be read|pg_restore --list failed"):
        verify_backup(folder)


def test_one_that_cannot_be_loaded_leaves_what_was_there(tmp_path: Path) -> None:
    a_study()
    path = tmp_path / "vault"
    path.write_bytes(b"no database" * 200)
    with pytest.raises(OperationsError, match=r"vault cannot be loaded|pg_restore --list failed"):
        load(path, alias="vault")
    assert VaultStudy.objects.count() == 1


def test_old_ones_go_and_the_newest_stay(place: Path) -> None:
    made = make_backup(place, by="olga")
    for days in range(10, 90, 10):
        make_old(place, days=days)
    (place / "backup-of-somebody").mkdir()
    every: dict[str, Any] = {"owner": Owner(zone="all", code=own_code()), "now": made.manifest.made_at}
    assert prune(place, keep=None, keep_days=0, **every) == []
    assert prune(place, keep=None, keep_days=75, **every) == ["backup-80"]
    assert prune(place, keep=None, keep_days=5, **every) == ["backup-70"]
    assert prune(place, keep=3, keep_days=0, **every) == ["backup-30", "backup-40", "backup-50", "backup-60"]
    left = {path.name for path in place.iterdir()}
    assert left == {made.folder.name, "backup-10", "backup-20", "backup-of-somebody"}


def test_the_one_just_made_stays_whatever_the_clock_of_others_said(place: Path) -> None:
    later = make_old(place, days=-400)
    made = make_backup(place, by="olga", keep=1)
    assert made.pruned == [later.name]
    assert made.folder.is_dir()


def test_what_does_not_fit_here_is_refused(
    place: Path, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    monkeypatch.setattr(restoring, "_check_nobody_works", lambda: None)
    folder = make_backup(place, by="olga").folder
    a_study()

    def changed(change: Callable[[dict[str, Any]], None]) -> None:
        told = json.loads(original)
        change(told)
        (folder / MANIFEST).write_text(json.dumps(told))

    original = (folder / MANIFEST).read_text()
    with pytest.raises(OperationsError, match=r"is not empty .*--replace"):
        restore(folder, by="olga")
    changed(lambda told: told.update(zone="operator"))
    with pytest.raises(OperationsError, match="of zone operator, and this is zone all"):
        restore(folder, by="olga", replaces=True)
    changed(lambda told: told["parts"][0]["migrations"].append(["reports", "9999_later"]))
    with pytest.raises(OperationsError, match=r"of a later version .*reports\.9999_later"):
        restore(folder, by="olga", replaces=True)
    changed(lambda told: told["parts"].pop())
    with pytest.raises(OperationsError, match="holds the databases"):
        restore(folder, by="olga", replaces=True)
    changed(lambda told: told.update(format=2))
    with pytest.raises(OperationsError, match="another format than 1"):
        restore(folder, by="olga", replaces=True)
    assert VaultStudy.objects.count() == 1


def test_nobody_may_work_while_it_is_restored(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_backup(place, by="olga").folder
    monkeypatch.setattr(restoring, "_worker_answers", lambda: True)
    with pytest.raises(OperationsError, match="a worker answers"):
        restore(folder, by="olga", replaces=True)


def test_without_a_person_it_must_be_told_yes(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_backup(place, by="olga").folder
    with pytest.raises(CommandError, match="say --yes"):
        call_command("restore", str(folder))


def test_manifest_is_read_as_it_was_written(place: Path) -> None:
    folder = make_backup(place, by="olga").folder
    manifest = read_manifest(folder)
    assert Manifest.from_bytes(manifest.to_bytes()) == manifest
