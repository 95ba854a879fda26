"""Files of an area, from the folder of a study file to both databases; and what is said on the way."""

import io
import json
from decimal import Decimal
from pathlib import Path

import geopandas as gpd
import numpy as np
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.db import IntegrityError, connection
from shapely import LineString, Polygon, box

from ldp.geo.grid import Grid
from mobility.models import PlanDraft, VaultStudy
from reports.studies.areas import create_area
from reports.studies.geography.grid import grid_codes_of_cells, land_mask, zone_of_grid_cells
from reports.studies.models import Area, Study
from reports.studies.studyfile import StudyDefinition
from reports.studies.studyfile.definition import LocationDefinition
from tests.reports.studies.geography.places import CELLS, EAST, STUDY

IN_BOTH = pytest.mark.django_db(databases=["default", "vault"], transaction=True)
pytestmark = [IN_BOTH, pytest.mark.usefixtures("data_dir")]
BOW_TIE = Polygon([(6.8, 47.6), (6.9, 47.7), (6.9, 47.6), (6.8, 47.7)])
AREA = 'zones = "zones.gpkg"\nwater = "lake.geojson"\nlayers = ["rivers.gpkg"]\n'


@pytest.fixture
def study_file(tmp_path):
    folder = tmp_path / "study"
    folder.mkdir()
    (folder / "cells.csv").write_text(CELLS)
    zones = gpd.GeoDataFrame({"zone": ["Bow", "East"]}, geometry=[BOW_TIE, EAST], crs=4326)
    zones.to_crs(2154).to_file(folder / "zones.gpkg")
    lake = gpd.GeoDataFrame(geometry=[box(6.92, 47.61, 6.98, 47.69)], crs=4326)
    lake.to_file(folder / "lake.geojson")
    river = gpd.GeoDataFrame(geometry=[LineString([(6.8, 47.62), (6.95, 47.66)])], crs=4326)
    river.to_file(folder / "rivers.gpkg")
    (folder / "study.toml").write_text(STUDY + AREA)
    return folder / "study.toml"


def create(study_file: Path) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    call_command("create_study", str(study_file), stdout=out, stderr=err, no_color=True)
    return out.getvalue(), err.getvalue()


def test_the_page_shows_the_notes(study_file, client, administrator):
    client.force_login(administrator)
    folder = study_file.parent

    def sent(*names: str) -> list[SimpleUploadedFile]:
        return [SimpleUploadedFile(name, (folder / name).read_bytes()) for name in names]

    fields = {"study_file": sent("study.toml"), "cells": sent("cells.csv"), "zones": sent("zones.gpkg")}
    fields["layers"] = sent("rivers.gpkg", "lake.geojson")
    response = client.post("/administrator/create/", fields, follow=True)
    assert response.status_code == 200
    repaired = "zones.gpkg: features[1].geometry: was repaired (Self-intersection"
    for text in ("The study file is valid", repaired):
        assert text in response.content.decode()
    assert PlanDraft.objects.get().definition["area"]["layers"][0]["name"] == "rivers"


def test_the_main_database_knows_zones_and_layers_but_no_cell(study_file):
    out, err = create(study_file)
    assert json.loads(out) == {"study": "fair-2024", "indicators": 1, "windows": 6}
    (note,) = err.splitlines()
    assert note.startswith("note: zones.gpkg: features[1].geometry: was repaired (Self-intersection")
    area = Area.objects.get()
    assert (area.n_cells, area.zones) == (3, ["Bow", "East"])
    assert area.projection.startswith("+proj=laea +lat_0=47.65 +lon_0=7.15 ")
    assert ([len(rings) for rings in area.outlines], area.grid_map) == ([2, 1], None)
    (layer,) = area.layers
    assert (layer["name"], layer["kind"], len(layer["paths"][0])) == ("rivers", "lines", 2)
    with connection.cursor() as cursor:
        cursor.execute("select * from reports_area")
        kept = " ".join(map(str, cursor.fetchone()))
    cells = StudyDefinition.from_json(VaultStudy.objects.get().definition).area.cells
    assert [cell.cell_id for cell in cells] == ["west", "east", "far"]
    assert not any(cell.cell_id in kept.replace("East", "") for cell in cells)


@pytest.mark.parametrize("people", ["antennas", "land"])
def test_a_grid_is_kept_with_its_zones_and_where_people_may_be(study_file, people):
    create(study_file)
    area = StudyDefinition.from_json(VaultStudy.objects.get().definition).area
    Area.objects.all().delete()
    grid = Grid(x0_m=-30_000, y0_m=-8_000, step_m=500, n_x=60, n_y=32)
    given = {"level": Decimal(1), "radius_m": 1000, "max_values": None, "places": (0, 1, 2), "people": people}
    create_area(Study.objects.get(), area, location=LocationDefinition(grid=grid, **given))
    kept = Area.objects.get().grid_map
    assert (kept.grid, kept.at_antennas) == (grid, people == "antennas")
    assert (kept.zones == zone_of_grid_cells(area, grid)).all()
    if kept.at_antennas:
        assert sorted(np.flatnonzero(kept.land)) == sorted(grid_codes_of_cells(area, grid).tolist())
    else:
        assert (kept.land == land_mask(area, grid)).all()
        assert 20 < np.count_nonzero(~kept.land) < 1000
    assert {-1, 0, 1} == set(kept.zones.ravel().tolist())


@pytest.mark.database
def test_a_grid_is_kept_whole_or_not_at_all(study_file):
    create(study_file)
    with pytest.raises(IntegrityError):
        Area.objects.update(grid={"x0_m": 0})
