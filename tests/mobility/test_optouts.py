"""Opt-outs of a shard: a set that only grows."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mobility.optouts import OptOuts

NAMES = st.lists(st.sampled_from([0, 1, 2**62, 2**63, 2**64 - 1]) | st.integers(0, 2**64 - 1), max_size=8)


def opted(names: list[int]) -> OptOuts:
    return OptOuts.of(np.array(names, np.uint64))


@given(names=NAMES, more=NAMES)
def test_union_holds_everyone_once(names: list[int], more: list[int]) -> None:
    both = opted(names).union(opted(more))
    assert both.pseudonym.tolist() == sorted({*names, *more})
    assert len(both) == len({*names, *more})


@given(names=NAMES, bits=st.integers(0, 3))
def test_shards_together_hold_everyone(names: list[int], bits: int) -> None:
    parts = opted(names).split(n_shards=2**bits)
    assert all(map(len, parts.values()))
    for shard, part in parts.items():
        assert part.pseudonym.tolist() == sorted({name for name in names if name >> (64 - bits) == shard})
    assert sum(map(len, parts.values())) == len(set(names))


@given(names=NAMES)
def test_packing_changes_nothing(names: list[int]) -> None:
    assert OptOuts.unpack(opted(names).pack()).pseudonym.tolist() == sorted(set(names))


def test_nobody() -> None:
    assert len(OptOuts.unpack(OptOuts.empty().pack())) == 0
    assert OptOuts.empty().split(n_shards=4) == {}
