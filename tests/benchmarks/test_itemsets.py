"""Short form of the benchmark of frequent items: the published order, and its switch of protocols."""

import numpy as np
import pytest

import ldp
from benchmarks import itemsets


def test_svim_finds_more_than_ldp_miner_as_published() -> None:
    stream = ldp.KeyedStream(bytes(16))
    sets = itemsets.made_up_sets(stream, n=100_000)
    truth = np.bincount(sets[sets >= 0], minlength=itemsets.D)
    assert itemsets.score(truth, truth.astype(float)) == 1
    scores = {name: itemsets.score(truth, find(sets, 4.0, stream)) for name, find in itemsets.WAYS.items()}
    assert scores["SVIM"] > scores["LDPMiner"] + 0.1
    assert scores["one item of 6, PGR"] > scores["LDPMiner"] + 0.1


def test_a_drawn_item_counts_the_whole_set_in_the_mean() -> None:
    """Each of at most six items is drawn once in six, so six times the draws are the sets with it."""
    stream = ldp.KeyedStream(bytes(15) + b"\1")
    sets = itemsets.made_up_sets(stream, n=200_000)
    small = sets[(sets >= 0).sum(axis=1) <= itemsets.L]
    truth = np.bincount(small[small >= 0], minlength=itemsets.D)[:20]
    drawn = itemsets.L * itemsets.sampled(small, stream, most=itemsets.L)[:20]
    assert drawn == pytest.approx(truth, abs=5.5 * itemsets.L * (truth.max() / itemsets.L) ** 0.5)


@pytest.mark.parametrize("most", [1, 3, 6])
def test_the_published_switch_is_wrong_for_as_many_sizes_as_there_are_dummies(most) -> None:
    assert itemsets.wrong_switches(most, 1.0) == (most, 0)
