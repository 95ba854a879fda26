"""Short form of the coverage of joint indicators and of moves: what is tested in full by `make soak`."""

import numpy as np
import pytest

from benchmarks.joint_coverage import LEVEL, Score, Scores, demo_of, judged, run_keys

KEYS = 12


def reach(n_cells: int) -> float:
    """Four standard errors of the coverage of a figure, as if at most eight of its cells erred apart."""
    return 4 * (LEVEL * (1 - LEVEL) / (KEYS * min(n_cells, 8))) ** 0.5


@pytest.fixture(scope="module")
def found() -> Scores:
    return run_keys(demo_of, [bytes([key]) * 16 for key in range(KEYS)])


def test_intervals_of_the_demo_hold_as_often_as_they_say(found) -> None:
    intervals = {name: each for name, each in found.items() if not name.startswith("list")}
    assert len(intervals) == 17
    for name, each in intervals.items():
        coverage = each.sums[0] / KEYS
        assert coverage.mean() > LEVEL - reach(coverage.size), name
        if each.claim == "exact":
            assert coverage.min() < 1 or coverage.size < 12, name  # not wider than they say
            assert 0.6 < each.sums[1].sum() / each.sums[2].sum() < 1.6, name


def test_lists_of_the_demo_name_only_pairs_that_someone_has(found) -> None:
    """On average they name some, of the week more than of a day."""
    lists = {name.removeprefix("list of "): each.sums[:, 0] / KEYS for name, each in found.items()
             if name.startswith("list")}  # fmt: skip
    assert set(lists) == {f"{of} of {days}" for of in ("flows", "moves") for days in ("a day", "the week")}
    assert all(right > LEVEL - reach(1) for right, _, _ in lists.values())
    for of in ("flows", "moves"):
        assert lists[f"{of} of the week"][1] > max(lists[f"{of} of a day"][1], 0.5)


@pytest.mark.parametrize(
    ("claim", "worst", "is_good"),
    [
        ("exact", 940, True), ("exact", 900, False), ("exact", 995, False), ("at least", 995, True),
        ("at least", 900, False), ("model", 900, True), ("model", 500, False),
    ],
)  # fmt: skip
def test_one_cell_far_from_what_is_said_fails_the_figure(claim, worst: int, is_good: bool) -> None:
    holds = np.array([worst, *[950] * 9])
    line, is_as_stated = judged("x", Score(claim=claim, sums=np.stack([holds, holds, holds])), n_keys=1000)
    assert is_as_stated == is_good
    assert line.endswith("yes |" if is_good else "NO |")
