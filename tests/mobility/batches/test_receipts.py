"""The ledger has the operator zone's actions: once, under any death of a process, and as measured."""

from datetime import timedelta

import pytest
from django.utils import timezone

from mobility.batches import finalisation, staging
from mobility.batches.publication import receipts
from mobility.extracts.profiles.definition import OPT_OUT
from mobility.models import Batch, FeedToken
from mobility.operations.sweeping import sweep
from mobility.plans.closing import Leave, close_study
from mobility.plans.studies import create_study
from mobility.uploads.feeds import actions as feeds
from mobility.vault.keystore import keystore
from reports.ledger.chain import canonical_hash
from reports.ledger.check import check_tables
from reports.ledger.key import LedgerKeyError
from reports.models import LedgerEntry, LedgerKind
from tests.mobility.event_study import as_changes, event_definition, in_area, rows_of, write_rows
from tests.mobility.pipeline import SMALL, raising

pytestmark = pytest.mark.django_db(databases=["default", "vault"], transaction=True)


def told(kind: LedgerKind) -> list[LedgerEntry]:
    return list(LedgerEntry.objects.filter(kind=kind.value).order_by("number"))


@pytest.fixture
def small(few):
    """A day of a tenth of the people, and one more row that is refused."""
    row = few[0].read_text().splitlines()[1].split(",")
    few[0].write_text(few[0].read_text() + ",".join([row[0], "no time", *row[2:]]) + "\n")
    return few[0]


@pytest.fixture
def pipeline(make_pipeline):
    return make_pipeline(n_shards=1, **SMALL)


@pytest.mark.database
def test_a_study_and_a_batch_have_receipts_of_the_plan_of_what_was_counted_and_of_what_crossed(
    pipeline, definition, small
):
    with pytest.raises(ValueError, match="must be new"):
        create_study(definition, by="test")
    (created,), (key,) = told(LedgerKind.STUDY_CREATED), told(LedgerKind.KEY_CREATED)
    study = pipeline.study
    assert (created.actor, created.study) == ("test", study.slug)
    plan = {"plan_sha256": study.plan_hash, "epsilon": "1.0", "unit": "profile"}
    assert created.facts == created.facts | plan
    assert (key.study, key.facts) == (study.slug, {"key": study.key_id})
    (batch,) = pipeline.upload(small)
    (entry,) = told(LedgerKind.BATCH_ENDED)
    assert (entry.actor, entry.study) == ("test", pipeline.study.slug)
    counted = {name: getattr(batch, name) for name in ("rows_read", "rows_accepted", "rows_ignored")}
    ended = {"batch": str(batch.pk), "kind": "extract", "state": "done", "key": batch.key_id}
    gone = {"staged_bytes_left": 0, "key_left": False}
    assert entry.facts == ended | counted | gone | {"rows_rejected": {"bad_timestamp": 2}}
    assert batch.rows_read > batch.rows_accepted > 0 < batch.reports
    receipts.record_missing()
    receipts.record_ended(batch)
    assert len(told(LedgerKind.BATCH_ENDED)) == 1
    assert check_tables().is_ok
    (crossed,) = told(LedgerKind.PUBLICATION_APPLIED)
    sent = {"publication": str(pipeline.study.publications.get().pk), "plan_sha256": pipeline.study.plan_hash}
    assert crossed.facts == crossed.facts | sent
    assert len(crossed.facts["delta_sha256"]) == 64


def test_a_receipt_says_nothing_of_few_people_or_of_the_vault(make_pipeline, pipeline, few, tmp_path):
    """Fewer than `min_publication`, or than `small_cell`, in the file: no counts. Opt-outs are no others."""
    header, *rows = few[0].read_text().splitlines()
    for name, kept in (("gone.txt", [rows[0].split(",")[0]]), ("few.csv", [header, *rows[:3]])):
        (tmp_path / name).write_text("\n".join(kept) + "\n")
    pipeline.upload(tmp_path / "gone.txt", profile=OPT_OUT)
    (read,) = pipeline.upload(few[0])
    pipeline.upload(tmp_path / "few.csv")
    make_pipeline(slug="cells", min_publication=1, small_cell=10_000).upload(few[0])
    listed, many, some, hidden = (entry.facts for entry in told(LedgerKind.BATCH_ENDED))
    assert read.rows_ignored["opted_out"] > 0
    assert many["rows_accepted"] == read.rows_accepted + read.rows_ignored["opted_out"]
    assert not {"opted_out"} & set(many["rows_ignored"])
    for facts in (listed, some, hidden):
        assert (facts["counts_withheld"], any("rows" in name for name in facts)) == (True, False)
    assert not any("reports" in facts for facts in (listed, many, some))


def test_a_receipt_does_not_say_which_events_were_there_already(make_pipeline, tmp_path):
    pipeline = make_pipeline(**as_changes(event_definition()))
    first, second = rows_of(1), rows_of(1, 2)
    for name, rows in (("first.csv", first), ("second.csv", second)):
        pipeline.upload(write_rows(tmp_path / name, rows))
    entry = told(LedgerKind.BATCH_ENDED)[1]
    assert Batch.objects.get(filename="second.csv").rows_ignored["duplicate"] > 0
    assert entry.facts["rows_accepted"] == len(in_area(second))
    assert "duplicate" not in entry.facts["rows_ignored"]


def test_failed_and_cancelled_batches_have_receipts_without_counts_beside_noise(pipeline, small, tmp_path):
    empty, study = tmp_path / "other.csv", pipeline.study
    empty.write_text("nothing,of,ours\n1,2,3\n")
    pipeline.upload(empty)
    study.plan = study.plan | {"presence": {"epsilon": "1", "max_days": 7}}
    study.save()
    finalisation.cancel(pipeline.receive(small), by="olga")
    failed, cancelled = (entry.facts for entry in told(LedgerKind.BATCH_ENDED))
    assert (failed["state"], cancelled["state"]) == ("failed", "cancelled")
    assert (cancelled["counts_withheld"], cancelled["staged_bytes_left"]) == (True, 0)
    assert not {"rows_read", "rows_accepted", "reports"} & set(cancelled)


@pytest.mark.parametrize("any_staging", ["folder", "bucket"], indirect=True)
def test_what_is_left_of_an_upload_is_measured(any_staging, pipeline, small, monkeypatch):
    """A receipt waits until the bytes are gone; if they stay it says so."""
    with monkeypatch.context() as patch:
        patch.setattr(staging, "discard", lambda _: None)
        (removed,) = pipeline.upload(small)
    assert told(LedgerKind.BATCH_ENDED) == []
    sweep()
    pipeline.work()
    (entry,) = told(LedgerKind.BATCH_ENDED)
    gone = {"batch": str(removed.pk), "staged_bytes_left": 0, "key_left": False}
    assert entry.facts == entry.facts | gone
    monkeypatch.setattr(staging, "discard", lambda _: None)
    (batch,) = pipeline.upload(small)
    left = staging.bytes_left(batch.pk)
    assert left > small.stat().st_size
    receipts.record_missing()
    assert len(told(LedgerKind.BATCH_ENDED)) == 1
    Batch.objects.update(finished_at=timezone.now() - 2 * receipts.CLEANED_WITHIN)
    receipts.record_missing()
    _, entry = told(LedgerKind.BATCH_ENDED)
    assert (entry.facts["staged_bytes_left"], entry.facts["key_left"]) == (left, False)


def test_a_receipt_that_a_process_left_out_is_added(pipeline, small, monkeypatch):
    """The ledger cannot be signed when the batch ends, which it does all the same."""
    with monkeypatch.context() as patch:
        patch.setattr(receipts, "record", raising(LedgerKeyError))
        (batch,) = pipeline.upload(small)
    assert (batch.state, told(LedgerKind.BATCH_ENDED)) == (Batch.State.DONE, [])
    receipts.record_missing()
    receipts.record_missing()
    assert [entry.facts["batch"] for entry in told(LedgerKind.BATCH_ENDED)] == [str(batch.pk)]


def test_closing_is_in_the_ledger_once_with_the_hash_of_its_certificate(pipeline, monkeypatch):
    """Also where the process died before the ledger, and where the study is closed again."""
    key_id = pipeline.study.key_id
    with monkeypatch.context() as patch, pytest.raises(RuntimeError):
        patch.setattr(receipts, "record", raising(RuntimeError))
        close_study(pipeline.study, by="olga", leave=Leave())
    assert told(LedgerKind.STUDY_CLOSED) == []
    receipts.record_missing()
    certificate = close_study(pipeline.study, by="olga", leave=Leave())
    (destroyed,), (closed,) = told(LedgerKind.KEY_DESTROYED), told(LedgerKind.STUDY_CLOSED)
    assert destroyed.facts == destroyed.facts | {"key": key_id, "key_left": keystore().exists(key_id)}
    assert (destroyed.facts["key_left"], closed.actor, closed.study) == (False, "olga", pipeline.study.slug)
    assert closed.facts["certificate_sha256"] == canonical_hash(certificate)
    assert destroyed.number < closed.number


def test_feeds_are_in_the_ledger_once_without_their_token_also_where_a_process_left_one_out(pipeline):
    token, text = feeds.create_token(pipeline.study, name="nightly", days=30, by="olga")
    for _ in range(2):
        feeds.revoke(token, by="adam")
    (made,), (revoked,) = told(LedgerKind.TOKEN_CREATED), told(LedgerKind.TOKEN_REVOKED)
    assert (made.actor, revoked.actor) == ("olga", "adam")
    assert made.facts["token"] == revoked.facts["token"]
    assert text not in str(made.facts) + str(revoked.facts)
    assert token.digest not in str(made.facts) + made.event_id
    given = {"name": "n", "digest": "d" * 64, "expires_at": timezone.now() + timedelta(days=1)}
    FeedToken.objects.create(study=pipeline.study, **given, created_by="eve")
    for _ in range(2):
        receipts.record_missing()
    assert [entry.actor for entry in told(LedgerKind.TOKEN_CREATED)] == ["olga", "eve"]
