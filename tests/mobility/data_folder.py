"""A separate data folder, and real commands that run in it."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import SimpleNamespace
from unittest.mock import Mock

from django.conf import settings
from django.test import override_settings

from mobility.base.runtime import RuntimePaths
from mobility.embedded.service import Service

SERVICES = ("web", "worker", "redis")
HOLD = """
import sys
from mobility.celery import app
from mobility.embedded.shared import workers
with workers():
    sys.stdout.write(f"{len(app.control.ping(timeout=5, limit=1))}\\n")
    sys.stdout.flush()
    sys.stdin.readline()
"""


def until(answer, *, within_s=60):
    deadline = time.monotonic() + within_s
    while not (found := answer()):
        assert time.monotonic() < deadline, "it does not happen"
        time.sleep(0.1)
    return found


@contextmanager
def serving(server):
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def answering(status=200, body=b"{}"):
    """A server that answers every request alike, as its attributes say, and remembers what it was asked."""
    site = SimpleNamespace(status=status, body=body, headers={}, asked=[])

    class Handler(BaseHTTPRequestHandler):
        def answer(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            asked = {"method": self.command, "path": self.path, "headers": dict(self.headers), "body": body}
            site.asked.append(SimpleNamespace(**asked))
            self.send_response_only(site.status)
            for name, value in {"Content-Length": str(len(site.body)), **site.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(site.body)

        do_GET = do_POST = answer
        log_message = Mock()

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as server:
        site.url = f"http://127.0.0.1:{server.server_port}"
        yield site


def without_addresses(own):
    """Variables of a process, without addresses of those who run the tests."""
    inherited = {name: value for name, value in os.environ.items() if not name.endswith("_URL")}
    return inherited | {"DJANGO_SETTINGS_MODULE": "mobility.settings", **own}


def own_process(command, own):
    options = {"text": True, "capture_output": True, "timeout": 120}
    return subprocess.run(command, cwd=settings.BASE_DIR, env=without_addresses(own), check=False, **options)


@contextmanager
def celery_worker(own, *, app="mobility"):
    """A worker of one process, which docker/ and its systemd units stop as SIGTERM does here."""
    own = {"MOBILITY_WORKER_GRACE_S": "1", "REMAP_SIGTERM": "SIGQUIT", **own}
    command = [sys.executable, "-m", "celery", "-A", app, "worker", "-c", "1"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
    with subprocess.Popen(command, cwd=settings.BASE_DIR, env=without_addresses(own), **quiet) as worker:
        try:
            yield worker
        finally:
            if worker.poll() is None:
                os.killpg(worker.pid, signal.SIGKILL)


class Folder:
    def __init__(self, root) -> None:
        self.root = root
        self.paths = RuntimePaths(root)

    def script(self, *arguments: str) -> subprocess.Popen[str]:
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        env = without_addresses({"MOBILITY_DATA_DIR": str(self.root)})
        return subprocess.Popen(
            [sys.executable, *arguments], text=True, cwd=settings.BASE_DIR, env=env, **pipes
        )

    def command(self, *arguments: str) -> subprocess.Popen[str]:
        return self.script("manage.py", *arguments)

    def shell(self, code: str = "pass") -> subprocess.Popen[str]:
        return self.command("shell", "--no-imports", "-c", code)

    @contextmanager
    def holding(self):
        """A command that is inside `with workers()` and leaves at the end of a line."""
        with self.shell(HOLD) as process:
            assert process.stdout.readline() == "1\n", process.stderr.read()
            yield process
            if process.poll() is None:
                process.communicate("\n", timeout=60)

    def running(self) -> set[str]:
        with override_settings(PATHS=self.paths):
            return {name for name in SERVICES if Service(name).is_alive()}

    def stop_all(self) -> None:
        with override_settings(PATHS=self.paths):
            for name in SERVICES:
                Service(name).stop(grace_s=1)
