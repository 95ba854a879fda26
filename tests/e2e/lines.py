"""Lines between two programs that break, or lose answers, at will."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

BUFFER_BYTES = 64 << 10
RESET = struct.pack("ii", 1, 0)


class Line:
    """Passes bytes on in both directions, as long as it is let.

    `lets_up` says whether a connection may continue after this many bytes upwards (else it is reset);
    `lets_down`, whether it gets an answer (else it ends). `carried`: bytes of those that have ended.
    """

    def __init__(self, port: int, *, scheme: str = "http") -> None:
        self._port = port
        self.repair()
        self.carried: list[int] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"{scheme}://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def repair(self) -> None:
        self.lets_up: Callable[[int], bool] = lambda _: True
        self.lets_down: Callable[[int], bool] = lambda _: True

    def _accept(self) -> None:
        while True:
            try:
                below, _ = self._listener.accept()
            except OSError:  # closed
                return
            try:
                above = socket.create_connection(("127.0.0.1", self._port))
            except OSError:
                below.close()
                continue
            so_far = [0]
            threading.Thread(target=self._up, args=(below, above, so_far), daemon=True).start()
            threading.Thread(target=self._down, args=(below, above, so_far), daemon=True).start()

    def _up(self, below: socket.socket, above: socket.socket, so_far: list[int]) -> None:
        with suppress(OSError):
            while data := below.recv(BUFFER_BYTES):
                so_far[0] += len(data)
                if not self.lets_up(so_far[0]):
                    below.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                    below.close()
                    break
                above.sendall(data)
        self.carried.append(so_far[0])
        with suppress(OSError):  # an end, no reset: all that was sent arrives
            above.shutdown(socket.SHUT_WR)

    def _down(self, below: socket.socket, above: socket.socket, so_far: list[int]) -> None:
        with above, below:
            with suppress(OSError):
                while (data := above.recv(BUFFER_BYTES)) and self.lets_down(so_far[0]):
                    below.sendall(data)
            with suppress(OSError):  # closing alone waits for the other thread, which still listens
                below.shutdown(socket.SHUT_RDWR)


@contextmanager
def line_to(port: int, *, scheme: str = "http") -> Iterator[Line]:
    """A line to a server inside this block; it lets everything through by default."""
    line = Line(port, scheme=scheme)
    try:
        yield line
    finally:
        line.close()
