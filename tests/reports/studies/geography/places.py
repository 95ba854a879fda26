"""A study around Belfort, and files of geometries as programs for maps write them."""

import io
import zipfile
from collections import namedtuple
from pathlib import Path
from tempfile import TemporaryDirectory

import geopandas as gpd
import pytest
from shapely import box

from reports.studies.studyfile import StudyFileError, parse_study
from tests.study_text import AREA, columns, static, study_text

STUDY = study_text(
    static("age_band", "young", "old", column="age"),
    slug="fair-2024", name="Fair 2024", first_day="2024-03-30", extract=columns(cell="cell"), area=AREA,
)  # fmt: skip
CELLS = "cell_id,lon,lat\nwest,6.85,47.65\neast,6.95,47.65\nfar,7.5,47.65\n"
WEST, EAST = box(6.8, 47.6, 6.9, 47.7), box(6.9, 47.6, 7.0, 47.7)
Parsed = namedtuple("Parsed", "study area notes")  # notes on the files of the study


def parse(area, files, *, cells=CELLS):
    given, notes = {"cells.csv": cells.encode(), **files}, []

    def read(name):
        if name not in given:
            raise FileNotFoundError(name)
        return given[name]

    study = parse_study((STUDY + area).encode(), filename="study.toml", read=read, note=notes.append)
    return Parsed(study, study.area, notes)


def problems(area, files, *, cells=CELLS):
    with pytest.raises(StudyFileError) as caught:
        parse(area, files, cells=cells)
    return str(caught.value).split("\n")


def frame(shapes, *, crs=4326, **columns):
    table = gpd.GeoDataFrame(columns, geometry=shapes, crs=4326)
    return table.set_crs(None, allow_override=True) if crs is None else table.to_crs(crs)


def written(table, name, **options):
    """Content of a file that GeoPandas writes; a shapefile as a zip file of all its parts."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        if path.suffix != ".zip":
            table.to_file(path, **options)
            return path.read_bytes()
        table.to_file(path.with_suffix(".shp"), **options)
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for part in sorted(path.parent.glob(f"{path.stem}.*")):
                archive.write(part, f"folder/{part.name}")
        return packed.getvalue()


def zones(table, name="z.gpkg", *, more="", cells=CELLS, **options):
    data = table if isinstance(table, bytes) else written(table, name, **options)
    return parse(f'zones = "{name}"\n{more}', {name: data}, cells=cells)


def problem_of_zones(table, name="z.gpkg", *, more="", **options):
    data = table if isinstance(table, bytes) else written(table, name, **options)
    (found,) = problems(f'zones = "{name}"\n{more}', {name: data})
    assert found.startswith(f"{name}: ")
    return found.removeprefix(f"{name}: ")
