"""Compressed streams: members, frames and pieces of any size, and bombs that stay small."""

import gzip
import io
import resource
import tracemalloc

import pyarrow as pa
import pytest

from mobility.errors import BatchFormatError
from mobility.readers import Layout, Source
from mobility.readers.compression import buffered, compression_of, decompressed, with_head
from mobility.readers.opening import read_extract
from tests.mobility.readers.test_csv import Dribble, Found, read

DATA = b"a,b\n1,2\n\n3\n4,5\n"
FOUND = Found([(2, b"1", b"2"), (5, b"4", b"5")], [4])
SKIPPABLE = b"\x5a\x2a\x4d\x18" + b"\x03\x00\x00\x00" + b"any"


def zstd(data: bytes) -> bytes:
    return bytes(pa.Codec("zstd").compress(data, asbytes=True))


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd])
def test_pieces_of_any_size(piece: int, pack: type[bytes]) -> None:
    assert read(pack(DATA), piece=piece) == FOUND


def test_zstd_of_several_frames_wherever_they_are_cut() -> None:
    for cut in range(len(DATA) + 1):
        packed = zstd(DATA[:cut]) + zstd(b"") + SKIPPABLE + zstd(DATA[cut:])
        assert read(packed, piece=5) == FOUND
        assert read(SKIPPABLE + packed) == FOUND


def test_compression_is_told_by_the_first_bytes() -> None:
    assert compression_of(gzip.compress(b"")) == "gzip"
    assert compression_of(zstd(b"")) == compression_of(SKIPPABLE) == "zstd"
    assert compression_of(b"a,b\n") == compression_of(b"") == ""
    for pack, name in ((gzip.compress, "gzip"), (zstd, "zstd")):
        source = Source()
        read(pack(DATA), source=source)
        assert source.compression == name


@pytest.mark.parametrize("length", range(12))
def test_head_is_given_back(length: int) -> None:
    data = bytes(range(length))
    head, whole = with_head(buffered(Dribble(data, piece=3)))
    assert head == data[:8]
    assert whole.read() == data


@pytest.mark.parametrize("pack", [gzip.compress, zstd])
def test_a_bomb_is_never_larger_than_a_few_buffers(pack: type[bytes]) -> None:
    """256 MB in a fraction of a percent: every byte comes out, and nearly nothing is held."""
    size = 1 << 28
    packed = pack(bytes(size))
    assert len(packed) < size // 900
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    pool = pa.default_memory_pool()
    tracemalloc.start()
    plain = decompressed(buffered(io.BytesIO(packed)), compression=compression_of(packed))
    total, part = 0, bytearray(1 << 16)
    arrow = 0
    while n := plain.readinto(part):
        total += n
        arrow = max(arrow, pool.bytes_allocated())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total == size
    assert peak < 4 << 20
    assert arrow < 8 << 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40 << 10  # KiB


class FailingDisk(io.RawIOBase):
    """Gives the first bytes and then fails, as a disk does."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self._data = data

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        if not self._data:
            raise OSError(5, "Input/output error")
        count = min(len(buffer), len(self._data), 10)
        buffer[:count] = self._data[:count]
        self._data = self._data[count:]
        return count


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd])
def test_errors_of_the_disk_are_not_the_files(pack: type[bytes]) -> None:
    with pytest.raises(OSError, match="Input/output error") as caught:
        list(read_extract(FailingDisk(pack(DATA * 100)[:-12]), layout=Layout(columns=("a", "b"))))
    assert caught.value.errno == 5


def test_altered_zstd_is_read_or_refused() -> None:
    """Arrow writes no checksums: what the format itself notices is refused, and nothing else happens."""
    packed = zstd(b"a,b\n" + b"".join(b"%d,%d\n" % (n, n * n) for n in range(40)))
    refused = 0
    for place in range(len(packed)):
        try:
            read(packed[:place] + bytes([packed[place] ^ 0x80]) + packed[place + 1 :])
        except BatchFormatError:
            refused += 1
    assert refused > 20
