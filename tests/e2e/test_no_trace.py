"""Raw data leaves no trace: after success, refusal, crash and cancel, on SQLite and on PostgreSQL."""

import json
import signal
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from kombu import pools
from playwright.sync_api import Browser

from mobility.demo.extract import write_extract
from scripts import services
from tests.e2e.conftest import STUDY, STUDY_FILE
from tests.e2e.deployment import Deployment, wait_until
from tests.e2e.traces import Search, content_of, files_below

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

# A subscriber who is present, one in a rejected row, and a value outside the categories.
VISITOR, REFUSED, VALUE = "33699887766", "33655443322", "planted-Wärt/4711"
MARKERS = Search((VISITOR, REFUSED, VALUE))
STAGES = ("queued", "reading", "merging", "publishing", "done")


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first day of 20,000 people, with the markers among them."""
    folder = tmp_path_factory.mktemp("planted")
    write_extract(folder, seed=2, n_subscribers=20_000)
    path = min(folder.glob("*.csv"))
    lines = path.read_text().splitlines(keepends=True)
    half = len(lines) // 2
    cell = lines[half].split(",")[2]
    rest = "25-34,popular,Alsace,City of Belfort\n"
    rows = [f"{VISITOR},2017-05-31T{hour}:15:00,{cell},Resident,F,{rest}" for hour in (10, 13, 15)]
    rows.append(f"{REFUSED},2017-05-31T10:15:00,{cell},Resident,{VALUE},{rest}")
    path.write_text("".join([*lines[:half], *rows, *lines[half:]]))
    return path


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def deployment(request: pytest.FixtureRequest) -> Iterator[Deployment]:
    # Not below pytest's own folder: the account of PostgreSQL has to reach it.
    with (
        services.private_folder("no-trace") as root,
        Deployment(root, is_postgres=request.param == "postgresql") as made,
    ):
        yield made


def study(deployment: Deployment, slug: str, folder: Path) -> str:
    """Another copy of the demo's study: each case has its own."""
    for file in STUDY_FILE.parent.iterdir():
        if file.suffix in (".csv", ".geojson"):
            (folder / file.name).write_bytes(file.read_bytes())
    text = folder / "study.toml"
    text.write_text(STUDY_FILE.read_text().replace(f'"{STUDY}"', f'"{slug}"'))
    deployment.manage("create_study", str(text))
    return slug


def assert_no_trace(deployment: Deployment, *said: str) -> None:
    """Nothing is written, and nothing was said."""
    assert deployment.traces(MARKERS) == []
    for text in said:
        assert MARKERS.in_bytes(text.encode()) == []


def assert_nothing_staged(deployment: Deployment) -> None:
    assert staged_files(deployment) == []
    assert list((deployment.data / "keystore").glob("batch-*")) == []


def visitors_of(deployment: Deployment, slug: str) -> Any:
    day = "2017-05-31"
    (report, *_) = deployment.manage(
        "export_report", slug, "--indicator", "gender", "--from", day, "--to", day
    )
    return report["n_visitors"]


class TestSearch:
    """Whatever is written anywhere is found, even when it has been deleted since."""

    def test_file_of_data_or_temporary_folder_or_log(self, deployment: Deployment) -> None:
        for place, text in (("data/logs", "canary-of-a-log"), ("tmp/deep", "canary-of-tmp")):
            file = deployment.root / place / "file"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"line with {text}")
            assert deployment.traces(Search((text,))) == [f"{file}: {text} as text"]

    def test_redis_dump_and_log(self, deployment: Deployment) -> None:
        with deployment.client() as client:
            client.set("key", b"x canary-of-redis y")
            found = deployment.traces(Search(("canary-of-redis",)))
            assert len(found) == 2
            assert any("dump.rdb" in place for place in found)
            client.delete("key")
        assert [place for place in deployment.traces(Search(("canary-of-redis",))) if "appendonly" in place]

    @pytest.mark.parametrize("alias", ["default", "vault"])
    def test_database_and_its_log(self, deployment: Deployment, alias: str) -> None:
        canary = f"canary-of-{alias}"
        with reader_of(deployment, alias):
            deployment.query(alias, "CREATE TABLE canaries (text TEXT)")
            deployment.query(alias, f"INSERT INTO canaries VALUES ('{canary}')")  # noqa: S608
            present = deployment.traces(Search((canary,)))
            deployment.query(alias, "DROP TABLE canaries")
            gone = deployment.traces(Search((canary,)))
        log = "pg_wal" if deployment.postgres else "sqlite3-wal"
        assert [place for place in present if log in place]
        assert [place for place in gone if log in place]
        assert bool(deployment.postgres) == any(place.startswith(f"dump of {alias}") for place in present)


@contextmanager
def reader_of(deployment: Deployment, alias: str) -> Iterator[None]:
    """SQLite keeps its log as long as somebody has the database open."""
    if deployment.postgres:
        yield
        return
    with closing(sqlite3.connect(deployment.file_of(alias))) as database:
        database.execute("SELECT count(*) FROM sqlite_master").fetchone()
        yield


@pytest.fixture(scope="module")
def visitors(deployment: Deployment, planted: Path, tmp_path_factory: pytest.TempPathFactory) -> int:
    """How many there are in the planted file, as an undisturbed batch counts them."""
    slug = study(deployment, "undisturbed", tmp_path_factory.mktemp("study"))
    done = deployment.manage("ingest", slug, str(planted))
    assert done["rows_rejected"]["unknown_value"] >= 1
    assert_no_trace(deployment, json.dumps(done))
    assert_nothing_staged(deployment)
    return int(done["subscriber_days"])


@pytest.fixture(scope="module")
def taking_nothing(deployment: Deployment, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A study for all files that are refused, cancelled or broken off."""
    return study(deployment, "taking-nothing", tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="module")
def served(deployment: Deployment) -> Iterator[Deployment]:
    deployment.serve()
    yield deployment
    deployment.stop_web()


def test_success_by_command(deployment: Deployment, visitors: int) -> None:
    assert visitors_of(deployment, "undisturbed") == visitors > 0


class TestWeb:
    """Ways in that are served, and what a bug in them writes."""

    def test_success_by_api(self, served: Deployment, planted: Path, tmp_path: Path, visitors: int) -> None:
        slug = study(served, "by-api", tmp_path)
        status, answer = put(served, slug, token_of(served, slug), planted.read_bytes())
        assert status == 201
        served.wait_for(slug, "done")
        assert visitors_of(served, slug) == visitors
        assert_no_trace(served, answer)
        assert_nothing_staged(served)

    def test_success_by_browser(
        self, served: Deployment, planted: Path, tmp_path: Path, visitors: int, browser: Browser
    ) -> None:
        slug = study(served, "by-browser", tmp_path)
        password = served.manage("create_account", "olga", "--role", "operator", "--study", slug)["password"]
        page = browser.new_context().new_page()
        page.goto(f"{served.address}/sign-in/")
        page.fill("input[name=username]", "olga")
        page.fill("input[name=password]", password)
        page.click("main button[type=submit]")
        page.goto(f"{served.address}/operator/{slug}/")
        page.set_input_files("#upload-file", planted)
        page.get_by_role("button", name="Upload").click()
        page.wait_for_url("**/operator/batches/**")
        served.wait_for(slug, "done")
        page.reload()
        assert_no_trace(served, page.content())
        assert visitors_of(served, slug) == visitors
        assert_nothing_staged(served)

    def test_server_that_dies_during_an_upload(
        self, served: Deployment, planted: Path, taking_nothing: str
    ) -> None:
        slug = taking_nothing
        content = planted.read_bytes()
        with half_sent(served, slug, token_of(served, slug), content):
            wait_until(lambda: bool(staged_files(served)), what="the first frame")
            served.stop_web(signal.SIGKILL)
        assert served.state_of(slug) == "receiving"
        assert_no_trace(served)
        served.wait_for(slug, "failed")
        assert_no_trace(served)
        wait_until(lambda: not staged_files(served), what="the sweep")
        served.serve()

    def test_page_of_an_error_and_its_log(self, served: Deployment, taking_nothing: str) -> None:
        """The bug quotes the file; neither the answer nor the log does."""
        token = token_of(served, taking_nothing)
        served.serve(settings="tests.e2e.crashing.settings")
        status, answer = put(served, taking_nothing, token, f"msisdn,sex\n{VISITOR},{VALUE}\n".encode())
        assert status == 500
        log = served.web_log.read_text()
        assert "ValueError" in log
        assert "tests/e2e/crashing/apps.py" in log
        assert_no_trace(served, answer)
        served.serve()


def test_success_by_watched_folder(
    deployment: Deployment, planted: Path, tmp_path: Path, visitors: int
) -> None:
    slug = study(deployment, "by-folder", tmp_path)
    folder = deployment.root / "watched" / slug
    folder.mkdir()
    file = folder / "day.csv"
    file.write_bytes(planted.read_bytes())
    deployment.wait_for(slug, "done")
    wait_until(lambda: not file.exists(), what="the file to be gone")
    assert visitors_of(deployment, slug) == visitors
    assert_no_trace(deployment)
    assert_nothing_staged(deployment)


def test_refusal(deployment: Deployment, planted: Path, tmp_path: Path, taking_nothing: str) -> None:
    with planted.open() as file:
        header = file.readline()
    for name, content, reason in (
        ("rows.csv", header + f"{REFUSED},{VALUE},x,,,,,,\n" * 99, "max_bad_share"),
        ("header.csv", f"{VALUE},{REFUSED}\n" + f"{VISITOR},{VALUE}\n" * 99, "column"),
        ("bytes.parquet", f"PAR1{VISITOR}{VALUE}" * 99, "Parquet"),
    ):
        bad = tmp_path / name
        bad.write_text(content)
        with deployment.command("ingest", taking_nothing, str(bad)) as process:
            output, errors = process.communicate(timeout=120)
        assert process.returncode != 0
        assert reason in errors
        assert_no_trace(deployment, output, errors)
        assert_nothing_staged(deployment)


@pytest.mark.parametrize("stage", ["reading", "merging"])
def test_crash(deployment: Deployment, planted: Path, tmp_path: Path, stage: str, visitors: int) -> None:
    """Worker, broker and command are killed at once; what they left is unreadable, and nothing is lost."""
    slug = study(deployment, f"killed-{stage}", tmp_path)
    with deployment.command("ingest", slug, str(planted)) as command:
        deployment.wait_for(slug, *STAGES[STAGES.index(stage) :])
        deployment.worker.kill()
        deployment.redis.stop(signal.SIGKILL)
        command.kill()
    assert_no_trace(deployment)
    assert staged_files(deployment), "the batch was over before it could be killed"
    deployment.redis.start()
    pools.reset()  # this process asks the worker whether it is there
    deployment.worker.start()
    deployment.wait_for(slug, "done")
    assert visitors_of(deployment, slug) == visitors
    assert_no_trace(deployment)
    assert_nothing_staged(deployment)


CANCELLING = """
import time
from mobility.models import Batch
from mobility.services.endings import cancel
print(0, flush=True)
while not (found := Batch.objects.filter(state="reading").first()):
    time.sleep(0.002)
cancel(found, by="olga")
"""


def test_cancel(deployment: Deployment, planted: Path, taking_nothing: str) -> None:
    """A batch is cancelled while workers read it."""
    with deployment.command("shell", "--no-imports", "-c", CANCELLING) as cancelling:
        assert cancelling.stdout is not None
        assert cancelling.stdout.readline() == "0\n"
        with deployment.command("ingest", taking_nothing, str(planted)) as command:
            output, errors = command.communicate(timeout=120)
        assert_no_trace(deployment, output, errors)
        _, failure = cancelling.communicate(timeout=60)
    assert cancelling.returncode == 0, failure
    assert command.returncode != 0
    assert "cancelled by olga" in errors
    wait_until(lambda: not staged_files(deployment), what="the sweep")
    assert_no_trace(deployment)
    assert_nothing_staged(deployment)


def test_closed_study_leaves_no_sealed_bytes(deployment: Deployment, visitors: int) -> None:
    """What its key sealed is gone from the files of the vault too, but for PostgreSQL's log, as it says."""
    ((sealed,),) = deployment.query(
        "vault",
        "SELECT p.blob FROM mobility_presenceshard p JOIN mobility_vaultstudy s ON s.id = p.study_id "
        "WHERE s.slug = 'undisturbed' ORDER BY p.shard LIMIT 1",
    )
    part = bytes(sealed)[100:164]  # what is stored as one piece
    assert len(part) == 64
    assert files_with(deployment, part)
    certificate = deployment.manage("close_study", "undisturbed")
    assert certificate["erased"]["pseudonyms"] == visitors
    assert files_with(deployment, part) == []
    assert visitors_of(deployment, "undisturbed") == visitors


def files_with(deployment: Deployment, part: bytes) -> list[Path]:
    if deployment.postgres:
        deployment.query("vault", "CHECKPOINT")
    return [
        path
        for path in files_below(deployment.root)
        if "pg_wal" not in path.parts and part in content_of(path)
    ]


def test_workers_dump_no_core(deployment: Deployment) -> None:
    limits = Path(f"/proc/{deployment.worker.pid}/limits").read_text()
    (core,) = [line.split() for line in limits.splitlines() if line.startswith("Max core file size")]
    assert core[4:6] == ["0", "0"]


def staged_files(deployment: Deployment) -> list[Path]:
    return [path for path in (deployment.data / "staging").rglob("*") if path.is_file()]


def token_of(deployment: Deployment, slug: str) -> str:
    return str(deployment.manage("create_feed_token", slug, "night")["token"])


def put(deployment: Deployment, slug: str, token: str, content: bytes) -> tuple[int, str]:
    """Send a file by the API; status and text of the answer."""
    request = Request(  # noqa: S310 - our own server
        f"{deployment.address}/api/v1/studies/{slug}/extracts/day.csv",
        method="PUT", data=content, headers={"Authorization": f"Bearer {token}"},
    )  # fmt: skip
    try:
        with urlopen(request, timeout=60) as answer:  # noqa: S310
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


@contextmanager
def half_sent(deployment: Deployment, slug: str, token: str, content: bytes) -> Iterator[None]:
    """An upload by the API of which the second half never comes."""
    host, _, port = deployment.address.removeprefix("http://").partition(":")
    head = (
        f"PUT /api/v1/studies/{slug}/extracts/day.csv HTTP/1.1\r\nHost: {host}\r\n"
        f"Authorization: Bearer {token}\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(head.encode() + content[: len(content) * 3 // 4])
        yield
