"""Base layers that an administrator imports for the maps of an existing study."""

import json
from io import StringIO

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.test import Client
from shapely import LineString, Point, box

from reports.models import Area, LedgerEntry
from reports.studies.policies import Role
from tests.reports import map_factory
from tests.reports.map_factory import SIDE, SOUTH, WEST
from tests.reports.page_texts import words
from tests.reports.studies.geography.places import frame, written

pytestmark = pytest.mark.django_db
PAGE = "/studies/fair-2024/maps/layers/"
RIVER = LineString([(WEST - 10, SOUTH + SIDE), (WEST + 10, SOUTH + SIDE)])
LAKE = box(WEST, SOUTH, WEST + SIDE, SOUTH + SIDE)


@pytest.fixture
def study():
    return map_factory.create()


@pytest.fixture
def chief(person) -> Client:
    client = Client()
    client.force_login(person("ada", Role.ADMINISTRATOR))
    return client


def two_layers(tmp_path):
    path = tmp_path / "map.gpkg"
    frame([RIVER]).to_file(path, layer="rivers")
    frame([LAKE]).to_file(path, layer="lakes")
    return path


def sent(client, *files, **fields):
    uploads = [SimpleUploadedFile(name, data) for name, data in files]
    return client.post(PAGE, {"files": uploads, **fields}, follow=True)


def layers():
    return [(each["name"], each["kind"]) for each in Area.objects.get().layers]


def test_files_become_layers_of_the_map_and_are_cut_to_it(study, chief) -> None:
    river = written(frame([RIVER]), "river.geojson")
    page = sent(chief, ("river.geojson", river), ("lake.gpkg", written(frame([LAKE]), "lake.gpkg")))
    assert "Base layers imported: river, lake." in words(page)
    assert layers() == [("river", "lines"), ("lake", "polygons")]
    (path,) = Area.objects.get().layers[0]["paths"]
    assert 2_000 < path[-1][0] - path[0][0] < 10_000  # of 1,400 km
    entry = LedgerEntry.objects.filter(kind="map.layers").latest("number")
    assert (entry.actor, entry.study, entry.facts) == ("ada", "fair-2024", {"layers": 2})
    report = words(chief.get("/studies/fair-2024/home/", {"view": "map"}))
    assert "river" in report and "lake" in report


def test_layers_of_a_file_are_chosen_ordered_and_removed(study, chief, tmp_path) -> None:
    data = two_layers(tmp_path).read_bytes()
    sent(chief, ("map.gpkg", data), names="map.gpkg#lakes\r\n\r\n map.gpkg#rivers ")
    assert layers() == [("lakes", "polygons"), ("rivers", "lines")]
    assert "were removed" in words(chief.post(PAGE, {"remove": "1"}, follow=True))
    assert layers() == []


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ("other.gpkg", "“other.gpkg” is not one of the chosen files."),
        ("map.gpkg#lakes\nmap.gpkg#lakes", "Two layers are called “lakes”. Rename one of the files."),
        ("map.gpkg#roads", "map.gpkg#roads: layers: must have the named layer, has rivers, lakes"),
        ("points.geojson", "points.geojson: features[1].geometry.type: must be LineString or"),
        ("\n".join(f"map.gpkg#{n}" for n in range(11)), "At most 10 layers can be imported."),
    ],
)
def test_bad_files_leave_the_old_layers(study, chief, tmp_path, names, said) -> None:
    data = two_layers(tmp_path).read_bytes()
    sent(chief, ("map.gpkg", data), names="map.gpkg#rivers")
    points = written(frame([Point(WEST, SOUTH)]), "points.geojson")
    page = sent(chief, ("map.gpkg", data), ("points.geojson", points), names=names)
    assert page.status_code == 400 and said in words(page) and "Nothing was changed." in words(page)
    assert layers() == [("rivers", "lines")]


def test_no_file_and_too_large_files_are_told_apart(study, chief, settings) -> None:
    assert "Choose at least one file." in words(chief.post(PAGE, {}))
    settings.FILE_UPLOAD_MAX_MEMORY_SIZE = 1_000_000
    page = sent(chief, ("big.geojson", b" " * 3_000_000))
    assert page.status_code == 400 and "total 3 MB, but the limit is 1 MB" in words(page)


def test_a_study_without_maps_takes_no_layers(study, chief) -> None:
    Area.objects.all().delete()
    river = written(frame([RIVER]), "river.geojson")
    assert "This study has no maps" in words(sent(chief, ("river.geojson", river)))
    assert "This study has no maps" in words(chief.get(PAGE))


def test_a_grid_alone_is_enough(chief) -> None:
    map_factory.create_located(n=300)
    Area.objects.update(outlines=[], geojson=None)
    sent(chief, ("river.geojson", written(frame([RIVER]), "river.geojson")))
    assert layers() == [("river", "lines")]


def test_the_command_imports_files_of_the_server(study, tmp_path) -> None:
    path, out, err = two_layers(tmp_path), StringIO(), StringIO()
    call_command("import_layers", "fair-2024", f"{path}#rivers", f"{path}#lakes", stdout=out, stderr=err)
    assert json.loads(out.getvalue()) == {"study": "fair-2024", "layers": ["rivers", "lakes"]}
    assert LedgerEntry.objects.latest("number").actor == "command line"
    with pytest.raises(CommandError, match="roads: layers: must have the named layer"):
        call_command("import_layers", "fair-2024", f"{path}#roads")
    with pytest.raises(CommandError, match="No such file"):
        call_command("import_layers", "fair-2024", str(tmp_path / "none.gpkg"))
    assert len(layers()) == 2
    call_command("import_layers", "fair-2024", stdout=out)
    assert layers() == []
