"""Installations that put backups into one folder leave each other's alone, and restore their own."""

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from mobility.embedded import locks
from mobility.operations import restore as restoring
from mobility.operations.backup import make_backup
from mobility.operations.backup_folder import MANIFEST, digest_of
from mobility.operations.errors import OperationsError
from mobility.operations.installation import known_code, own_code
from mobility.operations.models import Backup, Installation
from mobility.operations.restore import restore
from tests.mobility.data_folder import Folder

of_databases = [
    pytest.mark.database,
    pytest.mark.django_db(databases=["default", "vault"], transaction=True),
]
OTHER = "0" * 32
SERVER = "import mobility.wsgi; print('serves', flush=True); input()"


@pytest.fixture
def place(tmp_path: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(restoring, "_check_nobody_works", lambda: None)
    return tmp_path / "backups"


def become(code: str) -> None:
    Installation.objects.update(code=code)


def without_code(folder: Path) -> None:
    """As the manifest was before installations had codes."""
    told = json.loads((folder / MANIFEST).read_text())
    del told["installation"]
    (folder / MANIFEST).write_text(json.dumps(told))


class TestRules:
    pytestmark = of_databases

    def test_it_has_a_code_from_its_first_backup_on(self, place: Path) -> None:
        assert known_code() == ""
        first = make_backup(place, by="olga").manifest.installation
        assert len(first) == 32
        assert first == known_code() == own_code()

    def test_a_backup_of_another_one_needs_a_word(self, place: Path, person: Callable[..., User]) -> None:
        folder = make_backup(place, by="olga").folder
        brought = own_code()
        person("anna")
        become(OTHER)
        with pytest.raises(OperationsError, match=f"of installation {brought}, .*--other-installation"):
            restore(folder, by="olga", replaces=True)
        assert User.objects.filter(username="anna").exists()
        restore(folder, by="olga", replaces=True, stays_other=True)
        assert not User.objects.exists()
        assert own_code() == OTHER

    def test_a_copy_of_itself_becomes_another_one(self, place: Path) -> None:
        """As where restoring broke off after the main database, and is repeated."""
        made = make_backup(place, by="olga")
        restore(made.folder, by="olga", replaces=True, stays_other=True)
        assert own_code() not in ("", made.manifest.installation)

    def test_its_own_backup_needs_none(self, place: Path) -> None:
        made = make_backup(place, by="olga")
        restore(made.folder, by="olga", replaces=True)
        assert own_code() == made.manifest.installation

    def test_a_backup_from_before_there_were_codes_changes_none(self, place: Path) -> None:
        folder = make_backup(place, by="olga").folder
        without_code(folder)
        become(OTHER)
        restore(folder, by="olga", replaces=True)
        assert own_code() == OTHER

    def test_of_those_without_a_code_it_removes_what_it_made(self, place: Path) -> None:
        ours, theirs = (make_backup(place, by="olga").folder.rename(place / f"backup-{n}") for n in "12")
        for folder in (ours, theirs):
            without_code(folder)
        Backup.objects.update(digest=digest_of(ours))
        made = make_backup(place, by="olga", keep=1)
        assert made.pruned == [ours.name]
        assert theirs.is_dir()

    def test_of_what_broke_off_it_removes_its_own(self, place: Path) -> None:
        left = [place / f"backup-1-{code[:8]}.part" for code in (own_code(), OTHER)]
        for folder in left:
            folder.mkdir(parents=True)
            os.utime(folder, (0, 0))
        make_backup(place, by="olga", keep=1)
        assert [folder.exists() for folder in left] == [False, True]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "north")


def told(folder: Folder, *words: str) -> Any:
    """JSON value that a command prints."""
    with folder.command(*words) as process:
        output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return json.loads(output)


@pytest.mark.slow
@pytest.mark.long
def test_two_installations_share_a_folder_of_backups(folder: Folder, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    south, moved = Folder(tmp_path / "south"), Folder(tmp_path / "moved")
    first = told(folder, "backup", "--out", str(shared), "--keep", "1")
    theirs = told(south, "backup", "--out", str(shared), "--keep", "1")
    second = told(folder, "backup", "--out", str(shared), "--keep", "1")
    assert first["installation"] == second["installation"] != theirs["installation"]
    assert (theirs["pruned"], second["pruned"]) == ([], [Path(first["backup"]).name])
    assert told(folder, "verify_backup", theirs["backup"])["installation"] == theirs["installation"]

    told(moved, "restore", theirs["backup"], "--yes")  # onto an empty machine, as after a fire
    again = told(moved, "backup", "--out", str(shared), "--keep", "1")
    assert again["installation"] == theirs["installation"]
    assert again["pruned"] == [Path(theirs["backup"]).name]


def started(folder: Folder) -> subprocess.Popen[str]:
    """A web server as systemd starts it, not as `run` does."""
    return folder.script("-c", SERVER)


@pytest.mark.slow
@pytest.mark.long
def test_files_that_a_web_server_has_are_not_replaced(folder: Folder, tmp_path: Path) -> None:
    backup = told(folder, "backup", "--out", str(tmp_path / "safe"))["backup"]
    with started(folder) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "serves\n"
        with folder.command("restore", backup, "--yes", "--replace") as process:
            _, errors = process.communicate(timeout=120)
        assert process.returncode != 0
        assert "stop the web server" in errors
        server.communicate("\n", timeout=60)
    told(folder, "restore", backup, "--yes", "--replace")


@pytest.mark.slow
def test_a_web_server_that_starts_meanwhile_waits(folder: Folder) -> None:
    told(folder, "backup", "--out", str(folder.root / "safe"))
    lock = folder.paths.run / "files.lock"
    with locks.exclusive(lock):  # as `restore` holds it
        server = started(folder)
        deadline = time.monotonic() + 60
        while not somebody_waits_for(lock):
            assert server.poll() is None, server.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.1)
    with server:
        assert server.stdout is not None
        assert server.stdout.readline() == "serves\n"
        server.communicate("\n", timeout=60)


def somebody_waits_for(lock: Path) -> bool:
    lines = Path("/proc/locks").read_text().splitlines()
    return any(" -> " in line and f":{lock.stat().st_ino} " in line for line in lines)
