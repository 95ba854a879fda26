"""Turns of a web server's threads: a few compute pages, the others wait in line.

Threads of a process share one interpreter. One that computes leaves it only after a while, so a page that
asks a database fifteen times would wait that long after each answer, for each thread that computes.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

AT_ONCE: Final = 2  # one computes while the other waits for a database
_free = threading.Semaphore(AT_ONCE)
_held = threading.local()

Application = Callable[[dict[str, Any], Any], Iterable[bytes]]  # of WSGI


def in_turns(application: Application) -> Application:
    """Let an application answer requests in turns.

    Requests with a body take none: their clients may take hours to send it. An answer that is made while it
    is sent takes one for its beginning only.
    """

    def answer(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        is_empty = environ.get("CONTENT_LENGTH", "") in ("", "0")
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD") or not is_empty:
            return application(environ, start_response)
        with _free:
            _held.is_mine = True
            try:
                return application(environ, start_response)
            finally:
                _held.is_mine = False

    return answer


@contextmanager
def without_turn() -> Iterator[None]:
    """Let others have the turn of this thread, if it has one, while it waits for something."""
    if not getattr(_held, "is_mine", False):
        yield
        return
    _free.release()
    try:
        yield
    finally:
        _free.acquire()
