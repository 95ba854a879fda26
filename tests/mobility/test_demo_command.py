"""`manage.py demo` as a person runs it: interrupted, continued, repeated, cleaned."""

import json
import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.mobility.data_folder import Folder

pytestmark = pytest.mark.slow
SUBSCRIBERS = 1000


def demo(folder: Folder, *options: str) -> subprocess.Popen[str]:
    return folder.command("demo", "--no-serve", *options)


def result(process: subprocess.Popen[str]) -> dict[str, Any]:
    printed, messages = process.communicate(timeout=300)
    assert process.returncode == 0, messages
    value: dict[str, Any] = json.loads(printed)
    return value


@pytest.mark.long
def test_demo_survives_an_interruption_and_a_repetition(folder: Folder) -> None:
    interrupted = demo(folder, "--subscribers", str(SUBSCRIBERS))
    for line in interrupted.stderr:
        if "day 3 of 7" in line:
            break
    interrupted.send_signal(signal.SIGINT)
    interrupted.communicate(timeout=60)
    assert interrupted.returncode == 130
    assert folder.running() == set()

    first = result(demo(folder))
    assert first["study"] == "fimu-2017"
    assert first["address"] is None
    assert first["n_visitors"] == SUBSCRIBERS
    assert len(set(first["batches"])) == 7
    export = Path(first["export"]).read_text()
    printed, _ = folder.command("export_report", "fimu-2017").communicate(timeout=60)
    assert printed == export
    accounts = folder.root / "demo-accounts.json"
    assert accounts.stat().st_mode & 0o777 == 0o600
    passwords = accounts.read_text()

    assert result(demo(folder)) == first
    assert Path(first["export"]).read_text() == export
    assert accounts.read_text() == passwords
    assert folder.running() == set()

    other = demo(folder, "--subscribers", "500")
    _, messages = other.communicate(timeout=60)
    assert other.returncode == 1
    assert "exists already with 1,000 subscribers, not 500" in messages
    assert "make clean" in messages


@pytest.mark.long
def test_dead_worker_is_named_instead_of_waited_for(folder: Folder) -> None:
    process = demo(folder, "--subscribers", str(SUBSCRIBERS))
    for line in process.stderr:
        if "day 2 of 7" in line:
            break
    os.killpg(int((folder.paths.run / "worker.pid").read_text()), signal.SIGKILL)
    _, messages = process.communicate(timeout=60)
    assert process.returncode == 1
    assert re.search(r"the demo stopped at this step: day \d of 7: \S+: worker stopped by itself", messages)
    assert folder.running() == set()


def test_clean_removes_what_runs_wrote_and_nothing_else(folder: Folder) -> None:
    folder.shell().communicate(timeout=60)
    (folder.root / "notes.txt").write_text("mine")
    refused = folder.script("scripts/clean.py")
    _, messages = refused.communicate(timeout=60)
    assert refused.returncode == 1
    assert "nothing was removed" in messages
    assert (folder.root / "main.sqlite3").exists()
    assert folder.script("scripts/clean.py", "--yes").wait(timeout=60) == 0
    assert [path.name for path in folder.root.iterdir()] == ["notes.txt"]
