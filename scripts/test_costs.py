"""Report what a run of the tests cost, by folder, and compare it with tests/budget.toml.

Costs are processor seconds, as `tests.costs` notes them for each test. A budget was set on some machine: the
processor seconds that a reference loop takes here and took there translate between the two.
"""

import json
import time
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
BUDGET: Final = ROOT / "tests" / "budget.toml"
N_DEAREST: Final = 10
GROWTH: Final = 1.1
LEAST_GROWTH_S: Final = 1.0  # below it, noise
START: Final = "starting up"


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Cost of one test, or of all tests of a folder; whether a test is marked `database`."""

    name: str
    n_tests: int
    cpu_s: float
    wall_s: float
    is_of_database: bool = False


def reference_s() -> float:
    """Processor seconds of a fixed piece of work: dictionaries, integers and strings, as in most tests."""
    return min(_loop_s() for _ in range(3))


def _loop_s() -> float:
    started = time.process_time()
    counts: dict[str, int] = {}
    for number in range(300_000):
        key = str(number % 5_000)
        counts[key] = counts.get(key, 0) + number
    sorted(counts.items())
    return time.process_time() - started


def read_tests(path: Path) -> list[Cost]:
    """Each test of a run once; a process's start is a test without a name."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [Cost(n_tests=1, **json.loads(line)) for line in lines]


def by_folder(tests: Iterable[Cost]) -> list[Cost]:
    """Sums by the folder of the test's module."""
    groups: dict[str, list[Cost]] = defaultdict(list)
    for test in tests:
        folder = Path(test.name.partition("::")[0]).parent.as_posix() if test.name else START
        groups[folder].append(test)
    return [_total(folder, groups[folder]) for folder in sorted(groups)]


def _total(name: str, costs: list[Cost]) -> Cost:
    return Cost(
        name=name,
        n_tests=sum(cost.n_tests for cost in costs),
        cpu_s=sum(cost.cpu_s for cost in costs),
        wall_s=sum(cost.wall_s for cost in costs),
    )


def report(run: str, tests: list[Cost]) -> Iterator[str]:
    """Lines about one run: its folders, and the slowest tests."""
    named = [test for test in tests if test.name]
    yield f"{run}: {len(named)} tests; processor seconds by folder:"
    for cost in by_folder(tests):
        count = f"{cost.n_tests} processes" if cost.name == START else f"{cost.n_tests} tests"
        yield f"  {cost.cpu_s:7.1f}  {cost.name} ({count})"
    yield f"  {_total('', tests).cpu_s:7.1f}  in all; the slowest tests:"
    for test in sorted(named, key=lambda test: -test.cpu_s)[:N_DEAREST]:
        yield f"  {test.cpu_s:7.1f}  {test.name}"


def over_budget(run: str, tests: list[Cost], *, loop_s: float) -> Iterator[str]:
    """Warn of each folder that costs more than a tenth above its budget; a run may have none."""
    budget = tomllib.loads(BUDGET.read_text(encoding="utf-8"))
    if run not in budget:
        return
    allowed, scale = budget[run], budget["reference_s"] / loop_s
    for cost in by_folder(tests):
        scaled_s = cost.cpu_s * scale
        if cost.name not in allowed:
            yield f"{cost.name} has no budget in tests/budget.toml ({run}): it costs {scaled_s:.1f} s"
        elif scaled_s > max(allowed[cost.name] * GROWTH, allowed[cost.name] + LEAST_GROWTH_S):
            yield (
                f"{cost.name} ({run}) costs {scaled_s:.1f} processor seconds, "
                f"its budget is {allowed[cost.name]:.1f}: make its tests cheaper, or raise the budget"
            )


def write_budget(costs: dict[str, list[Cost]], *, loop_s: float) -> None:
    """Set the budgets of the given runs to what they cost now, and keep those of other runs."""
    known = tomllib.loads(BUDGET.read_text(encoding="utf-8")) if BUDGET.exists() else {}
    scale = known.setdefault("reference_s", round(loop_s, 4)) / loop_s
    for run, tests in costs.items():
        known[run] = {cost.name: round(cost.cpu_s * scale, 1) for cost in by_folder(tests)}
    lines = [
        "# Processor seconds that the tests of a folder may cost: `make test` warns above a tenth more.",
        '# Set by `make test ARGS="--set-budget"`, on a machine whose reference loop took:',
        f"reference_s = {known.pop('reference_s')}",
    ]
    for run, folders in known.items():
        lines += ["", f"[{run}]", *(f'"{name}" = {seconds}' for name, seconds in folders.items())]
    BUDGET.write_text("\n".join(lines) + "\n", encoding="utf-8")
