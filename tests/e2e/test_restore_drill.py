"""Everything is lost, and comes back from a backup and an escrow; what was destroyed does not.

Real processes, on PostgreSQL and on SQLite. What is lost: both databases, the data folder with its keys,
staged files and secrets, and what Redis holds.
"""

import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from mobility.demo.extract import write_extract
from mobility.runtime import RuntimePaths
from scripts import services
from tests.e2e.conftest import STUDY, STUDY_FILE
from tests.e2e.deployment import URLS, Deployment

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
SECOND = "second-2017"


@dataclass
class Drill:
    """An installation, a place for backups that outlives it, and an escrow."""

    site: Deployment
    safe: Path
    files: list[Path]

    def manage(self, *words: str) -> Any:
        return json.loads(self.site.manage_text(*words))

    def refused(self, *words: str) -> str:
        """What a command says that must fail."""
        with self.site.command(*words) as process:
            output, errors = process.communicate(timeout=120)
        assert process.returncode != 0, output
        return errors

    def totals(self) -> str:
        return self.site.manage_text("export_report", STUDY)

    def stop(self) -> None:
        self.site.worker.stop()

    def lose_everything(self) -> None:
        self.stop()
        with self.site.client() as redis:
            redis.flushall()
        shutil.rmtree(self.site.data)
        for alias in self.site.postgres:
            server, _, name = self.site.environment[URLS[alias]].rpartition("/")
            with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
                connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
                connection.execute(f"CREATE DATABASE {name}".encode())

    def study_keys(self) -> list[str]:
        return sorted(path.stem for path in RuntimePaths(self.site.data).keystore.glob("study-*.key"))

    def escrow(self) -> str:
        made = self.manage(
            "escrow_keys", "--to", str(self.safe), "--recipient", str(self.safe / "public.pem")
        )
        return str(made["escrow"])

    def restore_keys(self, escrow: str) -> Any:
        return self.manage("restore_keys", escrow, "--private-key", str(self.safe / "private.pem"))


@pytest.fixture(scope="module", params=["postgresql", "sqlite"])
def drill(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drill]:
    safe, extract = (tmp_path_factory.mktemp(name) for name in ("safe", "extract"))
    write_extract(extract, seed=17, n_subscribers=1_000)
    for words in (
        ["genpkey", "-algorithm", "X25519", "-out", "private.pem"],
        ["pkey", "-in", "private.pem", "-pubout", "-out", "public.pem"],
    ):
        subprocess.run(["openssl", *words], cwd=safe, check=True, capture_output=True)
    with (
        # Not below pytest's own folder: the account of PostgreSQL has to reach it.
        services.private_folder("drill") as root,
        Deployment(root, is_postgres=request.param == "postgresql") as started,
    ):
        yield Drill(started, safe, sorted(extract.glob("*.csv")))


def create_studies(drill: Drill) -> None:
    drill.manage("create_study", str(STUDY_FILE))
    folder = drill.safe / "second"
    folder.mkdir()
    for name in ("cells.csv", "zones.geojson"):
        shutil.copy(STUDY_FILE.parent / name, folder)
    text = STUDY_FILE.read_text().replace(f'slug = "{STUDY}"', f'slug = "{SECOND}"')
    (folder / "study.toml").write_text(text)
    drill.manage("create_study", str(folder / "study.toml"))


@dataclass(frozen=True)
class Kept:
    """What outlives the loss, and how it was when it was kept: totals of the study, ids of the keys."""

    backup: str
    escrow: str
    head: Path
    totals: str
    keys: list[str]


def test_everything_comes_back_but_what_was_destroyed(drill: Drill) -> None:
    create_studies(drill)
    kept = keep_two_days(drill)
    with_third = take_in_a_third_day(drill)
    what_is_at_work_is_not_replaced(drill, kept)
    drill.lose_everything()
    all_that_was_kept_comes_back(drill, kept)
    what_came_later_is_sent_again(drill, kept, with_third=with_third)
    a_closed_study_stays_closed(drill, kept)
    a_ledger_kept_elsewhere_tells_what_was_closed(drill, kept)


def keep_two_days(drill: Drill) -> Kept:
    assert drill.manage("create_account", "ana", "--role", "analyst", "--all-studies")["password"]
    for path in drill.files[:2]:
        drill.manage("ingest", STUDY, str(path))
    drill.manage("ingest", SECOND, str(drill.files[0]))
    keys = drill.study_keys()
    assert len(keys) == 2
    backup = drill.manage("backup", "--out", str(drill.safe))
    assert backup["keys"] == keys
    _nothing_secret_is_in(Path(backup["backup"]), drill)
    head = drill.safe / "head.json"
    head.write_text(json.dumps(drill.manage("verify_backup", backup["backup"])["ledger_head"]))
    return Kept(backup=backup["backup"], escrow=drill.escrow(), head=head, totals=drill.totals(), keys=keys)


def take_in_a_third_day(drill: Drill) -> str:
    """After the backup, so it is lost, and sent again later."""
    drill.manage("ingest", STUDY, str(drill.files[2]))
    return drill.totals()


def what_is_at_work_is_not_replaced(drill: Drill, kept: Kept) -> None:
    assert "a worker answers" in drill.refused("restore", kept.backup, "--yes", "--replace")


def all_that_was_kept_comes_back(drill: Drill, kept: Kept) -> None:
    told = drill.manage("restore", kept.backup, "--yes")
    assert told["waits_for"] == "restore_keys"  # without the key of the ledger nothing can be settled
    assert told["openings"]["accounts"] == ["ana"]
    told = drill.restore_keys(kept.escrow)
    assert told["restored"] == sorted([*kept.keys, "ledger"])
    assert (told["refused"], told["keys_missing"], told["waits_for"]) == ([], [], None)
    assert drill.totals() == kept.totals


def what_came_later_is_sent_again(drill: Drill, kept: Kept, *, with_third: str) -> None:
    drill.site.worker.start()
    again = drill.manage("ingest", STUDY, str(drill.files[1]))
    assert again["duplicate"]  # the key is the old one: the file is known by its keyed hash
    drill.manage("ingest", STUDY, str(drill.files[2]))
    assert drill.totals() == with_third
    assert drill.manage("verify_ledger", "--head", str(kept.head))["ok"]


def a_closed_study_stays_closed(drill: Drill, kept: Kept) -> None:
    """Whatever is restored."""
    certificate = drill.manage("close_study", SECOND)
    (closed,) = (key["id"] for key in certificate["keys"])
    assert "escrow" in [row["name"] for row in certificate["not_reached"]]
    drill.stop()
    told = drill.manage("restore", kept.backup, "--yes", "--replace")
    assert told["studies_closed_again"] == [SECOND]
    assert drill.restore_keys(kept.escrow)["refused"] == [closed]
    assert closed not in drill.study_keys()
    state = "SELECT COUNT(*) FROM mobility_vaultstudy WHERE certificate IS NULL"
    assert drill.site.query("vault", state) == [(1,)]
    assert drill.site.query("vault", "SELECT COUNT(DISTINCT study_id) FROM mobility_presenceshard") == [(1,)]
    assert drill.totals() == kept.totals


def a_ledger_kept_elsewhere_tells_what_was_closed(drill: Drill, kept: Kept) -> None:
    """Also when the keystore with its tombstones is gone as well."""
    drill.manage("close_study", STUDY, "--drop-unpublished")
    ledger = drill.safe / "ledger.jsonl"
    drill.site.manage_text("export_ledger", "--out", str(ledger))
    drill.lose_everything()
    drill.manage("restore", kept.backup, "--yes", "--ledger", str(ledger))
    told = drill.restore_keys(kept.escrow)
    assert told["refused"] == kept.keys
    assert told["restored"] == ["ledger"]
    assert sorted(told["studies_closed_again"]) == [STUDY, SECOND]
    assert drill.study_keys() == []
    assert drill.manage("verify_ledger", "--head", str(kept.head))["ok"]
    drill.site.worker.start()
    assert "closed" in drill.refused("ingest", STUDY, str(drill.files[0]))


def _nothing_secret_is_in(backup: Path, drill: Drill) -> None:
    paths = RuntimePaths(drill.site.data)
    secrets = [path.read_bytes() for path in paths.keystore.glob("*.key")]
    secrets += [paths.ledger_key.read_bytes(), paths.secret_key.read_bytes()]
    assert len(secrets) == 4
    for path in (backup, *backup.iterdir()):
        assert path.stat().st_mode & 0o077 == 0
        if path.is_file():
            held = path.read_bytes()
            assert not [1 for secret in secrets if secret in held]
