"""An analyst zone of its own process, whose role in PostgreSQL cannot reach the vault."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import psycopg
import pytest
from playwright.sync_api import Browser

from benchmarks.installation import Installation, Worker
from mobility.demo.extract import write_extract
from scripts import services
from tests.e2e.conftest import STUDY, STUDY_FILE
from tests.e2e.zones import AnalystServer

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

    operator: Installation
    analyst: AnalystServer
    worker: Worker
    vault_as_analyst: str


@pytest.fixture(scope="module")
def zones() -> Iterator[Zones]:
    programs = services.postgres_programs()
    assert programs is not None
    with services.private_folder("zones-postgres") as root:
        root.chmod(0o755)  # PostgreSQL runs under another account
        port, folder = services.free_port(), root / "postgres"
        folder.mkdir()
        with services.running(services.postgres_server(programs, folder=folder, port=port)):
            with psycopg.connect(services.postgres_url(port), autocommit=True) as connection:
                for statement in ROLES.strip().splitlines():
                    connection.execute(statement.encode())
            yield from _running(root, port)


def _running(root: Path, port: int) -> Iterator[Zones]:
    url = "postgres://{}@127.0.0.1:" + f"{port}/{{}}"
    shared = {"MOBILITY_LEDGER_KEY_FILE": str(root / "ledger_key.pem")}
    operator = Installation(
        root / "operator",
        environment=shared
        | {
            "MOBILITY_ZONE": "operator",
            "DATABASE_URL": url.format("operator", "main"),
            "VAULT_DATABASE_URL": url.format("operator", "vault"),
        },
    )
    redis = operator.environment["REDIS_URL"]
    analyst = AnalystServer(
        root / "analyst",
        environment=shared | {"DATABASE_URL": url.format("analyst", "main"), "REDIS_URL": redis},
    )
    analyst.value("migrate", "--no-input", "--verbosity", "0")
    with operator.command("migrate", "--no-input", "--database", "vault", "--verbosity", "0") as process:
        assert process.wait(timeout=120) == 0
    log = root / "log2"
    log.mkdir()
    worker = Worker(2, processes=1, environment=analyst.environment, folder=log)
    with operator:
        try:
            worker.start()
            analyst.value("collectstatic", "--no-input", "--verbosity", "0")
            analyst.start()
            yield Zones(operator, analyst, worker, url.format("analyst", "vault"))
        finally:
            analyst.stop()
            worker.stop()


@pytest.fixture(scope="module")
def token(zones: Zones, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A day is taken in by the operator zone; what opens the API of the analyst zone."""
    folder = tmp_path_factory.mktemp("extract")
    write_extract(folder, seed=11, n_subscribers=1_500)
    zones.operator.manage("create_study", str(STUDY_FILE))
    printed = zones.operator.manage("ingest", STUDY, str(min(folder.glob("*.csv"))))
    assert printed["published"]
    made = json.loads(zones.analyst.value("create_account", "ana", "--role", "administrator"))
    code = (
        "from django.contrib.auth.models import User; from reports.services.access import create_token; "
        "print(create_token(name='x', days=1, study=None, by=User.objects.get(username='ana'))[1])"
    )
    zones.analyst.environment["ANA"] = made["password"]
    return zones.analyst.value("shell", "--no-imports", "-c", code).strip()


def asked(zones: Zones, path: str, token: str) -> Any:
    request = Request(zones.analyst.address + path, headers={"Authorization": f"Bearer {token}"})  # noqa: S310
    with urlopen(request, timeout=30) as response:  # noqa: S310 - our own server
        return json.load(response)


def test_totals_of_the_operator_zone_are_read_in_the_analyst_zone(zones: Zones, token: str) -> None:
    listed = asked(zones, "/api/v1/studies", token)
    assert STUDY in json.dumps(listed)
    day = asked(zones, f"/api/v1/studies/{STUDY}/visitors?from=2017-05-31", token)
    assert json.dumps(day).count("2017-05-31") >= 1
    ours = zones.operator.manage("export_report", STUDY)
    assert json.loads(zones.analyst.value("export_report", STUDY)) == ours
    assert ours[0]["n_visitors"] > 0


def test_pages_of_reports_are_there_and_those_of_operators_are_not(
    zones: Zones, token: str, browser: Browser
) -> None:
    page = browser.new_page()
    page.goto(f"{zones.analyst.address}/sign-in/")
    page.fill("input[name=username]", "ana")
    page.fill("input[name=password]", zones.analyst.environment["ANA"])
    page.press("input[name=password]", "Enter")
    page.wait_for_url(f"{zones.analyst.address}/")
    for path, status in {
        "/": 200, "/studies/": 200, f"/studies/{STUDY}/": 200, f"/studies/{STUDY}/gender/": 200,
        f"/studies/{STUDY}/statement/": 200, "/access/tokens/": 200, "/people/": 200, "/ledger/": 200,
        "/operator/": 404, f"/operator/{STUDY}/": 404,
        "/administrator/": 404, "/administrator/create/": 404, "/budget/": 404,
    }.items():  # fmt: skip
        answer = page.goto(zones.analyst.address + path)
        assert answer is not None
        assert answer.status == status, path
    page.close()


def test_an_extract_cannot_be_sent_to_the_analyst_zone(zones: Zones, token: str) -> None:
    url = f"{zones.analyst.address}/api/v1/studies/{STUDY}/extracts/day.csv"
    request = Request(url, data=b"raw", method="PUT")  # noqa: S310 - our own server
    with pytest.raises(HTTPError) as refused:
        urlopen(request, timeout=30)  # noqa: S310
    assert refused.value.code in (404, 405)


def test_the_role_of_analysts_cannot_open_the_vault(zones: Zones) -> None:
    with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
        psycopg.connect(zones.vault_as_analyst)
    with psycopg.connect(zones.vault_as_analyst.replace("/vault", "/main")) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        connection.execute("SELECT 1 FROM reports_study")
    assert not [name for (name,) in tables if name.startswith("mobility_")]


def test_an_analyst_process_knows_no_vault(zones: Zones) -> None:
    code = (
        "from django.db import connections; print(sorted(connections), [c.alias for c in connections.all()])"
    )
    assert zones.analyst.value("shell", "--no-imports", "-c", code).strip() == "['default'] ['default']"
    done = zones.analyst.manage("shell", "--no-imports", "-c", "from mobility.models import VaultStudy")
    assert done.returncode != 0
    assert "isn't in an application in INSTALLED_APPS" in done.stderr
    assert not [
        path for path in zones.analyst.data.rglob("*") if "vault" in path.name or "keystore" in path.name
    ]


def test_an_analyst_zone_that_is_told_where_the_vault_is_does_not_start(zones: Zones) -> None:
    told = zones.analyst.environment | {"VAULT_DATABASE_URL": zones.vault_as_analyst}
    before, zones.analyst.environment = zones.analyst.environment, told
    try:
        done = zones.analyst.manage("export_report", STUDY)
    finally:
        zones.analyst.environment = before
    assert done.returncode != 0
    assert "VAULT_DATABASE_URL must be unset" in done.stderr


@pytest.mark.parametrize(
    "command", ["ingest", "create_study", "close_days", "void_day", "close_study", "demo"]
)
def test_commands_of_the_operator_zone_are_refused_in_words(zones: Zones, command: str) -> None:
    done = zones.analyst.manage(command, STUDY, os.devnull)
    assert done.returncode != 0
    assert f"{command} is a command of the operator zone" in done.stderr


def test_no_worker_takes_work_of_the_other_zone(zones: Zones, token: str) -> None:
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
