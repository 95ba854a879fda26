"""SDMX: every code of a row is in a codelist of the structure message, and zones are areas."""

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from django.test import Client
from django.utils.translation import override

from reports.exports.formats.choosing import FORMATS, PRESENCE
from reports.exports.formats.sdmx_codes import code_ids
from reports.exports.presence.selection import select_presence
from reports.exports.selection import Scope, select_days, select_study
from reports.models import Study
from tests.reports import map_factory, slot_factory
from tests.reports import report_factory as factory

pytestmark = pytest.mark.django_db
GENDER = replace(factory.GENDER, categories_fr=("femmes", "hommes", "inconnu"))
HOME_OF = factory.joint("home_of", GENDER, map_factory.HOME)
Row = dict[str, str]


def message(study: Study) -> Any:
    return json.loads(FORMATS[Scope.STUDY]["sdmx.json"].write(select_study(study)))


def rows_of(content: bytes) -> list[Row]:
    return list(csv.DictReader(io.StringIO(content.decode())))


def study_rows(study: Study) -> list[Row]:
    return rows_of(FORMATS[Scope.STUDY]["sdmx.csv"].write(select_study(study)))


def slot_rows(study: Study) -> list[Row]:
    table = select_presence(study, first_day=1, last_day=1, options="", is_drawn=False)
    return rows_of(FORMATS[PRESENCE]["sdmx.csv"].write(table))


def codelists(data: Any) -> dict[str, dict[str, dict[str, str]]]:
    """Names of codes in both languages, by the address of their list."""
    start = "urn:sdmx:org.sdmx.infomodel.codelist.Codelist"
    return {
        f"{start}={each['agencyID']}:{each['id']}({each['version']})": {
            code["id"]: code["names"] for code in each["codes"]
        }
        for each in data["codelists"]
    }


def named(data: Any, rows: list[Row]) -> Iterator[dict[str, str]]:
    """Rows with the English names of their codes; KeyError for a code, list or structure not there."""
    lists = codelists(data)
    structures = {
        f"{each['agencyID']}:{each['id']}({each['version']})": each["dataStructureComponents"]
        for each in data["dataStructures"]
    }
    for row in rows:
        parts = structures[row["STRUCTURE_ID"]]
        columns = [
            *parts["dimensionList"]["dimensions"], parts["dimensionList"]["timeDimension"],
            *parts["measureList"]["measures"], *parts["attributeList"]["attributes"],
        ]  # fmt: skip
        assert {column["id"] for column in columns} == set(row) - {"STRUCTURE", "STRUCTURE_ID", "ACTION"}
        codes = {column["id"]: column["localRepresentation"].get("enumeration") for column in columns}
        yield {name: lists[codes[name]][row[name]]["en"] if codes[name] else row[name] for name in codes}


def test_rows_of_zones_have_their_area_and_only_codes_of_the_lists() -> None:
    study = map_factory.create(GENDER, map_factory.HOME, HOME_OF, small_category=300)
    data, rows = message(study)["data"], study_rows(study)
    places = {(row["INDICATOR"], row["REF_AREA"], row["CATEGORY"]) for row in named(data, rows)}
    of_home = [
        ("North west", "Total"),
        ("North <east>", "Total"),
        ("South west", "Total"),
        ("The fair", "NR"),
    ]
    assert {place[1:] for place in places if place[0] == "Home"} == set(of_home)
    assert {place[1:] for place in places if place[0] == "Gender"} == {
        ("The fair", name) for name in ("F", "M", "NR")
    }
    joint = {place[1:] for place in places if place[0] == "Home of"}
    assert {("North west", "F"), ("South west", "no value"), ("The fair", "F / NR")} < joint
    assert len(joint) == 4 * 5, "no two categories have one key"
    assert {("Q", "A"), ("E", "F")} <= {(row["OBS_STATUS"], row["CONF_STATUS"]) for row in rows}
    assert {row["STRUCTURE_ID"] for row in rows if row["INDICATOR"] == "home"} == {
        "MOBILITY_REPORTS:DS_fair-2024_home(1.0.0)"
    }
    lists = {address.split(":")[-1]: codes for address, codes in codelists(data).items()}
    assert lists["CL_AREA_fair-2024(1.0.0)"]["North_east_"]["en"] == "North <east>"
    assert lists["CL_CATEGORY_fair-2024_home_of(1.0.0)"]["F"] == {"en": "F", "fr": "femmes"}
    assert lists["CL_OBS_STATUS(1.0.0)"]["U"]["fr"] == "Faible fiabilité"


def test_slots_have_their_zone_or_larger_zone_as_area() -> None:
    study = slot_factory.published(slots=40)
    rows = slot_rows(study)
    found = {(row["REF_AREA"], row["CATEGORY"]) for row in named(message(study)["data"], rows)}
    assert found == {(name, "Total") for name in (*map_factory.ZONES, "halves/West", "halves/East")}
    assert {row["OBS_STATUS"] for row in rows} == {"E", "O"}


def test_an_export_of_one_indicator_has_the_same_codes() -> None:
    study = map_factory.create(map_factory.HOME)
    rows = rows_of(FORMATS[Scope.DAYS]["sdmx.csv"].write(select_days(study.indicators.get())))
    assert {row["REF_AREA"] for row in rows} == {"North_west", "North_east_", "South_west", "fair-2024"}


def test_codes_have_only_letters_that_sdmx_allows_and_differ() -> None:
    names = ["18-24", "<18", ">18", "-5", "=1+1", "Île d'Yeu", "北京", "(T", "$a"]
    found = ["18-24", "_18", "_18_2", "_-5", "_1_1", "Ile_d_Yeu", "_", "_T_2", "_a"]
    assert code_ids(names, taken=["_T"]) == found


def test_same_study_gives_the_same_bytes_in_each_language(fair: Study, reader: Client) -> None:
    answer = reader.get("/studies/fair-2024/export.sdmx.json")
    assert answer["Content-Type"] == "application/vnd.sdmx.structure+json; version=2.0.0"
    with override("fr"):
        assert FORMATS[Scope.STUDY]["sdmx.json"].write(select_study(fair)) == answer.content
