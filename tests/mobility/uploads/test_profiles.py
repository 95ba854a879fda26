"""Profiles are made once, removed while no batch needs them, and give our own tallies dialect."""

from datetime import UTC, date, datetime
from itertools import cycle
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from mobility.base.errors import StudyClosedError
from mobility.batches import outcomes
from mobility.extracts.profiles.errors import ProfileExistsError, ProfileUsedError
from mobility.extracts.profiles.parse import parse_profile, read_profile
from mobility.extracts.profiles.typed import TypedProfile
from mobility.models import Batch, ExtractProfile, VaultStudy
from mobility.uploads.profiles import create_profile, delete_profile
from reports.studies.studyfile import StudyDefinition
from tests.mobility.commands import printed
from tests.mobility.extracts.profiles import made_profiles
from tests.mobility.extracts.profiles.made_profiles import PROFILE, edited
from tests.mobility.pipeline import fresh

pytestmark = pytest.mark.django_db(databases=["default", "vault"])
REFERENCE = date(2017, 5, 31)
YOUNGEST = {"<18": 0, "18-24": 18, "25-34": 25, "35-44": 35, "45-54": 45, "55-64": 55, ">65": 65}
SEXES = {"M": "h", "F": "F", "NR": "Inconnu"}


@pytest.fixture
def study() -> VaultStudy:
    made = made_profiles.definition()
    given = {"plan": {}, "plan_hash": "", "key_id": "k", "n_shards": 4}
    return VaultStudy.objects.create(slug=made.slug, definition=made.to_json(), **given)


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
    with pytest.raises(
        ProfileUsedError, match=r"profile 'operator-x' cannot be removed, because 1 batches were read with it"
    ):
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


def regions(definition: StudyDefinition) -> dict[str, str]:
    (region,) = (each for each in definition.indicators if each.slug == "region")
    return {name: f"R{place:02d}" for place, name in enumerate(region.categories)}


def profile_of(definition: StudyDefinition) -> dict[str, Any]:
    ends = [*YOUNGEST.values()][1:]
    bands = {name: [age, after - 1] for (name, age), after in zip(YOUNGEST.items(), ends, strict=False)}
    birth = {"reference": REFERENCE, "pattern": "%d/%m/%Y", "bands": {**bands, ">65": [65]}}
    codes = {code: name for name, code in regions(definition).items()}
    written = {"delimiter": "semicolon", "timestamp_format": "%d/%m/%Y %H:%M:%S"}
    return {
        "profile": {"name": "operator-x", "kind": "events"} | written,
        "columns": {"subscriber": "ServedMSISDN", "timestamp": "recordOpeningTime", "cell": "CellIdentifier"},
        "indicator": {
            "gender": {"column": "Sexe", "values": {"H": "M", "inconnu": "NR"}, "ignore_case": True},
            "age": {"column": "Né(e) le", "birth_date": birth, "values": {"sans": "NR"}},
            "region": {"column": "Code", "prefix": 3, "values": codes},
            "visitor_category": {"column": "Catégorie"},
            "geolife": {"column": "geo"}, "sleeping_area": {"column": "nuit"},
        },
    }  # fmt: skip


def write_both(definition: StudyDefinition, folder):
    static = {each.slug: cycle(each.categories) for each in definition.static_indicators}
    cell, codes = definition.area.cells[0].cell_id, regions(definition)
    ours = ["msisdn,timestamp,cell_id," + ",".join(static)]
    theirs = ["IMEI;recordOpeningTime;CellIdentifier;ServedMSISDN;nuit;geo;Catégorie;Code;Né(e) le;Sexe"]
    for who in range(300):
        for hour in (9, 12):
            at = datetime(2017, 5, 31, hour, 30)
            value = {slug: next(categories) for slug, categories in static.items()}
            ours.append(f"33600{who:06d},{at.isoformat()},{cell}," + ",".join(value.values()))
            birthday = "sans"
            if value["age"] != "NR":  # the reference date itself
                birthday = REFERENCE.replace(year=2017 - YOUNGEST[value["age"]]).strftime("%d/%m/%Y")
            rest = (value["sleeping_area"], value["geolife"], value["visitor_category"])
            coded = (f"{codes[value['region']]}-{who}", birthday, SEXES[value["gender"]])
            known = (f"{at:%d/%m/%Y %H:%M:%S}", cell, f"33600{who:06d}")
            theirs.append(";".join([str(who), *known, *rest, *coded]))
    wrong = "33600999999,yesterday,nowhere,,,,,,", "1;yesterday;nowhere;33600999999;;;;;;"
    paths = folder / "ours.csv", folder / "theirs.csv"
    for path, lines, last, encoding in zip(paths, (ours, theirs), wrong, ("utf-8", "latin-1"), strict=True):
        path.write_text("\n".join([*lines, last, ""]), encoding=encoding)
    return paths


def counts(batch: Batch) -> dict[str, Any]:
    assert batch.state == Batch.State.DONE, batch.failure
    summary = outcomes.summary(batch)
    names = ("rows_read", "rows_accepted", "rows_ignored", "rows_rejected", "subscriber_days", "reports")
    return {name: summary[name] for name in names}


def test_another_dialect_gives_the_same_tallies(make_pipeline, definition, tmp_path):
    """A check with the profile counts the same and keeps nothing; a file of another one is refused."""
    ours, theirs = make_pipeline(slug="ours"), make_pipeline(slug="theirs")
    typed = read_profile(profile_of(definition), filename="", definition=definition)
    create_profile(typed, study=theirs.study, by="olga")
    own_file, other_file = write_both(definition, tmp_path)
    (wanted,) = ours.upload(own_file)
    nothing = theirs.tallies()
    (checked,) = theirs.upload(other_file, profile="operator-x", validate_only=True)
    assert counts(checked) == counts(wanted)
    (refused,) = theirs.upload(own_file, profile="operator-x")
    assert (refused.state, theirs.tallies()) == (Batch.State.FAILED, nothing)
    assert "no column 'ServedMSISDN'" in refused.failure
    (found,) = theirs.upload(other_file, profile="operator-x")
    assert (counts(found), found.source["encoding"]) == (counts(wanted), "latin-1")
    assert (counts(wanted)["rows_accepted"], counts(wanted)["rows_rejected"]) == (600, {"bad_timestamp": 1})
    assert any(map(any, ours.tallies().values()))
    assert theirs.tallies() == ours.tallies()
