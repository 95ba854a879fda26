"""The doctor finds what is wrong with a machine and its servers, and comes when databases are away."""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from zoneinfo import ZoneInfoNotFoundError

import pytest
import redis
from django.db import connections
from pytest_django.fixtures import Settings

from mobility.keystore import keystore
from mobility.operations import doctor
from mobility.operations.doctor import broker, clocks, databases, host, workers, zones
from mobility.operations.doctor.diagnosis import CODES, Diagnosis, error, fine
from mobility.operations.findings import Level
from mobility.operations.probes import safety
from mobility.operations.worker_answers import installation
from reports.version import software

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.django_db(databases=["default", "vault"])
E, W, NOTE, OK = Level.ERROR, Level.WARNING, Level.NOTE, Level.OK


def levels(check: Callable[[], Any]) -> list[tuple[str, Level]]:
    return [(each.code, each.level) for each in check()]


def wrong(check: Callable[[], Any]) -> list[tuple[str, str, Level]]:
    return [(each.code, each.subject, each.level) for each in check() if each.level > OK]


def test_every_code_is_explained() -> None:
    page = (ROOT / "docs" / "doctor.md").read_text()
    assert [code for code in CODES if f"`{code}`" not in page] == []


# --- this machine ---------------------------------------------------------------------------------


def test_keys_that_others_can_read(data_dir: Path) -> None:
    keystore().create("study-fair")
    assert levels(host.key_files) == [("keystore_open", OK)]
    (keystore().folder / "study-fair.key").chmod(0o640)
    assert levels(host.key_files) == [("keystore_open", E)]
    (keystore().folder / "study-fair.key").chmod(0o600)
    keystore().folder.chmod(0o750)
    assert levels(host.key_files) == [("keystore_open", E)]


def test_a_key_that_is_destroyed_while_it_looks(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keystore().create("study-fair")
    listed = Path.iterdir

    def destroyed(folder: Path) -> Iterator[Path]:
        for path in list(listed(folder)):
            path.unlink()
            yield path

    monkeypatch.setattr(Path, "iterdir", destroyed)
    assert levels(host.key_files) == [("keystore_open", OK)]


@pytest.fixture
def limit() -> Iterator[Callable[[int, int], None]]:
    """Set a soft limit of this process; afterwards it is as before."""
    before: dict[int, tuple[int, int]] = {}

    def change(what: int, soft: int) -> None:
        before.setdefault(what, resource.getrlimit(what))
        hard = before[what][1]
        resource.setrlimit(what, (soft, hard if hard == resource.RLIM_INFINITY else max(hard, soft)))

    yield change
    for what, limits in before.items():
        resource.setrlimit(what, limits)


def test_limits(limit: Callable[[int, int], None]) -> None:
    limit(resource.RLIMIT_NOFILE, 512)
    assert levels(host.open_files) == [("open_files", W)]
    limit(resource.RLIMIT_NOFILE, 1024)
    assert levels(host.open_files) == [("open_files", OK)]
    limit(resource.RLIMIT_CORE, 0)
    assert levels(host.core_dumps) == [("core_dumps", OK)]
    try:
        limit(resource.RLIMIT_CORE, 1)
    except (ValueError, PermissionError):
        pytest.skip("this process may not raise its limit of core files")
    assert levels(host.core_dumps) == [("core_dumps", E)]


def test_a_temporary_folder_for_anybody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    tmp_path.chmod(0o777)
    assert levels(host.temporary_folder) == [("temporary_folder", E)]
    tmp_path.chmod(0o1777)
    assert levels(host.temporary_folder) == [("temporary_folder", OK)]


def test_time_zones(monkeypatch: pytest.MonkeyPatch) -> None:
    assert levels(host.time_zones) == [("time_zones", OK)]

    def none(name: str) -> None:
        raise ZoneInfoNotFoundError(name)

    monkeypatch.setattr(host, "ZoneInfo", none)
    assert wrong(host.time_zones) == [("time_zones", "Europe/Paris", E)]


def test_static_files(settings: Settings, data_dir: Path) -> None:
    backend = {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"}
    settings.STORAGES = settings.STORAGES | {"staticfiles": backend}
    settings.EMBEDDED_REDIS = False
    assert levels(host.static_files) == [("static_missing", E)]
    settings.EMBEDDED_REDIS = True
    assert levels(host.static_files) == [("static_missing", NOTE)]


def test_translations(settings: Settings, tmp_path: Path) -> None:
    assert levels(host.translations) == [("translations_missing", OK)]
    folder = tmp_path / "fr" / "LC_MESSAGES"
    folder.mkdir(parents=True)
    (folder / "django.po").write_text("")
    settings.LOCALE_PATHS = [tmp_path]
    assert levels(host.translations) == [("translations_missing", W)]


def test_kernels_that_cannot_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert levels(host.kernels) == [("kernels_uncached", OK)]
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file" / "below"))
    assert levels(host.kernels) == [("kernels_uncached", W)]


# --- servers --------------------------------------------------------------------------------------


@pytest.mark.database
def test_a_database_that_forgets() -> None:
    statement, setting = {
        "sqlite": ("PRAGMA secure_delete = OFF", "secure_delete"),
        "postgresql": ("SET LOCAL synchronous_commit TO off", "synchronous_commit"),
    }[connections["vault"].vendor]
    # A server of tests may run without fsync, which is found as well.
    before = wrong(databases.promises)
    assert not any(setting in subject for _, subject, _ in before)
    with connections["vault"].cursor() as cursor:
        cursor.execute(statement)
        try:
            assert ("database_setting", f"vault {setting}", E) in wrong(databases.promises)
        finally:
            if connections["vault"].vendor == "sqlite":
                cursor.execute("PRAGMA secure_delete = ON")
    assert not [each for each in databases.clocks() if each.level > OK]


def test_a_damaged_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(each.level == OK for each in databases.whole())
    connection = connections["vault"].copy()
    connection.settings_dict["NAME"] = str(tmp_path / "vault.sqlite3")
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE many (text)")
        cursor.execute("INSERT INTO many SELECT hex(randomblob(3000)) FROM json_each('[1,2,3,4,5,6,7,8,9]')")
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    with (tmp_path / "vault.sqlite3").open("r+b") as file:
        file.seek(8192)
        file.write(b"\xff" * 4096)
    monkeypatch.setattr(databases, "connections", {"default": connections["default"], "vault": connection})
    assert ("database_damaged", "vault", E) in wrong(databases.whole)
    connection.close()


@pytest.mark.parametrize(
    ("ahead_s", "level"), [(0, OK), (4, OK), (-4, OK), (6, W), (-6, W), (61, E), (-3600, E)]
)
def test_clocks(ahead_s: int, level: Level) -> None:
    now = time.time()
    assert clocks.compared("vault", theirs=now + ahead_s, before=now, after=now).level == level


def test_a_slow_answer_is_no_skew() -> None:
    assert clocks.compared("vault", theirs=1030.0, before=1000.0, after=1060.0).level == OK


def test_a_broker_that_drops_tasks(with_broker: str) -> None:
    with redis.Redis.from_url(with_broker) as client:
        client.config_set("maxmemory", "100mb")
        client.config_set("maxmemory-policy", "allkeys-lru")
        assert levels(broker.forgets_nothing) == [("broker_setting", E)]
        client.config_set("maxmemory-policy", "noeviction")
        assert levels(broker.forgets_nothing) == [("broker_setting", OK)]
    assert levels(broker.clock) == [("clock_skewed", OK)]


def test_a_broker_that_cannot_be_asked_is_told(settings: Settings) -> None:
    settings.EMBEDDED_REDIS = False
    settings.CELERY_BROKER_URL = "redis://127.0.0.1:1/0"
    assert levels(broker.forgets_nothing) == [("broker_setting", NOTE)]
    assert levels(broker.clock) == [("clock_skewed", NOTE)]


def test_a_broker_with_tls_is_asked_as_celery_asks_it(settings: Settings) -> None:
    """Celery and the Redis client have different words for the same check of certificates."""
    settings.EMBEDDED_REDIS = False
    settings.CELERY_BROKER_URL = "rediss://127.0.0.1:1/0?ssl_cert_reqs=CERT_REQUIRED"
    (told,) = broker.forgets_nothing()
    assert (told.level, "ConnectionError" in told.what) == (NOTE, True)


class _Answers(BaseHTTPRequestHandler):
    late_s = 0

    def do_GET(self) -> None:
        self.send_response_only(401)
        then = datetime.fromtimestamp(time.time() - self.late_s, UTC)
        self.send_header("Date", format_datetime(then, usegmt=True))
        self.end_headers()

    def log_message(self, *_: Any) -> None: ...


def test_an_analyst_server(settings: Settings) -> None:
    server = HTTPServer(("127.0.0.1", 0), _Answers)
    Thread(target=server.serve_forever, daemon=True).start()
    settings.MOBILITY_ANALYST_URL = f"http://127.0.0.1:{server.server_port}"
    assert levels(zones.analyst_server) == [("analyst_unreachable", OK), ("clock_skewed", OK)]
    _Answers.late_s = 3600
    assert wrong(zones.analyst_server) == [("clock_skewed", "analyst server", E)]
    server.shutdown()
    server.server_close()
    assert wrong(zones.analyst_server) == [("analyst_unreachable", "", E)]


def test_a_worker_that_has_something_else(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a worker with another keystore, storage, clock and version answers; the real one: test_upgrade."""
    keystore().create("study-fair")
    now = time.time()
    same = installation(None, staged="absent", keys=["study-fair"])
    assert (same["sees_staged"], same["keys_missing"]) == (False, 0)
    answer = installation(None, staged="absent", keys=["study-other"]) | {
        "time": now - 300,
        "version": "0.0.1",
    }
    said: list[Diagnosis] = list(workers._compared("celery@b", answer, before=now, staged="absent"))
    assert {(each.code, each.level) for each in said} == {
        ("version_mixed", W),
        ("clock_skewed", E),
        ("keys_not_shared", E),
        ("storage_not_shared", E),
    }
    good = same | {"sees_staged": True, "time": now, "version": software()["version"]}
    assert {each.level for each in workers._compared("celery@b", good, before=now, staged="x")} == {OK}


# --- as a whole -----------------------------------------------------------------------------------


def test_settings_that_are_unsafe(settings: Settings, data_dir: Path) -> None:
    settings.MOBILITY_METRICS_TOKEN = "short"
    assert ("settings_unsafe", "mobility.E033", E) in wrong(doctor.system_checks)
    settings.MOBILITY_METRICS_TOKEN = ""
    assert not [each for each in wrong(doctor.system_checks) if each[2] == E]


def test_a_setting_is_told_once(settings: Settings, data_dir: Path) -> None:
    settings.MOBILITY_METRICS_TOKEN = "short"
    settings.DEBUG = True
    safety._found.cache_clear()
    told = [each.subject for each in doctor.examine(deep=False) if each.code == "settings_unsafe"]
    assert {"mobility.E033", "DEBUG"} <= set(told)
    assert len(told) == len(set(told))
    safety._found.cache_clear()


def test_a_check_that_breaks_stops_no_other(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks() -> None:
        raise RuntimeError("a secret of a row")

    monkeypatch.setattr(host, "open_files", breaks)
    found = doctor.examine(deep=True)
    (failed,) = [each for each in found if each.code == "check_failed"]
    assert (failed.subject, failed.level) == ("open_files", E)
    assert "secret" not in failed.what
    assert {"core_dumps", "ledger_broken", "storage_unusable"} <= {each.code for each in found}


def test_what_a_second_look_does_not_find_is_not_told(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Work goes on while the doctor looks."""
    first = [error("key_outlived", "", "", subject="fair"), fine("key_outlived", "other")]
    second = [fine("key_outlived", "fair"), error("key_outlived", "", "", subject="other")]
    turns = iter((first, second))
    look = doctor.Look(name="keys", check=lambda: next(turns))
    monkeypatch.setattr(doctor, "AGAIN_S", 0)
    monkeypatch.setattr(doctor, "_looks", lambda **_: [look])
    found = [each for each in doctor.examine(deep=False) if each.code == "key_outlived"]
    assert [(each.subject, each.level) for each in found] == [("fair", OK)]
    lasts = doctor.Look(name="keys", check=lambda: [error("key_outlived", "", "", subject="fair")])
    assert [each.level for each in doctor._safely(lasts)] == [E]


def run(environment: dict[str, str], *options: str) -> "subprocess.CompletedProcess[str]":
    inherited = {name: value for name, value in os.environ.items() if not name.endswith("_URL")}
    own = {"DJANGO_SETTINGS_MODULE": "mobility.settings", **environment}
    return subprocess.run(
        [sys.executable, "manage.py", "doctor", *options],
        cwd=ROOT, env=inherited | own, text=True, capture_output=True, check=False, timeout=120,
    )  # fmt: skip


def test_databases_without_tables_are_found_once_each(tmp_path: Path) -> None:
    done = run({"MOBILITY_DATA_DIR": str(tmp_path)}, "--deep", "--json")
    found = json.loads(done.stdout)["findings"]
    assert {each["subject"] for each in found if each["code"] == "migrations_pending"} == {"default", "vault"}
    assert not [each for each in found if each["code"] in ("look_failed", "check_failed")]


@pytest.mark.parametrize("zone", ["all", "analyst", "operator"])
def test_databases_that_are_away_are_explained(zone: str, tmp_path: Path) -> None:
    nowhere = {"DATABASE_URL": "postgres://nobody@127.0.0.1:1/main", "REDIS_URL": "redis://127.0.0.1:1/0"}
    if zone != "analyst":
        nowhere["VAULT_DATABASE_URL"] = "postgres://nobody@127.0.0.1:1/vault"
    done = run({"MOBILITY_DATA_DIR": str(tmp_path), "MOBILITY_ZONE": zone, **nowhere}, "--deep")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    value = json.loads(done.stdout)
    assert (value["ok"], value["zone"], value["version"]) == (False, zone, software()["version"])
    found = {(each["code"], each["subject"]) for each in value["findings"]}
    aliases = {"default"} if zone == "analyst" else {"default", "vault"}
    assert {("database_unreachable", alias) for alias in aliases} <= found
    assert ("broker_unreachable", "") in found
    assert not [each for each in value["findings"] if each["code"] in ("check_failed", "look_failed")]
    assert "ERROR database_unreachable [default]" in done.stderr
    assert "do: " in done.stderr
