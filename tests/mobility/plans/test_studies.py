"""Creating a study: in both zones or in none, again after a crash, and within the budget of its people."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, connections

from ldp import PlanSpec
from mobility.base.errors import DayStateError, KeyMissingError
from mobility.demo.removal import remove_demo
from mobility.models import Batch, VaultStudy
from mobility.plans import studies
from mobility.plans.drafts import approve_draft, draft_new_study, submit_draft
from mobility.plans.publishing import publish_draft
from mobility.plans.studies import StudyVaultError, create_study, shard_count
from mobility.vault.keystore import Keystore, keystore
from reports.models import Area, Indicator, Plan, PlanIndicator, Study, Tally, VisitorTally
from reports.privacy.budget.actions import BudgetExceededError, decide_cap, propose_cap
from reports.privacy.budget.spending import outlook
from reports.privacy.composition import Losses, counted, studies_of
from reports.studies.studyfile import StudyDefinition
from reports.transfer.studies import StudyExistsError, create_study_rows, delete_study_rows, plan_hash
from tests.demo_study import study_text, write_study
from tests.mobility.commands import printed
from tests.mobility.pipeline import SMALL, fresh, raising

ALL_MODELS = (Study, Area, Indicator, Plan, PlanIndicator, Tally, VisitorTally, VaultStudy)
# A true commit: what is half-created would stay.
IN_BOTH = pytest.mark.django_db(databases=["default", "vault"], transaction=True)
pytestmark = [IN_BOTH, pytest.mark.usefixtures("data_dir")]


def everything() -> dict[str, int]:
    found = {model.__name__: model.objects.count() for model in ALL_MODELS}  # type: ignore[attr-defined]
    return {**found, "keys": len(list(keystore().folder.glob("*.key")))}


NOTHING = dict.fromkeys([*(model.__name__ for model in ALL_MODELS), "keys"], 0)
POPULATION = "fimu-2017-synthetic"  # of the demo study
DEMO_STUDY = dict.fromkeys(NOTHING, 1) | {"Indicator": 7, "PlanIndicator": 7, "Tally": 7}


def test_both_zones_hold_the_study_and_tallies_start_at_zero(definition):
    definition = replace(definition, market_share=Decimal("0.35"), min_publication=7)
    assert create_study(definition, by="adam") == {"study": "fimu-2017", "indicators": 7, "windows": 28}
    assert everything() == DEMO_STUDY
    copy = VaultStudy.objects.get()
    assert StudyDefinition.from_json(copy.definition) == definition
    plan = Plan.objects.get()
    assert copy.plan == plan.spec == definition.plan_spec().to_json()
    assert copy.plan_hash == plan.spec_hash == plan_hash(PlanSpec.from_json(copy.plan))
    assert (copy.n_shards, len(keystore().read(copy.key_id))) == (4, 32)
    study = Study.objects.get()
    assert (study.timezone, study.created_by, study.days) == ("Europe/Paris", "adam", 7)
    assert (study.market_share, study.min_publication) == (Decimal("0.35"), 7)
    visitor = str(study.visitor_from), str(study.visitor_to), study.visitor_min_minutes
    assert visitor == ("06:00:00", "23:59:00", 60)
    assert [i.slug for i in study.indicators.all()] == [i.slug for i in definition.indicators]
    assert study.indicators.get(slug="gender").categories == ["F", "M", "NR"]
    assert (study.area.n_cells, study.area.geojson["type"]) == (62, "FeatureCollection")
    tally = Tally.objects.get(indicator__slug="gender")
    assert bytes(tally.counts) == bytes(3 * 8 * 8 * 8)
    assert bytes(tally.n_reports) == bytes(VisitorTally.objects.get().counts) == bytes(8 * 8 * 8)


def test_a_taken_slug_is_a_clear_error_and_changes_nothing(definition):
    create_study(definition, by="adam")
    key = keystore().read(VaultStudy.objects.get().key_id)
    with pytest.raises(StudyExistsError, match=r'study\.slug must be new, got "fimu-2017"'):
        create_study(replace(definition, name="Another"), by="eve")
    assert (everything(), Study.objects.get().name) == (DEMO_STUDY, definition.name)
    assert keystore().read(VaultStudy.objects.get().key_id) == key


def test_nothing_stays_when_a_step_fails(definition, monkeypatch):
    in_code = [(Keystore, "create"), (studies, "_create_copy"), (studies, "create_study_rows")]
    for owner, name in (*in_code, (Tally.objects, "create")):
        with monkeypatch.context() as broken:
            broken.setattr(owner, name, raising(OSError("no space left on device")))
            with pytest.raises(OSError, match="no space left"):
                create_study(definition, by="adam")
        assert everything() == NOTHING, name
    create_study(definition, by="adam")
    assert everything() == DEMO_STUDY


@pytest.mark.database
def test_nothing_stays_when_the_main_commit_fails(definition, monkeypatch):
    def fail() -> None:
        connection.rollback()
        raise DatabaseError("disk I/O error")

    with monkeypatch.context() as broken:
        broken.setattr(connection, "commit", fail)
        with pytest.raises(DatabaseError, match="disk I/O error"):
            create_study(definition, by="adam")
    assert everything() == NOTHING


def crash_before_the_main_commit(definition: StudyDefinition) -> None:
    keystore().create(f"study-{definition.slug}")
    studies._create_copy(definition, version=1, key_id=f"study-{definition.slug}")


def test_a_corrected_file_replaces_what_a_crash_left_and_a_failure_can_be_repeated(definition, monkeypatch):
    crash_before_the_main_commit(definition)
    left = VaultStudy.objects.get()
    with monkeypatch.context() as broken:
        broken.setattr(VaultStudy.objects, "create", lambda **_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            create_study(definition, by="adam")
    assert VaultStudy.objects.get() == left  # the vault's transaction was rolled back whole
    create_study(replace(definition, name="Corrected", expected_subscribers=800_000), by="adam")
    copy = VaultStudy.objects.get()
    assert (copy.definition["name"], copy.n_shards, everything()) == ("Corrected", 8, DEMO_STUDY)


def test_a_key_alone_is_no_obstacle_and_a_second_study_of_a_name_gets_a_key_of_another_name(definition):
    left = keystore().create(f"study-{definition.slug}")
    create_study(definition, by="adam")
    first = VaultStudy.objects.get().key_id
    assert keystore().read(first) != left
    VaultStudy.objects.all().delete()
    keystore().destroy(first)
    delete_study_rows(Study.objects.get())
    create_study(definition, by="adam")
    assert VaultStudy.objects.get().key_id != first
    assert keystore().destroyed() == [first]


class TestVaultWithData:
    @pytest.fixture(autouse=True)
    def _vault(self, data_dir, definition):
        crash_before_the_main_commit(definition)
        Batch.objects.create(study=VaultStudy.objects.get(), state=Batch.State.DONE)

    def test_another_definition_is_refused_and_the_same_one_keeps_copy_and_key(self, definition):
        before = VaultStudy.objects.get()
        key = keystore().read(before.key_id)
        with pytest.raises(StudyVaultError, match="has data in the vault under a different definition"):
            create_study(replace(definition, name="Another"), by="adam")
        assert (Study.objects.count(), VaultStudy.objects.count()) == (0, 1)
        create_study(definition, by="adam")
        copy = VaultStudy.objects.get()
        assert (copy, keystore().read(copy.key_id), everything()) == (before, key, DEMO_STUDY)

    def test_a_lost_key_is_reported(self, definition):
        keystore().destroy(VaultStudy.objects.get().key_id)
        with pytest.raises(KeyMissingError):
            create_study(definition, by="adam")
        assert Study.objects.count() == 0


def test_the_number_of_shards_follows_the_expected_subscribers():
    shards = {None: 16, 1: 4, 400_000: 4, 400_001: 8, 10**7: 128, 10**8: 1024, 10**10: 1024}
    assert {expected: shard_count(expected) for expected in shards} == shards


def test_the_command_lists_the_problems_prints_one_json_value_and_says_when_the_study_exists(tmp_path):
    file = tmp_path / "bad.toml"
    file.write_text(study_text().replace("days = 7", "days = 70"))
    with pytest.raises(CommandError) as caught:
        call_command("create_study", str(file))
    beside = "must name a file that is given together with the study file"
    assert str(caught.value).split("\n") == [
        "bad.toml: study.days: must be a whole number from 1 to 62, got 70",
        f'bad.toml: area.cells: {beside}, got "cells.csv"',
        f'bad.toml: area.zones: {beside}, got "zones.geojson"',
    ]
    assert everything() == NOTHING
    with pytest.raises(CommandError, match=r"nowhere\.toml: No such file"):
        call_command("create_study", str(tmp_path / "nowhere.toml"))
    expected = {"study": "fimu-2017", "indicators": 7, "windows": 28}
    study = write_study(tmp_path)
    assert printed("create_study", str(study)) == expected
    with pytest.raises(CommandError, match="a study with this name already exists"):
        call_command("create_study", str(study))


def cap(epsilon):
    who = {"population": POPULATION, "unit": "profile", "period": "year"}
    return propose_cap(**who, epsilon=Decimal(epsilon), by="adam")


def test_a_study_over_the_cap_is_created_in_neither_zone(data_dir, definition, tmp_path):
    cap("6")  # the demo's daily indicator may be answered on seven days
    reason = "the cap is 6, studies have spent 0, 6 is left, this takes 7"
    with pytest.raises(BudgetExceededError, match=reason):
        create_study(definition, by="adam")
    assert (Study.objects.count(), VaultStudy.objects.count()) == (0, 0)
    with pytest.raises(CommandError, match="requested by command line, must fit the budget"):
        call_command("create_study", str(write_study(tmp_path)), stdout=StringIO())
    assert create_study(replace(definition, population="others"), by="adam")["study"] == definition.slug


def test_a_study_that_is_there_is_said_to_be_there_whatever_its_budget(data_dir, definition):
    create_study(definition, by="adam")
    cap("1")  # far below what it has spent
    with pytest.raises(StudyExistsError):
        create_study(definition, by="adam")


@pytest.mark.database
@pytest.mark.skipif(connections["default"].vendor == "sqlite", reason="on SQLite only one writes at a time")
def test_two_studies_at_once_cannot_both_take_the_rest(data_dir, definition, monkeypatch):
    cap("10")
    both_have_checked = threading.Barrier(2)

    def slowly(definition, **options):
        with suppress(threading.BrokenBarrierError):  # the other one waits for the end of this one
            both_have_checked.wait(2)
        return create_study_rows(definition, **options)

    def failure_of(slug):
        try:
            create_study(replace(definition, slug=slug), by="adam")
        except Exception as error:  # noqa: BLE001 - the test looks at it
            return type(error)
        finally:
            connections.close_all()

    monkeypatch.setattr(studies, "create_study_rows", slowly)
    with ThreadPoolExecutor(2) as pool:
        assert {*pool.map(failure_of, ("one", "two"))} == {None, BudgetExceededError}
    assert Study.objects.count() == VaultStudy.objects.count() == 1
    assert counted(studies_of(POPULATION)).profile <= 10


def test_undoing_a_published_day_is_stopped_by_the_cap(make_pipeline, few):
    pipeline = make_pipeline(**SMALL)
    pipeline.upload(*few[:2])
    cap("8.5")
    pipeline.void_day(1)
    assert (Plan.objects.get().voided_days, fresh(pipeline.study).voided_days) == (1, 1)
    with pytest.raises(DayStateError, match=r"day 2 cannot be undone: .* profile, 2017: the cap is 8\.5"):
        pipeline.void_day(2)
    assert VaultStudy.objects.get().voided_days == 1


def test_what_undoing_a_day_costs_is_spent_before_anything_is_undone(make_pipeline, few, definition):
    pipeline = make_pipeline(**SMALL)
    pipeline.upload(few[0])
    cap("14.5")
    waiting = pipeline.request_void_day(1)
    create_study(replace(definition, slug="other"), by="adam")
    before = pipeline.tallies()
    ended = pipeline.finished(waiting)
    assert (ended.state, pipeline.tallies()) == (Batch.State.FAILED, before)
    assert "day 1 cannot be undone" in ended.failure
    assert Plan.objects.get(study__slug="fimu-2017").voided_days == 0
    first = definition.first_day
    assert outlook(POPULATION, first_day=first, last_day=first, takes=Losses()).lines[0].spent <= 14


def test_removing_the_demo_gives_nothing_back(make_pipeline, few):
    pipeline = make_pipeline(**SMALL)
    Study.objects.update(is_demo=True)
    pipeline.upload(few[0])
    before = counted(studies_of(POPULATION))
    assert before.profile > 0
    remove_demo(by="adam")
    assert (Study.objects.exists(), counted(studies_of(POPULATION))) == (False, before)
    cap("7.5")
    with pytest.raises(BudgetExceededError):
        make_pipeline(**SMALL)  # of the same name


def test_publishing_a_draft_over_the_cap_changes_nothing(data_dir, definition):
    draft = draft_new_study(definition, by="adam")
    submit_draft(draft, revision=1, by="adam")
    approve_draft(draft, revision=1, by="petra")
    cap("6")
    with pytest.raises(BudgetExceededError):
        publish_draft(draft, revision=1, by="adam")
    counts = Study.objects.count(), VaultStudy.objects.count()
    assert (fresh(draft).state, counts) == ("reviewed", (0, 0))
    decide_cap(cap("7"), confirm=True, by="petra")
    publish_draft(draft, revision=1, by="adam")
    assert counted(studies_of(POPULATION)).profile <= 7
