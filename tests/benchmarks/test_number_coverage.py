"""Short form of the coverage of numbers: both kinds of reports are counted as they are drawn."""

from fractions import Fraction

import ldp
from benchmarks.number_coverage import ALIKE, SCALE, coverage


def test_nearly_all_intervals_hold_the_truth_and_narrower_ones_do_not() -> None:
    channel = ldp.wave_channel(epsilon=Fraction(2), n_levels=len(SCALE.ends))
    found = coverage(channel, ALIKE[:4000], keys=60)
    assert (found > 0.85).all()
    assert (found[:2] < 1).all()
