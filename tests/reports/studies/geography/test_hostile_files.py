"""Files of geometries that have more in them than bytes: refused with a reason, before GDAL reads them."""

import io
import sqlite3
import time
import zipfile

import pytest

from reports.studies.geography.files import containers
from tests.reports.studies.geography.places import EAST, WEST, frame, problem_of_zones, problems, written

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i"
# Rows of a table that a layer is read from, of any kind.
AS_LAYER = (
    "UPDATE gpkg_geometry_columns SET table_name = 'v'",
    "UPDATE gpkg_contents SET table_name = 'v', identifier = 'v'",
    "UPDATE gpkg_ogr_contents SET table_name = 'v', feature_count = 2",
)
OF_SQLITE = f"CREATE VIEW gpkg_spatial_ref_sys AS {ENDLESS}, s.* FROM n, s"
MANY_ROWS = f"INSERT INTO z (zone) {ENDLESS.replace('FROM n)', 'FROM n WHERE i < 9000)')} FROM n"
LONG_DEFAULT = f"ALTER TABLE z ADD COLUMN more TEXT DEFAULT '{'x' * 50_000}'"
HOSTILE = {
    "hold tables only, but 'v' is a view: save its rows as a table": (
        f"CREATE VIEW v AS {ENDLESS} AS fid, geom, zone FROM n, z",
        *AS_LAYER,
    ),
    "hold tables only, but 'gpkg_spatial_ref_sys' is a view: save its rows as a table": (
        "ALTER TABLE gpkg_spatial_ref_sys RENAME TO s",
        OF_SQLITE,
    ),
    "hold stored columns only, but 'more' of 'z' is computed: save its values": (
        "ALTER TABLE z ADD COLUMN more TEXT AS (hex(zeroblob(4000000)))",
    ),
    "have short defaults, but those of 'z' are long: save the file again": (MANY_ROWS, LONG_DEFAULT),
    "hold ordinary tables only, but 'v' is a virtual one: save its rows as a table": (
        "CREATE VIRTUAL TABLE v USING fts4(zone)",
    ),
}


def geopackage(tmp_path, statements):
    path = tmp_path / "z.gpkg"
    frame([WEST, EAST], zone=["West", "East"]).to_file(path, layer="z", SPATIAL_INDEX="NO")
    with sqlite3.connect(path) as database:
        for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            database.execute(f'DROP TRIGGER "{name}"')
        for statement in statements:
            database.execute(statement)
    database.close()
    return path.read_bytes()


@pytest.mark.parametrize("said", HOSTILE)
def test_a_geopackage_that_computes_is_refused_before_it_is_read(tmp_path, monkeypatch, said):
    def too_late(*_, **__):
        raise AssertionError("GDAL was given the file")

    data = geopackage(tmp_path, HOSTILE[said])
    monkeypatch.setattr(containers.pyogrio, "list_layers", too_late)
    assert problem_of_zones(data) == f"content: must {said}"


def test_a_geopackage_whose_pages_lead_in_a_circle_is_refused(tmp_path):
    data = bytearray(geopackage(tmp_path, [MANY_ROWS]))
    size = int.from_bytes(data[16:18], "big")
    interior = [at for at in range(size, len(data), size) if data[at] == 5]  # a page of a table, no leaf
    for at in interior:  # each leads to itself
        data[at + 8 : at + 12] = (at // size + 1).to_bytes(4, "big")
    assert interior
    began = time.monotonic()
    assert problem_of_zones(bytes(data)) == "content: must be a GeoPackage that is not damaged: save it again"
    assert time.monotonic() - began < 10


def test_a_shapefile_whose_index_names_one_record_again_and_again_is_refused():
    table = frame([WEST, EAST, EAST.buffer(0.01)], zone=["W", "E", "F"])
    with zipfile.ZipFile(io.BytesIO(written(table, "zones.zip"))) as archive:
        files = {name.removeprefix("folder/"): archive.read(name) for name in archive.namelist()}
    index = files["zones.shx"]
    said = "zones.shp: content: must be a shapefile whose records do not overlap: save all its files again"
    again = {**files, "zones.shx": index[:100] + index[100:108] * 3}
    assert problems('zones = "zones.shp"\n', again) == [said]
    # The index may say that a record is short: its own length counts as well.
    longer = bytearray(files["zones.shp"])
    longer[104:108] = (len(longer) // 2).to_bytes(4, "big")
    assert problems('zones = "zones.shp"\n', {**files, "zones.shp": bytes(longer)}) == [said]
    said = "zones.shp: content: must be a shapefile whose index matches: save all its files again"
    outside = index[:100] + b"\x7f" + index[101:]
    assert problems('zones = "zones.shp"\n', {**files, "zones.shx": outside}) == [said]


def test_a_zip_of_too_many_files_is_refused_before_they_are_listed(monkeypatch):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for number in range(4):
            archive.writestr(str(number), "")
    monkeypatch.setattr(containers, "MAX_ENTRIES", 3, raising=False)
    monkeypatch.setattr(containers.zipfile, "ZipFile", None)
    assert problem_of_zones(packed.getvalue(), "z.zip") == "content: must be a zip file of at most 3 files"
