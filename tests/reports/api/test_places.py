"""Reported places for programs: zones and squares as in the files, in parts, with states and refusals."""

import json
from dataclasses import replace
from typing import Any

import pytest
from django.test import Client
from jsonschema import Draft202012Validator

from reports import tasks
from reports.exports.places import select_places, square_columns, zones_to_json
from reports.models import DayNote, DensityMap, Study
from reports.selectors import Window
from reports.services import densities
from tests.reports import map_factory
from tests.reports import report_factory as factory
from tests.reports.api.conftest import Program
from tests.reports.map_factory import GRID

pytestmark = pytest.mark.django_db
PLACES = "studies/fair-2024/places"
SQUARES = f"{PLACES}/grid"
WHOLE = Window(1, 4)


@pytest.fixture
def located() -> Study:
    return map_factory.create_located()


@pytest.fixture
def computed(located: Study, monkeypatch: pytest.MonkeyPatch) -> Study:
    asked: list[int] = []
    monkeypatch.setattr(tasks.compute_density, "delay_on_commit", asked.append)
    densities.ask_for_maps(located, [WHOLE])
    tasks.compute_density(asked[0])
    return located


def read(program: Program, path: str, **query: Any) -> Any:
    answer = program.get(path, {name.rstrip("_"): value for name, value in query.items()})
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_zones_are_those_of_the_file(program: Program, computed: Study) -> None:
    found = read(program, PLACES)
    assert found == json.loads(zones_to_json(select_places(computed, WHOLE)))
    assert found["density_status"] == "done"
    assert found["zones"][0]["ci_low"] < found["zones"][0]["ci_high"]
    day = read(program, PLACES, from_="2024-05-31")
    assert (day["first_day"], day["last_day"], day["density_status"]) == (
        "2024-05-31",
        "2024-05-31",
        "not_computed",
    )
    assert day["zones"][0]["subscribers"] is None


def rows_of(study: Study) -> list[dict[str, Any]]:
    columns = square_columns(select_places(study, WHOLE))
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def test_squares_are_those_of_the_file(program: Program, computed: Study) -> None:
    found = read(program, SQUARES, all="true")
    assert (found["count"], found["next"]) == (GRID.n_cells, None)
    assert found["items"] == rows_of(computed)
    assert found["window"]["grid"] == GRID.to_json()
    assert found["window"]["projection"] == computed.area.projection
    assert found["window"]["n_reports"] == 3000


def test_squares_with_nothing_are_left_out(program: Program, computed: Study) -> None:
    row = DensityMap.objects.get()
    layers = row.get_layers(GRID.shape).copy()
    (found,) = [select_places(computed, WHOLE).found]
    empty = (found.counts == 0).nonzero()
    assert empty[0].size >= 3
    layers[0][empty] = 0.0
    layers[0, empty[0][0], empty[1][0]] = 0.05
    layers[0, empty[0][1], empty[1][1]] = 0.0499
    row.set_layers(layers).save()
    listed = {each["square"] for each in read(program, SQUARES)["items"]}
    codes = (empty[0] * GRID.n_x + empty[1]).tolist()
    assert listed == set(range(GRID.n_cells)) - set(codes[1:])


def test_parts_join_to_the_whole(program: Program, located: Study) -> None:
    whole = read(program, SQUARES)["items"]
    assert whole == [row for row in rows_of(located) if row["reports"]]
    found: list[Any] = []
    path = f"/api/v1/{SQUARES}?limit=100"
    while path:
        answer = program.client.get(path, headers={"Authorization": f"Bearer {program.token}"})
        found += answer.json()["items"]
        path = (answer.json()["next"] or "").removeprefix("http://testserver")
        assert ('rel="next"' in answer.get("Link", "")) == bool(path)
    assert found == whole


@pytest.mark.parametrize("path", [PLACES, SQUARES])
def test_what_is_unchanged_is_not_sent_again_until_the_density_comes(
    program: Program, located: Study, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = program.get(path)
    assert program.get(path, **{"If-None-Match": first["ETag"]}).status_code == 304
    monkeypatch.setattr(tasks.compute_density, "delay_on_commit", lambda _pk: None)
    densities.ask_for_maps(located, [WHOLE])
    second = program.get(path, **{"If-None-Match": first["ETag"]})
    assert second.status_code == 200
    DensityMap.objects.update(state="failed")
    third = program.get(path, **{"If-None-Match": second["ETag"]})
    assert third.status_code == 200
    facts = third.json() if path == PLACES else third.json()["window"]
    assert facts["density_status"] == "failed"


@pytest.mark.parametrize("state", ["plain", "computed", "suppressed", "outage"])
@pytest.mark.parametrize("path", [PLACES, SQUARES])
def test_answers_are_as_the_document_says(
    program: Program, request: pytest.FixtureRequest, path: str, state: str
) -> None:
    study = request.getfixturevalue("computed" if state == "computed" else "located")
    if state == "suppressed":
        Study.objects.update(small_cell=3001)
    if state == "outage":
        for day in range(1, 5):
            DayNote.objects.create(study=study, day=day, kind="outage", text="mast down", by="olga")
    document = program.get("openapi.json").json()
    template = f"/api/v1/{path}".replace("fair-2024", "{study}")
    content = document["paths"][template]["get"]["responses"]["200"]["content"]
    schema = content["application/json"]["schema"] | {"components": document["components"]}
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(read(program, path))


def test_a_suppressed_window_has_no_numbers(program: Program, computed: Study) -> None:
    Study.objects.update(small_cell=3001)
    found = read(program, PLACES)
    assert (found["status"], found["n_visitors"], found["n_reports"]) == ("suppressed", None, None)
    for zone in found["zones"]:
        assert {zone[name] for name in ("reports", "subscribers", "std_error", "ci_low", "ci_high")} == {None}
    assert read(program, SQUARES)["items"] == []
    squares = read(program, SQUARES, all="true")["items"]
    assert {each[name] for each in squares for name in ("reports", "density", "low", "high")} == {None}


@pytest.mark.parametrize(
    ("path", "query", "status", "words"),
    [
        (PLACES, {"from": "2030-01-01"}, 422, "window must lie within"),
        (PLACES, {"form": "2024-05-30"}, 422, "no parameter"),
        (PLACES, {"format": "csv"}, 422, "no parameter"),
        (SQUARES, {"limit": 10_001}, 422, "cannot be understood"),
        (SQUARES, {"all": "perhaps"}, 422, "cannot be understood"),
        (f"{PLACES}/hexagons", {}, 404, "no such address"),
    ],
)
def test_what_means_nothing_is_refused(
    program: Program, located: Study, path: str, query: dict[str, Any], status: int, words: str
) -> None:
    answer = program.get(path, query)
    assert (answer.status_code, answer["Content-Type"]) == (status, "application/problem+json")
    assert words in answer.json()["detail"]


def test_unions_are_refused_where_people_report_on_some_days(program: Program) -> None:
    map_factory.create_located(location=replace(map_factory.LOCATION, max_values=2))
    answer = program.get(PLACES)
    assert answer.status_code == 422
    assert "on 2 days only" in answer.json()["detail"]
    assert program.get(PLACES, {"from": "2024-05-30"}).status_code == 200


def test_a_study_without_places_has_none(program: Program, fair: Study) -> None:
    for path in (PLACES, SQUARES):
        answer = program.get(path)
        assert (answer.status_code, answer.json()["detail"]) == (404, "The study has no reported places.")


def test_a_token_of_another_study_does_not_open_it(token: Any, located: Study) -> None:
    other = factory.create(slug="other")
    for path in (PLACES, SQUARES):
        assert Program(token(other)).get(path).status_code == 404
        assert Client().get(f"/api/v1/{path}").status_code == 401
        assert Client().post(f"/api/v1/{path}").status_code == 405


def test_the_page_of_the_api_tries_a_study_with_places(reader: Client, fair: Study) -> None:
    assert "/places" not in "".join(_tried(reader))
    map_factory.create_located(slug="located")
    assert {"/api/v1/studies/located/places", "/api/v1/studies/located/places/grid"} <= set(_tried(reader))


def _tried(reader: Client) -> list[str]:
    return [found["try_url"] for found in reader.get("/api/v1/docs/").context["operations"]]
