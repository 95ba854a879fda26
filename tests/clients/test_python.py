"""The Python client against a running server: its notebook, and where its token goes."""

import json
import os
import pickle
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

ROOT = Path(__file__).resolve().parents[2]
CLIENT = ROOT / "clients" / "python"
sys.path.insert(0, str(CLIENT / "src"))

from mobility_reports_client import Client, ClientError, ProblemError, every  # noqa: E402

from reports.sharing import actions as access  # noqa: E402
from scripts.client_python import module  # noqa: E402
from tests.reports import report_factory as factory  # noqa: E402


@pytest.fixture
def fair(transactional_db):
    return factory.published()


@pytest.fixture
def token(fair, analyst):
    return access.create_token(name="notebook", days=1, study=None, by=analyst)[1]


def test_operations_are_those_of_the_openapi_document() -> None:
    assert (CLIENT / "src/mobility_reports_client/operations.py").read_text() == module()


def test_the_notebook_runs_and_has_no_token(live_server, token, tmp_path) -> None:
    cells = json.loads((CLIENT / "example.ipynb").read_text())["cells"]
    assert not any(cell.get("outputs") for cell in cells)
    program = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    given = {"MOBILITY_REPORTS_ADDRESS": live_server.url, "MOBILITY_REPORTS_TOKEN": token}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, text=True, capture_output=True, check=False,
        env=os.environ | given | {"PYTHONPATH": str(CLIENT / "src")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "fair-2024 2024-05-30" in done.stdout and "10 windows of Gender" in done.stdout
    assert token not in done.stdout + done.stderr


def test_a_refusal_has_its_reason_and_no_token(live_server, token) -> None:
    client = Client(live_server.url, token)
    with pytest.raises(ProblemError, match="404") as found:
        client.study("../fair-2024")
    with pytest.raises(ProblemError, match="422"):
        client.estimates("fair-2024", "gender", from_="2030-01-01")
    assert token not in f"{client!r} {vars(found.value)} {found.value}"
    with pytest.raises(TypeError):
        pickle.dumps(client)
    with pytest.raises(ProblemError, match="401"):
        list(every(Client(live_server.url, "wrong").studies))


class Redirecting(BaseHTTPRequestHandler):
    seen: list[str] = []

    def do_GET(self) -> None:
        self.seen.append(self.path)
        self.send_response(302)
        self.send_header("Location", "/elsewhere")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def test_a_file_that_is_no_token_is_refused_without_its_content(tmp_path) -> None:
    path = tmp_path / "token"
    path.write_bytes("tokén".encode())
    with pytest.raises(ValueError, match="one word") as found:
        Client.from_token_file("https://reports.example.org", path)
    assert "tok\\xc3" not in repr(found.value)


def test_the_token_goes_to_no_other_address(monkeypatch) -> None:
    host = "reports.example.org"
    for address in (f"http://{host}", f"https://me:word@{host}", f"https://:word@{host}", "ftp://localhost"):
        with pytest.raises(ValueError, match="address must begin"):
            Client(address, "word")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Redirecting)
    Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.delenv("no_proxy", raising=False)
    with pytest.raises(ClientError, match="no answer"):
        Client("http://localhost:1", "word").studies()
    with pytest.raises(ClientError, match="302"):
        Client(f"http://127.0.0.1:{server.server_port}", "word").studies()
    server.shutdown()
    server.server_close()
    assert Redirecting.seen == ["/api/v1/studies"]
