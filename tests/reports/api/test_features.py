"""Programs that read the API: GDAL by OGC API Features (OGC 17-069r4), curl and pandas as the page says."""

import html
import json
import os
import re
import subprocess
import sys
from dataclasses import replace

import pytest
from jsonschema import Draft202012Validator

from reports.estimates import queries
from reports.estimates.queries import Window
from reports.exports.formats.geographic import to_geojson
from reports.exports.records import report_record
from reports.exports.selection import select_window
from reports.ledger.models import LedgerEntry
from reports.models import Study
from tests.reports import map_factory
from tests.reports import report_factory as factory
from tests.reports.map_factory import SIDE, SOUTH, WEST

ROOT = "studies/fair-2024/features"
HOME = f"{ROOT}/collections/home"
CORE = "http://www.opengis.net/spec/ogcapi-features-1/1.0/conf/core"
# Within the third zone.
BOX = f"{WEST + 0.1 * SIDE},{SOUTH + 0.1 * SIDE},{WEST + 0.2 * SIDE},{SOUTH + 0.2 * SIDE}"
# Of the standard's schemas: members that it requires.
LINK = {
    "type": "object",
    "required": ["href", "rel", "type"],
    "properties": {"href": {"pattern": "^http://"}},
}
LINKS = {"type": "array", "minItems": 1, "items": LINK}
COLLECTION = {
    "required": ["id", "title", "links", "extent", "itemType"],
    "properties": {"links": LINKS, "itemType": {"const": "feature"}},
}
FEATURE = {
    "required": ["type", "id", "geometry", "properties"],
    "properties": {"type": {"const": "Feature"}, "geometry": {"required": ["type", "coordinates"]}},
}
SCHEMAS = {
    f"{ROOT}/": {"required": ["links"], "properties": {"links": LINKS}},
    ROOT: {"required": ["links"], "properties": {"links": LINKS}},
    f"{ROOT}/conformance": {
        "required": ["conformsTo"], "properties": {"conformsTo": {"contains": {"const": CORE}}},
    },
    f"{ROOT}/collections": {
        "required": ["links", "collections"],
        "properties": {"links": LINKS, "collections": {"minItems": 2, "items": COLLECTION}},
    },
    HOME: COLLECTION,
    f"{HOME}/items": {
        "required": ["type", "features", "links", "numberMatched", "numberReturned"],
        "properties": {
            "type": {"const": "FeatureCollection"}, "links": LINKS,
            "features": {"minItems": 3, "items": FEATURE},
        },
    },
    f"{HOME}/items/1": FEATURE | {"required": [*FEATURE["required"], "links"]},
}  # fmt: skip
# Runs in another process, so that the server of the test can answer.
GDAL = """
import json, sys, pyogrio
found = {}
for name, _ in pyogrio.list_layers(sys.argv[1]):
    box = tuple(map(float, sys.argv[2:])) or None
    frame = pyogrio.read_dataframe(sys.argv[1], layer=name, bbox=box, PAGE_SIZE="2")
    found[name] = json.loads(frame.to_json(default=str)) | {"crs": frame.crs.to_string()}
print(json.dumps(found))
"""


def gdal(address, header, *box):
    """Read all layers with the driver OAPIF; the token is in a file with a header, and in no address."""
    return subprocess.run(
        [sys.executable, "-c", GDAL, f"OAPIF:{address}", *box],
        env=os.environ | {"GDAL_HTTP_HEADER_FILE": str(header)},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


def expected(study, first=1, last=4):
    selection = select_window(study.indicators.get(slug="home"), Window(first, last))
    found = json.loads(to_geojson(selection))["features"]
    return {each["properties"]["category"]: each for each in found if each["geometry"]}


def read(program, path, **query):
    answer = program.get(path, query)
    assert answer.status_code == 200, answer.content
    return answer.json()


def names(document):
    return [each["properties"]["category"] for each in document["features"]]


@pytest.mark.django_db(transaction=True)
def test_gdal_reads_zones_and_values_with_the_token(live_server, mapped, token, tmp_path):
    address, header = f"{live_server.url}/api/v1/{ROOT}", tmp_path / "HEADER"
    header.write_text(f"Authorization: Bearer {token()}\n")
    done = gdal(f"{address}/", header)
    assert done.returncode == 0, done.stderr
    found, wanted = json.loads(done.stdout), expected(mapped)
    assert set(found) == {"zones", "home"}
    assert [each["properties"]["zone"] for each in found["zones"]["features"]] == mapped.area.zones
    assert found["home"]["crs"] in ("OGC:CRS84", "EPSG:4326")
    assert len(found["home"]["features"]) == len(wanted) == 3
    for each in found["home"]["features"]:
        same = wanted[each["properties"]["category"]]
        assert each["geometry"]["coordinates"] == same["geometry"]["coordinates"]
        for name in ("frequency", "consistent", "ci_low", "visitors", "visitors_ci_high", "status"):
            assert each["properties"][name] == pytest.approx(same["properties"][name]), name
        assert each["properties"]["last_day"].startswith("2024-06-02")
    done = gdal(address, header, *BOX.split(","))
    assert done.returncode == 0, done.stderr
    assert names(json.loads(done.stdout)["home"]) == [mapped.area.zones[2]]


@pytest.mark.django_db
class TestStandard:
    def test_documents_have_the_required_members_and_links_lead_on(self, program, mapped):
        links = set()
        for path, schema in SCHEMAS.items():
            found = read(program, path)
            Draft202012Validator(schema).validate(found)
            links |= {(link["href"], link["type"]) for link in found.get("links", [])}
        for address, media_type in links:
            answer = program.client.get(address.removeprefix("http://testserver"), headers=program.headers)
            assert (answer.status_code, answer["Content-Type"]) == (200, media_type), address
        relations = {link["rel"] for link in read(program, f"{ROOT}/")["links"]}
        assert relations == {"self", "service-desc", "conformance", "data"}
        extent = read(program, HOME)["extent"]
        assert extent["spatial"]["bbox"] == [pytest.approx([WEST, SOUTH, WEST + 2 * SIDE, SOUTH + 2 * SIDE])]
        assert extent["temporal"]["interval"] == [["2024-05-29T22:00:00Z", "2024-06-02T21:59:59Z"]]

    def test_parts_join_to_the_whole_and_a_feature_is_that_of_the_list(self, program, mapped):
        whole = read(program, f"{HOME}/items", limit=10**9)["features"]
        assert {each["properties"]["category"]: each for each in whole} == {
            name: each | {"id": mapped.area.zones.index(name) + 1} for name, each in expected(mapped).items()
        }
        first = read(program, f"{HOME}/items", limit=2)
        assert (first["numberMatched"], first["numberReturned"]) == (3, 2)
        (after,) = (link["href"] for link in first["links"] if link["rel"] == "next")
        answer = program.client.get(after.removeprefix("http://testserver"), headers=program.headers).json()
        assert first["features"] + answer["features"] == whole
        one = read(program, f"{HOME}/items/{whole[1]['id']}")
        assert one.pop("links") and one == whole[1]

    @pytest.mark.parametrize(
        ("asked", "first", "last"),
        [
            ("2024-05-31", 2, 2), ("2024-05-31/2024-06-01", 2, 3), ("../2024-05-31", 1, 2),
            ("2024-06-01/", 3, 4),
            ("2024-05-30T23:00:00Z", 2, 2), ("1999-01-01/2099-01-01", 1, 4),
        ],
    )  # fmt: skip
    def test_datetime_chooses_the_window(self, program, mapped, asked, first, last):
        found = read(program, f"{HOME}/items", datetime=asked)["features"]
        wanted = expected(mapped, first, last)
        assert [each["properties"] for each in found] == [each["properties"] for each in wanted.values()]

    def test_what_lies_elsewhere_is_not_there(self, program, mapped):
        assert names(read(program, f"{HOME}/items", bbox=BOX)) == [mapped.area.zones[2]]
        for query in ({"bbox": "170,0,-170,5"}, {"datetime": "2030-01-01/.."}):
            assert read(program, f"{HOME}/items", **query)["numberMatched"] == 0

    def test_what_means_nothing_is_refused(self, program, mapped):
        wrong = {"limit": ["0", "x"], "bbox": ["1,2,3", "1,2,3,nan", "0,9,1,8"], "from": ["2024-05-30"]}
        wrong["datetime"] = ["May", "2024-06-01/2024-05-31", "2024-05-31T10:00:00", "a/b/c"]
        wrong["datetime"] += ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"]
        asked = [(f"{HOME}/items", {name: text}, 400) for name, texts in wrong.items() for text in texts]
        asked += [(f"{ROOT}/", {"f": "html"}, 400), (f"{ROOT}/collections/gender", {}, 404)]
        for path, query, status in [*asked, *((f"{HOME}/items/{end}", {}, 404) for end in ("4", "x"))]:
            answer = program.get(path, query)
            assert (answer.status_code, answer["Content-Type"]) == (status, "application/problem+json"), query

    def test_small_cells_are_hidden_and_readings_are_in_the_ledger(self, program, mapped):
        Study.objects.update(small_cell=10_000_000)
        for each in read(program, f"{HOME}/items", datetime="2024-05-31")["features"]:
            values = each["properties"]
            assert (values["frequency"], values["visitors"], values["status"]) == (None, None, "suppressed")
        facts = LedgerEntry.objects.latest("number").facts
        assert (facts["what"], facts["collection"], facts["datetime"]) == ("items", "home", "2024-05-31")

    def test_a_daily_indicator_has_its_first_day_with_data(self, program):
        zones = factory.indicator("home", *map_factory.ZONES[:3], "NR", kind="daily")
        map_factory.create(replace(zones, max_values=2))
        found = read(program, f"{HOME}/items")["features"]
        assert {each["properties"]["last_day"] for each in found} == {"2024-05-30"}
        assert program.get(f"{HOME}/items", {"datetime": "2024-05-30/2024-05-31"}).status_code == 400

    def test_squares_with_reported_places_are_a_collection(self, program, tmp_path):
        study = map_factory.create_located(days=2)
        items = f"{ROOT}/collections/grid/items"
        found = read(program, items, limit="10000")["features"]
        assert {each["id"] for each in read(program, f"{ROOT}/collections")["collections"]} >= {
            "grid",
            "home",
        }
        kept = {each["square"]: each for each in read(program, f"studies/{study.slug}/places/grid")["items"]}
        assert {each["id"] for each in found} >= set(kept)
        busiest = max(found, key=lambda each: each["properties"]["reports"])
        values = busiest["properties"]
        names = ("square", "reports", "density", "low", "zone")
        assert {name: values[name] for name in names} == {name: kept[busiest["id"]][name] for name in names}
        assert (values["status"], values["density_status"]) == ("ok", "not_computed")
        (ring,) = busiest["geometry"]["coordinates"]
        assert len(ring) == 5
        west, south = ring[0]
        here = f"{west + 1e-5},{south + 1e-5},{west + 2e-5},{south + 2e-5}"
        assert [each["id"] for each in read(program, items, bbox=here)["features"]] == [busiest["id"]]
        Study.objects.update(small_cell=10_000_000)
        assert read(program, items)["features"] == []

    def test_a_study_without_zones_has_no_collections_and_says_so(self, program, fair):
        found = read(program, f"{ROOT}/collections")
        assert (found["collections"], "no known boundaries" in found["title"]) == ([], True)
        assert program.get(f"{ROOT}/collections/zones").status_code == 404


def run(folder, *command):
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)


def test_curl_and_pandas_get_the_report_with_the_token_of_a_file(live_server, reader, tmp_path, token, fair):
    def snippet(name):
        return html.unescape(re.search(rf'<pre id="snippet-{name}"[^>]*>(.*?)</pre>', page, re.DOTALL)[1])

    address, host = "/studies/fair-2024/gender/", live_server.url.removeprefix("http://")
    query = {"from": "2024-05-31", "to": "2024-06-01", "order": "sorted"}
    page = reader.get(address, query, headers={"Host": host}).content.decode()
    secret = token()
    (tmp_path / "TOKEN").write_text(secret + "\n")
    expected = queries.window_report(fair.indicators.get(slug="gender"), Window(2, 3))
    done = run(tmp_path, "bash", "-xc", snippet("curl"))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == json.loads(json.dumps(report_record(expected)))
    # Bash tells the words of every program that it starts: the token is in no list of processes.
    assert "+ curl " in done.stderr and secret not in done.stderr
    code = snippet("pandas") + "\nprint(table.to_json(orient='records', double_precision=15))"
    done = run(tmp_path, sys.executable, "-c", code)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout.splitlines()[-1])
    assert [row["category"] for row in rows] == ["F", "M", "NR"]
    for row, estimate in zip(rows, expected.estimates, strict=True):
        found = (row["frequency"], row["ci_low"], row["ci_high"])
        assert found == pytest.approx((estimate.frequency, estimate.ci_low, estimate.ci_high), abs=1e-14)
    (tmp_path / "TOKEN").write_text("mobility-read-wrong\n")
    done = run(tmp_path, "bash", "-c", snippet("curl"))
    assert (done.returncode, json.loads(done.stdout)["status"]) == (22, 401)
