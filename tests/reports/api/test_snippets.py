"""The snippets of a report page are copied from it and run, against a server that listens."""

import html
import json
import re
import subprocess
import sys

import pytest

from reports.estimates import queries
from reports.estimates.queries import Window
from reports.exports.records import report_record

pytestmark = pytest.mark.django_db(transaction=True)


def run(folder, *command):
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)


def test_curl_and_pandas_get_the_report_with_the_token_of_a_file(live_server, reader, tmp_path, token, fair):
    def snippet(name):
        return html.unescape(re.search(rf'<pre id="snippet-{name}"[^>]*>(.*?)</pre>', page, re.DOTALL)[1])

    address, host = "/studies/fair-2024/gender/", live_server.url.removeprefix("http://")
    query = {"from": "2024-05-31", "to": "2024-06-01", "order": "sorted"}
    page = reader.get(address, query, headers={"Host": host}).content.decode()
    secret = token()
    (tmp_path / "TOKEN").write_text(secret + "\n")
    expected = queries.window_report(fair.indicators.get(slug="gender"), Window(2, 3))
    done = run(tmp_path, "bash", "-xc", snippet("curl"))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == json.loads(json.dumps(report_record(expected)))
    # Bash tells the words of every program that it starts: the token is in no list of processes.
    assert "+ curl " in done.stderr and secret not in done.stderr
    code = snippet("pandas") + "\nprint(table.to_json(orient='records', double_precision=15))"
    done = run(tmp_path, sys.executable, "-c", code)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout.splitlines()[-1])
    assert [row["category"] for row in rows] == ["F", "M", "NR"]
    for row, estimate in zip(rows, expected.estimates, strict=True):
        found = (row["frequency"], row["ci_low"], row["ci_high"])
        assert found == pytest.approx((estimate.frequency, estimate.ci_low, estimate.ci_high), abs=1e-14)
    (tmp_path / "TOKEN").write_text("mobility-read-wrong\n")
    done = run(tmp_path, "bash", "-c", snippet("curl"))
    assert (done.returncode, json.loads(done.stdout)["status"]) == (22, 401)
