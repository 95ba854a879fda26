"""Measure when a browser first paints a board of twelve tiles, and when all of its charts are drawn.

    python -m benchmarks.first_paint [--runs 10] [--chromium FILE]

It is the board of `benchmarks.pages`: 62 days, 100 categories, a map of 100 zones. The server is in this
process, with SQLite; each run has a new browser context, so that nothing is cached. Prints milliseconds from
the start of the navigation. No request leaves the machine.
"""

import argparse
import os
import statistics
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any, Final

from playwright.sync_api import Browser, sync_playwright

from benchmarks.pages import SEASON, fresh_site, make_analyst, make_board, make_study

VIEWPORT: Final = {"width": 1440, "height": 900}
LIMIT_MS: Final = 30_000
FLAGS: Final = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync")
FIRST_PAINT: Final = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
DRAWN: Final = """() => {
  const charts = [...document.querySelectorAll("[data-figure], .map__plot")];
  return charts.length && charts.every((chart) => chart.querySelector("svg path")) && performance.now();
}"""


@contextmanager
def served() -> Iterator[str]:
    """Serve the site on this machine; yields its address."""
    from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler
    from django.core.wsgi import get_wsgi_application

    class Handler(WSGIRequestHandler):
        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    server = ThreadedWSGIServer(("127.0.0.1", 0), Handler)
    server.set_app(get_wsgi_application())
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://localhost:{server.server_port}"
    finally:
        server.shutdown()


def measure(browser: Browser, address: str, *, session: str) -> tuple[float, float]:
    """Return milliseconds to the first paint, and until all charts are drawn."""
    context = browser.new_context(viewport=VIEWPORT)  # type: ignore[arg-type]
    context.add_cookies([{"name": "sessionid", "value": session, "url": address}])
    page = context.new_page()
    try:
        page.goto(address)
        drawn = page.wait_for_function(DRAWN, timeout=LIMIT_MS).json_value()
        return float(page.evaluate(FIRST_PAINT)), float(drawn)
    finally:
        context.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--chromium", default=os.environ.get("CHROMIUM", "/usr/bin/chromium"))
    asked = parser.parse_args()
    with fresh_site():
        from django.test import Client

        reader, client = make_analyst(), Client()
        board = make_board(make_study(SEASON[0], days=SEASON[1]), owner=reader)
        client.force_login(reader)
        session = client.cookies["sessionid"].value
        with served() as site, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=asked.chromium, args=list(FLAGS))
            runs = [measure(browser, site + board.path, session=session) for _ in range(asked.runs + 1)]
            browser.close()
    for name, times in zip(("first paint", "all charts drawn"), zip(*runs[1:], strict=True), strict=True):
        line = f"{board.name}, {name}: median {statistics.median(times):.0f} ms, most {max(times):.0f} ms\n"
        sys.stdout.write(line)


if __name__ == "__main__":
    main()
