"""Coded events by shard; their visits and values against plain Python, in any order and chunks; durations."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mobility.extracts.rows.events import NO_VALUE, Events, concatenate, shard_of, split
from mobility.vault.state.daily import duration_codes
from mobility.vault.state.visits import group_events, join_groups
from reports.studies.studyfile import VISIT_DURATION_BANDS
from tests.mobility.extracts.rows.small_extract import events_equal, make_events

NONE = int(NO_VALUE)
PSEUDONYMS = [0, 1, 2**63, 2**64 - 1]

Row = tuple[int, int, int, int, list[int]]  # pseudonym, second, cell, day, codes


class Plain(NamedTuple):
    visits: dict[tuple[int, int], tuple[int, int]]
    values: dict[int, tuple[int, ...]]
    conflicting: int
    duplicates: int


def plain(grouped) -> Plain:
    visits, values = grouped.visits, grouped.values
    keys = list(zip(visits.pseudonym.tolist(), visits.day.tolist(), strict=True))
    assert (keys, values.pseudonym.tolist()) == (sorted(set(keys)), sorted(set(values.pseudonym.tolist())))
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
        conflicting=sum(len({c for _, c in slot}) > 1 for mine in given_codes.values() for slot in mine),
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


@settings(max_examples=120)
@given(drawn=some_rows(), data=st.data(), bits=st.integers(0, 3), gone=st.sets(st.sampled_from(PSEUDONYMS)))
def test_any_events_in_any_order_chunks_shards_and_pieces(drawn, data, bits, gone) -> None:
    slots, rows = drawn
    expected = by_hand(rows, slots=slots)
    events = make_events(rows, slots=slots)
    assert plain(group_events(events)) == expected
    mixed = data.draw(st.permutations(rows))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=3)))
    chunks = [make_events(mixed[a:b], slots=slots) for a, b in pairwise([0, *cuts, len(rows)])]
    assert plain(group_events(concatenate(chunks, slots=slots))) == expected
    parts = events.by_key(shard_of(events.pseudonym, n_shards=2**bits), 2**bits)
    split_up = split(events, n_shards=2**bits, pieces=4)
    assert list(split_up) == sorted(parts)
    for found in (
        {shard: plain(group_events(Events.unpack(part.pack()))) for shard, part in parts.items()},
        {shard: plain(join_groups(list(map(group_events, pieces)))) for shard, pieces in split_up.items()},
    ):
        assert all(key[0] >> (64 - bits) == shard for shard, part in found.items() for key in part.visits)
        assert {key: span for part in found.values() for key, span in part.visits.items()} == expected.visits
        assert {
            key: codes for part in found.values() for key, codes in part.values.items()
        } == expected.values
        assert sum(part.conflicting for part in found.values()) == expected.conflicting
        assert sum(part.duplicates for part in found.values()) == expected.duplicates
    left = plain(group_events(events).without(np.array(sorted(gone), np.uint64)))
    assert left == expected._replace(
        visits={key: span for key, span in expected.visits.items() if key[0] not in gone},
        values={name: codes for name, codes in expected.values.items() if name not in gone},
    )


@pytest.mark.parametrize("shared_bits", [0, 20, 58])
def test_many_subscribers_whatever_bits_they_share(shared_bits: int) -> None:
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
    rng = np.random.default_rng(n)
    rows = [(7, int(s), int(c), int(s) // 100 + 1, [int(c)]) for s, c in rng.integers(0, 300, (n, 2))]
    rows += [(6, 5, 1, 1, [3]), (8, 2, 1, 1, [4]), (8, 1, 1, 1, [5])]
    rng.shuffle(rows)
    assert plain(group_events(make_events(rows, slots=1))) == by_hand(rows, slots=1)


def test_events_are_left_as_they_are_also_none_at_all() -> None:
    assert plain(group_events(concatenate([], slots=2))) == Plain({}, {}, 0, 0)
    assert concatenate([], slots=2).codes.shape == (0, 2)
    rows: list[Row] = [(2**63, 9, 0, 1, [4]), (1, 8, 0, 1, [2]), (2**63, 7, 0, 1, [3])]
    events = make_events(rows, slots=1)
    assert plain(group_events(events)).values == {1: (2,), 2**63: (3,)}
    split(events, n_shards=2, pieces=2)
    assert events_equal(events, make_events(rows, slots=1))


@st.composite
def some_events(draw: st.DrawFn) -> Events:
    slots = draw(st.integers(0, 3))
    numbers = [st.integers(0, largest) for largest in (2**64 - 1, 2**32 - 1, 2**32 - 1)]
    codes = st.lists(st.integers(0, 2**16 - 1), min_size=slots, max_size=slots)
    row = st.tuples(*numbers, st.integers(1, 62), codes)
    return make_events(draw(st.lists(row, max_size=20)), slots=slots)


@pytest.mark.parametrize("n_shards", [1, 2, 4, 1024, 65_536])
def test_a_shard_is_a_range_of_pseudonyms(n_shards: int) -> None:
    width = 2**64 // n_shards
    for shard in {0, 1, n_shards // 2, n_shards - 1} & set(range(n_shards)):
        edges = np.array([shard * width, (shard + 1) * width - 1], np.uint64)
        assert shard_of(edges, n_shards=n_shards).tolist() == [shard, shard]


@given(events=some_events(), bits=st.integers(0, 6))
def test_splitting_and_packing_keep_every_event_once_and_in_order(events: Events, bits: int) -> None:
    parts = events.by_key(shard_of(events.pseudonym, n_shards=2**bits), 2**bits)
    assert all(len(part) for part in parts.values())
    for shard, part in parts.items():
        mine = np.array([int(p) >> (64 - bits) == shard for p in events.pseudonym], np.bool_)
        assert events_equal(part, events.take(np.flatnonzero(mine)))
    assert sum(map(len, parts.values())) == len(events)
    again = Events.unpack(events.pack())
    assert events_equal(again, events)
    assert all(getattr(again, name).dtype == getattr(events, name).dtype for name in Events.__slots__)


# --- bands of the visit duration ---------------------------------------------------------------------------
HOUR_S = 3600
BANDS = [
    (0, None), (HOUR_S - 1, None), (HOUR_S, "2h"), (2 * HOUR_S - 1, "2h"), (2 * HOUR_S, "3h"),
    (9 * HOUR_S, "10h"), (10 * HOUR_S - 1, "10h"), (10 * HOUR_S, "10h-18h"), (18 * HOUR_S, "10h-18h"),
    (18 * HOUR_S + 1, None), (24 * HOUR_S, None), (66 * 24 * HOUR_S, None), (2**32 - 1, None),
]  # fmt: skip


def test_edges_of_bands() -> None:
    stays = np.array([stay for stay, _ in BANDS], np.uint32)
    codes = duration_codes(stays)
    assert codes.dtype == np.uint16
    names = [None if code == NO_VALUE else VISIT_DURATION_BANDS[code] for code in codes.tolist()]
    assert names == [band and f"Duration {band}" for _, band in BANDS]
    assert stays.tolist() == [stay for stay, _ in BANDS]  # they are left as they were
    assert duration_codes(stays[:0]).tolist() == []
