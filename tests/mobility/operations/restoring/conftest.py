"""A small study, its backups, and what takes the place of its workers while it is restored."""

import pytest

from mobility.operations.backup import restore as restoring
from mobility.operations.backup.making import make_backup
from tests.mobility.pipeline import SMALL


def back_up(tmp_path):
    return make_backup(tmp_path / "backups", by="test").folder


def put_back(folder, **options):
    return restoring.restore(folder, by="test", replaces=True, **options)


@pytest.fixture(autouse=True)
def _nobody_works(monkeypatch):
    """Answers of workers are tested in tests/e2e/test_restore_drill.py, which has some."""
    monkeypatch.setattr(restoring, "_check_nobody_works", lambda: None)


@pytest.fixture
def pipeline(make_pipeline):
    return make_pipeline(**SMALL)
