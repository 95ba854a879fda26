"""Groups of categories in files and in the API: the totals that the page shows, or why there are none."""

import csv
import json
from dataclasses import replace
from io import BytesIO, StringIO

import pytest
from django.urls import reverse
from openpyxl import load_workbook

from reports.estimates.groups import in_groups, report_by_group
from reports.estimates.queries import Window, window_report
from reports.exports.records import ESTIMATE_NAMES
from tests.reports import report_factory as factory
from tests.reports.api.conftest import Program
from tests.reports.kept import made_once

pytestmark = pytest.mark.django_db
LETTERS = "ABCDEFGH"
GROUPS = (("North", ("A", "C")), ("South", ("B", "D", "E")))
ZONE = replace(factory.indicator("zone", *LETTERS), groups=GROUPS)
SHOWN = ["North", "South", "Other categories"]
WHOLE = Window(1, 4)
DAYS = "from=2024-05-30&to=2024-06-02"
API = "studies/fair-2024/indicators/zone"


@made_once
def published(**changes):
    return factory.published(ZONE, factory.GENDER, **changes)


def by_group(study, window=WHOLE):
    found = report_by_group(window_report(study.indicators.get(slug="zone"), window))
    assert found is not None
    return found


def address(kind: str, ending: str, query: str) -> str:
    return f"{reverse(f'reports:{kind}_file', args=['fair-2024', 'zone', ending])}?{query}&group=groups"


def rows_of(text: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(StringIO(text.decode())))


def plain(estimates) -> list[dict]:
    return [{name: getattr(each, name) for name in ESTIMATE_NAMES} for each in estimates]


def test_files_have_the_totals_of_the_page_with_interval_and_unit(reader):
    study = published()
    expected = plain(by_group(study).estimates)
    assert [each["category"] for each in expected] == SHOWN
    (record,) = json.loads(reader.get(address("indicator", "json", DAYS)).content)
    assert record["estimates"] == expected
    assert (record["status"], record["unit"]) == ("ok", "profile")
    rows = rows_of(reader.get(address("indicator", "csv", DAYS)).content)
    assert [float(row["ci_low"]) for row in rows] == [each["ci_low"] for each in expected]
    assert [row["unit"] for row in rows] == ["profile"] * 3
    book = load_workbook(BytesIO(reader.get(address("indicator", "xlsx", DAYS)).content))
    head, *body = book["zone"].iter_rows(values_only=True)
    assert [dict(zip(head, row, strict=True))["consistent"] for row in body] == pytest.approx(
        [each["consistent"] for each in expected]
    )


def test_totals_are_near_the_truth():
    study = published()
    values = factory.crowd(study).static["zone"]
    truth = [sum((values == LETTERS.index(each)).mean() for each in members) for _, members in GROUPS]
    for estimate, share in zip(by_group(study).estimates, truth, strict=False):
        assert abs(estimate.frequency - share) < 4 * estimate.std_error


def test_days_have_groups(reader):
    study = published()
    found = json.loads(reader.get(address("days", "json", "")).content)
    assert [each["estimates"] for each in found] == [
        plain(by_group(study, Window(day, day)).estimates) for day in range(1, 5)
    ]


def test_the_api_answers_groups(token):
    study, program = published(), Program(token())
    whole = program.read(f"{API}/estimates", from_="2024-05-30", to="2024-06-02", group="groups")
    assert whole["estimates"] == plain(by_group(study).estimates)
    of_days = program.read(f"{API}/days", group="groups")["items"]
    assert [len(each["estimates"]) for each in of_days] == [3] * 4
    text = program.get(f"{API}/windows", {"group": "groups", "format": "csv"}).content
    assert {row["category"] for row in rows_of(text)} == set(SHOWN)
    refused = program.get("studies/fair-2024/indicators/gender/estimates", {"group": "groups"})
    assert (refused.status_code, refused.json()["detail"]) == (422, "gender has no groups of categories.")
    assert program.get(f"{API}/estimates", {"group": "found"}).status_code == 422


def test_links_of_the_page_of_groups_lead_to_groups(reader):
    published()
    page = reverse("reports:indicator", args=["fair-2024", "zone"])
    links = [f"export.{ending}?{DAYS}" for ending in ("csv", "xlsx", "json", "parquet", "pdf", "sdmx.csv")]
    text = reader.get(f"{page}?{DAYS}&group=groups").content.decode().replace("&amp;", "&")
    assert [f"{each}&group=groups" in text for each in links] == [True] * 5 + [False]
    assert "group=groups" not in reader.get(f"{page}?{DAYS}").content.decode().split("downloads")[-1]


def test_files_about_codes_have_no_groups(reader):
    published()
    for kind, ending in (("indicator", "sdmx.csv"), ("days", "svg")):
        answer = reader.get(address(kind, ending, DAYS))
        assert answer.status_code == 400
        assert (
            "Groups of categories are available as CSV, XLSX, JSON, Parquet only." in answer.content.decode()
        )


def test_hidden_windows_and_categories_have_no_numbers(reader):
    study = published(small_cell=1_000_000)
    (record,) = json.loads(reader.get(address("indicator", "json", DAYS)).content)
    assert (record["status"], record["n_visitors"]) == ("suppressed", None)
    assert [each["category"] for each in record["estimates"]] == SHOWN
    assert {each["status"] for each in record["estimates"]} == {"suppressed"}
    assert {each["visitors"] for each in record["estimates"]} == {None}
    study.small_cell, study.small_category = 0, 1000
    study.save()
    found = in_groups(window_report(study.indicators.get(slug="zone"), WHOLE))
    assert {(each.status, each.reports, each.frequency) for each in found.estimates} == {
        ("small", None, None)
    }
