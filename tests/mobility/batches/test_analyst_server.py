"""The way to an analyst server: what its answers mean, and where nothing may be sent."""

import json
import socket
import stat
import threading
import time
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from mobility.base import timed_http
from mobility.batches.publication import analyst_server as handover
from mobility.embedded import checks
from mobility.embedded.zones import refusal
from reports.transfer.messages import SIGNATURE, digest_of, envelope_of
from scripts import services
from tests.mobility.data_folder import serving

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"


class Answering(BaseHTTPRequestHandler):
    status: ClassVar[int] = 200
    body: ClassVar[bytes] = b"{}"
    headers_sent: ClassVar[dict[str, str]] = {}
    asked: ClassVar[list[tuple[str, str, dict[str, str], bytes]]] = []

    def answer(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        self.asked.append((self.command, self.path, dict(self.headers), self.rfile.read(length)))
        self.send_response(self.status)
        for name, value in {"Content-Length": str(len(self.body)), **self.headers_sent}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(self.body)

    do_GET = do_POST = answer

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server(data_dir, settings):
    handler = type("Handler", (Answering,), {"asked": []})
    listening = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    settings.MOBILITY_ANALYST_URL = f"http://127.0.0.1:{listening.server_port}"
    settings.MOBILITY_SENDER_KEY_FILE = data_dir / "sender_key.pem"
    settings.HANDS_OVER = True
    with serving(listening):
        yield handler


def test_what_is_sent_is_signed_with_the_key_of_this_zone(server: type[Answering]) -> None:
    handover.AnalystServer().send_closed("fair", b"body")
    ((method, path, headers, body),) = server.asked
    assert (method, path, body) == ("POST", "/api/v1/intake/studies/fair/closed", b"body")
    envelope = envelope_of(headers, kind="closed", study="fair", item="")
    public_key = b64encode(handover.sender_key().public_key().public_bytes_raw()).decode()
    assert envelope.is_signed_by(public_key, headers[SIGNATURE])
    assert envelope.digest == digest_of(body)


def test_key_is_made_once_for_this_account_alone(data_dir, settings) -> None:
    settings.MOBILITY_SENDER_KEY_FILE = data_dir / "keys" / "sender.pem"
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: handover.sender_key().private_bytes_raw(), range(8)))
    assert (len(set(made)), stat.S_IMODE(settings.MOBILITY_SENDER_KEY_FILE.stat().st_mode)) == (1, 0o600)
    settings.MOBILITY_SENDER_KEY_FILE.write_text("no key")
    with pytest.raises(
        handover.HandoverRefusedError,
        match="MOBILITY_SENDER_KEY_FILE must contain an Ed25519 private key, got",
    ):
        handover.sender_key()


@pytest.mark.parametrize(
    ("status", "body", "kind", "words"),
    [
        (401, b'{"detail": "the sender is not registered"}', handover.HandoverRefusedError, "not registered"),
        (409, b'{"detail": "plans with data are final"}', handover.HandoverRefusedError, "final"),
        (404, b"<html>nothing</html>", handover.HandoverRefusedError, "does not accept handovers"),
        (404, b'["detail"]', handover.HandoverRefusedError, "does not accept handovers"),
        (413, b'{"detail": 5}', handover.HandoverRefusedError, "does not accept handovers"),
        (429, b'{"detail": "later"}', handover.HandoverWaitsError, "HTTP 429"),
        (500, b"crash", handover.HandoverWaitsError, "HTTP 500"),
        (503, b"", handover.HandoverWaitsError, "HTTP 503"),
        (200, b"<html>", handover.HandoverWaitsError, "does not accept handovers"),
        (200, b"[]", handover.HandoverWaitsError, "does not accept handovers"),
        (200, b"\xff", handover.HandoverWaitsError, "does not accept handovers"),
        (200, b"[" * 90_000, handover.HandoverWaitsError, "does not accept handovers"),
        (200, b'{"a":' * 90_000, handover.HandoverWaitsError, "does not accept handovers"),
        (409, b"[" * 90_000, handover.HandoverRefusedError, "does not accept handovers"),
    ],
)
def test_answers_say_whether_to_wait_or_to_ask_somebody(server, status, body, kind, words) -> None:
    server.status, server.body = status, body
    with pytest.raises(kind, match=words):
        handover.AnalystServer().send_study("fair", b"{}")


def test_words_of_another_server_are_made_fit_for_a_page(server: type[Answering]) -> None:
    server.status, server.body = 409, json.dumps({"detail": "a\n\x1b[31m" + "b" * 5000}).encode()
    with pytest.raises(handover.HandoverRefusedError) as refused:
        handover.AnalystServer().send_study("fair", b"{}")
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_message_is_not_sent_on_to_another_address(server: type[Answering], status: int) -> None:
    server.status, server.headers_sent = status, {"Location": "/elsewhere"}
    with pytest.raises(handover.HandoverRefusedError, match=f"HTTP {status}"):
        handover.AnalystServer().send_study("fair", b"{}")
    assert [path for _, path, *_ in server.asked] == ["/api/v1/intake/studies/fair"]


@contextmanager
def one_client(settings, serve):
    """A server that leaves its only client to `serve`, which continues until the event is set."""
    settings.MOBILITY_HANDOVER_TIMEOUT_S, is_over = 0.3, threading.Event()

    def accept() -> None:
        line, _ = listening.accept()
        with line, suppress(OSError):
            serve(line, is_over)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        settings.MOBILITY_ANALYST_URL = f"http://127.0.0.1:{listening.getsockname()[1]}"
        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield is_over
        finally:
            is_over.set()
            thread.join()


@pytest.mark.parametrize("words", [b"", HEAD + b"{", b"nonsense\r\n\r\n"])
@pytest.mark.parametrize("hangs_up", [False, True])
def test_a_server_that_falls_silent_is_not_waited_for_for_ever(server, settings, words, hangs_up) -> None:
    def answer(line, is_over) -> None:
        line.recv(100_000)
        line.sendall(words)
        is_over.wait(0 if hangs_up else 10)

    with one_client(settings, answer), pytest.raises(handover.HandoverWaitsError):
        handover.AnalystServer().state("fair")


@pytest.mark.parametrize(
    ("words", "drop"),
    [(HEAD, b" "), (b"HTTP/1.1 200 OK\r\nA: ", b"a"), (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
     (HEAD.replace(b"200 OK", b"409 No"), b" ")],
)  # fmt: skip
def test_a_server_that_answers_drop_by_drop_is_left_after_the_same_time(server, settings, words, drop):
    """Each byte begins the timeout of a socket again: a file that is being published would wait for hours."""

    def answer(line, is_over) -> None:
        line.recv(100_000)
        line.sendall(words)
        while not is_over.wait(0.1):
            line.sendall(drop)

    with one_client(settings, answer) as is_over:
        threading.Timer(5, is_over.set).start()
        began = time.monotonic()
        with pytest.raises(handover.HandoverError):
            handover.AnalystServer().state("fair")
        assert time.monotonic() - began < 3


def test_a_server_that_reads_drop_by_drop_is_left(server, settings, monkeypatch):
    monkeypatch.setattr(timed_http, "LEAST_BYTES_PER_S", 1e9)

    def read(line, is_over) -> None:
        while not is_over.wait(0.05):
            line.recv(65_536)

    with one_client(settings, read):
        began = time.monotonic()
        with pytest.raises(handover.HandoverWaitsError, match="cannot be reached"):
            handover.AnalystServer().send_study("fair", bytes(30_000_000))
        assert time.monotonic() - began < 4


def test_all_messages_about_one_study_have_a_short_while_together(server, settings):
    settings.MOBILITY_HANDOVER_TIMEOUT_S = 0.05
    analysts = handover.AnalystServer()
    analysts.state("fair")
    time.sleep(0.15)
    with pytest.raises(handover.HandoverWaitsError, match="too slow to receive"):
        analysts.state("fair")


def test_an_error_whose_body_breaks_off_is_a_refusal_like_others(server):
    server.status, server.headers_sent = 409, {"Transfer-Encoding": "chunked", "Connection": "close"}
    server.body = b"ffff\r\nabc"
    with pytest.raises(handover.HandoverRefusedError, match="does not accept handovers"):
        handover.AnalystServer().state("fair")


def test_nobody_there_and_a_server_that_speaks_no_tls_are_waited_for(server, settings) -> None:
    settings.MOBILITY_ANALYST_URL = settings.MOBILITY_ANALYST_URL.replace("http:", "https:")
    with pytest.raises(handover.HandoverWaitsError, match="cannot be verified"):
        handover.AnalystServer().state("fair")
    assert server.asked == []
    settings.MOBILITY_ANALYST_URL = f"http://127.0.0.1:{services.free_port()}"
    with pytest.raises(handover.HandoverWaitsError, match="cannot be reached"):
        handover.AnalystServer().state("fair")


@pytest.mark.parametrize(
    "url",
    ["", "http://reports.example.org", "ftp://localhost", "reports.example.org", "https://", "file:///etc/passwd",
     "https://a:b@reports.example.org", "https://reports.example.org/?a", "http://localhost.example.org"],
)  # fmt: skip
def test_nothing_is_sent_where_others_can_read_it(url, server, settings) -> None:
    for safe in (
        "https://reports.example.org", "https://reports.example.org:8443/mobility",
        "http://localhost:8000", "http://127.0.0.1:8000", "http://[::1]:8000",
    ):  # fmt: skip
        handover.check_analyst_url(safe)
    with pytest.raises(ValueError, match="MOBILITY_ANALYST_URL must"):
        handover.check_analyst_url(url)
    settings.MOBILITY_ANALYST_URL = url
    with pytest.raises(handover.HandoverRefusedError, match="MOBILITY_ANALYST_URL must"):
        handover.AnalystServer()


SAFE, OPEN = "https://reports.example.org", "http://reports.example.org"
OPERATOR = {"MOBILITY_ZONE": "operator", "HANDS_OVER": True}
SENDER = OPERATOR | {"MOBILITY_ANALYST_URL": SAFE}
ZONES = {
    "all": ({}, []),
    "all, with a server": ({"MOBILITY_ANALYST_URL": SAFE}, ["mobility.E006"]),
    "operator, with the database of analysts": (OPERATOR, ["mobility.E007"]),
    "operator, with a server": (SENDER, []),
    "operator, in the open": (OPERATOR | {"MOBILITY_ANALYST_URL": OPEN}, ["mobility.E008"]),
    "operator, without a name": (SENDER | {"MOBILITY_SENDER_NAME": "The North"}, ["mobility.E009"]),
}


@pytest.mark.parametrize("zone", ZONES)
def test_a_zone_that_cannot_work_is_not_started(settings, monkeypatch, zone) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://operator@db/main")
    values, expected = ZONES[zone]
    for name, value in values.items():
        setattr(settings, name, value)
    assert [message.id for message in checks.handing_over()] == expected


def test_an_analyst_zone_must_not_know_the_vault(settings, monkeypatch) -> None:
    settings.HAS_VAULT = False
    for url, expected in (("", []), ("postgres://operator@db/vault", ["mobility.E005"])):
        monkeypatch.setenv("VAULT_DATABASE_URL", url)
        assert [message.id for message in checks.databases()] == expected


@pytest.mark.parametrize(
    ("zone", "command", "words"),
    [("all", "ingest", ""), ("all", "register_sender", ""), ("operator", "ingest", ""),
     ("operator", "register_sender", "analyst zone"), ("analyst", "register_sender", ""),
     ("analyst", "ingest", "operator zone"), ("analyst", "close_study", "operator zone"),
     ("analyst", "create_study", "operator zone"), ("analyst", "sender_key", "operator zone"),
     ("analyst", "create_account", ""), ("analyst", "run", ""), ("analyst", "verify_ledger", "")],
)  # fmt: skip
def test_commands_of_the_other_zone_are_refused_in_words(settings, zone, command, words) -> None:
    settings.MOBILITY_ZONE = zone
    settings.HAS_VAULT, settings.HAS_REPORTS = zone != "analyst", zone != "operator"
    found = refusal(["manage.py", command])
    assert words in found
    assert bool(found) == bool(words)


def test_public_key_is_printed_for_the_other_side_if_there_is_one(server, settings, capsys) -> None:
    call_command("sender_key")
    printed = json.loads(capsys.readouterr().out)
    assert printed["sender"] == "operator"
    assert printed["public_key"] == b64encode(handover.sender_key().public_key().public_bytes_raw()).decode()
    settings.MOBILITY_SENDER_KEY_FILE.unlink()
    settings.HANDS_OVER = False
    with pytest.raises(CommandError, match="does not hand over totals"):
        call_command("sender_key")
    assert not settings.MOBILITY_SENDER_KEY_FILE.exists()
