"""Files of reported places: zones, squares, hexagons and pictures, with and without the density."""

import base64
import csv
import html
import io
import json
import re
from dataclasses import replace
from decimal import Decimal

import geopandas
import h3
import numpy as np
import pyarrow.parquet as pq
import pytest
import shapely
from django.urls import reverse
from PIL import Image

from reports.estimates.locations import location_windows, windows_with_maps
from reports.estimates.options import ReportOptions
from reports.exports.drawing import maps as map_drawing
from reports.exports.formats.choosing import FORMATS, PLACES
from reports.exports.places.selection import provenance, select_places, square_columns
from reports.maps import density as maps_density
from reports.models import DensityMap, LocationTally, Study
from reports.studies.geography.hexagons import finest_resolution, hexagon_ring
from reports.studies.geography.projection import LocalProjection
from reports.studies.geography.stored import NO_ZONE
from reports.studies.studyfile import StudyDefinition
from tests.reports.exports.conftest import WHOLE
from tests.reports.map_factory import GRID, ZONES
from tests.reports.studies.test_studyfile_location import AREA, STUDY, parse, problems

pytestmark = pytest.mark.django_db
QUERY = "?from=2024-05-30&to=2024-06-02"
ESTIMATE, UNCERTAINTY = ReportOptions(), ReportOptions(layer="uncertainty")
OF_DENSITY = ("density", "std_error", "low", "high")
OF_ZONES = ("subscribers", "std_error", "ci_low", "ci_high")


def written(study, content, ending, options=ESTIMATE):
    return FORMATS[content][ending].write(select_places(study, WHOLE, options=options))


def table(study, content="zones"):
    return list(csv.DictReader(io.StringIO(written(study, content, "csv").decode())))


def counts_of(study):
    (found,) = location_windows(study, [WHOLE])
    return found.counts


def areas_m2(frame, study):
    return frame.to_crs(study.area.projection).area.tolist()


class TestZones:
    def test_csv_has_intervals_and_where_they_come_from_and_json_the_same(self, computed):
        rows = table(computed)
        assert [row["zone"] for row in rows] == [*ZONES, ""]  # the last one: in no zone
        assert sum(int(row["reports"]) for row in rows) == int(rows[0]["n_reports"])
        kept = DensityMap.objects.get().figures
        figures = [*kept["zones"], kept["no_zone"]]
        for place, row in zip((0, 1, 2, 3, NO_ZONE), rows, strict=True):
            is_in = computed.area.grid_map.zones == place
            assert int(row["reports"]) == int(counts_of(computed)[is_in].sum())
            assert int(row["n_squares"]) == int(is_in.sum())
            assert float(row["subscribers"]) == figures[place]["count"]
            assert float(row["ci_low"]) <= float(row["subscribers"]) <= float(row["ci_high"])
            assert float(row["std_error"]) == figures[place]["std_error"]
            expected = {
                "study": "fair-2024", "first_day": "2024-05-30", "last_day": "2024-06-02",
                "plan_version": "1", "radius_m": "200.0", "unit": "place", "mechanism": "planar-laplace",
                "n_visitors": "3000", "n_reports": "3000", "places_per_person": "4",
                "timezone": computed.timezone, "ci_level": "0.95", "status": "ok", "density_status": "done",
            }  # fmt: skip
            assert {name: row[name] for name in expected} == expected
        certified = location_windows(computed, [WHOLE])[0].spec.certified
        assert certified <= Decimal(float(rows[0]["epsilon_per_m"])) <= certified * (1 + Decimal("1e-15"))
        document = json.loads(written(computed, "zones", "json"))
        zones = document.pop("zones")
        assert document.pop("density_status") == document.pop("status").replace("ok", "done")
        for zone, row in zip(zones, rows, strict=True):
            values = {**document, **zone}
            assert {name: "" if value is None else str(value) for name, value in values.items()} == row

    @pytest.mark.parametrize("ending", ["geojson", "geoparquet"])
    def test_they_have_their_shapes(self, computed, ending):
        read = geopandas.read_file if ending == "geojson" else geopandas.read_parquet
        frame = read(io.BytesIO(written(computed, "zones", ending)))
        assert frame["zone"].tolist()[:-1] == list(ZONES)
        assert frame["zone"].isna().tolist() == [False] * 4 + [True] == frame.geometry.isna().tolist()
        assert frame["subscribers"].tolist() == [float(row["subscribers"]) for row in table(computed)]
        assert areas_m2(frame.iloc[:4], computed) == pytest.approx([0.75 * 835_000, *[835_000] * 3], rel=0.01)


class TestStates:
    def test_before_the_density_is_computed_counts_are_there_and_the_rest_is_null(self, located):
        rows = table(located)
        assert sum(int(row["reports"]) for row in rows) > 1500
        assert {row[name] for row in rows for name in OF_ZONES} == {""}
        assert {row["density_status"] for row in rows} == {"not_computed"}
        squares = json.loads(written(located, "squares", "geojson"))
        assert squares["provenance"]["density_status"] == "not_computed"
        properties = [feature["properties"] for feature in squares["features"]]
        assert [row["reports"] for row in properties] == counts_of(located).ravel().tolist()
        assert {row[name] for row in properties for name in OF_DENSITY} == {None}
        content = io.BytesIO(written(located, "squares", "geoparquet"))
        assert str(pq.read_schema(content).field("density").type) == "double"
        assert geopandas.read_parquet(content)["density"].isna().all()
        found = {(row["density"], row["density_status"]) for row in table(located, "hexagons")}
        assert found == {("", "not_computed")}
        assert "not computed yet" in texts(written(located, "maps", "svg"))

    def test_how_far_the_density_is_and_why_zones_have_no_estimate_stands_in_the_file(self, computed):
        for state in ("waiting", "running", "failed"):
            DensityMap.objects.update(state=state)
            found = {(row["density_status"], row["subscribers"]) for row in table(computed)}
            assert found == {(state, "")}
        row = DensityMap.objects.get()
        row.state, row.figures = "done", row.figures | {"zones": [], "no_zone": None}
        row.save()
        assert {zone["density_status"] for zone in table(computed)} == {"too_many_zones"}

    def test_a_zone_smaller_than_a_square_has_no_estimate(self, computed):
        row, area = DensityMap.objects.get(), computed.area
        zones = area.grid_map.zones.copy()
        zones[zones == 3] = -1
        area.grid_zones = zones.tobytes()
        area.save()
        row.figures["zones"][3] = dict.fromkeys(row.figures["zones"][3]) | {"noisy": 0}
        (found,) = location_windows(computed, [WHOLE])
        row.fingerprint = found.fingerprint(area)
        row.save()
        last = table(Study.objects.get())[3]
        assert (last["n_squares"], last["reports"], last["subscribers"]) == ("0", "0", "")
        assert last["density_status"] == "no_square"

    def test_a_suppressed_window_has_a_status_and_no_numbers(self, computed):
        Study.objects.update(small_cell=3001)
        study = Study.objects.get()
        for row in table(study):
            assert row["status"] == "suppressed"
            assert {row[name] for name in ("reports", "n_visitors", "n_reports", *OF_ZONES)} == {""}
        squares = json.loads(written(study, "squares", "geojson"))
        assert squares["provenance"]["status"] == "suppressed"
        numbers = ("reports", *OF_DENSITY)
        found = {feature["properties"][name] for feature in squares["features"] for name in numbers}
        assert found == {None}
        hexagons = {(row["reports"], row["density"], row["status"]) for row in table(study, "hexagons")}
        assert hexagons == {("", "", "suppressed")}
        for image in images(written(study, "maps", "svg")):
            assert len(np.unique(image.reshape(-1, 4), axis=0)) == 1


class TestSquares:
    def rows(self, study):
        return geopandas.read_file(io.BytesIO(written(study, "squares", "geojson")))

    def test_they_have_reports_and_density_and_are_where_they_are(self, computed):
        frame, stored = self.rows(computed), computed.area.grid_map
        assert frame["square"].tolist() == list(range(GRID.n_cells))
        assert frame["reports"].tolist() == counts_of(computed).ravel().tolist()
        layers = DensityMap.objects.get().get_layers(GRID.shape).reshape(4, -1)
        for name, layer in zip(OF_DENSITY, layers, strict=True):
            assert frame[name].tolist() == pytest.approx(layer.tolist(), abs=1e-5)
        names = [*ZONES, None]
        zones = frame["zone"].astype(object).where(frame["zone"].notna(), None).tolist()
        assert zones == [names[place] for place in stored.zones.ravel().tolist()]
        assert (frame["land"].tolist(), frame.crs.to_epsg()) == (stored.land.ravel().tolist(), 4326)
        centres = frame.to_crs(computed.area.projection).geometry.centroid
        x_m, y_m = GRID.centres()
        assert centres.x.tolist() == pytest.approx(x_m.tolist(), abs=0.05)
        assert centres.y.tolist() == pytest.approx(y_m.tolist(), abs=0.05)
        assert areas_m2(frame, computed) == pytest.approx([200.0 * 200.0] * GRID.n_cells, rel=1e-3)
        assert frame["x_m"].tolist() == x_m.tolist() and all(ring.is_ccw for ring in frame.geometry.exterior)
        # Neighbours share their corners: nothing between them, nothing twice.
        flat = frame.set_crs(None, allow_override=True)
        assert flat.union_all().area == pytest.approx(flat.area.sum(), rel=1e-9)

    def test_across_the_date_line_they_stay_whole(self, located):
        located.area.projection = "+proj=laea +lat_0=-17.00 +lon_0=180.00 +datum=WGS84 +units=m +no_defs"
        located.area.save()
        bounds = self.rows(Study.objects.get()).bounds
        assert (bounds.maxx - bounds.minx).max() < 0.01
        assert (bounds.minx.min(), bounds.maxx.max()) == pytest.approx((179.985, 180.015), abs=0.001)

    def test_geoparquet_has_types_shapes_and_provenance(self, computed):
        content = written(computed, "squares", "geoparquet")
        frame = geopandas.read_parquet(io.BytesIO(content))
        assert shapely.equals_exact(frame.geometry, self.rows(computed).geometry, 1e-9).all()
        lon, lat = LocalProjection(computed.area.projection).to_degrees(frame["x_m"], frame["y_m"])
        assert shapely.contains_xy(frame.geometry, lon, lat).all()
        schema = pq.read_schema(io.BytesIO(content))
        about = json.loads(schema.metadata[b"mobility_reports"])
        assert about == provenance(select_places(computed, WHOLE))
        assert (about["crs"], about["projection"]) == ("OGC:CRS84", computed.area.projection)
        types = {name: str(schema.field(name).type) for name in ("reports", "density", "land", "x_m")}
        assert types == {"reports": "int64", "density": "double", "land": "bool", "x_m": "double"}
        assert content == written(computed, "squares", "geoparquet")


class TestHexagons:
    def test_they_are_sums_of_the_squares_with_their_centres_in_them(self, computed):
        columns = square_columns(select_places(computed, WHOLE))
        projection, expected = LocalProjection(computed.area.projection), {}
        names = ("x_m", "y_m", "reports", "density")
        for x_m, y_m, *values in zip(*(columns[name] for name in names), strict=True):
            lon, lat = projection.to_degrees(x_m, y_m)
            hexagon = h3.latlng_to_cell(lat, lon, 8)
            expected[hexagon] = np.add(expected.get(hexagon, 0.0), [1, *values])
        rows = table(computed, "hexagons")
        assert [row["h3"] for row in rows] == sorted(expected) and len(rows) > 15
        for row in rows:
            found = [float(row[name]) for name in ("n_squares", "reports", "density")]
            assert found == pytest.approx(expected[row["h3"]], abs=1e-4)
            about = (row["study"], row["mechanism"], row["density_status"])
            assert about == ("fair-2024", "planar-laplace", "done")
        assert sum(int(row["n_squares"]) for row in rows) == GRID.n_cells
        assert sum(int(row["reports"]) for row in rows) == 3000
        content = written(computed, "hexagons", "geojson")
        frame = geopandas.read_file(io.BytesIO(content))
        assert frame["reports"].tolist() == [int(row["reports"]) for row in rows]
        areas = [h3.cell_area(name, unit="m^2") for name in frame["h3"]]
        assert areas_m2(frame, computed) == pytest.approx(areas, rel=0.01)
        about = json.loads(content)["provenance"]
        assert about["h3_resolution"] == 8 and "hexagon that contains its centre" in about["hexagons"]
        # Rings are closed and stay whole across the date line.
        ring = hexagon_ring(h3.latlng_to_cell(-17.0, 180.0, 5))
        assert ring[0] == ring[-1]
        assert max(lon for lon, _ in ring) - min(lon for lon, _ in ring) < 1

    @pytest.mark.parametrize("step_m", [10, 200, 314, 315, 1000, 50_000])
    def test_the_finest_resolution_is_the_last_one_that_holds_a_square(self, step_m):
        finest = finest_resolution(6.85, 47.6, step_m=step_m)
        cells = [h3.latlng_to_cell(47.6, 6.85, each) for each in (finest, finest + 1)]
        areas = [h3.cell_area(cell, unit="m^2") for cell in cells]
        assert areas[0] >= step_m**2 > areas[1]

    def test_a_study_file_may_ask_for_a_resolution_that_works(self):
        definition = parse(STUDY + "h3_resolution = 9\n" + AREA)
        assert definition.location.h3_resolution == 9
        assert StudyDefinition.from_json(json.loads(json.dumps(definition.to_json()))) == definition
        (found,) = problems(STUDY + "h3_resolution = 10\n" + AREA)
        assert "h3_resolution" in found
        assert "must be at most 9: finer hexagons are smaller than the squares of 200 m" in found
        (found,) = problems(STUDY + "h3_resolution = 16\n" + AREA)
        assert "from 0 to 15" in found
        older = parse().to_json()
        del older["location"]["h3_resolution"]
        assert StudyDefinition.from_json(older) == parse()  # definitions without it stay readable


def images(svg):
    """Squares of each map, the southern row first; a pixel each."""
    found = re.findall(r'"data:image/png;base64,\s*([^"]+)"', svg.decode())
    return [np.array(Image.open(io.BytesIO(base64.b64decode(text))).convert("RGBA")) for text in found]


def expected_images(places, options):
    windows = windows_with_maps(places.study, places.found.spec)
    of_scale = maps_density.single_days_and_whole(places.study, windows)
    scale = maps_density.density_scale(location_windows(places.study, of_scale), options=options)
    shown = {"grid_map": places.grid_map, "scale": scale, "options": options}
    frame = maps_density.density_frame(places.found, places.kept, **shown)
    colours = [map_drawing.MAP_COLOURS[f"--map-{place}"] for place in range(1, 6)]
    see_through = [0, 0, 0, 0]  # the ground and water show
    rgba = np.array([*([*bytes.fromhex(each[1:]), 255] for each in colours), see_through], np.uint8)
    return [rgba[np.array(panel["classes"])].reshape(*GRID.shape, 4) for panel in frame["panels"]]


def texts(svg):
    return html.unescape(" ".join(re.findall(r"<!-- (.*?) -->", svg.decode(), re.DOTALL)))


class TestPictures:
    @pytest.mark.parametrize("options", [ESTIMATE, UNCERTAINTY], ids=["estimate", "uncertainty"])
    def test_svg_has_both_maps_in_the_classes_of_the_page_and_says_what_they_are(self, computed, options):
        svg = written(computed, "maps", "svg", options)
        expected = expected_images(select_places(computed, WHOLE), options)
        for found, wanted in zip(images(svg), expected, strict=True):
            assert len(np.unique(wanted.reshape(-1, 4), axis=0)) > 2
            assert found.shape == wanted.shape
            assert (found == wanted).all() or (found[::-1] == wanted).all()
        assert len(expected) == 2
        for said in ("Reported (noisy)", "deconvolved", "or more", "planar-laplace", "200 m", computed.name):
            assert said in texts(svg)
        assert "not computed yet" not in texts(svg)

    def test_north_is_up_and_both_maps_stand_side_by_side(self, computed):
        tally = LocationTally.objects.get()
        counts = np.zeros_like(tally.array)
        counts[0, 0, 1] = 900
        tally.set(counts)
        png = written(computed, "maps", "png")
        assert png == written(computed, "maps", "png")
        picture = np.array(Image.open(io.BytesIO(png)).convert("RGB"))
        assert picture.shape[1] == 1520
        top, bottom = int(0.98 * 200), int((0.98 + 3.55 * 20 / 16) * 200)
        colours = [bytes.fromhex(map_drawing.MAP_COLOURS[f"--map-{place}"][1:]) for place in range(1, 6)]
        filled = np.any([(picture[top:bottom] == list(colour)).all(axis=2) for colour in colours], axis=0)
        left, right = filled[:, 30:740], filled[:, 780:1490]
        rows, columns = np.nonzero(left)
        assert rows.size > 500 and rows.min() > 0.9 * left.shape[0]
        assert columns.max() < 0.1 * left.shape[1]
        assert not right.any()


class TestAddresses:
    def links(self, reader):
        page = reader.get(reverse("reports:maps", args=["fair-2024"]) + QUERY + "&layer=uncertainty")
        found = re.findall(r'href="([^"]+)" (?:download|data-file)', page.content.decode())
        return [html.unescape(link) for link in found]

    def test_the_page_links_to_every_file(self, reader, computed, monkeypatch):
        formats = [(content, *each) for content in PLACES for each in FORMATS[content].items()]
        drawn, links = [], self.links(reader)
        assert len(links) == len(formats)
        for *key, found in formats:
            if found.is_drawn:
                stub = replace(found, write=lambda places: drawn.append(places.options) or b"drawn")
                monkeypatch.setitem(FORMATS[key[0]], key[1], stub)
            link = reverse("reports:maps_file", args=["fair-2024", *key]) + QUERY
            link += "&layer=uncertainty" if found.is_drawn else ""
            assert link in links
            answer = reader.get(link)
            assert (answer.status_code, answer["Content-Type"]) == (200, found.content_type)
            name = f"fair-2024_{key[0]}_2024-05-30_2024-06-02.{found.ending}"
            assert answer["Content-Disposition"] == f'attachment; filename="{name}"'
            assert answer.content == (b"drawn" if found.is_drawn else written(computed, *key))
        assert drawn == [UNCERTAINTY] * 2

    def test_what_is_not_there_is_refused(self, reader, located):
        address = reverse("reports:maps_file", args=["fair-2024", "zones", "csv"])
        answer = reader.get(address, {"from": "2030-01-01"})
        assert answer.status_code == 400 and "date range must lie between" in answer.content.decode()
        assert reader.post(address).status_code == 405
        located.area.h3_resolution = None
        located.area.save()
        assert not [link for link in self.links(reader) if "/maps/hexagons." in link]
        for content in ("zones.xlsx", "people.csv", "squares.png", "hexagons.csv"):
            assert reader.get(f"/studies/fair-2024/maps/{content}").status_code == 404
