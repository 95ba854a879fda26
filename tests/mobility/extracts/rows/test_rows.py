"""Rows to events: what is kept, what is counted, and under which reason and line; counts of parts add up."""

import io
import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ldp.kernels.streams import derive_subkey
from mobility.base.errors import BatchFormatError
from mobility.extracts.profiles.definition import default_profile
from mobility.extracts.readers import csv as reader
from mobility.extracts.readers.opening import read_extract
from mobility.extracts.rows.counts import CELLS_KEPT, HOURS, IGNORED, LINES_KEPT, REJECTED, RowCounts
from mobility.extracts.rows.events import NO_VALUE, concatenate
from mobility.extracts.rows.pipeline import blocks_in_use, coded
from mobility.vault.state.visits import group_events
from tests.mobility.extracts.rows.small_extract import (
    CELLS,
    HEADER,
    asked_of,
    coder_of,
    definition_of,
    ingest,
    pseudonym_of,
)

NONE = int(NO_VALUE)
FIVE_DAYS = ("days = 2", "days = 5")
SPLIT = ('mechanism = "smp-grr"', 'mechanism = "spl-grr"')
NOON = "2017-03-25T12:00:00"
# Pseudonyms by another implementation: `openssl mac -macopt cipher:AES-128-CBC -macopt hexkey:KEY CMAC`, KEY
# being HKDF-SHA256 (RFC 5869) of the study key 000102..1f with the info "mobility/v1/pseudonym" and no salt.
GOLDEN = {
    "33612345678": "edceba7d73b21308", "roam-22801-00000001": "32a159605367a037", "a": "e4f689cb50b308f0",
    "0123456789abcdef": "4b27f5d2c9cca194", "0123456789abcdef0": "f4954917ba495d9a",
}  # fmt: skip


def read(*lines: str | bytes, changes: tuple[tuple[str, str], ...] = (), cells: str = CELLS, **options):
    raw = [line if isinstance(line, bytes) else line.encode() for line in (HEADER, *lines)]
    coder = coder_of(definition_of(*changes, cells=cells), **options)
    parts, counts = ingest(b"\n".join(raw) + b"\n", coder)
    return concatenate(parts, slots=coder.slots), counts


def outcomes(counts) -> dict[str, int]:
    assert counts.rows_read == counts.accepted + counts.ignored.total() + counts.rejected.total()
    return {**counts.ignored, **counts.rejected} | ({"accepted": counts.accepted} if counts.accepted else {})


# In the order of the reasons: each of these rows is wrong in every later way, too.
REJECTIONS = [
    (",2017-02-30T10:00:00,,X,,,extra", "wrong_columns"), (b" ,2017-02-30T10:00:00,\0,X,,X", "bad_text"),
    (" ,2017-02-30T10:00:00,,X,,X", "empty_subscriber"), ("a,2017-02-30T10:00:00,,X,,X", "bad_timestamp"),
    ("a,2017-03-26T02:30:00,,X,,X", "nonexistent_time"), (f"a,{NOON},,X,,X", "empty_cell"),
    ("a,2017-04-25T01:00:00,c9,X,,", "unknown_value"),
]  # fmt: skip
IGNORANCE = [
    ("a,2017-03-27T01:00:00,c9,F,,", "outside_period"), ("a,2017-03-25T01:00:00,c9,F,,", "outside_area"),
    ("a,2017-03-25T01:00:00,c1,F,,", "outside_hours"), (f"a,{NOON},c1,F,,", "day_closed"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "reason"), [*REJECTIONS, *IGNORANCE])
def test_first_reason_is_the_rows_own(line, reason) -> None:
    _, counts = read(line, closed_days=frozenset({1, 2}))
    assert (outcomes(counts), counts.lines) == ({reason: 1}, {reason: [2]} if reason in REJECTED else {})


def test_no_reason_is_missing_and_ten_lines_of_each_are_kept_over_all_blocks() -> None:
    assert tuple(reason for _, reason in REJECTIONS) == REJECTED
    assert ("opted_out", *(reason for _, reason in IGNORANCE), "duplicate") == IGNORED
    lines = [f"a,{NOON},c1,F,,"] + [f",{NOON},c1,F,,", "x"] * 30
    coder = coder_of(definition_of())
    _, counts = ingest("\n".join([HEADER, *lines]).encode(), coder, block_bytes=64)
    assert LINES_KEPT == 10
    assert counts.lines == {"empty_subscriber": list(range(3, 23, 2)), "wrong_columns": list(range(4, 24, 2))}
    assert counts.rejected == {"empty_subscriber": 30, "wrong_columns": 30}


LINES = [
    f"336{n % 97:03d},2017-03-2{5 + n % 2}T12:{n % 60:02d}:00,c{n % 3},{'FMX '[n % 4]},,65+"
    for n in range(4000)
]
DATA = "\n".join([HEADER, *LINES, "x", ""]).encode()


def packed(data: bytes, *, threads: int) -> tuple[bytes, RowCounts]:
    coder, counts = coder_of(definition_of()), RowCounts()
    blocks = read_extract(io.BytesIO(data), layout=coder.layout, in_use=blocks_in_use(threads))
    return concatenate(list(coded(blocks, coder, counts, threads=threads)), slots=coder.slots).pack(), counts


def test_threads_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "BLOCK_BYTES", 2048)
    alone = packed(DATA, threads=1)
    for threads in (2, 3, 5) * 10:
        assert packed(DATA, threads=threads) == alone, threads


def test_an_error_of_the_reader_ends_it_and_a_consumer_may_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "BLOCK_BYTES", 256)
    with pytest.raises(BatchFormatError, match="is longer than"):
        packed(DATA + b"x" * 600, threads=3)
    coder, counts = coder_of(definition_of()), RowCounts()
    events = coded(read_extract(io.BytesIO(DATA), layout=coder.layout, in_use=3), coder, counts, threads=3)
    next(events)
    events.close()
    assert 0 < counts.rows_read < len(LINES)


def test_pseudonyms_of_a_study_never_change() -> None:
    key = derive_subkey(bytes(range(32)), purpose="pseudonym")
    assert key.hex() == "0897d269dfd9c36d5920b98d77b1c47e"
    lines = [HEADER, *(f"{name},{NOON},c1,,,\n" for name in GOLDEN)]
    parts, _ = ingest("\n".join(lines).encode(), coder_of(definition_of(), pseudonym_key=key))
    assert [f"{pseudonym:016x}" for pseudonym in parts[0].pseudonym.tolist()] == list(GOLDEN.values())


AGES = {
    "<18": 0, "18-64": 1, "65+": 2, "Ä": 3, " 65+ ": 2, "\t<18": 0, '"65+"': 2, "": NONE, "  ": NONE,
    "65": None, "65+x": None, "ä": None, "A\u0308": None, "18-64 65+": None, "0": None, "\u00a065+": None,
}  # fmt: skip


def test_category_is_looked_up_exactly() -> None:
    events, counts = read(*(f"a,{NOON},c1,M,,{age}" for age in AGES), changes=(SPLIT,))
    unknown = [2 + place for place, code in enumerate(AGES.values()) if code is None]
    assert (counts.rejected, counts.lines) == ({"unknown_value": len(unknown)}, {"unknown_value": unknown})
    assert events.codes.tolist() == [[1, code] for code in AGES.values() if code is not None]


def test_one_unknown_value_of_any_indicator_rejects_the_row_also_if_nobody_asks_for_it() -> None:
    others = [f"336{n:04d},{NOON},c1,Q,," for n in range(30)]
    _, counts = read(f"a,{NOON},c1,f,,65+", f"a,{NOON},c1,,,Q", *others)
    assert outcomes(counts) == {"unknown_value": 32}


def test_split_plan_keeps_every_value_in_the_order_of_the_static_indicators() -> None:
    lines = [f"z,{NOON},c9,F,x,<18", f"a,{NOON},c1,M,x,65+", f"z,{NOON},,F,x,<18"]  # z: keep their values
    events, counts = read(*lines, f"a,{NOON},c2,,x,Ä", f"b,{NOON},c1,F,,", changes=(SPLIT,))
    assert outcomes(counts) == {"accepted": 3, "outside_area": 1, "empty_cell": 1}
    assert events.codes.tolist() == [[1, 2], [NONE, 3], [0, NONE]]


def test_sampled_plan_keeps_only_the_value_that_the_subscriber_answers() -> None:
    names = [f"336{n:04d}" for n in range(60)]
    events, counts = read(*[f"z,{NOON},c9,F,,<18", *(f"{name},{NOON},c1,M,,65+" for name in names)])
    assert outcomes(counts) == {"accepted": 60, "outside_area": 1}
    code_of = {0: 1, 1: NONE, 2: 2}  # gender, the daily one, age
    asked = [asked_of(pseudonym_of(name), d=3) for name in names]
    assert (set(asked), events.codes.tolist()) == ({0, 1, 2}, [[code_of[index]] for index in asked])


@pytest.mark.parametrize(
    ("valid_from", "valid_to", "days"),
    [("", "", [1, 2, 3, 4, 5]), ("2017-03-27", "", [3, 4, 5]), ("", "2017-03-27", [1, 2, 3]),
     ("2017-03-26", "2017-03-28", [2, 3, 4]), ("2017-03-29", "2017-03-29", [5]),
     ("2010-01-01", "2030-01-01", [1, 2, 3, 4, 5]), ("2010-01-01", "2017-03-24", []),
     ("2017-03-30", "", [])],
)  # fmt: skip
def test_cell_belongs_to_the_area_on_its_dates(valid_from: str, valid_to: str, days: list[int]) -> None:
    cells = f"{CELLS}dated,6.8,47.6,a,{valid_from},{valid_to}\n"
    lines = [f"a,2017-03-{24 + day}T12:00:00,dated,,," for day in range(1, 6)]
    events, counts = read(*lines, changes=(FIVE_DAYS,), cells=cells)
    assert (events.day.tolist(), counts.ignored["outside_area"]) == (days, 5 - len(days))


# In the file's order, which is not that of the dates: codes 2, 3 and 4; day 3 has none.
MOVED = "mast,6.81,47.6,b,2017-03-28,\nmast,6.82,47.6,a,,2017-03-25\nmast,6.83,47.6,a,2017-03-26,2017-03-26\n"


@pytest.mark.parametrize(("order", "codes"), [((0, 1, 2), [3, 4, 2, 2]), ((2, 0, 1), [4, 2, 3, 3])])
@pytest.mark.parametrize("hour", ["00:00:00", "12:00:00", "23:59:59"])
def test_a_mast_that_moved_is_where_it_stood_on_the_local_day(order, codes, hour) -> None:
    rows = MOVED.splitlines(keepends=True)
    events, counts = read(
        *(f"a,2017-03-{24 + day}T{hour},mast,,," for day in range(1, 6)),
        changes=(FIVE_DAYS, ('from = "06:00"', 'from = "00:00"')),
        cells=CELLS + "".join(rows[place] for place in order),
    )  # fmt: skip
    assert (events.day.tolist(), events.cell.tolist()) == ([1, 2, 4, 5], codes)
    assert counts.ignored == {"outside_area": 1}


NO_AREA = ('[area]\ncells = "cells.csv"\n', "")


def test_without_an_area_every_cell_belongs_to_it() -> None:
    cells = ["c1", "c1", " c1", "anywhere", "", " ", "C1"]
    events, counts = read(*(f"a,{NOON},{cell},,," for cell in cells), changes=(NO_AREA,))
    assert (outcomes(counts), group_events(events).duplicates) == ({"accepted": 7}, 3)
    first, second, *_ = events.cell.tolist()
    assert first == second


def test_study_without_cells_reads_no_cell_column() -> None:
    coder = coder_of(definition_of(NO_AREA, ('cell = "where"\n', "")))
    assert coder.layout.columns == ("who", "when", "gender", "age")
    parts, counts = ingest(f"who,when,gender,age\na,{NOON},,\na,{NOON},,\n".encode(), coder)
    assert (outcomes(counts), group_events(parts[0]).duplicates) == ({"accepted": 2}, 1)


@pytest.mark.parametrize(
    ("time", "is_inside"),
    [("05:59:59.999", False), ("06:00:00", True), ("06:00", True), ("21:29:59", True),
     ("21:30:00", True), ("21:30:59.9", True), ("21:31:00", False)],
)  # fmt: skip
def test_hours_include_their_last_minute(time: str, *, is_inside: bool) -> None:
    _, counts = read(f"a,2017-03-26T{time},c1,,,", changes=(('to = "23:59"', 'to = "21:30"'),))
    assert outcomes(counts) == {"accepted" if is_inside else "outside_hours": 1}


def test_day_and_second_of_an_event() -> None:
    lines = [f"a,2017-03-{when},c1,,," for when in ("25T23:59:59", "26T06:00:00", "26T06:00:00+02:00")]
    events, _ = read(*lines)
    assert events.day.tolist() == [1, 2, 2]
    first, second, third = events.second.tolist()
    assert second == third
    assert second - first == 5 * 3600 + 1  # six hours on the clock, one of which does not exist
    last = "a,2017-05-25T23:59:59,c1,,,"
    assert read(*lines, last, changes=(("days = 2", "days = 62"),))[0].day.tolist() == [1, 2, 2, 62]
    events, counts = read(*lines, closed_days=frozenset({1}))
    assert (outcomes(counts), events.day.tolist()) == ({"accepted": 2, "day_closed": 1}, [2, 2])


def test_rows_of_those_who_have_opted_out_are_looked_at_no_further() -> None:
    gone = np.array(sorted(pseudonym_of(name) for name in ("", "b", "c")), np.uint64)
    lines = [
        f"a,{NOON},c1,F,,", f" b ,{NOON},c1,F,,", "b,never,,X,,", f"c,{NOON},c9,,,", f",{NOON},c1,F,,",
        "b,short", f"b,{NOON},c1,\0,,",
    ]  # fmt: skip
    events, counts = read(*lines, opted_out=gone)
    assert outcomes(counts) == {
        "accepted": 1, "opted_out": 3, "empty_subscriber": 1, "wrong_columns": 1, "bad_text": 1
    }  # fmt: skip
    assert (events.pseudonym.tolist(), counts.empty) == ([pseudonym_of("a")], {"who": 1, "age": 2})
    assert (counts.located, counts.locatable_of, counts.unmatched_cells) == (1, 1, {})


def test_indicators_without_a_column_have_no_value() -> None:
    usual = default_profile(definition_of(SPLIT))
    only_age = replace(usual, columns={"age": "age"}, tables={"age": usual.tables["age"]})
    assert coder_of(definition_of(SPLIT), profile=only_age).layout.columns == ("who", "when", "where", "age")
    events, _ = read(f"a,{NOON},c1,X,,65+", f"a,{NOON},c1,F,,", changes=(SPLIT,), profile=only_age)
    assert events.codes.tolist() == [[NONE, 2], [NONE, NONE]]
    names = [f"336{n:04d}" for n in range(20)]
    lines = [f"{name},{NOON},c1,M,,65+" for name in names]
    assert read(*lines, profile=replace(usual, columns={}, tables={}))[0].codes.tolist() == [[NONE]] * 20
    asked = [asked_of(pseudonym_of(name), d=3) for name in names]
    found = read(*lines, profile=only_age)[0].codes.tolist()
    assert found == [[2 if index == 2 else NONE] for index in asked]


def test_values_that_are_missing_are_counted_once_by_column() -> None:
    _, counts = read(
        " , , , , , ", f"a,{NOON},c1,,x,", "a,,c1,F,,65+", "a,soon,c1,F,,65+", f"a,{NOON},,F,,65+", "x",
        ",,,,,\0",
    )  # fmt: skip
    assert counts.empty == {"who": 1, "when": 2, "where": 2, "gender": 2, "age": 2}
    usual = default_profile(definition_of(SPLIT))
    tables = dict.fromkeys(("gender", "age"), usual.tables["age"])
    both = replace(usual, columns={"gender": "age", "age": "age"}, tables=tables)
    _, counts = read(f"a,{NOON},c1,,,", f"a,{NOON},c1,,,65+", changes=(SPLIT,), profile=both)
    assert counts.empty == {"age": 1}


def test_cells_that_nobody_listed() -> None:
    _, counts = read(
        f"a,{NOON}, c9 ,X,,", "a,2016-01-01T00:00,c9,,,", f"a,{NOON},c8,F,,", f"a,{NOON},c1,F,,",
        f"a,{NOON},,F,,", f",{NOON},c7,F,,", "a,never,c7,F,,",
    )  # fmt: skip
    assert counts.unmatched_cells == {"c9": 2, "c8": 1}
    assert (counts.located, counts.locatable_of, counts.unmatched_more) == (1, 5, 0)
    _, counts = read(f"a,{NOON},c9,F,,", f"a,{NOON},,F,,", changes=(NO_AREA,))
    assert (counts.unmatched_cells, counts.located, counts.locatable_of) == ({}, 0, 0)
    assert counts.empty == {"where": 1, "age": 2}


def test_first_and_last_event_and_hours() -> None:
    _, counts = read(
        f"a,{NOON},c1,F,,", "a,2017-03-26T06:59:59,c1,F,,", "a,2019-01-01T00:00:00Z,c1,X,,",
        "a,1999-12-31T23:59:59Z,c1,F,,", "a,2017-03-26T02:30:00,c1,F,,", "a,0000-01-01T00:00:00,c1,F,,",
    )  # fmt: skip
    assert counts.first_event == int(datetime(1999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp())
    assert counts.last_event == int(datetime(2019, 1, 1, tzinfo=UTC).timestamp())
    assert np.argwhere(counts.hours).tolist() == [[0, 12], [1, 6]]
    assert int(counts.hours.sum()) == counts.accepted == 2
    _, nothing = read("x")
    assert (nothing.first_event, nothing.last_event) == (None, None)


row = st.sampled_from([
    f"a,{NOON},c1,M,,65+", f"a,{NOON},c9,M,,", f",{NOON},c1,,,", "a,,c1,F,,65+", f"a,{NOON},,F,,", "x",
    "", f"a,{NOON},c1,Q,,", "a,2017-03-27T01:00:00,c8,,,", "a,2017-03-25T01:00:00,c1,,,65+",
])  # fmt: skip


def counts_of(lines: list[str]) -> RowCounts:
    return ingest("\n".join([HEADER, *lines, ""]).encode(), coder_of(definition_of()))[1]


@settings(max_examples=30)
@example(parts=[["x"] * 8, ["", "x", *[f",{NOON},c1,,,"] * 6], ["x"] * 2])
@given(parts=st.lists(st.lists(row, max_size=15), min_size=1, max_size=4))
def test_parts_add_up(parts: list[list[str]]) -> None:
    whole = counts_of(parts[0] + [line for part in parts[1:] for line in ["", *part]])
    added = RowCounts()
    for part in parts:
        added.add(RowCounts.from_json(json.loads(json.dumps(counts_of(part).to_json()))))
    assert added == whole


def test_most_frequent_cells_are_kept_and_ties_go_by_name() -> None:
    one = RowCounts(unmatched_cells=Counter({f"{n:04d}": 1 for n in range(CELLS_KEPT)}))
    one.add(RowCounts(unmatched_cells=Counter({"9999": 1, "8888": 3, "0999": 1}), unmatched_more=4))
    assert (len(one.unmatched_cells), one.unmatched_cells["8888"]) == (CELLS_KEPT, 3)
    assert one.unmatched_cells["0999"] == 2
    assert {"9999", "0998"}.isdisjoint(one.unmatched_cells)
    assert one.unmatched_more == 4 + 2


def test_what_is_added_to_is_a_copy() -> None:
    counts, sum_of_one = (
        RowCounts(hours=np.ones((2, HOURS), np.int64), first_event=5, last_event=9),
        RowCounts(),
    )
    sum_of_one.add(counts)
    assert sum_of_one == counts
    sum_of_one.hours[0, 0] += 1
    assert sum_of_one != counts
