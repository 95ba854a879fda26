"""The status page: what is wrong comes first, in words, and the page looks again by itself."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connections
from django.db.backends.sqlite3.base import DatabaseWrapper
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django.fixtures import Settings

from mobility.models import Batch
from mobility.operations import probes, views
from mobility.operations.findings import Finding, Level
from mobility.operations.models import Alert, Backup, JobRun, WorkerSign
from tests.mobility.operations.probe_world import make_batch, make_study

pytestmark = [
    pytest.mark.django_db(databases=["default", "vault"]),
    pytest.mark.usefixtures("data_dir"),
]
FRAGMENT = {"HX-Request": "true"}


@pytest.fixture(autouse=True)
def _looked_at_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "_last", None)


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Finding]]:
    """What a look finds in this test."""
    findings: list[Finding] = []
    monkeypatch.setattr(probes, "look", lambda: findings)
    return findings


def page(client: Client, person: User, **options: object) -> str:
    client.force_login(person)
    answer = client.get(reverse("status"), **options)
    assert answer.status_code == 200
    return answer.content.decode()


def test_the_worst_comes_first_with_its_next_step(
    client: Client, administrator: User, found: list[Finding]
) -> None:
    found += [
        Finding(code="backup_old", level=Level.WARNING, facts={"why": "never"}),
        Finding(code="broker_unreachable", level=Level.ERROR, facts={"error": "ConnectionError"}),
        Finding(code="migrations_pending", level=Level.OK, subject="vault"),
    ]
    html = page(client, administrator)
    assert "1 thing needs you now." in html
    assert "<strong>Next step:</strong> The broker does not answer. Start Redis" in html
    assert html.index("The broker does not answer<span") < html.index("There is no backup")
    assert "docs/runbook/broker-unreachable.md" in html
    assert html.index("What is fine") < html.index("Migrations: vault")


@pytest.mark.parametrize(
    ("level", "words"),
    [
        (Level.OK, "Everything runs."),
        (Level.NOTE, "Everything runs. Notes are below."),
        (Level.WARNING, "It runs. 1 thing needs you today."),
    ],
)
def test_the_verdict_in_one_line(
    client: Client, administrator: User, found: list[Finding], level: Level, words: str
) -> None:
    found.append(Finding(code="backup_old", level=level, facts={"age_s": 5, "bytes": 5}))
    html = page(client, administrator)
    assert f"{words}</h2>" in html
    assert ("Next step:" in html) == (level > Level.OK)


def test_tables_of_workers_batches_jobs_backups_and_alerts(client: Client, privacy_officer: User) -> None:
    now = timezone.now()
    WorkerSign.objects.create(
        name="celery@one", zone="all", queues=["celery"], processes=3, version="1.2",
        started_at=now - timedelta(hours=5), seen_at=now,
    )  # fmt: skip
    make_batch(make_study(), Batch.State.QUEUED, ago_h=3)
    JobRun.objects.create(name="sweep", zone="all", started_at=now, finished_at=now)
    Backup.objects.create(kind="backup", zone="all", made_at=now - timedelta(days=3), bytes=2_000_000)
    Alert.objects.create(
        code="disk_low", subject="data", zone="all", level="warning", since=now - timedelta(hours=4),
        seen_at=now, told={"email": {}},
        facts={"free_bytes": 1, "total_bytes": 2, "free_percent": 50},
    )  # fmt: skip
    html = page(client, privacy_officer)
    for words in (
        "celery@one", "5 hours", "the oldest came 3 hours ago", "every 15 seconds", "3 days ago", "2.0 MB",
        "Little space is left: data folder", "for 4 hours", "told by e-mail",
    ):  # fmt: skip
        assert words in html, words


def test_the_page_asks_for_its_changing_part_again(client: Client, administrator: User) -> None:
    whole, part = page(client, administrator), page(client, administrator, headers=FRAGMENT)
    assert part.lstrip().startswith('<div class="stack" id="state" hx-get="/status/"')
    assert "<html" in whole
    assert "<html" not in part


def test_a_page_whose_session_has_ended_leads_to_the_sign_in(client: Client) -> None:
    answer = client.get(reverse("status"), headers=FRAGMENT)
    assert answer.headers["HX-Refresh"] == "true"
    assert client.get(reverse("status")).headers["Location"].startswith("/sign-in/")


def test_many_readers_are_one_look(
    client: Client, administrator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []
    monkeypatch.setattr(probes, "look", lambda: looks.append(1) or [])  # type: ignore[func-returns-value]
    for _ in range(5):
        page(client, administrator)
    assert len(looks) == 1


def test_operators_and_analysts_do_not_see_it_nor_a_link_to_it(
    client: Client, operator: User, analyst: User, administrator: User
) -> None:
    for person in (operator, analyst):
        client.force_login(person)
        assert client.get(reverse("status")).status_code == 404
        assert reverse("status") not in client.get("/").content.decode()
    client.force_login(administrator)
    assert reverse("status") in client.get("/").content.decode()


def test_notes_stand_apart_and_what_is_fine_is_folded(
    client: Client, administrator: User, found: list[Finding]
) -> None:
    found += [
        Finding(code="escrow_old", level=Level.NOTE, facts={"keys": 1}),
        Finding(code="migrations_pending", level=Level.OK, subject="vault"),
        Finding(code="migrations_pending", level=Level.OK, subject="default"),
    ]
    html = page(client, administrator)
    assert "What needs somebody" not in html
    assert html.index("Notes</h2>") < html.index("Keys are in no escrow<span")
    assert "What is fine (2)" in html
    assert html.index('<details id="fine"') < html.index("Migrations: vault")
    found[0] = Finding(code="escrow_old", level=Level.WARNING, facts={"keys": 1})
    probes._last = None
    html = page(client, administrator)
    assert "What needs somebody" in html
    assert "Notes</h2>" not in html


def test_jobs_have_the_names_that_the_runbook_uses(client: Client, administrator: User) -> None:
    html = page(client, administrator)
    for job in ("sweep", "look_after_ledger", "forget_old_views", "look_for_alerts"):
        assert f"<code>{job}</code>" in html, job


def test_an_alert_that_nobody_was_told_says_why(
    client: Client, administrator: User, settings: Settings
) -> None:
    now = timezone.now()
    Alert.objects.create(code="backup_old", zone="all", level="warning", since=now, seen_at=now)
    assert "told to nobody: no channel is set up" in page(client, administrator)
    settings.MOBILITY_ALERT_EMAIL_TO = ["duty@example.org"]
    assert "told to nobody yet" in page(client, administrator)


def job_row(html: str, job: str) -> str:
    """What the table of jobs says of a job."""
    return html.partition(f"<code>{job}</code>")[2].partition("</tr>")[0]


def test_a_job_says_how_its_last_run_ended(client: Client, administrator: User) -> None:
    now = timezone.now()
    run = JobRun.objects.create(
        name="sweep", zone="all", started_at=now, failed_at=now - timedelta(hours=3), failure="KeyError"
    )
    assert "failed 3 hours ago" in job_row(page(client, administrator), "sweep")
    JobRun.objects.filter(pk=run.pk).update(finished_at=now - timedelta(hours=2))
    assert "last ended well 2 hours ago" in job_row(page(client, administrator), "sweep")
    JobRun.objects.filter(pk=run.pk).update(failed_at=now - timedelta(minutes=90))
    assert "failed 90 minutes ago" in job_row(page(client, administrator), "sweep")


def test_a_job_that_has_not_run_yet_is_not_called_fine(client: Client, administrator: User) -> None:
    now = timezone.now()
    JobRun.objects.create(name="sweep", zone="all", started_at=now, finished_at=now)
    html = page(client, administrator)
    assert "fine" in job_row(html, "sweep")
    ledger = job_row(html, "look_after_ledger")
    assert "has not run yet" in ledger
    assert "every hour" in ledger
    assert "fine" not in ledger


def test_who_finds_a_database_away_can_name_the_request(
    client: Client, administrator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away() -> None:
        raise OperationalError("connection to db.internal failed")

    monkeypatch.setattr(views, "status_now", away)
    client.force_login(administrator)
    client.raise_request_exception = False
    answer = client.get(reverse("status"), headers={"X-Request-ID": "from-the-proxy-7"})
    html = answer.content.decode()
    assert answer.status_code == 503
    assert '<code class="break">from-the-proxy-7</code>' in html
    assert 'href="/"' in html
    for words in ("database", "second", "internal"):
        assert words not in html, words


def test_an_analyst_zone_shows_nothing_of_a_vault(
    client: Client, administrator: User, settings: Settings
) -> None:
    settings.MOBILITY_ZONE, settings.HAS_VAULT = "analyst", False
    html = page(client, administrator)
    for words in ("Unfinished batches", "Keystore", "Feeds", "Open days", "Escrow"):
        assert words not in html, words
    assert "Ledger" in html


@pytest.fixture
def vault_away(tmp_path: Path) -> Iterator[None]:
    """A vault whose file cannot be opened: its disk is not mounted."""
    usual = connections["vault"]
    gone = usual.settings_dict | {"ENGINE": "django.db.backends.sqlite3", "OPTIONS": {}}
    gone["NAME"] = str(tmp_path / "not mounted" / "vault.sqlite3")
    connections["vault"] = DatabaseWrapper(gone, "vault")
    yield
    connections["vault"] = usual


@pytest.mark.usefixtures("vault_away")
def test_the_page_answers_while_the_vault_is_away(client: Client, administrator: User) -> None:
    html = page(client, administrator)
    assert "The vault database does not answer<span" in html
    assert "Not known: the vault does not answer." in html
    assert "Backups" in html


def test_a_vault_that_goes_away_after_the_look_takes_nothing_with_it(
    client: Client, administrator: User, request: pytest.FixtureRequest
) -> None:
    page(client, administrator)  # looked at just now
    request.getfixturevalue("vault_away")
    assert "Not known: the vault does not answer." in page(client, administrator)
