"""Definitions as tables of their study file, and back."""

import json
from decimal import Decimal
from pathlib import Path

import pytest

from reports.studyfile import StudyDefinition, StudyFileError, parse_study
from reports.studyfile.redraft import Tables, read_tables, tables_of

DEMO = Path(__file__).parents[2] / "mobility" / "demo"
EVERYTHING = """
[study]
slug = "fair-2024"
name = "Fair 2024"
timezone = "Europe/Paris"
first_day = 2024-03-30
days = 3
expected_subscribers = 5000
market_share = 0.25
min_publication = 20
small_cell = 15
[study.visitor]
min_minutes = 60
from = "06:00"
to = "23:59"
[extract]
subscriber = "msisdn"
timestamp = "time"
cell = "cell"
delimiter = "pipe"
timestamp_format = "%d/%m/%Y %H:%M"
attributes = "subscribers"
[subscribers]
subscriber = "person"
max_bad_share = 0.5
[plan]
mechanism = "smp-grr"
unit = "profile"
epsilon = 1.0
epsilon_profile = 3
[[indicator]]
slug = "gender"
kind = "static"
column = "sex"
categories = ["F", "M"]
epsilon = 0.5
weight = 2
[[indicator]]
slug = "slept_in"
name = "Slept in"
kind = "daily"
derive = "night_zone"
night_from = "23:00"
max_values = 2
[location]
level = "ln 4"
radius_m = 400
grid_m = 200
max_values = 2
[area]
cells = "cells.csv"
"""
CELLS = "cell_id,lon,lat,zone\nA,6.8,47.6,South\nB,6.9,47.7,Centre\n"


@pytest.fixture
def definition() -> StudyDefinition:
    return parse_study(EVERYTHING.encode(), filename="s.toml", read=lambda _: CELLS.encode())


def problems(tables: Tables, *, like: StudyDefinition) -> list[str]:
    with pytest.raises(StudyFileError) as caught:
        read_tables(tables, like=like)
    return [f"{each.key}: {each.rule}" for each in caught.value.problems]


def test_everything_that_a_file_says_comes_back(definition: StudyDefinition) -> None:
    assert read_tables(tables_of(definition), like=definition) == definition


def test_the_demo_comes_back() -> None:
    text = (DEMO / "study.toml").read_bytes()
    demo = parse_study(text, filename="study.toml", read=lambda name: (DEMO / name).read_bytes())
    assert read_tables(tables_of(demo), like=demo) == demo
    assert StudyDefinition.from_json(json.loads(json.dumps(demo.to_json()))) == demo


def test_a_change_is_read_by_the_rules_of_the_file(definition: StudyDefinition) -> None:
    tables = tables_of(definition)
    tables["plan"]["epsilon"] = Decimal("0.5")
    assert read_tables(tables, like=definition).plan.epsilon == Decimal("0.5")
    tables["plan"]["epsilon"] = Decimal(21)
    tables["indicator"][0]["categories"] = ["F", "F"]
    assert problems(tables, like=definition) == [
        "plan.epsilon: must be a number > 0 and <= 20 (above 20 an answer is as good as the raw value)",
        "indicator[gender].categories[2]: must be unique in the indicator",
    ]


def test_a_plan_that_breaks_its_own_cap_is_refused(definition: StudyDefinition) -> None:
    tables = tables_of(definition)
    tables["plan"]["epsilon_profile"] = Decimal("1.5")
    assert problems(tables, like=definition)[0].startswith("plan.epsilon_profile: epsilon_profile must be >=")


def test_places_do_not_outlive_the_days_that_they_were_laid_for(definition: StudyDefinition) -> None:
    tables = tables_of(definition)
    tables["study"]["days"] = 1
    tables["indicator"][1]["max_values"] = 1
    assert "study.days: must be at least 2: the days on which a subscriber reports a place" in problems(
        tables, like=definition
    )
    tables["study"]["days"] = 62
    assert any("must leave room for places" in each for each in problems(tables, like=definition))
