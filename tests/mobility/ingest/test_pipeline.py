"""Several threads give what one gives, in the same order."""

import io

import pytest

from mobility.errors import BatchFormatError
from mobility.ingest.counts import RowCounts
from mobility.ingest.events import concatenate
from mobility.ingest.pipeline import blocks_in_use, coded
from mobility.readers import csv as reader
from mobility.readers.opening import read_extract
from tests.mobility.ingest.small_extract import HEADER, coder_of, definition_of

LINES = [
    f"336{n % 97:03d},2017-03-2{5 + n % 2}T12:{n % 60:02d}:00,c{n % 3},{'FMX '[n % 4]},,65+"
    for n in range(4000)
]
DATA = "\n".join([HEADER, *LINES, "x", ""]).encode()


def packed(data: bytes, *, threads: int) -> tuple[bytes, RowCounts]:
    coder, counts = coder_of(definition_of()), RowCounts()
    blocks = read_extract(io.BytesIO(data), layout=coder.layout, in_use=blocks_in_use(threads))
    parts = list(coded(blocks, coder, counts, threads=threads))
    return concatenate(parts, slots=coder.slots).pack(), counts


@pytest.mark.parametrize("threads", [2, 3, 5])
def test_threads_make_no_difference(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "BLOCK_BYTES", 2048)
    for _ in range(10):
        assert packed(DATA, threads=threads) == packed(DATA, threads=1)


def test_an_error_of_the_reader_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "BLOCK_BYTES", 256)
    with pytest.raises(BatchFormatError, match="more than 256 bytes"):
        packed(DATA + b"x" * 600, threads=3)


def test_a_consumer_may_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "BLOCK_BYTES", 2048)
    coder, counts = coder_of(definition_of()), RowCounts()
    events = coded(read_extract(io.BytesIO(DATA), layout=coder.layout, in_use=3), coder, counts, threads=3)
    next(events)
    events.close()  # type: ignore[attr-defined]
    assert 0 < counts.rows_read < len(LINES)
