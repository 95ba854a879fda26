"""Hexagons of a study that asks for them: sums of squares, and which resolutions make sense."""

import csv
import io
import json
from dataclasses import replace
from typing import Any

import geopandas
import h3
import pytest
from django.test import Client
from django.urls import reverse

from reports import tasks
from reports.exports.places import select_places, square_columns
from reports.exports.places_formats import PLACES_FORMATS
from reports.geography.hexagons import finest_resolution, hexagon_ring
from reports.geography.projection import LocalProjection
from reports.models import Study
from reports.selectors import Window
from reports.services import densities
from reports.studyfile import StudyDefinition
from tests.reports import map_factory
from tests.reports.map_factory import GRID
from tests.reports.test_studyfile_location import AREA, STUDY, parse, problems

WHOLE = Window(1, 4)


@pytest.fixture
def located(db: None) -> Study:
    return map_factory.create_located(location=replace(map_factory.LOCATION, h3_resolution=8))


@pytest.fixture
def computed(located: Study, monkeypatch: pytest.MonkeyPatch) -> Study:
    asked: list[int] = []
    monkeypatch.setattr(tasks.compute_density, "delay_on_commit", asked.append)
    densities.ask_for_maps(located, [WHOLE])
    tasks.compute_density(asked[0])
    return located


def written(study: Study, ending: str) -> bytes:
    return PLACES_FORMATS["hexagons", ending].write(select_places(study, WHOLE), None)


def rows_of(study: Study) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(written(study, "csv").decode())))


def test_hexagons_are_sums_of_the_squares_with_their_centres_in_them(computed: Study) -> None:
    columns = square_columns(select_places(computed, WHOLE))
    expected: dict[str, list[float]] = {}
    projection = LocalProjection(computed.area.projection)
    for x_m, y_m, reports, density in zip(
        columns["x_m"], columns["y_m"], columns["reports"], columns["density"], strict=True
    ):
        lon, lat = projection.to_degrees(x_m, y_m)
        sums = expected.setdefault(h3.latlng_to_cell(lat, lon, 8), [0, 0, 0.0])
        for place, value in enumerate((1, reports, density)):
            sums[place] += value
    rows = rows_of(computed)
    assert [row["h3"] for row in rows] == sorted(expected)
    assert len(rows) > 15
    for row in rows:
        found = [float(row[name]) for name in ("n_squares", "reports", "density")]
        assert found == pytest.approx(expected[row["h3"]], abs=1e-4)
        assert (row["study"], row["mechanism"], row["density_status"]) == (
            "fair-2024",
            "planar-laplace",
            "done",
        )
    assert sum(int(row["n_squares"]) for row in rows) == GRID.n_cells
    assert sum(int(row["reports"]) for row in rows) == 3000


def test_geojson_has_the_same_with_shapes(computed: Study) -> None:
    content = written(computed, "geojson")
    frame = geopandas.read_file(io.BytesIO(content))
    assert frame["reports"].tolist() == [int(row["reports"]) for row in rows_of(computed)]
    metres = frame.to_crs(computed.area.projection)
    areas = [h3.cell_area(name, unit="m^2") for name in frame["h3"]]
    assert metres.area.tolist() == pytest.approx(areas, rel=0.01)
    about = json.loads(content)["provenance"]
    assert about["h3_resolution"] == 8
    assert "hexagon of its centre" in about["hexagons"]


def test_hexagons_follow_the_states_of_their_window(located: Study) -> None:
    rows = rows_of(located)
    assert {(row["density"], row["density_status"]) for row in rows} == {("", "not_computed")}
    Study.objects.update(small_cell=3001)
    rows = rows_of(Study.objects.get())
    assert {(row["reports"], row["density"], row["status"]) for row in rows} == {("", "", "suppressed")}


def test_only_such_a_study_offers_them(reader: Client, located: Study) -> None:
    address = reverse("reports:maps_file", args=["fair-2024", "hexagons", "csv"])
    page = reader.get(reverse("reports:maps", args=["fair-2024"])).content.decode()
    assert page.count("/maps/hexagons.") == 2
    assert reader.get(address).status_code == 200
    located.area.h3_resolution = None
    located.area.save()
    page = reader.get(reverse("reports:maps", args=["fair-2024"])).content.decode()
    assert "/maps/hexagons." not in page
    assert reader.get(address).status_code == 404


def test_rings_are_closed_and_stay_whole_across_the_date_line() -> None:
    ring = hexagon_ring(h3.latlng_to_cell(-17.0, 180.0, 5))
    assert ring[0] == ring[-1]
    assert max(lon for lon, _ in ring) - min(lon for lon, _ in ring) < 1


@pytest.mark.parametrize("step_m", [10, 200, 314, 315, 1000, 50_000])
def test_the_finest_resolution_is_the_last_one_that_holds_a_square(step_m: int) -> None:
    finest = finest_resolution(6.85, 47.6, step_m=step_m)
    areas = [h3.cell_area(h3.latlng_to_cell(47.6, 6.85, each), unit="m^2") for each in (finest, finest + 1)]
    assert areas[0] >= step_m**2 > areas[1]


def test_a_study_file_may_ask_for_a_resolution() -> None:
    definition = parse(STUDY + "h3_resolution = 9\n" + AREA)
    assert definition.location is not None
    assert definition.location.h3_resolution == 9
    assert StudyDefinition.from_json(json.loads(json.dumps(definition.to_json()))) == definition


def test_definitions_without_it_stay_readable() -> None:
    definition = parse()
    older: dict[str, Any] = definition.to_json()
    del older["location"]["h3_resolution"]
    assert StudyDefinition.from_json(older) == definition


def test_too_fine_a_resolution_is_refused_with_the_finest_that_works() -> None:
    (found,) = problems(STUDY + "h3_resolution = 10\n" + AREA)
    assert "h3_resolution" in found
    assert "must be at most 9: finer hexagons are smaller than the squares of 200 m" in found
    (found,) = problems(STUDY + "h3_resolution = 16\n" + AREA)
    assert "from 0 to 15" in found
