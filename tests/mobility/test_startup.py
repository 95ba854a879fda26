"""Web servers and workers of a new version do not serve with databases of an earlier one."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from django.db import connections

from mobility import startup
from mobility.operations.probes import databases

ROOT = Path(__file__).parents[2]
SERVER = (sys.executable, "-c", "import mobility.wsgi")
WORKER = (sys.executable, "-m", "celery", "-A", "mobility", "worker", "--pool", "solo")


def start(command: tuple[str, ...], environment: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
    inherited = {name: value for name, value in os.environ.items() if not name.endswith("_URL")}
    own = {"DJANGO_SETTINGS_MODULE": "mobility.settings", **environment}
    return subprocess.run(
        command, cwd=ROOT, env=inherited | own, text=True, capture_output=True, check=False, timeout=120
    )


@pytest.mark.parametrize("command", [SERVER, WORKER], ids=["server", "worker"])
def test_neither_starts_before_migrate(command: tuple[str, ...], tmp_path: Path) -> None:
    done = start(command, {"MOBILITY_DATA_DIR": str(tmp_path)})
    assert done.returncode == startup.EXIT_CODE, done.stderr
    assert "refusing to start:" in done.stderr
    assert "migrations that were not run" in done.stderr
    assert "docs/upgrading.md" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.django_db(databases=["default", "vault"])
def test_one_migration_is_enough(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for connection in connections.all():
        monkeypatch.setattr(connection, "close", lambda: None)  # of the test's transaction
    startup.refuse_outdated()
    lacking = {"default": set(), "vault": {("mobility", "0099_later")}}
    monkeypatch.setattr(databases, "pending", lacking.__getitem__)
    with pytest.raises(SystemExit):
        startup.refuse_outdated()
    said = capsys.readouterr().err
    assert "database vault: migrations that were not run: 1" in said
    assert "default" not in said


def test_a_database_that_is_away_stops_nothing(tmp_path: Path) -> None:
    nowhere = "postgres://nobody@127.0.0.1:1/nowhere"
    done = start(
        SERVER,
        {"MOBILITY_DATA_DIR": str(tmp_path), "DATABASE_URL": nowhere, "VAULT_DATABASE_URL": nowhere + "2"},
    )
    assert done.returncode == 0, done.stderr
