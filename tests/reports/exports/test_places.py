"""Files of reported places: zones, squares and pictures, before and after the density is computed."""

import base64
import csv
import html
import io
import json
import re
from decimal import Decimal
from typing import Any

import geopandas
import numpy as np
import pyarrow.parquet as pq
import pytest
import shapely
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from numpy.typing import NDArray
from PIL import Image

from reports import maps_density, tasks
from reports.exports import map_drawing
from reports.exports.places import Places, provenance, select_places
from reports.exports.places_formats import PLACES_FORMATS, places_formats
from reports.geography.projection import LocalProjection
from reports.geography.stored import NO_ZONE
from reports.locations import location_windows, windows_with_maps
from reports.models import DensityMap, LocationTally, Study
from reports.options import ReportOptions
from reports.selectors import Window
from reports.services import densities
from tests.reports import map_factory
from tests.reports.map_factory import GRID, ZONES

pytestmark = pytest.mark.django_db
WHOLE = Window(1, 4)
QUERY = "?from=2024-05-30&to=2024-06-02"
ESTIMATE, UNCERTAINTY = ReportOptions(), ReportOptions(layer="uncertainty")


@pytest.fixture
def located() -> Study:
    return map_factory.create_located()


@pytest.fixture
def computed(located: Study, monkeypatch: pytest.MonkeyPatch) -> Study:
    """The study with the density of all its days together."""
    asked: list[int] = []
    monkeypatch.setattr(tasks.compute_density, "delay_on_commit", asked.append)
    densities.ask_for_maps(located, [WHOLE])
    tasks.compute_density(asked[0])
    return located


def written(study: Study, content: str, ending: str, options: ReportOptions = ESTIMATE) -> bytes:
    return PLACES_FORMATS[content, ending].write(select_places(study, WHOLE), options)


def table(study: Study) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(written(study, "zones", "csv").decode())))


def counts_of(study: Study) -> NDArray[np.int64]:
    (found,) = location_windows(study, [WHOLE])
    return found.counts


# --- zones ------------------------------------------------------------------------------------


def test_csv_has_zones_with_intervals_and_where_they_come_from(computed: Study) -> None:
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
        assert (row["status"], row["density_status"]) == ("ok", "done")
    assert {row["mechanism"] for row in rows} == {"planar-laplace"}
    first = rows[0]
    assert (first["study"], first["first_day"], first["last_day"]) == (
        "fair-2024",
        "2024-05-30",
        "2024-06-02",
    )
    assert (first["plan_version"], first["radius_m"], first["unit"]) == ("1", "200.0", "place")
    assert (first["n_visitors"], first["n_reports"], first["places_per_person"]) == ("3000", "3000", "4")
    assert first["timezone"] == computed.timezone
    assert first["ci_level"] == "0.95"


def test_epsilon_is_never_below_what_is_certified(located: Study) -> None:
    (found,) = location_windows(located, [WHOLE])
    shown = Decimal(float(table(located)[0]["epsilon_per_m"]))
    assert found.spec.certified <= shown <= found.spec.certified * (1 + Decimal("1e-15"))


def test_json_has_what_the_csv_has(computed: Study) -> None:
    document = json.loads(written(computed, "zones", "json"))
    zones = document.pop("zones")
    assert document.pop("density_status") == document.pop("status").replace("ok", "done")
    for zone, row in zip(zones, table(computed), strict=True):
        found = {name: "" if value is None else str(value) for name, value in {**document, **zone}.items()}
        assert found == row


def test_before_the_density_is_computed_counts_are_there_and_the_rest_is_null(located: Study) -> None:
    rows = table(located)
    assert sum(int(row["reports"]) for row in rows) > 1500
    assert {row["subscribers"] + row["std_error"] + row["ci_low"] + row["ci_high"] for row in rows} == {""}
    assert {row["density_status"] for row in rows} == {"not_computed"}
    squares = json.loads(written(located, "squares", "geojson"))
    assert squares["provenance"]["density_status"] == "not_computed"
    properties = [feature["properties"] for feature in squares["features"]]
    assert [row["reports"] for row in properties] == counts_of(located).ravel().tolist()
    assert {row[name] for row in properties for name in ("density", "std_error", "low", "high")} == {None}


@pytest.mark.parametrize("state", ["waiting", "running", "failed"])
def test_how_far_the_density_is_stands_in_the_file(computed: Study, state: str) -> None:
    DensityMap.objects.update(state=state)
    rows = table(computed)
    assert {(row["density_status"], row["subscribers"]) for row in rows} == {(state, "")}


def test_zones_without_an_estimate_say_why(computed: Study) -> None:
    row = DensityMap.objects.get()
    row.figures |= {"zones": [], "no_zone": None}
    row.save()
    assert {zone["density_status"] for zone in table(computed)} == {"too_many_zones"}


def test_a_zone_smaller_than_a_square_has_no_estimate(computed: Study) -> None:
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


def test_a_suppressed_window_has_a_status_and_no_numbers(computed: Study) -> None:
    Study.objects.update(small_cell=3001)
    study = Study.objects.get()
    for row in table(study):
        assert row["status"] == "suppressed"
        numbers = ("reports", "subscribers", "std_error", "ci_low", "ci_high", "n_visitors", "n_reports")
        assert {row[name] for name in numbers} == {""}
    squares = json.loads(written(study, "squares", "geojson"))
    assert squares["provenance"]["status"] == "suppressed"
    numbers = ("reports", "density", "std_error", "low", "high")
    found = {feature["properties"][name] for feature in squares["features"] for name in numbers}
    assert found == {None}
    for image in images(written(study, "maps", "svg")):
        assert len(np.unique(image.reshape(-1, 4), axis=0)) == 1


# --- squares ----------------------------------------------------------------------------------


def square_rows(study: Study) -> Any:
    return geopandas.read_file(io.BytesIO(written(study, "squares", "geojson")))


def test_squares_have_reports_and_density(computed: Study) -> None:
    frame = square_rows(computed)
    assert frame["square"].tolist() == list(range(GRID.n_cells))
    assert frame["reports"].tolist() == counts_of(computed).ravel().tolist()
    layers = DensityMap.objects.get().get_layers(GRID.shape).reshape(4, -1)
    for name, layer in zip(("density", "std_error", "low", "high"), layers, strict=True):
        assert frame[name].tolist() == pytest.approx(layer.tolist(), abs=1e-5)
    names = [*ZONES, None]
    assert frame["zone"].astype(object).where(frame["zone"].notna(), None).tolist() == [
        names[place] for place in computed.area.grid_map.zones.ravel().tolist()
    ]
    assert frame["land"].tolist() == computed.area.grid_map.land.ravel().tolist()


def test_squares_are_where_they_are(located: Study) -> None:
    frame = square_rows(located)
    assert frame.crs.to_epsg() == 4326
    metres = frame.to_crs(located.area.projection)
    x_m, y_m = GRID.centres()
    assert metres.geometry.centroid.x.tolist() == pytest.approx(x_m.tolist(), abs=0.05)
    assert metres.geometry.centroid.y.tolist() == pytest.approx(y_m.tolist(), abs=0.05)
    assert metres.area.tolist() == pytest.approx([200.0 * 200.0] * GRID.n_cells, rel=1e-3)
    assert frame["x_m"].tolist() == x_m.tolist()
    assert all(ring.is_ccw for ring in frame.geometry.exterior)
    # Neighbours share their corners: nothing between them, nothing twice.
    flat = frame.set_crs(None, allow_override=True)
    assert flat.union_all().area == pytest.approx(flat.area.sum(), rel=1e-9)


def test_squares_across_the_date_line_stay_whole(located: Study) -> None:
    located.area.projection = "+proj=laea +lat_0=-17.00 +lon_0=180.00 +datum=WGS84 +units=m +no_defs"
    located.area.save()
    bounds = square_rows(Study.objects.get()).bounds
    assert (bounds.maxx - bounds.minx).max() < 0.01
    assert (bounds.minx.min(), bounds.maxx.max()) == pytest.approx((179.985, 180.015), abs=0.001)


def test_geoparquet_has_types_shapes_and_provenance(computed: Study) -> None:
    content = written(computed, "squares", "geoparquet")
    frame = geopandas.read_parquet(io.BytesIO(content))
    assert shapely.equals_exact(frame.geometry, square_rows(computed).geometry, 1e-9).all()
    lon, lat = LocalProjection(computed.area.projection).to_degrees(frame["x_m"], frame["y_m"])
    assert shapely.contains_xy(frame.geometry, lon, lat).all()
    schema = pq.read_schema(io.BytesIO(content))
    about = json.loads(schema.metadata[b"mobility_reports"])
    assert about == provenance(select_places(computed, WHOLE))
    assert (about["crs"], about["projection"]) == ("OGC:CRS84", computed.area.projection)
    types = {name: str(schema.field(name).type) for name in ("reports", "density", "land", "x_m")}
    assert types == {"reports": "int64", "density": "double", "land": "bool", "x_m": "double"}
    assert content == written(computed, "squares", "geoparquet")


def test_geoparquet_without_a_density_has_nulls_of_the_same_types(located: Study) -> None:
    content = written(located, "squares", "geoparquet")
    schema = pq.read_schema(io.BytesIO(content))
    assert str(schema.field("density").type) == "double"
    assert geopandas.read_parquet(io.BytesIO(content))["density"].isna().all()


@pytest.mark.parametrize("ending", ["geojson", "geoparquet"])
def test_zones_have_their_shapes(computed: Study, ending: str) -> None:
    content = io.BytesIO(written(computed, "zones", ending))
    read = geopandas.read_file if ending == "geojson" else geopandas.read_parquet
    frame = read(content)
    assert frame["zone"].tolist()[:-1] == list(ZONES)
    assert frame["zone"].isna().tolist() == [False] * 4 + [True] == frame.geometry.isna().tolist()
    assert frame["subscribers"].tolist() == [float(row["subscribers"]) for row in table(computed)]
    metres = frame.iloc[:4].to_crs(computed.area.projection)
    assert metres.area.tolist() == pytest.approx([0.75 * 835_000, *[835_000] * 3], rel=0.01)


# --- pictures ---------------------------------------------------------------------------------


def images(svg: bytes) -> list[NDArray[np.uint8]]:
    """Squares of each map, the southern row first; a pixel each."""
    found = re.findall(r'"data:image/png;base64,\s*([^"]+)"', svg.decode())
    return [np.array(Image.open(io.BytesIO(base64.b64decode(text))).convert("RGBA")) for text in found]


def expected_images(places: Places, options: ReportOptions) -> list[NDArray[np.uint8]]:
    windows = windows_with_maps(places.study, places.found.spec)
    of_scale = maps_density.single_days_and_whole(places.study, windows)
    scale = maps_density.density_scale(location_windows(places.study, of_scale), options=options)
    frame = maps_density.density_frame(
        places.found, places.kept, grid_map=places.grid_map, scale=scale, options=options
    )
    colours = [map_drawing.MAP_COLOURS[f"--map-{place}"] for place in range(1, 6)] + [map_drawing.GROUND]
    table = np.array([[*bytes.fromhex(colour[1:]), 255] for colour in colours], np.uint8)
    return [table[np.array(panel["classes"])].reshape(*GRID.shape, 4) for panel in frame["panels"]]


@pytest.mark.parametrize("options", [ESTIMATE, UNCERTAINTY], ids=["estimate", "uncertainty"])
def test_svg_has_both_maps_in_the_classes_of_the_page(computed: Study, options: ReportOptions) -> None:
    drawn = images(written(computed, "maps", "svg", options))
    expected = expected_images(select_places(computed, WHOLE), options)
    assert len(drawn) == 2
    for found, wanted in zip(drawn, expected, strict=True):
        assert len(np.unique(wanted.reshape(-1, 4), axis=0)) > 2
        assert found.shape == wanted.shape
        assert (found == wanted).all() or (found[::-1] == wanted).all()


def texts(svg: bytes) -> str:
    return html.unescape(" ".join(re.findall(r"<!-- (.*?) -->", svg.decode(), re.DOTALL)))


def test_pictures_say_what_they_show(computed: Study) -> None:
    words = texts(written(computed, "maps", "svg"))
    for text in ("Reported (noisy)", "Deconvolved", "and more", "planar-laplace", "200 m", computed.name):
        assert text in words
    assert "not computed yet" not in words


def test_a_picture_without_a_density_says_so(located: Study) -> None:
    assert "not computed yet" in texts(written(located, "maps", "svg"))


def test_north_is_up_and_both_maps_stand_side_by_side(computed: Study) -> None:
    """The corners of the grid are told apart by one crowded square in the south west of the noisy map."""
    tally = LocationTally.objects.get()
    counts = np.zeros_like(tally.array)
    counts[0, 0, 1] = 900
    tally.set(counts)
    picture = np.array(Image.open(io.BytesIO(written(computed, "maps", "png"))).convert("RGB"))
    assert picture.shape[1] == 1520
    top, bottom = int(0.98 * 200), int((0.98 + 3.55 * 20 / 16) * 200)
    colours = [bytes.fromhex(map_drawing.MAP_COLOURS[f"--map-{place}"][1:]) for place in range(1, 6)]
    filled = np.any([(picture[top:bottom] == list(colour)).all(axis=2) for colour in colours], axis=0)
    left, right = filled[:, 30:740], filled[:, 780:1490]
    rows, columns = np.nonzero(left)
    assert rows.size > 500
    assert rows.min() > 0.9 * left.shape[0]
    assert columns.max() < 0.1 * left.shape[1]
    assert not right.any()


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_pictures_are_the_same_every_time(computed: Study, ending: str) -> None:
    first = written(computed, "maps", ending)
    assert first == written(computed, "maps", ending)
    assert first != written(computed, "maps", ending, UNCERTAINTY)


# --- addresses --------------------------------------------------------------------------------


OF_ANY_STUDY = [(found.content, found.ending) for found in places_formats(has_hexagons=False)]


@pytest.mark.parametrize(("content", "ending"), OF_ANY_STUDY)
def test_the_page_links_to_every_file(reader: Client, computed: Study, content: str, ending: str) -> None:
    page = reader.get(reverse("reports:maps", args=["fair-2024"]) + QUERY + "&layer=uncertainty")
    found = PLACES_FORMATS[content, ending]
    links = [html.unescape(link) for link in re.findall(r'href="([^"]+)" download', page.content.decode())]
    address = reverse("reports:maps_file", args=["fair-2024", content, ending]) + QUERY
    link = address + ("&layer=uncertainty" if found.is_drawn else "")
    assert link in links
    assert len(links) == len(OF_ANY_STUDY)
    answer = reader.get(link)
    assert (answer.status_code, answer["Content-Type"]) == (200, found.content_type)
    name = f"fair-2024_{content}_2024-05-30_2024-06-02.{ending}"
    assert answer["Content-Disposition"] == f'attachment; filename="{name}"'
    assert answer.content == written(computed, content, ending, UNCERTAINTY if found.is_drawn else ESTIMATE)


def test_files_have_the_readers_of_their_page(located: Study, operator: User) -> None:
    address = reverse("reports:maps_file", args=["fair-2024", "zones", "csv"])
    assert "/sign-in/" in Client().get(address)["Location"]
    stranger = Client()
    stranger.force_login(operator)
    assert stranger.get(address).status_code == 404


def test_what_is_not_there_is_refused(reader: Client, located: Study) -> None:
    address = reverse("reports:maps_file", args=["fair-2024", "zones", "csv"])
    answer = reader.get(address, {"from": "2030-01-01"})
    assert answer.status_code == 400
    assert "window must lie within" in answer.content.decode()
    for content, ending in (("zones", "xlsx"), ("people", "csv"), ("squares", "png"), ("hexagons", "csv")):
        assert reader.get(f"/studies/fair-2024/maps/{content}.{ending}").status_code == 404
    assert reader.post(address).status_code == 405


def test_a_study_without_places_has_no_such_file(reader: Client, fair: Study) -> None:
    assert reader.get("/studies/fair-2024/maps/zones.csv").status_code == 404
