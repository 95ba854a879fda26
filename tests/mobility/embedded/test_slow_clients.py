"""Limits for bodies that come slowly or are too large, and for answers that are not read."""

import socket
import subprocess
import sys
import threading
import time
from http.client import HTTPConnection
from pathlib import Path

import pytest
from django.test import Client

from mobility.embedded import slow_clients, web
from mobility.embedded.slow_clients import BoundedSocket
from mobility.operations import requests

ROOT = Path(slow_clients.__file__).parents[2]
LIMITS = {"HEAD_S": 0.5, "SILENCE_S": 0.5, "GRACE_S": 0.8}
SERVER = """
import mobility.embedded.slow_clients as limits
for name, value in {limits}.items(): setattr(limits, name, value)
def answer(environ, start_response):
    try: size = len(environ["wsgi.input"].read())
    except OSError: size = -1
    body = [bytes(1 << 20)] * 64 if environ["PATH_INFO"] == "/large" else [b"%d" % size]
    start_response("200 OK", [("Content-Length", str(sum(map(len, body))))])
    return body
"""
SLOW = {
    "head that is never done": (b"GET / HTTP/1.1\r\nX-A: ", b"a" * 1000),
    "body that is never done": (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n", b"a" * 1000),
    "body that never begins": (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n", b""),
    "answer that nobody reads": (b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n", b""),
}


@pytest.fixture
def server(tmp_path):
    """The embedded web server as it is started, with one thread, short limits and its own answer."""
    (tmp_path / "site_for_test.py").write_text(SERVER.format(limits=LIMITS))
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        command = web._command(listening)
        command[command.index("mobility.wsgi")] = "site_for_test:answer"
        command[command.index("--threads") + 1] = "1"
        command += ["--pythonpath", str(tmp_path)]
        options = {"cwd": ROOT, "pass_fds": [listening.fileno()], "stderr": subprocess.DEVNULL}
        process = subprocess.Popen(command, **options)
        address = listening.getsockname()
        try:
            yield address
        finally:
            process.terminate()
            process.wait()


def answered_within(address, seconds: float) -> bool:
    connection = HTTPConnection(*address, timeout=seconds)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status == 200
    except TimeoutError:
        return False
    finally:
        connection.close()


def trickle(connection: socket.socket, text: bytes, *, every_s: float) -> None:
    """Send a byte at a time, until the server has had enough."""
    for byte in text:
        try:
            connection.sendall(bytes([byte]))
        except OSError:
            return
        time.sleep(every_s)


@pytest.mark.parametrize(("begin", "rest"), SLOW.values(), ids=SLOW)
def test_a_client_that_is_too_slow_gives_its_thread_back(server, begin, rest):
    assert answered_within(server, 30)  # it has started
    with socket.create_connection(server) as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.sendall(begin)
        threading.Thread(target=trickle, args=(slow, rest), kwargs={"every_s": 0.1}, daemon=True).start()
        assert answered_within(server, 10)


def test_an_upload_that_flows_and_an_answer_that_is_read_have_no_end(monkeypatch):
    """Time counts only while the client is waited for, and more bytes give more time."""
    for name, value in LIMITS.items():
        monkeypatch.setattr(slow_clients, name, value)
    here, there = socket.socketpair()
    bounded = BoundedSocket(fileno=here.detach())
    with bounded, there:
        bounded.begin()
        bounded.is_head = False
        for _ in range(12):  # of 1,000 bytes each: a second more
            there.sendall(bytes(1_000))
            assert len(bounded.recv(1_000)) == 1_000
            time.sleep(0.1)  # a page is computed
        assert bounded._read_s < LIMITS["GRACE_S"]
        reader = threading.Thread(target=there.recv, args=(1 << 20, socket.MSG_WAITALL))
        reader.start()
        bounded.sendall(bytes(1 << 20))
        reader.join()
        assert bounded.gettimeout() is None


def test_every_web_server_has_the_limits():
    name = "mobility.embedded.slow_clients.BoundedThreadWorker"
    with socket.socket() as listening:
        assert name in web._command(listening)
    assert f'worker_class = "{name}"' in (ROOT / "docker/gunicorn.conf.py").read_text()
    assert sys.modules[name.rpartition(".")[0]].BoundedThreadWorker


class TestSize:
    @pytest.mark.parametrize("path", ["/sign-in/", "/", "/nope/", "/administrator/create/", "/shared/abc/"])
    def test_a_stranger_sends_100_kb_at_most_and_nothing_more_is_read(self, db, path):
        class Unreadable:
            def read(self, *_: object) -> bytes:
                raise AssertionError("the body was read")

            readline = read

        answer = Client().post(path, CONTENT_LENGTH="100001", **{"wsgi.input": Unreadable()})
        assert (answer.status_code, b"is 100001 bytes, which exceeds" in answer.content) == (413, True)

    def test_who_is_signed_in_sends_what_the_forms_take(self, analyst):
        client = Client()
        client.force_login(analyst)
        assert client.post("/", CONTENT_LENGTH=str(requests.MAX_FORM_BYTES + 1)).status_code == 413
        assert client.post("/", b"a" * 200_000, content_type="text/plain").status_code == 200

    def test_files_go_through_as_they_come(self, db):
        uploads = "operator/a/uploads/", "api/v1/studies/a/extracts/f", "api/v1/intake/studies/a/receipts"
        for path in uploads:
            assert Client().post(f"/{path}", CONTENT_LENGTH="100001").status_code != 413, path
