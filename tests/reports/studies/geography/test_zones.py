"""Zones of any format and coordinate system: what is read, repaired, noted, and refused."""

import io
import json
import zipfile
from datetime import date

import numpy as np
import pytest
import shapely
from shapely import LineString, Polygon, box, wkt

from reports.studies.geography.areas import shapes_of
from tests.reports.studies.geography import places
from tests.reports.studies.geography.places import EAST, WEST, frame, parse, problem_of_zones, written, zones

LAMBERT_93 = 2154
GAUSS_KRUEGER = "EPSG:31467"  # its axes are north, east; its datum is another
NO_SYSTEM = "crs: is missing: give the coordinate system of the file"
OTHER_DAYS = "features[2].properties.zone: must be valid on other days than features[1]"
FLAT = wkt.loads("POLYGON ((6.8 47.6, 6.9 47.7, 6.8 47.6, 6.8 47.6))")
NO_POLYGON = "geometry.type: must be Polygon or MultiPolygon"


def two(**options):
    return frame([WEST, EAST], zone=["West", "East"], **options)


def collection(ring, crs=None):
    geometry = {"type": "Polygon", "coordinates": [ring]}
    feature = {"type": "Feature", "properties": {"zone": "a"}, "geometry": geometry}
    named = {"crs": {"type": "name", "properties": {"name": crs}}} if crs else {}
    return json.dumps({"type": "FeatureCollection", "features": [feature], **named}).encode()


def zipped(**files):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return packed.getvalue()


UNKNOWN = collection([[0, 0], [0, 10], [10, 10], [0, 0]], "urn:ogc:def:crs:EPSG::999999")
NOWHERE = collection([[0, 0], [0, 1e8], [1e8, 1e8], [0, 0]], "EPSG:32632")
ENDS = [
    ("2024-03-30", "2024-03-30", f"{OTHER_DAYS} of the same code"),
    ("2024-03-30", "2024-03-31", "features[2]: must have one shape during the study, and features"),
    ("2023-01-01", "2023-06-01", None),
    ("2023-06-01", "2023-06-01", OTHER_DAYS),
]
NO_AREA = [
    ([FLAT], "z.geojson", "geometry: must hold an area, but nothing is left of it ("),
    ([Polygon(), EAST], "z.gpkg", "geometry.type: must not be empty"),
    ([None, EAST], "z.gpkg", f"{NO_POLYGON}, but there is none"),
    ([LineString(EAST.exterior)], "z.gpkg", f'{NO_POLYGON}, got "LineString"'),
]
NO_FILE = [
    ("z.kml", b"<kml/>", 'name: must end in one of .geojson, .json, .gpkg, .zip, .shp, got "z.kml"'),
    ("z.gpkg", b"<OGRVRTDataSource/>", "content: must be a GeoPackage, but does not start like one"),
    ("z.gpkg", b"SQLite format 3\0" + b"x" * 500, "content: must be a GeoPackage that can be read: "),
    ("z.shp", b"<OGRVRTDataSource/>", "content: must be a shapefile, but does not start like one"),
    ("z.zip", b"PK nothing", "content: must be a readable zip file without a password: "),
    ("z.zip", zipped(readme="x"), 'content: must hold one shapefile, or one GeoPackage, got "none"'),
    ("z.json", UNKNOWN, "crs: must name a known coordinate system, or be left out for WGS 84, got"),
    ("z.json", NOWHERE, "crs: must match the positions: some are not on Earth"),
]


class TestFiles:
    @pytest.mark.parametrize("name", ["zones.geojson", "zones.json", "zones.gpkg", "zones.zip"])
    @pytest.mark.parametrize("crs", [4326, LAMBERT_93, GAUSS_KRUEGER])
    def test_every_format_and_system_gives_the_same_zones(self, name, crs):
        options = {"driver": "GeoJSON", "RFC7946": "NO"} if name.endswith("json") else {}
        parsed = zones(two(crs=crs), name, **options)
        assert parsed.area.zones == ("West", "East")
        assert [cell.zone for cell in parsed.area.cells] == ["West", "East", None]
        for shape, truth in zip(shapes_of(parsed.area), (WEST, EAST), strict=True):
            # The vertices came through the other system and back, rounded to 1e-7 degree (with a datum that
            # GDAL knows to a few metres only: 1e-4 degree).
            both = shapely.get_coordinates(shape).round(3), shapely.get_coordinates(truth).round(3)
            assert np.unique(both[0], axis=0).tolist() == np.unique(both[1], axis=0).tolist()
        at = shapely.get_coordinates(shapes_of(parsed.area))
        assert (at == at.round(7)).all()  # further digits come from the conversion
        assert parsed.notes == []

    def test_a_shapefile_in_a_folder_is_read_with_the_files_beside_it(self):
        with zipfile.ZipFile(io.BytesIO(written(two(crs=LAMBERT_93), "zones.zip"))) as archive:
            files = {name.removeprefix("folder/"): archive.read(name) for name in archive.namelist()}
        assert parse('zones = "zones.shp"\n', files).area.zones == ("West", "East")
        no_attributes = "content: must have the .dbf of the shapefile, which holds the attributes"
        for ending, said in ((".prj", NO_SYSTEM), (".dbf", no_attributes)):
            without = {name: data for name, data in files.items() if not name.endswith(ending)}
            (found,) = places.problems('zones = "zones.shp"\n', without)
            assert found.startswith(f"zones.shp: {said}")
        assert problem_of_zones(two(crs=None)).startswith(NO_SYSTEM)

    def test_the_column_with_the_code_can_be_named_and_may_hold_whole_numbers(self):
        table = frame([WEST, EAST], insee=[90010, 90099])
        assert zones(table, more='zone_column = "insee"\n').area.zones == ("90010", "90099")
        found = problem_of_zones(table, more='zone_column = "inse"\n')
        assert found.startswith('attributes: unknown column, did you mean "insee"?; area.zone_column names')
        assert found.endswith('the one with the code of the zone, got "inse"')
        assert "unknown column, known here: insee; area.zone_column names" in problem_of_zones(table)

    def test_a_layer_of_several_must_be_named(self, tmp_path):
        path = tmp_path / "z.gpkg"
        two().to_file(path, layer="communes")
        frame([WEST], zone=["All"]).to_file(path, layer="districts")
        data = path.read_bytes()
        assert zones(data, more='zones_layer = "communes"\n').area.zones == ("West", "East")
        assert zones(data, more='zones_layer = "districts"\n').area.zones == ("All",)
        said = "layers: must be one, or zones_layer must name one of communes, districts, got 2"
        assert problem_of_zones(data) == said
        said = 'has communes, districts, did you mean "communes"?, got "commune"'
        assert problem_of_zones(data, more='zones_layer = "commune"\n').endswith(said)


class TestDays:
    @pytest.mark.parametrize("name", ["zones.gpkg", "zones.geojson", "zones.zip"])
    def test_dates_choose_the_zones_of_the_study(self, name):
        days, ends = [date(2020, 1, 1), date(2024, 4, 1), None], [date(2024, 3, 29), date(2024, 12, 31), None]
        table = frame([WEST, WEST, EAST], zone=["West", "West", "East"], valid_from=days, valid_to=ends)
        parsed = zones(table, name)
        assert parsed.area.zones == ("West", "East")
        first, second = parsed.notes
        assert "features[1]: was left out: it is not valid on any day of the study, got" in first
        assert "features[2]: is valid on only some days of the study, but is used for all of them" in second

    @pytest.mark.parametrize(("first_end", "second_begin", "expected"), ENDS)
    def test_a_code_has_one_shape(self, first_end, second_begin, expected):
        days = {"valid_from": [None, second_begin], "valid_to": [first_end, None]}
        table = frame([WEST, EAST], zone=["West", "West"], **days)
        if expected is None:
            assert zones(table, "z.geojson").area.zones == ("West",)
        else:
            assert problem_of_zones(table, "z.geojson").startswith(expected)

    def test_days_are_checked(self):
        days = {"valid_from": ["1/2/2024", "2024-02-02"], "valid_to": [None, "2024-02-01"]}
        data = written(frame([WEST, EAST], zone=["W", "E"], **days), "z.gpkg")
        first, second = places.problems('zones = "z.gpkg"\n', {"z.gpkg": data})
        assert "features[1].properties.valid_from: must be a date such as 2017-05-31, or empty, got" in first
        assert "features[2].properties.valid_to: must not be before valid_from, got 2024-02-01" in second
        found = problem_of_zones(frame([WEST], zone=["W"], valid_to=["2024-02-01"]))
        assert found == "features: must be valid on at least one day of the study"


class TestShapes:
    @pytest.mark.parametrize("name", ["z.geojson", "z.gpkg"])
    def test_a_ring_that_crosses_itself_is_repaired_and_noted(self, name):
        bow_tie = Polygon([(6.8, 47.6), (6.9, 47.7), (6.9, 47.6), (6.8, 47.7)])
        parsed = zones(frame([bow_tie, EAST], zone=["Bow", "East"]), name)
        (note,) = parsed.notes
        assert note.startswith(f"{name}: features[1].geometry: was repaired (Self-intersection")
        assert note.endswith('got "Bow"')
        shape = shapes_of(parsed.area)[0]
        assert shape.is_valid
        assert shape.area == pytest.approx(0.005)  # both wings
        assert shape.covers(shapely.points([6.82, 6.88], 47.65)).all()

    @pytest.mark.parametrize(("shapes", "name", "expected"), NO_AREA)
    def test_what_holds_no_area_is_refused(self, shapes, name, expected):
        found = problem_of_zones(frame(shapes, zone=["None", "East"][: len(shapes)]), name)
        assert found.startswith(f"features[1].{expected}")

    def test_overlaps_are_noted_with_their_size_and_the_first_zone_counts_on_a_border_too(self):
        parsed = zones(frame([WEST, box(6.84, 47.6, 7.0, 47.7)], zone=["West", "Wide"]))
        # 0.06 x 0.1 degrees at 47.65 north: 111.19 km/degree north, 75.1 east, on the ellipsoid within 0.3%
        (note,) = parsed.notes
        assert note.startswith('z.gpkg: features[2]: overlaps zone "West" on 50.')
        assert 'km2, which count for that zone, got "Wide"' in note
        assert [cell.zone for cell in parsed.area.cells] == ["West", "Wide", None]
        assert zones(two()).notes == []  # touching
        assert [cell.zone for cell in parse("", {}).area.cells] == [None, None, None]
        cells = "cell_id,lon,lat,zone\na,6.9,47.65,\nb,6.9,47.65,East\n"
        for shapes, names in (((WEST, EAST), ["West", "East"]), ((EAST, WEST), ["East", "West"])):
            area = zones(frame(list(shapes), zone=names), cells=cells).area
            assert [cell.zone for cell in area.cells] == [names[0], "East"]


class TestLimits:
    @pytest.mark.parametrize("name", ["z.gpkg", "z.geojson"])
    def test_codes_are_checked_in_every_format(self, name):
        data = written(frame([WEST, EAST, EAST], zone=["West", None, "West"]), name)
        assert places.problems(f'zones = "{name}"\n', {name: data}) == [
            f"{name}: features[2].properties.zone: is missing, or empty: give each zone a name",
            f'{name}: features[3].properties.zone: must be unique, got "West"',
        ]

    @pytest.mark.parametrize(("name", "data", "expected"), NO_FILE)
    def test_what_is_no_file_of_zones_is_refused(self, name, data, expected):
        assert problem_of_zones(data, name).startswith(expected)

    def test_a_zip_file_may_hold_a_geopackage_but_a_bomb_is_not_unpacked(self, monkeypatch):
        files = {"a/z.gpkg": written(two(), "z.gpkg"), "__MACOSX/a/._z.gpkg": b"rubbish"}
        assert zones(zipped(**files), "z.zip").area.zones == ("West", "East")
        monkeypatch.setattr("reports.studies.geography.files.containers.MAX_UNPACKED_BYTES", 1_000_000)
        packed = zipped(**{"z.shp": bytes(1_000_001)})
        assert len(packed) < 5_000
        assert problem_of_zones(packed, "z.zip") == "content: must be at most 1 MB unpacked"

    def test_heights_are_dropped_and_uneven_positions_refused(self):
        high = [[6.8, 47.6, 300.0], [6.9, 47.6, 300.0], [6.9, 47.7, 301.0], [6.8, 47.6, 300.0]]
        area = zones(collection(high), "z.json").area
        assert {len(at) for at in area.geojson["features"][0]["geometry"]["coordinates"][0]} == {2}
        uneven = [high[0], high[1][:2], *high[2:]]
        assert "must hold positions of one length" in problem_of_zones(collection(uneven), "z.json")

    def test_sizes_are_bounded(self, monkeypatch):
        monkeypatch.setattr("reports.studies.geography.zones.MAX_ZONES", 1)
        for name in ("z.gpkg", "z.geojson"):
            assert problem_of_zones(two(), name) == "features: must be at most 1 zones, got 2"
        monkeypatch.setattr("reports.studies.geography.zones.MAX_ZONES", 2)
        monkeypatch.setattr("reports.studies.geography.zones.MAX_VERTICES", 9)
        said = "features: must have at most 9 vertices together: simplify the zones first, got 10"
        assert problem_of_zones(two()) == said
        monkeypatch.setattr("reports.studies.geography.files.sources.MAX_FILE_BYTES", 10)
        assert problem_of_zones(two()).startswith("size: must be at most")
