"""Whole small extracts against the independent reference; several threads give what one gives."""

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mobility.base.errors import BatchFormatError
from mobility.extracts.readers import csv as reader
from mobility.extracts.readers import opening
from mobility.extracts.rows.counts import RowCounts
from mobility.extracts.rows.events import NO_VALUE, Events, concatenate, shard_of
from mobility.extracts.rows.pipeline import blocks_in_use, coded
from mobility.vault.state.daily import duration_codes
from mobility.vault.state.visits import group_events
from reports.studies.studyfile import VISIT_DURATION_BANDS
from tests.mobility.extracts.rows import small_extract
from tests.reference import read_extract, read_study

N_SHARDS = 4
MIN_STAY_S = 3600
SUBSCRIBERS = ["336001", " 336001 ", "336002", "\t336003", "roam-1", "Roam-1", "", "  "]
CELLS = ["c1", "c2", " c1 ", "c9", "C1", "", " "]
AGES = ["<18", "18-64", "65+", "Ä", "", " "]
SHAPES = ["", "   ", "x", ",,,,", ",,,,,", ",,,,,,", "a,b,c,d,e,f,g", "336001,2017-03-25T12:00:00,c1,F,,,"]
BAD_TIMES = [
    "", " ", "soon", "2017-02-30T10:00:00", "25/03/2017 10h", "2017-03-25T24:00:00", "2017-03-25T10:00:60",
    "2017-03-25T10:61", "1490432400", "2017-03-25T10:00:00+2", "2017-03-26T02:30:00", "2017-03-26T02:00",
]  # fmt: skip
# Days 1 and 2, both ends of the hours, the lost hour, and the days next to the study.
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
columns = (SUBSCRIBERS, None, CELLS, ["F", "M", " M ", "", "f", "X"], ["anything"], AGES)
rows = st.tuples(*(times if values is None else st.sampled_from(values) for values in columns)).map(",".join)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory):
    return tmp_path_factory.mktemp("reference")


@pytest.fixture(scope="module")
def study(folder):
    return read_study(small_extract.write_study(folder))


def reference(folder, study, lines: list[str]):
    path = folder / "rows.csv"
    path.write_text("\n".join([small_extract.HEADER, *lines, ""]), encoding="utf-8")
    return read_extract([path], study)


def grouped_by_shard(parts: list[Events], *, slots: int, shuffle):
    """Group as the pipeline does: chunks split by shard and packed; then each shard from its chunks."""
    chunks = [part.by_key(shard_of(part.pseudonym, n_shards=N_SHARDS), N_SHARDS) for part in parts]
    shards = []
    for shard in range(N_SHARDS):
        pieces = [Events.unpack(chunk[shard].pack()) for chunk in chunks if shard in chunk]
        shuffle.shuffle(pieces)
        shards.append(group_events(concatenate(pieces, slots=slots)))
    return shards


def check_counts(counts, duplicates: int, expected) -> None:
    assert (counts.rows_read, dict(counts.rejected)) == (expected["rows_read"], dict(expected["rejected"]))
    repeated = {"duplicate": duplicates} if duplicates else {}
    assert dict(counts.ignored) | repeated == dict(expected["ignored"])
    assert counts.accepted - duplicates == expected["accepted"]


def check_visits(shards, expected) -> None:
    names = {small_extract.pseudonym_of(text.strip()): text.strip() for text in SUBSCRIBERS}
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
    assert (presence, durations) == (expected["presence"], expected["duration"])


@settings(max_examples=80)
@given(
    lines=st.lists(rows | rows | rows | rows | st.sampled_from(SHAPES), max_size=60),
    block_bytes=st.integers(80, 600),
    shuffle=st.randoms(use_true_random=False),
)
def test_counts_and_visits(*, lines, block_bytes, shuffle, folder, study) -> None:
    expected = reference(folder, study, lines)
    coder = small_extract.coder_of(small_extract.definition_of())
    parts, counts = small_extract.ingest(
        "\n".join([small_extract.HEADER, *lines, ""]).encode(), coder, block_bytes=block_bytes
    )
    shards = grouped_by_shard(parts, slots=coder.slots, shuffle=shuffle)
    check_counts(counts, sum(grouped.duplicates for grouped in shards), expected)
    check_visits(shards, expected)


LINES = [
    f"336{n % 97:03d},2017-03-2{5 + n % 2}T12:{n % 60:02d}:00,c{n % 3},{'FMX '[n % 4]},,65+"
    for n in range(4000)
]
DATA = "\n".join([small_extract.HEADER, *LINES, "x", ""]).encode()


def packed(data: bytes, *, threads: int) -> tuple[bytes, RowCounts]:
    coder, counts = small_extract.coder_of(small_extract.definition_of()), RowCounts()
    blocks = opening.read_extract(io.BytesIO(data), layout=coder.layout, in_use=blocks_in_use(threads))
    parts = list(coded(blocks, coder, counts, threads=threads))
    return concatenate(parts, slots=coder.slots).pack(), counts


@pytest.mark.parametrize("threads", [2, 3, 5])
def test_threads_make_no_difference(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "BLOCK_BYTES", 2048)
    for _ in range(10):
        assert packed(DATA, threads=threads) == packed(DATA, threads=1)


def test_an_error_of_the_reader_ends_it_and_a_consumer_may_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "BLOCK_BYTES", 256)
    with pytest.raises(BatchFormatError, match="is longer than"):
        packed(DATA + b"x" * 600, threads=3)
    coder, counts = small_extract.coder_of(small_extract.definition_of()), RowCounts()
    blocks = opening.read_extract(io.BytesIO(DATA), layout=coder.layout, in_use=3)
    events = coded(blocks, coder, counts, threads=3)
    next(events)
    events.close()
    assert 0 < counts.rows_read < len(LINES)
