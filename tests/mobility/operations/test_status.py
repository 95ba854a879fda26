"""The status page: what is wrong comes first, in words, which read well in both languages."""

from datetime import timedelta
from unittest.mock import Mock

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import override

from mobility.operations import health, views
from mobility.operations.findings import Finding, Level
from mobility.operations.models import Alert, Backup, JobRun
from mobility.operations.probes import databases, looking
from mobility.operations.texts import ago, duration, every, fact_words, size, words
from mobility.vault.models.batch import Batch
from mobility.workers.models import WorkerSign
from tests.mobility.operations.probe_world import make_batch, make_study

pytestmark = [pytest.mark.django_db(databases=["default", "vault"]), pytest.mark.usefixtures("data_dir")]
FRAGMENT = {"HX-Request": "true"}


@pytest.fixture(autouse=True)
def _looked_at_anew(monkeypatch):
    monkeypatch.setattr(looking, "_last", None)
    monkeypatch.setattr(health, "_kept", health._Kept())


@pytest.fixture
def found(monkeypatch):
    findings = []
    monkeypatch.setattr(looking, "look", lambda: findings)
    return findings


def page(client, person, **options):
    client.force_login(person)
    answer = client.get(reverse("status"), **options)
    assert answer.status_code == 200
    return answer.content.decode()


def test_the_worst_comes_first_with_its_next_step_then_notes_and_what_is_fine_is_folded(
    client, administrator, found
):
    fine = [Finding(code="migrations_pending", level=Level.OK, subject=each) for each in ("vault", "default")]
    found += [
        Finding(code="backup_old", level=Level.WARNING, facts={"why": "never"}),
        Finding(code="escrow_old", level=Level.NOTE, facts={"keys": 1}),
        Finding(code="broker_unreachable", level=Level.ERROR, facts={"error": "ConnectionError"}),
        *fine,
    ]
    html = page(client, administrator)
    assert "<strong>Next step:</strong> The broker is not responding. Start Redis" in html
    assert "/help/runbook/broker-unreachable.md" in html
    order = (
        "1 problem needs attention now.", "Needs attention", "The broker is not responding<span",
        "No backup has been made", "Notes</h2>", "Some keys have no escrow copy<span",
        "Working normally (2)", '<details id="fine"', "Migrations: vault",
    )  # fmt: skip
    places = [html.index(text) for text in order]
    assert places == sorted(places)
    found[:] = fine
    looking._last = None
    html = page(client, administrator)
    assert not [text for text in ("Needs attention", "Notes</h2>") if text in html]


def test_tables_of_workers_batches_jobs_backups_and_alerts(client, privacy_officer):
    now = timezone.now()
    WorkerSign.objects.create(
        name="celery@one", zone="all", queues=["celery"], processes=3, version="1.2",
        started_at=now - timedelta(hours=5), seen_at=now,
    )  # fmt: skip
    make_batch(make_study(), Batch.State.QUEUED, ago_h=3)
    JobRun.objects.create(name="sweep", zone="all", started_at=now, finished_at=now)
    Backup.objects.create(kind="backup", zone="all", made_at=now - timedelta(days=3), bytes=2_000_000)
    about = {"code": "disk_low", "subject": "data", "level": "warning", "zone": "all", "told": {"email": {}}}
    facts = {"free_bytes": 1, "total_bytes": 2, "free_percent": 50}
    Alert.objects.create(**about, since=now - timedelta(hours=4), seen_at=now, facts=facts)
    html = page(client, privacy_officer)
    for text in (
        "celery@one", "5 hours", "the oldest batch arrived 3 hours ago", "every 15 seconds", "3 days ago",
        "2.0 MB", "Low disk space: data folder", "opened 4 hours ago", "sent by e-mail",
    ):  # fmt: skip
        assert text in html, text


def test_page_asks_for_its_changing_part_and_leads_to_sign_in_without_a_session(client, administrator):
    assert client.get(reverse("status"), headers=FRAGMENT).headers["HX-Refresh"] == "true"
    assert client.get(reverse("status")).headers["Location"].startswith("/sign-in/")
    whole, part = page(client, administrator), page(client, administrator, headers=FRAGMENT)
    assert part.lstrip().startswith('<div class="stack" id="state" hx-get="/status/"')
    assert ("<html" in whole, "<html" in part) == (True, False)


def test_many_readers_are_one_look_and_a_flood_asks_the_databases_once(client, administrator, monkeypatch):
    looks = []
    monkeypatch.setattr(looking, "look", lambda: looks.append(1) or [])
    for _ in range(5):
        page(client, administrator)
    assert len(looks) == 1
    looks = []
    monkeypatch.setattr(health, "look", lambda: looks.append(1) or {"database": "ok"})
    for _ in range(20):
        assert client.get("/healthz/ready").status_code == 200
    assert len(looks) == 1


def test_an_alert_that_nobody_was_told_says_why(client, administrator, settings):
    now = timezone.now()
    Alert.objects.create(code="backup_old", zone="all", level="warning", since=now, seen_at=now)
    for to, why in (([], "not sent: no alert channel is configured"), (["duty@x.org"], "not sent yet")):
        settings.MOBILITY_ALERT_EMAIL_TO = to
        assert why in page(client, administrator)


def job_row(html: str, job: str) -> str:
    return html.partition(f"<code>{job}</code>")[2].partition("</tr>")[0]


def test_a_job_says_how_its_last_run_ended_and_is_not_called_fine_before_one(client, administrator):
    now = timezone.now()
    run = JobRun.objects.create(name="sweep", zone="all", started_at=now, failure="KeyError")
    for changes, said in (
        ({"failed_at": now - timedelta(hours=3)}, "failed 3 hours ago"),
        ({"finished_at": now - timedelta(hours=2)}, "last succeeded 2 hours ago"),
        ({"failed_at": now - timedelta(minutes=90)}, "failed 90 minutes ago"),
    ):
        JobRun.objects.filter(pk=run.pk).update(**changes)
        assert said in job_row(page(client, administrator), "sweep")
    JobRun.objects.update(finished_at=now, failed_at=None)
    looking._last = None
    html = page(client, administrator)
    named = "sweep look_after_ledger forget_old_views look_for_alerts look_after_forecasts send_digests"
    assert not [job for job in named.split() if f"<code>{job}</code>" not in html]  # as the runbook uses them
    assert "OK" in job_row(html, "sweep")
    ledger = job_row(html, "look_after_ledger")
    assert ("has not run yet" in ledger, "every hour" in ledger, "OK" in ledger) == (True, True, False)


def test_who_finds_a_database_away_can_name_the_request(client, administrator, monkeypatch):
    away = OperationalError("connection to db.internal failed")
    monkeypatch.setattr(views, "status_now", Mock(side_effect=away))
    client.force_login(administrator)
    client.raise_request_exception = False
    answer = client.get(reverse("status"), headers={"X-Request-ID": "from-the-proxy-7"})
    html = answer.content.decode()
    assert answer.status_code == 503
    assert '<code class="break">from-the-proxy-7</code>' in html
    assert 'href="/"' in html
    for text in ("database", "second", "internal"):
        assert text not in html, text


def test_an_analyst_zone_shows_nothing_of_a_vault(client, administrator, settings):
    settings.MOBILITY_ZONE, settings.HAS_VAULT = "analyst", False
    html = page(client, administrator)
    for text in ("Unfinished batches", "Keystore", "Feeds", "Open days", "Escrow"):
        assert text not in html, text
    assert "Ledger" in html


def test_page_answers_while_the_vault_is_away_also_if_it_went_after_the_look(client, administrator, unmount):
    page(client, administrator)
    unmount("vault")
    assert "Unknown: the vault is not responding." in page(client, administrator)  # looked at just now
    looking._last = None
    html = page(client, administrator)
    assert "The vault database is not responding<span" in html
    assert not [text for text in ("Unknown: the vault is not responding.", "Backups") if text not in html]


def test_live_touches_nothing_and_ready_while_all_answers(client, redis_server, django_assert_num_queries):
    answer = client.get("/healthz/ready")
    well = {"database": "ok", "vault": "ok", "migrations": "ok", "broker": "ok"}
    assert (answer.status_code, answer.json()) == (200, {"status": "ok", "components": well})
    assert client.get("/healthz").json()["components"] == {"web": "ok", **well}
    assert answer.headers["Cache-Control"] == "no-store"
    redis_server.stop()
    health._kept = health._Kept()
    answer = client.get("/healthz/ready")
    assert answer.status_code == 200  # pages are served, uploads are taken; batches wait
    assert answer.json() == {"status": "degraded", "components": {**well, "broker": "failed"}}
    assert client.get("/healthz/live").status_code == 200
    redis_server.start()
    health._kept = health._Kept()
    assert client.get("/healthz/ready").json()["status"] == "ok"
    with django_assert_num_queries(0):
        answer = client.get("/healthz/live")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok", "components": {"web": "ok"}})


def test_a_database_that_does_not_answer_and_nothing_of_where_it_is(client, redis_server, monkeypatch):
    refused = OperationalError("connection to db.internal failed for user mobility")
    monkeypatch.setattr(databases, "_asked", Mock(side_effect=refused))
    answer = client.get("/healthz/ready")
    assert answer.status_code == 503
    failed = dict.fromkeys(("database", "vault", "migrations"), "failed")
    assert (answer.json()["components"], b"internal" in answer.content) == (failed | {"broker": "ok"}, False)


def test_any_host_name_and_no_tls_will_do_and_only_reading_is_answered(client, settings):
    assert client.get("/healthz/more").status_code == client.get("/healthzlive").status_code == 404
    settings.SECURE_SSL_REDIRECT, settings.ALLOWED_HOSTS = True, ["reports.example.org"]
    there = {"host": "10.0.0.7:8000"}
    for ask in (client.get, client.head):
        assert ask("/healthz/live", headers=there).status_code == 200
    assert client.get("/", headers=there).status_code in (301, 400)
    for address in ("/healthz", "/healthz/", "/healthz/live", "/healthz/live/"):
        assert client.post(address, headers=there).status_code == 405


def test_health_of_workers_by_command(monkeypatch, capsys):
    monkeypatch.setattr("socket.gethostname", lambda: "here")
    now = timezone.now()
    sign = {"zone": "all", "version": "1", "started_at": now}
    WorkerSign.objects.create(name="celery@there", seen_at=now, **sign)
    WorkerSign.objects.create(name="celery@here", seen_at=now - timedelta(seconds=61), **sign)
    with pytest.raises(CommandError, match="a worker of here has not responded within 60 s"):
        call_command("worker_health")
    WorkerSign.objects.filter(name="celery@here").update(seen_at=now)
    call_command("worker_health")
    assert capsys.readouterr().out == '{"workers": ["celery@here"]}\n'
    call_command("worker_health", name="celery@there")


def test_facts_have_the_unit_that_their_name_ends_in_and_lengths_of_time_the_largest_whole_one():
    said = {
        duration: {0: "0 seconds", 1: "1 second", 60: "1 minute", 119: "119 seconds", 3600: "1 hour",
                   7199: "119 minutes", 7200: "2 hours", 86_400: "1 day", 100_000: "27 hours"},
        ago: {0.4: "just now", 1: "1 second ago", 3600: "1 hour ago"},
        size: {0: "0 bytes", 1: "1 byte", 999: "999 bytes", 1000: "1.0 kB", 1_500_000: "1.5 MB"},
        every: {1: "every second", 15: "every 15 seconds", 60: "every minute", 300: "every 5 minutes",
                3600: "every hour", 86_400: "every day", 172_800: "every 2 days"},
    }  # fmt: skip
    for words_of, texts in said.items():
        assert {value: words_of(value) for value in texts} == texts
    facts = {("every_s", 3600): "every hour", ("oldest_s", 3600): "1 hour", ("free_percent", 12.5): "12.5%",
             ("keys", 1200): "1,200", ("ms", 1): "1 ms", ("ms", 40): "40 ms"}  # fmt: skip
    assert {fact: fact_words(*fact) for fact in facts} == facts
    late = Finding(
        code="job_failed", level=Level.WARNING, facts={"why": "late", "every_s": 3600, "age_s": 18_000}
    )
    assert "Scheduled every hour; last succeeded 5 hours ago." in words(late).what
    with override("fr"):
        assert "Prévu toutes les heures\u202f; dernier succès il y a 5 heures." in words(late).what
