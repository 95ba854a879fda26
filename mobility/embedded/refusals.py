"""Answer of gunicorn to a request that it cannot read: Django never sees such a request."""

from http import HTTPStatus
from socket import socket
from typing import Final

from gunicorn import util

from reports.base.problems import CONTENT_TYPE, problem

_write_page: Final = util.write_error


def refuse_as_problems() -> None:
    """Let gunicorn answer malformed requests as the API does: programs send them, browsers do not."""
    util.write_error = write_refusal


def write_refusal(client: socket, status: int, reason: str, detail: str) -> None:
    """Send a problem (RFC 9457), or gunicorn's page where the fault is the server's."""
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        _write_page(client, status, reason, detail)
        return
    body = problem(status, detail).content
    head = (
        f"HTTP/1.1 {status} {reason}\r\nConnection: close\r\nContent-Type: {CONTENT_TYPE}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    util.write_nonblock(client, head.encode("ascii") + body)
