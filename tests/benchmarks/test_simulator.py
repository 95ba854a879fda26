"""Short form of the benchmark: errors on the demo are as the simulator foretells, over a few keys."""

import numpy as np
import pytest

from benchmarks import simulator, soak
from benchmarks.simulator import Score
from ldp.params import Mechanism

pytestmark = pytest.mark.slow

KEYS = 40
# Of what the page cannot know: days differ in visitors, categories in size.
BIAS = 0.03


@pytest.mark.long
@pytest.mark.parametrize("mechanism", ["smp-grr", "smp-adp", "spl-grr", "rsfd-ouez"])
def test_half_widths_are_those_that_are_foretold(mechanism: Mechanism) -> None:
    keys = soak.study_keys(KEYS, seed=3)
    squared = simulator.squared_errors(mechanism, "profile", keys)
    found = simulator.scores(mechanism, "profile", squared)
    assert len(found) == 2 * 7
    for score in found:
        name = f"{score.indicator}, {score.kind}"
        assert score.doubt < 0.12, name
        assert abs(score.ratio - 1) < BIAS + 4 * score.doubt, name
    # Over all of them the doubt is small: this is what fails if a factor is wrong.
    together = float(np.mean([score.ratio for score in found]))
    assert abs(together - 1) < 0.05


def test_the_crowd_is_what_anybody_can_count() -> None:
    crowd = simulator.expected_crowd()
    assert crowd.visitors == pytest.approx(190_345 / 7)
    assert crowd.in_all(7) == pytest.approx(88_935)


def test_table_marks_what_is_out_of_tolerance() -> None:
    good = Score(
        mechanism="smp-grr", indicator="age", kind="one day", foretold=0.0594, measured=0.06, doubt=0.01
    )
    bad = Score(
        mechanism="smp-grr", indicator="age", kind="one day", foretold=0.07, measured=0.06, doubt=0.01
    )
    assert simulator.line(good) == "| smp-grr | age | one day | ± 5.94 | ± 6.00 | 0.990 (± 0.010) |"
    assert simulator.line(bad).endswith("1.167 (± 0.010) out of tolerance |")
