"""Rows to events: what is kept, what is counted, and under which reason and line."""

from dataclasses import replace
from datetime import UTC, date, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp.entropy import derive_subkey
from mobility.ingest.counts import IGNORED, LINES_KEPT, REJECTED, RowCounts
from mobility.ingest.events import NO_VALUE, Events, concatenate
from mobility.ingest.rows import RowCoder
from mobility.ingest.visits import group_events
from mobility.profiles import default_profile
from tests.mobility.ingest.small_extract import (
    CELLS,
    HEADER,
    asked_of,
    coder_of,
    definition_of,
    ingest,
    pseudonym_of,
)

NONE = int(NO_VALUE)
SPLIT = ('mechanism = "smp-grr"', 'mechanism = "spl-grr"')
NOON = "2017-03-25T12:00:00"
# Pseudonyms by another implementation: `openssl mac -macopt cipher:AES-128-CBC -macopt hexkey:KEY CMAC`, KEY
# being HKDF-SHA256 (RFC 5869) of the study key 000102..1f with the info "mobility/v1/pseudonym" and no salt.
GOLDEN_KEY = "0897d269dfd9c36d5920b98d77b1c47e"
GOLDEN = {
    "33612345678": "edceba7d73b21308",
    "roam-22801-00000001": "32a159605367a037",
    "a": "e4f689cb50b308f0",
    "0123456789abcdef": "4b27f5d2c9cca194",
    "0123456789abcdef0": "f4954917ba495d9a",
}


def read(
    *lines: str | bytes,
    changes: tuple[tuple[str, str], ...] = (),
    closed_days: frozenset[int] = frozenset(),
) -> tuple[Events, RowCounts]:
    """Events and counts of an extract of the small study; line 2 is the first of `lines`."""
    raw = [line if isinstance(line, bytes) else line.encode() for line in (HEADER, *lines)]
    coder = coder_of(definition_of(*changes), closed_days=closed_days)
    parts, counts = ingest(b"\n".join(raw) + b"\n", coder)
    return concatenate(parts, slots=coder.slots), counts


def outcomes(counts: RowCounts) -> dict[str, int]:
    assert counts.rows_read == counts.accepted + counts.ignored.total() + counts.rejected.total()
    return {**counts.ignored, **counts.rejected} | ({"accepted": counts.accepted} if counts.accepted else {})


# --- reasons ------------------------------------------------------------------------------------

REJECTIONS = [
    (",2017-02-30T10:00:00,,X,,", "wrong_columns", ("extra",)),
    (b" ,2017-02-30T10:00:00,\0,X,,X", "bad_text", ()),
    (" ,2017-02-30T10:00:00,,X,,X", "empty_subscriber", ()),
    ("a,2017-02-30T10:00:00,,X,,X", "bad_timestamp", ()),
    ("a,2017-03-26T02:30:00,,X,,X", "nonexistent_time", ()),
    (f"a,{NOON},,X,,X", "empty_cell", ()),
    (f"a,{NOON},c9,X,,X", "unknown_value", ()),
]
IGNORANCE = [
    ("a,2017-03-27T01:00:00,c9,F,,", "outside_period"),
    ("a,2017-03-25T01:00:00,c9,F,,", "outside_area"),
    ("a,2017-03-25T01:00:00,c1,F,,", "outside_hours"),
    (f"a,{NOON},c1,F,,", "day_closed"),
]


def test_first_reason_to_reject_is_the_rows_own() -> None:
    for line, reason, more in REJECTIONS:
        _, counts = read(line if isinstance(line, bytes) else ",".join([line, *more]))
        assert outcomes(counts) == {reason: 1}
    assert tuple(reason for _, reason, _ in REJECTIONS) == REJECTED


def test_first_reason_to_ignore_is_the_rows_own() -> None:
    for line, reason in IGNORANCE:
        _, counts = read(line, closed_days=frozenset({1, 2}))
        assert outcomes(counts) == {reason: 1}
    assert ("opted_out", *(reason for _, reason in IGNORANCE), "duplicate") == IGNORED


def test_a_row_that_is_wrong_is_rejected_even_where_it_would_be_ignored() -> None:
    _, counts = read("a,2017-04-25T01:00:00,c9,X,,")
    assert outcomes(counts) == {"unknown_value": 1}


def test_lines_of_rejected_rows() -> None:
    _, counts = read(
        f"a,{NOON},c1,F,,",
        "",
        f",{NOON},c1,F,,",
        "a,b",
        f"a,{NOON},c1,Q,,",
        "x",
        ",,,,,",
        "",
        "a,soon,c1,F,,",
    )
    assert counts.lines == {
        "empty_subscriber": [4, 8],
        "wrong_columns": [5, 7],
        "unknown_value": [6],
        "bad_timestamp": [10],
    }
    assert counts.rows_read == 7


def test_first_ten_lines_of_a_reason_are_kept_over_all_blocks() -> None:
    lines = [f"a,{NOON},c1,F,,"] + [f",{NOON},c1,F,,", "x"] * 30
    coder = coder_of(definition_of())
    _, counts = ingest("\n".join([HEADER, *lines]).encode(), coder, block_bytes=64)
    assert LINES_KEPT == 10
    assert counts.lines == {
        "empty_subscriber": list(range(3, 23, 2)),
        "wrong_columns": list(range(4, 24, 2)),
    }
    assert counts.rejected == {"empty_subscriber": 30, "wrong_columns": 30}


def test_ignored_rows_have_no_lines() -> None:
    _, counts = read("a,2017-03-27T01:00:00,c1,F,,")
    assert counts.lines == {}


# --- subscribers ----------------------------------------------------------------------------------


def test_pseudonym_is_the_cmac_of_the_trimmed_bytes() -> None:
    events, counts = read(
        f"33612345678,{NOON},c1,,,", f" 33612345678\t,{NOON},c1,,,", f'"33612345678 ",{NOON},c1,,,'
    )
    assert outcomes(counts) == {"accepted": 3}
    assert events.pseudonym.tolist() == [pseudonym_of("33612345678")] * 3


def test_identifiers_are_not_normalised_in_any_other_way() -> None:
    names = ["33612345678", "+33612345678", "033612345678", "Roam-1", "roam-1", "roam 1", "roam  1", "É"]
    events, _ = read(*(f"{name},{NOON},c1,,," for name in names))
    assert events.pseudonym.tolist() == [pseudonym_of(name) for name in names]
    assert len(set(events.pseudonym.tolist())) == len(names)


def test_pseudonyms_of_a_study_never_change() -> None:
    key = derive_subkey(bytes(range(32)), purpose="pseudonym")
    assert key.hex() == GOLDEN_KEY
    lines = [HEADER, *(f"{name},{NOON},c1,,,\n" for name in GOLDEN)]
    parts, _ = ingest("\n".join(lines).encode(), coder_of(definition_of(), pseudonym_key=key))
    assert [f"{pseudonym:016x}" for pseudonym in parts[0].pseudonym.tolist()] == list(GOLDEN.values())


# --- values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("age", "code"),
    [
        ("<18", 0),
        ("18-64", 1),
        ("65+", 2),
        ("Ä", 3),
        (" 65+ ", 2),
        ("\t<18", 0),
        ('"65+"', 2),
        ("", NONE),
        ("  ", NONE),
    ],
)
def test_category_is_looked_up_exactly(age: str, code: int) -> None:
    events, counts = read(f"a,{NOON},c1,M,,{age}", changes=(SPLIT,))
    assert outcomes(counts) == {"accepted": 1}
    assert events.codes.tolist() == [[1, code]]


@pytest.mark.parametrize("age", ["65", "65+x", "ä", "A\u0308", "18-64 65+", "0", "\u00a065+"])
def test_anything_else_is_no_category(age: str) -> None:
    _, counts = read(f"a,{NOON},c1,F,,{age}")
    assert outcomes(counts) == {"unknown_value": 1}


def test_category_in_another_case_is_unknown() -> None:
    _, counts = read(f"a,{NOON},c1,f,,")
    assert outcomes(counts) == {"unknown_value": 1}


def test_category_is_the_same_in_either_encoding_and_bad_where_they_are_mixed() -> None:
    rows = [f"a,{NOON},c1,M,,Ä".encode(encoding) for encoding in ("utf-8", "latin-1")]
    for one, other in (rows, rows[::-1]):
        events, counts = read(one, one, other, changes=(SPLIT,))
        assert outcomes(counts) == {"accepted": 2, "bad_text": 1}
        assert counts.lines == {"bad_text": [4]}
        assert events.codes.tolist() == [[1, 3]] * 2


@pytest.mark.parametrize("written", [" 33612345678", "33612345678 ", "\t33612345678", "33612345678\v"])
def test_blanks_on_one_side_are_taken_away(written: str) -> None:
    """Alone in its block: nothing else may be what makes it trimmed."""
    events, _ = read(f"{written},{NOON},c1,,,")
    assert events.pseudonym.tolist() == [pseudonym_of("33612345678")]


def test_nul_bytes_are_no_text() -> None:
    _, counts = read(f"a,{NOON},c1,F,,\0", f"a\0,{NOON},c1,F,,", f"a,{NOON},c1,F,\0,")
    assert outcomes(counts) == {"bad_text": 2, "accepted": 1}  # nobody asked for the fifth column


def test_one_unknown_value_of_any_indicator_rejects_the_row() -> None:
    _, counts = read(f"a,{NOON},c1,Q,,65+", f"a,{NOON},c1,,,Q", f"a,{NOON},c1,Q,,Q")
    assert outcomes(counts) == {"unknown_value": 3}


def test_split_plan_keeps_every_value_in_the_order_of_the_static_indicators() -> None:
    events, counts = read(
        f"z,{NOON},c9,F,x,<18",  # rows that are left out keep their values
        f"a,{NOON},c1,M,x,65+",
        f"z,{NOON},,F,x,<18",
        f"a,{NOON},c2,,x,Ä",
        f"b,{NOON},c1,F,,",
        changes=(SPLIT,),
    )
    assert outcomes(counts) == {"accepted": 3, "outside_area": 1, "empty_cell": 1}
    assert events.codes.tolist() == [[1, 2], [NONE, 3], [0, NONE]]


def test_sampled_plan_keeps_only_the_value_that_the_subscriber_answers() -> None:
    names = [f"336{n:04d}" for n in range(60)]
    lines = [f"z,{NOON},c9,F,,<18", *(f"{name},{NOON},c1,M,,65+" for name in names)]
    events, counts = read(*lines)
    assert outcomes(counts) == {"accepted": 60, "outside_area": 1}
    code_of = {0: 1, 1: NONE, 2: 2}  # gender, the daily one, age
    asked = [asked_of(pseudonym_of(name), d=3) for name in names]
    assert set(asked) == {0, 1, 2}
    assert events.codes.tolist() == [[code_of[index]] for index in asked]


def test_a_value_that_nobody_asks_for_is_checked_all_the_same() -> None:
    """Whether a row is rejected must not tell which indicator its subscriber answers."""
    _, counts = read(*(f"336{n:04d},{NOON},c1,Q,," for n in range(30)))
    assert outcomes(counts) == {"unknown_value": 30}


# --- cells ------------------------------------------------------------------------------------------


def accepted_days(valid_from: str, valid_to: str) -> list[int]:
    """Days of a study of five on which a cell with these dates belongs to the area."""
    cells = f"{CELLS}dated,6.8,47.6,a,{valid_from},{valid_to}\n"
    coder = coder_of(definition_of(("days = 2", "days = 5"), cells=cells))
    lines = [f"a,2017-03-{24 + day}T12:00:00,dated,,," for day in range(1, 6)]
    lines += [f"a,2017-03-{24 + day}T12:00:01,c1,,," for day in range(1, 6)]
    parts, counts = ingest("\n".join([HEADER, *lines]).encode(), coder)
    days: list[int] = parts[0].day[parts[0].cell == 2].tolist()
    assert outcomes(counts) == {"accepted": 5 + len(days)} | (
        {"outside_area": 5 - len(days)} if len(days) < 5 else {}
    )
    return days


@pytest.mark.parametrize(
    ("valid_from", "valid_to", "days"),
    [
        ("", "", [1, 2, 3, 4, 5]),
        ("2017-03-27", "", [3, 4, 5]),
        ("", "2017-03-27", [1, 2, 3]),
        ("2017-03-26", "2017-03-28", [2, 3, 4]),
        ("2017-03-29", "2017-03-29", [5]),
        ("2010-01-01", "2030-01-01", [1, 2, 3, 4, 5]),
        ("2010-01-01", "2017-03-24", []),
        ("2017-03-30", "", []),
    ],
)
def test_cell_belongs_to_the_area_on_its_dates(valid_from: str, valid_to: str, days: list[int]) -> None:
    assert accepted_days(valid_from, valid_to) == days


def test_cell_is_trimmed_and_looked_up_exactly() -> None:
    events, counts = read(
        f"a,{NOON}, c2 ,,,", f"a,{NOON},c1,,,", f"a,{NOON},C1,,,", f"a,{NOON},c,,,", f"a,{NOON}, ,,,"
    )
    assert outcomes(counts) == {"accepted": 2, "outside_area": 2, "empty_cell": 1}
    assert events.cell.tolist() == [1, 0]


NO_AREA = ('[area]\ncells = "cells.csv"\n', "")


def test_without_an_area_every_cell_belongs_to_it() -> None:
    """Texts only tell rows of one second apart."""
    cells = ["c1", "c1", " c1", "anywhere", "", " ", "C1"]
    events, counts = read(*(f"a,{NOON},{cell},,," for cell in cells), changes=(NO_AREA,))
    assert outcomes(counts) == {"accepted": 7}
    assert group_events(events).duplicates == 3
    first, second, *_ = events.cell.tolist()
    assert first == second


def test_without_an_area_a_cell_keeps_its_code_over_blocks() -> None:
    coder = coder_of(definition_of(NO_AREA))
    lines = [f"a,{NOON},cell-{n % 50},,," for n in range(200)]
    parts, _ = ingest("\n".join([HEADER, *lines]).encode(), coder, block_bytes=512)
    assert len(parts) > 5
    codes = concatenate(parts, slots=1).cell
    assert len(set(codes.tolist())) == 50
    assert np.array_equal(codes[:50], codes[150:])


def test_study_without_cells_reads_no_cell_column() -> None:
    coder = coder_of(definition_of(NO_AREA, ('cell = "where"\n', "")))
    assert coder.columns == ["who", "when", "gender", "age"]
    parts, counts = ingest(f"who,when,gender,age\na,{NOON},,\na,{NOON},,\n".encode(), coder)
    assert outcomes(counts) == {"accepted": 2}
    assert group_events(parts[0]).duplicates == 1


# --- times ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("time", "is_inside"),
    [
        ("05:59:59.999", False), ("06:00:00", True), ("06:00", True), ("21:29:59", True), ("21:30:00", True),
        ("21:30:59.9", True), ("21:31:00", False),
    ],
)  # fmt: skip
def test_hours_include_their_last_minute(time: str, *, is_inside: bool) -> None:
    _, counts = read(f"a,2017-03-26T{time},c1,,,", changes=(('to = "23:59"', 'to = "21:30"'),))
    assert outcomes(counts) == {"accepted" if is_inside else "outside_hours": 1}


def test_day_and_second_of_an_event() -> None:
    events, _ = read(
        "a,2017-03-25T23:59:59,c1,,,", "a,2017-03-26T06:00:00,c1,,,", "a,2017-03-26T06:00:00+02:00,c1,,,"
    )
    assert events.day.tolist() == [1, 2, 2]
    first, second, third = events.second.tolist()
    assert second == third
    assert second - first == 5 * 3600 + 1  # six hours on the clock, one of which does not exist


def test_closed_days_only() -> None:
    events, counts = read(f"a,{NOON},c1,,,", "a,2017-03-26T12:00:00,c1,,,", closed_days=frozenset({1}))
    assert outcomes(counts) == {"accepted": 1, "day_closed": 1}
    assert events.day.tolist() == [2]


# --- blocks -----------------------------------------------------------------------------------------


@given(block_bytes=st.integers(64, 400))
def test_blocks_make_no_difference(block_bytes: int) -> None:
    lines = [
        f"336{n % 7},2017-03-2{5 + n % 2}T12:0{n % 10}:00,c{n % 3},{'FMX '[n % 4]},,65+" for n in range(40)
    ]
    data = "\n".join([HEADER, *lines, "x", "", "y"]).encode()
    whole, counts = ingest(data, coder_of(definition_of()))
    parts, counts_of_parts = ingest(data, coder_of(definition_of()), block_bytes=block_bytes)
    assert concatenate(parts, slots=1).pack() == concatenate(whole, slots=1).pack()
    assert counts_of_parts == counts


def test_file_without_a_single_good_row() -> None:
    events, counts = read("x", "y,z")
    assert (len(events), outcomes(counts)) == (0, {"wrong_columns": 2})
    events, counts = read()
    assert (len(events), outcomes(counts)) == (0, {})
    assert events.codes.shape == (0, 1)


def test_columns_are_those_of_the_study_once_each() -> None:
    assert coder_of(definition_of()).columns == ["who", "when", "where", "gender", "age"]


def test_events_hold_no_text_of_a_row() -> None:
    marker = b"33699887766"
    events, _ = read(marker + f",{NOON},c1,M,secret,65+".encode(), changes=(SPLIT,))
    packed = events.pack()
    for text in (
        marker,
        b"secret",
        b"2017",
        b"65+",
        int(marker).to_bytes(8, "little"),
        int(marker).to_bytes(8, "big"),
    ):
        assert text not in packed


def test_day_of_the_first_and_the_last_date() -> None:
    definition = definition_of(("days = 2", "days = 62"))
    last = date(2017, 5, 25)
    assert definition.day_of(last) == 62
    parts, _ = ingest(f"{HEADER}\na,{last}T23:59:59,c1,,,\n".encode(), coder_of(definition))
    assert parts[0].day.tolist() == [62]


# --- opt-outs, profiles, quality ----------------------------------------------------------------------


def coded(lines: list[str], coder: RowCoder) -> tuple[Events, RowCounts]:
    parts, counts = ingest("\n".join([HEADER, *lines, ""]).encode(), coder)
    return concatenate(parts, slots=coder.slots), counts


def test_rows_of_those_who_have_opted_out_are_looked_at_no_further() -> None:
    gone = np.array(sorted(pseudonym_of(name) for name in ("", "b", "c")), np.uint64)
    lines = [
        f"a,{NOON},c1,F,,", f" b ,{NOON},c1,F,,", "b,never,,X,,", f"c,{NOON},c9,,,", f",{NOON},c1,F,,",
        "b,short", f"b,{NOON},c1,\0,,",
    ]  # fmt: skip
    events, counts = coded(lines, coder_of(definition_of(), opted_out=gone))
    assert outcomes(counts) == {
        "accepted": 1, "opted_out": 3, "empty_subscriber": 1, "wrong_columns": 1, "bad_text": 1
    }  # fmt: skip
    assert events.pseudonym.tolist() == [pseudonym_of("a")]
    assert counts.empty == {"who": 1, "age": 2}
    assert (counts.located, counts.locatable_of, counts.unmatched_cells) == (1, 1, {})


def test_indicators_without_a_column_have_no_value() -> None:
    definition = definition_of(SPLIT)
    usual = default_profile(definition)
    profile = replace(usual, columns={"age": "age"}, tables={"age": usual.tables["age"]})
    coder = coder_of(definition, profile=profile)
    assert coder.columns == ["who", "when", "where", "age"]
    events, counts = coded([f"a,{NOON},c1,X,,65+", f"a,{NOON},c1,F,,"], coder)
    assert outcomes(counts) == {"accepted": 2}
    assert events.codes.tolist() == [[NONE, 2], [NONE, NONE]]


def test_sampled_plan_without_the_column_that_is_asked_for() -> None:
    definition = definition_of()
    bare = replace(default_profile(definition), columns={}, tables={})
    names = [f"336{n:04d}" for n in range(20)]
    events, _ = coded([f"{name},{NOON},c1,M,,65+" for name in names], coder_of(definition, profile=bare))
    assert events.codes.tolist() == [[NONE]] * 20
    age = replace(bare, columns={"age": "age"}, tables={"age": default_profile(definition).tables["age"]})
    events, _ = coded([f"{name},{NOON},c1,M,,65+" for name in names], coder_of(definition, profile=age))
    asked = [asked_of(pseudonym_of(name), d=3) for name in names]
    assert events.codes.tolist() == [[2 if index == 2 else NONE] for index in asked]


def test_two_indicators_of_one_column_count_its_empty_values_once() -> None:
    definition = definition_of(SPLIT)
    usual = default_profile(definition)
    both = replace(
        usual,
        columns={"gender": "age", "age": "age"},
        tables=dict.fromkeys(("gender", "age"), usual.tables["age"]),
    )
    _, counts = coded([f"a,{NOON},c1,,,", f"a,{NOON},c1,,,65+"], coder_of(definition, profile=both))
    assert counts.empty == {"age": 1}


def test_values_that_are_missing_are_counted_by_column() -> None:
    _, counts = read(
        " , , , , , ",
        f"a,{NOON},c1,,x,",
        "a,,c1,F,,65+",
        "a,soon,c1,F,,65+",
        f"a,{NOON},,F,,65+",
        "x",
        ",,,,,\0",
    )
    assert counts.empty == {"who": 1, "when": 2, "where": 2, "gender": 2, "age": 2}


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
