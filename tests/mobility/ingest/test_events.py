"""Coded events: packing, and which shard they belong to."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mobility.ingest.events import NO_VALUE, Events, concatenate, shard_of, split, split_by_shard
from tests.mobility.ingest.small_extract import events_equal, make_events

LARGEST = {"pseudonym": 2**64 - 1, "second": 2**32 - 1, "cell": 2**32 - 1, "day": 62, "code": 2**16 - 1}


@st.composite
def some_events(draw: st.DrawFn) -> Events:
    slots = draw(st.integers(0, 3))
    row = st.tuples(
        st.integers(0, LARGEST["pseudonym"]),
        st.integers(0, LARGEST["second"]),
        st.integers(0, LARGEST["cell"]),
        st.integers(1, LARGEST["day"]),
        st.lists(st.integers(0, LARGEST["code"]), min_size=slots, max_size=slots),
    )
    return make_events(draw(st.lists(row, max_size=20)), slots=slots)


@given(events=some_events())
def test_packing_changes_nothing(events: Events) -> None:
    again = Events.unpack(events.pack())
    assert events_equal(again, events)
    for name in Events.__slots__:
        assert getattr(again, name).dtype == getattr(events, name).dtype


@given(events=some_events(), cuts=st.lists(st.integers(0, 20), max_size=3))
def test_parts_put_together_are_the_whole(events: Events, cuts: list[int]) -> None:
    ends = [0, *sorted(cuts), len(events)]
    parts = [events.take(slice(start, end)) for start, end in pairwise(ends)]
    assert events_equal(concatenate(parts, slots=events.codes.shape[1]), events)


def test_no_part_at_all_has_no_events() -> None:
    none = concatenate([], slots=2)
    assert len(none) == 0
    assert none.codes.shape == (0, 2)


@pytest.mark.parametrize("n_shards", [1, 2, 4, 1024, 65_536])
def test_a_shard_is_a_range_of_pseudonyms(n_shards: int) -> None:
    width = 2**64 // n_shards
    for shard in {0, 1, n_shards // 2, n_shards - 1} & set(range(n_shards)):
        edges = np.array([shard * width, (shard + 1) * width - 1], np.uint64)
        assert shard_of(edges, n_shards=n_shards).tolist() == [shard, shard]


@given(events=some_events(), bits=st.integers(0, 6))
def test_splitting_keeps_every_event_once_and_in_order(events: Events, bits: int) -> None:
    parts = split_by_shard(events, n_shards=2**bits)
    assert all(len(part) for part in parts.values())
    for shard, part in parts.items():
        mine = np.array([int(p) >> (64 - bits) == shard for p in events.pseudonym], np.bool_)
        assert events_equal(part, events.take(np.flatnonzero(mine)))
    assert sum(map(len, parts.values())) == len(events)


@given(events=some_events(), shard_bits=st.integers(0, 4), piece_bits=st.integers(0, 4))
def test_pieces_of_a_shard_are_it_in_rising_ranges(events: Events, shard_bits: int, piece_bits: int) -> None:
    shards = split_by_shard(events, n_shards=2**shard_bits)
    found = split(events, n_shards=2**shard_bits, pieces=2**piece_bits)
    assert list(found) == sorted(shards)
    for shard, pieces in found.items():
        assert len(pieces) == 2**piece_bits
        ranges = [{int(p) >> (64 - shard_bits - piece_bits) for p in piece.pseudonym} for piece in pieces]
        assert all(those <= {(shard << piece_bits) + number} for number, those in enumerate(ranges))
        for piece in pieces:
            kept = np.isin(shards[shard].pseudonym, piece.pseudonym)
            assert events_equal(piece, shards[shard].take(np.flatnonzero(kept)))
        assert sum(map(len, pieces)) == len(shards[shard])


def test_splitting_leaves_the_events_as_they_are() -> None:
    rows = [(2**63, 1, 2, 3, [4]), (1, 5, 6, 7, [8])]
    events = make_events(rows, slots=1)
    split(events, n_shards=2, pieces=2)
    assert events_equal(events, make_events(rows, slots=1))


def test_no_value_is_no_code_of_a_category() -> None:
    assert int(NO_VALUE) == 65_535  # categories are at most 65,534: codes 0 to 65,533
