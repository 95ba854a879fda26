"""Temporary data are removed in time, and not before; a promised end of a key is kept."""

from dataclasses import replace
from datetime import timedelta
from unittest.mock import Mock

import pytest
from django.test import override_settings
from django.utils import timezone

from mobility import tasks
from mobility.models import Applied, Batch, Chunk, PlanDraft, ShardRun, VaultDay, VaultStudy
from mobility.operations.findings import Level
from mobility.operations.forgetting import forget
from mobility.operations.models import Alert, JobRun
from mobility.operations.probes import keys
from mobility.plans import closing
from mobility.plans.studies import create_study
from mobility.signin.models import CacheEntry
from mobility.vault.keystore import keystore
from mobility.workers.models import WorkerSign
from reports.ledger.models import LedgerEntry
from tests.mobility.batches.killing import Killed
from tests.mobility.pages.small_study import STUDY, definition_of

IN_BOTH = pytest.mark.django_db(databases=["default", "vault"], transaction=True)
pytestmark = [IN_BOTH, pytest.mark.usefixtures("data_dir")]
closes_in_time = override_settings(MOBILITY_CLOSE_AT_KEY_UNTIL=True)


def definition(extra=""):
    return definition_of(STUDY.replace("[study.visitor]", f"{extra}\n[study.visitor]"))


def ago(days):
    return timezone.now() - timedelta(days=days)


@pytest.fixture
def study():
    create_study(definition(), by="adam")
    return VaultStudy.objects.get()


def test_alerts_workers_jobs_counts_and_withdrawn_drafts_that_are_over(settings):
    settings.MOBILITY_KEEP_HISTORY_DAYS = 30
    for subject, ended_at in (("old", ago(31)), ("recent", ago(29)), ("open", None)):
        at = {"since": ago(900), "seen_at": ago(900), "ended_at": ended_at}
        Alert.objects.create(code="disk_low", subject=subject, zone="all", level="error", **at)
    at = {"since": ago(9), "seen_at": ago(9)}  # of an operator zone that shared this database
    Alert.objects.create(code="disk_low", subject="theirs", zone="operator", level="error", **at)
    seen = {"zone": "all", "version": "1", "started_at": ago(9)}
    WorkerSign.objects.create(name="gone@host", seen_at=ago(2), **seen)
    WorkerSign.objects.create(name="here@host", seen_at=ago(0), **seen)
    JobRun.objects.create(name="of an earlier version", zone="all", started_at=ago(31))
    JobRun.objects.create(name="sweep", zone="all", started_at=ago(0))
    CacheEntry.objects.create(cache_key="over", value="1", expires=ago(0.01))
    CacheEntry.objects.create(cache_key="counts", value="1", expires=ago(-1))
    assert forget()["alerts"] == 2
    assert {alert.subject for alert in Alert.objects.all()} == {"recent", "open"}
    assert [sign.name for sign in WorkerSign.objects.all()] == ["here@host"]
    assert [job.name for job in JobRun.objects.all()] == ["sweep"]
    assert [entry.cache_key for entry in CacheEntry.objects.all()] == ["counts"]
    for slug, state, published_at, ended_at in (
        ("over", "withdrawn", None, ago(31)),
        ("recent", "withdrawn", None, ago(29)),
        ("replaced", "superseded", ago(99), ago(31)),
    ):
        given = {"definition": {}, "version": 1, "edited_at": ago(99), "published_at": published_at}
        PlanDraft.objects.create(slug=slug, state=state, ended_at=ended_at, **given)
    assert forget()["drafts"] == 1
    assert {draft.slug for draft in PlanDraft.objects.all()} == {"recent", "replaced"}


def batch(study, *, finished_at, state, kind=Batch.Kind.EXTRACT):
    made = Batch.objects.create(
        study=study, kind=kind, state=state, finished_at=finished_at,
        rows_rejected={"bad_timestamp": 1}, rejected_lines={"bad_timestamp": [7]},
    )  # fmt: skip
    if kind == Batch.Kind.EXTRACT:  # nothing else is read from a file
        Chunk.objects.create(batch=made, index=0)
    ShardRun.objects.create(batch=made, shard=0)
    Applied.objects.create(batch=made, shard=0, counts={})
    return made


@pytest.mark.database
def test_details_of_batches_that_have_ended(study, settings):
    settings.MOBILITY_KEEP_DETAIL_DAYS = 10
    done, cancelled = Batch.State.DONE, Batch.State.CANCELLED
    old = [batch(study, finished_at=ago(11), state=state) for state in (done, cancelled)]
    recent = batch(study, finished_at=ago(2), state=done)
    ends = ((ago(0.9), done), (None, Batch.State.READING))
    kept = [batch(study, finished_at=finished_at, state=state) for finished_at, state in ends]
    closing = batch(study, finished_at=ago(11), state=done, kind=Batch.Kind.CLOSE_DAYS)
    forgotten = forget()
    names = ("chunks", "shard_runs", "shards_taken", "line_numbers")
    assert [forgotten[name] for name in names] == [3, 4, 4, 3]
    for parts in (Chunk, ShardRun, Applied):
        assert set(parts.objects.values_list("batch", flat=True)) == {each.pk for each in kept}
    for each in (*old, closing, recent, *kept):
        each.refresh_from_db()
        assert each.rows_rejected == {"bad_timestamp": 1}  # counts stay
        assert bool(each.rejected_lines) == (each in (recent, *kept))


def until(days_from_now):
    return f"key_until = {(timezone.now() + timedelta(days=days_from_now)).date().isoformat()}"


def due(days_from_now):
    """Make a study whose key must be destroyed in some days; with a day that was never published."""
    create_study(definition(until(days_from_now)), by="adam")
    study = VaultStudy.objects.get(slug="fair")
    VaultDay.objects.create(study=study, day=1)
    return study


def is_closed(study):
    study.refresh_from_db()
    return study.closed_at is not None and not keystore().exists(study.key_id)


@pytest.mark.parametrize(
    ("days_from_now", "is_on", "closes"),
    [(1, True, False), (0, True, False), (-1, True, True), (-1, False, False)],
)
def test_days_that_were_never_published_wait_for_the_last_day(settings, days_from_now, is_on, closes):
    settings.MOBILITY_CLOSE_AT_KEY_UNTIL = is_on
    study = due(days_from_now)
    tasks.forget_old_views()
    assert is_closed(study) == closes


@closes_in_time
def test_a_study_that_loses_nothing_closes_on_its_day_and_one_without_such_a_day_stays_open():
    create_study(replace(definition(), slug="open"), by="adam")
    assert VaultStudy.objects.get().definition["key_until"] is None
    study = due(0)
    VaultDay.objects.all().delete()
    assert forget()["studies"] == 1
    assert is_closed(study)
    entry = LedgerEntry.objects.filter(kind="study.closed").get()
    assert (entry.actor, entry.study) == ("data retention", "fair")
    assert forget()["studies"] == 0
    assert not is_closed(VaultStudy.objects.get(slug="open"))


def unreadable(study):
    """No error of ours: reading the key raises OSError."""
    path = keystore().folder / f"{study.key_id}.key"
    path.unlink()
    path.mkdir()


def lost(study):
    keystore().destroy(study.key_id)  # then a person has to say that it is lost


@closes_in_time
@pytest.mark.parametrize("spoil", [unreadable, lost])
def test_a_study_that_cannot_be_closed_holds_up_no_other(spoil):
    study = due(-1)
    create_study(replace(definition(until(-1)), slug="later"), by="adam")
    spoil(study)
    assert forget()["studies"] == 1
    study.refresh_from_db()
    assert study.closed_at is None
    assert is_closed(VaultStudy.objects.get(slug="later"))


@pytest.mark.database
def test_a_closing_that_died_is_finished_and_told_of_until_then(study, monkeypatch):
    create_study(replace(definition(), slug="later"), by="adam")
    later = VaultStudy.objects.get(slug="later")
    for each in (study, later):
        with monkeypatch.context() as patch, pytest.raises(Killed):
            patch.setattr(closing, "_destroy_keys", Mock(side_effect=Killed))
            closing.close_study(each, by="olga", leave=closing.Leave(drop_unpublished=True))
    assert keystore().exists(study.key_id)
    assert [found.level for found in keys.due()] == [Level.OK]  # it may be at work
    VaultStudy.objects.update(closed_at=ago(0.5))
    told = [(found.subject, found.level, found.facts["why"]) for found in keys.due()]
    assert told == [("fair", Level.ERROR, "unerased"), ("later", Level.ERROR, "unerased")]
    key_file = keystore().folder / f"{study.key_id}.key"
    key = key_file.read_bytes()
    unreadable(study)
    assert forget()["closings"] == 1
    assert is_closed(later)
    assert [found.subject for found in keys.due()] == ["fair"]
    key_file.rmdir()
    key_file.write_bytes(key)
    assert forget()["closings"] == 1
    assert is_closed(study)
    assert study.certificate["erased_at"] is not None
    assert study.certificate["closed_by"] == "olga"
    assert [found.level for found in keys.due()] == [Level.OK]
    assert LedgerEntry.objects.filter(kind="study.closed").count() == 2
    assert forget()["closings"] == 0
