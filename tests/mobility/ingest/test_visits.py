"""Visits and values of a shard against plain Python, whatever the order and the chunks of its events."""

from itertools import pairwise, permutations
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mobility.ingest.events import NO_VALUE, Events, concatenate, split, split_by_shard
from mobility.ingest.visits import GroupedEvents, group_events, join_groups
from tests.mobility.ingest.small_extract import events_equal, make_events

NONE = int(NO_VALUE)
PSEUDONYMS = [0, 1, 2**63, 2**64 - 1]

Row = tuple[int, int, int, int, list[int]]  # pseudonym, second, cell, day, codes


class Plain(NamedTuple):
    """What `group_events` says, as plain values."""

    visits: dict[tuple[int, int], tuple[int, int]]
    values: dict[int, tuple[int, ...]]
    conflicting: int
    duplicates: int


def plain(grouped: GroupedEvents) -> Plain:
    visits, values = grouped.visits, grouped.values
    keys = list(zip(visits.pseudonym.tolist(), visits.day.tolist(), strict=True))
    assert keys == sorted(set(keys))
    assert values.pseudonym.tolist() == sorted(set(values.pseudonym.tolist()))
    assert type(grouped.duplicates) is type(values.conflicting) is int  # they become JSON
    spans = zip(visits.first.tolist(), visits.last.tolist(), strict=True)
    codes = map(tuple, values.codes.tolist())
    return Plain(
        visits=dict(zip(keys, spans, strict=True)),
        values=dict(zip(values.pseudonym.tolist(), codes, strict=True)),
        conflicting=values.conflicting,
        duplicates=grouped.duplicates,
    )


def by_hand(rows: list[Row], *, slots: int) -> Plain:
    visits: dict[tuple[int, int], tuple[int, int]] = {}
    given_codes: dict[int, list[list[tuple[int, int]]]] = {}
    for pseudonym, second, _, day, codes in rows:
        first, last = visits.get((pseudonym, day), (second, second))
        visits[pseudonym, day] = min(first, second), max(last, second)
        mine = given_codes.setdefault(pseudonym, [[] for _ in range(slots)])
        for slot, code in enumerate(codes):
            if code != NONE:
                mine[slot].append((second, code))
    return Plain(
        visits=visits,
        values={
            pseudonym: tuple(min(slot)[1] if slot else NONE for slot in mine)
            for pseudonym, mine in given_codes.items()
        },
        conflicting=sum(
            len({code for _, code in slot}) > 1 for mine in given_codes.values() for slot in mine
        ),
        duplicates=len(rows) - len({row[:3] for row in rows}),
    )


@st.composite
def some_rows(draw: st.DrawFn) -> tuple[int, list[Row]]:
    """Few subscribers and moments, so that everything repeats; a moment has one day, as from the clock."""
    slots = draw(st.integers(0, 5))
    row = st.tuples(
        st.sampled_from(PSEUDONYMS),
        st.sampled_from([0, 1, 50, 99, 100, 150, 199, 2**32 - 1]),
        st.sampled_from([0, 1, 2**32 - 1]),
        st.lists(st.sampled_from([0, 1, 2, 65_533, NONE]), min_size=slots, max_size=slots),
    )
    rows = draw(st.lists(row, max_size=40))
    return slots, [(p, second, cell, min(second // 100, 61) + 1, codes) for p, second, cell, codes in rows]


@settings(max_examples=200)
@given(drawn=some_rows(), data=st.data())
def test_any_events_in_any_order_and_chunks(drawn: tuple[int, list[Row]], data: st.DataObject) -> None:
    slots, rows = drawn
    expected = by_hand(rows, slots=slots)
    assert plain(group_events(make_events(rows, slots=slots))) == expected
    mixed = data.draw(st.permutations(rows))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=3)))
    ends = [0, *cuts, len(rows)]
    chunks = [make_events(mixed[a:b], slots=slots) for a, b in pairwise(ends)]
    assert plain(group_events(concatenate(chunks, slots=slots))) == expected


@settings(max_examples=60)
@given(drawn=some_rows(), bits=st.integers(0, 3))
def test_shards_together_are_the_whole(drawn: tuple[int, list[Row]], bits: int) -> None:
    slots, rows = drawn
    expected = by_hand(rows, slots=slots)
    parts = split_by_shard(make_events(rows, slots=slots), n_shards=2**bits)
    found = [
        plain(group_events(concatenate([Events.unpack(part.pack())], slots=slots))) for part in parts.values()
    ]
    assert {key: span for part in found for key, span in part.visits.items()} == expected.visits
    assert {key: codes for part in found for key, codes in part.values.items()} == expected.values
    assert sum(part.conflicting for part in found) == expected.conflicting
    assert sum(part.duplicates for part in found) == expected.duplicates


@settings(max_examples=60)
@given(drawn=some_rows(), bits=st.integers(0, 3))
def test_pieces_joined_are_the_shard(drawn: tuple[int, list[Row]], bits: int) -> None:
    slots, rows = drawn
    events = make_events(rows, slots=slots)
    for pieces in split(events, n_shards=1, pieces=2**bits).values():
        joined = join_groups([group_events(piece) for piece in pieces])
        assert plain(joined) == by_hand(rows, slots=slots)
        assert joined.visits.pseudonym.dtype == np.uint64


@settings(max_examples=40)
@given(drawn=some_rows(), gone=st.sets(st.sampled_from(PSEUDONYMS)))
def test_whoever_is_taken_out_has_neither_visits_nor_values(
    drawn: tuple[int, list[Row]], gone: set[int]
) -> None:
    slots, rows = drawn
    whole = by_hand(rows, slots=slots)
    left = plain(group_events(make_events(rows, slots=slots)).without(np.array(sorted(gone), np.uint64)))
    assert left == whole._replace(
        visits={key: span for key, span in whole.visits.items() if key[0] not in gone},
        values={name: codes for name, codes in whole.values.items() if name not in gone},
    )


@pytest.mark.parametrize("shared_bits", [0, 20, 58])
def test_many_subscribers_whatever_bits_they_share(shared_bits: int) -> None:
    """Enough for several ranges and buckets, also of neighbours that differ in the last bits only."""
    rng = np.random.default_rng(shared_bits)
    width = 64 - shared_bits
    people = (rng.integers(0, 2**width, 700, np.uint64) | np.uint64(1 << 63)).tolist()
    rows: list[Row] = [
        (people[who], second, second % 5, second // 100 + 1, [second % 3])
        for who, second in zip(
            rng.integers(0, 700, 20_000).tolist(), rng.integers(0, 3000, 20_000).tolist(), strict=True
        )
    ]
    assert plain(group_events(make_events(rows, slots=1))) == by_hand(rows, slots=1)


@pytest.mark.parametrize("n", [47, 48, 49, 63, 64, 65, 66, 500])
def test_subscriber_with_many_events(n: int) -> None:
    """Short and long runs are sorted in different ways; neighbours must stay apart."""
    rng = np.random.default_rng(n)
    rows: list[Row] = [
        (7, int(s), int(c), int(s) // 100 + 1, [int(c)]) for s, c in rng.integers(0, 300, (n, 2))
    ]
    rows += [(6, 5, 1, 1, [3]), (8, 2, 1, 1, [4]), (8, 1, 1, 1, [5])]
    rng.shuffle(rows)  # type: ignore[arg-type]
    assert plain(group_events(make_events(rows, slots=1))) == by_hand(rows, slots=1)


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_earliest_value_wins_then_the_smallest_code(order: tuple[int, ...]) -> None:
    rows: list[Row] = [
        (1, 10, 0, 1, [NONE]),  # the earliest event is silent
        (1, 20, 0, 1, [5]),
        (1, 20, 1, 1, [3]),  # the same second, another cell
        (1, 30, 0, 1, [1]),
    ]
    found = plain(group_events(make_events([rows[i] for i in order], slots=1)))
    assert found.values == {1: (3,)}
    assert (found.conflicting, found.duplicates) == (1, 0)


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_values_of_rows_that_repeat_each_other_do_not_depend_on_their_order(order: tuple[int, ...]) -> None:
    rows: list[Row] = [(1, 20, 0, 1, [5]), (1, 20, 0, 1, [3]), (1, 20, 0, 1, [5])]
    found = plain(group_events(make_events([rows[i] for i in order], slots=1)))
    assert found.values == {1: (3,)}
    assert (found.conflicting, found.duplicates) == (1, 2)


def test_a_day_that_is_one_event_long() -> None:
    found = plain(group_events(make_events([(1, 10, 0, 1, []), (1, 200, 0, 3, [])], slots=0)))
    assert found.visits == {(1, 1): (10, 10), (1, 3): (200, 200)}
    assert found.values == {1: ()}


def test_no_event_at_all() -> None:
    assert plain(group_events(concatenate([], slots=2))) == Plain({}, {}, 0, 0)


def test_events_are_left_as_they_are() -> None:
    rows: list[Row] = [(2, 9, 0, 1, [4]), (1, 8, 0, 1, [2]), (2, 7, 0, 1, [3])]
    events = make_events(rows, slots=1)
    assert plain(group_events(events)).values == {1: (2,), 2: (3,)}
    assert events_equal(events, make_events(rows, slots=1))
