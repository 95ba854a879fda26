"""A study with answers, and a reader."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from reports.models import Study
from tests.reports import report_factory as factory


@pytest.fixture
def fair(db: None) -> Study:
    """Four days, three indicators, four thousand visitors."""
    study = factory.create()
    factory.publish(study, factory.crowd(study))
    return study


@pytest.fixture
def reader(analyst: User) -> Client:
    """An analyst who is signed in."""
    client = Client()
    client.force_login(analyst)
    return client
