"""HTTP requests that end within a time: the timeout of a socket alone begins again with every byte."""

import io
import time
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from socket import SocketIO, socket
from ssl import SSLContext
from typing import Any, Final
from urllib.request import HTTPHandler, HTTPSHandler, Request

LEAST_BYTES_PER_S: Final = 50_000
PART_BYTES: Final = 1 << 16


class _Timed(io.RawIOBase):
    """Bytes of a socket, until its time is over."""

    def __init__(self, sock: socket) -> None:
        self._sock = sock
        self._until = time.monotonic() + (sock.gettimeout() or float("inf"))
        self._file: SocketIO = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int | None:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._sock.settimeout(left if left < float("inf") else None)
        return self._file.readinto(buffer)

    def close(self) -> None:
        self._file.close()
        super().close()


class _Response(HTTPResponse):
    """An answer whose head and body must arrive within the timeout of its connection."""

    def __init__(self, sock: socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self.fp.close()
        self.fp = io.BufferedReader(_Timed(sock))


class _Connection(HTTPConnection):
    response_class = _Response

    def send(self, data: Any) -> None:
        """Send bytes, within the timeout and the time that they take at the least rate."""
        if self.sock is None:
            self.connect()
        timeout_s = self.sock.gettimeout() or float("inf")
        until = time.monotonic() + timeout_s + len(data) / LEAST_BYTES_PER_S
        for start in range(0, len(data), PART_BYTES):
            if time.monotonic() > until:
                raise TimeoutError
            super().send(data[start : start + PART_BYTES])


class _SecureConnection(_Connection, HTTPSConnection):
    pass


class TimedHandler(HTTPHandler):
    """Opens http addresses."""

    def http_open(self, req: Request) -> HTTPResponse:
        return self.do_open(_Connection, req)


class TimedSecureHandler(HTTPSHandler):
    """Opens https addresses."""

    def __init__(self, context: SSLContext) -> None:
        super().__init__(context=context)
        self._verifying = context

    def https_open(self, req: Request) -> HTTPResponse:
        return self.do_open(_SecureConnection, req, context=self._verifying)
