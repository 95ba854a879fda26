"""Study files with an area: the grid of [location], and the zones and the night of daily indicators."""
# ruff: noqa: E501  (a table reads best with one rule a line)

import math
from decimal import Decimal
from fractions import Fraction

import pytest

from ldp import PlanSpec
from reports.studies.studyfile import StudyDefinition
from reports.studies.studyfile.redraft import read_tables, tables_of
from tests.reports.studies import test_studyfile as studyfile
from tests.reports.studies.test_studyfile import edited, through_json

HEAD = edited('timestamp = "time"', 'timestamp = "time"\ncell = "cell"').partition("[[indicator]]")[0]
STUDY = f"""{HEAD}
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
DAILY = f"""{HEAD}
[[indicator]]
slug = "stayed_in"
kind = "daily"
derive = "main_zone"
[[indicator]]
slug = "slept_in"
kind = "daily"
derive = "night_zone"
"""
AREA = '[area]\ncells = "cells.csv"\n'
# 0.1 degrees north are 11.12 km, and 0.1 degrees east 7.50 km at this latitude.
CELLS = "cell_id,lon,lat\nA,6.8,47.6\nB,6.9,47.7\nC,6.9,47.6\n"
ZONED = "cell_id,lon,lat,zone\nA,6.8,47.6,South\nB,6.9,47.7,\nC,6.9,47.8,Centre\nD,6.9,47.8,South\n"
NIGHT, MAIN, DURATION = (f'derive = "{name}"' for name in ("night_zone", "main_zone", "visit_duration"))


def parse(text: str = STUDY + AREA, *, cells: str = CELLS) -> StudyDefinition:
    return studyfile.parse(text, cells_csv=cells)


def problems(text: str, *, cells: str = CELLS) -> list[str]:
    return studyfile.problems(text, cells_csv=cells)


def placed(*pairs: str) -> StudyDefinition:
    return parse(edited(*pairs, text=STUDY) + AREA)


def zoned(*pairs: str) -> StudyDefinition:
    return parse(edited(*pairs, text=DAILY) + AREA, cells=ZONED)


def test_the_plan_has_what_was_asked_and_never_a_higher_level() -> None:
    location = parse().plan_spec().location
    assert location.level == Fraction("1.38629436") <= Fraction(math.log(4))
    assert (location.radius_m, location.max_values) == (400, None)
    assert location.certified <= Decimal("1.38629436") / 400


def test_the_grid_covers_the_cells_with_room_for_the_noise() -> None:
    study = parse()
    grid = study.location.grid
    # 95 of 100 reports lie within 4.7438645 * 400 / ln 4 = 1368.8 m: so far it goes beyond the cells.
    assert grid.step_m == 200
    assert 7_490 + 2 * 1_369 <= grid.n_x * 200 <= 7_530 + 2 * (1_369 + 200)
    assert grid.n_y * 200 >= 11_110 + 2 * 1_369
    x_m, y_m = grid.centres()
    places = list(study.location.places)
    assert len(set(places)) == 3
    a, b, c = ((x_m[place], y_m[place]) for place in places)
    assert math.dist(a, c) == pytest.approx(7_503, abs=200)
    assert math.dist(b, c) == pytest.approx(11_119, abs=200)
    assert min(x_m[place] - grid.x0_m for place in places) >= 1_369


def test_a_plan_and_a_definition_survive_their_json() -> None:
    study = placed("grid_m = 200", "grid_m = 500\nmargin_m = 0\nmax_values = 2")
    assert through_json(study) == study
    plan = study.plan_spec()
    assert PlanSpec.from_json(plan.to_json()) == plan
    assert (plan.location.values_per_person(3), plan.tally_sizes) == (2, (2, plan.location.grid.n_cells))
    without = parse(STUDY.partition("[location]")[0] + AREA)
    assert (without.location, "location" in without.plan_spec().to_json()) == (None, False)


def test_what_is_wrong_with_places_is_named() -> None:
    for old, new, expected in (
        ('"ln 4"', '"ln 1"', 'location.level: must be a number > 0 and <= 7, or a text such as "ln 4"'),
        ('"ln 4"', '"4"', 'location.level: must be a number > 0 and <= 7, or a text such as "ln 4"'),
        ('"ln 4"', "0", 'location.level: must be a number > 0 and <= 7, or a text such as "ln 4"'),
        ("radius_m = 400", "radius_m = 1.5", "location.radius_m: must be a whole number from 10 to 50000"),
        ("grid_m = 200", "grid_m = 10", "the smallest step that works is"),
        ("grid_m = 200", "grid_m = 200\nmax_values = 4", "max_values: must be a whole number from 1 to 3"),
        ("grid_m = 200", "grid = 200", "location.grid_m: is missing"),
        ("radius_m = 400", "radius_m = 10", "location.radius_m: step_m must be smaller"),
        ("grid_m = 200", 'grid_m = 200\npeople = "cells"', "location.people: must be one of antennas, land"),
    ):
        assert expected in "\n".join(problems(edited(old, new, text=STUDY) + AREA))


def test_maps_put_people_at_antennas_unless_the_file_says_what_is_land() -> None:
    assert parse().location.people == "antennas"
    assert placed("grid_m = 200", 'grid_m = 200\npeople = "land"').location.people == "land"
    older = parse().to_json()
    del older["location"]["people"]
    assert StudyDefinition.from_json(older).location.people == "land"


def test_places_need_an_area_and_a_grid_has_room_for_its_tally() -> None:
    assert "location.grid_m: needs [area] with the cells" in "\n".join(problems(STUDY))
    (problem,) = problems(edited("days = 3", "days = 62", "grid_m = 200", "grid_m = 100", text=STUDY) + AREA)
    assert "more than 2015: the smallest step that works is" in problem


def test_the_zones_of_the_area_are_the_categories() -> None:
    study = zoned()
    assert [indicator.categories for indicator in study.indicators] == [study.area.zones] * 2
    assert set(study.area.zones) == {"South", "Centre"}
    assert [spec.domain_size for spec in study.plan_spec().indicators] == [2, 2]
    assert through_json(study) == study


def test_the_night_is_from_ten_to_six_unless_the_file_says_otherwise() -> None:
    assert zoned().night == (22 * 60, 6 * 60)
    assert zoned(NIGHT, f'{NIGHT}\nnight_from = "23:30"\nnight_to = "00:00"').night == (23 * 60 + 30, 0)
    assert zoned(NIGHT, DURATION).night is None


def test_zones_are_needed_and_not_one_nor_too_many() -> None:
    rule = "needs [area] with zones: name a file of zones, or give the cells a column zone"
    expected = [
        f'study.toml: indicator[stayed_in].derive: {rule}, got "main_zone"',
        f'study.toml: indicator[slept_in].derive: {rule}, got "night_zone"',
    ]
    assert problems(DAILY) == problems(DAILY + AREA) == expected
    rule = "study.toml: indicator[stayed_in].derive: needs an area of"
    one = "cell_id,lon,lat,zone\nA,6.8,47.6,South\n"
    assert problems(DAILY + AREA, cells=one)[0] == f"{rule} 2 to 65534 zones in a study of 3 days, got 1"
    many = "cell_id,lon,lat,zone\n" + "".join(f"C{n},6.8,47.6,Z{n}\n" for n in range(2016))
    found = problems(edited("days = 3", "days = 62", text=DAILY) + AREA, cells=many)
    assert found[0] == f"{rule} 2 to 2015 zones in a study of 62 days, got 2016"


LATER = "must be later than indicator[slept_in].night_to: the night continues after midnight"
NO_NIGHT = "must be absent: only night_zone and distance_from_home have a night"
DISTANCE = """[[indicator]]
slug = "far"
kind = "number"
derive = "distance_from_home"
unit = "km"
cuts = [5, 10]
"""
STATIC = 'kind = "static"\ncolumn = "x"\ncategories = ["a", "b"]'


def test_what_is_wrong_with_a_night_is_named_and_nothing_else() -> None:
    for old, new, expected in (
        (NIGHT, f'{NIGHT}\nnight_from = "05:00"', f'indicator[slept_in].night_from: {LATER}, got "05:00"'),
        (NIGHT, f'{NIGHT}\nnight_to = "22:00"', f"indicator[slept_in].night_from: {LATER}"),
        (NIGHT, f'{NIGHT}\nnight_to = "6"', 'indicator[slept_in].night_to: must be a time such as "06:00", from "00:00" to "23:59", got "6"'),
        (NIGHT, 'derive = "nightzone"\nnight_from = "22:00"', 'indicator[slept_in].derive: must be one of visit_duration, main_zone, night_zone, moves, visited_zones, visited_pairs, first_hour, last_hour, busiest_hour, got "nightzone"'),
        (MAIN, f'{MAIN}\nnight_from = "22:00"', f'indicator[stayed_in].night_from: {NO_NIGHT}, got "22:00"'),
        (f'kind = "daily"\n{MAIN}', f'{STATIC}\nnight_to = "05:00"', f'indicator[stayed_in].night_to: {NO_NIGHT}, got "05:00"'),
        (NIGHT, f'{NIGHT}\ncategories = ["South", "Centre"]', "indicator[slept_in].categories: must be absent: they are the zones of [area], got a list"),
        (MAIN, NIGHT, 'indicator[slept_in].derive: must be derived only once, but indicator[stayed_in].derive already is, got "night_zone"'),
    ):  # fmt: skip
        assert problems(edited(old, new, text=DAILY) + AREA, cells=ZONED) == [f"study.toml: {expected}"]


def test_a_distance_from_home_has_the_night_of_the_study() -> None:
    study = parse(DAILY + DISTANCE + AREA, cells=ZONED)
    assert (study.indicators[-1].night_from, study.night) == (22 * 60, (22 * 60, 6 * 60))
    assert through_json(study) == study == read_tables(tables_of(study), like=study)
    later = edited(NIGHT, f'{NIGHT}\nnight_from = "23:00"', text=DAILY + DISTANCE) + AREA
    rule = "must be that of indicator[slept_in]: a study has one night"
    assert problems(later, cells=ZONED) == [f"study.toml: indicator[far].night_from: {rule}"]
    alone = edited(NIGHT, 'derive = "visit_duration"', text=DAILY) + DISTANCE
    assert parse(alone + AREA, cells=ZONED).night == (22 * 60, 6 * 60)
    assert "needs [area] with the cells in which people are seen" in problems(alone)[-1]
    of_column = edited('derive = "distance_from_home"', 'column = "km"\nnight_to = "05:00"', text=alone)
    found = problems(of_column + AREA, cells=ZONED)
    assert found == [f'study.toml: indicator[far].night_to: {NO_NIGHT}, got "05:00"']
