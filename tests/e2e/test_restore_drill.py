"""Everything is lost (databases, keys, secrets, staged files, the queue), and comes back from a backup.

Destroyed data do not. Real processes, on PostgreSQL and on SQLite.
"""

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from mobility.base.runtime import RuntimePaths
from scripts import services
from tests.demo_study import STUDY, write_study
from tests.e2e.deployment import URLS, Deployment
from tests.e2e.several import outcomes

pytestmark = pytest.mark.e2e
SECOND = "second-2017"
TOTALS = ("export_report", STUDY)


@dataclass
class Drill:
    site: Deployment
    safe: Path
    files: list[Path]

    def refused(self, *words):
        (done,) = outcomes([words], self.site.environment)
        assert done.code != 0, done.output
        return done.errors

    def lose_everything(self):
        self.site.worker.stop()
        with self.site.client() as redis:
            redis.flushall()
        shutil.rmtree(self.site.data)
        for alias in self.site.postgres:
            server, _, name = self.site.environment[URLS[alias]].rpartition("/")
            with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
                connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
                connection.execute(f"CREATE DATABASE {name}".encode())

    def study_keys(self):
        return sorted(path.stem for path in RuntimePaths(self.site.data).keystore.glob("study-*.key"))

    def restore_keys(self, escrow):
        return ("restore_keys", escrow, "--private-key", str(self.safe / "private.pem"))


@pytest.fixture(scope="module", params=["postgresql", "sqlite"])
def drill(request, extract, migrated, tmp_path_factory):
    safe = tmp_path_factory.mktemp("safe")
    for words in (
        ["genpkey", "-algorithm", "X25519", "-out", "private.pem"],
        ["pkey", "-in", "private.pem", "-pubout", "-out", "public.pem"],
    ):
        subprocess.run(["openssl", *words], cwd=safe, check=True, capture_output=True)
    with (
        # Not below pytest's own folder: the account of PostgreSQL has to reach it.
        services.private_folder("drill") as root,
        Deployment(root, migrated=migrated, is_postgres=request.param == "postgresql") as started,
    ):
        yield Drill(started, safe, extract)


@dataclass(frozen=True)
class Kept:
    """Data that outlive the loss, and their state when kept: totals of the study, ids of the keys."""

    backup: str
    escrow: str
    head: Path
    totals: list[Any]
    keys: list[str]


def test_everything_comes_back_but_what_was_destroyed(drill):
    kept = keep_two_days(drill)
    # After the backup, so it is lost, and sent again later.
    _, with_third = drill.site.values(("ingest", STUDY, str(drill.files[2])), TOTALS)
    assert "a worker is responding" in drill.refused("restore", kept.backup, "--yes", "--replace")
    drill.lose_everything()
    all_that_was_kept_comes_back(drill, kept)
    what_came_later_is_sent_again(drill, kept, with_third=with_third)
    a_closed_study_stays_closed(drill, kept)


def keep_two_days(drill):
    first, second = drill.safe / "first", drill.safe / "second"
    first.mkdir()
    second.mkdir()
    drill.site.values(
        ("create_study", str(write_study(first))),
        ("create_study", str(write_study(second, slug=SECOND))),
        ("create_account", "ana", "--role", "analyst", "--all-studies"),
        ("ingest", STUDY, str(drill.files[0])),
        ("ingest", STUDY, str(drill.files[1])),
        ("ingest", SECOND, str(drill.files[0])),
    )
    keys = drill.study_keys()
    assert len(keys) == 2
    backup = drill.site.manage("backup", "--out", str(drill.safe))
    assert backup["keys"] == keys
    _nothing_secret_is_in(Path(backup["backup"]), drill)
    verified, escrow, totals = drill.site.values(
        ("verify_backup", backup["backup"]),
        ("escrow_keys", "--to", str(drill.safe), "--recipient", str(drill.safe / "public.pem")),
        TOTALS,
    )
    head = drill.safe / "head.json"
    head.write_text(json.dumps(verified["ledger_head"]))
    return Kept(backup=backup["backup"], escrow=escrow["escrow"], head=head, totals=totals, keys=keys)


def all_that_was_kept_comes_back(drill, kept):
    told = drill.site.manage("restore", kept.backup, "--yes")
    assert told["waits_for"] == "restore_keys"  # without the key of the ledger nothing can be settled
    assert told["openings"]["accounts"] == ["ana"]
    told, totals = drill.site.values(drill.restore_keys(kept.escrow), TOTALS)
    assert told["restored"] == sorted([*kept.keys, "ledger"])
    assert (told["refused"], told["keys_missing"], told["waits_for"]) == ([], [], None)
    assert totals == kept.totals


def what_came_later_is_sent_again(drill, kept, *, with_third):
    drill.site.worker.start()
    files = [("ingest", STUDY, str(file)) for file in drill.files[1:3]]
    again, _, totals, ledger = drill.site.values(*files, TOTALS, ("verify_ledger", "--head", str(kept.head)))
    assert again["duplicate"]  # the key is the old one: the file is known by its keyed hash
    assert totals == with_third
    assert ledger["ok"]


def a_closed_study_stays_closed(drill, kept):
    certificate = drill.site.manage("close_study", SECOND)
    (closed,) = (key["id"] for key in certificate["keys"])
    assert "escrow" in [row["name"] for row in certificate["not_reached"]]
    drill.site.worker.stop()
    told = drill.site.manage("restore", kept.backup, "--yes", "--replace")
    assert told["studies_closed_again"] == [SECOND]
    told, totals = drill.site.values(drill.restore_keys(kept.escrow), TOTALS)
    assert told["refused"] == [closed]
    assert totals == kept.totals
    assert closed not in drill.study_keys()
    state = "SELECT COUNT(*) FROM mobility_vaultstudy WHERE certificate IS NULL"
    assert drill.site.query("vault", state) == [(1,)]
    assert drill.site.query("vault", "SELECT COUNT(DISTINCT study_id) FROM mobility_presenceshard") == [(1,)]


def _nothing_secret_is_in(backup, drill):
    paths = RuntimePaths(drill.site.data)
    secrets = [path.read_bytes() for path in paths.keystore.glob("*.key")]
    secrets += [paths.ledger_key.read_bytes(), paths.secret_key.read_bytes()]
    assert len(secrets) == 4
    for path in (backup, *backup.iterdir()):
        assert path.stat().st_mode & 0o077 == 0
        if path.is_file():
            held = path.read_bytes()
            assert not [1 for secret in secrets if secret in held]
