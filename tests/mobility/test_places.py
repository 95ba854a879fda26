"""Sorted lists of pseudonyms against Python's sets."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mobility import places

EDGES = [0, 1, 2, 3, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1]
SETS = st.sets(st.sampled_from(EDGES) | st.integers(0, 40))


def listed(names: set[int]) -> np.ndarray:
    return np.array(sorted(names), np.uint64)


@given(sets=st.lists(SETS, max_size=4))
def test_union_and_the_rows_of_each_in_it(sets: list[set[int]]) -> None:
    everyone, rows_of = places.union([listed(names) for names in sets])
    assert everyone.dtype == np.uint64
    assert everyone.tolist() == sorted(set().union(*sets))
    assert [everyone[rows].tolist() for rows in rows_of] == [sorted(names) for names in sets]


@given(known=SETS, wanted=SETS)
def test_shared_and_other_rows(known: set[int], wanted: set[int]) -> None:
    mine, theirs = places.shared_rows(listed(known), listed(wanted))
    assert listed(known)[mine].tolist() == listed(wanted)[theirs].tolist() == sorted(known & wanted)
    others = places.other_rows(listed(known), listed(wanted))
    assert listed(known)[others].tolist() == sorted(known - wanted)


@given(names=st.lists(st.sampled_from(EDGES)).map(sorted), gone=SETS)
def test_others_of_a_list_that_repeats_some(names: list[int], gone: set[int]) -> None:
    listed_names = np.array(names, np.uint64)
    others = places.other_rows(listed_names, listed(gone))
    assert listed_names[others].tolist() == [name for name in names if name not in gone]


def test_few_among_many() -> None:
    """Long gaps are jumped over, to the very last one."""
    known = np.arange(0, 200_000, 2, dtype=np.uint64)
    wanted = np.array([0, 1, 777, 778, 131_070, 199_998, 199_999, 2**63], np.uint64)
    mine, theirs = places.shared_rows(known, wanted)
    assert mine.tolist() == [0, 389, 65_535, 99_999]
    assert theirs.tolist() == [0, 3, 4, 5]
