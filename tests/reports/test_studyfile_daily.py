"""Daily indicators in study files: zones as categories, and the night."""

import pytest

from reports.studyfile import StudyDefinition, StudyFileError, parse_study

STUDY = """
[study]
slug = "fair-2024"
name = "Fair 2024"
timezone = "Europe/Paris"
first_day = 2024-03-30
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
slug = "stayed_in"
kind = "daily"
derive = "main_zone"
[[indicator]]
slug = "slept_in"
kind = "daily"
derive = "night_zone"
"""
AREA = '[area]\ncells = "cells.csv"\n'
CELLS = "cell_id,lon,lat,zone\nA,6.8,47.6,South\nB,6.9,47.7,\nC,6.9,47.8,Centre\nD,6.9,47.8,South\n"
NIGHT = 'derive = "night_zone"'


def parse(text: str = STUDY + AREA, *, cells: str = CELLS) -> StudyDefinition:
    return parse_study(text.encode(), filename="study.toml", read=lambda _: cells.encode())


def problems(text: str, *, cells: str = CELLS) -> list[str]:
    with pytest.raises(StudyFileError) as caught:
        parse(text, cells=cells)
    return [str(problem) for problem in caught.value.problems]


def edited(old: str, new: str) -> str:
    assert STUDY.count(old) == 1
    return STUDY.replace(old, new) + AREA


def test_the_zones_of_the_area_are_the_categories() -> None:
    study = parse()
    assert [indicator.categories for indicator in study.indicators] == [study.area.zones] * 2
    assert set(study.area.zones) == {"South", "Centre"}
    assert [spec.domain_size for spec in study.plan_spec().indicators] == [2, 2]
    assert StudyDefinition.from_json(study.to_json()) == study


def test_the_night_is_from_ten_to_six_unless_the_file_says_otherwise() -> None:
    assert parse().night == (22 * 60, 6 * 60)
    own = edited(NIGHT, f'{NIGHT}\nnight_from = "23:30"\nnight_to = "00:00"')
    assert parse(own).night == (23 * 60 + 30, 0)
    assert parse(edited(NIGHT, 'derive = "visit_duration"')).night is None


def test_only_what_needs_the_main_cell_asks_for_it() -> None:
    assert parse().needs_main_cell
    assert not parse(edited('derive = "main_zone"', 'derive = "visit_duration"')).needs_main_cell


def test_definitions_of_before_there_were_nights_can_be_read() -> None:
    study = parse(edited(NIGHT, 'derive = "visit_duration"'))
    stored = study.to_json()
    for indicator in stored["indicators"]:
        del indicator["night_from"], indicator["night_to"]
    assert StudyDefinition.from_json(stored) == study


def test_zones_are_needed() -> None:
    rule = "needs [area] with zones: name a file of zones, or give the cells a column zone"
    expected = [
        f'study.toml: indicator[stayed_in].derive: {rule}, got "main_zone"',
        f'study.toml: indicator[slept_in].derive: {rule}, got "night_zone"',
    ]
    assert problems(STUDY) == expected
    assert problems(STUDY + AREA, cells="cell_id,lon,lat\nA,6.8,47.6\n") == expected


def test_one_zone_tells_nothing_and_too_many_have_no_room() -> None:
    one = "cell_id,lon,lat,zone\nA,6.8,47.6,South\n"
    assert problems(STUDY + AREA, cells=one)[0] == (
        "study.toml: indicator[stayed_in].derive: "
        "needs an area of 2 to 65534 zones in a study of 3 days, got 1"
    )
    rows = "".join(f"C{n},6.8,47.6,Z{n}\n" for n in range(2016))
    text = (STUDY + AREA).replace("days = 3", "days = 62")
    assert problems(text, cells=f"cell_id,lon,lat,zone\n{rows}")[0] == (
        "study.toml: indicator[stayed_in].derive: "
        "needs an area of 2 to 2015 zones in a study of 62 days, got 2016"
    )


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            NIGHT,
            f'{NIGHT}\nnight_from = "05:00"',
            "indicator[slept_in].night_from: must be later than indicator[slept_in].night_to: "
            'the night goes on after midnight, got "05:00"',
        ),
        (
            NIGHT,
            f'{NIGHT}\nnight_to = "22:00"',
            "indicator[slept_in].night_from: must be later than indicator[slept_in].night_to: "
            "the night goes on after midnight",
        ),
        (
            NIGHT,
            f'{NIGHT}\nnight_to = "6"',
            'indicator[slept_in].night_to: must be a time as in "06:00", from "00:00" to "23:59", got "6"',
        ),
        (
            'derive = "main_zone"',
            'derive = "main_zone"\nnight_from = "22:00"',
            'indicator[stayed_in].night_from: must be absent: only night_zone has a night, got "22:00"',
        ),
        (
            'kind = "daily"\nderive = "main_zone"',
            'kind = "static"\ncolumn = "x"\ncategories = ["a", "b"]\nnight_to = "05:00"',
            'indicator[stayed_in].night_to: must be absent: only night_zone has a night, got "05:00"',
        ),
        (
            NIGHT,
            f'{NIGHT}\ncategories = ["South", "Centre"]',
            "indicator[slept_in].categories: must be absent: they are the zones of [area], got a list",
        ),
        (
            'derive = "main_zone"',
            NIGHT,
            "indicator[slept_in].derive: must be derived once, but indicator[stayed_in].derive is it "
            'already, got "night_zone"',
        ),
    ],
)
def test_what_breaks_a_rule_is_named(old: str, new: str, expected: str) -> None:
    text = STUDY.replace(old, new, 1) + AREA
    assert problems(text) == [f"study.toml: {expected}"]


def test_an_unknown_derive_does_not_blame_the_night() -> None:
    text = edited(NIGHT, 'derive = "nightzone"\nnight_from = "22:00"')
    assert problems(text) == [
        "study.toml: indicator[slept_in].derive: must be one of visit_duration, main_zone, night_zone, "
        'got "nightzone"'
    ]
