"""Exactly once: something is killed at a random point in each run, and every tally ends as if nothing had.

    python -m benchmarks.exactly_once --runs 100
    python -m benchmarks.exactly_once --runs 8 --faults "Redis killed" --seed 3

The same week of CDRs arrives in each run, in one of several ways, on PostgreSQL, Redis and two workers.
Prints a line per run and a summary by fault; ends with 1 unless all tallies are byte-identical to those of an
undisturbed run, every batch is done, and nothing is left in staging, outbox and keystore.
"""

import argparse
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.exactly_once.chance import Chance
from benchmarks.exactly_once.faults import FAULTS, Fault
from benchmarks.exactly_once.scenarios import SCENARIOS, Upload, Week
from benchmarks.exactly_once.world import LONGEST_S, HangError, World
from benchmarks.ingest_files import write_csv

ROWS: Final = 500_000
LOG_LINES: Final = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Result of a run."""

    fault: str
    seconds: float
    problems: Sequence[str]


class Soak:
    """All runs of one installation."""

    def __init__(self, world: World, *, rows: int, seed: int) -> None:
        self._world = world
        self._seed = seed
        extract = world.folder / "week.csv"
        write_csv(extract, rows=rows)
        files = world.folder / "files"
        files.mkdir()
        self._week = Week(extract, files)
        self._expected: dict[str, bytes] = {}
        self._undisturbed_s = 0.0

    def undisturbed(self) -> float:
        """Run without a fault: what every other run must end with. The first one compiles kernels."""
        for _ in range(2):
            chance = Chance(self._seed, 0)
            slug, uploads = self._world.new_study(), SCENARIOS["in order"](self._week, chance)
            started = time.monotonic()
            self._send(slug, uploads, Fault(self._world, chance), is_patient=False)
            self._world.settle(slug, uploads)
            self._undisturbed_s = time.monotonic() - started
            self._expected = self._world.tallies(slug)
            self._world.patience_s = LONGEST_S
            if problems := self._world.problems(slug, self._expected):
                raise SystemExit(f"the undisturbed run must leave nothing: {'; '.join(problems)}")
        if not any(self._expected["visitors"]):
            raise SystemExit("the undisturbed run counted nobody")
        return self._undisturbed_s

    def run(self, number: int, *, fault: str, scenario: str) -> Outcome:
        """One run with a fault."""
        started = time.monotonic()
        chance = Chance(self._seed, number)
        try:
            problems = self._disturbed(chance, fault=fault, scenario=scenario)
        except HangError as error:
            problems = [f"hangs: {error}"]
        return Outcome(fault=fault, seconds=time.monotonic() - started, problems=problems)

    def _disturbed(self, chance: Chance, *, fault: str, scenario: str) -> list[str]:
        slug, uploads = self._world.new_study(), SCENARIOS[scenario](self._week, chance)
        happening = FAULTS[fault](self._world, chance)
        is_patient = bool(chance.below(2))
        striker = Striker(happening, after_s=chance.seconds(happening.latest * self._undisturbed_s))
        striker.start()
        self._send(slug, uploads, happening, is_patient=is_patient)
        striker.join()
        happening.afterwards(slug, uploads)
        self._world.settle(slug, uploads)
        return [*striker.problems, *self._world.problems(slug, self._expected)]

    def _send(self, slug: str, uploads: Sequence[Upload], fault: Fault, *, is_patient: bool) -> None:
        """Send the files; a patient sender waits for the end of each batch."""
        for number, upload in enumerate(uploads):
            fault.before(slug, number, upload)
            self._world.send(slug, upload)
            if is_patient:
                self._world.settle(slug, uploads[: number + 1])


class Striker(threading.Thread):
    """Lets a fault strike after some seconds; what it raises is kept."""

    def __init__(self, fault: Fault, *, after_s: float) -> None:
        super().__init__()
        self._fault = fault
        self._after_s = after_s
        self.problems: list[str] = []

    def run(self) -> None:
        time.sleep(self._after_s)
        try:
            self._fault.strike()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the run must show any error
            self.problems.append(f"the fault itself failed: {type(error).__name__}: {error}")


def report(outcomes: Sequence[Outcome]) -> bool:
    """Print the summary; whether all runs ended well."""
    runs = Counter(outcome.fault for outcome in outcomes)
    failed = Counter(outcome.fault for outcome in outcomes if outcome.problems)
    write("")
    for fault, count in runs.items():
        write(f"{fault:<42} {count:>4} runs, {count - failed[fault]:>4} as if nothing had happened")
    write(f"{len(outcomes)} runs, {failed.total()} with a difference")
    return not failed


def write(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def last_words(world: World) -> str:
    """Return the last log lines of the workers."""
    logs = [worker.log.read_text(errors="replace").splitlines() for worker in world.installation.workers]
    return "\n".join("\n".join(lines[-LOG_LINES:]) for lines in logs)


def soak(world: World, options: argparse.Namespace) -> bool:
    """All runs; whether they ended well."""
    runs = Soak(world, rows=options.rows, seed=options.seed)
    write(f"undisturbed: {runs.undisturbed():.1f} s")
    outcomes = []
    for number in range(1, options.runs + 1):
        # Every fault meets every way of sending, as far as there are runs.
        turn, place = divmod(number - 1, len(options.faults))
        fault, ways = options.faults[place], list(SCENARIOS)
        scenario = ways[(turn + place) % len(ways)]
        outcome = runs.run(number, fault=fault, scenario=scenario)
        outcomes.append(outcome)
        result = "; ".join(outcome.problems) or "identical"
        write(f"run {number:>4}  {fault:<42} {scenario:<12} {outcome.seconds:>5.1f} s  {result}")
        if outcome.problems:
            write(last_words(world))
    return report(outcomes)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--rows", type=int, default=ROWS, help="of the week; a file is read in chunks of 4 MiB"
    )
    parser.add_argument("--faults", nargs="+", choices=list(FAULTS), default=list(FAULTS))
    parser.add_argument("--folder", type=Path, help="an empty one, where everything stays for a look")
    options = parser.parse_args()
    if options.folder:
        return run(options.folder, options)
    with tempfile.TemporaryDirectory(prefix="mobility-soak-") as name:
        return run(Path(name), options)


def run(folder: Path, options: argparse.Namespace) -> int:
    """Everything, in `folder`; the exit code."""
    world = World(folder)
    with world.installation:
        world.connect()
        return 0 if soak(world, options) else 1


if __name__ == "__main__":
    sys.exit(main())
