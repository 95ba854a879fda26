"""The way to an analyst server: what its answers mean, and where nothing may be sent."""

import json
import socket
import stat
import threading
import time
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from mobility.base import timed_http
from mobility.batches.publication import analyst_server as handover
from mobility.embedded import checks
from mobility.embedded.zones import refusal
from reports.transfer.messages import SIGNATURE, digest_of, envelope_of
from scripts import services
from tests.mobility.commands import printed
from tests.mobility.data_folder import answering

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"


@pytest.fixture
def server(data_dir, settings):
    settings.MOBILITY_SENDER_KEY_FILE = data_dir / "sender_key.pem"
    settings.HANDS_OVER = True
    with answering() as site:
        settings.MOBILITY_ANALYST_URL = site.url
        yield site


def test_what_is_sent_is_signed_with_the_key_of_this_zone(server):
    handover.AnalystServer().send_closed("fair", b"body")
    (got,) = server.asked
    assert (got.method, got.path, got.body) == ("POST", "/api/v1/intake/studies/fair/closed", b"body")
    envelope = envelope_of(got.headers, kind="closed", study="fair", item="")
    assert envelope.is_signed_by(public_key(), got.headers[SIGNATURE])
    assert envelope.digest == digest_of(got.body)


def public_key():
    return b64encode(handover.sender_key().public_key().public_bytes_raw()).decode()


def test_key_is_made_once_for_this_account_alone(data_dir, settings) -> None:
    settings.MOBILITY_SENDER_KEY_FILE = data_dir / "keys" / "sender.pem"
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: handover.sender_key().private_bytes_raw(), range(8)))
    assert (len(set(made)), stat.S_IMODE(settings.MOBILITY_SENDER_KEY_FILE.stat().st_mode)) == (1, 0o600)
    settings.MOBILITY_SENDER_KEY_FILE.write_text("no key")
    said = "MOBILITY_SENDER_KEY_FILE must contain an Ed25519 private key, got"
    with pytest.raises(handover.HandoverRefusedError, match=said):
        handover.sender_key()


REFUSED, WAITS = handover.HandoverRefusedError, handover.HandoverWaitsError
ANSWERS = [
    (401, b'{"detail": "the sender is not registered"}', REFUSED, "not registered"),
    (409, b'{"detail": "plans with data are final"}', REFUSED, "final"),
    (404, b"<html>nothing</html>", REFUSED, "does not accept handovers"),
    (404, b'["detail"]', REFUSED, "does not accept handovers"),
    (413, b'{"detail": 5}', REFUSED, "does not accept handovers"),
    (409, b"[" * 90_000, REFUSED, "does not accept handovers"),
    (429, b'{"detail": "later"}', WAITS, "HTTP 429"), (500, b"crash", WAITS, "HTTP 500"),
    (200, b"<html>", WAITS, "does not accept handovers"), (200, b"[]", WAITS, "does not accept handovers"),
    (200, b"\xff", WAITS, "does not accept handovers"),
    (200, b'{"a":' * 90_000, WAITS, "does not accept handovers"),
    *((status, b"", REFUSED, f"HTTP {status}") for status in (301, 302, 307, 308)),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body", "kind", "words"), ANSWERS)
def test_answers_say_whether_to_wait_or_to_ask_somebody_and_none_sends_on(server, status, body, kind, words):
    server.status, server.body, server.headers = status, body, {"Location": "/elsewhere"}
    with pytest.raises(kind, match=words):
        handover.AnalystServer().send_study("fair", b"{}")
    assert [got.path for got in server.asked] == ["/api/v1/intake/studies/fair"]


def test_words_of_another_server_are_made_fit_for_a_page(server):
    server.status, server.body = 409, json.dumps({"detail": "a\n\x1b[31m" + "b" * 5000}).encode()
    with pytest.raises(REFUSED) as refused:
        handover.AnalystServer().send_study("fair", b"{}")
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 400


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


# First bytes of a server, and those that it repeats: none, or None if it hangs up.
SLOW = [
    *((words, rest) for words in (b"", HEAD + b"{", b"nonsense\r\n\r\n") for rest in (b"", None)),
    (HEAD, b" "), (b"HTTP/1.1 200 OK\r\nA: ", b"a"), (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    (HEAD.replace(b"200 OK", b"409 No"), b" "),
]  # fmt: skip


@pytest.mark.parametrize(("words", "drop"), SLOW)
def test_a_server_that_is_silent_or_answers_drop_by_drop_is_left_in_time(server, settings, words, drop):
    """Each byte begins the timeout of a socket again: a file that is being published would wait for hours."""

    def answer(line, is_over):
        line.recv(100_000)
        line.sendall(words)
        while drop is not None and not is_over.wait(0.1):
            line.sendall(drop)

    with one_client(settings, answer) as is_over:
        threading.Timer(5, is_over.set).start()
        began = time.monotonic()
        with pytest.raises(WAITS if drop in (b"", None) else handover.HandoverError):
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


def test_nobody_there_and_a_server_that_speaks_no_tls_are_waited_for(server, settings) -> None:
    settings.MOBILITY_ANALYST_URL = settings.MOBILITY_ANALYST_URL.replace("http:", "https:")
    with pytest.raises(handover.HandoverWaitsError, match="cannot be verified"):
        handover.AnalystServer().state("fair")
    assert server.asked == []
    settings.MOBILITY_ANALYST_URL = f"http://127.0.0.1:{services.free_port()}"
    with pytest.raises(handover.HandoverWaitsError, match="cannot be reached"):
        handover.AnalystServer().state("fair")


def test_an_error_whose_body_breaks_off_is_a_refusal_like_others(server):
    server.status, server.headers = 409, {"Transfer-Encoding": "chunked", "Connection": "close"}
    server.body = b"ffff\r\nabc"
    with pytest.raises(REFUSED, match="does not accept handovers"):
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
    "analyst, with a vault": ({"HAS_VAULT": False}, ["mobility.E005"]),
    "all": ({}, []),
    "all, with a server": ({"MOBILITY_ANALYST_URL": SAFE}, ["mobility.E006"]),
    "operator, with the database of analysts": (OPERATOR, ["mobility.E007"]),
    "operator, with a server": (SENDER, []),
    "operator, in the open": (OPERATOR | {"MOBILITY_ANALYST_URL": OPEN}, ["mobility.E008"]),
    "operator, without a name": (SENDER | {"MOBILITY_SENDER_NAME": "The North"}, ["mobility.E009"]),
}


@pytest.mark.parametrize("zone", ZONES)
def test_a_zone_that_cannot_work_is_not_started(settings, monkeypatch, zone) -> None:
    for name in ("DATABASE_URL", "VAULT_DATABASE_URL"):
        monkeypatch.setenv(name, "postgres://operator@db/main")
    values, expected = ZONES[zone]
    for name, value in values.items():
        setattr(settings, name, value)
    found = [*checks.handing_over(), *(checks.databases() if "vault" in zone else ())]
    assert [message.id for message in found] == expected
    monkeypatch.setenv("VAULT_DATABASE_URL", "")
    assert "vault" not in zone or checks.databases() == []


@pytest.mark.parametrize(
    ("zone", "command", "words"),
    [("all", "ingest", ""), ("all", "register_sender", ""), ("operator", "ingest", ""),
     ("operator", "register_sender", "analyst zone"), ("analyst", "register_sender", ""),
     ("analyst", "ingest", "operator zone"), ("analyst", "close_study", "operator zone"),
     ("analyst", "create_study", "operator zone"), ("analyst", "sender_key", "operator zone"),
     ("analyst", "create_account", ""), ("analyst", "run", ""), ("analyst", "verify_ledger", ""),
     ("analyst", "migrate", "")],
)  # fmt: skip
def test_commands_of_the_other_zone_are_refused_in_words(settings, zone, command, words) -> None:
    settings.MOBILITY_ZONE = zone
    settings.HAS_VAULT, settings.HAS_REPORTS = zone != "analyst", zone != "operator"
    found = refusal(["manage.py", command])
    assert words in found
    assert bool(found) == bool(words)


def test_public_key_is_printed_for_the_other_side_if_there_is_one(server, settings):
    told = printed("sender_key")
    assert (told["sender"], told["public_key"]) == ("operator", public_key())
    settings.MOBILITY_SENDER_KEY_FILE.unlink()
    settings.HANDS_OVER = False
    with pytest.raises(CommandError, match="does not hand over totals"):
        call_command("sender_key")
    assert not settings.MOBILITY_SENDER_KEY_FILE.exists()
