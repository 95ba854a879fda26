"""Chunks of an extract, whose lines and rows together are those of the whole."""

import gzip
import io

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from mobility.extracts.chunk_plans import ChunkPlan
from mobility.extracts.readers import Layout, Source
from mobility.extracts.readers.chunks import GRAIN_BYTES, plan_chunks, read_chunk
from tests.mobility.extracts.readers.any_file import COLUMNS, check, cut, files, written

GZIPPED = gzip.compress(b"a,b\n" * 10, mtime=0)  # the same bytes in every process: they name a test
LAYOUT = Layout(columns=("a", "b"), delimiter="comma")
HEADER, ROW = ",".join(COLUMNS).encode(), b"336001,2017-03-25T12:00:00,c1,F,,65+"


@settings(max_examples=120, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(
    data=files, block=st.sampled_from([64, 300, 4 << 20]), step=st.integers(1, 400), piece=st.integers(1, 500)
)
@example(HEADER + b"\r" + ROW + b"\n" + ROW + b"\r" + ROW + b"\n", 300, 1, 50)
def test_any_file_is_read_or_refused_as_a_whole_and_in_chunks(data, block, step, piece) -> None:
    check(data, block=block, step=step, piece=piece)


def n_rows(stream: io.IOBase, plan: ChunkPlan) -> int:
    return sum(len(block.lines) for block in read_chunk(stream, plan, layout=LAYOUT, source=Source()))


def test_lone_carriage_returns_all_belong_to_the_first_chunk() -> None:
    data = b"a,b\r" + b"1,2\r" * 9
    assert [n_rows(io.BytesIO(data), plan) for plan in cut(len(data), 10)] == [9, 0, 0, 0]


def test_a_chunk_reads_no_further_than_its_last_line() -> None:
    data = b"a,b\n" + b"1,2\n" * (1 << 20)
    read = 0

    class Counting(io.BytesIO):
        def readinto(self, buffer: memoryview) -> int:
            nonlocal read
            n = super().readinto(buffer)
            read += n
            return n

    assert n_rows(Counting(data), ChunkPlan(kind="bytes", begin=1 << 20, end=2 << 20)) == 1 << 18
    assert read < (1 << 20) + (256 << 10)


def plans_of(data: bytes, target: int, size: int | None = None) -> list[ChunkPlan]:
    return plan_chunks(io.BytesIO(data), size=size or len(data), target_bytes=target)


@pytest.mark.parametrize(("target", "step"), [(1, 1), (GRAIN_BYTES, 1), (11 << 20, 2), (12 << 20, 3)])
def test_plain_text_is_cut_at_frames(target: int, step: int) -> None:
    size = 30 << 20
    plans = plans_of(b"a,b\n1,2\n", target, size=size)
    assert [plan.begin for plan in plans] == list(range(0, size, step * GRAIN_BYTES))
    assert [plan.end for plan in plans] == [*(plan.begin for plan in plans[1:]), size]
    assert {plan.kind for plan in plans} == {"bytes"}


@pytest.mark.parametrize(
    "data", [b"", b"a,b\n", GZIPPED, b"\xff\xfea\0", b"PAR1", b"PK\x03\x04", b"BZh91AY&SY"]
)
def test_what_is_small_packed_or_wrong_is_one_chunk(data: bytes) -> None:
    size = len(data) if data in (b"", b"a,b\n") else 64 << 20
    assert plans_of(data, 1, size=size) == [ChunkPlan(kind="whole", begin=0, end=size)]


@given(n=st.integers(0, 60), group=st.integers(1, 25), target=st.integers(1, 3000))
def test_row_groups_are_shared_out_in_order(n: int, group: int, target: int) -> None:
    table = pa.table({"a": [f"{i}" for i in range(n)], "b": [None if i % 7 == 3 else "é" for i in range(n)]})
    data = written(table, row_group_size=group)
    plans = plans_of(data, target)
    rows = [n_rows(io.BytesIO(data), plan) for plan in plans]
    assert sum(rows) == n
    if n:
        assert [plan.first_row for plan in plans] == [sum(rows[:place]) + 1 for place in range(len(rows))]
        assert {plan.kind for plan in plans} == {"row_groups"}
    if target == 1:
        assert len(plans) == max(-(-n // group), 1)
