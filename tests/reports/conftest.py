"""A study with answers, and a reader."""

from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django.fixtures import Settings

from reports import tasks
from reports.models import Study
from reports.services import files as services_files
from reports.views import files as views_files
from tests.reports import report_factory as factory


@pytest.fixture
def ledger_key(tmp_path: Path, settings: Settings) -> Path:
    """Where the key of the ledger will be: there is none yet."""
    settings.MOBILITY_LEDGER_KEY_FILE = tmp_path / "ledger_key.pem"
    return tmp_path / "ledger_key.pem"


@pytest.fixture
def fair(db: None) -> Study:
    """Four days, three indicators, four thousand visitors."""
    return factory.published()


@pytest.fixture(autouse=True)
def worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers that make a file the moment that it is asked for."""
    monkeypatch.setattr(services_files, "_send", lambda row: tasks.make_export(row.pk))
    monkeypatch.setattr(views_files, "LOOK_S", 0.0)


@pytest.fixture
def reader(analyst: User) -> Client:
    """An analyst who is signed in."""
    client = Client()
    client.force_login(analyst)
    return client
