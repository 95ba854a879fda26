"""After a restore no one counts twice, and what cannot continue says so."""

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from django.contrib.sessions.models import Session
from django.core.management import CommandError, call_command

from mobility.base.errors import StudyStoppedError
from mobility.batches import running
from mobility.batches.publication.publishing import catch_up
from mobility.models import Applied, Batch, OptOutShard, PresenceShard, VaultStudy
from mobility.operations.backup.dumps import load
from mobility.operations.backup.folder import read_manifest
from mobility.operations.backup.reconcile import reconcile
from mobility.operations.findings import Level
from mobility.operations.probes import consistency
from mobility.plans.closing import Leave, StudyNotClosedError, close_study
from mobility.plans.recovery import recover
from mobility.vault.keystore import keystore
from reports.ledger.check import check_tables
from reports.models import ApiToken, LedgerEntry
from reports.sharing.actions import create_token
from reports.studies.policies import Role
from tests.mobility.operations.restoring.conftest import back_up, put_back
from tests.mobility.pipeline import SCHEMA, Pipeline, fresh

pytestmark = pytest.mark.django_db(databases=["default", "vault"], transaction=True)


@pytest.mark.database
def test_what_came_after_the_backup_is_sent_again_and_counts_once(pipeline, few, tmp_path, person, client):
    client.force_login(person("anna"))
    pipeline.upload(*few[:2])
    folder, before = back_up(tmp_path), pipeline.tallies()
    pipeline.upload(few[2])
    after = pipeline.tallies()
    assert after != before
    told = put_back(folder)
    assert pipeline.tallies() == before
    assert (told["sessions_ended"], Session.objects.count()) == (0, 0)  # the backup has none
    assert (told["waits_for"], told["keys_missing"], told["studies_stopped"]) == (None, [], {})
    assert (told["openings"]["accounts"], check_tables().problem) == (["anna"], None)
    client.force_login(person("bert"))
    assert "sessions_ended" in reconcile(by="test")  # as restore_keys does, whenever that is
    assert Session.objects.count() == 1  # of after the restore: it continues
    last = LedgerEntry.objects.get(kind="backup.restored")
    assert last.facts["backup_of"] == read_manifest(folder).made_at.isoformat()
    assert [batch.duplicate_of is None for batch in pipeline.upload(few[1], few[2])] == [False, True]
    assert pipeline.tallies() == after


def bring_back_an_older_vault(pipeline: Pipeline, few: list[Path], tmp_path: Path) -> tuple[Path, Any]:
    pipeline.upload(few[0])
    folder = back_up(tmp_path)
    pipeline.upload(few[1])
    after = pipeline.tallies()
    load(next(folder.glob("vault.*")), alias="vault")
    return folder, after


# After this number of tasks the batch is in this state, and this many of its two shards have it.
MOMENTS = {1: ("reading", 0), 2: ("merging", 0), 3: ("merging", 1)}


@pytest.mark.parametrize("n_tasks", MOMENTS)
def test_a_batch_under_way_ends_and_its_file_counts_once(pipeline, few, tmp_path, n_tasks):
    pipeline.upload(few[0])
    batch = pipeline.receive(few[1])
    pipeline.queue.append(("advance", str(batch.pk)))
    for _ in range(n_tasks):
        task, *ids = pipeline.queue.popleft()
        getattr(running, task)(*ids)
    assert (fresh(batch).state, Applied.objects.filter(batch=batch).count()) == MOMENTS[n_tasks]
    folder = back_up(tmp_path)
    assert put_back(folder)["batches_ended"] == {}  # in place its file is still there: it continues
    pipeline.work()
    after = pipeline.tallies()
    assert put_back(folder)["batches_ended"] == {pipeline.study.slug: 1}
    assert (fresh(batch).state, "Send the same file again" in batch.failure) == (Batch.State.FAILED, True)
    (again,) = pipeline.upload(few[1])
    assert (again.state, pipeline.tallies()) == (Batch.State.DONE, after)


def test_a_vault_older_than_its_totals_stops_instead_of_counting_twice(pipeline, few, tmp_path):
    folder, after = bring_back_an_older_vault(pipeline, few, tmp_path)
    told = recover(by="test", closed=set())
    unknown = "publications of the study that the vault does not know"
    assert unknown in told["studies_stopped"][pipeline.study.slug]
    pipeline.study = study = VaultStudy.objects.get()
    with pytest.raises(StudyStoppedError, match="no one is counted twice"):
        pipeline.upload(few[1])
    assert pipeline.tallies() == after
    (found,) = consistency.stopped()
    assert (found.code, found.level, found.subject) == ("study_stopped", Level.ERROR, study.slug)

    put_back(folder)  # both of one backup: they fit, and the study continues
    assert (fresh(pipeline.study).stopped, [each.level for each in consistency.stopped()]) == ("", [Level.OK])
    pipeline.upload(few[1])
    assert pipeline.tallies() == after


def test_where_nobody_has_looked_yet_nothing_is_added_and_the_study_can_be_ended(pipeline, few, tmp_path):
    """The study is not marked yet, and a file arrives: it is merged, but does not cross."""
    _, after = bring_back_an_older_vault(pipeline, few, tmp_path)
    (batch,) = pipeline.upload(few[1])
    assert (batch.state, "no one is counted twice" in batch.failure) == (Batch.State.FAILED, True)
    assert pipeline.tallies() == after
    recover(by="test", closed=set())
    with pytest.raises(StudyNotClosedError, match="nothing was erased"):
        close_study(pipeline.study, by="test", leave=Leave())
    assert PresenceShard.objects.exists()
    certificate = close_study(pipeline.study, by="test", leave=Leave(came_back=True))
    jsonschema.Draft202012Validator(SCHEMA).validate(certificate)
    assert "came_back" in [row["name"] for row in certificate["not_reached"]]
    assert (PresenceShard.objects.count(), keystore().exists(pipeline.study.key_id)) == (0, False)
    assert pipeline.tallies() == after
    catch_up()
    assert VaultStudy.objects.get().certificate == certificate


@pytest.fixture
def noisy(make_pipeline, definition):
    plan = replace(definition.plan, presence_epsilon=Decimal(1), presence_days=2)
    return make_pipeline(slug="noisy", plan=plan)


def test_no_day_crosses_twice_with_the_same_presence_noise(noisy, few, tmp_path):
    """A day that was closed after the backup would cross again, without those who opted out."""
    noisy.upload(*few)
    noisy.close_days(through=1)
    folder = back_up(tmp_path)
    noisy.close_days(through=2)
    assert "--no-day-closed-since" in put_back(folder)["studies_stopped"]["noisy"]
    before = noisy.tallies()
    catch_up()
    recover(by="test", closed=set())  # everything fits, and yet
    noisy.study = study = VaultStudy.objects.get()
    with pytest.raises(StudyStoppedError, match="--no-day-closed-since"):
        noisy.close_days(through=2)
    assert (noisy.tallies(), why_stopped()) == (before, {"why": "presence"})
    assert close_study(study, by="test", leave=Leave(came_back=True))["erased_at"] is not None
    assert noisy.tallies() == before


def why_stopped() -> dict[str, Any]:
    (found,) = consistency.stopped()
    assert found.level == Level.ERROR
    return dict(found.facts)


def test_presence_noise_goes_on_if_no_day_was_closed_since(noisy, definition, few, tmp_path):
    noisy.upload(few[0])
    folder = back_up(tmp_path)
    assert list(put_back(folder)["studies_stopped"]) == ["noisy"]
    assert put_back(folder, no_day_closed=True)["studies_stopped"] == {}
    noisy.study.refresh_from_db()
    noisy.close_days(through=definition.days)  # then no day is left that could cross
    assert put_back(back_up(tmp_path / "later"))["studies_stopped"] == {}


def test_what_opens_it_from_outside_is_ended_if_asked_for(pipeline, tmp_path, person):
    create_token(by=person("anna", Role.ANALYST), name="night", days=9, study=None)
    folder = back_up(tmp_path)
    ApiToken.objects.all().delete()
    for revokes, names in ((False, ["anna: night"]), (True, [])):
        assert put_back(folder, revokes=revokes)["openings"]["api_tokens"] == names
        assert ApiToken.objects.get().is_valid != revokes


def test_people_are_told_that_opt_outs_since_are_gone(pipeline, few, tmp_path, capsys):
    folder = back_up(tmp_path)
    OptOutShard.objects.create(study=pipeline.study, shard=0, blob=b"sealed")
    with pytest.raises(CommandError, match="--replace"):
        call_command("restore", str(folder), "--yes")
    assert OptOutShard.objects.exists()
    call_command("restore", str(folder), "--yes", "--replace")
    assert not OptOutShard.objects.exists()
    printed = capsys.readouterr()
    told = json.loads(printed.out)
    assert told["opt_outs_missing_since"] == read_manifest(folder).made_at.isoformat()
    assert f"PEOPLE WHO OPTED OUT AFTER {told['opt_outs_missing_since']} ARE COUNTED AGAIN" in printed.err
