"""Uploads: in one stream or with pauses, under any fault; noted frames are stored frames."""

import hmac
import io
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from blake3 import blake3
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import GCM
from django.utils import timezone

from mobility.base import errors
from mobility.base.errors import NoRoomError, OffsetError, SupersededError, UploadBrokenError
from mobility.batches import staging
from mobility.batches.finalisation import cancel
from mobility.batches.staging import UploadReader
from mobility.batches.storages import staging_storage
from mobility.models import Batch, VaultStudy
from mobility.operations import sweeping
from mobility.uploads import actions as uploads
from mobility.uploads import admission
from mobility.uploads import leases as holding
from mobility.vault.keystore import keystore
from mobility.vault.studies import open_study
from tests.mobility.pipeline import fresh, looks_abandoned, raising

pytestmark = pytest.mark.django_db(databases=["default", "vault"], transaction=True)
FRAME = 100
FILE = bytes(range(256)) * 4  # 1,024 bytes: ten frames and 24 bytes
State = Batch.State


@pytest.fixture(autouse=True)
def _small_frames(monkeypatch):
    monkeypatch.setattr(staging, "FRAME_BYTES", FRAME)


@pytest.fixture
def study(pipeline):
    return pipeline.study


def begin(study: VaultStudy, size: int | None = len(FILE), **options: Any) -> Batch:
    return uploads.begin(study, filename="day.csv", by="olga", bytes_total=size, **options)


def append(batch: Batch, data: bytes, offset: int) -> int:
    return uploads.append(batch, io.BytesIO(data), offset=offset)


def receive(stream: Any, study: VaultStudy, **options: Any) -> Batch:
    given = {"filename": "day.csv", "by": "olga", "more_to_come": False, "bytes_total": len(FILE)} | options
    return uploads.receive(stream, study=study, **given)


def content_hash(study: VaultStudy, data: bytes) -> str:
    key, frame_key = open_study(study).content_key, open_study(study).frame_key

    def digest(before: bytes, frame: bytes) -> bytes:
        match study.content_digest:
            case "hmac-sha256":
                return hmac.digest(key, before + frame, "sha256")
            case "blake3":
                return blake3(before + frame, key=key).digest()
        gmac = Cipher(AES(frame_key), GCM(bytes(12))).encryptor()
        gmac.authenticate_additional_data(frame)
        gmac.finalize()
        return blake3(before + gmac.tag, key=key).digest()

    state = digest(b"", b"")
    for start in range(0, len(data), FRAME):
        state = digest(state, data[start : start + FRAME])
    return state.hex()


def check_stored(batch: Batch, data: bytes) -> None:
    assert UploadReader(fresh(batch)).readall() == data
    assert batch.content_hash == content_hash(batch.study, data)


class Connection:
    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)
        self.tell = self._data.tell

    def read(self, size: int, /) -> bytes:
        return self._data.read(size)


class Breaking(Connection):
    def __init__(self, data: bytes, error: BaseException | None, *, piece: int = 7) -> None:
        super().__init__(data)
        self._error = error
        self._piece = piece

    def read(self, size: int, /) -> bytes:
        found = self._data.read(min(size, self._piece))
        if not found and self._error is not None:
            raise self._error
        return found


class TestOneStream:
    @pytest.mark.parametrize("is_announced", [True, False])
    def test_what_is_stored_is_what_was_sent(self, study, is_announced):
        for size in (0, 1, FRAME - 1, FRAME, FRAME + 1, 3 * FRAME, len(FILE)):
            data = FILE[:size]
            batch = fresh(receive(Breaking(data, None), study, bytes_total=size if is_announced else None))
            assert (batch.state, batch.bytes_total, batch.bytes_received) == (State.QUEUED, size, size)
            check_stored(batch, data)
            frames = staging_storage().listdir(str(batch.pk))[1] if size else []
            assert len(frames) == -(-size // FRAME)

    @pytest.mark.parametrize("digest", ["hmac-sha256", "blake3"])
    def test_a_study_of_an_earlier_release_goes_on_with_its_own_content_hash(self, study, digest):
        assert study.content_digest == "gmac"
        study.content_digest = digest
        study.save()
        batch = fresh(receive(io.BytesIO(FILE), study))
        check_stored(batch, FILE)
        assert batch.content_hash == fresh(receive(io.BytesIO(FILE), study)).content_hash

    def test_the_profile_says_what_kind_of_batch_it_is(self, study):
        kinds = {"default": "extract", "subscribers": "subscribers", "opt-out": "opt_out"}
        for profile in kinds:
            receive(io.BytesIO(FILE), study, profile=profile, validate_only=True, more_to_come=True)
        found = Batch.objects.values_list("profile", "kind", "validate_only", "more_to_come")
        assert {*found} == {(profile, kind, True, True) for profile, kind in kinds.items()}

    @pytest.mark.parametrize("error", [None, OSError(104, "reset"), KeyboardInterrupt()])
    def test_nothing_is_left_of_a_stream_that_breaks(self, study, error):
        expected = KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else UploadBrokenError
        for sent in (0, 1, FRAME, 3 * FRAME + 1, len(FILE) - 1):
            with pytest.raises(expected):
                receive(Breaking(FILE[:sent], error), study)
            batch = Batch.objects.latest("created_at")
            whole = sent // FRAME * FRAME
            assert batch.failure.startswith(f"the upload was interrupted after {whole} of 1024 bytes (")
            assert batch.failure.endswith("nothing was kept: send the file again")
            left = keystore().exists(batch.key_id), staging.staged_batches()
            assert (batch.state, left) == (State.FAILED, (False, set()))

    def test_a_storage_that_takes_nothing_ends_the_upload_with_a_reason(self, study, monkeypatch):
        for problem, reason in (
            (OSError(28, "No space left on device"), r"after 0 of 1024 bytes [(]No space left on device[)]"),
            (errors.StagingUnavailableError("the bucket does not answer"), r"not answer[.] Nothing was kept"),
        ):
            monkeypatch.setattr(staging, "write_frame", raising(problem))
            with pytest.raises(UploadBrokenError, match=reason):
                receive(io.BytesIO(FILE), study)
            assert Batch.objects.latest("created_at").state == State.FAILED
        monkeypatch.setattr(staging, "create_key", raising(OSError(28, "No space left on device")))
        with pytest.raises(OSError, match="No space"):
            begin(study)
        assert Batch.objects.latest("created_at").state == State.FAILED

    def test_what_is_stored_while_its_batch_is_cancelled_does_not_stay(self, study, monkeypatch):
        begun, cancelled, storage = threading.Event(), threading.Event(), type(staging_storage())
        save, late = storage.save, []

        class Cancelling(Connection):
            def read(self, size: int, /) -> bytes:
                if self.tell() > 5 * FRAME:
                    begun.wait(30)
                    cancel(Batch.objects.get(), by="oscar")
                    cancelled.set()
                return super().read(size)

        def after_it(self, name, content):
            if name.endswith("-000005"):
                begun.set()
                late.append(cancelled.wait(30))
            return save(self, name, content)

        monkeypatch.setattr(storage, "save", after_it)
        with pytest.raises(UploadBrokenError, match=r"^cancelled by oscar"):
            receive(Cancelling(FILE), study)
        batch = Batch.objects.get()
        assert (late, batch.state, staging.staged_batches()) == ([True], State.CANCELLED, set())
        assert not keystore().exists(batch.key_id)


def test_only_the_name_of_a_file_is_kept(study):
    for given, kept in {
        "C:\\data\\x.csv": "x.csv", "/data/x.csv": "x.csv", "a\nb.csv": "ab.csv", "..": "upload",
        "a-\udce9.csv": "a-.csv",  # how a name that is no UTF-8 looks in a listing
        "": "upload", "\udce9": "upload", "é" * 300: "é" * 255,
    }.items():  # fmt: skip
        assert fresh(uploads.begin(study, filename=given, by="olga")).filename == kept


class TestRefused:
    def test_a_file_that_is_too_large(self, study, settings):
        settings.MOBILITY_MAX_UPLOAD_BYTES = 1000
        with pytest.raises(errors.UploadTooLargeError, match="must have at most 1,000 bytes"):
            begin(study, 1001)
        assert not Batch.objects.exists()
        with pytest.raises(UploadBrokenError, match="must have at most 1,000 bytes"):
            receive(io.BytesIO(FILE), study, bytes_total=None)
        assert Batch.objects.get().state == State.FAILED
        begin(study, 1000)

    def test_a_file_that_would_not_fit(self, study, settings, monkeypatch):
        needed, reserve = staging.sealed_bytes(len(FILE)), 1000
        reading = admission.reading_bytes("a.csv", len(FILE), slots=1)  # one answer each: Smp
        settings.MOBILITY_STAGING_RESERVE_BYTES = reserve
        monkeypatch.setattr(staging, "free_bytes", lambda: reserve + reading + needed)
        with pytest.raises(NoRoomError, match=f"needs {needed:,} bytes of staging, but only {needed:,} are"):
            begin(study)
        assert not Batch.objects.exists()
        monkeypatch.setattr(staging, "free_bytes", lambda: reserve + reading + needed + 1)
        begin(study)
        with pytest.raises(NoRoomError, match=r"after the reserve of .*uploads in progress"):
            begin(study)  # the first one's announced size is reserved


class TestResumed:
    def test_an_upload_goes_on_after_its_last_whole_frame_and_ends_at_its_length(self, study, pipeline):
        batch = begin(study)
        assert append(batch, FILE[:250], 0) == 200
        for offset in (0, 100, 199, 201, 300, 5000):
            with pytest.raises(OffsetError, match="resumes at byte 200") as caught:
                append(batch, FILE[200:], offset)
            assert caught.value.offset == 200
        assert append(batch, FILE[200:299], 200) == 200
        assert append(batch, FILE[200:1023], 200) == 1000
        with pytest.raises(UploadBrokenError, match="expected 1024 bytes, got 1000"):
            uploads.complete(batch)
        assert fresh(batch).state == State.RECEIVING
        assert append(batch, FILE[1000:] + b"more", 1000) == 1024
        assert list(pipeline.queue) == []
        uploads.complete(batch)
        assert list(pipeline.queue) == [("advance", str(batch.pk))]
        check_stored(batch, FILE)
        assert batch.state == State.QUEUED

    def test_whole_frames_stay_however_the_stream_breaks_and_it_lets_go_at_once(self, study):
        for sent in (0, 99, 100, 101, 555):
            batch = begin(study)
            with pytest.raises(OSError, match="reset"):
                uploads.append(batch, Breaking(FILE[:sent], OSError(104, "reset")), offset=0)
            whole = sent // FRAME * FRAME
            assert (fresh(batch).state, batch.bytes_received) == (State.RECEIVING, whole)
            assert batch.content_hash == content_hash(study, FILE[:whole])
            assert append(batch, FILE[whole:], whole) == 1024
            uploads.complete(batch)
            check_stored(batch, FILE)

    def test_a_frame_that_could_not_be_stored_is_not_noted(self, study, monkeypatch):
        batch = begin(study)
        real = staging.write_frame

        def fail_once(batch, index, plain):
            if index == 4:
                raise errors.StagingUnavailableError("down")
            real(batch, index, plain)

        monkeypatch.setattr(staging, "write_frame", fail_once)
        with pytest.raises(errors.StagingUnavailableError):
            append(batch, FILE, 0)
        monkeypatch.setattr(staging, "write_frame", real)
        assert fresh(batch).bytes_received == 400
        assert append(batch, FILE[400:], 400) == 1024
        check_stored(batch, FILE)

    def test_nothing_is_added_to_what_is_complete_or_has_ended(self, study):
        complete = begin(study)
        append(complete, FILE, 0)
        uploads.complete(complete)
        given_up = begin(study)
        append(given_up, FILE[:500], 0)
        cancel(given_up, by="olga")
        assert (fresh(given_up).state, given_up.failure[:17]) == (State.CANCELLED, "cancelled by olga")
        assert (keystore().exists(given_up.key_id), staging.staged_batches()) == (False, {complete.pk})
        with pytest.raises(errors.CancelError):
            cancel(given_up, by="olga")
        for batch, offset in ((complete, 1024), (given_up, 500)):
            with pytest.raises(SupersededError):
                append(batch, FILE, offset)
        check_stored(complete, FILE)


class TestHold:
    def test_two_senders_at_once_are_one_too_many(self, study):
        batch = begin(study)

        class Nosy(Connection):
            refused = 0

            def read(self, size: int, /) -> bytes:
                with pytest.raises(errors.UploadBusyError, match="another connection"):
                    append(Batch.objects.get(), FILE, 0)
                Nosy.refused += 1
                return super().read(size)

        assert uploads.append(batch, Nosy(FILE), offset=0) == 1024
        assert Nosy.refused > 5

    def test_a_sender_that_falls_silent_is_superseded(self, study, monkeypatch):
        monkeypatch.setattr(holding, "HOLD_S", 0.2)
        monkeypatch.setattr(uploads, "PROGRESS_S", 0.0)
        batch = begin(study)
        is_silent, goes_on = threading.Event(), threading.Event()

        class Silent(Connection):
            def read(self, size: int, /) -> bytes:
                if self.tell() == 3 * FRAME:
                    is_silent.set()
                    assert goes_on.wait(10)
                return super().read(size)

        with ThreadPoolExecutor(1) as pool:
            sender = pool.submit(lambda: uploads.append(Batch.objects.get(), Silent(FILE), offset=0))
            assert is_silent.wait(10)
            at = self._taken_over(batch)
            goes_on.set()
            assert isinstance(sender.exception(10), SupersededError)
        assert fresh(batch).bytes_received == at
        assert append(batch, FILE[at:], at) == 1024
        check_stored(batch, FILE)

    @staticmethod
    def _taken_over(batch: Batch) -> int:
        for _ in range(200):
            at = fresh(batch).bytes_received
            try:
                return append(batch, FILE[at:][:FRAME], at)
            except errors.UploadBusyError:
                threading.Event().wait(0.02)
        raise AssertionError("the hold never ran out")

    def test_an_upload_lives_as_long_as_it_may_rest(self, study, settings):
        settings.MOBILITY_UPLOAD_EXPIRES_S = 3600
        batch = begin(study)
        append(batch, FILE[:500], 0)
        left = (fresh(batch).alive_until - timezone.now()).total_seconds()
        assert 3600 - holding.HOLD_S - 60 < left < 3600
        sweeping.sweep()
        assert fresh(batch).state == State.RECEIVING
        looks_abandoned(batch)
        sweeping.sweep()
        assert (fresh(batch).state, staging.staged_batches()) == (State.FAILED, set())


def test_a_stored_frame_is_noted_while_the_next_one_arrives(study, monkeypatch):
    monkeypatch.setattr(uploads, "PROGRESS_S", 0.0)
    batch = begin(study)

    class Slow(Connection):
        noted = 0

        def read(self, size: int, /) -> bytes:
            if self.tell() >= FRAME + 50:
                threading.Event().wait(0.02)
                Slow.noted = max(Slow.noted, Batch.objects.get().bytes_received)
            return super().read(1) if self.tell() < 2 * FRAME else b""

    assert uploads.append(batch, Slow(FILE), offset=0) == 2 * FRAME
    assert Slow.noted == FRAME


def test_the_bytes_of_a_frame_are_not_those_of_the_next(study, monkeypatch):
    gate, real = threading.Semaphore(0), staging.write_frame

    def slow(*given):
        gate.acquire(timeout=0.02)
        real(*given)

    monkeypatch.setattr(staging, "write_frame", slow)
    data = bytes(range(256)) * 8
    assert UploadReader(receive(io.BytesIO(data), study, bytes_total=len(data))).readall() == data
