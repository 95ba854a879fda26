"""A study is closed once and for all: only its reports stay, and the certificate counts what was."""

import io
import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection, connections
from django.utils import timezone

from mobility.errors import StagingUnavailableError, StudyClosedError
from mobility.keystore import Keystore, keystore
from mobility.models import (
    AnswerShard,
    Applied,
    Batch,
    Chunk,
    DayState,
    FeedToken,
    OptOutShard,
    OutboxDelta,
    PresenceShard,
    ShardRun,
    VaultPublication,
    VaultStudy,
)
from mobility.services import admission, closing, compaction, feeds, intake, staging, uploads
from mobility.services.closing import Leave, StudyNotClosedError, close_study
from mobility.services.studies import StudyVaultError, create_study
from mobility.services.vault import OpenStudy, open_study
from reports.models import PlanIndicator, Publication, Study, Tally, VisitorTally
from reports.studyfile import StudyDefinition
from tests.mobility.services.conftest import Pipeline
from tests.mobility.services.killing import KillAt, Killed

# Real transactions: old pages are given back outside of any, and a death inside one rolls back nothing else.
pytestmark = [
    pytest.mark.database,
    pytest.mark.django_db(databases=["default", "vault"], transaction=True),
]

SCHEMA = json.loads((Path(__file__).parents[3] / "docs/certificate.schema.json").read_text())
OF_STUDY = (PresenceShard, DayState, AnswerShard, OptOutShard, VaultPublication)
OF_BATCHES = (OutboxDelta, Chunk, ShardRun, Applied)
SMALL = {"expected_subscribers": 100, "min_publication": 10}


def close(pipeline: Pipeline, **leave: bool) -> dict[str, Any]:
    """Close the study; the certificate follows its schema."""
    certificate = close_study(pipeline.study, by="olga", leave=Leave(**leave))
    jsonschema.Draft202012Validator(SCHEMA).validate(certificate)
    return certificate


def rows_left(pipeline: Pipeline) -> dict[str, int]:
    study = pipeline.study
    counts = {each.__name__: each.objects.filter(study=study).count() for each in OF_STUDY}
    counts |= {each.__name__: each.objects.filter(batch__study=study).count() for each in OF_BATCHES}
    return {name: n for name, n in counts.items() if n}


@pytest.fixture
def few(extract: list[Path], tmp_path: Path) -> list[Path]:
    """Three days of a tenth of the people."""
    files = []
    for path in extract[:3]:
        header, *rows = path.read_text().splitlines(keepends=True)
        file = tmp_path / path.name
        file.write_text(header + "".join(row for row in rows if row.split(",")[0].endswith("3")))
        files.append(file)
    return files


@pytest.fixture
def filled(make_pipeline: Callable[..., Pipeline], few: list[Path]) -> Pipeline:
    """Two days published, one day open, a feed token."""
    pipeline = make_pipeline(**SMALL)
    pipeline.upload(*few[:2])
    pipeline.upload(few[2], more_to_come=True)
    FeedToken.objects.create(
        study=pipeline.study, name="night", digest="0" * 64, expires_at=timezone.now() + timedelta(days=1)
    )
    return pipeline


def test_nothing_stays_but_the_reports(filled: Pipeline) -> None:
    before, held = filled.tallies(), rows_left(filled)
    presence = PresenceShard.objects.filter(study=filled.study)
    people = sum(len(open_study(filled.study).unseal_presence(row)) for row in presence)
    assert {"PresenceShard", "DayState", "VaultPublication", "Chunk", "ShardRun", "Applied"} <= held.keys()
    certificate = close(filled, drop_unpublished=True)
    assert rows_left(filled) == {}
    assert not keystore().exists(filled.study.key_id)
    assert not staging.staged_batches()
    assert not Batch.objects.exclude(content_hash="").exists()
    assert not FeedToken.objects.get().is_valid
    assert filled.tallies() == before
    erased = certificate["erased"]
    assert erased["presence_shards"] == held["PresenceShard"]
    assert erased["day_states"] == held["DayState"]
    assert erased["publications"] == held["VaultPublication"] == 2
    assert erased["pseudonyms"] == people == sum(Batch.objects.values_list("subscribers_new", flat=True)) > 0
    assert (erased["damaged_shards"], erased["staged_uploads"], erased["waiting_deltas"]) == (0, 0, 0)
    assert certificate["batches"] == {"done": 3}
    assert certificate["revoked"] == {"feed_tokens": 1}
    assert certificate["dropped"] == {"waiting_subscribers": 0, "unpublished_days": ["2017-06-02"]}
    assert [key["id"] for key in certificate["keys"]] == [filled.study.key_id]
    assert certificate["closed_by"] == "olga"
    study = Study.objects.get()
    assert (study.state, study.closed_at) == (Study.State.CLOSED, VaultStudy.objects.get().closed_at)


def test_day_state_dies_with_its_day_and_opt_outs_with_the_study(
    filled: Pipeline, few: list[Path], tmp_path: Path
) -> None:
    def days() -> set[int]:
        return set(DayState.objects.values_list("day", flat=True))

    assert days() == {1, 2, 3}
    filled.close_days(through=1)
    assert days() == {2, 3}
    leaving = tmp_path / "leaving.txt"
    people = sorted({row.split(",")[0] for row in few[0].read_text().splitlines()[1:]})
    leaving.write_text("\n".join(people[:20]))
    (left,) = filled.upload(leaving, profile="opt-out")
    assert left.subscriber_days < 0
    filled.upload(few[0])
    assert days() == {2, 3}
    held = OptOutShard.objects.count()
    assert close(filled, drop_unpublished=True)["erased"]["opt_out_shards"] == held > 0
    assert rows_left(filled) == {}


def test_other_studies_stay_as_they_are(
    filled: Pipeline, make_pipeline: Callable[..., Pipeline], few: list[Path]
) -> None:
    other = make_pipeline(slug="other", **SMALL)
    other.upload(few[0])
    held = rows_left(other)
    close(filled, drop_unpublished=True)
    assert rows_left(other) == held
    other.upload(few[1])
    assert other.visitors(2, 2) == filled.visitors(2, 2) > 0


def test_closed_study_takes_nothing(filled: Pipeline, few: list[Path]) -> None:
    stale = VaultStudy.objects.get()
    close(filled, drop_unpublished=True)
    day = timezone.now().date().isoformat()
    for study in (filled.study, stale):  # a server may hold a row from before
        filled.study = study
        for change in (
            lambda: filled.receive(few[0]),
            lambda: filled.close_days(through=1),
            lambda: filled.void_day(1),
            lambda: feeds.create_token(filled.study, name="nightly", days=1, by="olga"),
        ):
            with pytest.raises(StudyClosedError, match=f"the study was closed on {day}"):
                change()
    assert Batch.objects.count() == 3


def test_upload_that_begins_while_the_study_is_closed_leaves_no_key(
    filled: Pipeline, few: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was open when the upload looked, and its batch was not there yet when closing looked."""

    def closed_meanwhile(*_: object, **__: object) -> None:
        close(filled, drop_unpublished=True)

    monkeypatch.setattr(admission, "check_size", closed_meanwhile)
    with pytest.raises(StudyClosedError):
        uploads.begin(filled.study, filename=few[0].name, by="olga")
    assert keystore().names(prefix="") == []
    assert Batch.objects.latest("created_at").state == Batch.State.FAILED


def test_batch_that_slipped_in_while_the_study_was_closed_ends(filled: Pipeline, few: list[Path]) -> None:
    slipped = filled.receive(few[0])
    Batch.objects.filter(pk=slipped.pk).update(state=Batch.State.DONE)
    close(filled, drop_unpublished=True)
    Batch.objects.filter(pk=slipped.pk).update(state=Batch.State.QUEUED)
    filled.finished(slipped)
    assert slipped.state == Batch.State.FAILED
    assert "the study was closed on" in slipped.failure


def test_closed_study_gives_its_certificate_again(filled: Pipeline) -> None:
    certificate = close(filled, drop_unpublished=True)
    assert close_study(filled.study, by="someone else", leave=Leave()) == certificate


def test_slug_of_a_closed_study_is_not_used_again(filled: Pipeline, definition: StudyDefinition) -> None:
    close(filled, drop_unpublished=True)
    PlanIndicator.objects.all().delete()
    Study.objects.all().delete()  # the main database is restored from before the study
    with pytest.raises(StudyVaultError, match="a study of that name was closed on"):
        create_study(definition, by="test")
    assert not keystore().exists(filled.study.key_id)


def test_batches_that_have_not_ended_stand_against_it(filled: Pipeline, few: list[Path]) -> None:
    waiting = filled.receive(few[0], more_to_come=True)
    held = rows_left(filled)
    with pytest.raises(StudyNotClosedError, match=r"have not ended \(1 queued\).*--cancel-batches"):
        close(filled, drop_unpublished=True)
    assert rows_left(filled) == held
    assert open_study(filled.study)
    certificate = close(filled, drop_unpublished=True, cancel_batches=True)
    waiting.refresh_from_db()
    assert waiting.state == Batch.State.CANCELLED
    assert certificate["batches"] == {"cancelled": 1, "done": 3}
    assert not staging.staged_batches()
    assert not keystore().names(prefix="")


def test_batch_that_comes_at_the_last_moment_stands_against_it(
    filled: Pipeline, few: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = closing.publish

    def meanwhile(study: OpenStudy) -> int:
        waiting = real(study)
        filled.receive(few[0], more_to_come=True)
        return waiting

    monkeypatch.setattr(closing, "publish", meanwhile)
    with pytest.raises(StudyNotClosedError, match="1 queued"):
        close(filled, drop_unpublished=True)
    assert open_study(filled.study)


def test_batch_that_is_being_merged_is_never_cancelled(filled: Pipeline) -> None:
    Batch.objects.filter(more_to_come=True).update(state=Batch.State.MERGING)
    with pytest.raises(StudyNotClosedError, match=r"\(1 merging\): wait for their end; one that waits for"):
        close(filled, drop_unpublished=True, cancel_batches=True)
    assert open_study(filled.study)


def test_days_that_were_never_published_stand_against_it(filled: Pipeline) -> None:
    with pytest.raises(StudyNotClosedError, match=r"never published \(2017-06-02\).*close_days"):
        close(filled)
    filled.close_days(through=3)
    assert close(filled)["dropped"]["unpublished_days"] == []
    assert filled.visitors(3, 3) > 0


def test_unreachable_analyst_zone_stands_against_it(filled: Pipeline) -> None:
    held = rows_left(filled)

    def gone(*_: Any) -> None:
        raise OperationalError("connection refused")

    with connections["default"].execute_wrapper(gone), pytest.raises(StudyNotClosedError, match="databases"):
        close(filled, drop_unpublished=True)
    assert rows_left(filled) == held
    assert open_study(filled.study)


def test_what_may_cross_crosses_first(make_pipeline: Callable[..., Pipeline], few: list[Path]) -> None:
    pipeline = make_pipeline(**{**SMALL, "min_publication": 1000})
    (batch,) = pipeline.upload(few[0])
    assert pipeline.visitors(1, 1) == 0 < batch.waiting_subscribers
    row = VaultStudy.objects.get()
    row.definition["min_publication"] = 10
    row.save()
    assert close(pipeline)["dropped"]["waiting_subscribers"] == 0
    assert pipeline.visitors(1, 1) == batch.subscriber_days


def test_what_may_not_cross_is_dropped_and_counted(
    make_pipeline: Callable[..., Pipeline], few: list[Path]
) -> None:
    pipeline = make_pipeline(**{**SMALL, "min_publication": 1000})
    (batch,) = pipeline.upload(few[0])
    certificate = close(pipeline)
    assert certificate["dropped"]["waiting_subscribers"] == batch.waiting_subscribers > 0
    assert certificate["erased"]["waiting_deltas"] > 0
    assert pipeline.visitors(1, 1) == 0


def test_main_database_of_yesterday_catches_up_first(filled: Pipeline) -> None:
    expected = filled.tallies()
    Publication.objects.all().delete()
    for total in (*VisitorTally.objects.all(), *Tally.objects.all()):
        total.counts = bytes(len(total.counts))
        if isinstance(total, Tally):
            total.n_reports = bytes(len(total.n_reports))
        total.save()
    close(filled, drop_unpublished=True)
    assert filled.tallies() == expected


def test_key_that_is_not_there_must_be_called_lost(filled: Pipeline) -> None:
    (keystore().folder / f"{filled.study.key_id}.key").unlink()
    with pytest.raises(StudyNotClosedError, match="--key-is-lost"):
        close(filled, drop_unpublished=True)
    assert rows_left(filled)
    certificate = close(filled, drop_unpublished=True, lost_key=True)
    assert rows_left(filled) == {}
    assert (certificate["key_was_lost"], certificate["keys"]) == (True, [])
    assert certificate["erased"]["pseudonyms"] is None
    assert "lost_key" in [row["name"] for row in certificate["not_reached"]]
    assert keystore().is_destroyed(filled.study.key_id)
    assert keystore().destroyed_at(filled.study.key_id) is None  # that it was lost is remembered


def test_key_that_was_destroyed_before_was_not_lost(filled: Pipeline) -> None:
    key_id = filled.study.key_id
    keystore().destroy(key_id)
    at = keystore().destroyed_at(key_id)
    certificate = close(filled, came_back=True)
    assert (certificate["key_was_lost"], certificate["keys"]) == (False, [{"id": key_id, "destroyed_at": at}])
    assert "lost_key" not in [row["name"] for row in certificate["not_reached"]]
    assert certificate["erased"]["pseudonyms"] is None


def test_shard_that_cannot_be_read_is_erased_and_not_counted(filled: Pipeline) -> None:
    damaged = PresenceShard.objects.first()
    assert damaged is not None
    people = len(open_study(filled.study).unseal_presence(damaged))
    total = sum(Batch.objects.values_list("subscribers_new", flat=True))
    PresenceShard.objects.filter(pk=damaged.pk).update(blob=b"0" * 100)
    erased = close(filled, drop_unpublished=True)["erased"]
    assert (erased["damaged_shards"], erased["pseudonyms"]) == (1, total - people)
    assert rows_left(filled) == {}


@pytest.mark.slow
@pytest.mark.long
def test_death_at_any_statement_ends_in_the_same_certificate(
    make_pipeline: Callable[..., Pipeline], few: list[Path]
) -> None:
    def prepared(slug: str) -> Pipeline:
        pipeline = make_pipeline(slug=slug, **SMALL)
        pipeline.upload(few[0])
        pipeline.receive(few[1])
        return pipeline

    def same(certificate: dict[str, Any]) -> dict[str, Any]:
        """All of it but times and names, and what a death while cancelling leaves to be found."""
        erased = {**certificate["erased"], "staged_uploads": None}
        keys = [key["id"].partition("-")[0] for key in certificate["keys"]][:1]
        times = {"closed_at": None, "erased_at": None}
        return {**certificate, **times, "study": None, "keys": keys, "erased": erased}

    expected = same(close(prepared("undisturbed"), cancel_batches=True))
    for n in range(1, 300):
        pipeline = prepared(f"killed-at-{n}")
        kill, died = KillAt(n), False
        with connections["default"].execute_wrapper(kill), connections["vault"].execute_wrapper(kill):
            try:
                close(pipeline, cancel_batches=True)
            except Killed:
                died = True
        assert same(close(pipeline, cancel_batches=True)) == expected, f"killed at statement {n}"
        assert rows_left(pipeline) == {}, f"killed at statement {n}"
        assert not keystore().exists(pipeline.study.key_id)
        assert Study.objects.get(slug=pipeline.study.slug).state == Study.State.CLOSED
        if not died:
            break
    assert not died, "closing has more statements than the test tries"
    assert n > 30


@pytest.mark.parametrize(
    ("owner", "name"), [(Keystore, "destroy"), (closing, "compact"), (closing, "mark_closed")]
)
def test_death_before_and_after_each_step_outside_of_the_vault(
    filled: Pipeline, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str
) -> None:
    """The key goes before anything else: whatever comes after a death in between, nothing can be read."""
    real, held = getattr(owner, name), rows_left(filled)

    def dying(*args: Any, **options: Any) -> None:
        if is_late:
            real(*args, **options)
        raise Killed

    for is_late in (False, True):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, dying)
            with pytest.raises(Killed):
                close(filled, drop_unpublished=True)
        has_key = keystore().exists(filled.study.key_id)
        assert has_key == (owner is Keystore and not is_late)
        assert not has_key or rows_left(filled) == held
        with pytest.raises(StudyClosedError):
            open_study(VaultStudy.objects.get())
    certificate = close(filled)
    assert certificate["erased"]["publications"] == 2
    assert rows_left(filled) == {}


def test_staging_that_does_not_answer_is_no_erasure(
    filled: Pipeline, few: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    left = filled.receive(few[0], more_to_come=True)
    Batch.objects.filter(pk=left.pk).update(
        state=Batch.State.FAILED, failure="its worker died while ending it"
    )
    with monkeypatch.context() as patch:
        patch.setattr(staging, "discard", lambda _: None)
        with pytest.raises(StagingUnavailableError, match="close it again"):
            close(filled, drop_unpublished=True)
    assert not keystore().names(prefix="")
    certificate = close(filled)
    assert certificate["erased"]["staged_uploads"] == 1
    assert {key["id"] for key in certificate["keys"]} == {filled.study.key_id, left.key_id}
    assert not staging.staged_batches()


def test_old_pages_are_given_back(filled: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    """What follows compaction changes the certificate only."""
    left = []

    def looking(**_: Any) -> None:
        with connections["vault"].cursor() as cursor:
            if connection.vendor == "postgresql":
                cursor.execute("SELECT pg_relation_size('mobility_presenceshard')")
            else:
                cursor.execute("PRAGMA freelist_count")
            left.append(cursor.fetchone())

    monkeypatch.setattr(closing, "mark_closed", looking)
    close(filled, drop_unpublished=True)
    assert left == [(0,)]


def test_log_that_stays_in_use_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("SQLite's log")
    monkeypatch.setattr(compaction, "PATIENCE_S", 0.0)
    monkeypatch.setattr(compaction, "_log_is_in_use", lambda _: True)
    with pytest.raises(compaction.VaultBusyError, match="do it again"):
        compaction.compact(PresenceShard)


@pytest.mark.skipif(connection.vendor != "postgresql", reason="PostgreSQL's old snapshots")
@pytest.mark.parametrize(
    ("alias", "what"),
    [
        ("vault", "SELECT count(*) FROM pg_class"),
        ("vault", "SELECT pg_current_xact_id()"),
        ("default", "SELECT pg_current_xact_id()"),  # who only reads there sees nothing of the vault
    ],
)
def test_transaction_of_before_is_waited_for(monkeypatch: pytest.MonkeyPatch, alias: str, what: str) -> None:
    """As long as somebody may see the deleted rows, rewriting a table would keep them."""
    other = connections[alias].copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            cursor.execute(what)
            with connections["vault"].cursor() as ours:
                ours.execute("SELECT pg_current_xact_id()")  # as a deletion would
            with monkeypatch.context() as hurried, pytest.raises(compaction.VaultBusyError):
                hurried.setattr(compaction, "PATIENCE_S", 0.3)
                compaction.compact(VaultStudy)
            cursor.execute("ROLLBACK")
        compaction.compact(VaultStudy)  # patiently: tests beside this one write in the same server
    finally:
        other.close()


def test_command_prints_the_certificate_or_says_why_not(filled: Pipeline) -> None:
    with pytest.raises(CommandError, match="never published"):
        call_command("close_study", filled.study.slug)
    with pytest.raises(CommandError, match="no study 'nope'"):
        call_command("close_study", "nope")
    out = io.StringIO()
    call_command("close_study", filled.study.slug, "--drop-unpublished", stdout=out)
    printed = json.loads(out.getvalue())
    jsonschema.Draft202012Validator(SCHEMA).validate(printed)
    assert printed == VaultStudy.objects.get().certificate
    assert printed["closed_by"] == "command line"


def test_schema_is_a_schema_and_refuses_what_is_missing(filled: Pipeline) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    certificate = close(filled, drop_unpublished=True)
    for key in SCHEMA["required"]:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({name: certificate[name] for name in certificate if name != key}, SCHEMA)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**certificate, "erased_at": None}, SCHEMA)


def test_close_days_of_a_closed_study_says_so_in_the_command(filled: Pipeline) -> None:
    close(filled, drop_unpublished=True)
    with pytest.raises(CommandError, match="was closed on"):
        call_command("close_days", filled.study.slug, through="2017-06-01")
    assert intake.Batch.objects.count() == 3
