"""An analyst zone whose role in PostgreSQL cannot reach the vault; and below it PostgreSQL is restarted."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from http.client import HTTPConnection

import psycopg
import pytest
from django.test import RequestFactory

from benchmarks.installation import ROOT, Installation, Worker
from reports.outages import failed
from scripts import services
from tests.e2e.conftest import STUDY, STUDY_FILE, fill_in
from tests.e2e.deployment import AnalystServer

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

ROLES = """
CREATE ROLE analyst LOGIN;
CREATE ROLE operator LOGIN;
CREATE DATABASE main OWNER analyst;
CREATE DATABASE vault OWNER operator;
REVOKE CONNECT ON DATABASE vault FROM PUBLIC;
GRANT analyst TO operator;
"""


@dataclass
class Zones:
    """Both zones over one PostgreSQL server, and one Redis, given to both by mistake."""

    postgres: services.Server
    operator: Installation
    analyst: AnalystServer
    worker: Worker
    vault_as_analyst: str


@pytest.fixture(scope="module")
def zones():
    programs = services.postgres_programs()
    with services.private_folder("zones-postgres") as root:
        root.chmod(0o755)  # PostgreSQL runs under another account
        port, folder = services.free_port(), root / "postgres"
        folder.mkdir()
        server = services.postgres_server(programs, folder=folder, port=port)
        with services.running(server):
            with psycopg.connect(services.postgres_url(port), autocommit=True) as connection:
                for statement in ROLES.strip().splitlines():
                    connection.execute(statement.encode())
            yield from _running(root, port, server)


def _running(root, port, server):
    url = "postgres://{}@127.0.0.1:" + f"{port}/{{}}"
    shared = {"MOBILITY_LEDGER_KEY_FILE": str(root / "ledger_key.pem")}
    databases = {"DATABASE_URL": "main", "VAULT_DATABASE_URL": "vault"}
    of_operator = {name: url.format("operator", database) for name, database in databases.items()}
    operator = Installation(
        root / "operator", environment=shared | of_operator | {"MOBILITY_ZONE": "operator"}
    )
    redis = operator.environment["REDIS_URL"]
    of_analyst = {"DATABASE_URL": url.format("analyst", "main"), "REDIS_URL": redis}
    analyst = AnalystServer(root / "analyst", environment=shared | of_analyst, processes=2)
    analyst.value("migrate", "--no-input", "--verbosity", "0")
    operator.run_text("migrate", "--no-input", "--database", "vault", "--verbosity", "0")
    log = root / "log2"
    log.mkdir()
    worker = Worker(2, processes=1, environment=analyst.environment, folder=log)
    with operator:
        try:
            worker.start()
            analyst.value("collectstatic", "--no-input", "--verbosity", "0")
            analyst.start()
            yield Zones(server, operator, analyst, worker, url.format("analyst", "vault"))
        finally:
            analyst.stop()
            worker.stop()


@pytest.fixture(scope="module")
def token(zones, extract):
    """A day is taken in by the operator zone; what opens the API of the analyst zone."""
    zones.operator.manage("create_study", str(STUDY_FILE))
    printed = zones.operator.manage("ingest", STUDY, str(extract[0]))
    assert printed["published"]
    made = json.loads(zones.analyst.value("create_account", "ana", "--role", "administrator"))
    code = (
        "from django.contrib.auth.models import User; from reports.services.access import create_token; "
        "print(create_token(name='x', days=1, study=None, by=User.objects.get(username='ana'))[1])"
    )
    zones.analyst.environment["ANA"] = made["password"]
    return zones.analyst.value("shell", "--no-imports", "-c", code).strip()


def ask(zones, path, headers, *, method="GET", body=None):
    """Status, headers and text of an answer of the analyst zone."""
    connection = HTTPConnection("127.0.0.1", zones.analyst.port, timeout=30)
    connection.request(method, path, body, headers)
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, response.headers, text


def test_totals_of_the_operator_zone_are_read_in_the_analyst_zone(zones, token):
    bearer = {"Authorization": f"Bearer {token}"}
    assert STUDY in ask(zones, "/api/v1/studies", bearer)[2]
    assert "2017-05-31" in ask(zones, f"/api/v1/studies/{STUDY}/visitors?from=2017-05-31", bearer)[2]
    ours = zones.operator.manage("export_report", STUDY)
    assert json.loads(zones.analyst.value("export_report", STUDY)) == ours
    assert ours[0]["n_visitors"] > 0


def test_pages_of_reports_are_there_and_those_of_operators_are_not(zones, token, browser):
    page = browser.new_page()
    page.goto(f"{zones.analyst.address}/sign-in/")
    fill_in(page, "ana", zones.analyst.environment["ANA"])
    page.wait_for_url(f"{zones.analyst.address}/")
    for path, status in {
        "/": 200, "/studies/": 200, f"/studies/{STUDY}/": 200, f"/studies/{STUDY}/gender/": 200,
        f"/studies/{STUDY}/statement/": 200, "/access/tokens/": 200, "/people/": 200, "/ledger/": 200,
        "/operator/": 404, f"/operator/{STUDY}/": 404,
        "/administrator/": 404, "/administrator/create/": 404, "/budget/": 404
    }.items():  # fmt: skip
        assert page.request.get(zones.analyst.address + path).status == status, path
    page.close()


def test_an_extract_cannot_be_sent_to_the_analyst_zone(zones, token):
    path = f"/api/v1/studies/{STUDY}/extracts/day.csv"
    assert ask(zones, path, {}, method="PUT", body=b"raw")[0] in (404, 405)


def test_the_role_of_analysts_cannot_open_the_vault(zones):
    with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
        psycopg.connect(zones.vault_as_analyst)
    with psycopg.connect(zones.vault_as_analyst.replace("/vault", "/main")) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        connection.execute("SELECT 1 FROM reports_study")
    assert not [name for (name,) in tables if name.startswith("mobility_")]


def test_an_analyst_process_knows_no_vault(zones):
    code = (
        "from django.db import connections; print(sorted(connections), [c.alias for c in connections.all()])"
    )
    known, refused = zones.analyst.outcomes(
        ("shell", "--no-imports", "-c", code),
        ("shell", "--no-imports", "-c", "from mobility.models import VaultStudy"),
    )
    assert known.output.strip() == "['default'] ['default']"
    assert refused.code != 0
    assert "isn't in an application in INSTALLED_APPS" in refused.errors
    assert not [
        path for path in zones.analyst.data.rglob("*") if "vault" in path.name or "keystore" in path.name
    ]


def test_an_analyst_zone_that_is_told_where_the_vault_is_does_not_start(zones):
    told = zones.analyst.environment | {"VAULT_DATABASE_URL": zones.vault_as_analyst}
    done = subprocess.run(
        [sys.executable, "manage.py", "export_report", STUDY], cwd=ROOT, env=told, text=True,
        capture_output=True, check=False, timeout=60
    )  # fmt: skip
    assert done.returncode != 0
    assert "VAULT_DATABASE_URL must be unset" in done.stderr


def test_commands_of_the_operator_zone_are_refused_in_words(zones):
    commands = ("ingest", "create_study", "close_days", "void_day", "close_study", "demo")
    refusals = zones.analyst.outcomes(*((command, STUDY, os.devnull) for command in commands))
    for command, refused in zip(commands, refusals, strict=True):
        assert refused.code != 0
        assert f"{command} is a command of the operator zone" in refused.errors


def test_no_worker_takes_work_of_the_other_zone(zones, token):
    code = (
        "from mobility.celery import app; found = app.control.inspect(timeout=5).active_queues(); "
        "print(sorted((who.split('@')[0], each['name']) for who, queues in found.items() for each in queues))"
    )
    printed = zones.analyst.value("shell", "--no-imports", "-c", code)
    assert printed.strip() == "[('worker1', 'operator'), ('worker2', 'analyst')]"
    log = zones.worker.log.read_text()
    assert "reports.tasks.compute_density" in log  # among the tasks that it knows
    assert "Task mobility.tasks.read_chunk" not in log
    assert "Task mobility.tasks.advance" not in log


# --- last, since PostgreSQL is stopped -----------------------------------------------------------------


def test_while_the_database_is_away_visitors_are_told_to_come_again(zones):
    cookie = {"Cookie": f"sessionid={'a' * 32}"}
    bearer = {"Authorization": "Bearer mobility-reader-of-nobody"}
    assert ask(zones, "/", cookie)[0] == 302  # to the sign-in, after a look at the session
    assert ask(zones, "/api/v1/studies", bearer)[0] == 401

    zones.postgres.stop()
    try:
        page = ask(zones, "/", cookie)
        answer = ask(zones, "/api/v1/studies", bearer)
    finally:
        zones.postgres.start()

    for status, headers, _ in (page, answer):
        assert (status, headers["Retry-After"]) == (503, "5")
    assert "The service cannot answer now" in page[2] and "no-store" in page[1]["Cache-Control"]
    assert json.loads(answer[2])["title"] == "Service Unavailable"
    # Every process and thread has connections of the server that was stopped: none of them is used.
    assert {ask(zones, "/", cookie)[0] for _ in range(20)} == {302}


def test_what_is_our_own_fault_stays_a_500():
    try:
        raise RuntimeError("a fault of ours")
    except RuntimeError:
        response = failed(RequestFactory().get("/"))
    assert response.status_code == 500
    assert "Retry-After" not in response.headers
