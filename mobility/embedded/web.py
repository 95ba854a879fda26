"""The web server of the embedded default: gunicorn on the loopback interface."""

import hashlib
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command

from mobility.base import locks
from mobility.base.messages import say
from mobility.base.runtime import write_private
from mobility.embedded.service import Service, ServiceError
from mobility.embedded.shared import check_alive, ended_by_signals, undisturbed

HOST = "127.0.0.1"
PORTS_TRIED = 100
THREADS = 8
START_TIMEOUT_S = 60.0
WATCH_S = 0.5


def running_address() -> str | None:
    """Return the address at which a command already serves."""
    return _address_file().read_text() if Service("web").is_alive() else None


@contextmanager
def web_server(*, port: int) -> Iterator[str]:
    """Serve inside this block on `port` or the next free one, and give the address."""
    collect_static()
    server = Service("web")
    with ended_by_signals():
        try:
            with free_socket(port) as listening:
                address = f"http://{HOST}:{listening.getsockname()[1]}"
                write_private(_address_file(), address)
                server.start(_command(listening), descriptors=(listening.fileno(),))
            server.wait_until(lambda: _answers(address), timeout_s=START_TIMEOUT_S)
            yield address
        finally:
            with undisturbed():
                server.stop()


def serve_until_stopped(check_workers: Callable[[], None]) -> None:
    """Return at Ctrl-C; raise ServiceError when the web server ends unexpectedly."""
    try:
        while True:
            check_workers()
            check_alive(Service("web"))
            time.sleep(WATCH_S)
    except KeyboardInterrupt:
        say("stopping")


def collect_static() -> None:
    """Put the static files where the server reads them, when one of them has changed."""
    stamp = settings.STATIC_ROOT.with_name("static.stamp")
    with locks.exclusive(settings.PATHS.run / "static.lock"):
        state = _static_state()
        if stamp.exists() and stamp.read_text() == state:
            return
        say("collecting static files")
        call_command("collectstatic", interactive=False, verbosity=0)
        write_private(stamp, state)


@contextmanager
def free_socket(port: int) -> Iterator[socket.socket]:
    """A socket that listens on `port` or the next free one; handed over open, so no one can take it."""
    for number in range(port, port + PORTS_TRIED):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as candidate:
            candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                candidate.bind((HOST, number))
                candidate.listen()
            except OSError:
                continue
            yield candidate
            return
    raise ServiceError(f"all ports from {port} to {port + PORTS_TRIED - 1} are in use on {HOST}")


def _static_state() -> str:
    """Digest of names, sizes and times of the static files, and of where they go."""
    state = hashlib.sha256(str(settings.STATIC_ROOT).encode())
    for finder in get_finders():
        for name, storage in finder.list([]):
            file = Path(storage.path(name)).stat()
            state.update(f"{name} {file.st_size} {file.st_mtime_ns}\n".encode())
    return state.hexdigest()


def _command(listening: socket.socket) -> list[str]:
    return [
        sys.executable, "-m", "gunicorn", "mobility.wsgi", "--bind", f"fd://{listening.fileno()}",
        "--worker-class", "mobility.embedded.slow_clients.BoundedThreadWorker", "--threads", str(THREADS),
        "--timeout", "120", "--graceful-timeout", "5", "--no-sendfile", "--no-control-socket",
    ]  # fmt: skip


def _answers(address: str) -> bool:
    """Return whether something answers; a redirect to https, or a refusal of the host name, counts."""
    connection = HTTPConnection(urlsplit(address).netloc, timeout=2)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status < HTTPStatus.INTERNAL_SERVER_ERROR
    except (HTTPException, OSError):
        return False
    finally:
        connection.close()


def _address_file() -> Path:
    address: Path = settings.PATHS.run / "address"
    return address
