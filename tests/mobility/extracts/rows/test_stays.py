"""Where people were and where they stayed longest, against plain Python, in any order and any cut."""

from collections import defaultdict
from itertools import pairwise

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mobility.vault.state.stays import (
    Whereabouts,
    join_whereabouts,
    longest_stays,
    merge_whereabouts,
    whereabouts_by_day,
)
from mobility.vault.state.visits import group_events
from tests.mobility.extracts.rows.small_extract import make_events

QUARTER_S = 900
PSEUDONYMS = [0, 1, 2**63, 2**64 - 1]

Row = tuple[int, int, int, int]  # pseudonym, second, cell, day
Seen = tuple[int, int, int]  # pseudonym, second, cell


def whereabouts(
    rows: list[Row], *, of_whom=lambda names: np.ones(len(names), np.bool_)
) -> dict[int, Whereabouts]:
    events = make_events([(*row, []) for row in rows], slots=0)
    return whereabouts_by_day(events, events.day, of_whom=of_whom)


def plain(seen: Whereabouts) -> list[Seen]:
    assert seen.pseudonym.dtype == np.uint64
    assert seen.second.dtype == seen.cell.dtype == np.uint32
    return list(zip(seen.pseudonym.tolist(), seen.second.tolist(), seen.cell.tolist(), strict=True))


def by_hand(rows: list[Row]) -> dict[int, list[Seen]]:
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
def some_rows(draw: st.DrawFn) -> list[Row]:
    """Few people, places and moments: seconds repeat, and quarter-hours are shared at their ends."""
    row = st.tuples(
        st.sampled_from(PSEUDONYMS),
        st.sampled_from([0, 1, 899, 900, 901, 1799, 1800, 3000, 3599, 3600, 5000, 7199, 7200, 2**32 - 1]),
        st.sampled_from([0, 1, 7, 2**32 - 2]),
    )
    # Day 2 begins within a quarter-hour, as a night may; 0 counts for no day.
    return [(*drawn, 1 + (drawn[1] > 3300) - (drawn[1] == 0)) for drawn in draw(st.lists(row, max_size=40))]


@settings(max_examples=120)
@given(rows=some_rows(), data=st.data())
def test_what_is_kept_depends_on_the_rows_alone(rows: list[Row], data: st.DataObject) -> None:
    expected = by_hand(rows)
    assert {day: plain(seen) for day, seen in whereabouts(rows).items()} == expected
    mixed = data.draw(st.permutations(rows))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=3)))
    files = [mixed[a:b] for a, b in pairwise([0, *cuts, len(rows)])]
    repeated = data.draw(st.permutations([*files, *data.draw(st.lists(st.sampled_from(files), max_size=2))]))
    merged: dict[int, Whereabouts] = {}
    for file in repeated:
        for day, seen in whereabouts(file).items():
            merged[day] = merge_whereabouts(merged.get(day, Whereabouts.empty()), seen)
    assert {day: plain(seen) for day, seen in merged.items()} == expected


PARTS = [(1, 1, 3, 1), (1, 1000, 9, 1), (1, 2500, 3, 1), (1, 3500, 8, 1), (1, 5000, 3, 1), (1, 6000, 2, 1)]


@settings(max_examples=60)
@example(rows=[(1, 1, 6, 1), (1, 1001, 5, 1), (1, 2001, 7, 1)], until=None)  # a tie
@example(rows=[(1, 1, 5, 1), (1, 6001, 4, 1)], until=None)  # the last event has no stay
@example(rows=[(1, 1, 5, 1), (1, 6001, 4, 1)], until=12_001)  # unless the night continues: a tie
@example(rows=[(1, 1, 5, 1), (1, 6001, 4, 1)], until=12_002)
@example(rows=PARTS, until=None)  # one stay of several parts, between others that are longer than each
@given(rows=some_rows(), until=st.sampled_from([None, 0, 3000, 2**33]))
def test_longest_stay(rows: list[Row], until: int | None) -> None:
    for seen in whereabouts(rows).values():
        people, cells = longest_stays(seen, until=until)
        assert people.tolist() == sorted(set(people.tolist()))
        found = dict(zip(people.tolist(), cells.tolist(), strict=True))
        assert found == stays_by_hand(plain(seen), until=until)


def test_only_of_whom_it_is_asked() -> None:
    rows: list[Row] = [(1, 100, 9, 1), (2, 100, 3, 1), (2, 100, 3, 2)]
    found = whereabouts(rows, of_whom=lambda pseudonyms: pseudonyms == 2)
    assert {day: plain(seen) for day, seen in found.items()} == {1: [(2, 100, 3)], 2: [(2, 100, 3)]}


def test_pieces_joined_are_the_shard() -> None:
    low, high = whereabouts([(1, 100, 9, 1), (1, 5000, 9, 2)]), whereabouts([(2, 7, 3, 2), (3, 8, 3, 3)])
    joined = {day: plain(seen) for day, seen in join_whereabouts([low, high]).items()}
    assert joined == {1: [(1, 100, 9)], 2: [(1, 5000, 9), (2, 7, 3)], 3: [(3, 8, 3)]}


def test_many_people_in_many_ranges() -> None:
    rng = np.random.default_rng(4)
    n = 10_000
    people = rng.choice(rng.integers(0, 2**64, 900, np.uint64), n).tolist()
    seconds, cells = rng.integers(0, 86_400, n).tolist(), rng.integers(0, 6, n).tolist()
    rows: list[Row] = list(zip(people, seconds, cells, [1] * n, strict=True))
    found = whereabouts(rows)[1]
    assert plain(found) == by_hand(rows)[1]
    longest = dict(zip(*map(np.ndarray.tolist, longest_stays(found)), strict=True))
    assert longest == stays_by_hand(plain(found), until=None)


def test_studies_without_places_keep_none() -> None:
    assert whereabouts([]) == {}
    assert [column.tolist() for column in longest_stays(Whereabouts.empty())] == [[], []]
    grouped = group_events(make_events([(1, 10, 0, 1, []), (1, 200, 0, 3, [])], slots=0))
    assert (grouped.stays, grouped.nights) == ({}, {})
