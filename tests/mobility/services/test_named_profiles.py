"""Rows in the dialect of another operator, read through a profile: the same tallies, byte for byte."""

import csv
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

from mobility.models import Batch
from mobility.profiles.parse import read_profile
from mobility.services import outcomes
from mobility.services.profiles import create_profile
from reports.studyfile import StudyDefinition
from tests.mobility.services.conftest import Pipeline

pytestmark = [pytest.mark.database, pytest.mark.django_db(databases=["default", "vault"])]
Make = Callable[..., Pipeline]
REFERENCE = date(2017, 5, 31)
YOUNGEST = {"<18": 0, "18-24": 18, "25-34": 25, "35-44": 35, "45-54": 45, "55-64": 55, ">65": 65}
NAMES = {
    "msisdn": "ServedMSISDN", "timestamp": "recordOpeningTime", "cell_id": "CellIdentifier", "gender": "Sexe",
    "age": "Né(e) le", "region": "Code", "visitor_category": "Catégorie", "geolife": "geo",
    "sleeping_area": "nuit",
}  # fmt: skip


def regions(definition: StudyDefinition) -> dict[str, str]:
    """A code of three characters for each region."""
    (region,) = (each for each in definition.indicators if each.slug == "region")
    return {name: f"R{place:02d}" for place, name in enumerate(region.categories)}


def profile_of(definition: StudyDefinition) -> dict[str, Any]:
    bands = {
        name: [age, after - 1]
        for (name, age), after in zip(YOUNGEST.items(), [*YOUNGEST.values()][1:], strict=False)
    }
    birth = {"reference": REFERENCE, "pattern": "%d/%m/%Y", "bands": {**bands, ">65": [65]}}
    rules: dict[str, dict[str, Any]] = {
        "gender": {"values": {"H": "M", "inconnu": "NR"}, "ignore_case": True},
        "age": {"birth_date": birth, "values": {"sans": "NR"}},
        "region": {"prefix": 3, "values": {code: name for name, code in regions(definition).items()}},
        "visitor_category": {}, "geolife": {}, "sleeping_area": {},
    }  # fmt: skip
    return {
        "profile": {
            "name": "operator-x", "kind": "events", "delimiter": "semicolon",
            "timestamp_format": "%d/%m/%Y %H:%M:%S",
        },
        "columns": {"subscriber": NAMES["msisdn"], "timestamp": NAMES["timestamp"], "cell": NAMES["cell_id"]},
        "indicator": {slug: {"column": NAMES[slug], **rule} for slug, rule in rules.items()},
    }  # fmt: skip


def in_dialect(row: dict[str, str], place: int, codes: dict[str, str]) -> dict[str, str]:
    """The row as the other operator writes it; what is wrong stays wrong."""
    try:
        time = datetime.fromisoformat(row["timestamp"]).strftime("%d/%m/%Y %H:%M:%S")
    except ValueError:
        time = row["timestamp"]
    age = row["age"]
    if age in YOUNGEST:  # their birthday is the reference date itself
        age = REFERENCE.replace(year=REFERENCE.year - YOUNGEST[age]).strftime("%d/%m/%Y")
    sex = {"M": "hH"[place % 2], "F": "fF"[place % 2], "NR": "Inconnu"}.get(row["gender"], row["gender"])
    region = f"{codes[row['region']]}-{place}" if row["region"] in codes else row["region"]
    new = {"timestamp": time, "age": {"NR": "sans"}.get(age, age), "gender": sex, "region": region}
    return {NAMES[name]: text for name, text in (row | new).items()}


def translated(path: Path, folder: Path, definition: StudyDefinition) -> Path:
    with path.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if None not in row and None not in row.values()]
    codes = regions(definition)
    made = folder / f"x-{path.name}"
    with made.open("w", newline="", encoding="latin-1") as file:
        writer = csv.DictWriter(file, ["IMEI", *reversed(NAMES.values())], delimiter=";")
        writer.writeheader()
        for place, row in enumerate(rows):
            writer.writerow({"IMEI": place, **in_dialect(row, place, codes)})
    return made


def plain(path: Path, folder: Path) -> Path:
    """Without the rows of another shape, which no dialect keeps."""
    lines = path.read_text(encoding="utf-8").splitlines()
    made = folder / path.name
    made.write_text(
        "".join(f"{line}\n" for line in lines if line.count(",") == lines[0].count(",")), encoding="utf-8"
    )
    return made


def counts(batch: Batch) -> dict[str, Any]:
    assert batch.state == Batch.State.DONE, batch.failure
    summary = outcomes.summary(batch)
    names = ("rows_read", "rows_accepted", "rows_ignored", "rows_rejected", "subscriber_days", "reports")
    return {name: summary[name] for name in names}


def test_another_dialect_gives_the_same_tallies(
    make_pipeline: Make, definition: StudyDefinition, extract: list[Path], tmp_path: Path
) -> None:
    ours, theirs = make_pipeline(slug="ours"), make_pipeline(slug="theirs")
    typed = read_profile(profile_of(definition), filename="", definition=definition)
    create_profile(typed, study=theirs.study, by="olga")
    (wanted,) = ours.upload(plain(extract[1], tmp_path))
    (found,) = theirs.upload(translated(extract[1], tmp_path, definition), profile="operator-x")
    assert counts(found) == counts(wanted)
    assert found.source["encoding"] == "latin-1"
    assert counts(wanted)["rows_accepted"] > 1000
    assert counts(wanted)["rows_rejected"]
    assert any(map(any, ours.tallies().values()))
    assert theirs.tallies() == ours.tallies()


def test_a_check_with_a_profile_counts_and_keeps_nothing(
    make_pipeline: Make, definition: StudyDefinition, extract: list[Path], tmp_path: Path
) -> None:
    pipeline = make_pipeline()
    typed = read_profile(profile_of(definition), filename="", definition=definition)
    create_profile(typed, study=pipeline.study, by="olga")
    before = pipeline.tallies()
    file = translated(extract[0], tmp_path, definition)
    (checked,) = pipeline.upload(file, profile="operator-x", validate_only=True)
    assert counts(checked)["rows_accepted"] > 1000
    assert pipeline.tallies() == before
    (real,) = pipeline.upload(file, profile="operator-x")
    assert counts(real)["rows_accepted"] == counts(checked)["rows_accepted"]
    assert pipeline.tallies() != before


def test_a_file_of_the_wrong_profile_is_refused(
    make_pipeline: Make, definition: StudyDefinition, extract: list[Path], tmp_path: Path
) -> None:
    pipeline = make_pipeline()
    typed = read_profile(profile_of(definition), filename="", definition=definition)
    create_profile(typed, study=pipeline.study, by="olga")
    (batch,) = pipeline.upload(extract[0], profile="operator-x")
    assert batch.state == Batch.State.FAILED
    assert "no column 'ServedMSISDN'" in batch.failure
