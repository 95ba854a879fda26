"""What the operator zone does is in the ledger: once, whenever a process dies, and as it was measured."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError
from django.utils import timezone

from mobility.keystore import keystore
from mobility.models import Batch, FeedToken
from mobility.services import demo_removal, endings, feeds, receipts, staging
from mobility.services.closing import Leave, close_study
from mobility.services.studies import create_study
from reports.ledger_chain import canonical_hash
from reports.ledger_check import check_tables
from reports.models import LedgerEntry, LedgerKind, Study
from reports.models.study import DEMO_ACTOR, DEMO_SLUG
from reports.studyfile import StudyDefinition
from tests.mobility.services.conftest import Pipeline

pytestmark = [
    pytest.mark.database,
    pytest.mark.django_db(databases=["default", "vault"], transaction=True),
]


def told(kind: LedgerKind) -> list[LedgerEntry]:
    return list(LedgerEntry.objects.filter(kind=kind.value).order_by("number"))


@pytest.fixture
def small(extract: list[Path], tmp_path: Path) -> Path:
    """A day of a tenth of the people, and a row that is refused."""
    header, *rows = extract[0].read_text().splitlines(keepends=True)
    bad = rows[0].replace(rows[0].split(",")[1], "no time")
    file = tmp_path / "day.csv"
    file.write_text("".join([header, *(row for row in rows if row.split(",")[0].endswith("3")), bad]))
    return file


@pytest.fixture
def pipeline(make_pipeline: Callable[..., Pipeline]) -> Pipeline:
    return make_pipeline(expected_subscribers=100, min_publication=10)


def test_a_study_is_created_with_its_key_and_its_plan(pipeline: Pipeline) -> None:
    (created,) = told(LedgerKind.STUDY_CREATED)
    (key,) = told(LedgerKind.KEY_CREATED)
    study = pipeline.study
    assert (created.actor, created.study) == ("test", study.slug)
    assert created.facts["plan_sha256"] == study.plan_hash
    assert (created.facts["epsilon"], created.facts["unit"]) == ("1.0", "profile")
    assert (key.study, key.facts) == (study.slug, {"key": study.key_id})


def test_a_study_that_could_not_be_created_is_not_in_the_ledger(
    pipeline: Pipeline, definition: StudyDefinition
) -> None:
    with pytest.raises(ValueError, match="must be new"):
        create_study(definition, by="test")
    assert len(told(LedgerKind.STUDY_CREATED)) == 1


def test_a_batch_ends_with_a_receipt_of_what_was_counted(pipeline: Pipeline, small: Path) -> None:
    (batch,) = pipeline.upload(small)
    (entry,) = told(LedgerKind.BATCH_ENDED)
    assert (entry.actor, entry.study) == ("test", pipeline.study.slug)
    assert entry.facts == {
        "batch": str(batch.pk),
        "kind": "extract",
        "state": "done",
        "key": batch.key_id,
        "rows_read": batch.rows_read,
        "rows_accepted": batch.rows_accepted,
        "rows_ignored": batch.rows_ignored,
        "rows_rejected": {"bad_timestamp": 1},
        "reports": batch.reports,
        "staged_bytes_left": 0,
        "key_left": False,
    }
    assert batch.rows_read > batch.rows_accepted > 0
    assert batch.reports > 0
    receipts.record_missing()
    receipts.record_ended(batch)
    assert len(told(LedgerKind.BATCH_ENDED)) == 1
    assert check_tables().is_ok


def test_failed_and_cancelled_batches_have_receipts(pipeline: Pipeline, small: Path, tmp_path: Path) -> None:
    endings.cancel(pipeline.receive(small), by="olga")
    empty = tmp_path / "other.csv"
    empty.write_text("nothing,of,ours\n1,2,3\n")
    pipeline.upload(empty)
    assert [entry.facts["state"] for entry in told(LedgerKind.BATCH_ENDED)] == ["cancelled", "failed"]


@pytest.mark.parametrize("any_staging", ["folder", "bucket"], indirect=True)
def test_what_is_left_of_an_upload_is_measured(
    any_staging: None, pipeline: Pipeline, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A receipt waits until the bytes are gone; if they stay it says so."""
    monkeypatch.setattr(staging, "discard", lambda _: None)
    (batch,) = pipeline.upload(small)
    left = staging.bytes_left(batch.pk)
    assert left > small.stat().st_size
    receipts.record_missing()
    assert told(LedgerKind.BATCH_ENDED) == []
    Batch.objects.update(finished_at=timezone.now() - 2 * receipts.CLEANED_WITHIN)
    receipts.record_missing()
    (entry,) = told(LedgerKind.BATCH_ENDED)
    assert entry.facts["staged_bytes_left"] == left
    assert entry.facts["key_left"] is False


def test_a_receipt_that_a_process_left_out_is_added(
    pipeline: Pipeline, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger does not answer when the batch ends, which it does all the same."""

    def unreachable(*_: Any, **__: Any) -> None:
        raise OperationalError

    with monkeypatch.context() as patch:
        patch.setattr(receipts, "record", unreachable)
        (batch,) = pipeline.upload(small)
    assert batch.state == Batch.State.DONE
    assert told(LedgerKind.BATCH_ENDED) == []
    receipts.record_missing()
    receipts.record_missing()
    assert [entry.facts["batch"] for entry in told(LedgerKind.BATCH_ENDED)] == [str(batch.pk)]


def test_with_presence_noise_the_ledger_shows_no_exact_count(pipeline: Pipeline, small: Path) -> None:
    study = pipeline.study
    study.plan = study.plan | {"presence": {"epsilon": "1", "max_days": 7}}
    study.save()
    batch = pipeline.receive(small)
    endings.cancel(batch, by="olga")
    (entry,) = told(LedgerKind.BATCH_ENDED)
    assert entry.facts["counts_withheld"] is True
    assert not {"rows_read", "rows_accepted", "reports"} & set(entry.facts)
    assert entry.facts["staged_bytes_left"] == 0


def test_closing_is_in_the_ledger_once_with_the_hash_of_its_certificate(pipeline: Pipeline) -> None:
    key_id = pipeline.study.key_id
    for _ in range(2):
        certificate = close_study(pipeline.study, by="olga", leave=Leave())
    (destroyed,) = told(LedgerKind.KEY_DESTROYED)
    (closed,) = told(LedgerKind.STUDY_CLOSED)
    assert destroyed.facts["key"] == key_id
    assert destroyed.facts["key_left"] is keystore().exists(key_id) is False
    assert (closed.actor, closed.study) == ("olga", pipeline.study.slug)
    assert closed.facts["certificate_sha256"] == canonical_hash(certificate)
    assert destroyed.number < closed.number


def test_a_closing_that_died_before_the_ledger_is_added(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(*_: Any, **__: Any) -> None:
        raise RuntimeError

    with monkeypatch.context() as patch, pytest.raises(RuntimeError):
        patch.setattr(receipts, "record", dies)
        close_study(pipeline.study, by="olga", leave=Leave())
    assert told(LedgerKind.STUDY_CLOSED) == []
    receipts.record_missing()
    assert len(told(LedgerKind.STUDY_CLOSED)) == len(told(LedgerKind.KEY_DESTROYED)) == 1


def test_the_demo_leaves_its_history(
    make_pipeline: Callable[..., Pipeline], definition: StudyDefinition, small: Path
) -> None:
    """And can be made and removed again: the second life has entries of its own."""
    for _ in range(2):
        pipeline = make_pipeline(expected_subscribers=100, min_publication=10, slug=DEMO_SLUG)
        Study.objects.update(created_by=DEMO_ACTOR)
        pipeline.upload(small)
        demo_removal.remove_demo(by="adam")
    kinds = [entry.kind for entry in LedgerEntry.objects.filter(study=DEMO_SLUG).order_by("number")]
    life = [
        "study.created", "key.created", "publication.applied", "batch.ended", "key.destroyed", "study.closed",
        "study.deleted",
    ]  # fmt: skip
    assert kinds == life * 2
    assert LedgerEntry.objects.get(number=7).actor == "adam"


def test_feeds_are_in_the_ledger_without_their_token(pipeline: Pipeline) -> None:
    token, text = feeds.create_token(pipeline.study, name="nightly", days=30, by="olga")
    feeds.revoke(token, by="adam")
    feeds.revoke(token, by="adam")
    (made,) = told(LedgerKind.TOKEN_CREATED)
    (revoked,) = told(LedgerKind.TOKEN_REVOKED)
    assert (made.actor, revoked.actor) == ("olga", "adam")
    assert made.facts["token"] == revoked.facts["token"]
    assert text not in str(made.facts) + str(revoked.facts)
    assert token.digest not in str(made.facts) + made.event_id


def test_a_feed_that_a_process_left_out_is_added(pipeline: Pipeline) -> None:
    end = timezone.now() + timedelta(days=1)
    FeedToken.objects.create(
        study=pipeline.study, name="n", digest="d" * 64, created_by="olga", expires_at=end
    )
    receipts.record_missing()
    receipts.record_missing()
    assert [entry.actor for entry in told(LedgerKind.TOKEN_CREATED)] == ["olga"]


def test_a_publication_is_recorded_with_what_crossed(pipeline: Pipeline, small: Path) -> None:
    pipeline.upload(small)
    (entry,) = told(LedgerKind.PUBLICATION_APPLIED)
    publication = pipeline.study.publications.get()
    assert entry.facts["publication"] == str(publication.pk)
    assert entry.facts["plan_sha256"] == pipeline.study.plan_hash
    assert len(entry.facts["delta_sha256"]) == 64
