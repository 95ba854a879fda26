"""The section [location] of study files: level, radius, and the grid over the area."""

import math
from decimal import Decimal
from fractions import Fraction

import pytest

from ldp import PlanSpec
from reports.studyfile import StudyDefinition, StudyFileError, parse_study

STUDY = """
[study]
slug = "fair-2024"
name = "Fair 2024"
timezone = "Europe/Paris"
first_day = 2024-05-30
days = 3
[study.visitor]
min_minutes = 60
from = "06:00"
to = "23:59"
[extract]
subscriber = "msisdn"
timestamp = "time"
cell = "cell"
[plan]
mechanism = "smp-grr"
unit = "profile"
epsilon = 1.0
[[indicator]]
slug = "gender"
kind = "static"
column = "gender"
categories = ["F", "M"]
[location]
level = "ln 4"
radius_m = 400
grid_m = 200
"""
AREA = '[area]\ncells = "cells.csv"\n'
# 0.1 degrees north are 11.12 km, and 0.1 degrees east 7.50 km at this latitude.
CELLS = "cell_id,lon,lat\nA,6.8,47.6\nB,6.9,47.7\nC,6.9,47.6\n"


def parse(text: str = STUDY + AREA) -> StudyDefinition:
    return parse_study(text.encode(), filename="study.toml", read=lambda _: CELLS.encode())


def problems(text: str) -> list[str]:
    with pytest.raises(StudyFileError) as caught:
        parse(text)
    return [str(problem) for problem in caught.value.problems]


def edited(old: str, new: str) -> str:
    assert STUDY.count(old) == 1
    return STUDY.replace(old, new) + AREA


def test_the_plan_has_what_was_asked_and_never_a_higher_level() -> None:
    location = parse().plan_spec().location
    assert location is not None
    assert location.level == Fraction("1.38629436") <= Fraction(math.log(4))
    assert location.radius_m == 400
    assert location.max_values is None
    assert location.certified <= Decimal("1.38629436") / 400


def test_the_grid_covers_the_cells_with_room_for_the_noise() -> None:
    study = parse()
    assert study.location is not None
    grid = study.location.grid
    # 95 of 100 reports lie within 4.7438645 * 400 / ln 4 = 1368.8 m: so far it goes beyond the cells.
    assert grid.step_m == 200
    assert grid.n_x * 200 >= 7_490 + 2 * 1_369
    assert grid.n_x * 200 <= 7_530 + 2 * (1_369 + 200)
    assert grid.n_y * 200 >= 11_110 + 2 * 1_369
    x_m, y_m = grid.centres()
    places = list(study.location.places)
    assert len(set(places)) == 3
    a, b, c = ((x_m[place], y_m[place]) for place in places)
    assert math.dist(a, c) == pytest.approx(7_503, abs=200)
    assert math.dist(b, c) == pytest.approx(11_119, abs=200)
    assert min(x_m[place] - grid.x0_m for place in places) >= 1_369


def test_a_plan_and_a_definition_survive_their_json() -> None:
    study = parse(edited("grid_m = 200", "grid_m = 500\nmargin_m = 0\nmax_values = 2"))
    assert StudyDefinition.from_json(study.to_json()) == study
    plan = study.plan_spec()
    assert PlanSpec.from_json(plan.to_json()) == plan
    assert plan.location is not None
    assert plan.location.values_per_person(3) == 2
    assert plan.tally_sizes == (2, plan.location.grid.n_cells)


def test_without_the_section_nothing_changes() -> None:
    study = parse(STUDY.partition("[location]")[0] + AREA)
    assert study.location is None
    assert "location" not in study.plan_spec().to_json()
    older = study.to_json()
    del older["location"]
    assert StudyDefinition.from_json(older) == study


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('"ln 4"', '"ln 1"', 'location.level: must be a number > 0 and <= 7, or a text as "ln 4"'),
        ('"ln 4"', '"4"', 'location.level: must be a number > 0 and <= 7, or a text as "ln 4"'),
        ('"ln 4"', "0", 'location.level: must be a number > 0 and <= 7, or a text as "ln 4"'),
        ("radius_m = 400", "radius_m = 1.5", "location.radius_m: must be a whole number from 10 to 50000"),
        ("grid_m = 200", "grid_m = 10", "the smallest step that works is"),
        ("grid_m = 200", "grid_m = 200\nmax_values = 4", "max_values: must be a whole number from 1 to 3"),
        ("grid_m = 200", "grid = 200", "location.grid_m: is missing"),
        ("radius_m = 400", "radius_m = 10", "location.radius_m: step_m must be smaller"),
        ("grid_m = 200", 'grid_m = 200\npeople = "cells"', "location.people: must be one of antennas, land"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(old: str, new: str, expected: str) -> None:
    assert expected in "\n".join(problems(edited(old, new)))


def test_maps_put_people_at_antennas_unless_the_file_says_what_is_land() -> None:
    def people(old: str = "grid_m = 200", new: str = "grid_m = 200") -> str:
        location = parse(edited(old, new)).location
        assert location is not None
        return location.people

    assert people() == "antennas"
    assert people("grid_m = 200", 'grid_m = 200\npeople = "land"') == "land"
    location = parse(edited("grid_m = 200", "grid_m = 200")).to_json()
    del location["location"]["people"]
    older = StudyDefinition.from_json(location).location
    assert older is not None
    assert older.people == "land"


def test_places_need_an_area() -> None:
    assert "location.grid_m: needs [area] with the cells" in "\n".join(problems(STUDY))


def test_the_grid_is_bounded_by_the_room_for_its_tally() -> None:
    text = edited("days = 3", "days = 62").replace("grid_m = 200", "grid_m = 100")
    (problem,) = problems(text)
    assert "more than 2015: the smallest step that works is" in problem
