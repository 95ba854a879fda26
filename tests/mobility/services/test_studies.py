"""Creating a study: in both zones or in none, and again after a crash."""

import io
import json
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError

from ldp import PlanSpec
from mobility.errors import KeyMissingError
from mobility.keystore import Keystore, keystore
from mobility.models import Batch, VaultStudy
from mobility.services import studies
from mobility.services.studies import StudyVaultError, create_study, shard_count
from reports.models import Area, Indicator, Plan, PlanIndicator, Study, Tally, VisitorTally
from reports.services.studies import StudyExistsError, delete_study_rows, plan_hash
from reports.studyfile import StudyDefinition, parse_study

DEMO = Path(__file__).parents[3] / "mobility" / "demo"
ALL_MODELS = (Study, Area, Indicator, Plan, PlanIndicator, Tally, VisitorTally, VaultStudy)
# A true commit: what is half-created would stay.
pytestmark = [
    pytest.mark.database,
    pytest.mark.django_db(databases=["default", "vault"], transaction=True),
]


@pytest.fixture(autouse=True)
def _keys(data_dir: Path) -> Iterator[None]:
    yield


@pytest.fixture
def definition() -> StudyDefinition:
    text = (DEMO / "study.toml").read_bytes()
    return parse_study(text, filename="study.toml", read=lambda name: (DEMO / name).read_bytes())


def everything() -> dict[str, int]:
    found = {model.__name__: model.objects.count() for model in ALL_MODELS}  # type: ignore[attr-defined]
    folder = keystore().folder
    return {**found, "keys": len(list(folder.glob("*.key")))}


NOTHING = dict.fromkeys([*(model.__name__ for model in ALL_MODELS), "keys"], 0)
DEMO_STUDY = {"Study": 1, "Area": 1, "Indicator": 7, "Plan": 1, "PlanIndicator": 7, "Tally": 7,
              "VisitorTally": 1, "VaultStudy": 1, "keys": 1}  # fmt: skip


def test_both_zones_hold_the_study(definition: StudyDefinition) -> None:
    assert create_study(definition, by="adam") == {"study": "fimu-2017", "indicators": 7, "windows": 28}
    assert everything() == DEMO_STUDY
    copy = VaultStudy.objects.get()
    assert StudyDefinition.from_json(copy.definition) == definition
    plan = Plan.objects.get()
    assert copy.plan == plan.spec == definition.plan_spec().to_json()
    assert copy.plan_hash == plan.spec_hash == plan_hash(PlanSpec.from_json(copy.plan))
    assert copy.n_shards == 4
    assert len(keystore().read(copy.key_id)) == 32


def test_rows_say_what_the_file_says(definition: StudyDefinition) -> None:
    definition = replace(definition, market_share=Decimal("0.35"), min_publication=7)
    create_study(definition, by="adam")
    study = Study.objects.get()
    assert (study.name, study.timezone) == ("FIMU festival 2017 (synthetic demo)", "Europe/Paris")
    assert (study.first_day.isoformat(), study.days) == ("2017-05-31", 7)
    assert (study.market_share, study.min_publication) == (Decimal("0.35"), 7)
    assert (study.visitor_min_minutes, str(study.visitor_from), str(study.visitor_to)) == (
        60,
        "06:00:00",
        "23:59:00",
    )
    assert study.created_by == "adam"
    assert [i.slug for i in study.indicators.all()] == [i.slug for i in definition.indicators]
    assert study.indicators.get(slug="gender").categories == ["F", "M", "NR"]
    assert study.area.n_cells == 62
    assert study.area.geojson["type"] == "FeatureCollection"


def test_tallies_start_at_zero_in_the_library_s_shape(definition: StudyDefinition) -> None:
    create_study(definition, by="adam")
    tally = Tally.objects.get(indicator__slug="gender")
    counts = np.frombuffer(tally.counts, np.int64)
    assert counts.size == 3 * 8 * 8
    assert not counts.any()
    assert len(tally.n_reports) == len(VisitorTally.objects.get().counts) == 8 * 8 * 8


def test_a_taken_slug_is_a_clear_error_and_changes_nothing(definition: StudyDefinition) -> None:
    create_study(definition, by="adam")
    key = keystore().read(VaultStudy.objects.get().key_id)
    with pytest.raises(StudyExistsError, match=r'study\.slug must be new, got "fimu-2017"'):
        create_study(replace(definition, name="Another"), by="eve")
    assert everything() == DEMO_STUDY
    assert Study.objects.get().name != "Another"
    assert keystore().read(VaultStudy.objects.get().key_id) == key


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (Keystore, "create"),
        (studies, "_create_copy"),
        (studies, "create_study_rows"),
        (Tally.objects, "create"),
    ],
    ids=["keystore", "vault", "main", "last-row-of-main"],
)
def test_nothing_stays_when_a_step_fails(
    definition: StudyDefinition, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(owner, name, fail)
        with pytest.raises(OSError, match="no space left"):
            create_study(definition, by="adam")
    assert everything() == NOTHING
    create_study(definition, by="adam")
    assert everything() == DEMO_STUDY


def test_nothing_stays_when_the_main_commit_fails(
    definition: StudyDefinition, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worst place: the vault has committed already."""
    from django.db import connection

    def fail() -> None:
        connection.rollback()
        raise DatabaseError("disk I/O error")

    with monkeypatch.context() as broken:
        broken.setattr(connection, "commit", fail)
        with pytest.raises(DatabaseError, match="disk I/O error"):
            create_study(definition, by="adam")
    assert everything() == NOTHING


def crash_before_the_main_commit(definition: StudyDefinition) -> None:
    """Leave what a power cut leaves: the vault's copy and the key, no main rows."""
    keystore().create(f"study-{definition.slug}")
    studies._create_copy(definition, version=1, key_id=f"study-{definition.slug}")


def test_the_same_file_completes_what_a_crash_left(definition: StudyDefinition) -> None:
    crash_before_the_main_commit(definition)
    create_study(definition, by="adam")
    assert everything() == DEMO_STUDY


def test_a_corrected_file_replaces_what_a_crash_left(definition: StudyDefinition) -> None:
    crash_before_the_main_commit(definition)
    create_study(replace(definition, name="Corrected", expected_subscribers=800_000), by="adam")
    copy = VaultStudy.objects.get()
    assert (copy.definition["name"], copy.n_shards) == ("Corrected", 8)


def test_a_failure_while_replacing_what_a_crash_left_can_be_repeated(
    definition: StudyDefinition, monkeypatch: pytest.MonkeyPatch
) -> None:
    crash_before_the_main_commit(definition)
    left = VaultStudy.objects.get()
    with monkeypatch.context() as broken:
        broken.setattr(VaultStudy.objects, "create", lambda **_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            create_study(definition, by="adam")
    assert VaultStudy.objects.get() == left  # the vault's transaction was rolled back whole
    create_study(definition, by="adam")
    assert everything() == DEMO_STUDY


def test_a_key_alone_is_no_obstacle(definition: StudyDefinition) -> None:
    left = keystore().create(f"study-{definition.slug}")
    create_study(definition, by="adam")
    assert keystore().read(VaultStudy.objects.get().key_id) != left


def test_a_second_study_of_a_name_gets_a_key_of_another_name(definition: StudyDefinition) -> None:
    """The demo is removed and made again, and the tombstone of its first key stays."""
    create_study(definition, by="adam")
    first = VaultStudy.objects.get().key_id
    VaultStudy.objects.all().delete()
    keystore().destroy(first)
    delete_study_rows(Study.objects.get())
    create_study(definition, by="adam")
    assert VaultStudy.objects.get().key_id != first
    assert keystore().destroyed() == [first]


class TestVaultWithData:
    """The main database was lost or restored from an older backup; the vault was not."""

    @pytest.fixture(autouse=True)
    def _vault(self, definition: StudyDefinition) -> None:
        crash_before_the_main_commit(definition)
        Batch.objects.create(study=VaultStudy.objects.get(), state=Batch.State.DONE)

    def test_the_same_file_keeps_copy_and_key(self, definition: StudyDefinition) -> None:
        before, key = VaultStudy.objects.get().pk, keystore().read(VaultStudy.objects.get().key_id)
        create_study(definition, by="adam")
        assert VaultStudy.objects.get().pk == before
        assert keystore().read(VaultStudy.objects.get().key_id) == key
        assert everything() == DEMO_STUDY

    def test_another_definition_is_refused(self, definition: StudyDefinition) -> None:
        with pytest.raises(StudyVaultError, match="must be the one that the vault holds data of"):
            create_study(replace(definition, name="Another"), by="adam")
        assert Study.objects.count() == 0
        assert VaultStudy.objects.count() == 1

    def test_a_lost_key_is_reported(self, definition: StudyDefinition) -> None:
        keystore().destroy(VaultStudy.objects.get().key_id)
        with pytest.raises(KeyMissingError):
            create_study(definition, by="adam")
        assert Study.objects.count() == 0


@pytest.mark.parametrize(
    ("expected", "shards"),
    [(None, 16), (1, 4), (400_000, 4), (400_001, 8), (10_000_000, 128), (100_000_000, 1024), (10**10, 1024)],
)
def test_the_number_of_shards_follows_the_expected_subscribers(expected: int | None, shards: int) -> None:
    assert shard_count(expected) == shards


class TestCommand:
    def test_it_prints_one_json_value(self) -> None:
        out = io.StringIO()
        call_command("create_study", str(DEMO / "study.toml"), stdout=out)
        assert json.loads(out.getvalue()) == {"study": "fimu-2017", "indicators": 7, "windows": 28}

    def test_it_lists_the_problems(self, tmp_path: Path) -> None:
        file = tmp_path / "bad.toml"
        file.write_text((DEMO / "study.toml").read_text().replace("days = 7", "days = 70"))
        with pytest.raises(CommandError) as caught:
            call_command("create_study", str(file))
        beside = "must name a file that is given together with the study file"
        assert str(caught.value).split("\n") == [
            "bad.toml: study.days: must be a whole number from 1 to 62, got 70",
            f'bad.toml: area.cells: {beside}, got "cells.csv"',
            f'bad.toml: area.zones: {beside}, got "zones.geojson"',
        ]
        assert everything() == NOTHING

    def test_it_names_a_missing_file(self, tmp_path: Path) -> None:
        with pytest.raises(CommandError, match=r"nowhere\.toml: No such file"):
            call_command("create_study", str(tmp_path / "nowhere.toml"))

    def test_it_says_when_the_study_exists(self) -> None:
        call_command("create_study", str(DEMO / "study.toml"), stdout=io.StringIO())
        with pytest.raises(CommandError, match="there is a study of that name already"):
            call_command("create_study", str(DEMO / "study.toml"), stdout=io.StringIO())
