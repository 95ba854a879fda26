"""Staged uploads and chunks, in a folder and in a bucket: what comes out is what went in, or nothing."""

import io
import threading
import tracemalloc
from functools import cache
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mobility.base.errors import KeyMissingError, SealBrokenError, StagingUnavailableError
from mobility.batches import staging
from mobility.batches.staging import UploadReader
from mobility.batches.storages import Pieces, staging_storage
from mobility.vault.keystore import keystore
from mobility.vault.models.batch import Batch
from mobility.vault.sealing import stream_key, unseal
from tests.mobility.batches.staged import staged
from tests.mobility.pipeline import SMALL, raising

pytestmark = pytest.mark.django_db(databases=["default", "vault"])
FRAME = 48
PLAIN = bytes(range(3 * FRAME + 5))  # four frames, no two alike


@pytest.fixture
def _small_frames(monkeypatch):
    monkeypatch.setattr(staging, "FRAME_BYTES", FRAME)


def frame_name(batch: Batch, index: int) -> str:
    return f"{batch.pk}/upload-{index:06d}"


def get(name: str) -> bytes:
    return staging_storage().read_range(name)


def put(name: str, data: bytes) -> None:
    staging_storage().save(name, Pieces([data]))


def drain(batch: Batch, *, size: int = 1000) -> tuple[bytes, bool]:
    """Plaintext up to the end or the first error, and whether there was one; errors must stay errors."""
    reader = UploadReader(batch)
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


@pytest.mark.usefixtures("data_dir", "_small_frames")
class TestUpload:
    def test_layout_and_size_of_frames(self):
        batch = staged(PLAIN)
        key = stream_key(keystore().read(batch.key_id), "upload")
        frames = [get(frame_name(batch, index)) for index in range(4)]
        for index, frame in enumerate(frames):
            plain = unseal(frame, key=key, context=f"{batch.pk}/upload/{index}")
            assert plain == PLAIN[index * FRAME :][:FRAME]
        assert staging.sealed_bytes(len(PLAIN)) == sum(map(len, frames))

    @pytest.mark.parametrize("problem", ["missing", "damaged"])
    def test_every_frame_must_be_there_as_it_was(self, problem):
        for index in range(4):
            batch = staged(PLAIN)
            altered = bytearray(get(frame_name(batch, index)))
            altered[20] ^= 1
            if problem == "missing":
                staging_storage().delete(frame_name(batch, index))
            else:
                put(frame_name(batch, index), bytes(altered))
            assert drain(batch) == (PLAIN[: index * FRAME], True)
            said = f"^frame {index} of the staged upload is {problem}: send"
            with pytest.raises(SealBrokenError, match=said):
                UploadReader(batch).readall()

    def test_frames_open_in_their_own_place_only_and_may_be_sent_again(self):
        batch, other = staged(PLAIN), staged(PLAIN)
        first = get(frame_name(batch, 1))
        for stranger in (frame_name(batch, 2), frame_name(other, 1)):
            put(frame_name(batch, 1), get(stranger))
            assert drain(batch) == (PLAIN[:FRAME], True)
        staging.write_frame(batch, 1, PLAIN[FRAME : 2 * FRAME])
        assert get(frame_name(batch, 1))[:12] != first[:12]
        assert drain(batch) == (PLAIN, False)
        for length in (len(PLAIN) - 1, len(PLAIN) + 1, 4 * FRAME + 1):
            batch.bytes_total = length
            assert drain(batch)[1], length

    def test_nothing_is_left_after_destroy_and_nothing_comes_after_it(self):
        batch, other = staged(PLAIN), staged(PLAIN)
        key = staging.chunk_key(batch)
        places = staging.write_chunk(batch, "chunk-0", [(0, b"rows")])
        assert staging.staged_batches() == {batch.pk, other.pk}
        staging.destroy(batch)
        assert (staging.staged_batches(), keystore().exists(batch.key_id)) == ({other.pk}, False)
        for attempt in (
            lambda: UploadReader(batch),
            lambda: staging.write_frame(batch, 4, b"more"),
            lambda: staging.write_chunk(batch, "chunk-1", [(0, b"rows")]),
        ):
            with pytest.raises(KeyMissingError):
                attempt()
        with pytest.raises(SealBrokenError, match="chunk-0 is missing"):
            staging.read_segments(batch, "chunk-0", places["0"], key=key)
        staging.destroy(batch)
        assert drain(other) == (PLAIN, False)


@pytest.mark.usefixtures("data_dir")
class TestChunk:
    def test_segments_come_back_by_shard_in_their_order(self):
        batch, long = staged(b""), b"eleven" * 1000
        segments = [(0, b"zero"), (2, b""), (0, b"zero again"), (11, long)]
        places, key = staging.write_chunk(batch, "chunk-3", segments), staging.chunk_key(batch)
        for shard, found in {"0": [b"zero", b"zero again"], "2": [b""], "11": [long]}.items():
            assert staging.read_segments(batch, "chunk-3", places[shard], key=key) == found

    def test_a_chunk_that_is_written_twice_has_the_same_places_and_can_be_deleted(self) -> None:
        """Either of two workers may win: the places that the other noted hold."""
        batch, segments = staged(b""), [(0, b"zero"), (1, b"one")]
        first = staging.write_chunk(batch, "chunk-0", segments)
        object_of_first = get(f"{batch.pk}/chunk-0")
        assert staging.write_chunk(batch, "chunk-0", segments) == first
        assert get(f"{batch.pk}/chunk-0") != object_of_first
        key = staging.chunk_key(batch)
        assert staging.read_segments(batch, "chunk-0", first["1"], key=key) == [b"one"]
        staging.write_chunk(batch, "chunk-1", segments)
        for _ in range(2):
            staging.delete_chunk(batch, "chunk-0")
        assert staging_storage().listdir(str(batch.pk))[1] == ["chunk-1"]

    def test_segments_open_in_their_own_place_only(self):
        batch, other = staged(b""), staged(b"")
        for one, name in product((batch, other), ("chunk-0", "chunk-1")):
            places = staging.write_chunk(one, name, [(0, b"zero"), (1, b"uno.")])
        (first,), (second,) = places["0"], places["1"]
        key, data = staging.chunk_key(batch), get(f"{batch.pk}/chunk-0")
        for moved, place in (
            (data[first[1] :] + data[: first[1]], first),
            (get(f"{batch.pk}/chunk-1"), second),
            (get(f"{other.pk}/chunk-0"), first),
            (data[:-1], second),
        ):
            put(f"{batch.pk}/chunk-0", moved)
            with pytest.raises(SealBrokenError):
                staging.read_segments(batch, "chunk-0", [place], key=key)


@pytest.mark.usefixtures("data_dir", "_small_frames")
class TestReader:
    @given(
        steps=st.lists(
            st.tuples(st.integers(-5, 3 * FRAME + 9), st.integers(0, 120), st.sampled_from([0, 1, 2]))
        ),
        kept=st.integers(1, 4),
        buffer=st.sampled_from([1, 16, FRAME, 3 * FRAME]),
    )
    @pytest.mark.parametrize("length", [0, 1, FRAME, 2 * FRAME, 3 * FRAME + 5])
    def test_any_place_can_be_read_in_any_order(self, uploads, length, steps, kept, buffer):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(staging, "FRAMES_KEPT", kept)
            plain = io.BytesIO(PLAIN[:length])
            reader = UploadReader(uploads(length))
            assert reader.seekable()
            buffered = io.BufferedReader(reader, buffer)
            for place, size, whence in steps:
                offset = {0: place, 1: place - plain.tell(), 2: place - length}[whence]
                if place < 0:
                    continue
                assert buffered.seek(offset, whence) == plain.seek(offset, whence)
                assert buffered.read(size) == plain.read(size)
                assert buffered.tell() == plain.tell()
            assert reader.bytes_read <= length

    @pytest.fixture(scope="class")
    @staticmethod
    def uploads():
        return cache(lambda length: staged(PLAIN[:length]))

    def test_few_frames_are_held_whatever_is_read(self, monkeypatch):
        monkeypatch.setattr(staging, "FRAME_BYTES", 1 << 16)
        n = 3 * staging.FRAMES_KEPT
        batch = staged(bytes(n * staging.FRAME_BYTES))
        tracemalloc.start()
        reader = UploadReader(batch)
        for index in range(n):
            reader.seek(index * staging.FRAME_BYTES + 1)
            reader.read(10)
        held = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert held < (staging.FRAMES_KEPT + 3) * staging.FRAME_BYTES  # and two sealed


def test_a_key_dies_when_the_storage_does_not_answer_and_a_stranger_there_is_no_batch(data_dir, monkeypatch):
    put("lost+found/x", b"1")
    batch = staged(PLAIN)
    monkeypatch.setattr(type(staging_storage()), "delete_folder", raising(StagingUnavailableError("down")))
    staging.destroy(batch)
    # The sweep removes the rest.
    assert (keystore().exists(batch.key_id), staging.staged_batches()) == (False, {batch.pk})


def test_frames_that_were_read_are_deleted_while_shards_take_the_batch(make_pipeline, few, monkeypatch):
    monkeypatch.setattr(staging, "FRAME_BYTES", 5_000)
    pipeline = make_pipeline(**SMALL)
    batch = pipeline.receive(few[0])
    last = -(-few[0].stat().st_size // 5_000) - 1
    assert last > 2
    pipeline.bring_to(batch, Batch.State.MERGING)
    for thread in threading.enumerate():
        if thread.name == "discard":
            thread.join()
    names = [name for name in staging_storage().listdir(str(batch.pk))[1] if name.startswith("upload-")]
    assert sorted(names) == ["upload-000000", f"upload-{last:06d}"]
    assert pipeline.finished(batch).state == Batch.State.DONE
    assert staging.staged_batches() == set()


def test_a_bucket_gives_the_totals_of_a_folder_and_keeps_nothing(make_pipeline, few, request, monkeypatch):
    monkeypatch.setattr(staging, "FRAME_BYTES", 5_000)
    in_folder = make_pipeline(slug="in-folder", n_shards=1, **SMALL)
    in_folder.upload(*few[:2])
    bucket = request.getfixturevalue("staging_bucket")
    in_bucket = make_pipeline(slug="in-bucket", **SMALL)
    batch = in_bucket.receive(few[0])
    staged = [item.get()["Body"].read() for item in bucket.objects.all()]
    assert len(staged) == -(-few[0].stat().st_size // 5_000)
    identifier = few[0].read_bytes().split(b"\n")[1].split(b",")[0]
    assert not any(identifier in item for item in staged)
    assert in_bucket.finished(batch).state == Batch.State.DONE
    in_bucket.upload(few[1])
    assert (in_bucket.tallies(), [*bucket.objects.all()]) == (in_folder.tallies(), [])
    assert in_bucket.visitors(1, 2) > 0
