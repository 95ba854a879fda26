"""`manage.py demo` as a person runs it: broken off, continued, repeated, cleaned."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.mobility.data_folder import Folder

SUBSCRIBERS = 300


def demo(folder: Folder, *options: str, until: str = "", then=None) -> tuple[int, str, str]:
    process = folder.command("demo", "--no-serve", *options)
    if until:
        assert any(until in line for line in process.stderr)
        then(process)
    printed, messages = process.communicate(timeout=300)
    return process.returncode, printed, messages


@pytest.mark.long
def test_demo_survives_interruptions_and_a_repetition_and_is_cleaned_whole(prepared_folder) -> None:
    folder = prepared_folder

    def kill_worker(process: subprocess.Popen[str]) -> None:
        """The demo starts another one, and continues with the day that it was at."""
        os.killpg(int((folder.paths.run / "worker.pid").read_text()), signal.SIGKILL)
        assert any("worker stopped unexpectedly; restarting" in line for line in process.stderr)
        assert any("day 4 of 7" in line for line in process.stderr)
        process.send_signal(signal.SIGINT)

    code, *_ = demo(folder, "--subscribers", f"{SUBSCRIBERS}", until="day 2 of 7", then=kill_worker)
    assert (code, folder.running()) == (130, set())

    code, printed, messages = demo(folder)
    assert code == 0, messages
    first = json.loads(printed)
    assert (first["study"], first["address"], first["n_visitors"]) == ("fimu-2017", None, SUBSCRIBERS)
    assert len(set(first["batches"])) == 7
    export = Path(first["export"]).read_text()
    assert folder.command("export_report", "fimu-2017").communicate(timeout=60)[0] == export
    slots = json.loads(folder.command("export_presence", "fimu-2017").communicate(timeout=60)[0])["slots"]
    assert [each["status"] for each in slots] == 7 * 48 * ["ok"]
    accounts = folder.root / "demo-accounts.json"
    assert accounts.stat().st_mode & 0o777 == 0o600
    passwords = accounts.read_text()

    code, printed, _ = demo(folder)
    assert (code, json.loads(printed), Path(first["export"]).read_text()) == (0, first, export)
    assert (accounts.read_text(), folder.running()) == (passwords, set())

    code, _, messages = demo(folder, "--subscribers", "500")
    assert code == 1
    assert f"already exists with {SUBSCRIBERS} subscribers, not 500" in messages
    assert "make clean" in messages
    assert (folder.script("scripts/clean.py", "--yes").wait(timeout=60), folder.root.exists()) == (0, False)


def test_clean_asks_first_and_removes_nothing_of_others(folder) -> None:
    folder.root.mkdir()
    for name in ("main.sqlite3", "main.sqlite3-wal", "secret_key", "notes.txt"):
        (folder.root / name).touch()
    (folder.root / "keystore").mkdir()
    refused = folder.script("scripts/clean.py")
    _, messages = refused.communicate(timeout=60)
    assert refused.returncode == 1
    assert "nothing was deleted" in messages
    assert len(list(folder.root.iterdir())) == 5
    assert folder.script("scripts/clean.py", "--yes").wait(timeout=60) == 0
    assert [path.name for path in folder.root.iterdir()] == ["notes.txt"]
