"""Creating a study: in both zones or in none, and again after a crash."""

from dataclasses import replace
from decimal import Decimal

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection

from ldp import PlanSpec
from mobility.base.errors import KeyMissingError
from mobility.models import Batch, VaultStudy
from mobility.plans import studies
from mobility.plans.studies import StudyVaultError, create_study, shard_count
from mobility.vault.keystore import Keystore, keystore
from reports.models import Area, Indicator, Plan, PlanIndicator, Study, Tally, VisitorTally
from reports.studies.studyfile import StudyDefinition
from reports.transfer.studies import StudyExistsError, delete_study_rows, plan_hash
from tests.demo_study import study_text, write_study
from tests.mobility.commands import printed
from tests.mobility.pipeline import raising

ALL_MODELS = (Study, Area, Indicator, Plan, PlanIndicator, Tally, VisitorTally, VaultStudy)
# A true commit: what is half-created would stay.
IN_BOTH = pytest.mark.django_db(databases=["default", "vault"], transaction=True)
pytestmark = [IN_BOTH, pytest.mark.usefixtures("data_dir")]


def everything() -> dict[str, int]:
    found = {model.__name__: model.objects.count() for model in ALL_MODELS}  # type: ignore[attr-defined]
    return {**found, "keys": len(list(keystore().folder.glob("*.key")))}


NOTHING = dict.fromkeys([*(model.__name__ for model in ALL_MODELS), "keys"], 0)
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
