"""Raw data leaves no trace: after success, refusal, crash and cancel, on SQLite and on PostgreSQL."""

import json
import signal
import socket
import sqlite3
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import numpy as np
import pytest
from kombu import pools

from ldp.estimation.unions import union
from scripts import services
from tests.demo_study import write_study
from tests.e2e.conftest import fill_in
from tests.e2e.deployment import Deployment, wait_until
from tests.e2e.several import outcomes
from tests.e2e.traces import Search, content_of, files_below

pytestmark = pytest.mark.e2e

# A subscriber who is present, one in a rejected row, and a value outside the categories.
VISITOR, REFUSED, VALUE = "33699887766", "33655443322", "planted-Wärt/4711"
MARKERS = Search((VISITOR, REFUSED, VALUE))
TAKING_NOTHING = "taking-nothing"
STUDIES = ("undisturbed", "by-api", "by-browser", "by-folder", "killed-reading", "killed-merging")
STAGES = ("queued", "reading", "merging", "publishing", "done")
CANCELLING = """
import time
from mobility.models import Batch
from mobility.batches.finalisation import cancel
print(0, flush=True)
while not (found := Batch.objects.filter(state="reading").first()):
    time.sleep(0.002)
cancel(found, by="olga")
"""


@pytest.fixture(scope="module")
def planted(extract, tmp_path_factory):
    header, *rows = extract[0].read_text().splitlines(keepends=True)
    half = len(rows) // 2
    cell = rows[half].split(",")[2]
    rest = "25-34,popular,Alsace,City of Belfort\n"
    marked = [f"{VISITOR},2017-05-31T{hour}:15:00,{cell},Resident,F,{rest}" for hour in (10, 13, 15)]
    marked.append(f"{REFUSED},2017-05-31T10:15:00,{cell},Resident,{VALUE},{rest}")
    path = tmp_path_factory.mktemp("planted") / "day.csv"
    path.write_text("".join([header, *rows[:half], *marked, *rows[half:]]))
    return path


@pytest.fixture(scope="module")
def lengthy(planted):
    """Repeat the same rows, for events that must happen during the work: each row counts once."""
    header, *rows = planted.read_text().splitlines(keepends=True)
    path = planted.with_name("lengthy.csv")
    path.write_text("".join([header, *rows * 7]))
    return path


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def deployment(request, migrated, tmp_path_factory):
    """One with a copy of the demo's study for each case, and one for all files that do not arrive."""
    # Not below pytest's own folder: the account of PostgreSQL has to reach it.
    with (
        services.private_folder("no-trace") as root,
        Deployment(root, migrated=migrated, is_postgres=request.param == "postgresql") as made,
    ):
        files = [
            str(write_study(tmp_path_factory.mktemp("study"), slug=slug))
            for slug in (*STUDIES, TAKING_NOTHING)
        ]
        *_, by_api, taking_nothing, olga = made.values(
            *(("create_study", file) for file in files),
            *(("create_feed_token", slug, "night") for slug in ("by-api", TAKING_NOTHING)),
            ("create_account", "olga", "--role", "operator", "--study", "by-browser"),
        )
        made.secrets = {
            "by-api": by_api["token"], TAKING_NOTHING: taking_nothing["token"], "olga": olga["password"],
        }  # fmt: skip
        yield made


def assert_no_trace(deployment, *said):
    assert deployment.traces(MARKERS) == []
    for text in said:
        assert MARKERS.in_bytes(text.encode()) == []


def assert_nothing_staged(deployment):
    assert (staged_files(deployment), list((deployment.data / "keystore").glob("batch-*"))) == ([], [])


def assert_arrived(deployment, slug, visitors, *said):
    deployment.wait_for(slug, "done")
    assert visitors_of(deployment, slug) == visitors
    assert_no_trace(deployment, *said)
    assert_nothing_staged(deployment)


def visitors_of(deployment, slug):
    tally = "FROM reports_visitortally v JOIN reports_study s ON s.id = v.study_id"
    ((counts, days),) = deployment.query(
        "default", f"SELECT v.counts, s.days {tally} WHERE s.slug = '{slug}'"
    )
    return int(union(np.frombuffer(counts, "<i8").reshape(days + 1, days + 1), first_day=1, last_day=1))


def test_search_finds_redis_dump_and_log(deployment):
    with deployment.client() as client:
        client.set("key", b"x canary-of-redis y")
        found = deployment.traces(Search(("canary-of-redis",)))
        assert len(found) == 2
        assert any("dump.rdb" in place for place in found)
        client.delete("key")
    assert [place for place in deployment.traces(Search(("canary-of-redis",))) if "appendonly" in place]


@pytest.mark.parametrize("alias", ["default", "vault"])
def test_search_finds_a_database_and_its_log(deployment, alias):
    canary = f"canary-of-{alias}"
    # SQLite keeps its log as long as someone has the database open.
    reader = nullcontext() if deployment.postgres else closing(sqlite3.connect(deployment.file_of(alias)))
    with reader as database:
        if database:
            database.execute("SELECT count(*) FROM sqlite_master").fetchone()
        deployment.query(alias, "CREATE TABLE canaries (text TEXT)")
        deployment.query(alias, f"INSERT INTO canaries VALUES ('{canary}')")  # noqa: S608
        present = deployment.traces(Search((canary,)))
        deployment.query(alias, "DROP TABLE canaries")
        gone = deployment.traces(Search((canary,)))
    log = "pg_wal" if deployment.postgres else "sqlite3-wal"
    assert [place for place in present if log in place]
    assert [place for place in gone if log in place]
    assert bool(deployment.postgres) == any(place.startswith(f"dump of {alias}") for place in present)


@pytest.fixture(scope="module")
def visitors(deployment, planted):
    done = deployment.manage("ingest", "undisturbed", str(planted))
    assert done["rows_rejected"]["unknown_value"] >= 1
    assert_no_trace(deployment, json.dumps(done))
    assert_nothing_staged(deployment)
    return int(done["subscriber_days"])


@pytest.fixture
def served(deployment):
    if not deployment.web.is_started:
        deployment.serve()
    return deployment


def test_success_by_command(deployment, visitors):
    day = "2017-05-31"
    words = ("--indicator", "gender", "--from", day, "--to", day)
    (report,) = deployment.manage("export_report", "undisturbed", *words)
    assert report["n_visitors"] == visitors_of(deployment, "undisturbed") == visitors > 0


def test_success_by_api(served, planted, visitors):
    slug = "by-api"
    status, answer = put(served, slug, served.secrets[slug], planted.read_bytes())
    assert status == 201
    assert_arrived(served, slug, visitors, answer)


def test_success_by_browser(served, planted, visitors, browser):
    slug = "by-browser"
    page = browser.new_context().new_page()
    page.goto(f"{served.web.address}/sign-in/")
    fill_in(page, "olga", served.secrets["olga"])
    page.wait_for_url(f"{served.web.address}/")
    page.goto(f"{served.web.address}/operator/{slug}/")
    page.set_input_files("#upload-file", planted)
    page.locator("#upload-send").click()
    page.wait_for_url("**/operator/batches/**")
    served.wait_for(slug, "done")
    page.reload()
    assert_arrived(served, slug, visitors, page.content())


def test_server_that_dies_during_an_upload(served, lengthy):
    slug = TAKING_NOTHING
    with half_sent(served, slug, served.secrets[slug], lengthy.read_bytes()):
        wait_until(lambda: bool(staged_files(served)), what="the first frame")
        served.web.stop()
    assert served.state_of(slug) == "receiving"
    assert_no_trace(served)
    served.wait_for(slug, "failed")
    assert_no_trace(served)
    wait_until(lambda: not staged_files(served), what="the sweep")


def test_page_of_an_error_and_its_log(served):
    """The bug quotes the file; neither the answer nor the log does."""
    token = served.secrets[TAKING_NOTHING]
    served.serve(DJANGO_SETTINGS_MODULE="tests.e2e.crashing")
    status, answer = put(served, TAKING_NOTHING, token, f"msisdn,sex\n{VISITOR},{VALUE}\n".encode())
    assert status == 500
    log = served.web.log.read_text()
    assert not [text for text in ("ValueError", "tests/e2e/crashing.py") if text not in log]
    assert_no_trace(served, answer)
    served.web.stop()


def test_success_by_watched_folder(deployment, planted, visitors):
    slug = "by-folder"
    folder = deployment.root / "watched" / slug
    folder.mkdir()
    file = folder / "day.csv"
    file.write_bytes(planted.read_bytes())
    wait_until(lambda: not file.exists(), what="the file to be gone")
    assert_arrived(deployment, slug, visitors)


def test_refusal(deployment, planted, tmp_path):
    header = planted.read_text().splitlines(keepends=True)[0]
    for name, content, reason in (
        ("rows.csv", header + f"{REFUSED},{VALUE},x,,,,,,\n" * 99, "limit 5%"),
        ("header.csv", f"{VALUE},{REFUSED}\n" + f"{VISITOR},{VALUE}\n" * 99, "column"),
        ("bytes.parquet", f"PAR1{VISITOR}{VALUE}" * 99, "Parquet"),
    ):
        bad = tmp_path / name
        bad.write_text(content)
        (done,) = outcomes([("ingest", TAKING_NOTHING, str(bad))], deployment.environment)
        assert done.code != 0
        assert reason in done.errors
        assert_no_trace(deployment, done.output, done.errors)
        assert_nothing_staged(deployment)


@pytest.mark.parametrize("stage", ["reading", "merging"])
def test_crash(deployment, lengthy, stage, visitors):
    """Worker, broker and command are killed at once; what they left is unreadable, and nothing is lost."""
    slug = f"killed-{stage}"
    with deployment.command("ingest", slug, str(lengthy)) as command:
        deployment.wait_for(slug, *STAGES[STAGES.index(stage) :])
        deployment.worker.kill()
        deployment.redis.stop(signal.SIGKILL)
        command.kill()
    assert_no_trace(deployment)
    assert staged_files(deployment), "the batch was over before it could be killed"
    deployment.redis.start()
    pools.reset()  # this process asks the worker whether it is there
    deployment.worker.start()
    assert_arrived(deployment, slug, visitors)


def test_cancel(deployment, lengthy):
    with deployment.command("shell", "--no-imports", "-c", CANCELLING) as cancelling:
        assert cancelling.stdout.readline() == "0\n"
        with deployment.command("ingest", TAKING_NOTHING, str(lengthy)) as command:
            output, errors = command.communicate(timeout=120)
        assert_no_trace(deployment, output, errors)
        _, failure = cancelling.communicate(timeout=60)
    assert cancelling.returncode == 0, failure
    assert command.returncode != 0
    assert "cancelled by olga" in errors
    wait_until(lambda: not staged_files(deployment), what="the sweep")
    assert_no_trace(deployment)
    assert_nothing_staged(deployment)


def test_closed_study_leaves_no_sealed_bytes(deployment, visitors):
    """Data sealed by its key are gone from the files of the vault too, but for PostgreSQL's log."""
    ((sealed,),) = deployment.query(
        "vault",
        "SELECT p.blob FROM mobility_presenceshard p JOIN mobility_vaultstudy s ON s.id = p.study_id "
        "WHERE s.slug = 'undisturbed' ORDER BY length(p.blob) DESC LIMIT 1",
    )
    part = bytes(sealed)[100:164]  # stored as one piece
    assert len(part) == 64
    assert files_with(deployment, part)
    assert deployment.manage("close_study", "undisturbed")["erased"]["pseudonyms"] == visitors
    assert (files_with(deployment, part), visitors_of(deployment, "undisturbed")) == ([], visitors)


def files_with(deployment, part):
    if deployment.postgres:
        deployment.query("vault", "CHECKPOINT")
    files = [path for path in files_below(deployment.root) if "pg_wal" not in path.parts]
    return [path for path in files if part in content_of(path)]


def test_workers_dump_no_core(deployment):
    limits = Path(f"/proc/{deployment.worker.pid}/limits").read_text()
    (core,) = [line.split() for line in limits.splitlines() if line.startswith("Max core file size")]
    assert core[4:6] == ["0", "0"]


def test_search_finds_raw_rows_where_nothing_is_sealed(lengthy, migrated, tmp_path):
    """Files left by a killed worker. Should this fail, the search has become blind."""
    with (
        services.private_folder("unsealed") as root,
        Deployment(root, migrated=migrated, settings="tests.e2e.unsealed") as unsealed,
    ):
        unsealed.manage("create_study", str(write_study(tmp_path, slug="killed")))
        with unsealed.command("ingest", "killed", str(lengthy)) as command:
            unsealed.wait_for("killed", *STAGES[STAGES.index("reading") :])
            unsealed.worker.kill()
            command.kill()
        found = unsealed.traces(MARKERS)
    for marker in (VISITOR, VALUE):
        assert [place for place in found if "/staging/" in place and marker in place], found


def staged_files(deployment):
    return [path for path in (deployment.data / "staging").rglob("*") if path.is_file()]


def put(deployment, slug, token, content):
    request = Request(  # noqa: S310 - our own server
        f"{deployment.web.address}/api/v1/studies/{slug}/extracts/day.csv",
        method="PUT", data=content, headers={"Authorization": f"Bearer {token}"}
    )  # fmt: skip
    try:
        with urlopen(request, timeout=60) as answer:  # noqa: S310
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


@contextmanager
def half_sent(deployment, slug, token, content):
    host, _, port = deployment.web.address.removeprefix("http://").partition(":")
    head = (
        f"PUT /api/v1/studies/{slug}/extracts/day.csv HTTP/1.1\r\nHost: {host}\r\n"
        f"Authorization: Bearer {token}\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(head.encode() + content[: len(content) * 3 // 4])
        yield
