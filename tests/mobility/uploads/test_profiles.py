"""Profiles are made once, removed while no batch needs them, and give our own tallies dialect."""

import dataclasses
from datetime import UTC, datetime
from itertools import product

import pytest
from django.core.management import CommandError, call_command

from mobility.base.errors import StudyClosedError
from mobility.extracts.profiles.errors import ProfileExistsError, ProfileUsedError
from mobility.extracts.profiles.parse import parse_profile
from mobility.extracts.profiles.typed import TypedProfile
from mobility.models import Batch, ExtractProfile, VaultStudy
from mobility.uploads.profiles import create_profile, delete_profile
from tests.mobility.commands import printed
from tests.mobility.extracts.profiles import made_profiles
from tests.mobility.extracts.profiles.made_profiles import PROFILE, edited
from tests.mobility.pipeline import fresh

pytestmark = pytest.mark.django_db(databases=["default", "vault"])


@pytest.fixture
def study() -> VaultStudy:
    return made_profiles.stored()


@pytest.fixture
def typed() -> TypedProfile:
    return parse_profile(PROFILE.encode(), filename="p.toml", definition=made_profiles.definition())


def test_a_profile_is_kept_as_typed_once(study, typed):
    row = fresh(create_profile(typed, study=study, by="olga"))
    assert (row.name, row.created_by, TypedProfile.from_json(row.definition)) == ("operator-x", "olga", typed)
    told = "already has a profile 'operator-x', and profiles never change: choose another name"
    with pytest.raises(ProfileExistsError, match=rf"^study 'fair' {told}$"):
        create_profile(typed, study=study, by="olga")
    assert ExtractProfile.objects.count() == 1


def test_a_profile_is_removed_unless_a_batch_was_read_with_it_and_a_closed_study_gets_none(study, typed):
    delete_profile(create_profile(typed, study=study, by="olga"))
    assert not ExtractProfile.objects.exists()
    row = create_profile(typed, study=study, by="olga")
    Batch.objects.create(study=study, profile="operator-x")
    with pytest.raises(ProfileUsedError, match="'operator-x' cannot be removed, because 1 batches were read"):
        delete_profile(row)
    study.closed_at = datetime(2017, 7, 1, tzinfo=UTC)
    with pytest.raises(StudyClosedError, match="the study was closed on 2017-07-01"):
        create_profile(typed, study=study, by="olga")
    assert ExtractProfile.objects.get() == row


def test_the_command_makes_it_from_a_file_and_says_what_is_wrong(study, tmp_path):
    file = tmp_path / "x.toml"
    file.write_text(PROFILE)
    assert printed("create_profile", "fair", str(file)) == {
        "study": "fair", "profile": "operator-x", "kind": "events", "columns": {
            "subscriber": "ServedMSISDN", "timestamp": "recordOpeningTime", "cell": "CellIdentifier",
            "indicator.gender": "Sexe", "indicator.age": "Année de naissance",
            "indicator.region": "Code postal",
        },
    }  # fmt: skip
    assert ExtractProfile.objects.get().created_by == "command line"
    file.write_text(edited('H = "M"', 'H = "Man"'))
    for words, expected in {
        ("fair", str(file)): r'x\.toml: indicator\.gender\.values\."H": unknown category',
        ("fare", str(file)): "no study 'fare'; studies: fair",
        ("fair", str(tmp_path / "none.toml")): "No such file or directory",
    }.items():
        with pytest.raises(CommandError, match=expected):
            call_command("create_profile", *words)
    assert ExtractProfile.objects.count() == 1


# Values of the study and of the operator.
THEIRS = (
    {"F": "f", "M": "H", "": "Inconnu"},
    {"<18": "2010", "18-24": "2006", "25-64": "1960", "65+": "1950", "NR": "sans"},
    {"Bourgogne-Franche-Comté": "25000", "Île-de-France": "75011", "Elsewhere": "13001"},
)


def write_both(folder):
    ours = ["msisdn,time,cell_id,gender,age,region"]
    theirs = ["recordOpeningTime;IMEI;CellIdentifier;ServedMSISDN;Code postal;Année de naissance;Sexe"]
    for who, at in product(range(300), (datetime(2024, 5, 1, 9, 30), datetime(2024, 5, 1, 12, 30))):
        values = [list(known)[who % len(known)] for known in THEIRS]
        gender, born, code = (known[value] for known, value in zip(THEIRS, values, strict=True))
        ours.append(",".join([f"33600{who:06d}", at.isoformat(), "208-01-1-11", *values]))
        theirs.append(f"{at:%d/%m/%Y %H:%M:%S};{who};208-01-1-11;33600{who:06d};{code};{born};{gender}")
    wrong = "33600999999,yesterday,nowhere,,,", "yesterday;1;nowhere;33600999999;;;"
    paths = folder / "ours.csv", folder / "theirs.csv"
    for path, lines, last, encoding in zip(paths, (ours, theirs), wrong, ("utf-8", "latin-1"), strict=True):
        path.write_text("\n".join([*lines, last, ""]), encoding=encoding)
    return paths


def test_another_dialect_gives_the_same_tallies(make_pipeline, tmp_path):
    made = made_profiles.definition()
    fields = {each.name: getattr(made, each.name) for each in dataclasses.fields(made)} | {
        "min_publication": 10
    }
    ours, theirs = (make_pipeline(**fields | {"slug": slug}) for slug in ("ours", "theirs"))
    text = edited('otherwise = "NR"', 'values = { sans = "NR" }').encode()
    create_profile(parse_profile(text, filename="p.toml", definition=made), study=theirs.study, by="olga")
    own_file, other_file = write_both(tmp_path)
    (wanted,) = ours.upload(own_file)
    nothing = theirs.tallies()
    (checked,) = theirs.upload(other_file, profile="operator-x", validate_only=True)
    (refused,) = theirs.upload(own_file, profile="operator-x")
    assert (refused.state, theirs.tallies()) == (Batch.State.FAILED, nothing)
    assert "requires the column “ServedMSISDN”" in refused.failure
    (found,) = theirs.upload(other_file, profile="operator-x")
    assert found.source["encoding"] == "latin-1"
    for name in ("rows_read", "rows_accepted", "rows_ignored", "rows_rejected", "subscriber_days", "reports"):
        assert getattr(checked, name) == getattr(found, name) == getattr(wanted, name), name
    assert (wanted.rows_accepted, wanted.rows_rejected) == (600, {"bad_timestamp": 1})
    assert any(map(any, ours.tallies().values()))
    assert theirs.tallies() == ours.tallies()
