"""The invented country of the demo: zones that touch, cells in their zones, lines on dry land."""

import csv
import json
from itertools import combinations

import pytest
import shapely

from mobility.demo.population import FOLDER, load_study
from scripts.demo_geography import KM, documents

FILES = ("zones", "water", "rivers", "roads", "borders")
SHARED_KM = 1.0  # of a common border
COAST_KM = 0.2  # lines are simplified one by one, so that a bank may lie this far off


def shapes(document):
    degrees = [shapely.from_geojson(json.dumps(each["geometry"])) for each in document["features"]]
    return shapely.transform(degrees, lambda at: at * KM)


def stored(name):
    return json.loads((FOLDER / f"{name}.geojson").read_text())


@pytest.fixture(scope="module")
def country():
    return {name: shapes(stored(name)) for name in FILES}


def test_the_files_are_what_the_script_draws():
    for name, document in documents().items():
        kept = json.loads((FOLDER / name).read_text())
        assert [each["properties"] for each in kept["features"]] == [
            each["properties"] for each in document["features"]
        ]
        far = shapely.hausdorff_distance(shapes(kept), shapes(document))
        assert far.max() < 0.05, name


def test_zones_cover_one_country_without_gaps_or_overlaps(country):
    zones = country["zones"]
    assert shapely.is_valid(zones).all() and shapely.coverage_is_valid(zones)
    whole = shapely.union_all(zones)
    mainland, *islands = sorted(shapely.get_parts(whole), key=lambda part: -part.area)
    assert mainland.area > 0.99 * whole.area and len(islands) == 5
    assert not mainland.interiors
    borders = {pair: shapely.intersection(*zones[list(pair)]).length for pair in combinations(range(10), 2)}
    touching = {pair for pair, length in borders.items() if length > SHARED_KM}
    assert len(touching) >= 15 and {place for pair in touching for place in pair} == set(range(10))


def test_every_cell_is_in_its_zone_and_on_land(country):
    with (FOLDER / "cells.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    at = shapely.points([[float(row["lon"]) * KM[0], float(row["lat"]) * KM[1]] for row in rows])
    names = [each["properties"]["zone"] for each in stored("zones")["features"]]
    zones = dict(zip(names, country["zones"], strict=True))
    assert all(zones[row["zone"]].contains(point) for row, point in zip(rows, at, strict=True))
    assert not shapely.intersects(shapely.union_all(country["water"]), at).any()


def test_the_sea_ends_at_the_zones_and_lakes_lie_in_them(country):
    sea, *lakes = country["water"]
    land = shapely.union_all(country["zones"])
    assert shapely.intersection(sea, land).area < 0.01  # km2, of rounding
    assert shapely.intersection(sea.boundary, land.boundary).length > 100
    assert len(lakes) == 3 and all(land.contains(lake) for lake in lakes)


def test_rivers_and_roads_keep_out_of_the_sea_and_borders_go_around(country):
    sea = country["water"][0]
    for name in ("rivers", "roads"):
        assert shapely.length(shapely.intersection(shapely.buffer(sea, -COAST_KM), country[name])).max() == 0
    frontier = country["borders"][0]
    edge = shapely.union_all(country["zones"]).boundary
    assert frontier.length > 150
    assert (
        shapely.hausdorff_distance(frontier, shapely.intersection(frontier, shapely.buffer(edge, 0.2))) < 0.5
    )


def test_the_study_reads_all_of_it():
    places = load_study().area
    assert [(layer.name, layer.kind) for layer in places.layers] == [
        ("water", "polygons"), ("rivers", "lines"), ("roads", "lines"), ("borders", "lines"),
    ]  # fmt: skip
    assert len(places.cells) == 62 and {cell.zone for cell in places.cells} == set(places.zones)
