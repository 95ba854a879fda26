"""Page times and failures while many analysts read and large files are ingested.

    python -m benchmarks.load [--analysts 50] [--batches 4] [--rows 5000000] [--restart redis|postgres|both]
    python -m benchmarks.load --batches 0 --exporters 8 [--seconds 120]

Two PostgreSQL servers that wait for the disk at each commit, Redis, the web server of the image, and one
worker with two processes, used by nothing else. They read the demo, a study of 62 days, and those that the
files go into. With --restart Redis is killed (it starts again empty) or PostgreSQL is restarted (`fast`) when
all files are received and the batches are at work.

With --exporters N, N more readers only export the study of 62 days and seven indicators: every
file of the study, then drawn files of random windows.

Prints tables and JSON. Ends with 1 if a goal is missed: no request fails, the 95th percentile of each kind of
page is below 300 ms (of a kind with fewer than 20 requests: with all others only), every batch ends well and
counts what its file holds. During an outage, and two seconds after, requests may be refused with 503
and Retry-After, and nothing else; they are counted apart. No request takes more than 30 s, also then.

Not among the pages: sign-in, figures (PNG, SVG, PDF), /maps/ and its computation, the impact assessment,
bundles, notes, views that are kept or shared, budget, people, ledger, status.
"""

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from benchmarks import load_report
from benchmarks.ingest import check
from benchmarks.ingest_files import ROWS_PER_SUBSCRIBER, Truth, write_csv
from benchmarks.ingest_study import write_study
from benchmarks.installation import ROOT, Installation
from benchmarks.load_feeds import Feed
from benchmarks.load_readers import Asked
from benchmarks.load_report import Outage, Run, Used
from benchmarks.load_web import Web
from benchmarks.memory import Peak, Watch, processor_seconds, watched
from scripts import services

RESTARTS: Final = {"redis": ("redis",), "postgres": ("postgres",), "both": ("redis", "postgres")}
WARM_ROWS: Final = 500_000
DEMO_SUBSCRIBERS: Final = 20_000
READER_PROCESSES: Final = 2
WARM_UP_S: Final = 15.0  # of reading before the files come: first requests import what they need
AT_WORK_S: Final = 3.0  # from the last byte of a file to the restart, and between two restarts
AWAY_S: Final = 1.0
SETTLE_S: Final = 2.0
AFTERWARDS_S: Final = 5.0  # of reading when all batches have ended
SAMPLE_S: Final = 1.0
MAX_BATCHES: Final = 30


class Load:
    """An installation under load.

    Parameters
    ----------
    folder : for everything that is written
    """

    def __init__(self, folder: Path, options: argparse.Namespace) -> None:
        self._folder = folder
        self._options = options
        self._slugs = [f"load-{number}" for number in range(1, options.batches + 1)]
        self.installation = Installation(
            folder, is_postgres=True, environment={"MOBILITY_TRUSTED_PROXIES": "1"}
        )
        address = ("127.0.0.1", services.free_port())
        self.web = Web(environment=self.installation.environment, folder=folder, address=address)

    def run(self) -> Run:
        """Everything, from empty databases to the totals."""
        path = self._folder / "extract.csv"
        say(f"writing {self._options.rows:,} rows")
        truth = write_csv(path, rows=self._options.rows)
        with self.installation, ExitStack() as running:
            self.installation.connect()
            self._fill()
            running.callback(self.web.stop)
            self.web.start()
            tokens = {slug: self._feed_token(slug) for slug in self._slugs}
            people = running.enter_context(self._people())
            feeds = [
                Feed(self.web.address, study=slug, token=tokens[slug], path=path) for slug in self._slugs
            ]
            say("the analysts begin")
            people.begin()
            time.sleep(WARM_UP_S)
            warm_at = time.monotonic()
            used, outages = self._measure(feeds)
            asked = list(people.end())
            wrong = list(self._wrong_totals(feeds, truth))
        return Run(
            warm_at=warm_at, asked=asked, sent=[feed.sent for feed in feeds], outages=outages, used=used,
            rows_per_file=truth.rows, analysts=self._options.analysts, think_s=self._options.think,
            wrong_totals=wrong, exporters=self._options.exporters,
        )  # fmt: skip

    def _fill(self) -> None:
        """Studies to read, those that files go into, and kernels that are compiled."""
        from benchmarks.pages import SEASON, make_study

        manage = self.installation.manage
        say("the demo, a season, and the studies of the files")
        manage("demo", "--no-serve", "--subscribers", str(DEMO_SUBSCRIBERS))
        make_study(SEASON[0], days=SEASON[1])
        subscribers = self._options.rows // ROWS_PER_SUBSCRIBER
        for slug in (*self._slugs, "warm"):
            manage(
                "create_study", str(write_study(self._folder / "studies", slug=slug, subscribers=subscribers))
            )
        warm = self._folder / "warm.csv"
        write_csv(warm, rows=WARM_ROWS)
        manage("ingest", "warm", str(warm))
        self.installation.run_text("collectstatic", "--no-input", "--verbosity", "0")

    def _feed_token(self, slug: str) -> str:
        from mobility.uploads.feeds.actions import create_token
        from mobility.vault.queries import find_study
        from reports.accounts.actions import COMMAND_LINE

        return create_token(find_study(slug), name="load", days=1, by=COMMAND_LINE)[1]

    @contextmanager
    def _people(self) -> "Iterator[People]":
        """Signed-in analysts, in their own processes."""
        from django.db import connections

        plans = self._plans()
        connections.close_all()
        with People(plans, environment=self.installation.environment, folder=self._folder) as people:
            yield people

    def _plans(self) -> list[dict[str, Any]]:
        from reports.studies.models import Study

        studies = [
            _known(study)
            for study in Study.objects.exclude(slug="warm").prefetch_related("indicators").order_by("slug")
        ]
        n_analysts, n_exporters = self._options.analysts, self._options.exporters
        say(f"{n_analysts + n_exporters} accounts")
        analysts = [
            _account(number, exports=number > n_analysts) for number in range(1, n_analysts + n_exporters + 1)
        ]
        shared = {"address": self.web.address, "studies": studies, "think_s": self._options.think, "seed": 8}
        return [shared | {"analysts": analysts[turn::READER_PROCESSES]} for turn in range(READER_PROCESSES)]

    def _measure(self, feeds: Sequence[Feed]) -> tuple[list[Used], list[Outage]]:
        """Send, strike, and wait for the end."""
        groups = self._groups()
        before = {
            name: (processor_seconds(watch.processes()), len(watch.roots)) for name, watch in groups.items()
        }
        with ExitStack() as watching:
            peaks = {
                name: watching.enter_context(watched(watch, every_s=SAMPLE_S))
                for name, watch in groups.items()
            }
            time.sleep(self._options.seconds)
            say("the files are sent")
            for feed in feeds:
                feed.start()
            outages = self._strike(feeds, groups)
            for feed in feeds:
                feed.join()
            say("the batches have ended")
            time.sleep(AFTERWARDS_S)
        return [_used(name, watch, *before[name], peaks[name]) for name, watch in groups.items()], outages

    def _groups(self) -> dict[str, Watch]:
        return {
            "web server": Watch([self.web.pid]),
            "worker": Watch([worker.pid for worker in self.installation.workers]),
            "PostgreSQL": Watch([server.pid for server in self.installation.postgres.values()]),
            "Redis": Watch([self.installation.redis.pid]),
        }

    def _strike(self, feeds: Sequence[Feed], groups: dict[str, Watch]) -> list[Outage]:
        """Restart what is asked for in the middle of the work."""
        if not self._options.restart:
            return []
        for feed in feeds:
            feed.is_received.wait()
        outages = []
        for what in RESTARTS[self._options.restart]:
            time.sleep(AT_WORK_S)
            if not any(feed.is_alive() for feed in feeds):
                raise SystemExit("all batches ended before the restart: use more rows")
            say(f"{what} is restarted")
            outages.append(self._restart(what))
        for name, watch in self._groups().items():
            groups[name].roots[:] = [*{*groups[name].roots, *watch.roots}]
        return outages

    def _restart(self, what: str) -> Outage:
        servers: dict[str, tuple[list[services.Server], signal.Signals]] = {
            "redis": ([self.installation.redis], signal.SIGKILL),
            "postgres": (list(self.installation.postgres.values()), signal.SIGINT),
        }
        chosen, how = servers[what]
        stopped = time.monotonic()
        for server in chosen:
            server.stop(how)
        time.sleep(AWAY_S)
        for server in chosen:
            server.start()
        started = time.monotonic()
        return Outage(what=what, stopped=stopped, started=started, settled=started + SETTLE_S)

    def _wrong_totals(self, feeds: Sequence[Feed], truth: Truth) -> Iterator[str]:
        """Compare batches and published totals with the contents of the file."""
        from django.db import connections

        from benchmarks.exactly_once.world import remains
        from mobility.batches.outcomes import summary
        from mobility.vault.models.batch import Batch
        from reports.estimates.queries import Window, visitor_unions, window_report
        from reports.studies.models import Indicator, Study

        connections.close_all()
        for feed in feeds:
            slug = feed.sent.study
            try:
                # The database says more than the answer to a feed.
                check(summary(Batch.objects.get(pk=feed.sent.batch["batch"])), truth)
            except (SystemExit, KeyError) as error:
                yield f"{slug}: {error}"
                continue
            study = Study.objects.get(slug=slug)
            visitors = visitor_unions(study)
            by_day = tuple(int(visitors[day, day]) for day in range(1, study.days + 1))
            if by_day != truth.visitors or int(visitors[1, study.days]) != truth.subscribers:
                yield f"{slug}: visitors by day must be {truth.visitors}, got {by_day}"
            whole = Window(1, study.days)
            reports = [
                window_report(each, whole).n_reports or 0 for each in Indicator.objects.filter(study=study)
            ]
            if sum(reports) != truth.subscribers:
                yield f"{slug}: answers must be {truth.subscribers}, got {sum(reports)}"
            yield from (f"{slug}: {left}" for left in remains(slug))


class People:
    """Processes that hold the analysts."""

    def __init__(self, plans: Sequence[dict[str, Any]], *, environment: dict[str, str], folder: Path) -> None:
        self._plans = plans
        self._environment = environment
        self._folder = folder
        self._processes: list[subprocess.Popen[str]] = []

    def __enter__(self) -> "People":
        for number, plan in enumerate(self._plans):
            with (self._folder / f"readers{number}.log").open("wb") as log:
                process = subprocess.Popen(
                    [sys.executable, "-m", "benchmarks.load_readers"], cwd=ROOT, env=self._environment,
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
                )  # fmt: skip
            self._processes.append(process)
            self._tell(process, json.dumps(plan))
        for number, process in enumerate(self._processes):
            if process.stdout is None or process.stdout.readline() != "ready\n":
                log_text = (self._folder / f"readers{number}.log").read_text(errors="replace")
                self.__exit__()
                raise SystemExit(f"the analysts cannot sign in\n{log_text}")
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
            process.wait()

    @staticmethod
    def _tell(process: "subprocess.Popen[str]", line: str) -> None:
        assert process.stdin is not None  # noqa: S101 - it was opened as a pipe
        process.stdin.write(line + "\n")
        process.stdin.flush()

    def begin(self) -> None:
        """Let them read."""
        for process in self._processes:
            self._tell(process, "begin")

    def end(self) -> Iterator[Asked]:
        """End the reading; what they asked for."""
        for process in self._processes:
            if process.stdin is not None:
                process.stdin.close()
        for process in self._processes:
            assert process.stdout is not None  # noqa: S101 - it was opened as a pipe
            for line in process.stdout:
                yield Asked(**json.loads(line))


def _known(study: Any) -> dict[str, Any]:
    from reports.maps import zones

    indicators = list(study.indicators.all())
    return {
        "slug": study.slug,
        "first_day": study.first_day.isoformat(),
        "days": study.days,
        "indicators": [each.slug for each in indicators],
        "with_map": [each.slug for each in indicators if zones.zones_of(each)],
    }


def _account(number: int, *, exports: bool) -> dict[str, Any]:
    from reports.accounts.actions import create_account
    from reports.accounts.grants import give_grant
    from reports.sharing.actions import create_token
    from reports.studies.policies import Role

    account, password = create_account(f"analyst-{number}", roles=[Role.ANALYST])
    give_grant(account, study=None)
    _, token = create_token(name="load", days=1, study=None, by=account)
    return {
        "number": number,
        "exports": exports,
        "username": account.username,
        "password": password,
        "token": token,
        "seen_from": f"198.51.100.{number % 250 + 1}",
    }


def _used(name: str, watch: Watch, before: float, n_roots: int, peak: Peak) -> Used:
    was_restarted = len(watch.roots) > n_roots
    cpu_s = None if was_restarted else processor_seconds(watch.processes()) - before
    return Used(name=name, cpu_s=cpu_s, peak_mb=peak.highest / 1e6)


def say(text: str) -> None:
    """Progress for anyone who waits."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--analysts", type=int, default=50)
    parser.add_argument("--batches", type=int, default=4, choices=range(MAX_BATCHES + 1), metavar="N")
    parser.add_argument("--exporters", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=0.0, help="of reading before the files are sent")
    parser.add_argument("--rows", type=int, default=5_000_000, help="of each file")
    parser.add_argument(
        "--think", type=float, default=1.0, help="mean seconds from an answer to the next page"
    )
    parser.add_argument("--restart", choices=list(RESTARTS))
    parser.add_argument("--folder", type=Path, help="an empty one, where everything stays for a look")
    parser.add_argument("--json", type=Path, help="a file for the result, beside the output")
    options = parser.parse_args()
    with ExitStack() as stack:
        name = options.folder or stack.enter_context(tempfile.TemporaryDirectory(prefix="mobility-load-"))
        result = Load(Path(name), options).run()
    return report(result, to=options.json)


def report(result: Run, *, to: Path | None) -> int:
    """Print it; the exit code."""
    document = json.dumps(load_report.as_json(result), indent=1)
    if to:
        to.write_text(document + "\n")
    sys.stdout.write(f"{load_report.tables(result)}\n\n```json\n{document}\n```\n\n")
    problems = load_report.missed(result)
    sys.stdout.write("".join(f"missed: {problem}\n" for problem in problems) or "all goals are met\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
