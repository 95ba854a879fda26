"""PMTiles as base layers: the lines that were put into them, without seams at tiles, and within limits."""

import gzip
import json
import struct
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyogrio
import pytest
import shapely
from shapely import LineString, Point, Polygon, box

from reports.studies.geography.areas import projection_of
from reports.studies.geography.display import pixel_m
from reports.studies.geography.files import tiles as reading
from reports.studies.geography.files.rules import View
from reports.studies.geography.files.tiles import Archive, Tile, TilesError, tiles_of
from reports.studies.geography.layers import sheet_of
from reports.studies.geography.shapes import in_metres
from tests.reports.studies.geography.places import frame, parse, problem_of_zones, problems

ROAD = LineString([(6.0, 47.2), (6.7, 47.65), (6.9, 47.66), (7.2, 47.6), (8.1, 48.0)])
LAKE = Polygon(Point(7.0, 47.65).buffer(0.2).exterior, [box(6.98, 47.63, 7.02, 47.67).exterior])
ZOOMS = 10
GZIP, BROTLI = 2, 3
VIEW = View(box=(6.5, 47.3, 7.5, 48.0), detail_m=50)


def tiles_by_gdal(shape, name):
    """Vector tiles of one layer, by their place."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "tiles"
        options = {"FORMAT": "DIRECTORY", "MAXZOOM": str(ZOOMS), "COMPRESS": "NO"}
        table = frame([shape]).to_crs(3857)
        pyogrio.write_dataframe(table, path, layer=name, driver="MVT", dataset_options=options)
        found = {}
        for each in path.rglob("*.pbf"):
            place = [int(part) for part in each.relative_to(path).with_suffix("").parts]
            found[Tile(*place)] = each.read_bytes()
        return found


@pytest.fixture(scope="module")
def contents():
    """Tiles with roads, water and places: those of several layers are those of each, one after another."""
    merged = {}
    for name, shape in {"roads": ROAD, "water": LAKE, "places": Point(6.9, 47.65)}.items():
        for tile, data in tiles_by_gdal(shape, name).items():
            merged[tile] = merged.get(tile, b"") + data
    return merged


def varint(value):
    found = bytearray()
    while True:
        value, low = value >> 7, value & 127
        found.append(low | (128 if value else 0))
        if not value:
            return bytes(found)


def directory(entries):
    """Entries (number, run, length, offset) as the format has them: offsets that follow each other are 0."""
    columns = [[], [], [], []]
    last, end = 0, None
    for number, run, length, offset in entries:
        values = number - last, run, length, 0 if offset == end else offset + 1
        for column, value in zip(columns, values, strict=True):
            column.append(varint(value))
        last, end = number, offset + length
    return varint(len(entries)) + b"".join(b"".join(column) for column in columns)


def archive(contents, *, layers=("roads", "water", "places"), leaf_of=3, **changes):
    """A PMTiles file with directories two deep."""
    data, entries = b"", []
    for tile in sorted(contents, key=Tile.number):
        part = gzip.compress(contents[tile])
        entries.append((tile.number(), 1, len(part), len(data)))
        data += part
    leaves, roots = b"", []
    for at in range(0, len(entries), leaf_of):
        leaf = gzip.compress(directory(entries[at : at + leaf_of]))
        roots.append((entries[at][0], 0, len(leaf), len(leaves)))
        leaves += leaf
    root = changes.get("root", gzip.compress(directory(roots)))
    metadata = gzip.compress(json.dumps({"vector_layers": [{"id": each} for each in layers]}).encode())
    parts = [root, metadata, leaves, data]
    begins = 127 + np.cumsum([0, *map(len, parts)])
    places = [number for begin, part in zip(begins, parts, strict=False) for number in (begin, len(part))]
    kinds = (1, changes.get("packing", GZIP), changes.get("tile_packing", GZIP), changes.get("kind", 1))
    head = b"PMTiles" + bytes([changes.get("version", 3)]) + struct.pack("<11Q", *places, 0, 0, 0)
    head += bytes([*kinds, 0, ZOOMS])
    return head.ljust(127, b"\0") + b"".join(parts)


def drawn(data, *names, area=""):
    listed = ", ".join(f'"{name}"' for name in names)
    return parse(f"{area}layers = [{listed}]\n", {"basemap.pmtiles": data})


def test_lines_and_outlines_are_those_of_the_file_without_seams(contents):
    area = drawn(archive(contents), "basemap.pmtiles#roads", "basemap.pmtiles#water").area
    roads, water = area.layers
    assert [(each.name, each.kind) for each in area.layers] == [("roads", "lines"), ("water", "polygons")]
    straight = frame([ROAD]).to_crs(3857).segmentize(100).to_crs(4326)[0]  # as tiles have it
    near = shapely.clip_by_rect(straight, *sheet_of(area).view.box)
    assert len(water.paths) == 2  # the lake has an island
    for paths, truth in ((roads.paths, near), (water.paths, LAKE.boundary)):
        lines = shapely.MultiLineString([LineString(path) for path in paths])
        (expected,) = in_metres(np.array([truth], object), projection_of(area))
        assert shapely.hausdorff_distance(lines, expected, densify=0.1) < 3 * pixel_m(area)


def test_every_tile_is_found_at_any_depth(contents):
    for leaf_of in (1, 4, 1000):
        found = Archive(archive(contents, leaf_of=leaf_of))
        assert {tile: found.tile(tile) for tile in contents} == contents
        assert found.tile(Tile(ZOOMS, 0, 0)) is None and found.tile(Tile(0, 0, 0)) == contents[Tile(0, 0, 0)]


def test_a_file_of_gdal_is_read_as_gdal_reads_it(tmp_path):
    path = tmp_path / "roads.pmtiles"
    table = frame([ROAD]).to_crs(3857)
    options = {"MINZOOM": "0", "MAXZOOM": str(ZOOMS)}
    pyogrio.write_dataframe(table, path, layer="roads", driver="PMTiles", dataset_options=options)
    found = Archive(path.read_bytes())
    assert (found.layers(), found.zooms) == (["roads"], (0, ZOOMS))
    by_gdal = pyogrio.read_dataframe(path, layer="roads", ZOOM_LEVEL=str(ZOOMS), CLIP="NO")
    held = [tile for x in range(520, 540) for y in range(350, 366) if found.tile(tile := Tile(ZOOMS, x, y))]
    assert len(held) == len(by_gdal) > 5
    parsed = parse('layers = ["roads.pmtiles"]\n', {"roads.pmtiles": path.read_bytes()})
    assert [each.name for each in parsed.area.layers] == ["roads"]


def test_a_run_of_equal_tiles_is_found(contents):
    part = gzip.compress(b"tile")
    root = gzip.compress(directory([(10, 5, len(part), 0)]))
    data = archive({Tile(0, 0, 0): b"tile"}, root=root)
    numbers = {
        tile: tile.number()
        for zoom in (1, 2)
        for x in range(4)
        for y in range(4)
        if (tile := Tile(zoom, x, y))
    }
    found = Archive(data)
    assert {number for tile, number in numbers.items() if tile.zoom == 2 and found.tile(tile)} == set(
        range(10, 15)
    )


def test_few_tiles_are_read_whatever_the_area():
    for side in (0.001, 0.1, 1, 10, 100):
        view = View(box=(7 - side, 47 - side / 3, 7 + side, 47 + side / 3), detail_m=side * 111_000 / 2000)
        found = tiles_of(view, zooms=(0, 15))
        assert 1 <= len(found) <= reading.MAX_TILES
        west, _, east, _ = shapely.total_bounds([box(*tile.box_m()) for tile in found])
        degrees = 180 / 20_037_508.34
        assert west * degrees <= max(view.box[0], -180) and min(view.box[2], 180) <= east * degrees + 1e-9
    assert {tile.zoom for tile in tiles_of(VIEW, zooms=(0, 15))} == {8}  # 611 m * cos 47.65 / 2^8 ... < 50 m
    assert {tile.zoom for tile in tiles_of(VIEW, zooms=(0, 5))} == {5}
    detailed = tiles_of(View(box=(0, 40, 10, 50), detail_m=1), zooms=(0, 15))
    assert reading.MAX_TILES / 4 <= len(detailed) <= reading.MAX_TILES


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("basemap.pmtiles", 'behind the file, as in "basemap.pmtiles#roads": one of roads, water, places'),
        ("basemap.pmtiles#road", "did you mean"),
        ("basemap.pmtiles#places", "features: must be at least one line or polygon near the area"),
    ],
)  # fmt: skip
def test_the_layer_is_named_behind_the_file(contents, name, said):
    (found,) = problems(f'layers = ["{name}"]\n', {"basemap.pmtiles": archive(contents)})
    assert found.startswith(f"{name}: ") and said in found


def test_a_layer_of_a_geopackage_is_named_the_same_way(tmp_path):
    path = tmp_path / "map.gpkg"
    frame([ROAD]).to_file(path, layer="roads")
    frame([LAKE]).to_file(path, layer="water")
    files = {"map.gpkg": path.read_bytes()}
    both = parse('layers = ["map.gpkg#water", "map.gpkg#roads"]\n', files).area.layers
    assert [(each.name, each.kind) for each in both] == [("water", "polygons"), ("roads", "lines")]
    (found,) = problems('layers = ["map.gpkg#rail"]\n', files)
    assert "must have the named layer, has roads, water" in found


HOSTILE = {
    "must be a PMTiles file, but does not start like one": lambda data, _: b"PK" + data,
    "must be PMTiles of version 3, not 2: convert it first": lambda _, make: make(version=2),
    "must hold vector tiles, not pictures": lambda _, make: make(kind=2),
    "must have tiles that are packed by gzip, or not packed": lambda _, make: make(tile_packing=BROTLI),
    "must be complete, but ends too early: copy the file again": lambda data, _: data[: len(data) // 3],
    "must have directories that can be unpacked": lambda _, make: make(root=b"no gzip"),
    "must have directories of at most 1 MB each when unpacked": lambda _, make: make(
        root=gzip.compress(bytes(2_000_000))
    ),
    "must have complete directories: copy the file again": lambda _, make: make(
        root=gzip.compress(b"\x09\x01")
    ),
    "must have directories whose numbers are below 2^49": lambda _, make: make(
        root=gzip.compress(b"\x01" + b"\xff" * 9 + b"\x01\x00\x01\x01")
    ),
    "must have directories that say where tiles begin": lambda _, make: make(
        root=gzip.compress(b"\x01\x00" + varint(1 << 40) + b"\x01\x00")
    ),
}


@pytest.mark.parametrize("said", HOSTILE)
def test_a_file_that_cannot_be_read_is_refused(contents, said):
    data = HOSTILE[said](archive(contents), lambda **changes: archive(contents, **changes))
    (found,) = problems('layers = ["basemap.pmtiles#roads"]\n', {"basemap.pmtiles": data})
    assert found.startswith(f"basemap.pmtiles#roads: content: {said}")


def test_tiles_that_unpack_to_too_much_and_directories_in_a_circle_are_refused(contents):
    bomb = archive({Tile(0, 0, 0): bytes(reading.MAX_TILE_BYTES + 1)})
    assert len(bomb) < 100_000
    with pytest.raises(TilesError, match="tiles of at most 20 MB each when unpacked"):
        Archive(bomb).tile(Tile(0, 0, 0))
    circle = gzip.compress(directory([(0, 0, 40, 0)]), mtime=0)
    data = bytearray(archive(contents, root=circle))
    data[40:48] = (127).to_bytes(8, "little")  # the leaves begin where the root does
    data = bytes(data).replace(circle, gzip.compress(directory([(0, 0, len(circle), 0)]), mtime=0))
    with pytest.raises(TilesError, match="directories at most three deep"):
        Archive(data).tile(Tile(3, 1, 1))


def test_broken_tiles_no_fitting_zoom_and_too_many_lines_are_refused(contents, monkeypatch):
    def said(data):
        (found,) = problems('layers = ["basemap.pmtiles#roads"]\n', {"basemap.pmtiles": data})
        return found.removeprefix("basemap.pmtiles#roads: ")

    broken = dict.fromkeys(contents, b"\x1a\xff\xff\xff")
    assert said(archive(broken)) == "content: must hold vector tiles that can be read: make the file again"
    fine = bytearray(archive(contents))
    fine[100] = 16  # the least zoom
    assert said(bytes(fine)).startswith("content: must have tiles of zoom")
    n_drawn = sum(map(len, drawn(archive(contents), "basemap.pmtiles#roads").area.layers[0].paths))
    with monkeypatch.context() as limited:
        limited.setattr(reading, "MAX_VERTICES", n_drawn - 1)
        rule = f"content: must have at most {n_drawn - 1} vertices near the area: keep main features only"
        assert said(archive(contents)).startswith(rule)
    monkeypatch.setattr("reports.studies.geography.layers.MAX_FEATURES", 1)
    assert said(archive(contents)).startswith("features: must be at most 1 lines, got 2")


def test_zones_are_not_taken_from_tiles(contents):
    said = problem_of_zones(archive(contents), "z.pmtiles")
    assert said.startswith("name: must end in one of .geojson, .json, .gpkg, .zip, .shp")
