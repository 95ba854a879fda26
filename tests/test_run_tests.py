"""Running the tests: costs are reported, the right long tests are chosen, and nothing is left behind."""

import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import psutil
import pytest
from django.conf import settings
from xdist.scheduler.loadscope import LoadScopeScheduling

from scripts import test_costs
from scripts.long_tests import TABLE, choose
from scripts.mutants import DoesNotApplyError, Mutant
from scripts.test_costs import Cost
from tests.conftest import LONGEST, ON_SITE, Groups

ZONES, ALL = "tests/e2e/test_zones.py", "tests/test_all.py"
GUARDS = {
    "guards": {ZONES: ["mobility/handover"], ALL: ["mobility", "ldp/a.py"]},
    "unguarded": {"paths": ["docs"]},
}
LEAVES_A_DAEMON = """
import os, signal, sys
from scripts.run_tests import nothing_left_behind, start, wait_for
signal.signal(signal.SIGINT, signal.default_int_handler)
DAEMON = '''
import subprocess
print(subprocess.Popen(["sleep", "60"], start_new_session=True).pid, flush=True)
'''
with nothing_left_behind() as folder:
    (folder / "left").write_text("by a test")
    print(folder, flush=True)
    wait_for(start([sys.executable, "-c", DAEMON], dict(os.environ)))
    wait_for(start(["sleep", "60"], dict(os.environ)))
"""
CODE = "def least(found):\n    if found:\n        return min(found) + 1\n    return 0\n"


def cost(name: str, cpu_s: float) -> Cost:
    return Cost(name=name, n_tests=1, cpu_s=cpu_s, wall_s=cpu_s)


def test_long_tests_of_a_file_are_one_group_and_those_on_each_database_apart() -> None:
    """A process gets whole groups: else both start the same installation."""
    assert hasattr(LoadScopeScheduling, "_split_scope")  # asked by xdist
    for test, group in (
        ("tests/e2e/test_outage.py::test_a[x]", "outage"), ("tests/e2e/test_exports.py::test_b", "site"),
        ("tests/e2e/test_upgrade.py::test_c[sqlite-1]", "upgrade-sqlite"), ("test_y.py::t[sqlite]", "y"),
    ):  # fmt: skip
        assert Groups._split_scope(None, test) == group


def test_each_group_of_long_tests_is_there() -> None:
    files = Path(settings.BASE_DIR, "tests").rglob("test_*.py")
    stems = {path.stem.removeprefix("test_") for path in files}
    assert {group.split("-")[0] for group in LONGEST} - {"site"} <= stems
    assert set(ON_SITE) <= stems


@pytest.mark.parametrize("is_ended_before", [False, True])
def test_ctrl_c_leaves_nothing_and_orphans_that_end_are_gone_at_once(is_ended_before: bool) -> None:
    words = [sys.executable, "-c", LEAVES_A_DAEMON]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    run = subprocess.Popen(words, cwd=settings.BASE_DIR, **pipes)
    folder, daemon = Path(run.stdout.readline().strip()), int(run.stdout.readline())
    assert (folder / "left").exists() and psutil.pid_exists(daemon)
    if is_ended_before:
        orphan = psutil.Process(daemon)
        orphan.terminate()
        psutil.wait_procs([orphan], timeout=20)
        assert not psutil.pid_exists(daemon)
    os.kill(run.pid, signal.SIGINT)
    run.communicate(timeout=60)
    assert not folder.exists() and not psutil.pid_exists(daemon)


def test_long_tests_guard_what_has_changed() -> None:
    for changed, chosen in (
        (["docs/index.md"], []),
        (["ldp/a.py", "docs/index.md"], ["tests/test_all.py"]),
        (["mobility/handover/send.py"], ["tests/e2e/test_zones.py", "tests/test_all.py"]),
        (["tests/e2e/test_zones.py"], ["tests/e2e/test_zones.py"]),
        (["tests/ldp/keyed/test_grr.py"], []),  # runs anyway
        (["tests/ldp/exact.py"], ["tests"]),
        (["ldp/b.py", "mobility/handover/send.py"], ["tests"]),  # of a folder that no table knows: all
    ):
        assert choose(changed, GUARDS) == chosen, changed


def test_every_module_with_long_tests_says_what_it_guards() -> None:
    root = settings.BASE_DIR
    marked = {path for path in root.glob("tests/**/test_*.py") if "mark.long" in path.read_text()}
    modules = marked.union(root.glob("tests/e2e/test_*.py")) - {Path(__file__)}
    table = tomllib.loads(TABLE.read_text())
    assert set(table["guards"]) == {path.relative_to(root).as_posix() for path in modules}
    named = {*table["unguarded"]["paths"]}.union(*table["guards"].values())
    assert [folder for folder in named if not (root / folder).exists()] == []


def test_a_folder_above_its_budget_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(test_costs, "BUDGET", tmp_path / "budget.toml")
    before = [cost("tests/a/t.py::t", 20.0), cost("tests/b/t.py::t", 5.0)]
    test_costs.write_budget({"fast": before}, loop_s=0.1)
    # Twice as slow a machine: 43 seconds there are 21.5 here, and the budget is 20.
    now = [cost("tests/a/t.py::t", 43.0), cost("tests/b/t.py::t", 13.0), cost("tests/c/t.py::t", 2.0)]
    over, new = test_costs.over_budget("fast", now, loop_s=0.2)
    assert "tests/b (fast) costs 6.5 processor seconds, its budget is 5.0" in over
    assert "tests/c has no budget" in new


def test_a_mutant_replaces_one_place() -> None:
    for old, new, mutated in (
        ("min(found)", "max(found)", CODE.replace("min", "max")),
        ("return 0", "return 1", CODE.replace("return 0", "return 1")),
        ("if found:\n    return min(found) + 1\nreturn 0", "pass", "def least(found):\n    pass\n"),
    ):
        mutant = Mutant(rule="", file="a.py", function="least", old=old, new=new, by="")
        assert mutant.applied(CODE) == mutated, old


@pytest.mark.parametrize(
    ("function", "old"), [("least", "found"), ("least", "max(found)"), ("most", "min(found)")]
)
def test_a_mutant_that_does_not_apply_is_an_error(function: str, old: str) -> None:
    with pytest.raises(DoesNotApplyError):
        Mutant(rule="", file="a.py", function=function, old=old, new="0", by="").applied(CODE)
