"""A line between a browser and the site that is cut at will."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

BUFFER_BYTES = 64 << 10


class CuttingProxy:
    """Passes bytes on in both directions; a line breaks once it has carried `cut_after` bytes upwards.

    Attributes
    ----------
    cuts_left : how many lines will still be cut
    on_cut : called at every cut
    """

    def __init__(self, port: int, *, cut_after: int, cuts: int) -> None:
        self._port = port
        self.cut_after = cut_after
        self.cuts_left = cuts
        self.on_cut: Callable[[], None] = lambda: None
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def repair(self) -> None:
        """Let everything through from now on."""
        self.on_cut = lambda: None
        self.cuts_left = 0

    def _accept(self) -> None:
        while True:
            try:
                below, _ = self._listener.accept()
            except OSError:  # closed
                return
            above = socket.create_connection(("127.0.0.1", self._port))
            threading.Thread(target=self._upwards, args=(below, above), daemon=True).start()
            threading.Thread(target=self._pass_on, args=(above, below), daemon=True).start()

    def _upwards(self, below: socket.socket, above: socket.socket) -> None:
        carried = 0
        with below:
            while data := _received(below):
                carried += len(data)
                if carried > self.cut_after and self.cuts_left:
                    self.cuts_left -= 1
                    self.on_cut()
                    # A reset here; above an end, so that all that was sent arrives there.
                    below.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    break
                if not _sent(above, data):
                    break
            with suppress(OSError):  # the site may have gone first
                above.shutdown(socket.SHUT_WR)

    @staticmethod
    def _pass_on(above: socket.socket, below: socket.socket) -> None:
        with above:
            while data := _received(above):
                if not _sent(below, data):
                    return
            with suppress(OSError):  # the browser may have gone first
                below.shutdown(socket.SHUT_WR)


def _received(side: socket.socket) -> bytes:
    try:
        return side.recv(BUFFER_BYTES)
    except OSError:
        return b""


def _sent(side: socket.socket, data: bytes) -> bool:
    try:
        side.sendall(data)
    except OSError:
        return False
    return True


@contextmanager
def cutting_proxy(port: int, *, cut_after: int, cuts: int) -> Iterator[CuttingProxy]:
    """A line to the site on `port` inside this block."""
    proxy = CuttingProxy(port, cut_after=cut_after, cuts=cuts)
    try:
        yield proxy
    finally:
        proxy.close()
