"""Data that an earlier release made are read, continued and ended by today's code."""

import itertools
import json
import shutil

import pytest

from benchmarks.installation import ROOT, Worker
from scripts import services
from tests.e2e.deployment import Running
from tests.e2e.several import code_of, outcomes, texts

pytestmark = pytest.mark.e2e
RELEASES = json.loads((ROOT / "docs" / "releases.json").read_text())["releases"]
STUDY = "fimu-2017"
SHELL = ("shell", "--no-imports", "--command")
OPENED = (
    "import json; from django.contrib.auth.models import User; from reports.models import *; "
    "from reports.selectors import Window; from reports.services.access import create_link, create_token; "
    "anna = User.objects.get(username='anna'); study = Study.objects.get(); "
    "token = create_token(name='a program', days=30, study=None, by=anna)[1]; "
    "link = create_link(study.indicators.first(), Window(first_day=1, last_day=1), query='', days=30, "
    "note='', password='', by=anna)[1]; print(json.dumps([token, link]))"
)
STILL_OPEN = (
    "import json; from django.contrib.auth import authenticate; from django.test import Client; "
    "from reports.sharing.actions import link_of; "
    "answer = Client().get('/api/v1/studies', HTTP_HOST='127.0.0.1', "
    "HTTP_AUTHORIZATION='Bearer {token}'); "
    "print(json.dumps([authenticate(username='anna', password={password!r}) is not None, "
    "[each['study'] for each in answer.json()['items']], link_of({link!r}) is not None]))"
)


class Upgraded(Running):
    """An installation that begins with the code of an earlier release, and continues with today's."""

    def upgrade(self):
        """Upgrade as docs/upgrading.md says: stop, new code, migrate both databases, static files, start."""
        self.workers[0].stop()
        self.code = ROOT
        quietly = ("--verbosity", "0")
        migrations = (("migrate", "--database", alias, *quietly) for alias in ("default", "vault"))
        texts([*migrations, ("collectstatic", "--no-input", *quietly)], self.environment)
        folder = self.workers[0].log.parent
        self.workers = [Worker(1, processes=1, environment=self.environment, folder=folder, code=ROOT)]
        self.workers[0].start()


# Oldest first. Each release on the database that the one before it did not have: what migrations do since the
# last but one is seen on both.
CASES = list(zip(RELEASES, itertools.cycle(["postgresql", "sqlite"]), strict=False))


@pytest.fixture(params=CASES, ids=[f"{release['version']}-{database}" for release, database in CASES])
def installation(request, tmp_path):
    release, database = request.param
    code = code_of(release["commit"], tmp_path / release["version"])
    made_by = {"is_postgres": database == "postgresql", "processes": 1, "code": code}
    made_by["environment"] = {"MOBILITY_MIN_PUBLICATION": "1"}  # so that an opt-out is published at once
    with services.private_folder("upgrade") as folder, Upgraded(folder, **made_by) as running:
        yield running


def test_upgrade(installation, extract, tmp_path):
    before = _life(installation, extract, tmp_path)
    _refuses_to_serve(installation)
    installation.upgrade()
    _is_found_again(installation, before)
    _goes_on(installation, extract, before)


def test_a_half_filled_study_has_the_same_totals_with_and_without_the_upgrade(extract, tmp_path):
    """The previous release fills the rest of a study; from a copy of its data, today's code does the same."""
    release, kept = RELEASES[-1], tmp_path / "kept"
    code = code_of(release["commit"], tmp_path / release["version"])
    assert not [*(code / "reports" / "migrations").glob("0029_*")]
    assert [*(ROOT / "reports" / "migrations").glob("0029_*")]
    settings = {"MOBILITY_MIN_PUBLICATION": "1"}
    with (
        services.private_folder("upgrade") as folder,
        Upgraded(folder, processes=1, code=code, environment=settings) as running,
    ):
        first, half = running.values(
            ("create_study", str(code / "mobility" / "demo" / "study.toml")),
            ("ingest", STUDY, str(extract[0])), ("ingest", STUDY, str(extract[1]), "--more-to-come"),
        )[1:]  # fmt: skip
        assert first["published"]
        assert not half["published"]
        running.workers[0].stop()
        shutil.copytree(running.data, kept)
        running.workers[0].start()
        before = _filled(running, extract)
        running.workers[0].stop()
        shutil.rmtree(running.data)
        shutil.copytree(kept, running.data)
        running.upgrade()
        after = _filled(running, extract)
    assert min(_visitors(before, "2017-06-02")) > 100
    assert [{name: each[name] for name in old} for old, each in zip(before, after, strict=True)] == before


def _filled(installation, extract):
    """Return the reports of a study that is filled from its second day on."""
    *_, reports = installation.values(
        ("close_days", STUDY, "--through", "2017-06-01"),
        ("ingest", STUDY, str(extract[2])), ("ingest", STUDY, str(extract[3])), ("export_report", STUDY),
    )  # fmt: skip
    for each in reports:
        del each["software_version"]
    return reports


def _life(installation, extract, tmp_path):
    code = installation.code
    has_grants = (code / "reports" / "migrations" / "0012_grants.py").exists()
    roles = ("--role", "analyst", "--all-studies") if has_grants else ("analyst",)
    people = tmp_path / "people.csv"
    numbers = [line.split(",")[0] for line in extract[0].read_text().splitlines()[1:40]]
    people.write_text("\n".join(["msisdn", *dict.fromkeys(numbers)]))
    printed = installation.values(
        ("create_study", str(code / "mobility" / "demo" / "study.toml")),
        ("create_account", "anna", *roles), ("ingest", STUDY, str(extract[0])),
        ("ingest", STUDY, str(extract[1]), "--more-to-come"),
        ("ingest", STUDY, str(people), "--profile", "opt-out"), (*SHELL, OPENED),
        ("export_report", STUDY), ("statement", STUDY),
    )  # fmt: skip
    first, opted_out = printed[2], printed[4]
    assert first["published"]
    assert first["subscriber_days"] > 100
    assert opted_out["subscriber_days"] < 0
    password, (token, link), plan = printed[1]["password"], printed[5], printed[7]["plan"]
    return {"password": password, "token": token, "link": link, "reports": printed[6], "plan": plan}


def _doctor(installation, *words, code=None, **environment):
    settings = installation.environment | environment
    (done,) = outcomes([("doctor", "--json", *words)], settings, code=code or installation.code)
    found = json.loads(done.output)["findings"]
    return done.code, {(each["level"], each["code"], each["subject"]) for each in found}


def _refuses_to_serve(installation):
    """Today's code with yesterday's databases says what is missing, and touches nothing.

    The embedded databases are migrated by any command, so that only those of a server can be behind.
    """
    if installation.postgres:
        exit_code, found = _doctor(installation, code=ROOT)
        assert exit_code == 1
        assert {who for _, code, who in found if code == "migrations_pending"} == {"default", "vault"}


def _is_found_again(installation, before):
    """Nothing published has changed, and what was open to someone still is."""
    opened = STILL_OPEN.format(**before)
    words = (("export_report", STUDY), ("statement", STUDY), (*SHELL, opened), ("verify_ledger",))
    reports, statement, may, ledger = installation.values(*words)
    for each in (*reports, *before["reports"]):
        del each["software_version"]  # which release wrote the file: the only thing that may change
    assert reports == before["reports"]
    assert statement["plan"].items() >= before["plan"].items()  # later releases say more, never otherwise
    assert may == [True, [STUDY], True]
    assert ledger["ok"]


def _visitors(reports, day):
    return {each["n_visitors"] for each in reports if each["first_day"] == each["last_day"] == day}


def _goes_on(installation, extract, before):
    closed, again, later = installation.values(
        ("close_days", STUDY, "--through", "2017-06-01"),
        ("ingest", STUDY, str(extract[0])),
        ("ingest", STUDY, str(extract[2])),
    )
    assert closed["published"]
    assert closed["subscriber_days"] > 100
    assert again["duplicate"]  # the key of the earlier release knows its files
    assert later["subscriber_days"] > 100
    (reports,) = installation.values(("export_report", STUDY))
    assert _visitors(before["reports"], "2017-06-01") == {0}
    assert min(_visitors(reports, "2017-06-01")) > 100
    _, found = _doctor(installation, "--deep")
    assert [each for each in found if each[0] == "error"] == []
    # It asks the running worker, which does not see what is staged somewhere else.
    _, found = _doctor(installation, MOBILITY_STAGING_DIR=str(installation.data / "elsewhere"))
    assert [code for level, code, _ in found if level == "error"] == ["storage_not_shared"]
    ends = (("close_study", STUDY, "--drop-unpublished"), ("verify_ledger",))
    certificate, ledger = installation.values(*ends)
    assert certificate["study"]
    assert (ledger["ok"], ledger["entries"] > 4) == (True, True)
