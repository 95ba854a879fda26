"""Time of a batch by stage: one batch in one process, with a timer around each stage.

    MOBILITY_DATA_DIR=FOLDER/data python -m benchmarks.ingest_stages ROWS FOLDER [csv|gzip|zstd|parquet]

The timers are put around the functions from outside and count processor time of the thread; what a function
spends in another timed one is that one's. Everything else, databases above all, is the rest.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import django

from benchmarks.ingest_files import FORMATS, ROWS_PER_SUBSCRIBER, Format, write_csv
from benchmarks.ingest_study import write_study
from benchmarks.installation import ROOT

MAX_ROWS: Final = 20_000_000
WARM_ROWS: Final = 500_000
RECEIVE: Final = "seal and hash what arrives"
REST: Final = "databases, and everything else"
CODING, CHANGES = "mobility.batches.coding", "mobility.batches.publication.shard_changes"
SANITISER, STUDY = "mobility.vault.sanitise:StudySanitiser", "mobility.vault.studies:OpenStudy"
# Stage, and the functions that do it: module[:class], name.
STAGES: Final[tuple[tuple[str, tuple[tuple[str, str], ...]], ...]] = (
    ("open the staged file", (("mobility.batches.staging:UploadReader", "readinto"),)),
    ("find lines and fields", ((CODING, "read_chunk"),)),
    (
        "pseudonyms, times, cells, values",
        (
            ("mobility.extracts.rows.rows:RowCoder", "events_of"),
            ("mobility.extracts.rows.rows:RowCoder", "code"),
        ),
    ),
    (
        "scatter to shards",
        ((CODING, "concatenate"), (CODING, "split"), ("mobility.extracts.rows.events:Events", "pack")),
    ),
    ("seal and store events", (("mobility.batches.staging", "write_chunk"),)),
    ("open events", (("mobility.batches.staging", "read_segments"),)),
    (
        "group by subscriber and day",
        ((CHANGES, "concatenate"), (CHANGES, "group_events"), (CHANGES, "join_groups")),
    ),
    ("sanitise", ((SANITISER, "static_answers"), (SANITISER, "daily_answers"))),
    (
        "merge day state and presence, tally",
        (
            (CHANGES, "day_states"),
            (CHANGES, "merge_sightings"),
            (CHANGES, "final_answers"),
            (CHANGES, "differing_reports"),
            ("mobility.vault.state.changes", "add_days"),
        ),
    ),
    ("pack and seal state", ((STUDY, "seal_presence"), (STUDY, "seal_day"), (STUDY, "seal_delta"))),
    ("publish", (("mobility.batches.running", "publish"),)),
)


class Timers:
    """Processor seconds by stage."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._local = threading.local()

    @contextmanager
    def running(self, stage: str) -> Iterator[None]:
        """Count what this thread does in the block, but for what is counted inside it."""
        open_stages = self._open()
        self._count(open_stages)
        open_stages.append(stage)
        try:
            yield
        finally:
            self._count(open_stages)
            open_stages.pop()

    def _open(self) -> list[str]:
        if not hasattr(self._local, "open"):
            self._local.open, self._local.since = [], time.thread_time()
        stages: list[str] = self._local.open
        return stages

    def _count(self, open_stages: list[str]) -> None:
        """Give the time since the last look to the stage that is innermost."""
        now = time.thread_time()
        if open_stages:
            with self._lock:
                self.seconds[open_stages[-1]] += now - self._local.since
        self._local.since = now

    def around(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function with a timer; an iterator that it returns is timed at each step."""

        @wraps(function)
        def timed(*args: Any, **options: Any) -> Any:
            with self.running(stage):
                result = function(*args, **options)
            return self._steps(stage, result) if isinstance(result, Iterator) else result

        return timed

    def _steps(self, stage: str, steps: Iterator[Any]) -> Iterator[Any]:
        while True:
            with self.running(stage):
                try:
                    step = next(steps)
                except StopIteration:
                    return
            yield step


def put_timers(timers: Timers) -> None:
    """Put a timer around every function of every stage."""
    for stage, functions in STAGES:
        for place, name in functions:
            module, _, kind = place.partition(":")
            owner = getattr(import_module(module), kind) if kind else import_module(module)
            setattr(owner, name, timers.around(stage, getattr(owner, name)))


def measure(folder: Path, *, rows: int) -> tuple[list[tuple[str, float]], int]:
    """Nanoseconds a row of each stage, in order, and of how many rows; in its own process."""
    folder.mkdir(parents=True)
    rows = min(rows, MAX_ROWS)
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_URL")}
    environment |= {"DJANGO_SETTINGS_MODULE": "mobility.settings", "MOBILITY_DATA_DIR": str(folder / "data")}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.ingest_stages", str(rows), str(folder)],
        cwd=ROOT, env=environment, text=True, capture_output=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise SystemExit(f"the stages could not be measured\n{done.stderr}")
    return [(stage, 1e9 * seconds / rows) for stage, seconds in json.loads(done.stdout).items()], rows


def main() -> None:
    from django.core.management import call_command

    from mobility.base import memory

    rows, folder, form = int(sys.argv[1]), Path(sys.argv[2]), FORMATS[(sys.argv[3:] or ["csv"])[0]]
    django.setup()
    memory.keep_freed()  # as a worker's processes do
    for alias in ("default", "vault"):
        call_command("migrate", database=alias, verbosity=0)
    timers = Timers()
    run_batch(folder, rows=min(rows, WARM_ROWS), timers=timers, form=form)  # loads the kernels
    put_timers(timers)
    timers.seconds.clear()
    total = run_batch(folder, rows=rows, timers=timers, form=form)
    stages = {stage: timers.seconds[stage] for stage, _ in STAGES}
    rest = total - sum(stages.values())
    sys.stdout.write(json.dumps({RECEIVE: timers.seconds[RECEIVE], **stages, REST: rest}) + "\n")


def run_batch(
    folder: Path, *, rows: int, timers: Timers, form: Format = FORMATS["csv"], has_slots: bool = False
) -> float:
    """Take an extract into a new study; returns the processor seconds of the batch after its arrival."""
    from benchmarks.exactly_once.world import create
    from mobility.batches import dispatching, running
    from mobility.uploads import actions as uploads
    from mobility.vault.queries import find_study

    asked: deque[tuple[Any, ...]] = deque()
    dispatching.send = lambda task, *ids, **_: asked.append((task, *ids))
    slug, plain = f"stages-{uuid4().hex[:8]}", folder / "extract.csv"
    write_csv(plain, rows=rows)
    extract = form.make(plain)
    subscribers = rows // ROWS_PER_SUBSCRIBER
    create(write_study(folder / "studies", slug=slug, subscribers=subscribers, has_slots=has_slots))
    started = time.process_time()
    with extract.open("rb") as stream:
        batch = uploads.receive(
            stream, study=find_study(slug), filename=extract.name, by="bench", more_to_come=False,
            bytes_total=extract.stat().st_size,
        )  # fmt: skip
    received = time.process_time()
    timers.seconds[RECEIVE] = received - started
    while asked:
        task, *ids = asked.popleft()
        getattr(running, task)(*ids)
    batch.refresh_from_db()
    if batch.state != batch.State.DONE:
        raise SystemExit(f"the batch must be done, got {batch.state}: {batch.failure}")
    return time.process_time() - received


if __name__ == "__main__":
    main()
