"""Analysts who read: each signs in, then opens a page, thinks and opens the next, until stopped.

    python -m benchmarks.load_readers < plan.json

Runs in its own process with a thread for each analyst. It speaks as a browser does: a
connection that is kept, cookies, gzip, and a new connection if the server has closed the old one. Style
sheets and scripts are left out: a browser has them. Not among the pages: sign-in (each analyst signs in once,
before), figures (PNG, SVG, PDF), /maps/ and its computation, the impact assessment, bundles, notes, views
that are kept or shared, budget, people, ledger, status. A page counts as answered only with status 200 and
what a signed-in person alone is shown.

The plan is one line of JSON on standard input; the end of the input ends the reading, and what was asked for
is written as lines of JSON.
"""

import json
import re
import select
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from http.client import HTTPConnection, HTTPException, HTTPResponse
from http.cookies import SimpleCookie
from typing import Any, Final
from urllib.parse import urlencode

from benchmarks.exactly_once.chance import Chance

PATIENCE_S: Final = 60.0
TOKEN: Final = re.compile(rb'name="csrfmiddlewaretoken" value="([^"]+)"')
# How often an analyst opens each kind of page, of a hundred.
HABITS: Final[Mapping[str, int]] = {
    "home": 8, "studies": 8, "study": 10, "report": 28, "report, map": 6, "map of days (JSON)": 4, "days": 8,
    "compare": 6, "movement": 6, "statement": 2, "file (CSV)": 4, "file (JSON)": 2, "API, estimates": 6,
    "API, visitors": 2,
}  # fmt: skip
# Exports of a study of 62 days by one reader: whole files first, then drawn files of random windows.
EXPORT: Final = "export"
WHOLE: Final = ("export.xlsx", "bundle.zip", "export.json", "export.csv", "export.parquet", "export.pdf")
DRAWN: Final = ("pdf", "png", "svg")
POLL_S: Final = 2.0
MAKING: Final = 202
NO_PAGES: Final = frozenset(page for page in HABITS if page.startswith(("API", "file")) or "JSON" in page)
OK: Final = 200
SIGNED_IN: Final = b'class="header__user"'  # the form to sign out, with the person's name
GZIP_BITS: Final = 31  # as zlib calls a gzip file with the largest window


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request: when it began (monotonic clock of the machine), how long it took, and what came.

    status : 0 where no answer came; `error` says what happened instead
    retry_after : whether the answer says when to come again
    """

    page: str
    at: float
    seconds: float
    status: int
    error: str
    retry_after: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """An analyst's view of a study; `with_map` are indicators whose categories are zones."""

    slug: str
    first_day: str
    days: int
    indicators: list[str]
    with_map: list[str]


class Browser:
    """A kept connection with the cookies of one person.

    Parameters
    ----------
    address : host and port
    seen_from : the person's own address, as a proxy in front of the server would add it
    """

    def __init__(self, address: tuple[str, int], *, seen_from: str) -> None:
        self._address = address
        self._seen_from = seen_from
        self._cookies: dict[str, str] = {}
        self._connection: HTTPConnection | None = None

    def ask(
        self, method: str, path: str, *, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> tuple[HTTPResponse, bytes]:
        """The answer, redirects not followed. A connection that was closed meanwhile is opened again.

        Raises
        ------
        OSError, HTTPException : there is no answer
        """
        kept = self._kept()
        try:
            return self._ask_once(method, path, body, headers)
        except (ConnectionError, HTTPException):
            # As browsers do: the server may close a connection that rests at the moment that it is used.
            if not kept or method != "GET":
                raise
        return self._ask_once(method, path, body, headers)

    def _kept(self) -> bool:
        """Return whether the connection is used again; one that the server has closed is dropped."""
        if self._connection is not None and self._connection.sock is not None:
            readable, _, _ = select.select([self._connection.sock], [], [], 0)
            if not readable:
                return True
            self._drop()
        return False

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _ask_once(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str] | None
    ) -> tuple[HTTPResponse, bytes]:
        if self._connection is None:
            self._connection = HTTPConnection(*self._address, timeout=PATIENCE_S)
        cookies = "; ".join(f"{name}={value}" for name, value in self._cookies.items())
        said = {"Accept-Encoding": "gzip", "X-Forwarded-For": self._seen_from, **(headers or {})}
        try:
            self._connection.request(
                method, path, body=body, headers=said | ({"Cookie": cookies} if cookies else {})
            )
            response = self._connection.getresponse()
            content = response.read()
        except (OSError, HTTPException):
            self._drop()
            raise
        for line in response.headers.get_all("Set-Cookie") or []:
            for name, morsel in SimpleCookie(line).items():
                self._cookies[name] = morsel.value
        return response, content

    def sign_in(self, *, username: str, password: str) -> None:
        """Fill in the form.

        Raises
        ------
        SystemExit : the server does not let the person in
        """
        _, page = self.ask("GET", "/sign-in/", headers={"Accept-Encoding": "identity"})
        found = TOKEN.search(page)
        token = found.group(1).decode() if found else ""
        form = {"username": username, "password": password, "csrfmiddlewaretoken": token}
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        response, _ = self.ask("POST", "/sign-in/", body=urlencode(form).encode(), headers=headers)
        if response.status != 302 or "sessionid" not in self._cookies:
            raise SystemExit(f"{username} cannot sign in: status {response.status}")


class Analyst(threading.Thread):
    """One person who reads until `ended`.

    Parameters
    ----------
    think_s : mean time between an answer and the next page; each time is of [half, one and a half) of it
    """

    def __init__(
        self,
        browser: Browser,
        *,
        token: str,
        studies: Sequence[Study],
        think_s: float,
        chance: Chance,
        ended: threading.Event,
    ) -> None:
        super().__init__()
        self._browser = browser
        self._token = token
        self._studies = studies
        self._think_s = think_s
        self._chance = chance
        self._ended = ended
        self._habits = [page for page, times in HABITS.items() for _ in range(times)]
        self.asked: list[Asked] = []

    def run(self) -> None:
        while not self._ended.wait(self._think_s / 2 + self._chance.seconds(self._think_s)):
            page = self._chance.one_of(self._habits)
            self.asked.append(self._open(page))

    def _open(self, page: str) -> Asked:
        path = self._path(page)
        headers = {"Authorization": f"Bearer {self._token}"} if page.startswith("API") else None
        started = time.monotonic()
        status, error, retry_after = 0, "", False
        try:
            response, content = self._browser.ask("GET", path, headers=headers)
            status, retry_after = response.status, "Retry-After" in response.headers
            seconds = time.monotonic() - started
            error = f"{path} {wrong}" if (wrong := what_is_wrong(page, response, content)) else ""
        except (OSError, HTTPException) as failure:
            seconds = time.monotonic() - started
            error = f"{path}: {type(failure).__name__}"
        return Asked(
            page=page, at=started, seconds=seconds, status=status, error=error, retry_after=retry_after
        )

    def _path(self, page: str) -> str:
        study = self._chance.one_of(self._studies)
        if "map" in page:
            study = self._chance.one_of([each for each in self._studies if each.with_map])
        indicator = self._chance.one_of(study.with_map if "map" in page else study.indicators)
        base = f"/studies/{study.slug}/"
        first, last = self._days(study)
        window = f"from={first}&to={last}"
        other_first, other_last = self._days(study)
        compared = f"kind=windows&{window}&with_from={other_first}&with_to={other_last}"
        paths: dict[str, Callable[[], str]] = {
            "home": lambda: "/",
            "studies": lambda: "/studies/",
            "study": lambda: base,
            "report": lambda: f"{base}{indicator}/?{window}",
            "report, map": lambda: f"{base}{indicator}/?{window}&view=map",
            "map of days (JSON)": lambda: f"{base}{indicator}/map.json",
            "days": lambda: f"{base}{indicator}/days/",
            "compare": lambda: f"{base}{indicator}/compare/?{compared}",
            "movement": lambda: f"{base}{indicator}/movement/",
            "statement": lambda: f"{base}statement/",
            "file (CSV)": lambda: f"{base}{indicator}/export.csv?{window}",
            "file (JSON)": lambda: f"{base}{indicator}/export.json?{window}",
            "API, estimates": lambda: f"/api/v1{base}indicators/{indicator}/estimates?{window}",
            "API, visitors": lambda: f"/api/v1{base}visitors",
        }
        return paths[page]()

    def _days(self, study: Study) -> tuple[date, date]:
        """A random window."""
        start = self._chance.below(study.days)
        length = self._chance.below(study.days - start)
        first = date.fromisoformat(study.first_day) + timedelta(days=start)
        return first, first + timedelta(days=length)


class Exporter(Analyst):
    """One who does nothing but export a large study, as a browser does it: with the page that asks."""

    def run(self) -> None:
        (study,) = [each for each in self._studies if each.slug == "season"]
        base, number = f"/studies/{study.slug}/", self._chance.below(len(WHOLE))
        for name in (*WHOLE[number:], *WHOLE[:number]):
            self._export(base + name)
        while not self._ended.is_set():
            first, last = self._days(study)
            indicator, ending = self._chance.one_of(study.indicators), self._chance.one_of(DRAWN)
            self._export(f"{base}{indicator}/export.{ending}?from={first}&to={last}")

    def _export(self, path: str) -> None:
        """Ask until the file is there; each request is noted, and the last one as the whole wait."""
        began, headers = time.monotonic(), {"Accept": "text/html"}
        status, error = MAKING, ""
        while status == MAKING and not self._ended.is_set():
            try:
                response, _ = self._browser.ask("GET", path, headers=headers)
            except (OSError, HTTPException) as failure:
                error = f"{path}: {type(failure).__name__}"
                break
            status = response.status
            error = "" if status in (OK, MAKING) else f"{path} answered {status}"
            if status == MAKING:
                self._ended.wait(POLL_S)
        if status != MAKING:
            seconds = time.monotonic() - began
            self.asked.append(
                Asked(page=EXPORT, at=began, seconds=seconds, status=status, error=error, retry_after=False)
            )


def what_is_wrong(page: str, response: HTTPResponse, content: bytes) -> str:
    """Why an answer is not what was asked for, in words; nothing if it is.

    Files and the API answer 2xx. A page is 200 and shows who is signed in: a redirect to the form to sign in,
    or the form itself, is quick and is no page.
    """
    if page in NO_PAGES:
        return "" if response.status // 100 == 2 else f"answered {response.status}"
    if response.status != OK:
        return f"answered {response.status}"
    is_packed = response.headers["Content-Encoding"] == "gzip"
    try:
        text = zlib.decompress(content, GZIP_BITS) if is_packed else content
    except zlib.error:
        return "is cut off or garbled"
    return "" if SIGNED_IN in text else "is not the page of a signed-in person"


def analysts_of(plan: Mapping[str, Any], ended: threading.Event) -> Iterator[Analyst]:
    """The people of a plan, signed in, one after the other."""
    studies = [Study(**study) for study in plan["studies"]]
    for person in plan["analysts"]:
        host, port = plan["address"]
        browser = Browser((host, port), seen_from=person["seen_from"])
        browser.sign_in(username=person["username"], password=person["password"])
        yield (Exporter if person["exports"] else Analyst)(
            browser,
            token=person["token"],
            studies=studies,
            think_s=plan["think_s"],
            chance=Chance(plan["seed"], person["number"]),
            ended=ended,
        )


def main() -> None:
    plan = json.loads(sys.stdin.readline())
    ended = threading.Event()
    people = list(analysts_of(plan, ended))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()  # all others are ready, too
    for person in people:
        person.start()
    sys.stdin.read()
    ended.set()
    for person in people:
        person.join()
    for person in people:
        for asked in person.asked:
            sys.stdout.write(json.dumps(asdict(asked)) + "\n")


if __name__ == "__main__":
    main()
