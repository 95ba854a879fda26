"""Data that an earlier release made are read, continued and ended by today's code."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.installation import ROOT
from mobility.demo.extract import write_extract
from scripts import services
from tests.e2e.earlier import RELEASES, CommitMissingError, Upgraded, code_of

pytestmark = [pytest.mark.slow]
STUDY = "fimu-2017"
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
    "from reports.services.access import link_of; "
    "answer = Client().get('/api/v1/studies', HTTP_HOST='127.0.0.1', "
    "HTTP_AUTHORIZATION='Bearer {token}'); "
    "print(json.dumps([authenticate(username='anna', password={password!r}) is not None, "
    "[each['study'] for each in answer.json()['items']], link_of({link!r}) is not None]))"
)


@pytest.fixture(scope="module", params=RELEASES, ids=[release["version"] for release in RELEASES])
def code(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of an earlier release."""
    release = request.param
    try:
        return code_of(release["commit"], tmp_path_factory.mktemp("code") / release["version"])
    except CommitMissingError as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def extract(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Daily files of a few hundred visitors, with raw identifiers."""
    folder = tmp_path_factory.mktemp("extract")
    write_extract(folder, seed=7, n_subscribers=1_200)
    return sorted(folder.glob("*.csv"))


@pytest.fixture(params=["sqlite", "postgresql"])
def installation(request: pytest.FixtureRequest, code: Path) -> Iterator[Upgraded]:
    """One that runs the earlier release."""
    with (
        services.private_folder("upgrade") as folder,
        Upgraded(
            folder,
            is_postgres=request.param == "postgresql",
            processes=1,
            environment={"MOBILITY_MIN_PUBLICATION": "1"},  # so that an opt-out is published at once
            code=code,
        ) as running,
    ):
        yield running


def test_upgrade(installation: Upgraded, extract: list[Path], tmp_path: Path) -> None:
    before = _life(installation, extract, tmp_path)
    _refuses_to_serve(installation)
    installation.upgrade()
    _is_found_again(installation, before)
    _goes_on(installation, extract, before)


def _life(installation: Upgraded, extract: list[Path], tmp_path: Path) -> dict[str, Any]:
    """A published day, an open one, people who must not be counted, an account with what it opened."""
    code = installation.code
    roles = ("--role", "analyst", "--all-studies") if _has_grants(code) else ("analyst",)
    people = tmp_path / "people.csv"
    numbers = [line.split(",")[0] for line in extract[0].read_text().splitlines()[1:40]]
    people.write_text("\n".join(["msisdn", *dict.fromkeys(numbers)]))
    printed = installation.several(
        ("create_study", str(code / "mobility" / "demo" / "study.toml")),
        ("create_account", "anna", *roles),
        ("ingest", STUDY, str(extract[0])),
        ("ingest", STUDY, str(extract[1]), "--more-to-come"),
        ("ingest", STUDY, str(people), "--profile", "opt-out"),
        installation.python(OPENED),
        ("export_report", STUDY),
        ("statement", STUDY),
    )
    first, opted_out = json.loads(printed[2]), json.loads(printed[4])
    assert first["published"]
    assert first["subscriber_days"] > 100
    assert opted_out["subscriber_days"] < 0
    token, link = json.loads(printed[5])
    return {
        "password": json.loads(printed[1])["password"],
        "token": token,
        "link": link,
        "reports": json.loads(printed[6]),
        "plan": json.loads(printed[7])["plan"],
    }


def _has_grants(code: Path) -> bool:
    return (code / "reports" / "migrations" / "0012_grants.py").exists()


def _refuses_to_serve(installation: Upgraded) -> None:
    """Today's code with yesterday's databases says what is missing, and touches nothing.

    The embedded databases are migrated by any command, so that only those of a server can be behind.
    """
    if not installation.postgres:
        return
    earlier, installation.code = installation.code, ROOT
    refused = installation.run("doctor", "--json")
    installation.code = earlier
    found = json.loads(refused.stdout)
    pending = {finding["subject"] for finding in found["findings"] if finding["code"] == "migrations_pending"}
    assert refused.returncode == 1, refused.stderr
    assert pending == {"default", "vault"}


def _is_found_again(installation: Upgraded, before: dict[str, Any]) -> None:
    """Nothing published has changed, and what was open to somebody still is."""
    opened = STILL_OPEN.format(**before)
    reports, statement, may, ledger = installation.values(
        ("export_report", STUDY), ("statement", STUDY), installation.python(opened), ("verify_ledger",)
    )
    assert [_without_version(each) for each in reports] == [
        _without_version(each) for each in before["reports"]
    ]
    assert statement["plan"].items() >= before["plan"].items()  # later releases say more, never otherwise
    assert may == [True, [STUDY], True]
    assert ledger["ok"]


def _without_version(report: dict[str, Any]) -> dict[str, Any]:
    """Everything that a release may not change: which one wrote the file is the only other thing it says."""
    return {name: value for name, value in report.items() if name != "software_version"}


def _worker_is_asked(installation: Upgraded) -> None:
    """The doctor asks the running worker, which does not see what is staged somewhere else."""
    elsewhere = {"MOBILITY_STAGING_DIR": str(installation.data / "elsewhere")}
    usual = installation.environment
    installation.environment = usual | elsewhere
    looked = installation.run("doctor", "--json")
    installation.environment = usual
    codes = [each["code"] for each in json.loads(looked.stdout)["findings"] if each["level"] == "error"]
    assert codes == ["storage_not_shared"], looked.stderr


def _visitors(reports: list[dict[str, Any]], day: str) -> set[int]:
    """Totals of one day: the same for all indicators."""
    return {each["n_visitors"] for each in reports if each["first_day"] == each["last_day"] == day}


def _goes_on(installation: Upgraded, extract: list[Path], before: dict[str, Any]) -> None:
    """The open day is closed, later days come in, the doctor finds nothing wrong, and the study ends."""
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
    looked = installation.run("doctor", "--deep", "--json")
    wrong = [each for each in json.loads(looked.stdout)["findings"] if each["level"] == "error"]
    assert not wrong, looked.stderr
    _worker_is_asked(installation)
    certificate, ledger = installation.values(
        ("close_study", STUDY, "--drop-unpublished"), ("verify_ledger",)
    )
    assert certificate["study"]
    assert ledger["ok"]
    assert ledger["entries"] > 4
