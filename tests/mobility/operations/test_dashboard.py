"""Dashboard and rules ask for metrics and labels that there are, and lead to pages that there are."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from mobility.operations.findings import CODES, Level
from reports.models import LedgerKind
from reports.services.ledger import record

ROOT: Path = settings.BASE_DIR
DASHBOARD = ROOT / "docker" / "grafana" / "mobility.json"
RULES = ROOT / "docker" / "prometheus-rules.yml"
PAGE = ROOT / "docs" / "metrics.md"
OF_PROMETHEUS = {"job", "le", "instance"}
LABELS = {
    "code", "subject", "level", "queue", "worker", "job", "state", "study", "folder", "database", "version",
    "zone", "view", "method", "status", "task", "outcome",
}  # fmt: skip
pytestmark = [pytest.mark.django_db(databases=["default", "vault"]), pytest.mark.usefixtures("data_dir")]


@pytest.fixture
def exported(client: Client, monkeypatch: pytest.MonkeyPatch, settings: Any, with_broker: str) -> set[str]:
    """Names of all metrics, as queries name them."""
    settings.MOBILITY_METRICS_TOKEN = "t" * 32
    monkeypatch.setattr("mobility.operations.probes._last", None)
    record(LedgerKind.SIGNED_OUT, actor="anna")
    client.get("/sign-in/")
    text = client.get("/metrics", headers={"Authorization": f"Bearer {'t' * 32}"}).content.decode()
    names: set[str] = set()
    for family in text_string_to_metric_families(text):
        endings = {"histogram": ("_bucket", "_count", "_sum"), "counter": ("_total",)}.get(family.type, ("",))
        names |= {f"{family.name}{ending}" for ending in endings}
    return names


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(DASHBOARD.read_text())["panels"]
    return [panel for panel in found if panel["type"] != "row"]


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def expressions() -> list[str]:
    return [target["expr"] for panel in panels() for target in panel["targets"]] + [
        rule["expr"] for rule in rules()
    ]


def test_every_query_asks_for_what_is_exported(exported: set[str]) -> None:
    asked = {name for text in expressions() for name in re.findall(r"\bmobility_\w+", text)}
    assert len(asked) > 20
    assert asked - exported == set()


def test_page_lists_what_is_exported(exported: set[str]) -> None:
    known = {re.sub(r"_(bucket|count|sum)$", "", name) for name in exported}
    table = "\n".join(line for line in PAGE.read_text().splitlines() if line.startswith("| `mobility_"))
    assert set(re.findall(r"`(mobility_\w+)`", table)) == known


def test_every_query_uses_labels_that_there_are() -> None:
    for text in expressions():
        used = {
            name
            for group in re.findall(r"\b(?:by|without) \(([^)]*)\)", text)
            for name in re.split(r",\s*", group)
        }
        used |= set(re.findall(r"[{,]\s*(\w+)\s*(?:=|!|=~)", text))
        assert used <= LABELS | OF_PROMETHEUS, text
        assert text.count("(") == text.count(")")


# Of all but requests and versions, the web servers of one zone tell the same.
OF_THE_ZONE = r"\bmobility_(?!http_request_seconds|info\b)\w+"
TAKEN_ONCE = r"(max|min) without \(instance[^)]*\) \((mobility_\w+ / |(rate|increase|predict_linear)\()?$"


def test_what_two_web_servers_tell_is_taken_once() -> None:
    taken = 0
    for text in expressions():
        for found in re.finditer(OF_THE_ZONE, text):
            assert re.search(TAKEN_ONCE, text[: found.start()]), text
            taken += 1
    assert taken > 30


def test_zones_are_told_apart() -> None:
    """An alert, or a failing zone, is not hidden by what another zone says."""
    for rule in rules():
        assert not re.search(r"\bby \(|\b(max|min|sum)\(|without \([^)]*zone", rule["expr"]), rule["alert"]
        if "mobility_" in rule["expr"]:
            assert rule["annotations"]["summary"].startswith("{{ $labels.zone }}: "), rule["alert"]


@pytest.mark.skipif(not shutil.which("promtool"), reason="needs promtool, of Debian's package prometheus")
def test_rules_fire_when_they_should() -> None:
    told = Path(__file__).with_name("prometheus_rules_test.yml")
    done = subprocess.run(["promtool", "test", "rules", told], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_panels_have_titles_of_their_own_and_lie_side_by_side() -> None:
    titles = [panel["title"] for panel in panels()]
    assert len(titles) == len(set(titles))
    taken: set[tuple[int, int]] = set()
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert max(x for x, _ in cells) < 24
        assert not cells & taken, panel["title"]
        taken |= cells


def test_rules_know_levels_and_name_pages() -> None:
    levels = {int(n) for rule in rules() for n in re.findall(r"mobility_finding\) == (\d)", rule["expr"])}
    assert levels == {Level.WARNING, Level.ERROR}
    for rule in rules():
        page = rule["annotations"]["runbook"]
        if "{{" in page:
            assert page == 'docs/runbook/{{ reReplaceAll "_" "-" $labels.code }}.md'
            assert re.search(r"without \(instance\) \(mobility_finding\)", rule["expr"])  # so it has its code
        else:
            assert (ROOT / page).is_file(), page
    assert all((ROOT / f"docs/runbook/{code.replace('_', '-')}.md").is_file() for code in CODES)


def test_example_of_prometheus_names_files_and_address_that_there_are() -> None:
    example = yaml.safe_load((ROOT / "docker" / "prometheus.yml").read_text())
    assert [(ROOT / "docker" / name).is_file() for name in example["rule_files"]] == [True]
    (scrape,) = example["scrape_configs"]
    assert (scrape["job_name"], scrape["metrics_path"]) == ("mobility", "/metrics")
    provisioning = yaml.safe_load((ROOT / "docker" / "grafana" / "provisioning.yml").read_text())
    assert provisioning["providers"][0]["type"] == "file"
