"""Metres, the grid, masks, base layers and outlines: what they cover, in stated bounds, by brute force."""

import json
import math
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import shapely
from django.apps import apps
from django.db import connection
from pyproj import Geod
from shapely import LineString, MultiPolygon, Point, Polygon, box

from reports.studies.geography.areas import (
    bounds_in_metres,
    cells_in_metres,
    projection_of,
    shapes_of,
    surroundings,
)
from reports.studies.geography.display import pixel_m, shown_zones
from reports.studies.geography.grid import (
    GridError,
    finest_grid,
    grid_codes_of_cells,
    land_mask,
    make_grid,
    zone_of_grid_cells,
)
from reports.studies.geography.layers import sheet_of
from reports.studies.geography.projection import LocalProjection, projection_around
from reports.studies.geography.shapes import in_metres, of_features, of_geometry
from reports.studies.geography.stored import NO_ZONE
from reports.studies.models import Area
from reports.studies.studyfile import StudyDefinition
from tests.reports import report_factory as factory
from tests.reports.studies.geography.places import EAST, WEST, frame, parse, problems, written, zones

WGS84 = Geod(ellps="WGS84")
EARTH_RADIUS_M = 6_356_752.0  # the smaller one, so that bounds hold
ECCENTRICITY_SQUARED = 0.006694379990141  # WGS 84
CELLS = "cell_id,lon,lat\nwest,6.85,47.65\neast,6.95,47.65\n"
WIGGLE = LineString([(6.8 + i / 5000, 47.65 + 0.01 * np.sin(i / 40) + 1e-6 * (i % 2)) for i in range(1001)])
OWN_NAME = "must have a unique name, apart from the ending"
GIVEN = "must name a file that is given together with the study file"
NO_LINE = "p.gpkg: features[1].geometry.type: must be LineString or MultiLineString or Polygon"


def distance_error(radius_m):
    """Return the maximum error of a short distance within a radius of the centre, as a share of it.

    On the sphere the scale is cos(c/2) away from the centre and 1/cos(c/2) across, c the angle from it. The
    ellipsoid adds at most c e^2/4: 3e-6 within 10 km, 9e-4 within 500 km.
    """
    angle = radius_m / EARTH_RADIUS_M
    return 1 / math.cos(angle / 2) - 1 + angle * ECCENTRICITY_SQUARED / 4


@pytest.fixture(scope="module")
def zone_file():
    return written(frame([WEST, EAST], zone=["West", "East"]), "z.gpkg")


@pytest.fixture(scope="module")
def area(zone_file):
    return zones(zone_file, cells=CELLS).area


def drawn(*shapes, name="rivers.gpkg", **options):
    return parse(f'layers = ["{name}"]\n', {name: written(frame(list(shapes), **options), name)})


def jagged(west, east):
    """A zone whose east and west borders have a thousand corners, the same for its neighbours."""
    south_north, bend = np.linspace(47.6, 47.7, 501), 0.002 * np.sin(np.arange(501) / 5)
    up, down = np.column_stack([east + bend, south_north]), np.column_stack([west + bend, south_north])[::-1]
    return Polygon(np.concatenate([up, down]))


class TestProjection:
    def test_an_area_has_its_own_around_the_middle_of_cells_and_zones(self):
        area = parse("", {}).area
        assert area.projection == "+proj=laea +lat_0=47.65 +lon_0=7.18 +datum=WGS84 +units=m +no_defs"
        assert projection_of(area).text == area.projection
        # A study from before has the projection that it would get now.
        assert projection_of(replace(area, projection=None)).text == area.projection

    @pytest.mark.parametrize("latitude", [0.0, 20.0, 35.0, 47.65, 60.0, -80.0])
    @pytest.mark.parametrize("radius_m", [2_000, 20_000, 150_000, 500_000])
    def test_short_distances_are_right_within_the_stated_bound(self, latitude, radius_m):
        projection = LocalProjection(projection_around(np.array([6.85]), np.array([latitude])))
        lon_0, lat_0 = (float(each) for each in projection.to_degrees(0.0, 0.0))
        bearings = np.arange(0, 360, 15.0)
        ones = np.ones_like(bearings)
        lon, lat, _ = WGS84.fwd(lon_0 * ones, lat_0 * ones, bearings, radius_m * ones)
        x, y = projection.to_metres(lon, lat)
        worst = 0.0
        for towards in (0.0, 45.0, 90.0):
            there = WGS84.fwd(lon, lat, bearings + towards, 1000.0 * ones)
            to_x, to_y = projection.to_metres(there[0], there[1])
            worst = max(worst, float(np.abs(np.hypot(to_x - x, to_y - y) / 1000 - 1).max()))
        assert worst <= distance_error(radius_m + 1000)
        if latitude == 47.65:
            assert worst >= distance_error(radius_m) / 2  # the bound says something

    def test_areas_are_exact_and_the_way_back_ends_where_it_began(self):
        projection = LocalProjection(projection_around(np.array([6.85]), np.array([47.65])))
        lon, lat = shapely.get_coordinates(shapely.segmentize(box(9, 45, 10, 46), 0.01)).T
        truth_m2, _ = WGS84.polygon_area_perimeter(lon, lat)
        x, y = projection.to_metres(lon, lat)
        found_m2 = shapely.Polygon(np.column_stack([x, y])).area
        assert found_m2 == pytest.approx(abs(truth_m2), rel=1e-4)  # straight edges instead of parallels
        assert np.abs(np.array(projection.to_degrees(x, y)) - [lon, lat]).max() < 1e-8  # a millimetre

    @pytest.mark.parametrize(("lon", "centre"), [((179.5, -179.9), "179.80"), ((178, -176), "-179.00")])
    def test_across_the_date_line_the_middle_is_there(self, lon, centre):
        text = projection_around(np.array(lon, float), np.array([-17.0, -16.0]))
        assert text.startswith(f"+proj=laea +lat_0=-16.50 +lon_0={centre} ")


@pytest.mark.parametrize(("step_m", "margin_m"), [(250, 0), (333, 1000), (1000, 4999)])
def test_a_grid_covers_cells_and_zones_with_the_margin_and_no_more(area, step_m, margin_m):
    grid = make_grid(area, step_m=step_m, margin_m=margin_m)
    assert (grid.x0_m % step_m, grid.y0_m % step_m) == (0, 0)
    west, south, east, north = bounds_in_metres(area)
    for low, high, start, n in ((west, east, grid.x0_m, grid.n_x), (south, north, grid.y0_m, grid.n_y)):
        assert start <= low - margin_m < start + step_m
        assert start + (n - 1) * step_m <= high + margin_m < start + n * step_m
    x_m, y_m = cells_in_metres(area)
    assert (grid.x0_m <= x_m).all() and (x_m < grid.x0_m + grid.n_x * step_m).all()
    assert (grid.y0_m <= y_m).all() and (y_m < grid.y0_m + grid.n_y * step_m).all()
    codes = grid_codes_of_cells(area, grid).tolist()
    assert (codes, len(set(codes))) == (grid.codes(x_m, y_m).tolist(), 2)
    # The last digits of positions do not move it.
    moved = replace(area, cells=tuple(replace(cell, lon=cell.lon + 1e-6) for cell in area.cells))
    assert make_grid(moved, step_m=step_m, margin_m=margin_m) == grid


@pytest.mark.parametrize(("step_m", "margin_m", "most"), [(10, 0, 65_534), (100, 20_000, 4_000), (7, 3, 99)])
def test_too_many_squares_are_refused_with_the_smallest_step_that_works(area, step_m, margin_m, most):
    given = {"margin_m": margin_m, "max_cells": most}
    with pytest.raises(GridError, match="the smallest step that works is") as caught:
        make_grid(area, step_m=step_m, **given)
    least = int(str(caught.value).split()[-2])
    assert make_grid(area, step_m=least, **given).n_cells <= most
    for smaller in range(max(step_m, least - 20), least):
        with pytest.raises(GridError):
            make_grid(area, step_m=smaller, **given)


def test_the_finest_grid_has_the_first_of_the_steps_that_works(area):
    found = finest_grid(area, steps=range(10, 1000, 10), margin_m=20_000)
    assert found.step_m > 10 and found == make_grid(area, step_m=found.step_m, margin_m=20_000)
    with pytest.raises(GridError, match=f"a step of {found.step_m - 10} m .*the smallest step that works is"):
        finest_grid(area, steps=range(10, found.step_m, 10), margin_m=20_000)


def test_areas_steps_and_margins_have_bounds(area):
    def grid(lon):
        area = parse("", {}, cells=f"cell_id,lon,lat\na,6.8,47.6\nb,{lon},47.6\n").area
        return make_grid(area, step_m=5000, margin_m=0)

    assert grid(20.0).n_x * 5000 == pytest.approx(990_000, abs=10_000)
    said = r"must lie within 500 km of its centre, got 50\d km: is a cell misplaced"
    with pytest.raises(GridError, match=said):
        grid(20.3)
    for step_m, margin_m in ((0, 0), (100_001, 0), (250, -1), (250, 100_001)):
        with pytest.raises(GridError, match="must be from"):
            make_grid(area, step_m=step_m, margin_m=margin_m)


def test_squares_have_the_zone_of_their_centre(area):
    grid = make_grid(area, step_m=700, margin_m=2000)
    zones = zone_of_grid_cells(area, grid)
    assert (zones.shape, zones.dtype) == (grid.shape, np.int16)
    lon, lat = projection_of(area).to_degrees(*grid.centres())
    with_cells = set(grid_codes_of_cells(area, grid).tolist())
    for code, (x, y) in enumerate(zip(lon, lat, strict=True)):
        if code in with_cells:
            continue
        holding = [place for place, shape in enumerate(shapes_of(area)) if shape.covers(shapely.Point(x, y))]
        assert zones.ravel()[code] == min(holding, default=NO_ZONE)
    assert {NO_ZONE, 0, 1} == set(zones.ravel().tolist())


def test_a_square_with_cells_has_the_zone_of_most_of_them(zone_file):
    cells = (
        "cell_id,lon,lat,zone\n"
        "a,6.8501,47.65,East\nb,6.8502,47.65,East\nc,6.8503,47.65,West\n"  # in West by their places
        "d,6.95,47.65,West\ne,6.9501,47.65,East\n"  # as many of each
        "f,6.99,47.9,\n"  # in no zone
    )
    area = zones(zone_file, cells=cells).area
    grid = make_grid(area, step_m=1000, margin_m=0)
    found, codes = zone_of_grid_cells(area, grid).ravel(), grid_codes_of_cells(area, grid).tolist()
    assert len(set(codes)) == 3
    west, east = area.zones.index("West"), area.zones.index("East")
    assert [found[code] for code in codes] == [east, east, east, min(west, east), min(west, east), NO_ZONE]


def test_without_shapes_squares_with_cells_have_their_zone():
    area = parse("", {}, cells="cell_id,lon,lat,zone\na,6.8,47.6,North\nb,6.9,47.6,\n").area
    assert area.zones == ("North",)
    grid = make_grid(area, step_m=1000, margin_m=0)
    zones, (named, unnamed) = zone_of_grid_cells(area, grid).ravel(), grid_codes_of_cells(area, grid).tolist()
    assert (zones[named], zones[unnamed], (zones != NO_ZONE).sum()) == (0, NO_ZONE, 1)
    assert land_mask(area, grid).all()


@pytest.mark.parametrize("key", ["water", "land"])
def test_squares_wholly_in_water_are_masked_but_never_those_with_cells(zone_file, key):
    lake = written(frame([shapely.Point(6.9, 47.65).buffer(0.03)]), "lake.geojson")
    # One cell in the middle of the lake, and one far from any shore.
    cells = CELLS + "island,6.9,47.65\nfar,6.81,47.61\n"
    given = f'zones = "zones.gpkg"\n{key} = "lake.geojson"\n'
    area = parse(given, {"zones.gpkg": zone_file, "lake.geojson": lake}, cells=cells).area
    grid = make_grid(area, step_m=500, margin_m=1000)
    shape = in_metres(np.array([of_geometry(getattr(area, key))], np.object_), projection_of(area))[0]
    mask = land_mask(area, grid).ravel()
    x, y = grid.centres()
    squares = shapely.box(x - 250, y - 250, x + 250, y + 250)
    is_open = shapely.intersects(shape, squares) if key == "land" else ~shapely.covers(shape, squares)
    held = np.isin(np.arange(grid.n_cells), grid_codes_of_cells(area, grid))
    assert mask.tolist() == (is_open | held).tolist()
    assert (~mask).sum() > 20
    assert (held & ~is_open).any()


@pytest.mark.parametrize("name", ["rivers.gpkg", "rivers.geojson", "rivers.zip"])
def test_a_layer_is_simplified_to_a_pixel_of_the_map(name):
    parsed = drawn(WIGGLE, name=name, crs=4326 if name == "rivers.geojson" else 2154)
    (layer,) = parsed.area.layers
    assert (layer.name, layer.kind) == ("rivers", "lines")
    (path,) = layer.paths
    assert 10 < len(path) < 300
    truth = in_metres(np.array([WIGGLE], np.object_), projection_of(parsed.area))[0]
    assert shapely.hausdorff_distance(LineString(path), truth) < pixel_m(parsed.area) + 0.2
    assert parsed.notes == []


def test_lines_that_meet_are_one_path_and_polygons_are_rings():
    halves = LineString(WIGGLE.coords[:500]), LineString(WIGGLE.coords[499:])
    assert len(drawn(*halves).area.layers[0].paths) == 1
    holed = Polygon(WEST.exterior, [box(6.84, 47.64, 6.86, 47.66).exterior])
    (layer,) = drawn(holed, name="parks.gpkg").area.layers
    assert (layer.name, layer.kind, [len(path) for path in layer.paths]) == ("parks", "polygons", [5, 5])
    (both,) = drawn(holed, WIGGLE).area.layers
    assert (both.kind, len(both.paths)) == ("lines", 3)


@pytest.mark.parametrize(("far", "margin_m"), [(7.5, 48_800), (6.87, 7_500), (9.5, 100_000)])
def test_what_is_far_away_is_clipped_or_left_out(far, margin_m):
    cells = f"cell_id,lon,lat\nwest,6.85,47.65\nfar,{far},47.65\n" + "north,6.86,47.7\n" * (far < 7)
    name = "rivers.gpkg"
    files = {name: written(frame([LineString([(0.0, 47.65), (30.0, 47.65)])]), name)}
    area = parse(f'layers = ["{name}"]\n', files, cells=cells).area
    (path,) = area.layers[0].paths
    west, _, east, _ = sheet_of(area).view.box
    projection = projection_of(area)
    ends = projection.to_degrees(*np.array(path).T)[0]
    assert [ends.min(), ends.max()] == pytest.approx([west, east], abs=1e-4)
    x_m, _ = projection.to_metres(np.array([west, 6.85, far, east]), np.full(4, 47.65))  # cells in the middle
    assert [x_m[1] - x_m[0], x_m[3] - x_m[2]] == pytest.approx([margin_m] * 2, rel=0.3)


def test_what_is_too_detailed_for_a_page_is_refused_with_what_to_do(monkeypatch):
    monkeypatch.setattr("reports.studies.geography.layers.MAX_LAYER_VERTICES", 3)
    files = {"a.gpkg": written(frame([WIGGLE]), "a.gpkg")}
    (found,) = problems('layers = ["a.gpkg"]\n', files)
    assert "a.gpkg: features: must have fewer details" in found and "keep main features only" in found


def test_nothing_near_is_left_out():
    gone = drawn(LineString([(50, 10), (51, 10)]))
    assert gone.area.layers == ()
    assert gone.notes == ["rivers.gpkg: features: hold nothing near the area: the layer is left out"]


def test_layers_together_are_coarse_enough_for_a_page(monkeypatch):
    monkeypatch.setattr("reports.studies.geography.layers.MAX_LAYER_VERTICES", 40)
    files = {name: written(frame([WIGGLE]), name) for name in ("a.gpkg", "b.gpkg")}
    parsed = parse('layers = ["a.gpkg", "b.gpkg"]\n', files)
    assert 10 < sum(len(path) for layer in parsed.area.layers for path in layer.paths) <= 40
    notes = [note.split(" to ")[0] for note in parsed.notes]
    assert notes == ["a.gpkg: features: were simplified", "b.gpkg: features: were simplified"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ('layers = "r.gpkg"', 'study.toml: area.layers: must be a list of 1 to 10 names of files, got "r.'),
        ('layers = ["r.gpkg", 5]', "study.toml: area.layers[2]: must be a text in quotes, got 5"),
        ('layers = ["r.gpkg", "r.zip"]', f'study.toml: area.layers[2]: {OWN_NAME}, got "r.zip"'),
        ('layers = ["r.gpkg", "s.gpkg"]', f'study.toml: area.layers[2]: {GIVEN}, got "s.gpkg"'),
        ('layers = ["p.gpkg"]', NO_LINE),
        ('water = "r.gpkg"', "r.gpkg: features[1].geometry.type: must be Polygon or MultiPolygon, got"),
    ],
)  # fmt: skip
def test_layers_of_a_study_file_are_checked(given, expected):
    shapes = {"r.gpkg": WIGGLE, "p.gpkg": Point(6.8, 47.6)}
    files = {name: written(frame([shape]), name) for name, shape in shapes.items()}
    (found,) = problems(given + "\n", files)
    assert found.startswith(expected)


def test_masks_are_one_valid_shape_near_the_area_and_bounded(monkeypatch):
    bow_tie, ocean = Polygon([(6.8, 47.6), (6.9, 47.7), (6.9, 47.6), (6.8, 47.7)]), box(-40, 40, 6.7, 55)
    water = written(frame([bow_tie, WEST, ocean]), "water.gpkg")
    parsed = parse('water = "water.gpkg"\n', {"water.gpkg": water})
    (note,) = parsed.notes
    assert note.startswith("water.gpkg: features[1].geometry: was repaired (Self-intersection")
    assert parsed.area.land is None
    shape = of_geometry(parsed.area.water)
    assert shape.is_valid and isinstance(shape, MultiPolygon)
    everything = shapely.union_all([shapely.make_valid(bow_tie), WEST, ocean])
    truth = shapely.intersection(everything, box(*surroundings(parsed.area)))
    assert shape.symmetric_difference(truth).area < 1e-9
    nothing = parse('land = "l.gpkg"\n', {"l.gpkg": written(frame([box(50, 10, 51, 11)]), "l.gpkg")})
    assert nothing.notes == ["l.gpkg: features: hold nothing near the area"]
    assert nothing.area.land == {"type": "MultiPolygon", "coordinates": []}
    monkeypatch.setattr("reports.studies.geography.layers.MAX_MASK_VERTICES", 4)
    (found,) = problems('water = "w.gpkg"\n', {"w.gpkg": written(frame([WEST]), "w.gpkg")})
    assert found == "w.gpkg: features: must have at most 4 vertices around the area: simplify it first, got 5"


def test_a_definition_with_everything_survives_the_round_trip_through_json():
    tables = {"r": frame([WIGGLE]), "w": frame([WEST]), "z": frame([WEST, EAST], zone=["W", "E"])}
    files = {f"{name}.gpkg": written(table, f"{name}.gpkg") for name, table in tables.items()}
    study = parse('zones = "z.gpkg"\nwater = "w.gpkg"\nland = "z.gpkg"\nlayers = ["r.gpkg"]\n', files).study
    again = StudyDefinition.from_json(json.loads(json.dumps(study.to_json())))
    assert (again, again.area.layers) == (study, study.area.layers)


def test_a_definition_from_before_is_still_read_and_the_same_file_gives_it_again():
    clockwise = [[6.8, 47.6], [6.8, 47.7], [6.9, 47.7], [6.9, 47.6], [6.8, 47.6]]
    geometry = {"type": "Polygon", "coordinates": [clockwise]}
    feature = {"type": "Feature", "properties": {"zone": "W"}, "geometry": geometry}
    document = {"type": "FeatureCollection", "features": [feature]}
    cells = "cell_id,lon,lat,zone\na,6.85,47.65,W\n"
    study = zones(json.dumps(document).encode(), "z.json", cells=cells).study
    old = json.loads(json.dumps(study.to_json()))
    for key in ("projection", "water", "land", "layers"):
        del old["area"][key]
    del old["area"]["cells"][0]["azimuth"]
    old["area"]["geojson"] = document
    again = StudyDefinition.from_json(old)
    assert (again, again.area.projection, again.area.layers) == (study, None, ())
    assert projection_of(again.area) == projection_of(study.area)
    geojson, _ = shown_zones(again.area)
    assert of_geometry(geojson["features"][0]["geometry"]).exterior.is_ccw


@pytest.mark.django_db
def test_zones_of_a_study_from_before_there_were_maps_get_outlines_and_others_are_left_alone():
    migration = import_module("reports.migrations.0009_outlines_of_older_areas")
    geojson = json.loads((Path(__file__).parents[4] / "mobility/demo/zones.geojson").read_text())
    names = [feature["properties"]["zone"] for feature in geojson["features"]]
    area = Area.objects.create(study=factory.create(), n_cells=62, zones=names, geojson=geojson)
    migration.draw(apps, connection.schema_editor())
    area.refresh_from_db()
    assert area.projection.startswith("+proj=laea +lat_0=47.61 +lon_0=6.88 ")
    # Two coastal zones have islands, in the order of their parts.
    n_rings = {"South Haut Rhin": 5, "North Haut Rhin": 2}
    assert [len(rings) for rings in area.outlines] == [n_rings.get(name, 1) for name in names]
    assert [each["properties"] for each in area.geojson["features"]] == [{"zone": name} for name in names]
    Area.objects.update(outlines=[], projection="kept")
    migration.draw(apps, connection.schema_editor())
    area.refresh_from_db()
    assert (area.projection, area.outlines) == ("kept", [])


def test_zones_are_shown_with_fewer_vertices_and_keep_their_borders(monkeypatch):
    monkeypatch.setattr("reports.studies.geography.display.MAX_VERTICES", 400)
    west, east = jagged(6.8, 6.9), jagged(6.9, 7.0)
    # A neighbour of both: where the three meet, its own border is straight.
    top = [at for at in dict.fromkeys((*west.exterior.coords, *east.exterior.coords)) if at[1] == 47.7]
    north = Polygon([*sorted(top), (7.1, 47.8), (6.7, 47.8)])
    area = zones(frame([west, east, north], zone=["W", "E", "N"])).area
    assert shapely.coverage_is_valid(shapes_of(area))
    geojson, outlines = shown_zones(area)
    assert [each["properties"]["zone"] for each in geojson["features"]] == ["W", "E", "N"]
    shapes = of_features(geojson)
    assert 20 < shapely.get_num_coordinates(shapes).sum() <= 400
    assert shapely.coverage_is_valid(shapes)
    assert shapely.intersection(shapes[0], shapes[1]).length > 0.1  # they still share the border
    for shape, rings in zip(in_metres(shapes, projection_of(area)), outlines, strict=True):
        assert len(rings) == 1
        assert shapely.hausdorff_distance(Polygon(rings[0]), shape) < 0.5


def test_zones_that_overlap_are_shown_too_and_an_area_without_shapes_shows_none():
    geojson, outlines = shown_zones(zones(frame([box(6.8, 47.6, 6.95, 47.7), EAST], zone=["W", "E"])).area)
    shown = [of_geometry(feature["geometry"]).area for feature in geojson["features"]]
    assert (shown, len(outlines)) == (pytest.approx([0.015, 0.01], rel=1e-4), 2)
    assert shown_zones(parse("", {}).area) == (None, [])
