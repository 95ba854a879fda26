"""Pictures of what analysts see, for docs/screens: wide and narrow, light and dark, from a fresh demo.

    python -m scripts.screens [--language fr] [--only report days]

They are looked at before a release; what changes between two runs is the change of a page.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

ROOT: Final = Path(__file__).resolve().parent.parent
FOLDER: Final = ROOT / "docs" / "screens"
WIDTHS: Final = {"wide": 1440, "narrow": 390}
COLOURS: Final = 64  # of a picture: pages have few, and a picture stays small
STUDY: Final = "/studies/fimu-2017/"
FIRST, SECOND = "from=2017-05-31&to=2017-05-31", "with_from=2017-06-02&with_to=2017-06-03"
PAGES: Final = {
    "home": "/",
    "studies": "/studies/",
    "study": STUDY,
    "report": f"{STUDY}age/",
    "report-table": f"{STUDY}age/?view=table&measure=visitors",
    "map": f"{STUDY}sleeping_area/?view=map",
    "places": f"{STUDY}maps/?from=2017-06-02&to=2017-06-04",
    "days": f"{STUDY}age/days/?form=lines",
    "days-small": f"{STUDY}age/days/",
    "movement": f"{STUDY}gender/movement/",
    "compare": f"{STUDY}age/compare/?kind=windows&{FIRST}&{SECOND}",
    "statement": f"{STUDY}statement/",
    "api": "/api/v1/docs/",
}
CHROMIUM: Final = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync")


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, str]]:
    """A demo that is being served: (address, password of an analyst)."""
    environment = os.environ | {"MOBILITY_DATA_DIR": str(folder)}

    def manage(*words: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "manage.py", *words],
            cwd=ROOT,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
        )

    def value(*words: str) -> Any:
        output, _ = manage(*words).communicate()
        return json.loads(output)

    value("demo", "--no-serve", "--subscribers", "20000")
    password = value("create_account", "anna", "--role", "analyst", "--all-studies")["password"]
    server = manage("run", "--port", "8190")
    assert server.stdout is not None  # noqa: S101 - a pipe was asked for
    address = json.loads(server.stdout.readline())["address"].rstrip("/")
    try:
        yield address, password
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=60)


def sign_in(page: Page, address: str, *, password: str) -> None:
    page.goto(f"{address}/sign-in/")
    page.fill("input[name=username]", "anna")
    page.fill("input[name=password]", password)
    page.click("main button[type=submit]")
    page.wait_for_url(f"{address}/")


def take(browser: Browser, address: str, *, password: str, names: list[str], language: str) -> None:
    """A picture of each page in each width and colour scheme."""
    for width, pixels in WIDTHS.items():
        for scheme in ("light", "dark"):
            context = browser.new_context(
                viewport={"width": pixels, "height": 900},
                color_scheme="dark" if scheme == "dark" else "light",
                locale=language,
                reduced_motion="reduce",
            )
            page = context.new_page()
            sign_in(page, address, password=password)
            for name in names:
                page.goto(address + PAGES[name])
                page.wait_for_load_state("networkidle")
                page.wait_for_timeout(300)  # charts are drawn after the page
                if name == "places":
                    page.wait_for_selector("#density > p:not([role=status])", timeout=120_000)  # by a worker
                    page.wait_for_timeout(300)
                suffix = "" if language == "en" else f"-{language}"
                save(page.screenshot(full_page=True), FOLDER / f"{name}-{width}-{scheme}{suffix}.png")
            context.close()


def save(png: bytes, path: Path) -> None:
    """Write a picture with few colours."""
    picture = Image.open(BytesIO(png)).convert("RGB")
    picture.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--language", choices=("en", "fr"), default="en")
    parser.add_argument("--only", nargs="+", choices=list(PAGES), default=list(PAGES))
    options = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    executable = os.environ.get("CHROMIUM", "/usr/bin/chromium")
    with (
        tempfile.TemporaryDirectory(prefix="mobility-screens-") as folder,
        served(Path(folder)) as (address, password),
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=executable, args=list(CHROMIUM))
        take(browser, address, password=password, names=options.only, language=options.language)
        browser.close()


if __name__ == "__main__":
    main()
