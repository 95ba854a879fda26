"""Counts of parts add up to those of the whole."""

import json
from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mobility.ingest.counts import CELLS_KEPT, HOURS, IGNORED, LINES_KEPT, REJECTED, RowCounts
from tests.mobility.ingest.small_extract import coder_of, definition_of, ingest
from tests.mobility.ingest.test_rows import HEADER, NOON

row = st.sampled_from(
    [
        f"a,{NOON},c1,M,,65+", f"a,{NOON},c9,M,,", f",{NOON},c1,,,", "a,,c1,F,,65+", f"a,{NOON},,F,,", "x",
        "", f"a,{NOON},c1,Q,,", "a,2017-03-27T01:00:00,c8,,,", "a,2017-03-25T01:00:00,c1,,,65+",
    ]
)  # fmt: skip


def counts_of(lines: list[str]) -> RowCounts:
    """As of a chunk that begins with a header of its own."""
    return ingest("\n".join([HEADER, *lines, ""]).encode(), coder_of(definition_of()))[1]


@settings(max_examples=30)
@given(parts=st.lists(st.lists(row, max_size=15), min_size=1, max_size=4))
def test_parts_add_up(parts: list[list[str]]) -> None:
    whole = counts_of(parts[0] + [line for part in parts[1:] for line in ["", *part]])
    added = RowCounts()
    for part in parts:
        added.add(RowCounts.from_json(json.loads(json.dumps(counts_of(part).to_json()))))
    assert added == whole


def test_lines_are_those_of_the_whole_and_only_the_first() -> None:
    first, second = (
        RowCounts(n_lines=100, lines={"bad_text": list(range(start, start + 6))}) for start in (5, 50)
    )
    first.add(second)
    assert first.lines == {"bad_text": [5, 6, 7, 8, 9, 10, 150, 151, 152, 153]}
    assert len(first.lines["bad_text"]) == LINES_KEPT
    assert first.n_lines == 200


def test_most_frequent_cells_are_kept_and_ties_go_by_name() -> None:
    one = RowCounts(unmatched_cells=Counter({f"{n:04d}": 1 for n in range(CELLS_KEPT)}))
    one.add(RowCounts(unmatched_cells=Counter({"9999": 1, "8888": 3, "0999": 1}), unmatched_more=4))
    assert len(one.unmatched_cells) == CELLS_KEPT
    assert one.unmatched_cells["8888"] == 3
    assert one.unmatched_cells["0999"] == 2
    assert {"9999", "0998"}.isdisjoint(one.unmatched_cells)
    assert one.unmatched_more == 4 + 2


def test_hours_and_events_of_parts_without_any() -> None:
    counts = RowCounts(hours=np.ones((2, HOURS), np.int64), first_event=5, last_event=9)
    counts.add(RowCounts())
    assert (counts.first_event, counts.last_event, int(counts.hours.sum())) == (5, 9, 48)
    empty = RowCounts()
    empty.add(counts)
    assert empty == counts
    empty.hours[0, 0] += 1  # a copy
    assert empty != counts


def test_reasons_are_distinct() -> None:
    assert len({*REJECTED, *IGNORED}) == len(REJECTED) + len(IGNORED)
