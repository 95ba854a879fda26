"""Metrics for Prometheus, without a secret; dashboard and rules ask for existing ones."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from django.conf import settings as current
from django.http import HttpResponse
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from mobility.models import Batch, VaultStudy
from mobility.operations.alerts.sending import runbook_of
from mobility.operations.findings import CODES, Level
from mobility.operations.metrics import folder as metrics_folder
from mobility.operations.metrics import tasks as metrics_tasks
from mobility.operations.requests import RequestIdMiddleware
from mobility.workers import queues
from mobility.workers.app import TASKS, app
from reports.ledger.actions import record
from reports.ledger.models import LedgerKind
from tests.mobility.extracts.profiles.made_profiles import definition

pytestmark = [pytest.mark.django_db(databases=["default", "vault"]), pytest.mark.usefixtures("data_dir")]
TOKEN = "only-for-tests-metrics-0123456789abcdef"
MARKER = "33699887766"
LABELS = {
    "code", "subject", "queue", "worker", "job", "folder", "database", "study", "version", "zone", "level",
    "state", "task", "outcome", "view", "method", "status", "le",
}  # fmt: skip
ZONE = "zone"


@pytest.fixture(autouse=True)
def nobody_looked_before(monkeypatch, settings):
    settings.MOBILITY_METRICS_TOKEN = TOKEN
    monkeypatch.setattr("mobility.operations.probes.looking._last", None)


def scrape(client, token=TOKEN):
    answer = client.get("/metrics", headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=")
    return families(answer.content)


def families(text):
    return {family.name: family for family in text_string_to_metric_families(text.decode())}


def values(family):
    return {
        tuple(value for name, value in sample.labels.items() if name != ZONE): sample.value
        for sample in family.samples
    }


def test_only_who_has_the_token_is_answered_and_nobody_without_one(client, administrator, settings):
    client.force_login(administrator)  # an account does not open it
    for header in ("", "Bearer", "Bearer wrong", f"bearer {TOKEN}", TOKEN, f"Bearer {TOKEN} "):
        answer = client.get("/metrics", headers={"Authorization": header})
        assert (answer.status_code, answer.content) == (401, b""), header
    settings.MOBILITY_METRICS_TOKEN = ""
    for header in ("", "Bearer ", "Bearer None"):
        assert client.get("/metrics", headers={"Authorization": header}).status_code == 404


def test_it_is_asked_by_any_host_name_and_without_tls(client, settings):
    """Ask as `web:8000` or by an address, which no visitor's browser would name."""
    told = {"Authorization": f"Bearer {TOKEN}", "Host": "web:8000"}
    settings.SECURE_SSL_REDIRECT = True
    assert client.get("/sign-in/", headers={"Host": "web:8000"}).status_code == 400
    assert client.get("/sign-in/").status_code == 301
    assert client.get("/metrics", headers=told).status_code == 200
    assert client.get("/metrics", headers=told | {"Authorization": ""}).status_code == 401
    assert client.get("/metrics/", headers=told).status_code == 400


@pytest.fixture
def batches():
    made = definition()
    given = {"definition": made.to_json(), "plan": {}, "plan_hash": "", "n_shards": 4}
    study = VaultStudy.objects.create(slug=made.slug, key_id=MARKER, **given)
    Batch.objects.create(study=study, state="done", rows_read=70, filename=f"{MARKER}.csv")
    failed = {"state": "failed", "failure": "bad rows", "created_by": MARKER, "finished_at": timezone.now()}
    Batch.objects.create(study=study, rows_read=5, **failed)


def test_samples_have_their_zone_labels_that_are_known_and_no_secret(client, batches, settings):
    VaultStudy.objects.update(slug='a"b\\c')  # cannot break a line
    settings.MOBILITY_ZONE = "operator"
    client.get(f"/shared/{MARKER}/?x={MARKER}")
    client.get(f"/studies/{MARKER}/{MARKER}/")
    client.generic(MARKER, "/sign-in/")
    answer = client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    found, text = families(answer.content), answer.content.decode()
    assert {sample.labels[ZONE] for family in found.values() for sample in family.samples} == {"operator"}
    names = {name for family in found.values() for sample in family.samples for name in sample.labels}
    assert names <= LABELS
    assert all(name.startswith("mobility_") for name in found)
    assert ('view="access:shared"' in text, 'method="other"' in text, MARKER in text) == (True, True, False)
    assert TOKEN not in text
    levels = values(found["mobility_finding"])
    assert levels["database_unreachable", "vault"] == 0
    assert levels["broker_unreachable", ""] > 0  # there is none here
    assert levels["batch_failed", 'a"b\\c'] == 2
    by_state = values(found["mobility_batches"])
    assert (by_state["done",], by_state["failed",], by_state["queued",]) == (1, 1, 0)
    assert (values(found["mobility_rows_read"]), values(found["mobility_studies_open"])) == (
        {(): 75},
        {(): 1},
    )


def test_requests_are_counted_by_view_method_and_class_of_status(client):
    def count(*labels):
        samples = scrape(client)["mobility_http_request_seconds"].samples
        names = ("view", "method", "status")
        counts = (each for each in samples if each.name.endswith("_count"))
        return sum(each.value for each in counts if tuple(map(each.labels.get, names)) == labels)

    scrape(client)
    before = count("account_login", "GET", "2xx")
    for address in ("/sign-in/", "/no-such-page/"):
        client.get(address)
    assert count("account_login", "GET", "2xx") == before + 1
    assert count("unknown", "GET", "4xx") >= 1


def test_tasks_of_all_workers_are_added_up_and_queues_are_measured(with_broker, client):
    for seconds in (0.05, 0.5, 5000.0):
        metrics_tasks.add("read_chunk", state="SUCCESS", seconds=seconds)
    metrics_tasks.add("read_chunk", state="RETRY", seconds=0.05)
    queue = queues.queue_names()[0]
    queues.client().lpush(queue, b"{}", b"{}")
    told = scrape(client)
    assert values(told["mobility_queue_tasks"])[queue,] == 2
    found = {
        (each.labels["outcome"], each.name.rpartition("_")[2], each.labels.get("le")): each.value
        for each in told["mobility_task_seconds"].samples
        if each.labels["task"] == "read_chunk"
    }
    assert found["done", "bucket", "0.1"] == 1
    assert found["done", "bucket", "1.0"] == found["done", "bucket", "3600.0"] == 2
    assert found["done", "bucket", "+Inf"] == found["done", "count", None] == 3
    assert (found["done", "sum", None], found["retried", "count", None]) == (pytest.approx(5000.55), 1)


def test_a_task_is_counted_when_it_ends_and_only_with_a_token(with_broker, settings):
    task = SimpleNamespace(name="mobility.tasks.sweep")
    none = dict.fromkeys((name.rpartition(".")[2] for name in TASKS), 0)
    for token, expected in (("", none), (TOKEN, none | {"sweep": 1})):
        settings.MOBILITY_METRICS_TOKEN = token
        metrics_tasks._begins(task_id="1")
        metrics_tasks._ends(task_id="1", task=task, state="FAILURE")
        found = list(metrics_tasks.totals())
        assert {outcome for _, outcome, *_ in found} == {"failed"}
        assert {task: buckets[-1][1] for task, _, buckets, _ in found} == expected


def test_tasks_are_known_before_they_first_run_and_end_well_without_a_broker(settings):
    app.loader.import_default_modules()
    assert {name for name in app.tasks if not name.startswith("celery.")} == TASKS
    settings.CELERY_BROKER_URL = "redis://127.0.0.1:1/0"
    metrics_tasks.add("sweep", state="SUCCESS", seconds=1)


def test_folder_of_a_master_that_is_gone_is_removed(data_dir, monkeypatch, settings):
    monkeypatch.delenv(metrics_folder.FOLDER, raising=False)
    monkeypatch.setenv(metrics_folder.FOLDER, "")  # so that what is set here is undone
    host, root = metrics_folder.socket.gethostname(), current.PATHS.run / "metrics"
    gone = subprocess.Popen(["true"])
    gone.wait()
    stale, of_another, replaced = (root / f"{name}-{gone.pid}" for name in (host, "another", "replaced"))
    for folder in (stale, of_another, replaced):
        folder.mkdir(parents=True)
    (of_another / "counter.db").touch()
    metrics_folder.os.utime(of_another, (1, 1))  # a file in it is new
    metrics_folder.os.utime(replaced, (1, 1))
    metrics_folder.prepare()
    assert metrics_folder.os.environ[metrics_folder.FOLDER].startswith(str(root / f"{host}-"))
    assert [folder.exists() for folder in (stale, of_another, replaced)] == [False, True, False]


def test_without_a_token_nothing_is_counted_and_come_again_is_no_fault(monkeypatch, settings, client, rf):
    settings.MOBILITY_METRICS_TOKEN = ""
    monkeypatch.setenv(metrics_folder.FOLDER, "")
    metrics_folder.prepare()
    assert metrics_folder.os.environ[metrics_folder.FOLDER] == ""
    counted = []
    monkeypatch.setattr("mobility.operations.requests.observe", lambda **given: counted.append(given))
    client.get("/sign-in/")
    assert counted == []
    settings.MOBILITY_METRICS_TOKEN = "t" * 40
    for headers in ({}, {"Retry-After": "60"}):
        RequestIdMiddleware(lambda _, headers=headers: HttpResponse(status=503, headers=headers))(rf.get("/"))
    assert [each["come_again"] for each in counted] == [False, True]


def test_a_vault_that_is_away_is_told_and_the_rest_is_there(client, unmount):
    unmount("vault")
    found = scrape(client)
    assert values(found["mobility_finding"])["database_unreachable", "vault"] == 3
    assert ("mobility_batches" in found, "mobility_alerts_open" in found) == (False, True)


ROOT = current.BASE_DIR
DASHBOARD = ROOT / "docker" / "grafana" / "mobility.json"
RULES = ROOT / "docker" / "prometheus-rules.yml"
PAGE = ROOT / "docs" / "metrics.md"


def rules():
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def expressions():
    shown = [
        each["expr"]
        for panel in json.loads(DASHBOARD.read_text())["panels"]
        for each in panel.get("targets", [])
    ]
    return shown + [rule["expr"] for rule in rules()]


def test_every_query_asks_for_what_is_exported_and_the_page_lists_it(client, with_broker):
    record(LedgerKind.SIGNED_OUT, actor="anna")
    client.get("/sign-in/")
    endings = {"histogram": ("_bucket", "_count", "_sum"), "counter": ("_total",)}
    found = scrape(client).values()
    exported = {f"{each.name}{end}" for each in found for end in endings.get(each.type, ("",))}
    asked = {name for text in expressions() for name in re.findall(r"\bmobility_\w+", text)}
    assert len(asked) > 20
    assert asked - exported == set()
    table = "\n".join(line for line in PAGE.read_text().splitlines() if line.startswith("| `mobility_"))
    known = {re.sub(r"_(bucket|count|sum)$", "", name) for name in exported}
    assert set(re.findall(r"`(mobility_\w+)`", table)) == known


# Of all but requests and versions, the web servers of one zone tell the same.
TAKEN_ONCE = r"(max|min) without \(instance[^)]*\) \((mobility_\w+ / |(rate|increase|predict_linear)\()?$"


def test_queries_use_labels_that_there_are_and_take_what_two_web_servers_tell_once():
    taken = 0
    for text in expressions():
        grouped = ", ".join(re.findall(r"\b(?:by|without) \(([^)]*)\)", text))
        used = {*re.findall(r"\w+", grouped), *re.findall(r"[{,]\s*(\w+)\s*(?:=|!|=~)", text)}
        assert used <= LABELS | {"job", "le", "instance"}, text
        assert text.count("(") == text.count(")")
        for found in re.finditer(r"\bmobility_(?!http_request_seconds|info\b)\w+", text):
            assert re.search(TAKEN_ONCE, text[: found.start()]), text
            taken += 1
    assert taken > 30


@pytest.mark.skipif(not shutil.which("promtool"), reason="needs promtool, of Debian's package prometheus")
def test_rules_fire_when_they_should():
    told = Path(__file__).with_name("prometheus_rules_test.yml")
    done = subprocess.run(["promtool", "test", "rules", told], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_rules_tell_zones_apart_and_name_pages_and_the_example_names_files_that_there_are():
    levels = {int(n) for rule in rules() for n in re.findall(r"mobility_finding\) == (\d)", rule["expr"])}
    assert levels == {Level.WARNING, Level.ERROR}
    for rule in rules():
        query, page = rule["expr"], rule["annotations"]["runbook"]
        assert not re.search(r"\bby \(|\b(max|min|sum)\(|without \([^)]*zone", query), rule["alert"]
        if "mobility_" in query:
            assert rule["annotations"]["summary"].startswith("{{ $labels.zone }}: "), rule["alert"]
        if "{{" in page:
            assert page == 'docs/runbook/{{ reReplaceAll "_" "-" $labels.code }}.md'
            assert re.search(r"without \(instance\) \(mobility_finding\)", query)  # so it has its code
        else:
            assert (ROOT / page).is_file(), page
    example = yaml.safe_load((ROOT / "docker" / "prometheus.yml").read_text())
    assert [(ROOT / "docker" / name).is_file() for name in example["rule_files"]] == [True]


LEVELS = r"\b(NOTE|WARNING|ERROR|CRITICAL)\b"
NAMES = [(Path(rule["annotations"]["runbook"]).stem, rule["alert"]) for rule in rules()]
OF_RULES = {page: name for page, name in NAMES if page.replace("-", "_") not in CODES and "$" not in page}
NAMED = [*((runbook_of(code), code) for code in CODES)]
NAMED += [(f"docs/runbook/{page}.md", name) for page, name in OF_RULES.items()]


def test_page_of_each_code_and_rule_answers_every_question_and_the_index_leads_to_each_once():
    for path, name in NAMED:
        title, *sections = re.split(r"^## ", (ROOT / path).read_text(), flags=re.MULTILINE)
        assert title.startswith("# ")
        assert f"`{name}`" in title
        assert [section.partition("\n")[0] for section in sections] == ["Symptom", "Check", "Fix"], path
        symptom, check, fix = (section.partition("\n")[2] for section in sections)
        assert re.search(LEVELS, symptom), path
        assert len(check.split()) >= 3, path
        for start in (r"1\. ", r"\*\*Ends\*\* \w", r"\*\*Prevent:\*\* \w"):
            assert re.search(f"^{start}", fix, flags=re.MULTILINE), (path, start)
    folder = ROOT / "docs" / "runbook"
    pages = sorted(Path(path).stem for path, _ in NAMED)
    assert sorted({page.stem for page in folder.glob("*.md")} - {"index"}) == pages
    assert set(OF_RULES) == {"web-gone", "pages-fail", "pages-slow", "tasks-fail"}
    index = (folder / "index.md").read_text()
    led_to = re.findall(r"^\| \[[^]]+\]\(([\w-]+)\.md\)", index, flags=re.MULTILINE)
    assert (led_to[: len(CODES)], sorted(led_to)) == ([code.replace("_", "-") for code in CODES], pages)
