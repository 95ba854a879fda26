"""Several processes at once add to one ledger in a file of SQLite, as web server and workers do."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.mobility.data_folder import Folder

WRITE = """
from reports.models import LedgerKind
from reports.services.ledger import record
for turn in range(10):
    record(LedgerKind.SIGNED_OUT, actor="own")
    record(LedgerKind.SIGNED_OUT, actor="shared", event_id=f"turn {turn}")
"""

pytestmark = [pytest.mark.slow, pytest.mark.long]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    made = Folder(tmp_path / "var")
    yield made
    made.stop_all()


def printed(process: "subprocess.Popen[str]") -> str:
    out, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return out


def test_processes_that_write_at_once_leave_no_gap_and_make_one_key(folder: Folder) -> None:
    printed(folder.shell())  # makes the databases
    for process in [folder.shell(WRITE) for _ in range(3)]:
        printed(process)
    report = json.loads(printed(folder.command("verify_ledger")))
    assert report["ok"]
    assert report["entries"] == 3 * 10 + 10
    assert len(list(folder.root.glob("ledger_key*"))) == 1
