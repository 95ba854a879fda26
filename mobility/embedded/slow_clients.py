"""The web server's threads do not wait permanently: limits of time for clients that send or read slowly.

gunicorn waits without any limit once a request has begun, and each such client holds one of a few threads. A
proxy in front keeps most of them away; the embedded server has none.
"""

import errno
import math
import socket
import time
from typing import Any, Final

from gunicorn.workers.gthread import TConn, ThreadWorker

HEAD_S: Final = 15.0  # for the request line and all headers together
SILENCE_S: Final = 60.0  # between two bytes of a body, or of an answer
GRACE_S: Final = 30.0  # before the rate counts
READ_BYTES_PER_S: Final = 1_000  # of a body, on average
SENT_BYTES_PER_S: Final = 16_000  # of an answer
PIECE_BYTES: Final = 64 << 10


class BoundedSocket(socket.socket):
    """A connection that breaks off when its client is too slow.

    Only time spent waiting for the client counts, never that in which a page is computed.
    """

    def begin(self) -> None:
        """Wait for the head of a request."""
        self.is_head = True
        self._read_s = self._sent_s = 0.0
        self._read_bytes = self._sent_bytes = 0

    def recv(self, size: int, flags: int = 0, /) -> bytes:
        """Receive like a socket.

        Raises
        ------
        TimeoutError : the body comes too slowly
        ConnectionResetError : the head does, and nothing can be answered
        """
        limit = HEAD_S if self.is_head else GRACE_S + self._read_bytes / READ_BYTES_PER_S
        usual, began = self.gettimeout(), time.monotonic()
        if usual == 0.0:
            return super().recv(size, flags)
        try:
            self._wait_at_most(limit - self._read_s, usual=usual)
            data = super().recv(size, flags)
        except TimeoutError:
            if self.is_head:
                raise ConnectionResetError(errno.ECONNRESET, "the request was sent too slowly") from None
            raise
        finally:
            self.settimeout(usual)
            self._read_s += time.monotonic() - began
        self._read_bytes += len(data)
        return data

    def sendall(self, data: Any, flags: int = 0, /) -> None:
        """Send like a socket.

        Raises
        ------
        ConnectionResetError : the client reads too slowly
        """
        view, usual = memoryview(data).cast("B"), self.gettimeout()
        try:
            for at in range(0, len(view), PIECE_BYTES):
                began = time.monotonic()
                limit = GRACE_S + self._sent_bytes / SENT_BYTES_PER_S
                self._wait_at_most(limit - self._sent_s, usual=usual)
                super().sendall(view[at : at + PIECE_BYTES], flags)
                self._sent_s += time.monotonic() - began
                self._sent_bytes += min(PIECE_BYTES, len(view) - at)
        except TimeoutError:
            raise ConnectionResetError(errno.ECONNRESET, "the response was read too slowly") from None
        finally:
            self.settimeout(usual)

    def _wait_at_most(self, left_s: float, *, usual: float | None) -> None:
        """Set how long the next call may take: what is left, or a silence, or what was set."""
        if left_s <= 0:
            raise TimeoutError
        self.settimeout(min(left_s, SILENCE_S, math.inf if usual is None else usual))


class BoundedThreadWorker(ThreadWorker):  # type: ignore[misc]
    """gunicorn's threads, over connections that have limits of time."""

    def enqueue_req(self, conn: TConn) -> None:
        """Take a new connection over, and start to count its next request."""
        if type(conn.sock) is socket.socket:  # one with TLS is what it was: a proxy ends it in front
            timeout = conn.sock.gettimeout()
            conn.sock = BoundedSocket(fileno=conn.sock.detach())
            conn.sock.settimeout(timeout)
        if isinstance(conn.sock, BoundedSocket):
            conn.sock.begin()
        super().enqueue_req(conn)

    def handle_request(self, req: Any, conn: TConn) -> Any:
        """Answer a request whose head is there."""
        if isinstance(conn.sock, BoundedSocket):
            conn.sock.is_head = False
        return super().handle_request(req, conn)
