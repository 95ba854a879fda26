"""What programs read: the same numbers as the exports, under the same names."""

import csv
import io
import json
import re
from typing import Any

import pytest
from django.test import Client
from jsonschema import Draft202012Validator

from reports import selectors
from reports.exports.records import report_record, to_csv
from reports.models import DayNote, Study
from reports.selectors import Window
from tests.reports import report_factory as factory
from tests.reports.api.conftest import Program

pytestmark = pytest.mark.django_db
FAIR = "studies/fair-2024"
GENDER = f"{FAIR}/indicators/gender"
PATHS = [
    "studies",
    FAIR,
    f"{FAIR}/visitors",
    f"{FAIR}/statement",
    f"{FAIR}/indicators",
    GENDER,
    f"{GENDER}/estimates",
    f"{GENDER}/days",
    f"{GENDER}/windows",
]
OF_PLACES = [f"{FAIR}/places", f"{FAIR}/places/grid"]  # test_places reads them


def read(program: Program, path: str, **query: Any) -> Any:
    answer = program.get(path, {name.rstrip("_"): value for name, value in query.items()})
    assert answer.status_code == 200, answer.content
    assert answer["Content-Type"] == "application/json"
    return answer.json()


def report(study: Study, slug: str, first: int, last: int) -> Any:
    found = selectors.window_report(study.indicators.get(slug=slug), Window(first, last))
    return json.loads(json.dumps(report_record(found)))


def test_an_estimate_is_that_of_the_exports(program: Program, fair: Study) -> None:
    found = read(program, f"{GENDER}/estimates", from_="2024-05-31", to="2024-06-01")
    assert found == report(fair, "gender", 2, 3)
    assert found["estimates"][0]["ci_low"] < found["estimates"][0]["frequency"]


def test_windows_default_to_the_study_and_to_one_day(program: Program, fair: Study) -> None:
    assert read(program, f"{GENDER}/estimates") == report(fair, "gender", 1, 4)
    assert read(program, f"{GENDER}/estimates", from_="2024-06-01") == report(fair, "gender", 3, 3)
    assert read(program, f"{GENDER}/estimates", to="2024-05-31") == report(fair, "gender", 1, 2)


def test_csv_is_that_of_the_exports(program: Program, fair: Study) -> None:
    answer = program.get(f"{GENDER}/estimates", {"format": "csv", "from": "2024-05-30"})
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    found = selectors.window_report(fair.indicators.get(slug="gender"), Window(1, 1))
    assert answer.content.decode() == to_csv([found])
    rows = list(csv.DictReader(io.StringIO(answer.content.decode())))
    assert [row["category"] for row in rows] == ["F", "M", "NR"]


def test_days_and_windows_are_all_there_in_order(program: Program, fair: Study) -> None:
    days = read(program, f"{FAIR}/indicators/stay/days")
    assert days["items"] == [report(fair, "stay", day, day) for day in range(1, 5)]
    assert (days["count"], days["next"]) == (4, None)
    windows = read(program, f"{GENDER}/windows")
    assert windows["count"] == len(windows["items"]) == 10
    assert windows["items"][4] == report(fair, "gender", 2, 2)


def test_visitors_are_exact(program: Program, fair: Study) -> None:
    found = read(program, f"{FAIR}/visitors")
    unions = selectors.visitor_unions(fair)
    assert [row["n_visitors"] for row in found["items"]] == [
        int(unions[window.first_day, window.last_day]) for window in selectors.windows_of(fair)
    ]
    between = read(program, f"{FAIR}/visitors", from_="2024-05-31", to="2024-06-01")
    assert [(row["first_day"], row["last_day"]) for row in between["items"]] == [
        ("2024-05-31", "2024-05-31"), ("2024-05-31", "2024-06-01"), ("2024-06-01", "2024-06-01"),
    ]  # fmt: skip


def test_the_small_cell_rule_and_outages_hold_here_too(program: Program, fair: Study) -> None:
    unions = selectors.visitor_unions(fair)
    hidden = min(range(1, 5), key=lambda day: unions[day, day])
    noted = hidden % 4 + 1
    Study.objects.update(small_cell=int(unions[hidden, hidden]) + 1)
    DayNote.objects.create(study=fair, day=noted, kind="outage", text="mast down", by="olga")
    day = fair.date_of(hidden).isoformat()
    days = {row["day"]: row for row in read(program, FAIR)["coverage"]}
    blank = {"day": day, "n_visitors": None, "first_time": None}
    assert days[day] == blank | {"status": "suppressed", "notes": []}
    outage = days[fair.date_of(noted).isoformat()]
    assert (outage["status"], outage["notes"]) == ("outage", [{"kind": "outage", "text": "mast down"}])
    assert outage["n_visitors"] == int(unions[noted, noted])
    rows = read(program, f"{FAIR}/visitors", from_=day)["items"]
    assert [(row["n_visitors"], row["status"]) for row in rows] == [(None, "suppressed")]
    report = read(program, f"{GENDER}/estimates", from_=day)
    assert (report["n_visitors"], report["estimates"][0]["frequency"]) == (None, None)
    assert report["estimates"][0]["status"] == "suppressed"


def test_what_was_counted_has_its_status_and_is_the_same_everywhere(program: Program) -> None:
    study = factory.create()
    factory.publish(study, factory.absent_on(factory.crowd(study), day=3))
    for day in (2, 3):
        DayNote.objects.create(study=study, day=day, kind="outage", text="mast down", by="olga")
    unions = selectors.visitor_unions(study)
    counted = [(int(unions[day, day]), "ok" if day in (1, 4) else "outage") for day in range(1, 5)]
    assert counted[2] == (0, "outage")
    coverage = read(program, FAIR)["coverage"]
    assert [(day["n_visitors"], day["status"]) for day in coverage] == counted
    assert [day["first_time"] for day in coverage] == [
        int(unions[1, d] - unions[1, d - 1]) for d in range(1, 5)
    ]
    days = read(program, f"{GENDER}/days")["items"]
    assert [(day["n_visitors"], day["status"]) for day in days] == counted
    visitors = [
        row for row in read(program, f"{FAIR}/visitors")["items"] if row["first_day"] == row["last_day"]
    ]
    assert [(row["n_visitors"], row["status"]) for row in visitors] == counted


def test_a_study_says_what_where_and_when(program: Program, fair: Study) -> None:
    found = read(program, FAIR)
    assert found["visitor"] == {"min_minutes": 60, "from": "06:00", "to": "23:59"}
    assert (found["days"], found["n_windows"]) == (4, 10)
    assert found["indicators"] == ["gender", "age", "stay"]
    assert found["plan"]["mechanism"] == "smp-grr"
    assert found["n_visitors"] == int(selectors.visitor_unions(fair)[1, 4])
    assert read(program, "studies")["items"][0]["n_visitors"] == found["n_visitors"]
    assert read(program, f"{FAIR}/statement")["study"]["slug"] == "fair-2024"


def test_indicators_have_their_public_categories(program: Program, fair: Study) -> None:
    found = read(program, f"{FAIR}/indicators")["items"]
    assert [row["indicator"] for row in found] == ["gender", "age", "stay"]
    assert found[1]["categories"] == ["<18", "18-24", "25 & older"]
    assert read(program, f"{FAIR}/indicators/age") == found[1]
    assert (found[0]["epsilon"], found[0]["unit"]) == (1.0, "profile")


def test_parts_of_a_list_join_to_the_whole(program: Program, fair: Study) -> None:
    whole = read(program, f"{GENDER}/windows")["items"]
    found: list[Any] = []
    path = f"/api/v1/{GENDER}/windows?limit=4"
    while path:
        answer = program.client.get(path, headers={"Authorization": f"Bearer {program.token}"})
        found += answer.json()["items"]
        path = (answer.json()["next"] or "").removeprefix("http://testserver")
        assert ('rel="next"' in answer.get("Link", "")) == bool(path)
    assert found == whole
    assert 'rel="prev"' in answer["Link"]
    assert read(program, f"{GENDER}/windows", offset=1000)["items"] == []


@pytest.mark.parametrize(("offset", "expected"), [(3, (0, 3)), (4, (0, 4)), (9, (5, 9)), (1000, (6, 10))])
def test_the_part_before_ends_where_this_one_begins(
    program: Program, fair: Study, offset: int, expected: tuple[int, int]
) -> None:
    whole = read(program, f"{GENDER}/windows")["items"]
    assert len(whole) == 10
    links = program.get(f"{GENDER}/windows", {"limit": 4, "offset": offset})["Link"]
    found = re.search(r'<http://testserver(/[^>]*)>; rel="prev"', links)
    assert found is not None
    answer = program.client.get(found[1], headers={"Authorization": f"Bearer {program.token}"})
    assert answer.json()["items"] == whole[slice(*expected)]


def test_the_first_part_and_an_empty_list_have_none_before(program: Program) -> None:
    assert "Link" not in program.get("studies", {"offset": 5})
    factory.create()
    assert 'rel="prev"' not in program.get(f"{GENDER}/windows", {"limit": 4})["Link"]


def test_a_part_reads_only_its_own_windows(program: Program, fair: Study, mocker_calls: list[int]) -> None:
    read(program, f"{GENDER}/windows", limit=3)
    assert mocker_calls == [3]


@pytest.fixture
def mocker_calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many windows each call of the selector was asked for; the selector itself runs."""
    from reports.api import site

    calls: list[int] = []

    def counted(indicator: Any, windows: Any) -> Any:
        calls.append(len(windows))
        return selectors.indicator_reports(indicator, windows)

    monkeypatch.setattr(site, "indicator_reports", counted)
    return calls


@pytest.mark.parametrize("path", PATHS)
def test_answers_are_as_the_document_says(program: Program, fair: Study, path: str) -> None:
    DayNote.objects.create(study=fair, day=2, kind="event", text="parade", by="olga")
    document = program.get("openapi.json").json()
    template = f"/api/v1/{path}".replace("fair-2024", "{study}").replace("gender", "{indicator}")
    content = document["paths"][template]["get"]["responses"]["200"]["content"]
    schema = content["application/json"]["schema"] | {"components": document["components"]}
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(read(program, path))


def test_the_document_lists_these_operations_and_no_others(program: Program, fair: Study) -> None:
    document = program.get("openapi.json").json()
    templates = {
        f"/api/v1/{path}".replace("fair-2024", "{study}").replace("gender", "{indicator}")
        for path in PATHS + OF_PLACES
    }
    assert set(document["paths"]) == templates
    for methods in document["paths"].values():
        assert list(methods) == ["get"]
        assert set(methods["get"]["responses"]) == {"200", "304", "401", "404", "422"}
        refusal = methods["get"]["responses"]["404"]["content"]
        assert list(refusal) == ["application/problem+json"]
    assert set(document["components"]["securitySchemes"]) == {"Token", "Session"}


def test_a_study_without_data_has_zeros_and_nulls(program: Program) -> None:
    factory.create()
    day = read(program, f"{GENDER}/estimates", from_="2024-05-30")
    assert (day["n_visitors"], day["n_reports"]) == (0, 0)
    assert day["estimates"][0]["frequency"] is None
    assert {row["status"] for row in read(program, FAIR)["coverage"]} == {"not_collected"}


def test_the_session_of_a_reader_works_for_trying(reader: Client, fair: Study) -> None:
    assert reader.get("/api/v1/studies").json()["count"] == 1


def test_head_answers_like_get_without_the_body(program: Program, fair: Study) -> None:
    headers = {"Authorization": f"Bearer {program.token}"}
    answer = program.client.head(f"/api/v1/{FAIR}", headers=headers)
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer["ETag"] == program.get(FAIR)["ETag"]
