"""The demo study: cells lie in their zones and zones do not overlap."""

import csv
import json
from itertools import combinations, pairwise

import pytest

from mobility.demo.population import FOLDER, load_facts, load_study

Point = tuple[float, float]
Ring = list[Point]

ZONES: dict[str, Ring] = {
    feature["properties"]["zone"]: [(lon, lat) for lon, lat in feature["geometry"]["coordinates"][0]]
    for feature in json.loads((FOLDER / "zones.geojson").read_text(encoding="utf-8"))["features"]
}
with (FOLDER / "cells.csv").open(encoding="utf-8", newline="") as _file:
    CELLS = list(csv.DictReader(_file))


def sides(ring: Ring) -> list[tuple[Point, Point]]:
    return list(pairwise(ring))


def contains(ring: Ring, point: Point) -> bool:
    """Even-odd rule: how often a ray to the east leaves the ring."""
    lon, lat = point
    crossings = 0
    for (lon_a, lat_a), (lon_b, lat_b) in sides(ring):
        if (lat_a > lat) != (lat_b > lat):
            crossings += lon < lon_a + (lon_b - lon_a) * (lat - lat_a) / (lat_b - lat_a)
    return crossings % 2 == 1


def turn(a: Point, b: Point, c: Point) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def cross(first: tuple[Point, Point], second: tuple[Point, Point]) -> bool:
    return (
        turn(*first, second[0]) * turn(*first, second[1]) <= 0
        and turn(*second, first[0]) * turn(*second, first[1]) <= 0
    )


def test_study_is_the_fimu_week() -> None:
    study, facts = load_study(), load_facts()
    assert (study.slug, study.timezone) == ("fimu-2017", "Europe/Paris")
    assert (study.first_day.isoformat(), study.days) == (facts["first_day"], facts["days"])
    assert (study.visitor.min_minutes, study.visitor.from_minute, study.visitor.to_minute) == (60, 360, 1439)
    assert {indicator.slug for indicator in study.indicators} == {*facts["marginals"], "visit_duration"}


def test_zones_are_the_named_sleeping_areas_and_say_that_they_are_synthetic() -> None:
    assert set(ZONES) == set(load_facts()["marginals"]["sleeping_area"]) - {"NR"}
    collection = json.loads((FOLDER / "zones.geojson").read_text(encoding="utf-8"))
    assert all(feature["properties"]["synthetic"] is True for feature in collection["features"])
    assert "SYNTHETIC" in (FOLDER / "study.toml").read_text(encoding="utf-8").splitlines()[0]


def test_each_cell_lies_in_its_zone_alone() -> None:
    assert 50 <= len(CELLS) <= 70
    assert len({cell["cell_id"] for cell in CELLS}) == len(CELLS)
    for cell in CELLS:
        point = (float(cell["lon"]), float(cell["lat"]))
        assert [zone for zone, ring in ZONES.items() if contains(ring, point)] == [cell["zone"]]


@pytest.mark.parametrize("zone", ZONES)
def test_a_zone_is_a_simple_closed_ring_anticlockwise(zone: str) -> None:
    ring = ZONES[zone]
    assert ring[0] == ring[-1]
    assert sum(a[0] * b[1] - b[0] * a[1] for a, b in sides(ring)) > 0
    for i, j in combinations(range(len(sides(ring))), 2):
        if j - i > 1 and (i, j) != (0, len(ring) - 2):  # neighbours share a corner
            assert not cross(sides(ring)[i], sides(ring)[j])


@pytest.mark.parametrize(("one", "other"), list(combinations(ZONES, 2)))
def test_zones_do_not_overlap(one: str, other: str) -> None:
    assert not any(cross(a, b) for a in sides(ZONES[one]) for b in sides(ZONES[other]))
    assert not contains(ZONES[one], ZONES[other][0])
    assert not contains(ZONES[other], ZONES[one][0])
