"""Profiles are made once, never changed, and removed while no batch needs them."""

import io
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from mobility.errors import StudyClosedError
from mobility.models import Batch, ExtractProfile, VaultStudy
from mobility.profiles.errors import ProfileExistsError, ProfileUsedError
from mobility.profiles.parse import parse_profile
from mobility.profiles.typed import TypedProfile
from mobility.services.profiles import create_profile, delete_profile
from tests.mobility.profiles.made_profiles import PROFILE, definition, edited

pytestmark = [pytest.mark.database, pytest.mark.django_db(databases=["default", "vault"])]


@pytest.fixture
def study() -> VaultStudy:
    made = definition()
    return VaultStudy.objects.create(
        slug=made.slug, definition=made.to_json(), plan={}, plan_hash="", key_id="k", n_shards=4
    )


@pytest.fixture
def typed() -> TypedProfile:
    return parse_profile(PROFILE.encode(), filename="p.toml", definition=definition())


def test_a_profile_is_kept_as_typed(study: VaultStudy, typed: TypedProfile) -> None:
    row = create_profile(typed, study=study, by="olga")
    row.refresh_from_db()
    assert (row.name, row.created_by, TypedProfile.from_json(row.definition)) == ("operator-x", "olga", typed)


def test_the_same_name_again_is_refused(study: VaultStudy, typed: TypedProfile) -> None:
    create_profile(typed, study=study, by="olga")
    with pytest.raises(ProfileExistsError) as caught:
        create_profile(typed, study=study, by="olga")
    assert str(caught.value) == (
        "study 'fair' has a profile 'operator-x' already, and profiles are never changed: choose another name"
    )
    assert ExtractProfile.objects.count() == 1


def test_a_closed_study_gets_none(study: VaultStudy, typed: TypedProfile) -> None:
    study.closed_at = datetime(2017, 7, 1, tzinfo=UTC)
    with pytest.raises(StudyClosedError, match="the study was closed on 2017-07-01"):
        create_profile(typed, study=study, by="olga")
    assert not ExtractProfile.objects.exists()


def test_an_unused_profile_can_be_removed(study: VaultStudy, typed: TypedProfile) -> None:
    delete_profile(create_profile(typed, study=study, by="olga"))
    assert not ExtractProfile.objects.exists()


def test_a_profile_that_a_batch_was_read_with_stays(study: VaultStudy, typed: TypedProfile) -> None:
    row = create_profile(typed, study=study, by="olga")
    Batch.objects.create(study=study, profile="operator-x")
    with pytest.raises(ProfileUsedError, match=r"profile 'operator-x' stays: 1 batches were read with it"):
        delete_profile(row)
    assert ExtractProfile.objects.exists()


def test_the_command_makes_it_from_a_file(study: VaultStudy, tmp_path: Path) -> None:
    file, out = tmp_path / "x.toml", io.StringIO()
    file.write_text(PROFILE)
    call_command("create_profile", "fair", str(file), stdout=out)
    assert json.loads(out.getvalue()) == {
        "study": "fair",
        "profile": "operator-x",
        "kind": "events",
        "columns": {
            "subscriber": "ServedMSISDN", "timestamp": "recordOpeningTime", "cell": "CellIdentifier",
            "indicator.gender": "Sexe", "indicator.age": "Année de naissance",
            "indicator.region": "Code postal",
        },
    }  # fmt: skip
    assert ExtractProfile.objects.get().created_by == "command line"


def test_the_command_says_what_is_wrong(study: VaultStudy, tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text(edited('H = "M"', 'H = "Man"'))
    for words, expected in {
        ("fair", str(file)): r'x\.toml: indicator\.gender\.values\."H": unknown category',
        ("fare", str(file)): "no study 'fare'; studies: fair",
        ("fair", str(tmp_path / "none.toml")): "No such file or directory",
    }.items():
        with pytest.raises(CommandError, match=expected):
            call_command("create_profile", *words)
    assert not ExtractProfile.objects.exists()
