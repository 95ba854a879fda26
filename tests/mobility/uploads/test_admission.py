"""Admission: not more than staging holds and workers get through; tokens of feeds open one study."""

import hashlib
import io
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from django.db.models import F
from django.forms.models import model_to_dict
from django.utils import timezone

from mobility.base.errors import FeedTokenError, KeyMissingError, NoRoomError, QueueFullError
from mobility.batches import staging
from mobility.extracts.rows.events import Events
from mobility.extracts.rows.widths import packed_row_bytes
from mobility.models import Batch, FeedToken
from mobility.uploads import actions as uploads
from mobility.uploads import admission
from mobility.uploads.feeds import actions as feeds
from mobility.vault.keystore import keystore
from reports.accounts.actions import COMMAND_LINE
from tests.mobility.commands import printed
from tests.mobility.pipeline import Pipeline, fresh

State = Batch.State
pytestmark = pytest.mark.django_db(databases=["default", "vault"])


def begin(pipeline: Pipeline, *, filename: str = "a.csv", **options: Any) -> Batch:
    return uploads.begin(pipeline.study, filename=filename, by="olga", **options)


def let_rest(batch: Batch, *, seconds: float) -> None:
    back = timedelta(seconds=seconds)
    batches = Batch.objects.filter(pk=batch.pk)
    batches.update(alive_until=F("alive_until") - back, heard_at=F("heard_at") - back)


def test_a_study_with_many_waiting_files_takes_no_more_and_others_do(pipeline, make_pipeline, few, settings):
    settings.MOBILITY_MAX_WAITING_BATCHES = 2
    batches = [pipeline.receive(path) for path in few[:2]]
    with pytest.raises(QueueFullError, match=r"2 file\(s\) of this study are waiting"):
        begin(pipeline)
    assert Batch.objects.count() == 2
    begin(make_pipeline(slug="other"))
    pipeline.finished(batches[0])
    begin(pipeline)


def test_bytes_that_wait_count_too(pipeline, few, settings):
    settings.MOBILITY_MAX_WAITING_BYTES = few[0].stat().st_size
    begin(pipeline)
    Batch.objects.all().delete()
    pipeline.receive(few[0])
    with pytest.raises(QueueFullError, match="bytes of this study are waiting"):
        begin(pipeline)


def test_an_upload_under_way_keeps_what_has_arrived_while_staging_is_full(pipeline, settings, monkeypatch):
    monkeypatch.setattr(staging, "FRAME_BYTES", 10)
    settings.MOBILITY_STAGING_RESERVE_BYTES = 5000
    batch = begin(pipeline, bytes_total=25)
    assert uploads.append(batch, io.BytesIO(b"0123456789"), offset=0) == 10
    monkeypatch.setattr(staging, "free_bytes", lambda: 5000)
    with pytest.raises(NoRoomError, match="the received data is kept"):
        uploads.append(batch, io.BytesIO(b"9876543210"), offset=10)
    assert (fresh(batch).state, batch.bytes_received) == (State.RECEIVING, 10)
    monkeypatch.setattr(staging, "free_bytes", lambda: 5001)
    assert uploads.append(batch, io.BytesIO(b"987654321098765"), offset=10) == 25


class TestUploadAtRest:
    @pytest.fixture(autouse=True)
    def _room(self, settings, monkeypatch):
        settings.MOBILITY_STAGING_RESERVE_BYTES = 5_000
        monkeypatch.setattr(staging, "free_bytes", lambda: 31_000)

    @pytest.mark.parametrize("expires_s", [24 * 3600, 60])
    def test_it_closes_no_door_until_its_sender_is_back(self, pipeline, settings, expires_s):
        settings.MOBILITY_UPLOAD_EXPIRES_S = expires_s
        huge = begin(pipeline, bytes_total=19_000)
        refusal = r"reserve of 5,000 bytes \(MOBILITY_STAGING_RESERVE_BYTES\), uploads"
        with pytest.raises(NoRoomError, match=refusal):
            begin(pipeline, bytes_total=2_000)
        let_rest(huge, seconds=admission.RESTS_AFTER_S - 20)
        with pytest.raises(NoRoomError):
            begin(pipeline, bytes_total=2_000)
        let_rest(huge, seconds=30)
        second = begin(pipeline, bytes_total=2_000, rest_s=settings.MOBILITY_BATCH_LEASE_S)
        with pytest.raises(NoRoomError):  # that one, in a single stream, is under way
            begin(pipeline, bytes_total=19_500)
        second.delete()
        if expires_s > 3600:
            let_rest(huge, seconds=expires_s - admission.RESTS_AFTER_S - 70)  # right before its end
        second = begin(pipeline, bytes_total=18_000)
        Batch.objects.filter(pk=second.pk).update(heard_at=None)
        uploads.append(huge, io.BytesIO(b""), offset=0)
        with pytest.raises(NoRoomError):
            begin(pipeline, bytes_total=2_000)


class TestRoomForReading:
    @pytest.fixture(autouse=True)
    def _room(self, settings, monkeypatch):
        settings.MOBILITY_STAGING_RESERVE_BYTES = 0
        monkeypatch.setattr(staging, "free_bytes", lambda: 10_000)

    @pytest.mark.parametrize("slots", [0, 7])
    def test_packed_rows_have_the_length_that_is_reckoned_with(self, slots):
        rows = {"codes": np.zeros((100, slots), np.uint16), "day": np.zeros(100, np.uint8)}
        rows |= {"second": np.zeros(100, np.uint32), "cell": np.zeros(100, np.uint32)}
        packed = Events(pseudonym=np.zeros(100, np.uint64), **rows).pack()
        assert len(packed) - 16 == 100 * packed_row_bytes(slots)

    def test_a_compressed_file_grows_more_than_text(self, pipeline):
        lengths = {"a.CSV": 60, "extract": 60, "a.csv.gz": 12, "a.zst": 10, "a.parquet": 7}
        for name, row_bytes in lengths.items():  # seven answers: 31 bytes a row
            assert admission.reading_bytes(name, 10 * row_bytes, slots=7) == 310
        with pytest.raises(NoRoomError, match="needs 5,028 bytes of staging, but only 0 are available"):
            begin(pipeline, filename="a.parquet", bytes_total=5_000)
        begin(pipeline, bytes_total=5_000)

    @pytest.mark.database  # looks into JSON
    def test_of_a_study_one_file_is_read_at_a_time_and_of_others_one_each(self, pipeline, make_pipeline):
        # Of 19 bytes a row: 6,514 bytes.
        state = {"kind": Batch.Kind.EXTRACT, "filename": "b.parquet", "bytes_total": 2_400}
        Batch.objects.create(study=pipeline.study, state=State.QUEUED, **state)
        begin(pipeline, bytes_total=3_000)
        Batch.objects.filter(state=State.RECEIVING).delete()
        with pytest.raises(NoRoomError, match="7,464 bytes for reading them and this file"):
            begin(make_pipeline(slug="other"), bytes_total=3_000)

    def test_what_was_read_has_grown_already(self, pipeline):
        state = {"kind": Batch.Kind.EXTRACT, "filename": "b.parquet", "bytes_total": 14_000}
        batch = Batch.objects.create(study=pipeline.study, state=State.READING, **state)
        with pytest.raises(NoRoomError, match="38,000 bytes for reading"):
            begin(pipeline, bytes_total=2_000)
        Batch.objects.filter(pk=batch.pk).update(bytes_read=13_000)
        begin(pipeline, bytes_total=2_000)


def make(pipeline, **options):
    given = {"name": "nightly", "days": 30, "by": COMMAND_LINE} | options
    return feeds.create_token(pipeline.study, **given)


class TestTokens:
    def test_a_token_opens_its_study_and_only_its_digest_is_kept(self, pipeline):
        token, text = make(pipeline)
        found = feeds.token_of(text)
        assert (found, found.study) == (token, pipeline.study)
        assert (token.name, token.created_by) == ("nightly", COMMAND_LINE)
        assert timedelta(days=29.9) < token.expires_at - timezone.now() < timedelta(days=30)
        assert text.startswith("mobility-feed-")
        assert len(text) >= len("mobility-feed-") + 43
        assert text not in str(model_to_dict(token))
        assert token.digest == hashlib.sha256(text.encode()).hexdigest()
        assert make(pipeline)[1] != text

    def test_what_is_not_the_token_opens_nothing_and_use_is_noted_when_it_opens_the_door(self, pipeline):
        token, text = make(pipeline)
        for other in ("", "mobility-feed-", text[:-1], text + "x", text.upper(), token.digest, "ä"):
            assert feeds.token_of(other) is None
        assert fresh(token).last_used_at is None
        feeds.token_of(text)
        assert timezone.now() - fresh(token).last_used_at < timedelta(minutes=1)

    def test_a_token_is_revoked_once(self, pipeline):
        token, _ = make(pipeline)
        feeds.revoke(token, by="olga")
        revoked_at = fresh(token).revoked_at
        feeds.revoke(token, by="olga")
        assert fresh(token).revoked_at == revoked_at is not None

    def test_names_and_days_have_bounds_and_the_study_its_key(self, pipeline):
        names = [({"name": " "}, "1 to 80"), ({"name": "x" * 81}, "1 to 80"), ({"name": "a\nb"}, "printable")]
        for options, words in (*names, ({"days": 0}, "1 to 3650 days, got 0"), ({"days": 3651}, "got 3651")):
            with pytest.raises(FeedTokenError, match=words):
                make(pipeline, **options)
        keystore().destroy(pipeline.study.key_id)
        with pytest.raises(KeyMissingError):
            make(pipeline)
        assert not FeedToken.objects.exists()

    def test_the_command_prints_the_token_once_or_refuses_with_a_reason(self, pipeline):
        made = printed("create_feed_token", pipeline.study.slug, "nightly", "--days", "7")
        assert list(made) == ["study", "name", "token", "expires_at"]
        token = feeds.token_of(made["token"])
        assert made["expires_at"] == token.expires_at.isoformat()
        assert (token.created_by, made["name"]) == ("command line", "nightly")
        for slug, days, reason in (
            ("nothing", "7", "no study 'nothing'"),
            (pipeline.study.slug, "0", "got 0"),
        ):
            with pytest.raises(CommandError, match=reason):
                call_command("create_feed_token", slug, "nightly", "--days", days)
