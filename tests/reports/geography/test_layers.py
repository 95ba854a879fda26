"""Masks and base layers: clipped, simplified within bounds, in metres."""
# ruff: noqa: E501  (a message reads best on one line)

import json
from collections.abc import Callable

import numpy as np
import pytest
import shapely
from shapely import LineString, MultiPolygon, Point, Polygon, box

from reports.geography.areas import SURROUNDINGS_M, projection_of, shapes_of, surroundings
from reports.geography.display import pixel_m, shown_zones
from reports.geography.shapes import in_metres, of_features, of_geometry
from reports.studyfile import StudyDefinition
from tests.reports.geography.places import EAST, WEST, frame, parse, problems

Write = Callable[..., bytes]
WIGGLE = LineString([(6.8 + i / 5000, 47.65 + 0.01 * np.sin(i / 40) + 1e-6 * (i % 2)) for i in range(1001)])


def drawn(
    written: Write, shapes: list[shapely.Geometry], name: str = "rivers.gpkg", **options: object
) -> object:
    return parse(f'layers = ["{name}"]\n', {name: written(frame(shapes, **options), name)})


@pytest.mark.parametrize("name", ["rivers.gpkg", "rivers.geojson", "rivers.zip"])
def test_a_layer_is_simplified_to_a_pixel_of_the_map(written: Write, name: str) -> None:
    options = {"crs": 2154} if name != "rivers.geojson" else {}
    parsed = drawn(written, [WIGGLE], name, **options)
    (layer,) = parsed.area.layers
    assert (layer.name, layer.kind) == ("rivers", "lines")
    (path,) = layer.paths
    assert 10 < len(path) < 300
    truth = in_metres(np.array([WIGGLE], np.object_), projection_of(parsed.area))[0]
    assert shapely.hausdorff_distance(LineString(path), truth) < pixel_m(parsed.area) + 0.2
    assert parsed.notes == []


def test_lines_that_meet_are_one_path_and_polygons_are_rings(written: Write) -> None:
    halves = [LineString(WIGGLE.coords[:500]), LineString(WIGGLE.coords[499:])]
    assert len(drawn(written, halves).area.layers[0].paths) == 1
    holed = Polygon(WEST.exterior, [box(6.84, 47.64, 6.86, 47.66).exterior])
    parsed = parse('layers = ["parks.gpkg"]\n', {"parks.gpkg": written(frame([holed]), "parks.gpkg")})
    (layer,) = parsed.area.layers
    assert (layer.name, layer.kind, [len(path) for path in layer.paths]) == ("parks", "polygons", [5, 5])
    both = parse('layers = ["all.gpkg"]\n', {"all.gpkg": written(frame([holed, WIGGLE]), "all.gpkg")})
    assert both.area.layers[0].kind == "lines"
    assert len(both.area.layers[0].paths) == 3


def test_what_is_far_away_is_clipped_or_left_out(written: Write) -> None:
    long = LineString([(0.0, 47.65), (30.0, 47.65)])
    parsed = drawn(written, [long])
    (path,) = parsed.area.layers[0].paths
    west, _, east, _ = surroundings(parsed.area)
    ends = projection_of(parsed.area).to_degrees(*np.array(path).T)[0]
    assert [ends.min(), ends.max()] == pytest.approx([west, east], abs=1e-4)
    x_m, _ = projection_of(parsed.area).to_metres(np.array([west, east]), np.array([47.65, 47.65]))
    cells_m, _ = projection_of(parsed.area).to_metres(np.array([6.85, 7.5]), np.array([47.65, 47.65]))
    assert cells_m[0] - x_m[0] == pytest.approx(SURROUNDINGS_M, rel=0.05)
    assert x_m[1] - cells_m[1] == pytest.approx(SURROUNDINGS_M, rel=0.05)
    gone = parse(
        'layers = ["rivers.gpkg"]\n',
        {"rivers.gpkg": written(frame([LineString([(50, 10), (51, 10)])]), "far.gpkg")},
    )
    assert gone.area.layers == ()
    assert gone.notes == ["rivers.gpkg: features: hold nothing near the area: the layer is left out"]


def test_layers_together_are_coarse_enough_for_a_page(
    written: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reports.geography.layers.MAX_LAYER_VERTICES", 40)
    files = {name: written(frame([WIGGLE]), name) for name in ("a.gpkg", "b.gpkg")}
    parsed = parse('layers = ["a.gpkg", "b.gpkg"]\n', files)
    assert 10 < sum(len(path) for layer in parsed.area.layers for path in layer.paths) <= 40
    assert [note.split(" to ")[0] for note in parsed.notes] == [
        "a.gpkg: features: were simplified",
        "b.gpkg: features: were simplified",
    ]


def test_layers_of_a_study_file_are_checked(written: Write) -> None:
    river = written(frame([WIGGLE]), "r.gpkg")
    assert problems('layers = "r.gpkg"\n', {"r.gpkg": river}) == [
        'study.toml: area.layers: must be a list of 1 to 10 names of files, got "r.gpkg"'
    ]
    assert problems('layers = ["r.gpkg", 5]\n', {"r.gpkg": river}) == [
        "study.toml: area.layers[2]: must be a text in quotes, got 5"
    ]
    assert problems('layers = ["r.gpkg", "r.zip"]\n', {"r.gpkg": river}) == [
        'study.toml: area.layers[2]: must have a name of its own, whatever its ending, got "r.zip"'
    ]
    assert problems('layers = ["r.gpkg", "s.gpkg"]\n', {"r.gpkg": river}) == [
        'study.toml: area.layers[2]: must name a file that is given together with the study file, got "s.gpkg"'
    ]
    points = written(frame([Point(6.8, 47.6)]), "p.gpkg")
    (found,) = problems('layers = ["p.gpkg"]\n', {"p.gpkg": points})
    assert found.startswith(
        "p.gpkg: features[1].geometry.type: must be LineString or MultiLineString or Polygon"
    )
    (found,) = problems('water = "r.gpkg"\n', {"r.gpkg": river})
    assert found.endswith('features[1].geometry.type: must be Polygon or MultiPolygon, got "LineString"')


def test_masks_are_one_valid_shape_near_the_area(written: Write) -> None:
    bow_tie = Polygon([(6.8, 47.6), (6.9, 47.7), (6.9, 47.6), (6.8, 47.7)])
    ocean = box(-40, 40, 6.7, 55)
    data = written(frame([bow_tie, WEST, ocean]), "water.gpkg")
    parsed = parse('water = "water.gpkg"\n', {"water.gpkg": data})
    (note,) = parsed.notes
    assert note.startswith("water.gpkg: features[1].geometry: was repaired (Self-intersection")
    assert parsed.area.land is None
    shape = of_geometry(parsed.area.water or {})
    assert shape.is_valid
    assert isinstance(shape, MultiPolygon)
    box_of_area = box(*surroundings(parsed.area))
    truth = shapely.intersection(shapely.union_all([shapely.make_valid(bow_tie), WEST, ocean]), box_of_area)
    assert shape.symmetric_difference(truth).area < 1e-9
    nothing = parse('land = "l.gpkg"\n', {"l.gpkg": written(frame([box(50, 10, 51, 11)]), "l.gpkg")})
    assert nothing.notes == ["l.gpkg: features: hold nothing near the area"]
    assert nothing.area.land == {"type": "MultiPolygon", "coordinates": []}


def test_masks_are_bounded(written: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reports.geography.layers.MAX_MASK_VERTICES", 4)
    (found,) = problems('water = "w.gpkg"\n', {"w.gpkg": written(frame([WEST]), "w.gpkg")})
    assert found == "w.gpkg: features: must have at most 4 vertices around the area: simplify it first, got 5"


def test_a_definition_with_everything_survives_the_round_trip_through_json(written: Write) -> None:
    files = {
        "r.gpkg": written(frame([WIGGLE]), "r.gpkg"),
        "w.gpkg": written(frame([WEST]), "w.gpkg"),
        "z.gpkg": written(frame([WEST, EAST], zone=["W", "E"]), "z.gpkg"),
    }
    study = parse('zones = "z.gpkg"\nwater = "w.gpkg"\nland = "z.gpkg"\nlayers = ["r.gpkg"]\n', files).study
    again = StudyDefinition.from_json(json.loads(json.dumps(study.to_json())))
    assert again == study
    assert again.area is not None and study.area is not None
    assert again.area.layers == study.area.layers


def test_a_definition_from_before_is_still_read_and_the_same_file_gives_it_again() -> None:
    clockwise = [[6.8, 47.6], [6.8, 47.7], [6.9, 47.7], [6.9, 47.6], [6.8, 47.6]]
    geometry = {"type": "Polygon", "coordinates": [clockwise]}
    feature = {"type": "Feature", "properties": {"zone": "W"}, "geometry": geometry}
    document = {"type": "FeatureCollection", "features": [feature]}
    cells = "cell_id,lon,lat,zone\na,6.85,47.65,W\n"
    study = parse('zones = "z.json"\n', {"z.json": json.dumps(document).encode()}, cells=cells).study
    old = json.loads(json.dumps(study.to_json()))
    for key in ("projection", "water", "land", "layers"):
        del old["area"][key]
    del old["area"]["cells"][0]["azimuth"]
    old["area"]["geojson"] = document
    again = StudyDefinition.from_json(old)
    assert again == study
    assert again.area is not None and study.area is not None
    assert (again.area.projection, again.area.layers) == (None, ())
    assert projection_of(again.area) == projection_of(study.area)
    geojson, _ = shown_zones(again.area)
    assert geojson is not None
    assert of_geometry(geojson["features"][0]["geometry"]).exterior.is_ccw


def jagged(west: float, east: float) -> Polygon:
    """A zone whose east and west borders have a thousand corners, the same for its neighbours."""
    south_north = np.linspace(47.6, 47.7, 501)
    bend = 0.002 * np.sin(np.arange(501) / 5)
    up, down = np.column_stack([east + bend, south_north]), np.column_stack([west + bend, south_north])[::-1]
    return Polygon(np.concatenate([up, down]))


def test_zones_are_shown_with_fewer_vertices_and_keep_their_borders(
    written: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reports.geography.display.MAX_VERTICES", 400)
    west, east = jagged(6.8, 6.9), jagged(6.9, 7.0)
    # A neighbour of both: where the three meet, its own border is straight.
    top = [at for at in dict.fromkeys((*west.exterior.coords, *east.exterior.coords)) if at[1] == 47.7]
    north = Polygon([*sorted(top), (7.1, 47.8), (6.7, 47.8)])
    table = frame([west, east, north], zone=["W", "E", "N"])
    area = parse('zones = "z.gpkg"\n', {"z.gpkg": written(table, "z.gpkg")}).area
    assert shapely.coverage_is_valid(shapes_of(area))
    geojson, outlines = shown_zones(area)
    assert geojson is not None
    assert [feature["properties"] for feature in geojson["features"]] == [
        {"zone": "W"},
        {"zone": "E"},
        {"zone": "N"},
    ]
    shapes = of_features(geojson)
    assert 20 < shapely.get_num_coordinates(shapes).sum() <= 400
    assert shapely.coverage_is_valid(shapes)
    assert shapely.intersection(shapes[0], shapes[1]).length > 0.1  # they still share the border
    flat = in_metres(shapes, projection_of(area))
    for shape, rings in zip(flat, outlines, strict=True):
        assert len(rings) == 1
        assert shapely.hausdorff_distance(Polygon(rings[0]), shape) < 0.5


def test_zones_that_overlap_are_shown_too(written: Write) -> None:
    zones = [box(6.8, 47.6, 6.95, 47.7), EAST]
    area = parse('zones = "z.gpkg"\n', {"z.gpkg": written(frame(zones, zone=["W", "E"]), "z.gpkg")}).area
    geojson, outlines = shown_zones(area)
    assert geojson is not None
    shown = [of_geometry(feature["geometry"]).area for feature in geojson["features"]]
    assert shown == pytest.approx([0.015, 0.01], rel=1e-4)
    assert len(outlines) == 2


def test_an_area_without_shapes_shows_none() -> None:
    assert shown_zones(parse("", {}).area) == (None, [])
