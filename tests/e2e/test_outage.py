"""Servers of PostgreSQL that die and come back while a batch is at work and commands wait."""

import json
import signal
import time
from contextlib import contextmanager

import psycopg
import pytest

from benchmarks.installation import Installation
from scripts import services
from tests.e2e.conftest import STUDY, STUDY_FILE
from tests.e2e.deployment import wait_until

pytestmark = pytest.mark.e2e
# MOBILITY_BATCH_LEASE_S by default: nothing here may wait for it, and on a free machine it is 3 s.
LEASE_S = 120


@pytest.fixture(scope="module")
def installation():
    with services.private_folder("outage") as folder, Installation(folder, is_postgres=True) as made:
        made.manage("create_study", str(STUDY_FILE))
        yield made


@contextmanager
def without(installation, alias):
    """Inside this block a database is gone, as by a crash; it is back afterwards."""
    installation.postgres[alias].stop(signal.SIGQUIT)
    yield
    installation.postgres[alias].start()


def is_begun(installation):
    with psycopg.connect(installation.environment["VAULT_DATABASE_URL"]) as connection:
        found = connection.execute("SELECT count(*) FROM mobility_batch WHERE started_at IS NOT NULL")
        return found.fetchone() != (0,)


def test_a_batch_and_a_command_go_on_when_the_main_database_is_back(installation, extract):
    with installation.command("ingest", STUDY, str(extract[0])) as command:
        wait_until(lambda: is_begun(installation), what="a batch")
        with without(installation, "default"):
            time.sleep(15)  # reading and merging end, publishing waits
        back = time.monotonic()
        output, errors = command.communicate(timeout=LEASE_S)
    assert command.returncode == 0, errors
    assert json.loads(output)["published"]
    assert time.monotonic() - back < LEASE_S / 2


def test_commands_that_start_without_a_database_wait_for_it(installation, extract):
    installation.manage("ingest", STUDY, str(extract[1]))
    closing = ("close_days", STUDY, "--through", "2017-06-01")
    for words, alias in ((closing, "vault"), (closing, "default"), (("close_study", STUDY), "default")):
        with without(installation, alias):
            command = installation.command(*words)
            time.sleep(5)
        output, errors = command.communicate(timeout=LEASE_S)
        assert command.returncode == 0, errors
        assert json.loads(output)
