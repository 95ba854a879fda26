"""Checks of every zone, with real servers that stop and start again; signs of life of workers."""

import errno
import json
import re
import signal
import sqlite3
import threading
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from django.db import connections
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from mobility.celery import app
from mobility.operations import jobs
from mobility.operations.findings import CODES, Finding, Level
from mobility.operations.findings_texts import TROUBLES
from mobility.operations.models import Backup, JobRun
from mobility.operations.probes import backups, broker, databases, host, ledger, safety, workers
from mobility.operations.probes.looking import look
from mobility.operations.texts import words
from mobility.workers import queues, signs
from mobility.workers.models import WorkerSign
from reports.ledger.models import LedgerHead
from tests.mobility.data_folder import celery_worker, until
from tests.mobility.operations.probe_world import only, trouble

PATIENCE_S = 40
pytestmark = [pytest.mark.django_db(databases=["default", "vault"]), pytest.mark.usefixtures("data_dir")]
LOOK = """
import json, sys
from mobility.operations.probes.looking import look
from mobility.operations.status import status
found = look()
status()
named = sorted({each.code + " " + each.subject for each in found})
vault = [name for name in sys.modules if name.startswith("mobility.models")]
print(json.dumps({"found": named, "vault": vault}))
"""


def test_everything_is_looked_at_and_a_broker_that_stops_and_starts_again_is_told(redis_server):
    found = look()
    assert {each.code for each in found} == set(CODES) - {"handover_waiting", "alert_untold"}
    assert all(words(each).title and "%(" not in words(each).what for each in found)
    for each in found:
        assert json.loads(json.dumps(dict(each.facts))) == dict(each.facts)
    assert trouble(broker.reached()) == []
    redis_server.stop()
    assert trouble(broker.reached()) == [("broker_unreachable", "", Level.ERROR)]
    redis_server.start()
    assert trouble(broker.reached()) == []


def test_every_code_has_its_words_which_name_the_whole_command_and_guess_aloud():
    assert {code for code, why in TROUBLES if not why} == set(CODES)
    for (code, _), text in TROUBLES.items():
        assert code in CODES
        assert all(str(part).strip() for part in text), code
        if code in ("study_stopped", "handover_waiting", "key_missing"):  # closing mends none of them
            assert not re.search("close_study|close the study|after-restore", str(text.todo).lower())
    for code, todo in (
        ("study_stopped", "Restore both databases from matching backups"),
        ("workers_missing", "the worker may be unable to reach the main database"),
        ("ledger_broken", "inform the privacy officer"),
    ):
        assert todo in words(Finding(code=code, level=Level.ERROR, subject="fair")).todo
    lacks = Finding(code="disk_low", level=Level.ERROR, subject="data", facts={"free_bytes": 1_500_000})
    assert words(lacks).what == "Free: 1.5 MB of ? (?)."  # a missing fact stops no message


def test_an_embedded_broker_that_nobody_needs_is_no_error(settings, data_dir):
    settings.CELERY_BROKER_URL, settings.EMBEDDED_REDIS = f"redis+socket://{data_dir}/none.sock", True
    assert broker.answer().level == Level.NOTE
    assert trouble(workers.living()) == [("workers_missing", "celery", Level.NOTE)]


def test_depth_and_age_of_queues_with_priorities(redis_server, settings, monkeypatch):
    assert queues.depth("celery") == (0, None)
    with app.connection_for_write(settings.CELERY_BROKER_URL) as connection:
        for priority in (0, 9):
            app.send_task("mobility.tasks.sweep", connection=connection, priority=priority)
    now = queues.time.time()
    monkeypatch.setattr(queues.time, "time", lambda: now + 4000)
    found = {each.subject: each for each in broker.reached() if each.code == "queue_long"}["celery"]
    assert (found.facts["tasks"], found.facts["oldest_s"]) == (2, pytest.approx(4000, abs=5))
    assert found.level == Level.WARNING


def test_migrations_that_were_not_run():
    assert trouble(databases.migrated()) == []
    # A process that migrates only the main database knows no app of the vault, and records nothing of it.
    MigrationRecorder(connections["default"]).record_unapplied("mobility", "0001_initial")
    MigrationRecorder(connections["vault"]).record_unapplied("reports", "0001_initial")
    assert trouble(databases.migrated()) == []
    MigrationRecorder(connections["vault"]).record_unapplied("mobility", "0001_initial")
    assert trouble(databases.migrated()) == [("migrations_pending", "vault", Level.ERROR)]


def test_what_needs_tables_is_left_out_until_they_are_there(monkeypatch):
    lacks = {"vault": frozenset({("mobility", "0099_next")})}
    monkeypatch.setattr(databases, "pending", lambda alias: lacks.get(alias, frozenset()))
    found = look()
    assert ("migrations_pending", "vault", Level.ERROR) in trouble(found)
    codes = {each.code for each in found}
    assert "ledger_broken" in codes or "backup_old" in codes  # main has its tables
    assert not codes & {"key_due", "day_open", "batch_waiting", "keystore_unusable"}


def test_a_look_that_breaks_is_told_and_stops_no_other(monkeypatch):
    stale = OSError(errno.ESTALE, "words that may quote a path")
    monkeypatch.setattr(host.shutil, "disk_usage", Mock(side_effect=stale))
    found = look()
    failed = only(each for each in found if each.code == "look_failed")
    assert (failed.level, failed.subject, failed.facts) == (Level.ERROR, "disks", {"error": "OSError"})
    assert "backup_old" in {each.code for each in found}


def test_a_disk_that_does_not_answer_holds_up_no_look_and_is_asked_by_one_thread(monkeypatch):
    """A network disk whose server is down: not even an error comes back."""
    monkeypatch.setattr(host, "ANSWER_S", 0.1)
    comes_back, ask, asked = threading.Event(), host.shutil.disk_usage, []

    def hangs(folder):
        asked.append(folder)
        comes_back.wait()
        return ask(folder)

    monkeypatch.setattr(host.shutil, "disk_usage", hangs)
    found = [*host.disks(), *host.disks()]
    assert ({each.facts["why"] for each in found}, len(asked)) == ({"silent"}, len(found) / 2)
    assert words(found[0]).title == "Disk not responding: data folder"
    comes_back.set()
    for folder in host._folders().values():  # one that is late would count as a second disk
        host._unanswered[folder].answer.result()
    assert only(host.disks()).facts["free_bytes"] > 0


def make_sign(name, *, silent_s=0, up_s=3600, **values):
    now = timezone.now()
    given = {"zone": "all", "queues": ["celery"], "processes": 2, "version": "1"} | values
    at = {"started_at": now - timedelta(seconds=up_s), "seen_at": now - timedelta(seconds=silent_s)}
    return WorkerSign.objects.create(name=name, **at, **given)


def test_a_worker_is_silent_after_a_minute_and_forgotten_after_a_day(settings):
    settings.EMBEDDED_REDIS = False
    assert trouble(workers.living()) == [("workers_missing", "celery", Level.ERROR)]
    make_sign("celery@one", silent_s=50)
    make_sign("celery@two", silent_s=70)
    make_sign("celery@old", silent_s=90_000)
    make_sign("celery@other", zone="operator")
    make_sign("celery@maps", queues=["elsewhere"])
    assert trouble(workers.living()) == [("worker_silent", "celery@two", Level.WARNING)]
    assert next(iter(workers.living())).facts == {"workers": 1, "processes": 2}
    signs.forget_old()
    assert not WorkerSign.objects.filter(name="celery@old").exists()


def test_a_job_that_fails_is_told_until_it_ends_well():
    task = SimpleNamespace(name="mobility.tasks.sweep")
    jobs.begins(task)
    jobs.ends(task, failure="OperationalError")
    assert ("job_failed", "sweep", Level.WARNING) in trouble(workers.jobs_run())
    assert JobRun.objects.get(name="sweep").failure == "OperationalError"
    jobs.ends(task)
    assert trouble(workers.jobs_run()) == []
    first = JobRun.objects.get().finished_at
    jobs.ends(task)  # good runs are noted now and then only
    jobs.ends(SimpleNamespace(name="mobility.tasks.advance"))
    assert JobRun.objects.get().finished_at == first


def test_a_job_is_late_only_while_somebody_could_run_it():
    now, at = timezone.now(), timezone.now() - timedelta(hours=1)
    JobRun.objects.create(name="sweep", zone="all", started_at=now, finished_at=at)
    assert trouble(workers.jobs_run()) == []  # no workers: that is reported elsewhere
    sign = make_sign("celery@one", up_s=300)
    assert trouble(workers.jobs_run()) == []  # it has just started
    WorkerSign.objects.filter(pk=sign.pk).update(started_at=timezone.now() - timedelta(seconds=700))
    found = {each.subject: each.facts.get("why") for each in workers.jobs_run() if each.level > Level.OK}
    assert found == {"sweep": "late", "look_for_alerts": "never"}


@pytest.mark.parametrize(("free_gb", "level"), [(20, Level.OK), (9, Level.WARNING), (1.9, Level.ERROR)])
def test_disks_by_what_is_free(monkeypatch, free_gb, level):
    usage = SimpleNamespace(free=int(free_gb * 1e9), total=int(100e9))
    monkeypatch.setattr(host.shutil, "disk_usage", lambda _: usage)
    found = only(host.disks())  # one disk: told once
    assert (found.level, found.subject, found.facts["free_percent"]) == (level, "data", free_gb)


@pytest.mark.parametrize("name", ["not-made-yet", "cannot-be-looked-at" * 20])
def test_the_disk_that_backups_go_to_is_one(settings, name):
    settings.MOBILITY_BACKUP_DIR = Path("/dev/shm") / name  # noqa: S108 - memory is its own disk
    assert [found.subject for found in host.disks()] == ["data", "backups"]


def test_the_last_check_of_the_ledger():
    well = {"number": 7, "at": timezone.now(), "checked_at": timezone.now(), "problem": None}
    LedgerHead.objects.update_or_create(pk=1, defaults=well)
    assert trouble(ledger.checked()) == []
    LedgerHead.objects.update(checked_at=timezone.now() - timedelta(hours=7))
    assert only(ledger.checked()).facts["why"] == "unchecked"
    LedgerHead.objects.update(problem={"number": 3, "what": "the hash does not fit"})
    found = only(ledger.checked())
    assert (found.level, found.facts) == (Level.ERROR, {"entries": 7, "number": 3})


def test_a_server_without_a_backup_is_worse_off_than_a_trial(settings):
    settings.EMBEDDED_REDIS = False
    found = only(backups.backed_up())
    assert (found.level, found.facts) == (Level.WARNING, {"why": "never"})
    made = Backup.objects.create(kind="backup", zone="all", made_at=timezone.now(), bytes=5)
    Backup.objects.create(kind="restore", zone="all", made_at=timezone.now())
    assert only(backups.backed_up()).level == Level.OK
    Backup.objects.filter(pk=made.pk).update(made_at=timezone.now() - timedelta(days=2, hours=1))
    assert only(backups.backed_up()).level == Level.WARNING


def test_settings_that_are_unsafe(settings):
    settings.ALLOWED_HOSTS = ["127.0.0.1", "localhost"]
    assert trouble(safety.checked()) == []
    settings.ALLOWED_HOSTS = ["reports.example.org"]
    assert trouble(safety.checked()) == [("settings_unsafe", "HTTPS", Level.WARNING)]
    settings.HTTPS = True  # and nothing else: as Django's own checks of a deployment see
    assert ("settings_unsafe", "security.W004", Level.WARNING) in trouble(safety.checked())
    settings.DEBUG = True
    assert ("settings_unsafe", "DEBUG", Level.ERROR) in trouble(safety.checked())


def test_a_process_of_the_analyst_zone_imports_nothing_of_the_vault(migrated_folder, monkeypatch):
    monkeypatch.setenv("MOBILITY_ZONE", "analyst")
    with migrated_folder.shell(LOOK) as process:
        printed, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    told = json.loads(printed)
    assert (told["vault"], "database_unreachable default" in told["found"]) == ([], True)
    assert "workers_missing analyst" in told["found"]
    assert not [each for each in told["found"] if "key" in each or "vault" in each or "batch" in each]


def rows(folder, question):
    with closing(sqlite3.connect(folder.paths.main_database, timeout=30)) as database:
        return database.execute(question).fetchall()


def seen(folder):
    found = rows(folder, "SELECT seen_at FROM operations_workersign")
    return datetime.fromisoformat(found[0][0]).replace(tzinfo=UTC) if found else None


@pytest.mark.long
def test_a_worker_shows_life_notes_its_jobs_and_leaves_nothing_when_it_stops(folder):
    with folder.holding():
        first = until(lambda: seen(folder))
        assert abs((datetime.now(UTC) - first).total_seconds()) < PATIENCE_S
        ((queues, processes),) = rows(folder, "SELECT queues, processes FROM operations_workersign")
        assert (queues, processes > 0) == ('["celery"]', True)
        done = "SELECT name FROM operations_jobrun WHERE finished_at IS NOT NULL AND failed_at IS NULL"
        until(lambda: {"sweep", "look_after_ledger"} <= {name for (name,) in rows(folder, done)})
        until(lambda: (again := seen(folder)) and again > first)
    assert until(lambda: not folder.running())
    assert seen(folder) is None


@pytest.mark.long
def test_a_worker_that_gives_its_tasks_back_leaves_nothing_either(folder, broker):
    """Stop it like docker/ and its systemd units: Celery then reports no worker as shut down."""
    assert folder.shell().wait(timeout=60) == 0  # makes the databases
    with celery_worker({"MOBILITY_DATA_DIR": str(folder.root), "REDIS_URL": broker}) as worker:
        until(lambda: seen(folder))
        worker.send_signal(signal.SIGTERM)
        worker.wait(timeout=PATIENCE_S)
    assert seen(folder) is None


def test_signs_of_two_zones_in_one_database_are_two():
    make_sign("celery@one", zone="operator")
    for _ in range(2):
        signs.show("celery@one", queues=["celery"], processes=2, started_at=timezone.now())
    assert sorted(WorkerSign.objects.values_list("zone", flat=True)) == ["all", "operator"]
