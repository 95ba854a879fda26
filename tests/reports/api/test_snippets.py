"""The snippets of a report page are copied from it and run, against a server that listens."""

import html
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from django.test import Client

from reports import selectors
from reports.exports.records import report_record
from reports.models import Study
from reports.selectors import Window

pytestmark = pytest.mark.django_db(transaction=True)
PAGE = "/studies/fair-2024/gender/?from=2024-05-31&to=2024-06-01&order=sorted"


@pytest.fixture
def snippet(live_server, reader: Client, fair: Study) -> Callable[[str], str]:
    """Text of a snippet as a person copies it: `snippet("curl")`."""

    def copied(name: str) -> str:
        page = reader.get(PAGE, headers={"Host": live_server.url.removeprefix("http://")}).content.decode()
        found = re.search(rf'<pre id="snippet-{name}"[^>]*>(.*?)</pre>', page, re.DOTALL)
        assert found is not None
        return html.unescape(found[1])

    return copied


@pytest.fixture
def folder(tmp_path: Path, token: Callable[..., str]) -> Path:
    """Where a person works who keeps the token in the file TOKEN."""
    (tmp_path / "TOKEN").write_text(token() + "\n")
    return tmp_path


def expected(fair: Study) -> selectors.WindowReport:
    return selectors.window_report(fair.indicators.get(slug="gender"), Window(2, 3))


def test_curl_gets_the_report(snippet: Callable[[str], str], folder: Path, fair: Study) -> None:
    done = subprocess.run(
        ["bash", "-c", snippet("curl")], cwd=folder, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == json.loads(json.dumps(report_record(expected(fair))))


def test_curl_shows_the_token_in_no_list_of_processes(snippet: Callable[[str], str], folder: Path) -> None:
    """Bash tells the words of every program that it starts."""
    done = subprocess.run(
        ["bash", "-xc", snippet("curl")], cwd=folder, capture_output=True, text=True, check=False, timeout=60
    )
    assert "+ curl " in done.stderr
    assert (folder / "TOKEN").read_text().strip() not in done.stderr


def test_pandas_gets_the_estimates(snippet: Callable[[str], str], folder: Path, fair: Study) -> None:
    code = snippet("pandas") + "\nprint(table.to_json(orient='records', double_precision=15))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout.splitlines()[-1])
    assert [row["category"] for row in rows] == ["F", "M", "NR"]
    for row, estimate in zip(rows, expected(fair).estimates, strict=True):
        assert (row["frequency"], row["ci_low"], row["ci_high"]) == pytest.approx(
            (estimate.frequency, estimate.ci_low, estimate.ci_high), abs=1e-14
        )


def test_without_the_token_curl_fails_and_shows_why(
    snippet: Callable[[str], str], folder: Path, fair: Study
) -> None:
    (folder / "TOKEN").write_text("mobility-read-wrong\n")
    done = subprocess.run(
        ["bash", "-c", snippet("curl")], cwd=folder, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 22
    assert json.loads(done.stdout)["status"] == 401
