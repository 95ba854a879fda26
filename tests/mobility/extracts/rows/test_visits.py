"""Coded events by shard: visits, values, durations and longest stays, against plain Python, in any order."""

from collections import defaultdict
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mobility.extracts.rows.events import NO_VALUE, Events, concatenate, shard_of, split
from mobility.vault.state.daily import duration_codes
from mobility.vault.state.stays import (
    Whereabouts,
    join_whereabouts,
    longest_stays,
    merge_whereabouts,
    whereabouts_by_day,
)
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


QUARTER_S = 900

Place = tuple[int, int, int, int]  # pseudonym, second, cell, day
Seen = tuple[int, int, int]  # pseudonym, second, cell


def whereabouts(
    rows: list[Place], *, of_whom=lambda names: np.ones(len(names), np.bool_)
) -> dict[int, Whereabouts]:
    events = make_events([(*row, []) for row in rows], slots=0)
    return whereabouts_by_day(events, events.day, of_whom=of_whom)


def places_of(seen: Whereabouts) -> list[Seen]:
    assert seen.pseudonym.dtype == np.uint64
    assert seen.second.dtype == seen.cell.dtype == np.uint32
    return list(zip(seen.pseudonym.tolist(), seen.second.tolist(), seen.cell.tolist(), strict=True))


def kept_by_hand(rows: list[Place]) -> dict[int, list[Seen]]:
    last: dict[tuple[int, int, int], tuple[int, int]] = {}
    for pseudonym, second, cell, day in rows:
        key = day, pseudonym, second // QUARTER_S
        last[key] = max(last.get(key, (-1, 0)), (second, -cell))
    found = defaultdict(list)
    for (day, pseudonym, _), (second, minus_cell) in sorted(last.items()):
        found[day].append((pseudonym, second, -minus_cell))
    return {day: seen for day, seen in found.items() if day}


def stays_by_hand(seen: list[Seen], *, until: int | None) -> dict[int, int]:
    events = defaultdict(list)
    for pseudonym, second, cell in seen:
        events[pseudonym].append((second, cell))
    longest = {}
    for pseudonym, mine in events.items():
        ends = [*(second for second, _ in mine[1:]), max(until or 0, mine[-1][0])]
        stays: dict[int, int] = defaultdict(int)
        for (second, cell), end in zip(mine, ends, strict=True):
            stays[cell] += end - second
        longest[pseudonym] = min(stays, key=lambda cell: (-stays[cell], cell))
    return longest


@st.composite
def some_places(draw: st.DrawFn) -> list[Place]:
    row = st.tuples(
        st.sampled_from(PSEUDONYMS),
        st.sampled_from([0, 1, 899, 900, 901, 1799, 1800, 3000, 3599, 3600, 5000, 7199, 7200, 2**32 - 1]),
        st.sampled_from([0, 1, 7, 2**32 - 2]),
    )
    # Day 2 begins within a quarter-hour, as a night may; 0 counts for no day.
    return [(*drawn, 1 + (drawn[1] > 3300) - (drawn[1] == 0)) for drawn in draw(st.lists(row, max_size=40))]


PARTS = [(1, 1, 3, 1), (1, 1000, 9, 1), (1, 2500, 3, 1), (1, 3500, 8, 1), (1, 5000, 3, 1), (1, 6000, 2, 1)]


class TestStays:
    @settings(max_examples=120)
    @given(rows=some_places(), data=st.data())
    def test_what_is_kept_depends_on_the_rows_alone(self, rows: list[Place], data: st.DataObject) -> None:
        expected = kept_by_hand(rows)
        assert {day: places_of(seen) for day, seen in whereabouts(rows).items()} == expected
        mixed = data.draw(st.permutations(rows))
        cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=3)))
        files = [mixed[a:b] for a, b in pairwise([0, *cuts, len(rows)])]
        repeated = data.draw(
            st.permutations([*files, *data.draw(st.lists(st.sampled_from(files), max_size=2))])
        )
        merged: dict[int, Whereabouts] = {}
        for file in repeated:
            for day, seen in whereabouts(file).items():
                merged[day] = merge_whereabouts(merged.get(day, Whereabouts.empty()), seen)
        assert {day: places_of(seen) for day, seen in merged.items()} == expected

    @settings(max_examples=60)
    @example(rows=[(1, 1, 6, 1), (1, 1001, 5, 1), (1, 2001, 7, 1)], until=None)  # a tie
    @example(rows=[(1, 1, 5, 1), (1, 6001, 4, 1)], until=None)  # the last event has no stay
    @example(rows=[(1, 1, 5, 1), (1, 6001, 4, 1)], until=12_001)  # unless the night continues: a tie
    @example(rows=[(1, 1, 5, 1), (1, 6001, 4, 1)], until=12_002)
    @example(rows=PARTS, until=None)  # one stay of several parts, between others that are longer than each
    @given(rows=some_places(), until=st.sampled_from([None, 0, 3000, 2**33]))
    def test_longest_stay(self, rows: list[Place], until: int | None) -> None:
        for seen in whereabouts(rows).values():
            people, cells = longest_stays(seen, until=until)
            assert people.tolist() == sorted(set(people.tolist()))
            found = dict(zip(people.tolist(), cells.tolist(), strict=True))
            assert found == stays_by_hand(places_of(seen), until=until)

    def test_only_of_whom_it_is_asked(self) -> None:
        rows: list[Place] = [(1, 100, 9, 1), (2, 100, 3, 1), (2, 100, 3, 2)]
        found = whereabouts(rows, of_whom=lambda pseudonyms: pseudonyms == 2)
        assert {day: places_of(seen) for day, seen in found.items()} == {1: [(2, 100, 3)], 2: [(2, 100, 3)]}

    def test_pieces_joined_are_the_shard(self) -> None:
        low, high = whereabouts([(1, 100, 9, 1), (1, 5000, 9, 2)]), whereabouts([(2, 7, 3, 2), (3, 8, 3, 3)])
        joined = {day: places_of(seen) for day, seen in join_whereabouts([low, high]).items()}
        assert joined == {1: [(1, 100, 9)], 2: [(1, 5000, 9), (2, 7, 3)], 3: [(3, 8, 3)]}

    def test_many_people_in_many_ranges(self) -> None:
        rng = np.random.default_rng(4)
        n = 10_000
        people = rng.choice(rng.integers(0, 2**64, 900, np.uint64), n).tolist()
        seconds, cells = rng.integers(0, 86_400, n).tolist(), rng.integers(0, 6, n).tolist()
        rows: list[Place] = list(zip(people, seconds, cells, [1] * n, strict=True))
        found = whereabouts(rows)[1]
        assert places_of(found) == kept_by_hand(rows)[1]
        longest = dict(zip(*map(np.ndarray.tolist, longest_stays(found)), strict=True))
        assert longest == stays_by_hand(places_of(found), until=None)
