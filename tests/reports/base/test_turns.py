"""Turns of threads: a few compute pages at once; who waits for something else lets others go first."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from reports.base.turns import AT_ONCE, after_pages, in_turns, without_turn

PAGE = {"REQUEST_METHOD": "GET"}
PATIENCE_S = 10.0


class Site:
    """An application whose answers wait until the test lets them continue."""

    def __init__(self) -> None:
        self.inside = threading.Semaphore(0)
        self.go_on = threading.Event()
        self.most = self._now = 0
        self._lock = threading.Lock()

    def __call__(self, environ, start_response):
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        self.inside.release()
        if environ.get("waits"):
            with without_turn():
                assert self.go_on.wait(PATIENCE_S)
        else:
            assert self.go_on.wait(PATIENCE_S)
        with self._lock:
            self._now -= 1
        return [b"page"]


@pytest.fixture
def site():
    """A site, and threads enough; all answers are let go at the end."""
    site = Site()
    with ThreadPoolExecutor(3 * AT_ONCE) as site.threads:
        yield site
        site.go_on.set()


def ask(site, environ, *, times):
    application = in_turns(site)
    return [site.threads.submit(application, environ, None) for _ in range(times)]


def enter(site, *, times, within_s=PATIENCE_S):
    return [site.inside.acquire(timeout=within_s) for _ in range(times)]


def test_few_pages_are_computed_at_once_and_all_are_answered(site):
    answers = ask(site, PAGE, times=3 * AT_ONCE)
    assert all(enter(site, times=AT_ONCE))
    assert enter(site, times=1, within_s=0.2) == [False]
    site.go_on.set()
    assert [each.result(PATIENCE_S) for each in answers] == [[b"page"]] * 3 * AT_ONCE
    assert site.most == AT_ONCE


@pytest.mark.parametrize(
    "environ",
    [
        {"REQUEST_METHOD": "POST"},
        {"REQUEST_METHOD": "PUT"},
        PAGE | {"CONTENT_LENGTH": "5"},
        PAGE | {"waits": 1},
    ],
    ids=["form", "file", "page with a body", "page that waits for a worker"],
)
def test_what_may_take_long_is_in_nobodys_way(site, environ):
    ask(site, environ, times=2 * AT_ONCE)
    assert all(enter(site, times=2 * AT_ONCE))
    ask(site, PAGE, times=1)
    assert enter(site, times=1) == [True]


def test_a_failure_gives_its_turn_back():
    def fails(environ, start_response):
        raise ValueError

    for _ in range(AT_ONCE + 1):
        with pytest.raises(ValueError):
            in_turns(fails)(PAGE, None)


def test_long_work_waits_for_pages_that_compute_or_stand_in_line(site):
    answers = ask(site, PAGE, times=AT_ONCE + 1)
    assert all(enter(site, times=AT_ONCE))
    waiting = site.threads.submit(after_pages, at_most_s=PATIENCE_S)
    with pytest.raises(TimeoutError):
        waiting.result(0.2)
    site.go_on.set()
    assert [each.result(PATIENCE_S) for each in answers] == [[b"page"]] * (AT_ONCE + 1)
    waiting.result(PATIENCE_S / 2)


def test_long_work_waits_no_longer_than_it_says_and_not_for_pages_that_wait_themselves(site):
    ask(site, PAGE | {"waits": 1}, times=AT_ONCE)
    assert all(enter(site, times=AT_ONCE))
    waiting = site.threads.submit(after_pages, at_most_s=PATIENCE_S)
    waiting.result(PATIENCE_S / 2)
    ask(site, PAGE, times=1)
    assert enter(site, times=1) == [True]
    site.threads.submit(after_pages, at_most_s=0.05).result(PATIENCE_S / 2)
