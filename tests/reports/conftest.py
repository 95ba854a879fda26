"""A study with answers, and a reader."""

from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django.fixtures import Settings

from reports.sharing import actions as access
from reports.studies.models import Indicator, Study
from tests.reports import map_factory
from tests.reports import report_factory as factory
from tests.reports.page_texts import signed_in


@pytest.fixture
def ledger_key(tmp_path: Path, settings: Settings) -> Path:
    settings.MOBILITY_LEDGER_KEY_FILE = tmp_path / "ledger_key.pem"
    return tmp_path / "ledger_key.pem"


@pytest.fixture
def fair(db: None) -> Study:
    return factory.published()


@pytest.fixture
def age(fair: Study) -> Indicator:
    return fair.indicators.get(slug="age")


@pytest.fixture
def mapped(db: None) -> Study:
    return map_factory.create()


@pytest.fixture
def reader(analyst: User) -> Client:
    return signed_in(analyst)


@pytest.fixture
def boss(administrator):
    return signed_in(administrator)


@pytest.fixture
def officer(privacy_officer):
    return signed_in(privacy_officer)


@pytest.fixture
def token(analyst):
    def make(study=None, *, by=analyst, days=1):
        return access.create_token(name="nightly", days=days, study=study, by=by)[1]

    return make
