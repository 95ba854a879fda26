"""What is kept for a while only goes in time, and not before; a promised end of a key is kept."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings
from django.utils import timezone

from mobility import tasks
from mobility.keystore import keystore
from mobility.models import Batch, Chunk, PlanDraft, ShardRun, VaultDay, VaultStudy
from mobility.operations.findings import Level
from mobility.operations.forgetting import forget
from mobility.operations.models import Alert, JobRun, WorkerSign
from mobility.operations.probes import keys
from mobility.services import closing
from mobility.services.studies import create_study
from mobility.signin.models import CacheEntry
from reports.models import LedgerEntry
from reports.studyfile import StudyDefinition, parse_study
from tests.mobility.services.killing import Killed
from tests.mobility.views.small_study import STUDY

pytestmark = [
    pytest.mark.database,
    pytest.mark.django_db(databases=["default", "vault"], transaction=True),
]


@pytest.fixture(autouse=True)
def _keys(data_dir: Path) -> Iterator[None]:
    yield


def definition(extra: str = "") -> StudyDefinition:
    def absent(name: str) -> bytes:
        raise FileNotFoundError(name)

    text = STUDY.replace("[study.visitor]", f"{extra}\n[study.visitor]")
    return parse_study(text.encode(), filename="study.toml", read=absent)


def ago(days: float) -> datetime:
    return timezone.now() - timedelta(days=days)


@pytest.fixture
def study() -> VaultStudy:
    create_study(definition(), by="adam")
    return VaultStudy.objects.get()


def alert(ended_at: datetime | None) -> Alert:
    code = "disk_low" if ended_at else "key_missing"
    return Alert.objects.create(
        code=code, zone="all", level="error", since=ago(900), seen_at=ago(900), ended_at=ended_at
    )


def test_alerts_that_are_over(settings: Any) -> None:
    settings.MOBILITY_KEEP_HISTORY_DAYS = 30
    old, recent, open_one = alert(ago(31)), alert(ago(29)), alert(None)
    assert forget()["alerts"] == 1
    assert set(Alert.objects.all()) == {recent, open_one}
    assert old not in Alert.objects.all()


def test_workers_jobs_and_counts_that_are_gone() -> None:
    seen = {"zone": "all", "version": "1", "started_at": ago(9)}
    WorkerSign.objects.create(name="gone@host", seen_at=ago(2), **seen)
    WorkerSign.objects.create(name="here@host", seen_at=ago(0), **seen)
    JobRun.objects.create(name="of an earlier version", zone="all", started_at=ago(31))
    JobRun.objects.create(name="sweep", zone="all", started_at=ago(0))
    CacheEntry.objects.create(cache_key="over", value="1", expires=ago(0.01))
    CacheEntry.objects.create(cache_key="counts", value="1", expires=ago(-1))
    forget()
    assert [sign.name for sign in WorkerSign.objects.all()] == ["here@host"]
    assert [job.name for job in JobRun.objects.all()] == ["sweep"]
    assert [entry.cache_key for entry in CacheEntry.objects.all()] == ["counts"]


def batch(
    study: VaultStudy,
    *,
    finished_at: datetime | None,
    state: Batch.State,
    kind: Batch.Kind = Batch.Kind.EXTRACT,
) -> Batch:
    made = Batch.objects.create(
        study=study,
        kind=kind,
        state=state,
        finished_at=finished_at,
        rows_rejected={"bad_timestamp": 1},
        rejected_lines={"bad_timestamp": [7]},
    )
    if kind == Batch.Kind.EXTRACT:  # nothing else is read from a file
        Chunk.objects.create(batch=made, index=0)
    ShardRun.objects.create(batch=made, shard=0)
    return made


def test_details_of_batches_that_have_ended(study: VaultStudy, settings: Any) -> None:
    settings.MOBILITY_KEEP_DETAIL_DAYS = 10
    done, cancelled = Batch.State.DONE, Batch.State.CANCELLED
    old = [batch(study, finished_at=ago(11), state=state) for state in (done, cancelled)]
    kept = [
        batch(study, finished_at=ago(9), state=done),
        batch(study, finished_at=None, state=Batch.State.READING),
    ]
    closing = batch(study, finished_at=ago(11), state=done, kind=Batch.Kind.CLOSE_DAYS)
    forgotten = forget()
    assert [forgotten[name] for name in ("chunks", "shard_runs", "line_numbers")] == [2, 3, 3]
    assert set(Chunk.objects.values_list("batch", flat=True)) == {each.pk for each in kept}
    assert set(ShardRun.objects.values_list("batch", flat=True)) == {each.pk for each in kept}
    for each in (*old, closing, *kept):
        each.refresh_from_db()
        assert each.rows_rejected == {"bad_timestamp": 1}  # counts stay
        assert bool(each.rejected_lines) == (each in kept)


def test_withdrawn_drafts(settings: Any) -> None:
    settings.MOBILITY_KEEP_HISTORY_DAYS = 30

    def draft(**facts: Any) -> PlanDraft:
        return PlanDraft.objects.create(definition={}, version=1, edited_at=ago(99), **facts)

    over = draft(slug="over", state="withdrawn", ended_at=ago(31))
    recent = draft(slug="recent", state="withdrawn", ended_at=ago(29))
    replaced = draft(slug="replaced", state="superseded", published_at=ago(99), ended_at=ago(31))
    assert forget()["drafts"] == 1
    assert set(PlanDraft.objects.all()) == {recent, replaced}
    assert over not in PlanDraft.objects.all()


def until(days_from_now: int) -> str:
    """A line of a study file."""
    return f"key_until = {(timezone.now() + timedelta(days=days_from_now)).date().isoformat()}"


@pytest.fixture
def due() -> Callable[[int], VaultStudy]:
    """Make a study whose key is to be destroyed in some days; with a day that was never published."""

    def make(days_from_now: int) -> VaultStudy:
        create_study(definition(until(days_from_now)), by="adam")
        study = VaultStudy.objects.get()
        VaultDay.objects.create(study=study, day=1)
        return study

    return make


def is_closed(study: VaultStudy) -> bool:
    study.refresh_from_db()
    return study.closed_at is not None and not keystore().exists(study.key_id)


def test_without_the_switch_a_key_stays(due: Callable[[int], VaultStudy]) -> None:
    study = due(-1)
    forget()
    assert not is_closed(study)


@override_settings(MOBILITY_CLOSE_AT_KEY_UNTIL=True)
@pytest.mark.parametrize(("days_from_now", "closes"), [(1, False), (0, False), (-1, True)])
def test_days_that_were_never_published_wait_for_the_last_day(
    due: Callable[[int], VaultStudy], days_from_now: int, *, closes: bool
) -> None:
    study = due(days_from_now)
    tasks.forget_old_views()
    assert is_closed(study) == closes


@override_settings(MOBILITY_CLOSE_AT_KEY_UNTIL=True)
def test_a_study_that_loses_nothing_closes_on_its_day(due: Callable[[int], VaultStudy]) -> None:
    study = due(0)
    VaultDay.objects.all().delete()
    assert forget()["studies"] == 1
    assert is_closed(study)
    entry = LedgerEntry.objects.filter(kind="study.closed").get()
    assert (entry.actor, entry.study) == ("retention", "fair")
    assert forget()["studies"] == 0


@override_settings(MOBILITY_CLOSE_AT_KEY_UNTIL=True)
def test_a_study_without_such_a_day_stays_open(study: VaultStudy) -> None:
    assert study.definition["key_until"] is None
    assert forget()["studies"] == 0
    assert not is_closed(study)


def unreadable(study: VaultStudy) -> None:
    """No error of ours: reading the key raises OSError."""
    path = keystore().folder / f"{study.key_id}.key"
    path.unlink()
    path.mkdir()


def lost(study: VaultStudy) -> None:
    keystore().destroy(study.key_id)  # then a person has to say that it is lost


@override_settings(MOBILITY_CLOSE_AT_KEY_UNTIL=True)
@pytest.mark.parametrize("spoil", [unreadable, lost])
def test_a_study_that_cannot_be_closed_holds_up_no_other(
    due: Callable[[int], VaultStudy], spoil: Callable[[VaultStudy], None]
) -> None:
    study = due(-1)
    create_study(replace(definition(until(-1)), slug="later"), by="adam")
    spoil(study)
    assert forget()["studies"] == 1
    study.refresh_from_db()
    assert study.closed_at is None
    assert is_closed(VaultStudy.objects.get(slug="later"))


def test_a_closing_that_died_is_finished_and_told_of_until_then(
    study: VaultStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_study(replace(definition(), slug="later"), by="adam")
    later = VaultStudy.objects.get(slug="later")
    for each in (study, later):
        with monkeypatch.context() as patch, pytest.raises(Killed):
            patch.setattr(closing, "_destroy_keys", die)
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


def die(_: VaultStudy) -> None:
    raise Killed
