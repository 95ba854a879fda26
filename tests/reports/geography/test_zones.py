"""Zones of any format and coordinate system: what is read, repaired, noted, and refused."""
# ruff: noqa: E501  (a message reads best on one line)

import io
import json
import zipfile
from collections.abc import Callable
from datetime import date
from typing import Any

import geopandas as gpd
import numpy as np
import pytest
import shapely
from shapely import LineString, Polygon, box, wkt

from reports.geography.areas import shapes_of
from tests.reports.geography.places import CELLS, EAST, WEST, frame, parse, problems

Write = Callable[..., bytes]
LAMBERT_93 = 2154
GAUSS_KRUEGER = "EPSG:31467"  # its axes are north, east; its datum is another


def two(**options: Any) -> gpd.GeoDataFrame:
    return frame([WEST, EAST], zone=["West", "East"], **options)


def collection(*features: tuple[dict[str, Any], Any], **members: Any) -> bytes:
    rows = [{"type": "Feature", "properties": p, "geometry": g} for p, g in features]
    return json.dumps({"type": "FeatureCollection", "features": rows, **members}).encode()


@pytest.mark.parametrize("name", ["zones.geojson", "zones.json", "zones.gpkg", "zones.zip"])
@pytest.mark.parametrize("crs", [4326, LAMBERT_93, GAUSS_KRUEGER])
def test_every_format_and_system_gives_the_same_zones(written: Write, name: str, crs: int | str) -> None:
    options = {"driver": "GeoJSON", "RFC7946": "NO"} if name.endswith("json") else {}
    data = written(two(crs=crs), name, **options)
    parsed = parse(f'zones = "{name}"\n', {name: data})
    assert parsed.area.zones == ("West", "East")
    assert [cell.zone for cell in parsed.area.cells] == ["West", "East", None]
    for shape, truth in zip(shapes_of(parsed.area), (WEST, EAST), strict=True):
        # The vertices came through the other system and back, rounded to 1e-7 degree (with a datum that GDAL
        # knows to a few metres only: 1e-4 degree).
        found, wanted = (np.unique(shapely.get_coordinates(each).round(3), axis=0) for each in (shape, truth))
        assert found.tolist() == wanted.tolist()
    at = shapely.get_coordinates(shapes_of(parsed.area))
    assert (at == at.round(7)).all()  # what the conversion adds beyond is no measurement
    assert parsed.notes == []


def test_a_shapefile_in_a_folder_is_read_with_the_files_beside_it(written: Write) -> None:
    with zipfile.ZipFile(io.BytesIO(written(two(crs=LAMBERT_93), "zones.zip"))) as archive:
        files = {name.removeprefix("folder/"): archive.read(name) for name in archive.namelist()}
    assert parse('zones = "zones.shp"\n', files).area.zones == ("West", "East")
    without = {name: data for name, data in files.items() if not name.endswith(".prj")}
    (found,) = problems('zones = "zones.shp"\n', without)
    assert found.startswith("zones.shp: crs: is missing: say which coordinate system the file has")
    without = {name: data for name, data in files.items() if not name.endswith(".dbf")}
    (found,) = problems('zones = "zones.shp"\n', without)
    assert found == "zones.shp: content: must have the .dbf of the shapefile, which holds the attributes"


def test_a_file_without_coordinate_system_is_refused(written: Write) -> None:
    (found,) = problems('zones = "zones.gpkg"\n', {"zones.gpkg": written(two(crs=None), "zones.gpkg")})
    assert found.startswith("zones.gpkg: crs: is missing: say which coordinate system the file has")


def test_the_column_with_the_code_can_be_named_and_may_hold_whole_numbers(written: Write) -> None:
    data = written(frame([WEST, EAST], insee=[90010, 90099]), "zones.gpkg")
    assert parse('zones = "zones.gpkg"\nzone_column = "insee"\n', {"zones.gpkg": data}).area.zones == (
        "90010",
        "90099",
    )
    (found,) = problems('zones = "zones.gpkg"\nzone_column = "inse"\n', {"zones.gpkg": data})
    assert found == (
        'zones.gpkg: attributes: unknown column, did you mean "insee"?; area.zone_column names the one with the '
        'code of the zone, got "inse"'
    )
    (found,) = problems('zones = "zones.gpkg"\n', {"zones.gpkg": data})
    assert "unknown column, known here: insee; area.zone_column names" in found


def test_a_layer_of_several_must_be_named(written: Write) -> None:
    written(two(), "zones.gpkg", layer="communes")
    data = written(frame([WEST], zone=["All"]), "zones.gpkg", layer="districts")
    files = {"zones.gpkg": data}
    assert parse('zones = "zones.gpkg"\nzones_layer = "communes"\n', files).area.zones == ("West", "East")
    assert parse('zones = "zones.gpkg"\nzones_layer = "districts"\n', files).area.zones == ("All",)
    (found,) = problems('zones = "zones.gpkg"\n', files)
    assert found == (
        "zones.gpkg: layers: must be one, or zones_layer must name one of communes, districts, got 2"
    )
    (found,) = problems('zones = "zones.gpkg"\nzones_layer = "commune"\n', files)
    assert found == (
        "zones.gpkg: layers: must have the layer that is named, has communes, districts, "
        'did you mean "communes"?, got "commune"'
    )


def test_dates_choose_the_zones_of_the_study(written: Write) -> None:
    days = [date(2020, 1, 1), date(2024, 4, 1), None]
    ends = [date(2024, 3, 29), date(2024, 12, 31), None]
    table = frame([WEST, WEST, EAST], zone=["West", "West", "East"], valid_from=days, valid_to=ends)
    for name in ("zones.gpkg", "zones.geojson", "zones.zip"):
        parsed = parse(f'zones = "{name}"\n', {name: written(table, name)})
        assert parsed.area.zones == ("West", "East")
        assert parsed.notes == [
            f'{name}: features[1]: was left out: it is valid on no day of the study, got "West"',
            f'{name}: features[2]: is valid on some days of the study only, and is used for all of them, got "West"',
        ]


@pytest.mark.parametrize(
    ("first_end", "second_begin", "expected"),
    [
        ("2024-03-30", "2024-03-30", "features[2].properties.zone: must be valid on other days than features[1] of the same code"),
        ("2024-03-30", "2024-03-31", "features[2]: must have one shape during the study, and features[1] is another"),
        ("2023-01-01", "2023-06-01", None),
        ("2023-06-01", "2023-06-01", "features[2].properties.zone: must be valid on other days than features[1]"),
    ],
)  # fmt: skip
def test_a_code_has_one_shape(
    written: Write, first_end: str, second_begin: str, expected: str | None
) -> None:
    table = frame(
        [WEST, EAST], zone=["West", "West"], valid_from=[None, second_begin], valid_to=[first_end, None]
    )
    files = {"zones.geojson": written(table, "zones.geojson")}
    if expected is None:
        assert parse('zones = "zones.geojson"\n', files).area.zones == ("West",)
    else:
        (found,) = problems('zones = "zones.geojson"\n', files)
        assert found.startswith(f"zones.geojson: {expected}")


def test_days_are_checked(written: Write) -> None:
    table = frame(
        [WEST, EAST], zone=["W", "E"], valid_from=["1/2/2024", "2024-02-02"], valid_to=[None, "2024-02-01"]
    )
    found = problems('zones = "zones.gpkg"\n', {"zones.gpkg": written(table, "zones.gpkg")})
    assert found == [
        'zones.gpkg: features[1].properties.valid_from: must be a date as 2017-05-31, or empty, got "1/2/2024"',
        "zones.gpkg: features[2].properties.valid_to: must not be before valid_from, got 2024-02-01",
    ]
    table = frame([WEST], zone=["W"], valid_to=["2024-02-01"])
    found = problems('zones = "zones.gpkg"\n', {"zones.gpkg": written(table, "old.gpkg")})
    assert found == ["zones.gpkg: features: must be valid on a day of the study, at least one"]


def test_a_ring_that_crosses_itself_is_repaired_and_noted(written: Write) -> None:
    bow_tie = Polygon([(6.8, 47.6), (6.9, 47.7), (6.9, 47.6), (6.8, 47.7)])
    table = frame([bow_tie, EAST], zone=["Bow", "East"])
    for name in ("zones.geojson", "zones.gpkg"):
        parsed = parse(f'zones = "{name}"\n', {name: written(table, name)})
        (note,) = parsed.notes
        assert note.startswith(f"{name}: features[1].geometry: was repaired (Self-intersection")
        assert note.endswith('got "Bow"')
        shape = shapes_of(parsed.area)[0]
        assert shape.is_valid
        assert shape.area == pytest.approx(0.005)  # both wings
        assert shape.covers(shapely.points([6.82, 6.88], 47.65)).all()


def test_what_holds_no_area_is_refused(written: Write) -> None:
    flat = wkt.loads("POLYGON ((6.8 47.6, 6.9 47.7, 6.8 47.6, 6.8 47.6))")
    (found,) = problems(
        'zones = "z.geojson"\n', {"z.geojson": written(frame([flat], zone=["Flat"]), "z.geojson")}
    )
    assert found.startswith("z.geojson: features[1].geometry: must hold an area, but nothing is left of it (")
    empty = written(frame([Polygon(), EAST], zone=["None", "East"]), "z.gpkg")
    (found,) = problems('zones = "z.gpkg"\n', {"z.gpkg": empty})
    assert found == "z.gpkg: features[1].geometry.type: must not be empty"
    absent = written(frame([None, EAST], zone=["None", "East"]), "absent.gpkg")
    (found,) = problems('zones = "z.gpkg"\n', {"z.gpkg": absent})
    assert "must be Polygon or MultiPolygon, but there is none" in found
    lines = written(frame([LineString(EAST.exterior)], zone=["Line"]), "lines.gpkg")
    (found,) = problems('zones = "z.gpkg"\n', {"z.gpkg": lines})
    assert found.endswith('features[1].geometry.type: must be Polygon or MultiPolygon, got "LineString"')


def test_overlaps_are_noted_with_their_size_and_the_first_zone_counts(written: Write) -> None:
    wide = box(6.84, 47.6, 7.0, 47.7)
    parsed = parse(
        'zones = "z.gpkg"\n', {"z.gpkg": written(frame([WEST, wide], zone=["West", "Wide"]), "z.gpkg")}
    )
    # 0.06 x 0.1 degrees at 47.65 north: 111.19 km/degree north, 75.1 east, on the ellipsoid within 0.3 %
    (note,) = parsed.notes
    assert note.startswith('z.gpkg: features[2]: overlaps zone "West" on 50.')
    assert 'km2, which count for that zone, got "Wide"' in note
    assert [cell.zone for cell in parsed.area.cells] == ["West", "Wide", None]
    assert parse('zones = "z.gpkg"\n', {"z.gpkg": written(two(), "touching.gpkg")}).notes == []


def test_a_point_on_a_border_is_in_the_first_zone(written: Write) -> None:
    cells = "cell_id,lon,lat,zone\na,6.9,47.65,\nb,6.9,47.65,East\n"
    for zones, first in ((("West", "East"), "West"), (("East", "West"), "East")):
        shapes = [WEST, EAST] if first == "West" else [EAST, WEST]
        data = written(frame(shapes, zone=list(zones)), f"{first}.gpkg")
        area = parse('zones = "z.gpkg"\n', {"z.gpkg": data}, cells=cells).area
        assert [cell.zone for cell in area.cells] == [first, "East"]


def test_codes_are_checked_in_every_format(written: Write) -> None:
    table = frame([WEST, EAST, EAST], zone=["West", None, "West"])
    for name in ("z.gpkg", "z.geojson"):
        assert problems(f'zones = "{name}"\n', {name: written(table, name)}) == [
            f"{name}: features[2].properties.zone: is missing, or empty: give each zone a name",
            f'{name}: features[3].properties.zone: must be unique, got "West"',
        ]


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("z.kml", b"<kml/>", 'name: must end in one of .geojson, .json, .gpkg, .zip, .shp, got "z.kml"'),
        ("z.gpkg", b"<OGRVRTDataSource/>", "content: must be a GeoPackage, but does not begin like one"),
        ("z.gpkg", b"SQLite format 3\0" + b"x" * 500, "content: must be a GeoPackage that can be read: "),
        ("z.shp", b"<OGRVRTDataSource/>", "content: must be a shapefile, but does not begin like one"),
        ("z.zip", b"PK nothing", "content: must be a zip file that can be read, without a password: "),
    ],
)
def test_what_is_no_file_of_zones_is_refused(name: str, data: bytes, expected: str) -> None:
    (found,) = problems(f'zones = "{name}"\n', {name: data})
    assert found.startswith(f"{name}: {expected}")


def test_a_zip_file_holds_one_shapefile(written: Write) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("readme.txt", "no shapes")
    (found,) = problems('zones = "z.zip"\n', {"z.zip": packed.getvalue()})
    assert found == 'z.zip: content: must hold one shapefile, or one GeoPackage, got "none"'
    geopackage = written(two(), "z.gpkg")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a/z.gpkg", geopackage)
        archive.writestr("__MACOSX/a/._z.gpkg", b"rubbish")
    assert parse('zones = "z.zip"\n', {"z.zip": packed.getvalue()}).area.zones == ("West", "East")


def test_a_bomb_is_not_unpacked(monkeypatch: pytest.MonkeyPatch, written: Write) -> None:
    monkeypatch.setattr("reports.geography.containers.MAX_UNPACKED_BYTES", 1_000_000)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("z.shp", bytes(1_000_001))
    assert len(packed.getvalue()) < 5_000
    (found,) = problems('zones = "z.zip"\n', {"z.zip": packed.getvalue()})
    assert found == "z.zip: content: must be at most 1 MB unpacked"


def test_the_system_that_a_geojson_file_names_must_exist_and_fit() -> None:
    ring = [[0, 0], [0, 10], [10, 10], [0, 0]]
    shape = {"type": "Polygon", "coordinates": [ring]}

    def named(name: str) -> bytes:
        return collection(({"zone": "a"}, shape), crs={"type": "name", "properties": {"name": name}})

    (found,) = problems('zones = "z.json"\n', {"z.json": named("urn:ogc:def:crs:EPSG::999999")})
    assert found == (
        "z.json: crs: must name a known coordinate system, or be left out for WGS 84, "
        'got "urn:ogc:def:crs:EPSG::999999"'
    )
    far = collection(
        ({"zone": "a"}, {"type": "Polygon", "coordinates": [[[0, 0], [0, 1e8], [1e8, 1e8], [0, 0]]]}),
        crs={"type": "name", "properties": {"name": "EPSG:32632"}},
    )
    (found,) = problems('zones = "z.json"\n', {"z.json": far})
    assert found.startswith("z.json: crs: must fit the positions: some lie nowhere on Earth")


def test_heights_are_dropped_and_uneven_positions_refused() -> None:
    high = [[6.8, 47.6, 300.0], [6.9, 47.6, 300.0], [6.9, 47.7, 301.0], [6.8, 47.6, 300.0]]
    area = parse(
        'zones = "z.json"\n',
        {"z.json": collection(({"zone": "a"}, {"type": "Polygon", "coordinates": [high]}))},
    ).area
    assert area.geojson is not None
    assert {len(at) for at in area.geojson["features"][0]["geometry"]["coordinates"][0]} == {2}
    uneven = [high[0], high[1][:2], high[2], high[3]]
    data = collection(({"zone": "a"}, {"type": "Polygon", "coordinates": [uneven]}))
    (found,) = problems('zones = "z.json"\n', {"z.json": data})
    assert "must hold positions of one length" in found


def test_sizes_are_bounded(monkeypatch: pytest.MonkeyPatch, written: Write) -> None:
    monkeypatch.setattr("reports.geography.zones.MAX_ZONES", 1)
    for name in ("z.gpkg", "z.geojson"):
        (found,) = problems(f'zones = "{name}"\n', {name: written(two(), name)})
        assert found == f"{name}: features: must be at most 1 zones, got 2"
    monkeypatch.setattr("reports.geography.zones.MAX_ZONES", 2)
    monkeypatch.setattr("reports.geography.zones.MAX_VERTICES", 9)
    (found,) = problems('zones = "z.gpkg"\n', {"z.gpkg": written(two(), "z.gpkg")})
    assert (
        found == "z.gpkg: features: must have at most 9 vertices together: simplify the zones first, got 10"
    )
    monkeypatch.setattr("reports.geography.sources.MAX_FILE_BYTES", 10)
    (found,) = problems('zones = "z.gpkg"\n', {"z.gpkg": written(two(), "z.gpkg")})
    assert found.startswith("z.gpkg: size: must be at most")


def test_cells_far_from_all_zones_have_none() -> None:
    assert [cell.zone for cell in parse("", {}).area.cells] == [None, None, None]
    assert CELLS.count("\n") == 4
