"""What Prometheus is told: who may ask, that it can be read, and that no address and no secret is in it."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as current
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families
from pytest_django.fixtures import Settings

from mobility.models import Batch, VaultStudy
from mobility.operations import metrics_folder, metrics_requests, metrics_tasks, queues
from mobility.operations.metrics import exposition
from mobility.requests import RequestIdMiddleware
from tests.mobility.profiles.made_profiles import definition

pytestmark = [pytest.mark.django_db(databases=["default", "vault"]), pytest.mark.usefixtures("data_dir")]
TOKEN = "only-for-tests-metrics-0123456789abcdef"
MARKER = "33699887766"
LABELS = {
    "code", "subject", "queue", "worker", "job", "folder", "database", "study", "version", "zone", "level",
    "state", "task", "outcome", "view", "method", "status", "le",
}  # fmt: skip
ZONE = "zone"


@pytest.fixture(autouse=True)
def nobody_looked_before(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    settings.MOBILITY_METRICS_TOKEN = TOKEN
    monkeypatch.setattr("mobility.operations.probes._last", None)


def scrape(client: Client, token: str = TOKEN) -> dict[str, Any]:
    answer = client.get("/metrics", headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=")
    return families(answer.content)


def families(text: bytes) -> dict[str, Any]:
    return {family.name: family for family in text_string_to_metric_families(text.decode())}


def values(family: Any) -> dict[tuple[str, ...], float]:
    """By values of labels, without the zone."""
    return {
        tuple(value for name, value in sample.labels.items() if name != ZONE): sample.value
        for sample in family.samples
    }


def test_there_is_none_without_a_token(client: Client, settings: Settings) -> None:
    settings.MOBILITY_METRICS_TOKEN = ""
    for header in ("", "Bearer ", "Bearer None"):
        assert client.get("/metrics", headers={"Authorization": header}).status_code == 404


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer wrong", f"bearer {TOKEN}", TOKEN, f"Bearer {TOKEN} "]
)
def test_others_than_who_has_the_token_get_nothing(client: Client, header: str) -> None:
    answer = client.get("/metrics", headers={"Authorization": header})
    assert answer.status_code == 401
    assert answer.content == b""


def test_the_web_server_itself_is_asked_without_tls(client: Client, settings: Settings) -> None:
    settings.SECURE_SSL_REDIRECT = True
    assert client.get("/sign-in/").status_code == 301
    assert client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200


def test_it_is_asked_by_any_host_name(client: Client) -> None:
    """As `web:8000` or by an address, which no visitor's browser would name."""
    told = {"Authorization": f"Bearer {TOKEN}", "Host": "web:8000"}
    assert client.get("/sign-in/", headers={"Host": "web:8000"}).status_code == 400
    assert client.get("/metrics", headers=told).status_code == 200
    assert client.get("/metrics", headers=told | {"Authorization": ""}).status_code == 401
    assert client.get("/metrics/", headers=told).status_code == 400


def test_every_sample_has_its_zone(client: Client, batches: VaultStudy, settings: Settings) -> None:
    client.get("/sign-in/")
    settings.MOBILITY_ZONE = "operator"
    found = scrape(client)
    assert "mobility_http_request_seconds" in found
    zones = {sample.labels[ZONE] for family in found.values() for sample in family.samples}
    assert zones == {"operator"}


def test_an_account_does_not_open_it(client: Client, administrator: Any) -> None:
    client.force_login(administrator)
    assert client.get("/metrics").status_code == 401


@pytest.fixture
def batches() -> VaultStudy:
    made = definition()
    study = VaultStudy.objects.create(
        slug=made.slug, definition=made.to_json(), plan={}, plan_hash="", key_id=MARKER, n_shards=4
    )
    Batch.objects.create(study=study, state="done", rows_read=70, filename=f"{MARKER}.csv")
    Batch.objects.create(
        study=study,
        state="failed",
        rows_read=5,
        failure="bad rows",
        created_by=MARKER,
        finished_at=timezone.now(),
    )
    return study


def test_it_counts_batches_and_rows(client: Client, batches: VaultStudy) -> None:
    found = scrape(client)
    by_state = values(found["mobility_batches"])
    assert (by_state["done",], by_state["failed",], by_state["queued",]) == (1, 1, 0)
    assert values(found["mobility_rows_read"]) == {(): 75}
    assert values(found["mobility_studies_open"]) == {(): 1}


def test_findings_have_their_level(client: Client, batches: VaultStudy) -> None:
    found = values(scrape(client)["mobility_finding"])
    assert found["database_unreachable", "vault"] == 0
    assert found["broker_unreachable", ""] > 0  # there is none here
    assert found["batch_failed", "fair"] == 2


def test_labels_are_those_that_are_known_and_hold_no_secret(client: Client, batches: VaultStudy) -> None:
    client.get(f"/shared/{MARKER}/?x={MARKER}")
    client.get(f"/studies/{MARKER}/{MARKER}/")
    client.generic(MARKER, "/sign-in/")
    answer = client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    found = families(answer.content)
    names = {name for family in found.values() for sample in family.samples for name in sample.labels}
    assert names <= LABELS
    assert all(name.startswith("mobility_") for name in found)
    text = answer.content.decode()
    assert 'view="access:shared"' in text
    assert 'method="other"' in text
    assert MARKER not in text
    assert TOKEN not in text


def test_requests_are_counted_by_view_method_and_class_of_status(client: Client) -> None:
    def counts() -> dict[Any, float]:
        samples = scrape(client)["mobility_http_request_seconds"].samples
        return {
            (each.labels["view"], each.labels["method"], each.labels["status"]): each.value
            for each in samples
            if each.name.endswith("_count")
        }

    scrape(client)
    before = counts().get(("account_login", "GET", "2xx"), 0)
    client.get("/sign-in/")
    client.get("/no-such-page/")
    after = counts()
    assert after["account_login", "GET", "2xx"] == before + 1
    assert after["unknown", "GET", "4xx"] >= 1


def test_tasks_of_all_workers_are_added_up(with_broker: str, client: Client) -> None:
    for seconds in (0.05, 0.5, 5000.0):
        metrics_tasks.add("read_chunk", state="SUCCESS", seconds=seconds)
    metrics_tasks.add("read_chunk", state="RETRY", seconds=0.05)
    samples = [
        each
        for each in scrape(client)["mobility_task_seconds"].samples
        if each.labels["task"] == "read_chunk"
    ]
    done = {
        (sample.name.rpartition("_")[2], sample.labels.get("le")): sample.value
        for sample in samples
        if sample.labels["outcome"] == "done"
    }
    assert done["bucket", "0.1"] == 1
    assert done["bucket", "1.0"] == done["bucket", "3600.0"] == 2
    assert done["bucket", "+Inf"] == done["count", None] == 3
    assert done["sum", None] == pytest.approx(5000.55)
    retried = [
        each for each in samples if each.labels["outcome"] == "retried" and each.name.endswith("count")
    ]
    assert [each.value for each in retried] == [1]


def test_a_task_is_counted_when_it_ends_and_only_with_a_token(with_broker: str, settings: Settings) -> None:
    class Task:
        name = "mobility.tasks.sweep"

    def run() -> None:
        metrics_tasks._begins(task_id="1")
        metrics_tasks._ends(task_id="1", task=Task, state="FAILURE")

    settings.MOBILITY_METRICS_TOKEN = ""
    run()
    assert failures() == dict.fromkeys(metrics_tasks.known(), 0)
    settings.MOBILITY_METRICS_TOKEN = TOKEN
    run()
    assert failures() == {**dict.fromkeys(metrics_tasks.known(), 0), "sweep": 1}


def failures() -> dict[str, float]:
    """How often each task has failed; no other outcome is known."""
    found = list(metrics_tasks.totals())
    assert {outcome for _, outcome, *_ in found} == {"failed"}
    return {task: buckets[-1][1] for task, _, buckets, _ in found}


def test_tasks_are_known_before_they_first_run() -> None:
    assert {"advance", "sweep", "compute_density"} <= metrics_tasks.known()


def test_a_task_ends_well_without_a_broker(settings: Settings) -> None:
    settings.CELERY_BROKER_URL = "redis://127.0.0.1:1/0"
    metrics_tasks.add("sweep", state="SUCCESS", seconds=1)


def test_queue_is_measured(with_broker: str, client: Client) -> None:
    queue = queues.queue_names()[0]
    queues.client().lpush(queue, b"{}", b"{}")
    assert values(scrape(client)["mobility_queue_tasks"])[queue,] == 2


def test_web_processes_of_one_master_are_added_up(tmp_path: Path) -> None:
    """Two processes count, and a third that never did tells the sum: as gunicorn's workers do."""
    program = (
        "import sys; from mobility.operations.metrics_requests import observe\n"
        "for _ in range(int(sys.argv[1])): observe(view='home', method='GET', status=200, seconds=0.3)\n"
    )
    told = {"PROMETHEUS_MULTIPROC_DIR": str(tmp_path), "DJANGO_SETTINGS_MODULE": "mobility.settings"}
    for times in ("2", "3"):
        subprocess.run([sys.executable, "-c", program, times], check=True, env=told, cwd=current.BASE_DIR)
    program = (
        "from prometheus_client import CollectorRegistry, generate_latest\n"
        "from prometheus_client.multiprocess import MultiProcessCollector\n"
        "registry = CollectorRegistry(); MultiProcessCollector(registry)\n"
        "print(generate_latest(registry).decode())\n"
    )
    printed = subprocess.run(
        [sys.executable, "-c", program], check=True, env=told, stdout=subprocess.PIPE
    ).stdout
    samples = families(printed)["mobility_http_request_seconds"].samples
    assert [each.value for each in samples if each.name.endswith("_count")] == [5]


def test_folder_of_a_master_that_is_gone_is_removed(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    monkeypatch.delenv(metrics_folder.FOLDER, raising=False)
    monkeypatch.setenv(metrics_folder.FOLDER, "")  # so that what is set here is undone
    host = metrics_folder.socket.gethostname()
    root = current.PATHS.run / "metrics"
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    stale, of_another = root / f"{host}-{gone.pid}", root / f"another-{gone.pid}"
    replaced = root / f"replaced-{gone.pid}"
    for folder in (stale, of_another, replaced):
        folder.mkdir(parents=True)
    (of_another / "counter.db").touch()
    metrics_folder.os.utime(of_another, (1, 1))  # a file in it is new
    metrics_folder.os.utime(replaced, (1, 1))
    metrics_folder.prepare()
    assert metrics_folder.os.environ[metrics_folder.FOLDER].startswith(str(root / f"{host}-"))
    assert not stale.exists()
    assert of_another.exists()
    assert not replaced.exists()


def test_without_a_token_nothing_is_counted_or_written(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, settings: Settings, client: Client
) -> None:
    settings.MOBILITY_METRICS_TOKEN = ""
    monkeypatch.setenv(metrics_folder.FOLDER, "")
    metrics_folder.prepare()
    assert metrics_folder.os.environ[metrics_folder.FOLDER] == ""
    counted: list[Any] = []
    monkeypatch.setattr(metrics_requests, "observe", lambda **given: counted.append(given))
    client.get("/sign-in/")
    assert counted == []


def test_who_is_told_to_come_again_has_met_no_fault(
    monkeypatch: pytest.MonkeyPatch, rf: RequestFactory, settings: Settings
) -> None:
    settings.MOBILITY_METRICS_TOKEN = "t" * 40
    counted: list[Any] = []
    monkeypatch.setattr(metrics_requests, "observe", lambda **given: counted.append(given))
    for headers in ({}, {"Retry-After": "60"}):
        RequestIdMiddleware(lambda _, headers=headers: HttpResponse(status=503, headers=headers))(rf.get("/"))
    assert [each["come_again"] for each in counted] == [False, True]


def test_a_vault_that_is_away_is_told_and_the_rest_is_there(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mobility.operations.findings import Finding, Level

    away = Finding(code="database_unreachable", level=Level.ERROR, subject="vault", facts={"error": "X"})
    monkeypatch.setattr("mobility.operations.probes.look", lambda: [away])
    found = scrape(client)
    assert values(found["mobility_finding"])["database_unreachable", "vault"] == 3
    assert "mobility_batches" not in found
    assert "mobility_alerts_open" in found


def test_names_of_workers_and_the_like_cannot_break_a_line(client: Client, batches: VaultStudy) -> None:
    VaultStudy.objects.update(slug='a"b\\c')
    assert ("batch_failed", 'a"b\\c') in values(scrape(client)["mobility_finding"])


def test_a_scrape_is_quick(client: Client, with_broker: str, batches: VaultStudy) -> None:
    """Prints how long it takes; the limit is generous, since other tests run at the same time."""
    exposition()
    began = time.perf_counter()
    exposition()
    assert time.perf_counter() - began < 1.0
