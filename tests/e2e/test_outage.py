"""Servers of PostgreSQL that die and come back while a batch is at work and commands wait."""

import json
import select
import signal
import time
from contextlib import contextmanager

import psycopg
import pytest

from mobility.batches.dispatching import RETRY_S
from scripts import services
from tests.demo_study import STUDY, write_study
from tests.e2e.deployment import Running, wait_until

pytestmark = pytest.mark.e2e
# MOBILITY_BATCH_LEASE_S by default: nothing here may wait for it, and on a free machine it is 3 s.
LEASE_S = 120
AT_WORK = "reading", "merging", "publishing", "done"


@pytest.fixture(scope="module")
def installation(tmp_path_factory):
    with services.private_folder("outage") as folder, Running(folder, is_postgres=True) as made:
        made.manage("create_study", str(write_study(tmp_path_factory.mktemp("study"))))
        yield made


@contextmanager
def without(installation, alias):
    installation.postgres[alias].stop(signal.SIGQUIT)
    yield
    installation.postgres[alias].start()


def is_at(installation, *states):
    with psycopg.connect(installation.environment["VAULT_DATABASE_URL"]) as connection:
        found = connection.execute("SELECT state FROM mobility_batch ORDER BY created_at").fetchone()
        return found is not None and found[0] in states


def test_a_batch_and_a_command_go_on_when_the_main_database_is_back(installation, extract):
    with installation.command("ingest", STUDY, str(extract[0])) as command:
        wait_until(lambda: is_at(installation, *AT_WORK), what="a batch", every_s=0.01)
        with without(installation, "default"):
            wait_until(lambda: is_at(installation, *AT_WORK[2:]), what="reading and merging to end")
            time.sleep(3 * RETRY_S)  # publishing waits, and is tried again
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
            select.select([command.stderr], [], [], 5)  # until it says that it waits, which not all have to
        output, errors = command.communicate(timeout=LEASE_S)
        assert command.returncode == 0, errors
        assert json.loads(output)
