"""Streams and blobs that are ciphertext at rest: what comes out is what went in, or nothing."""

import io
import tracemalloc
from collections.abc import Callable

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st

from ldp.entropy import derive_subkey
from mobility import sealing
from mobility.errors import SealBrokenError
from mobility.sealing import SealedReader, SealingWriter, seal, stream_key, unseal

KEY = bytes(range(32))
OTHER_KEY = bytes(range(1, 33))
FRAME = 48
SEALED_FRAME = FRAME + 16  # the tag
PLAIN = bytes(range(3 * FRAME + 5))  # four frames, no two alike
BLOB = b"\x00presence of a shard\xff"


@pytest.fixture
def _small_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealing, "FRAME_BYTES", FRAME)


def sealed_stream(plain: bytes, *, key: bytes = KEY, piece: int = 1 << 20) -> bytes:
    sink = io.BytesIO()
    writer = SealingWriter(sink, key=key)
    for start in range(0, len(plain), piece):
        writer.write(plain[start : start + piece])
    writer.close()
    return sink.getvalue()


def drain(sealed: bytes, *, key: bytes = KEY, size: int = 1000) -> tuple[bytes, bool]:
    """Plaintext up to the end or the first error, and whether there was one; errors must stay errors."""
    reader = SealedReader(io.BytesIO(sealed), key=key)
    got = b""
    try:
        while data := reader.read(size):
            got += data
    except SealBrokenError:
        for _ in range(5):
            with pytest.raises(SealBrokenError):
                reader.read(size)
        return got, True
    assert reader.read(size) == b""
    return got, False


def frames(sealed: bytes) -> list[bytes]:
    return [sealed[start : start + SEALED_FRAME] for start in range(0, len(sealed), SEALED_FRAME)]


@pytest.mark.parametrize(
    "size", [0, 1, sealing.FRAME_BYTES - 1, sealing.FRAME_BYTES, sealing.FRAME_BYTES + 1]
)
def test_stream_round_trip_at_the_real_frame_size(size: int) -> None:
    plain = bytes(range(251)) * (size // 251 + 1)
    sealed = sealed_stream(plain[:size])
    assert len(sealed) == size + 16 * max(1, -(-size // sealing.FRAME_BYTES))
    assert drain(sealed, size=1 << 18) == (plain[:size], False)


@pytest.mark.parametrize("frame_count", range(5))
@pytest.mark.parametrize("more", [-1, 0, 1])
@pytest.mark.parametrize("piece", [1, FRAME - 1, FRAME, 1000])
@pytest.mark.usefixtures("_small_frames")
def test_stream_round_trip_at_every_edge_of_a_frame(frame_count: int, more: int, piece: int) -> None:
    plain = (PLAIN * 2)[: max(frame_count * FRAME + more, 0)]
    sealed = sealed_stream(plain, piece=piece)
    assert sealed == sealed_stream(plain)
    for size in (1, 7, FRAME, 1000):
        assert drain(sealed, size=size) == (plain, False)


def test_layout_of_a_stream() -> None:
    """Frame i is AES-256-GCM under the nonce (i, 11 bytes; whether it is the last, 1 byte)."""
    plain = bytes(sealing.FRAME_BYTES) + b"rest"
    sealed = sealed_stream(plain)
    cipher = AESGCM(KEY)
    cut = sealing.FRAME_BYTES + 16
    assert cipher.decrypt(bytes(12), sealed[:cut], None) == bytes(sealing.FRAME_BYTES)
    assert cipher.decrypt(bytes(10) + b"\x01\x01", sealed[cut:], None) == b"rest"


@pytest.mark.usefixtures("_small_frames")
def test_every_truncation_is_noticed() -> None:
    sealed = sealed_stream(PLAIN)
    for length in range(len(sealed)):
        got, is_broken = drain(sealed[:length])
        assert is_broken, length
        # Only whole frames that are known not to be the last come out.
        assert PLAIN.startswith(got)
        assert len(got) == max(0, -(-length // SEALED_FRAME) - 1) * FRAME


@pytest.mark.usefixtures("_small_frames")
def test_an_altered_byte_anywhere_is_noticed_and_its_frame_is_not_returned() -> None:
    sealed = sealed_stream(PLAIN)
    for place in range(len(sealed)):
        altered = bytearray(sealed)
        altered[place] ^= 0x01
        assert drain(bytes(altered)) == (PLAIN[: place // SEALED_FRAME * FRAME], True)


def swapped(parts: list[bytes]) -> list[bytes]:
    return [parts[0], parts[2], parts[1], parts[3]]


def duplicated(parts: list[bytes]) -> list[bytes]:
    return [parts[0], parts[1], parts[1], *parts[2:]]


def dropped(parts: list[bytes]) -> list[bytes]:
    return [parts[0], *parts[2:]]


def first_gone(parts: list[bytes]) -> list[bytes]:
    return parts[1:]


def inserted(parts: list[bytes]) -> list[bytes]:
    return [parts[0], bytes(SEALED_FRAME), *parts[1:]]


def end_repeated(parts: list[bytes]) -> list[bytes]:
    return [*parts, parts[-1]]


def end_moved_up(parts: list[bytes]) -> list[bytes]:
    return [parts[0], parts[-1]]


def of_another_stream(parts: list[bytes]) -> list[bytes]:
    other = frames(sealed_stream(PLAIN, key=stream_key(KEY, "other")))
    return [parts[0], other[1], *parts[2:]]


@pytest.mark.parametrize(
    "change",
    [swapped, duplicated, dropped, first_gone, inserted, end_repeated, end_moved_up, of_another_stream],
)
@pytest.mark.usefixtures("_small_frames")
def test_frames_have_one_order_and_one_end(change: Callable[[list[bytes]], list[bytes]]) -> None:
    parts = frames(sealed_stream(PLAIN))
    assert len(parts) == 4
    got, is_broken = drain(b"".join(change(parts)))
    assert is_broken
    assert len(got) < len(PLAIN)
    assert PLAIN.startswith(got)


@pytest.mark.parametrize("sealed", [b"", b"\x00", bytes(16), b"not sealed at all, but long enough for a tag"])
def test_what_is_no_stream_is_refused(sealed: bytes) -> None:
    assert drain(sealed) == (b"", True)


def test_stream_of_another_key_or_name_is_refused() -> None:
    sealed = sealed_stream(PLAIN, key=stream_key(KEY, "upload"))
    assert drain(sealed, key=stream_key(KEY, "upload")) == (PLAIN, False)
    for key in (stream_key(OTHER_KEY, "upload"), stream_key(KEY, "chunks"), KEY):
        assert drain(sealed, key=key) == (b"", True)


def test_stream_key_is_a_subkey_of_its_own() -> None:
    assert stream_key(KEY, "upload") == derive_subkey(KEY, purpose="stream/upload", length=32)
    assert len(stream_key(KEY, "upload")) == 32


@pytest.mark.usefixtures("_small_frames")
def test_ciphertext_shows_nothing_of_the_plaintext() -> None:
    marker = b"33612345678,2017-05-31T12:00:00"
    sink = io.BytesIO()
    writer = SealingWriter(sink, key=KEY)
    for _ in range(40):
        writer.write(marker)
        assert all(marker[start : start + 6] not in sink.getvalue() for start in range(len(marker) - 6))
    writer.close()
    assert all(marker[start : start + 6] not in sink.getvalue() for start in range(len(marker) - 6))


@pytest.mark.usefixtures("_small_frames")
def test_bytes_read_count_what_came_out() -> None:
    reader = SealedReader(io.BytesIO(sealed_stream(PLAIN)), key=KEY)
    assert reader.bytes_read == 0
    reader.read(10)
    assert reader.bytes_read == 10
    while reader.read(100):
        pass
    assert reader.bytes_read == len(PLAIN)


@given(plain=st.binary(max_size=300), context=st.text(max_size=20))
def test_blob_round_trip(plain: bytes, context: str) -> None:
    sealed = seal(plain, key=KEY, context=context)
    assert unseal(sealed, key=KEY, context=context) == plain
    assert len(sealed) == len(plain) + 28


def test_layout_of_a_blob() -> None:
    """Nonce, then AES-256-GCM with the context as associated data: blobs of the vault outlive a release."""
    sealed = seal(BLOB, key=KEY, context="fimu/presence/3/1")
    assert AESGCM(KEY).decrypt(sealed[:12], sealed[12:], b"fimu/presence/3/1") == BLOB


def test_same_blob_is_never_sealed_alike() -> None:
    assert len({seal(BLOB, key=KEY, context="c") for _ in range(50)}) == 50


def test_altered_cut_or_moved_blob_is_refused() -> None:
    sealed = seal(BLOB, key=KEY, context="fimu/presence/3/1")
    for place in range(len(sealed)):
        altered = bytearray(sealed)
        altered[place] ^= 0x80
        with pytest.raises(SealBrokenError):
            unseal(bytes(altered), key=KEY, context="fimu/presence/3/1")
        with pytest.raises(SealBrokenError):
            unseal(sealed[:place], key=KEY, context="fimu/presence/3/1")
    for key, context in ((OTHER_KEY, "fimu/presence/3/1"), (KEY, "fimu/presence/3/2"), (KEY, "")):
        with pytest.raises(SealBrokenError):
            unseal(sealed, key=key, context=context)


def test_refusals_name_the_place_and_no_content() -> None:
    with pytest.raises(SealBrokenError, match=r"^sealed data of fimu/day-1/0/1 is damaged"):
        unseal(seal(BLOB, key=KEY, context="fimu/day-1/0/2"), key=KEY, context="fimu/day-1/0/1")
    with pytest.raises(SealBrokenError, match=r"^staged data is damaged at frame 0: send the file again$"):
        SealedReader(io.BytesIO(sealed_stream(PLAIN)), key=OTHER_KEY).read(1)


@given(
    steps=st.lists(st.tuples(st.integers(-5, 3 * FRAME + 9), st.integers(0, 70), st.sampled_from([0, 1, 2]))),
    kept=st.integers(1, 4),
)
@pytest.mark.parametrize("length", [0, 1, FRAME, 2 * FRAME, 3 * FRAME + 5])
def test_any_place_can_be_read_in_any_order(
    length: int, steps: list[tuple[int, int, int]], kept: int
) -> None:
    """Like a file of the plaintext: seek, tell and read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sealing, "FRAME_BYTES", FRAME)
        patch.setattr(sealing, "FRAMES_KEPT", kept)
        plain = io.BytesIO(PLAIN[:length])
        reader = SealedReader(io.BytesIO(sealed_stream(PLAIN[:length])), key=KEY)
        assert reader.seekable()
        buffered = io.BufferedReader(reader, 16)
        for place, size, whence in steps:
            offset = {0: place, 1: place - plain.tell(), 2: place - length}[whence]
            if place < 0:
                continue
            assert buffered.seek(offset, whence) == plain.seek(offset, whence)
            assert buffered.read(size) == plain.read(size)
            assert buffered.tell() == plain.tell()
        assert reader.bytes_read <= length


@pytest.mark.usefixtures("_small_frames")
def test_a_frame_that_is_read_again_counts_once() -> None:
    reader = SealedReader(io.BytesIO(sealed_stream(PLAIN)), key=KEY)
    for _ in range(3):
        for place in (FRAME, 0, 2 * FRAME, 3 * FRAME):
            reader.seek(place)
            reader.read(FRAME)
    assert reader.bytes_read == len(PLAIN)


@pytest.mark.usefixtures("_small_frames")
def test_swapped_and_altered_frames_are_noticed_wherever_one_starts() -> None:
    parts = frames(sealed_stream(PLAIN))
    for spoiled, place in (([parts[0], parts[2], parts[1], parts[3]], 1), (parts[:3], 2)):
        reader = SealedReader(io.BytesIO(b"".join(spoiled)), key=KEY)
        reader.seek(0)
        assert reader.read(FRAME) == PLAIN[:FRAME]
        reader.seek(place * FRAME)
        for _ in range(3):
            with pytest.raises(SealBrokenError, match=f"frame {place}"):
                reader.read(1)


def test_few_frames_are_held_whatever_is_read() -> None:
    n = 3 * sealing.FRAMES_KEPT
    stream = io.BytesIO(sealed_stream(bytes(n * sealing.FRAME_BYTES)))
    tracemalloc.start()
    reader = SealedReader(stream, key=KEY)
    for index in range(n):
        reader.seek(index * sealing.FRAME_BYTES)
        reader.read(10)
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert held < (sealing.FRAMES_KEPT + 1) * sealing.FRAME_BYTES
