"""Turns of a web server's threads: a few compute pages, the others wait in line, and uploads let pages pass.

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
_line = threading.Condition()
_in_line = 0  # pages that wait for a turn or have one

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
        _take_turn()
        _held.is_mine = True
        try:
            return application(environ, start_response)
        finally:
            _held.is_mine = False
            _give_turn()

    return answer


@contextmanager
def without_turn() -> Iterator[None]:
    """Let others have the turn of this thread, if it has one, while it waits for something."""
    if not getattr(_held, "is_mine", False):
        yield
        return
    _give_turn()
    try:
        yield
    finally:
        _take_turn()


def after_pages(*, at_most_s: float) -> None:
    """Wait while this process computes pages, at most some seconds; long work does it between its parts."""
    with _line:
        _line.wait_for(lambda: _in_line == 0, timeout=at_most_s)


def _take_turn() -> None:
    _change_line(1)
    _free.acquire()


def _give_turn() -> None:
    _free.release()
    _change_line(-1)


def _change_line(by: int) -> None:
    global _in_line  # noqa: PLW0603 - one line for all threads of the process
    with _line:
        _in_line += by
        if not _in_line:
            _line.notify_all()
