"""Pytest plugin: note what each test costs in processor seconds, for the report of `scripts.test_costs`.

Children that a test waited for count with it; servers that a whole session shares do not, nor do commands
that tests/e2e/several.py forks.
"""

import json
import resource
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

CPU, WALL = "cpu_s", "wall_s"
_totals: dict[str, dict[str, float | bool]] = {}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--costs", metavar="FILE", help="add what each test costs to FILE, a JSON value a line")


def processor_s() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    cpu, wall = processor_s(), time.monotonic()
    result = yield
    _totals[item.nodeid] = {
        CPU: processor_s() - cpu,
        WALL: time.monotonic() - wall,
        "is_of_database": item.get_closest_marker("database") is not None,
    }
    return result


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Each process adds its own lines, in one write, so that they do not mix with another's."""
    target = session.config.getoption("--costs")
    if not target:
        return
    lines = [{"name": test, **cost} for test, cost in _totals.items()]
    if lines:
        rest = processor_s() - sum(cost[CPU] for cost in _totals.values())
        lines.append({"name": "", CPU: rest, WALL: 0.0})
    with Path(target).open("ab", buffering=0) as file:
        file.write("".join(json.dumps(line) + "\n" for line in lines).encode())
