"""Looks at what every zone has; of databases and brokers with real servers that stop and start again."""

import errno
import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import OperationalError, connections
from django.db.backends.postgresql.base import DatabaseWrapper
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone
from pytest_django.fixtures import Settings

from mobility.celery import app
from mobility.operations import jobs, probes, queues, signs
from mobility.operations.findings import CODES, Finding, Level
from mobility.operations.models import Backup, JobRun, WorkerSign
from mobility.operations.probes import backups, broker, databases, host, ledger, safety, workers
from mobility.operations.wording import words
from mobility.operations.wording_texts import TEXTS
from reports.models import LedgerHead
from scripts import services
from tests.mobility.data_folder import Folder
from tests.mobility.operations.probe_world import only, trouble

pytestmark = [
    pytest.mark.django_db(databases=["default", "vault"]),
    pytest.mark.usefixtures("data_dir"),
]


def test_everything_is_looked_at_and_told_in_words(redis_server: services.Server) -> None:
    found = probes.look()
    assert {each.code for each in found} == set(CODES) - {"handover_waiting", "alert_untold"}
    assert all(words(each).title and "%(" not in words(each).what for each in found)


def test_every_code_has_its_words_and_its_page() -> None:
    assert TEXTS.keys() == set(CODES)
    for code in CODES:
        for text in (TEXTS[code].trouble, *TEXTS[code].variants.values()):
            assert all(str(part).strip() for part in (text.title, text.what, text.todo)), code


def test_a_missing_fact_stops_no_message() -> None:
    found = words(
        Finding(code="disk_low", level=Level.ERROR, subject="data", facts={"free_bytes": 1_500_000})
    )
    assert found.what == "Free: 1.5 MB of ? (?)."


def test_words_name_the_whole_command_and_guess_aloud() -> None:
    def todo(code: str) -> str:
        return words(Finding(code=code, level=Level.ERROR, subject="fair")).todo

    assert "manage.py close_study fair --after-restore" in todo("study_stopped")
    assert "perhaps it cannot reach the main database" in todo("workers_missing")
    assert "tell the privacy officer" in todo("ledger_broken")


def test_a_broker_that_stops_and_starts_again(redis_server: services.Server) -> None:
    assert trouble(broker.reached()) == []
    redis_server.stop()
    assert trouble(broker.reached()) == [("broker_unreachable", "", Level.ERROR)]
    redis_server.start()
    assert trouble(broker.reached()) == []


def test_an_embedded_broker_that_nobody_needs_is_no_error(settings: Settings, data_dir: Path) -> None:
    settings.CELERY_BROKER_URL, settings.EMBEDDED_REDIS = f"redis+socket://{data_dir}/none.sock", True
    assert broker.answer().level == Level.NOTE
    assert trouble(workers.living()) == [("workers_missing", "celery", Level.NOTE)]


def test_depth_and_age_of_queues_with_priorities(
    redis_server: services.Server, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert queues.depth("celery") == queues.Depth(tasks=0, oldest_s=None)
    with app.connection_for_write(settings.CELERY_BROKER_URL) as connection:
        for priority in (0, 9):
            app.send_task("mobility.tasks.sweep", connection=connection, priority=priority)
    now = queues.time.time()
    monkeypatch.setattr(queues.time, "time", lambda: now + 4000)
    found = {each.subject: each for each in broker.reached() if each.code == "queue_long"}["celery"]
    assert found.facts["tasks"] == 2
    assert found.facts["oldest_s"] == pytest.approx(4000, abs=5)
    assert found.level == Level.WARNING


@pytest.mark.slow
def test_a_database_that_stops_and_starts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    programs, port = services.postgres_programs() or services.installed_postgres(), services.free_port()
    with services.private_folder("postgres") as folder:
        server = services.postgres_server(programs, folder=folder, port=port)
        with services.running(server):
            other = connections["default"].copy()
            other.settings_dict |= {
                "ENGINE": "django.db.backends.postgresql", "NAME": "postgres", "USER": "postgres",
                "HOST": "127.0.0.1", "PORT": port, "OPTIONS": {},
            }  # fmt: skip
            asked = DatabaseWrapper(other.settings_dict, "default")
            monkeypatch.setattr(databases, "connections", {"default": asked})
            assert databases.answer("default").level == Level.OK
            server.stop()
            found = databases.answer("default")
            assert (found.level, found.facts) == (Level.ERROR, {"error": "OperationalError"})
            server.start()
            assert databases.answer("default").level == Level.OK


def test_migrations_that_were_not_run() -> None:
    assert trouble(databases.migrated()) == []
    MigrationRecorder(connections["vault"]).record_unapplied("mobility", "0001_initial")
    assert trouble(databases.migrated()) == [("migrations_pending", "vault", Level.ERROR)]


def test_a_database_lacks_no_migration_of_what_lives_elsewhere() -> None:
    """Who migrates only the main database knows no app of the vault, and records nothing of it."""
    MigrationRecorder(connections["default"]).record_unapplied("mobility", "0001_initial")
    MigrationRecorder(connections["vault"]).record_unapplied("reports", "0001_initial")
    assert trouble(databases.migrated()) == []


def test_what_needs_tables_is_left_out_until_they_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the first command, and between the new code and its `migrate`."""
    lacks = {"vault": frozenset({("mobility", "0099_next")})}
    monkeypatch.setattr(databases, "pending", lambda alias: lacks.get(alias, frozenset()))
    found = probes.look()
    assert ("migrations_pending", "vault", Level.ERROR) in trouble(found)
    codes = {each.code for each in found}
    assert "ledger_broken" in codes or "backup_old" in codes  # main has its tables
    assert not codes & {"key_due", "day_open", "batch_waiting", "keystore_unusable"}


def test_a_look_that_breaks_is_told_and_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Iterator[Finding]:
        raise ValueError("words that may quote a row")

    monkeypatch.setattr(host, "disks", broken)
    found = probes.look()
    failed = only(each for each in found if each.code == "look_failed")
    assert (failed.level, failed.subject, failed.facts) == (Level.ERROR, "disks", {"error": "ValueError"})
    assert "backup_old" in {each.code for each in found}


def test_a_disk_that_does_not_answer_holds_up_no_look_and_is_asked_by_one_thread(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    """As a network disk whose server is away: whoever asks is not even told that it failed."""
    monkeypatch.setattr(host, "ANSWER_S", 0.1)
    comes_back, ask, asked = threading.Event(), host.shutil.disk_usage, []

    def hangs(folder: Path) -> Any:
        asked.append(folder)
        comes_back.wait()
        return ask(folder)

    monkeypatch.setattr(host.shutil, "disk_usage", hangs)
    found = [*host.disks(), *host.disks()]
    assert {each.facts["why"] for each in found} == {"silent"}
    assert len(asked) == len(found) / 2
    assert words(found[0]).title == "No answer from its disk: data folder"
    comes_back.set()
    host._unanswered[Path(settings.MOBILITY_DATA_DIR)].answer.result()
    assert only(host.disks()).facts["free_bytes"] > 0


def test_a_disk_that_fails_is_a_look_that_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    def stale(folder: Path) -> Any:
        raise OSError(errno.ESTALE, "Stale file handle")

    monkeypatch.setattr(host.shutil, "disk_usage", stale)
    failed = only(each for each in probes.look() if each.code == "look_failed")
    assert (failed.subject, failed.facts) == ("disks", {"error": "OSError"})


def test_without_a_database_what_needs_it_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(alias: str) -> int:
        if alias == "vault":
            raise OperationalError
        return 1

    monkeypatch.setattr(databases, "_asked", refused)
    found = {each.code for each in probes.look()}
    assert ("database_unreachable", "vault", Level.ERROR) in trouble(probes.look())
    assert "batch_failed" not in found
    assert "backup_old" in found


def make_sign(name: str, *, silent_s: float = 0, up_s: float = 3600, **values: object) -> WorkerSign:
    now = timezone.now()
    given = {"zone": "all", "queues": ["celery"], "processes": 2, "version": "1"} | values
    return WorkerSign.objects.create(
        name=name,
        started_at=now - timedelta(seconds=up_s),
        seen_at=now - timedelta(seconds=silent_s),
        **given,
    )


def test_a_worker_is_silent_after_a_minute_and_forgotten_after_a_day(settings: Settings) -> None:
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


def test_a_job_that_fails_is_told_until_it_ends_well() -> None:
    task = SimpleNamespace(name="mobility.tasks.sweep")
    jobs.begins(task)
    jobs.ends(task, failure="OperationalError")
    assert ("job_failed", "sweep", Level.WARNING) in trouble(workers.jobs_run())
    assert JobRun.objects.get(name="sweep").failure == "OperationalError"
    jobs.ends(task)
    assert trouble(workers.jobs_run()) == []


def test_good_runs_are_noted_now_and_then_only() -> None:
    task = SimpleNamespace(name="mobility.tasks.forget_old_views")
    jobs.ends(task)
    first = JobRun.objects.get(name="forget_old_views").finished_at
    jobs.ends(task)
    assert JobRun.objects.get(name="forget_old_views").finished_at == first
    jobs.ends(SimpleNamespace(name="mobility.tasks.advance"))
    assert set(JobRun.objects.values_list("name", flat=True)) == {"forget_old_views"}


def test_a_job_is_late_only_while_somebody_could_run_it() -> None:
    JobRun.objects.create(
        name="sweep", zone="all", started_at=timezone.now(), finished_at=timezone.now() - timedelta(hours=1)
    )
    assert trouble(workers.jobs_run()) == []  # nobody works: that is told elsewhere
    sign = make_sign("celery@one", up_s=300)
    assert trouble(workers.jobs_run()) == []  # it has just started
    WorkerSign.objects.filter(pk=sign.pk).update(started_at=timezone.now() - timedelta(seconds=700))
    found = {each.subject: each.facts.get("why") for each in workers.jobs_run() if each.level > Level.OK}
    assert found == {"sweep": "late", "look_for_alerts": "never"}


@pytest.mark.parametrize(("free_gb", "level"), [(20, Level.OK), (9, Level.WARNING), (1.9, Level.ERROR)])
def test_disks_by_what_is_free(monkeypatch: pytest.MonkeyPatch, free_gb: float, level: Level) -> None:
    usage = SimpleNamespace(free=int(free_gb * 1e9), total=int(100e9))
    monkeypatch.setattr(host.shutil, "disk_usage", lambda _: usage)
    found = only(host.disks())  # one disk: told once
    assert (found.level, found.subject, found.facts["free_percent"]) == (level, "data", free_gb)


@pytest.mark.parametrize("name", ["not-made-yet", "cannot-be-looked-at" * 20])
def test_the_disk_that_backups_go_to_is_one(settings: Settings, name: str) -> None:
    settings.MOBILITY_BACKUP_DIR = Path("/dev/shm") / name  # noqa: S108 - memory is a disk of its own
    assert [found.subject for found in host.disks()] == ["data", "backups"]


def test_the_last_check_of_the_ledger() -> None:
    LedgerHead.objects.update_or_create(
        pk=1, defaults={"number": 7, "at": timezone.now(), "checked_at": timezone.now(), "problem": None}
    )
    assert trouble(ledger.checked()) == []
    LedgerHead.objects.update(checked_at=timezone.now() - timedelta(hours=7))
    assert only(ledger.checked()).facts["why"] == "unchecked"
    LedgerHead.objects.update(problem={"number": 3, "what": "the hash does not fit"})
    found = only(ledger.checked())
    assert (found.level, found.facts) == (Level.ERROR, {"entries": 7, "number": 3})


def test_a_server_without_a_backup_is_worse_off_than_a_trial(settings: Settings) -> None:
    settings.EMBEDDED_REDIS = False
    found = only(backups.backed_up())
    assert (found.level, found.facts) == (Level.WARNING, {"why": "never"})
    made = Backup.objects.create(kind="backup", zone="all", made_at=timezone.now(), bytes=5)
    Backup.objects.create(kind="restore", zone="all", made_at=timezone.now())
    assert only(backups.backed_up()).level == Level.OK
    Backup.objects.filter(pk=made.pk).update(made_at=timezone.now() - timedelta(days=2, hours=1))
    assert only(backups.backed_up()).level == Level.WARNING


def test_settings_that_are_unsafe(settings: Settings) -> None:
    settings.ALLOWED_HOSTS = ["127.0.0.1", "localhost"]
    assert trouble(safety.checked()) == []
    settings.ALLOWED_HOSTS = ["reports.example.org"]
    assert trouble(safety.checked()) == [("settings_unsafe", "HTTPS", Level.WARNING)]
    settings.HTTPS = True  # and nothing else: as Django's own checks of a deployment see
    found = trouble(safety.checked())
    assert ("settings_unsafe", "security.W004", Level.WARNING) in found
    settings.DEBUG = True
    assert ("settings_unsafe", "DEBUG", Level.ERROR) in trouble(safety.checked())


LOOK = """
import json, sys
from mobility.operations.probes import look
from mobility.operations.status import status
found = look()
status()
named = sorted({each.code + " " + each.subject for each in found})
vault = [name for name in sys.modules if name.startswith("mobility.models")]
print(json.dumps({"found": named, "vault": vault}))
"""


@pytest.mark.slow
def test_a_process_of_the_analyst_zone_imports_nothing_of_the_vault(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOBILITY_ZONE", "analyst")
    with folder.shell(LOOK) as process:
        printed, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    told = json.loads(printed)
    assert told["vault"] == []
    assert "database_unreachable default" in told["found"]
    assert "workers_missing analyst" in told["found"]
    assert not [each for each in told["found"] if "key" in each or "vault" in each or "batch" in each]


def test_facts_fit_into_messages() -> None:
    for each in probes.look():
        assert json.loads(json.dumps(dict(each.facts))) == dict(each.facts)
