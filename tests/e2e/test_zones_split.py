"""Split of a main database that both zones share, by docs/upgrading.md."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any

import psycopg
import pytest

from benchmarks.installation import ROOT, Worker
from scripts import services
from tests.demo_study import STUDY, STUDY_FILE, write_study
from tests.docs_pages import blocks
from tests.e2e.deployment import AnalystServer, Running, wait_until
from tests.e2e.several import code_of, outcomes, texts, values

pytestmark = pytest.mark.e2e
SHARED = "d4f86febdc0988a01d451a6542df5b55613f57a0"  # the last one that serves a shared main database
CLOSED = "closed-before"
SELF = "tests/e2e/test_zones_split.py"
ROLES = """
CREATE ROLE analyst LOGIN;
CREATE ROLE operator LOGIN;
CREATE DATABASE main OWNER analyst;
CREATE DATABASE vault OWNER operator;
REVOKE CONNECT ON DATABASE vault FROM PUBLIC;
GRANT analyst TO operator;
"""
SHELL = ("shell", "--no-imports", "--command")
RECEIPTS = (
    "import json; from reports.models import LedgerEntry; "
    "print(json.dumps([e.facts['batch'] for e in LedgerEntry.objects.filter(kind='batch.ended')]))"
)
GUEST = (  # a study that another operator zone handed over
    "from reports.models import *; from django.utils import timezone; now = timezone.now(); "
    "sender = Sender.objects.create(name='south', public_key='x', registered_by='ada'); "
    "study = Study.objects.get(slug='{study}'); study.pk, study.slug = None, 'guest'; study.save(); "
    "SentStudy.objects.create(study=study, sender=sender, digest='')"
)


@dataclass
class Zones:
    postgres: services.Server
    url: str
    operator: Running
    analyst: AnalystServer

    def reports(self, environment, *, code=ROOT) -> list[Any]:
        exported = values([("export_report", slug) for slug in (STUDY, CLOSED)], environment, code=code)
        for row in (row for rows in exported for row in rows):
            del row["software_version"]
        return exported

    def follow(self):
        """Do what the page says, block by block; its settings are set before the commands of the operator."""
        roles = {"MAIN": ("analyst", "main"), "OWN": ("operator", "operator_main")}
        roles["ADMIN"] = ("postgres", "postgres")
        addresses = {name: self.url.format(*place) for name, place in roles.items()}
        addresses["PATH"] = f"{services.postgres_programs()}:{os.environ['PATH']}"
        addresses["DATA"] = str(self.analyst.data.parent)
        own = {"DATABASE_URL": addresses["OWN"], "MOBILITY_ANALYST_URL": self.analyst.address}
        self.operator.environment |= own | {"MOBILITY_SENDER_NAME": "north", "MOBILITY_HANDOVER_RETRY_S": "1"}
        del self.operator.environment["MOBILITY_LEDGER_KEY_FILE"]
        sides = {"analysts": self.analyst.environment, "operator": self.operator.environment}
        sides, public_key = sides | {"server": dict(os.environ)}, ""
        for block in blocks(ROOT / "docs" / "upgrading.md"):
            if block.run_by[0] != SELF:
                continue
            for command in block.commands:
                line = command.line.replace(".venv/bin/python", sys.executable)
                line = line.replace("PUBLIC_KEY", public_key)
                line = line.replace("main.dump", f"{addresses['DATA']}/main.dump")
                options = {"cwd": ROOT, "env": sides[block.run_by[1][0]] | addresses, "text": True}
                output = subprocess.run(["bash", "-c", line], capture_output=True, check=False, **options)
                assert output.returncode == 0, (line, output.stderr)
                assert not command.expected or command.pattern.fullmatch(output.stdout.strip()), output.stdout
                if line.endswith("sender_key"):
                    public_key = json.loads(output.stdout)["public_key"]


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A shared main database, served by the last code that did."""
    code = code_of(SHARED, tmp_path_factory.mktemp("shared") / "code")
    with services.private_folder("zones-split") as root:
        root.chmod(0o755)  # PostgreSQL runs under another account
        port, folder = services.free_port(), root / "postgres"
        folder.mkdir()
        server = services.postgres_server(services.postgres_programs(), folder=folder, port=port)
        with services.running(server):
            with psycopg.connect(services.postgres_url(port), autocommit=True) as connection:
                for statement in ROLES.strip().splitlines():
                    connection.execute(statement.encode())
            yield from _running(root, "postgres://{}@127.0.0.1:" + f"{port}/{{}}", server, code)


def _running(root, url, server, code):
    both = {"MOBILITY_LEDGER_KEY_FILE": str(root / "ledger_key.pem")}
    of_analyst = both | {"DATABASE_URL": url.format("analyst", "main")}
    analyst = AnalystServer(root / "analyst", environment=of_analyst, processes=2)
    of_operator = both | {"MOBILITY_ZONE": "operator", "DATABASE_URL": url.format("operator", "main")}
    of_operator["VAULT_DATABASE_URL"] = url.format("operator", "vault")
    operator = Running(root / "operator", environment=of_operator, code=code)
    analyst.environment["REDIS_URL"] = operator.environment["REDIS_URL"]  # by mistake
    quietly = ("--no-input", "--verbosity", "0")
    texts([("migrate", *quietly)], analyst.environment, code=code)
    texts([("migrate", "--database", "vault", *quietly)], operator.environment, code=code)
    with operator:
        try:
            yield Zones(server, url, operator, analyst)
        finally:
            analyst.stop()


@pytest.fixture(scope="module")
def apart(shared, extract, tmp_path_factory):
    """Both zones, each with its own main database; their reports before, and a refusal."""
    operator, analyst = shared.operator, shared.analyst
    old = operator.code
    study_file = old / "mobility" / "demo" / "study.toml"  # today's has keys that old code does not know
    made = [
        ("create_study", str(study_file)),
        ("create_study", str(write_study(tmp_path_factory.mktemp("study"), slug=CLOSED, of=study_file))),
        ("ingest", STUDY, str(extract[0])), ("ingest", STUDY, str(extract[1]), "--more-to-come"),
        ("ingest", CLOSED, str(extract[0])), ("close_study", CLOSED),
    ]  # fmt: skip
    printed = values(made, operator.environment, code=old)
    assert printed[2]["published"] and printed[4]["published"]
    before = shared.reports(analyst.environment, code=old)
    operator.workers[0].stop()
    texts([(*SHELL, GUEST.format(study=CLOSED))], analyst.environment, code=old)
    (refused,) = outcomes([("create_study", str(STUDY_FILE))], operator.environment)
    shared.follow()
    operator.code = ROOT
    analyst.value("collectstatic", "--no-input", "--verbosity", "0")
    analyst.start()
    folder = operator.workers[0].log.parent
    operator.workers = [Worker(1, processes=1, environment=operator.environment, folder=folder)]
    operator.workers[0].start()
    return shared, before, refused


def test_no_count_is_lost_and_both_zones_go_on(apart, extract):
    zones, before, refused = apart
    operator, analyst = zones.operator, zones.analyst
    assert refused.code != 0
    assert not [text for text in ("main database", "docs/upgrading.md") if text not in refused.errors]
    assert (zones.reports(analyst.environment), zones.reports(operator.environment)) == (before, before)
    assert before[0][0]["n_visitors"] > 100 < before[1][0]["n_visitors"]

    words = [
        ("ingest", STUDY, str(extract[0])),
        ("close_days", STUDY, "--through", "2017-06-01"),  # the one that was open before
        ("ingest", STUDY, str(extract[2])),
    ]
    again, closed, later = values(words, operator.environment)
    assert again["duplicate"]
    assert closed["subscriber_days"] > 100 < later["subscriber_days"]
    ours = zones.reports(operator.environment)
    wait_until(lambda: zones.reports(analyst.environment) == ours, what="the new day to be handed over")
    assert ours[1] == before[1]
    n_visitors = {(each["first_day"], each["last_day"]): each["n_visitors"] for each in ours[0]}
    assert min(n_visitors[day, day] for day in ("2017-05-31", "2017-06-01", "2017-06-02")) > 100
    for environment in (operator.environment, analyst.environment):
        receipts, ledger = values([(*SHELL, RECEIPTS), ("verify_ledger",)], environment)
        assert ledger["ok"]
        assert len(receipts) == len(set(receipts)) >= 5
    (done,) = outcomes([("doctor", "--deep", "--json")], operator.environment)
    errors = {each["code"] for each in json.loads(done.output)["findings"] if each["level"] == "error"}
    # This zone serves no pages, and its PostgreSQL waits for no disk.
    assert errors <= {"static_missing", "database_setting"}


def ask(zones, path, headers):
    connection = HTTPConnection("127.0.0.1", zones.analyst.port, timeout=30)
    connection.request("GET", path, None, headers)
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, response.headers, text


def test_while_the_database_is_away_visitors_are_told_to_come_again(apart):
    zones, *_ = apart
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
    assert "Part of the service is unavailable" in page[2] and "no-store" in page[1]["Cache-Control"]
    assert json.loads(answer[2])["title"] == "Service Unavailable"
    # Every process and thread has connections of the server that was stopped: none of them is used.
    assert {ask(zones, "/", cookie)[0] for _ in range(20)} == {302}
