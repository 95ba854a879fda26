"""Web servers and workers of a new version do not serve with databases of an earlier one."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from django.db import connections

from mobility import startup
from mobility.operations.probes import databases
from scripts import services

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


@pytest.mark.parametrize(
    "command",
    [SERVER, WORKER, (sys.executable, "manage.py", "check")],
    ids=["server", "worker", "command"],
)
@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("MOBILITY_SWEEP_S", "15s", "MOBILITY_SWEEP_S must be a whole number, got '15s'"),
        ("SECRET_KEY_FILE", "/nowhere", "SECRET_KEY_FILE names /nowhere, which cannot be read: No such file"),
    ],
)
def test_what_means_nothing_is_refused_with_its_name(
    command: tuple[str, ...], name: str, value: str, said: str, tmp_path: Path
) -> None:
    done = start(command, {"MOBILITY_DATA_DIR": str(tmp_path), name: value})
    assert done.returncode == startup.EXIT_CODE, done.stderr
    assert f"refusing to start: {said}" in done.stderr
    assert "Traceback" not in done.stderr


def test_settings_that_stop_servers_are_told_all_the_same(tmp_path: Path) -> None:
    """A timer looks for alerts also while neither server nor worker starts."""
    unsafe = {"MOBILITY_DATA_DIR": str(tmp_path), "MOBILITY_METRICS_TOKEN": "short"}
    assert "mobility.E033" in start(SERVER, unsafe).stderr
    done = start((sys.executable, "manage.py", "check_alerts", "--now"), unsafe)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["looked"]
    assert told["open"] >= 1


# --- by systemd ---------------------------------------------------------------------------------------


def stays_down(unit: str) -> set[int]:
    """Exit codes after which systemd does not start a unit again."""
    text = (ROOT / "docker" / "systemd" / unit).read_text()
    (codes,) = re.findall(r"^RestartPreventExitStatus=(.+)$", text, flags=re.MULTILINE)
    return {int(code) for code in codes.split()}


@pytest.mark.parametrize("unit", ["mobility-web.service", "mobility-worker@.service"])
def test_only_a_refusal_keeps_a_unit_down(unit: str) -> None:
    assert stays_down(unit) == {startup.EXIT_CODE}


def test_a_fault_that_may_pass_does_not_keep_the_web_server_down(tmp_path: Path) -> None:
    """Gunicorn ends as well when a start fails by an exception: another code than that of a refusal."""
    (tmp_path / "run").touch()  # where a folder belongs
    words = (
        "gunicorn",
        "mobility.wsgi",
        "--bind",
        f"127.0.0.1:{services.free_port()}",
        "--no-control-socket",
    )
    done = start((sys.executable, "-m", *words), {"MOBILITY_DATA_DIR": str(tmp_path)})
    assert "FileExistsError" in done.stderr
    assert done.returncode not in {0, *stays_down("mobility-web.service")}


@pytest.mark.parametrize(("told", "exit_code"), [({}, 1), ({"MOBILITY_DATA_DIR": "var/own"}, 0)])
def test_a_command_without_the_settings_of_its_installation_makes_no_other_one(
    told: dict[str, str], exit_code: int, tmp_path: Path
) -> None:
    for name in ("mobility", "reports", "ldp"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "manage.py", tmp_path)
    (tmp_path / "settings").touch()
    own = {"PATH": os.environ["PATH"], "MOBILITY_SETTINGS": str(tmp_path / "settings")}
    done = subprocess.run(
        [sys.executable, "manage.py", "migrate"], cwd=tmp_path, env=own | told, text=True,
        capture_output=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == exit_code, done.stderr
    assert ("docker/manage.sh migrate" in done.stderr) is bool(exit_code)
    assert (tmp_path / "var").exists() is not bool(exit_code)
