"""Chunks of an extract against reading it from its beginning to its end."""

import io
import json
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mobility.errors import BatchFormatError
from mobility.readers import Layout, Source
from mobility.readers import csv as reader
from mobility.readers.chunks import GRAIN_BYTES, ChunkPlan, plan_chunks, read_chunk
from tests.mobility.readers.test_csv import Dribble, gzipped

LAYOUT = Layout(columns=("a", "b"), delimiter="comma")


class Found(NamedTuple):
    """Rows with their lines, lines that are none, and how many lines there are."""

    rows: list[tuple[int, bytes, bytes]]
    misshapen: list[int]
    bad_text: list[int]
    n_lines: int
    encoding: str


class Seekable(Dribble):
    """A stream that gives a few bytes at a time from any place."""

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return self._data.seek(offset, whence)


def found_in(stream: io.RawIOBase, plan: ChunkPlan, layout: Layout = LAYOUT) -> Found:
    source = Source()
    found = Found([], [], [], 0, "")
    n_lines = 0
    for block in read_chunk(stream, plan, layout=layout, source=source):
        texts = [block.columns[name].to_list() for name in layout.columns]
        found.rows.extend(zip(block.lines.tolist(), *texts, strict=True))
        found.misshapen.extend(block.misshapen.tolist())
        found.bad_text.extend(block.bad_text.tolist())
        n_lines += block.n_lines
    return found._replace(n_lines=n_lines, encoding=source.encoding)


def joined(parts: list[Found]) -> Found:
    """All parts, with the lines of the whole."""
    whole = Found([], [], [], 0, "")
    for part in parts:
        before = whole.n_lines
        whole.rows.extend((line + before, *values) for line, *values in part.rows)
        whole.misshapen.extend(line + before for line in part.misshapen)
        whole.bad_text.extend(line + before for line in part.bad_text)
        whole = whole._replace(n_lines=before + part.n_lines, encoding=whole.encoding or part.encoding)
    return whole


def cut(size: int, step: int) -> list[ChunkPlan]:
    return [
        ChunkPlan(kind="bytes", begin=begin, end=min(begin + step, size)) for begin in range(0, size, step)
    ]


lines = st.lists(
    st.sampled_from(
        ["1,2,3", "", "x", '"1,2",3,4', '"1,2', 'é,"é",', "1,2,\x00", "\x00,1,2", ",,", "a,b,c,d"]
    ),
    max_size=25,
)


@settings(max_examples=300)
@given(
    lines=lines,
    ends=st.lists(st.sampled_from(["\n", "\r\n", "\r"]), min_size=1, max_size=4),
    is_final_end=st.booleans(),
    encoding=st.sampled_from(["utf-8", "latin-1"]),
    mark=st.sampled_from([b"", b"\xef\xbb\xbf"]),
    step=st.integers(1, 60),
    block=st.integers(16, 64),
    piece=st.integers(1, 50),
)
@example(["1,2,3"] * 3, ["\r", "\n"], True, "utf-8", b"", 1, 64, 50)
def test_chunks_together_are_the_whole(
    lines: list[str], ends: list[str], is_final_end: bool, encoding: str, mark: bytes, step: int,
    block: int, piece: int,
) -> None:  # fmt: skip
    text = "".join(
        line + ends[number % len(ends)] * (is_final_end or number < len(lines))
        for number, line in enumerate(["a,b,c", *lines])
    )
    data = (mark if encoding == "utf-8" else b"") + text.encode(encoding)
    stream = Seekable(data, piece=piece)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "BLOCK_BYTES", block)
        whole = found_in(stream, ChunkPlan.whole(len(data)))
        assert joined([found_in(stream, plan) for plan in cut(len(data), step)]) == whole


def test_lone_carriage_returns_all_belong_to_the_first_chunk() -> None:
    data = b"a,b\r" + b"1,2\r" * 9
    parts = [found_in(io.BytesIO(data), plan) for plan in cut(len(data), 10)]  # type: ignore[arg-type]
    assert [len(part.rows) for part in parts] == [9, 0, 0, 0]


def test_a_chunk_reads_no_further_than_its_last_line() -> None:
    data = b"a,b\n" + b"1,2\n" * (1 << 20)
    read = 0

    class Counting(io.BytesIO):
        def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
            nonlocal read
            n = super().readinto(buffer)
            read += n
            return n

    found = found_in(Counting(data), ChunkPlan(kind="bytes", begin=1 << 20, end=2 << 20))  # type: ignore[arg-type]
    assert len(found.rows) == 1 << 18
    assert read < (1 << 20) + (256 << 10)


@pytest.mark.parametrize("begin", [0, 30])
def test_a_line_that_is_too_long_is_too_long_in_its_chunk(
    begin: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "BLOCK_BYTES", 20)
    data = b"a,b\n" + b"1,2\n" * (begin // 4 + 1) + b"x" * 50 + b"\n1,2\n"
    with pytest.raises(BatchFormatError, match="a line has more than 20 bytes"):
        found_in(io.BytesIO(data), ChunkPlan(kind="bytes", begin=begin, end=begin + 30))  # type: ignore[arg-type]


@pytest.mark.parametrize("header", [b"", b"a;c\n", b"x" * 100 + b"\n"])
def test_a_header_that_is_wrong_is_wrong_in_every_chunk(
    header: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "BLOCK_BYTES", 64)
    data = header + b"\n" + b"1,2\n" * 30
    for plan in cut(len(data), 40):
        with pytest.raises(BatchFormatError):
            found_in(io.BytesIO(data), plan)  # type: ignore[arg-type]


# --- plans ------------------------------------------------------------------------------------------


def plans_of(data: bytes, target: int, size: int | None = None) -> list[ChunkPlan]:
    return plan_chunks(io.BytesIO(data), size=size or len(data), target_bytes=target)  # type: ignore[arg-type]


@pytest.mark.parametrize(("target", "step"), [(1, 1), (GRAIN_BYTES, 1), (11 << 20, 2), (12 << 20, 3)])
def test_plain_text_is_cut_at_frames(target: int, step: int) -> None:
    size = 30 << 20
    plans = plans_of(b"a,b\n1,2\n", target, size=size)
    assert [plan.begin for plan in plans] == list(range(0, size, step * GRAIN_BYTES))
    assert [plan.end for plan in plans] == [*(plan.begin for plan in plans[1:]), size]
    assert {plan.kind for plan in plans} == {"bytes"}


@pytest.mark.parametrize(
    "data", [b"", b"a,b\n", gzipped(b"a,b\n" * 10), b"\xff\xfea\0", b"PAR1", b"PK\x03\x04", b"BZh91AY&SY"]
)
def test_what_is_small_packed_or_wrong_is_one_chunk(data: bytes) -> None:
    size = len(data) if data in (b"", b"a,b\n") else 64 << 20
    assert plans_of(data, 1, size=size) == [ChunkPlan(kind="whole", begin=0, end=size)]


def test_plans_go_through_json() -> None:
    for plan in (ChunkPlan.whole(9), ChunkPlan(kind="row_groups", begin=1, end=3, first_row=7)):
        assert ChunkPlan.from_json(json.loads(json.dumps(plan.to_json()))) == plan


@given(n=st.integers(0, 60), group=st.integers(1, 25), target=st.integers(1, 3000))
def test_row_groups_together_are_the_whole(n: int, group: int, target: int) -> None:
    table = pa.table({"a": [f"{i}" for i in range(n)], "b": [None if i % 7 == 3 else "é" for i in range(n)]})
    file = io.BytesIO()
    pq.write_table(table, file, row_group_size=group)
    plans = plans_of(file.getvalue(), target)
    whole = found_in(file, ChunkPlan.whole(0))  # type: ignore[arg-type]
    parts = [found_in(file, plan) for plan in plans]  # type: ignore[arg-type]
    assert joined(parts) == whole
    assert whole.n_lines == len(whole.rows) == n
    if n:
        firsts = [sum(part.n_lines for part in parts[:place]) + 1 for place in range(len(parts))]
        assert [plan.first_row for plan in plans] == firsts
        assert {plan.kind for plan in plans} == {"row_groups"}
    if target == 1:
        assert len(plans) == max(-(-n // group), 1)
