"""Whole small extracts against the independent reference: rows by outcome, presence, durations, values."""

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mobility.ingest.counts import LINES_KEPT, RowCounts
from mobility.ingest.durations import duration_codes
from mobility.ingest.events import NO_VALUE, Events, concatenate, split_by_shard
from mobility.ingest.visits import GroupedEvents, group_events
from reports.studyfile import VISIT_DURATION_BANDS
from tests.mobility.ingest.small_extract import (
    HEADER,
    coder_of,
    definition_of,
    ingest,
    pseudonym_of,
    write_study,
)
from tests.reference import Extract, Study, read_extract, read_study

N_SHARDS = 4
MIN_STAY_S = 3600
SUBSCRIBERS = ["336001", " 336001 ", "336002", "\t336003", "roam-1", "Roam-1", "", "  "]
CELLS = ["c1", "c2", " c1 ", "c9", "C1", "", " "]
GENDERS = ["F", "M", " M ", "", "f", "X"]
AGES = ["<18", "18-64", "65+", "Ä", "", " "]
SHAPES = ["", "   ", "x", ",,,,", ",,,,,", ",,,,,,", "a,b,c,d,e,f,g", "336001,2017-03-25T12:00:00,c1,F,,,"]
BAD_TIMES = [
    "", " ", "soon", "2017-02-30T10:00:00", "25/03/2017 10h", "2017-03-25T24:00:00", "2017-03-25T10:00:60",
    "2017-03-25T10:61", "1490432400", "2017-03-25T10:00:00+2", "2017-03-26T02:30:00", "2017-03-26T02:00",
]  # fmt: skip
# Days 1 and 2, both ends of the hours, the lost hour, and the days beside the study.
ANCHORS = [
    "2017-03-24T22:59", "2017-03-24T23:00", "2017-03-25T05:00", "2017-03-25T05:59", "2017-03-25T06:00",
    "2017-03-25T12:00", "2017-03-25T12:59", "2017-03-25T13:00", "2017-03-25T21:30", "2017-03-25T23:59",
    "2017-03-26T00:59", "2017-03-26T04:59", "2017-03-26T06:00", "2017-03-26T07:00", "2017-03-26T09:00",
    "2017-03-26T19:30", "2017-03-26T23:59", "2017-03-27T00:00", "2017-03-27T06:30",
]  # fmt: skip

times = st.sampled_from(BAD_TIMES) | st.builds(
    lambda anchor, second, end: f"{anchor}{second}{end}",
    st.sampled_from([*ANCHORS, *(anchor.replace("T", " ") for anchor in ANCHORS)]),
    st.sampled_from(["", ":00", ":01", ":59", ":00.9"]),
    st.sampled_from(["", "", "Z", "+01:00", "+02", "-0330"]),
)
rows = st.builds(
    ",".join,
    st.tuples(
        st.sampled_from(SUBSCRIBERS),
        times,
        st.sampled_from(CELLS),
        st.sampled_from(GENDERS),
        st.just("anything"),
        st.sampled_from(AGES),
    ),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reference")


@pytest.fixture(scope="module")
def study(folder: Path) -> Study:
    return read_study(write_study(folder))


def reference(folder: Path, study: Study, lines: list[str]) -> Extract:
    path = folder / "rows.csv"
    path.write_text("\n".join([HEADER, *lines, ""]), encoding="utf-8")
    return read_extract([path], study)


def reference_lines(folder: Path, study: Study, lines: list[str]) -> dict[str, list[int]]:
    """First line numbers of each reason, reading one line at a time."""
    found: dict[str, list[int]] = {}
    for number, line in enumerate(lines, start=2):
        for reason in reference(folder, study, [line])["rejected"]:
            found.setdefault(reason, []).append(number)
    return {reason: numbers[:LINES_KEPT] for reason, numbers in found.items()}


def grouped_by_shard(parts: list[Events], *, slots: int, shuffle: random.Random) -> list[GroupedEvents]:
    """As the pipeline does: chunks split by shard and packed; then each shard from its chunks."""
    chunks = [split_by_shard(part, n_shards=N_SHARDS) for part in parts]
    shards = []
    for shard in range(N_SHARDS):
        pieces = [Events.unpack(chunk[shard].pack()) for chunk in chunks if shard in chunk]
        shuffle.shuffle(pieces)
        shards.append(group_events(concatenate(pieces, slots=slots)))
    return shards


def check_counts(counts: RowCounts, duplicates: int, expected: Extract) -> None:
    assert counts.rows_read == expected["rows_read"]
    assert dict(counts.rejected) == dict(expected["rejected"])
    assert dict(counts.ignored) | ({"duplicate": duplicates} if duplicates else {}) == dict(
        expected["ignored"]
    )
    assert counts.accepted - duplicates == expected["accepted"]


def check_visits(shards: list[GroupedEvents], expected: Extract) -> None:
    names = {pseudonym_of(text.strip()): text.strip() for text in SUBSCRIBERS}
    presence: dict[str, set[int]] = {}
    durations: dict[tuple[str, int], str | None] = {}
    for grouped in shards:
        visits = grouped.visits
        stay_s = visits.last - visits.first
        for i in np.flatnonzero(stay_s >= MIN_STAY_S).tolist():
            name, day = names[int(visits.pseudonym[i])], int(visits.day[i])
            code = int(duration_codes(stay_s[i : i + 1])[0])
            presence.setdefault(name, set()).add(day)
            durations[name, day] = None if code == NO_VALUE else VISIT_DURATION_BANDS[code]
    assert presence == expected["presence"]
    assert durations == expected["duration"]


@settings(max_examples=150)
@given(
    lines=st.lists(rows | rows | rows | rows | st.sampled_from(SHAPES), max_size=60),
    block_bytes=st.integers(80, 600),
    shuffle=st.randoms(use_true_random=False),
)
def test_counts_and_visits(
    *, lines: list[str], block_bytes: int, shuffle: random.Random, folder: Path, study: Study
) -> None:
    expected = reference(folder, study, lines)
    coder = coder_of(definition_of())
    data = "\n".join([HEADER, *lines, ""]).encode()
    parts, counts = ingest(data, coder, block_bytes=block_bytes)
    shards = grouped_by_shard(parts, slots=coder.slots, shuffle=shuffle)
    check_counts(counts, sum(grouped.duplicates for grouped in shards), expected)
    check_visits(shards, expected)


@settings(max_examples=25)
@given(lines=st.lists(rows | st.sampled_from(SHAPES), max_size=30), block_bytes=st.integers(80, 600))
def test_lines_of_rejected_rows(*, lines: list[str], block_bytes: int, folder: Path, study: Study) -> None:
    _, counts = ingest(
        "\n".join([HEADER, *lines, ""]).encode(), coder_of(definition_of()), block_bytes=block_bytes
    )
    assert counts.lines == reference_lines(folder, study, lines)


good_rows = st.builds(
    ",".join,
    st.tuples(
        st.sampled_from(["a", "b"]),
        st.sampled_from([anchor for anchor in ANCHORS if "2017-03-25T1" in anchor]),
        st.sampled_from(["c1", "c2"]),
        st.sampled_from(["F", "M", ""]),
        st.just(""),
        st.sampled_from(AGES),
    ),
)


@settings(max_examples=60)
@given(lines=st.lists(good_rows, max_size=12, unique_by=lambda row: row[:21]))
def test_static_values_of_visitors(*, lines: list[str], folder: Path, study: Study) -> None:
    """Rows that repeat each other with other values are left to the tests of visits."""
    expected = reference(folder, study, lines)["static"]
    definition = definition_of(('"smp-grr"', '"spl-grr"'))
    coder = coder_of(definition)
    parts, _ = ingest("\n".join([HEADER, *lines, ""]).encode(), coder)
    values = group_events(concatenate(parts, slots=coder.slots)).values
    categories = [indicator.categories for indicator in definition.indicators if indicator.kind == "static"]
    found = {
        name: {
            slug: categories[slot][code]
            for slot, (slug, code) in enumerate(zip(("gender", "age"), codes, strict=True))
            if code != NO_VALUE
        }
        for name in ("a", "b")
        for codes in values.codes[values.pseudonym == pseudonym_of(name)].tolist()
    }
    assert {name: found[name] for name in expected} == expected
