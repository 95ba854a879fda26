"""Raw data leaves no trace, and nothing is lost: after success, refusal, and a worker that is killed."""

import os
import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import redis

from mobility.demo.extract import write_extract
from mobility.runtime import RuntimePaths
from tests.e2e.conftest import STUDY, STUDY_FILE, Installation

pytestmark = pytest.mark.e2e
# A subscriber who is present, one in a rejected row, and a value outside the categories.
MARKERS = (b"33699887766", b"33655443322", b"planted-value-4711")
LEASE_S = 3


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    made = Installation(tmp_path / "var", extra={"MOBILITY_BATCH_LEASE_S": str(LEASE_S)})
    made.value("create_study", str(STUDY_FILE))
    return made


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first day of 20,000 people, with the markers among them."""
    folder = tmp_path_factory.mktemp("planted")
    write_extract(folder, seed=2, n_subscribers=20_000)
    path = min(folder.glob("*.csv"))
    lines = path.read_text().splitlines(keepends=True)
    visitor, refused, value = (marker.decode() for marker in MARKERS)
    cell = lines[len(lines) // 2].split(",")[2]
    rows = [
        f"{visitor},2017-05-31T{hour}:15:00,{cell},Resident,F,25-34,popular,Alsace,City of Belfort\n"
        for hour in (10, 13, 15)
    ]
    rows.append(
        f"{refused},2017-05-31T10:15:00,{cell},Resident,{value},25-34,popular,Alsace,City of Belfort\n"
    )
    half = len(lines) // 2
    path.write_text("".join([*lines[:half], *rows, *lines[half:]]))
    return path


def traces(installation: Installation) -> list[str]:
    """Files below the data folder, and values in Redis, that hold a marker."""
    paths = RuntimePaths(installation.data_dir)
    found = [str(path) for path in files_below(installation.data_dir) if holds_marker(path.read_bytes())]
    found += [str(path) for path in files_below(paths.run) if holds_marker(path.read_bytes())]
    return found + [f"redis {key!r}" for key, value in queued(paths) if holds_marker(value)]


def files_below(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file())


def holds_marker(content: bytes) -> bool:
    return any(marker in content for marker in MARKERS)


def queued(paths: RuntimePaths) -> Iterator[tuple[bytes, bytes]]:
    """Everything that the broker holds, as it would be dumped."""
    if not paths.redis_socket.exists():
        return
    with redis.Redis(unix_socket_path=str(paths.redis_socket)) as client:
        try:
            keys = client.keys("*")
        except redis.ConnectionError:
            return
        for key in keys:
            yield key, client.dump(key) or b""


def state_of_last_batch(installation: Installation) -> str:
    vault = RuntimePaths(installation.data_dir).vault_database
    with closing(sqlite3.connect(f"file:{vault}?mode=ro", uri=True, timeout=10)) as database:
        row = database.execute("SELECT state FROM mobility_batch ORDER BY created_at DESC LIMIT 1").fetchone()
    return str(row[0]) if row else ""


def test_markers_would_be_found(installation: Installation, planted: Path) -> None:
    """The search itself works: a plain copy of the extract is a trace."""
    copy = installation.data_dir / "copy.csv"
    copy.write_bytes(planted.read_bytes())
    assert traces(installation) == [str(copy)]


def test_nothing_stays_after_success_and_refusal(
    installation: Installation, planted: Path, tmp_path: Path
) -> None:
    done = installation.value("ingest", STUDY, str(planted))
    assert done["rows_rejected"]["unknown_value"] >= 1
    refused = tmp_path / "refused.csv"
    header = planted.read_text().splitlines()[0]
    refused.write_text(
        "\n".join([header, *(f"{MARKERS[1].decode()},{MARKERS[2].decode()},x,,,,,," for _ in range(99))])
    )
    failed = installation.run("ingest", STUDY, str(refused))
    assert failed.returncode != 0
    assert "max_bad_share" in failed.stderr
    assert not holds_marker(failed.stderr.encode())
    assert traces(installation) == []
    assert list((installation.data_dir / "staging").iterdir()) == []


@pytest.mark.parametrize("stage", ["queued", "reading", "merging"])
def test_killed_worker_leaves_no_trace_and_the_batch_resumes(
    installation: Installation, planted: Path, tmp_path: Path, stage: str
) -> None:
    undisturbed = Installation(tmp_path / "undisturbed", extra=installation.extra)
    undisturbed.value("create_study", str(STUDY_FILE))
    expected = undisturbed.value("ingest", STUDY, str(planted))

    command = installation.start("ingest", STUDY, str(planted))
    wait_until_stage(installation, stage)
    kill_everything(installation, command.pid)
    command.communicate()
    assert traces(installation) == []
    staged = [path for path in files_below(installation.data_dir / "staging") if path.stat().st_size]
    assert staged, "the batch was over before it could be killed"

    # The next command that needs workers starts one, which resumes the batch; its own waits for its turn.
    again = installation.value("ingest", STUDY, str(planted))
    assert again["duplicate"] is True
    assert state_counts(installation) == {"done": 2}
    assert visitors_of(installation) == visitors_of(undisturbed) == expected["subscriber_days"]
    assert traces(installation) == []
    assert list((installation.data_dir / "staging").iterdir()) == []


def wait_until_stage(installation: Installation, stage: str) -> None:
    order = ["receiving", "queued", "reading", "merging", "publishing", "done"]
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        state = state_of_last_batch(installation)
        if state and order.index(state) >= order.index(stage):
            return
        time.sleep(0.001)
    pytest.fail(f"no batch came to {stage}")


def kill_everything(installation: Installation, command: int) -> None:
    """No handler runs: the command first, so that it stops nothing in good order."""
    os.kill(command, signal.SIGKILL)
    run = RuntimePaths(installation.data_dir).run
    for name in ("worker", "redis"):
        os.killpg(int((run / f"{name}.pid").read_text()), signal.SIGKILL)


def state_counts(installation: Installation) -> dict[str, int]:
    vault = RuntimePaths(installation.data_dir).vault_database
    with closing(sqlite3.connect(vault, timeout=10)) as database:
        return dict(database.execute("SELECT state, count(*) FROM mobility_batch GROUP BY state").fetchall())


def visitors_of(installation: Installation) -> Any:
    (report, *_) = installation.value(
        "export_report", STUDY, "--indicator", "gender", "--from", "2017-05-31", "--to", "2017-05-31"
    )
    return report["n_visitors"]
