"""The doctor finds faults of a machine and its servers, also during outages of databases."""

import json
import resource
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from unittest.mock import Mock
from zoneinfo import ZoneInfoNotFoundError

import pytest
import redis
from django.core.management import call_command
from django.db import connections

from mobility.operations.doctor import broker, clocks, databases, host, workers, zones
from mobility.operations.doctor import examining as doctor
from mobility.operations.doctor.diagnosis import CODES, error, fine
from mobility.operations.doctor.worker_answers import installation
from mobility.operations.findings import Level
from mobility.operations.probes import safety
from mobility.vault.keystore import keystore
from reports.base.version import software
from tests.mobility.data_folder import answering, own_process

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.django_db(databases=["default", "vault"])
DOCTOR = (sys.executable, "manage.py", "doctor", "--deep")
E, W, NOTE, OK = Level.ERROR, Level.WARNING, Level.NOTE, Level.OK
AWAY = {"DATABASE_URL": "postgres://nobody@127.0.0.1:1/main", "REDIS_URL": "redis://127.0.0.1:1/0"}


@pytest.fixture(autouse=True)
def _nobody_works_meanwhile(monkeypatch):
    monkeypatch.setattr(doctor, "AGAIN_S", 0)
    monkeypatch.setattr(workers, "same_installation", list)


def levels(check):
    return [(each.code, each.level) for each in check()]


def wrong(check):
    return [(each.code, each.subject, each.level) for each in check() if each.level > OK]


def test_every_code_is_explained():
    page = (ROOT / "docs" / "doctor.md").read_text()
    assert [code for code in CODES if f"`{code}`" not in page] == []


def test_keys_that_others_can_read_and_one_that_is_destroyed_while_it_looks(data_dir, monkeypatch):
    keystore().create("study-fair")
    key = keystore().folder / "study-fair.key"
    assert levels(host.key_files) == [("keystore_open", OK)]
    for path, mode, closed in ((key, 0o640, 0o600), (keystore().folder, 0o750, 0o700)):
        path.chmod(mode)
        assert levels(host.key_files) == [("keystore_open", E)]
        path.chmod(closed)
    listed = Path.iterdir

    def destroyed(folder):
        for path in list(listed(folder)):
            path.unlink()
            yield path

    monkeypatch.setattr(Path, "iterdir", destroyed)
    assert levels(host.key_files) == [("keystore_open", OK)]


@pytest.mark.parametrize(
    ("check", "code", "what", "soft", "level"),
    [(host.open_files, "open_files", resource.RLIMIT_NOFILE, 512, W),
     (host.open_files, "open_files", resource.RLIMIT_NOFILE, 1024, OK),
     (host.core_dumps, "core_dumps", resource.RLIMIT_CORE, 0, OK),
     (host.core_dumps, "core_dumps", resource.RLIMIT_CORE, 1, E)],
)  # fmt: skip
def test_limits_of_the_process(check, code, what, soft, level):
    before = resource.getrlimit(what)
    hard = before[1] if before[1] == resource.RLIM_INFINITY else max(before[1], soft)
    try:
        resource.setrlimit(what, (soft, hard))
        assert levels(check) == [(code, level)]
    except (ValueError, PermissionError):
        pytest.skip("this process may not raise its limit")
    finally:
        resource.setrlimit(what, before)


def test_temporary_folder_for_anybody_and_missing_files(settings, data_dir, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for mode, level in ((0o777, E), (0o1777, OK)):
        tmp_path.chmod(mode)
        assert levels(host.temporary_folder) == [("temporary_folder", level)]
    assert levels(host.time_zones) == [("time_zones", OK)]

    monkeypatch.setattr(host, "ZoneInfo", Mock(side_effect=ZoneInfoNotFoundError))
    assert wrong(host.time_zones) == [("time_zones", "Europe/Paris", E)]
    backend = {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"}
    settings.STORAGES = settings.STORAGES | {"staticfiles": backend}
    for is_trial, level in ((False, E), (True, NOTE)):
        settings.EMBEDDED_REDIS = is_trial
        assert levels(host.static_files) == [("static_missing", level)]
    assert levels(host.translations) == [("translations_missing", OK)]
    (tmp_path / "fr" / "LC_MESSAGES").mkdir(parents=True)
    (tmp_path / "fr" / "LC_MESSAGES" / "django.po").write_text("")
    settings.LOCALE_PATHS = [tmp_path]
    assert levels(host.translations) == [("translations_missing", W)]
    (tmp_path / "file").write_text("")
    for place, level in ((tmp_path, OK), (tmp_path / "file" / "below", W)):
        monkeypatch.setenv("NUMBA_CACHE_DIR", str(place))
        assert levels(host.kernels) == [("kernels_uncached", level)]


@pytest.mark.database
def test_a_database_that_forgets():
    statement, setting = "SET LOCAL synchronous_commit TO off", "synchronous_commit"
    if connections["vault"].vendor == "sqlite":
        statement, setting = "PRAGMA secure_delete = OFF", "secure_delete"
    # A server of tests may run without fsync, which is found as well.
    assert not any(setting in subject for _, subject, _ in wrong(databases.promises))
    with connections["vault"].cursor() as cursor:
        cursor.execute(statement)
        try:
            assert ("database_setting", f"vault {setting}", E) in wrong(databases.promises)
        finally:
            if connections["vault"].vendor == "sqlite":
                cursor.execute("PRAGMA secure_delete = ON")
    assert not [each for each in databases.clocks() if each.level > OK]


def test_a_damaged_file(tmp_path, monkeypatch):
    assert all(each.level == OK for each in databases.whole())
    connection = connections["vault"].copy()
    connection.settings_dict["NAME"] = str(tmp_path / "vault.sqlite3")
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE many (text)")
        cursor.execute("INSERT INTO many SELECT hex(randomblob(3000)) FROM json_each('[1,2,3,4,5,6,7,8,9]')")
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    with (tmp_path / "vault.sqlite3").open("r+b") as file:
        file.seek(2 * 16384)
        file.write(b"\xff" * 16384)
    monkeypatch.setattr(databases, "connections", {"default": connections["default"], "vault": connection})
    assert ("database_damaged", "vault", E) in wrong(databases.whole)
    connection.close()


def test_clocks():
    now, expected = time.time(), {0: OK, 4: OK, -4: OK, 6: W, -6: W, 59: W, 61: E, -3600: E}
    for ahead_s, level in expected.items():
        assert clocks.compared("vault", theirs=now + ahead_s, before=now, after=now).level == level, ahead_s
    # A slow answer is no skew.
    assert clocks.compared("vault", theirs=now + 30, before=now, after=now + 60).level == OK


def test_a_broker_that_drops_tasks(with_broker):
    with redis.Redis.from_url(with_broker) as client:
        client.config_set("maxmemory", "100mb")
        for policy, level in (("allkeys-lru", E), ("noeviction", OK)):
            client.config_set("maxmemory-policy", policy)
            assert levels(broker.forgets_nothing) == [("broker_setting", level)]
    assert levels(broker.clock) == [("clock_skewed", OK)]


# Celery and the Redis client have different words for the same check of certificates.
@pytest.mark.parametrize("url", ["redis://127.0.0.1:1", "rediss://127.0.0.1:1/0?ssl_cert_reqs=CERT_REQUIRED"])
def test_a_broker_that_cannot_be_asked_is_told(settings, url):
    settings.EMBEDDED_REDIS, settings.CELERY_BROKER_URL = False, url
    (told,) = broker.forgets_nothing()
    assert (told.code, told.level, "ConnectionError" in told.what) == ("broker_setting", NOTE, True)
    assert levels(broker.clock) == [("clock_skewed", NOTE)]


def test_an_analyst_server(settings):
    with answering(401) as site:
        settings.MOBILITY_ANALYST_URL = site.url
        for date, expected in (
            (format_datetime(datetime.now(UTC), usegmt=True), ("clock_skewed", OK)),
            (format_datetime(datetime.now(UTC) - timedelta(hours=1), usegmt=True), ("clock_skewed", E)),
            ("soon", ()),  # says nothing of the clock, and must not end the examination
        ):
            site.headers = {"Date": date}
            assert levels(zones.analyst_server) == [("analyst_unreachable", OK), *filter(None, [expected])]
    assert wrong(zones.analyst_server) == [("analyst_unreachable", "", E)]


def test_a_worker_that_has_something_else(data_dir, monkeypatch):
    keystore().create("study-fair")
    now = time.time()
    same = installation(None, staged="absent", keys=["study-fair"])
    assert (same["sees_staged"], same["keys_missing"]) == (False, 0)
    other = installation(None, staged="absent", keys=["study-other"])
    other |= {"time": now - 300, "version": "0.0.1"}
    said = workers._compared("celery@b", other, before=now, staged="absent")
    assert {(each.code, each.level) for each in said} == {
        ("version_mixed", W), ("clock_skewed", E), ("keys_not_shared", E), ("storage_not_shared", E),
    }  # fmt: skip
    good = same | {"sees_staged": True, "time": now, "version": software()["version"]}
    assert {each.level for each in workers._compared("celery@b", good, before=now, staged="x")} == {OK}


def test_a_setting_that_is_unsafe_is_told_once(settings, data_dir):
    assert not [each for each in wrong(doctor.system_checks) if each[2] == E]
    settings.MOBILITY_METRICS_TOKEN = "short"
    settings.DEBUG = True
    safety._found.cache_clear()
    told = [each.subject for each in doctor.examine(deep=False) if each.code == "settings_unsafe"]
    assert {"mobility.E033", "DEBUG"} <= set(told)
    assert len(told) == len(set(told))
    safety._found.cache_clear()


def test_a_check_that_breaks_stops_no_other_and_only_what_lasts_is_told(data_dir, monkeypatch):
    monkeypatch.setattr(host, "open_files", Mock(side_effect=RuntimeError("a secret of a row")))
    found = doctor.examine(deep=True)
    (failed,) = [each for each in found if each.code == "check_failed"]
    assert (failed.subject, failed.level, "secret" in failed.what) == ("open_files", E, False)
    assert {"core_dumps", "ledger_broken", "storage_unusable"} <= {each.code for each in found}
    # Work continues while the doctor looks.
    first = [error("key_outlived", "", "", subject="fair"), fine("key_outlived", "other")]
    turns = iter((first, [fine("key_outlived", "fair"), error("key_outlived", "", "", subject="other")]))
    look = doctor.Look(name="keys", check=lambda: next(turns))
    monkeypatch.setattr(doctor, "_looks", lambda **_: [look])
    found = [each for each in doctor.examine(deep=False) if each.code == "key_outlived"]
    assert [(each.subject, each.level) for each in found] == [("fair", OK)]
    lasts = doctor.Look(name="keys", check=lambda: [error("key_outlived", "", "", subject="fair")])
    assert [each.level for each in doctor._safely(lasts)] == [E]


def test_a_database_that_is_away_is_explained_once(data_dir, unmount, capsys):
    unmount("vault")
    with pytest.raises(SystemExit):
        call_command("doctor", "--deep")
    printed, said = capsys.readouterr()
    value = json.loads(printed)
    assert (value["ok"], value["zone"], value["version"]) == (False, "all", software()["version"])
    codes = {(each["code"], each["subject"]) for each in value["findings"]}
    assert ("database_unreachable", "vault") in codes
    assert not codes & {("check_failed", "promises"), ("check_failed", "seals")}
    assert not [text for text in ("ERROR database_unreachable [vault]", "fix: ") if text not in said]


@pytest.mark.long
@pytest.mark.parametrize("zone", ["all", "analyst"])
def test_databases_that_are_away_are_explained(zone, tmp_path):
    away = AWAY if zone == "analyst" else AWAY | {"VAULT_DATABASE_URL": "postgres://nobody@127.0.0.1:1/vault"}
    done = own_process(DOCTOR, {"MOBILITY_DATA_DIR": str(tmp_path), "MOBILITY_ZONE": zone, **away})
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    found = {(each["code"], each["subject"]) for each in json.loads(done.stdout)["findings"]}
    unreachable = {("database_unreachable", each) for each in ("default", "vault")[: len(away) - 1]}
    assert unreachable | {("broker_unreachable", "")} <= found
    assert not {code for code, _ in found} & {"look_failed", "check_failed"}
