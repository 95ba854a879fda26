"""Reading API: contents, parts, access, refusals, and unchanged answers."""

import csv
import io
import json
import logging
import re
from dataclasses import replace
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.utils import timezone, translation

from reports.api import site
from reports.estimates import queries
from reports.estimates.notes import note_day
from reports.estimates.queries import Window
from reports.exports.places.selection import select_places, square_columns, zones_to_json
from reports.exports.records import report_record, to_csv
from reports.maps import actions as densities
from reports.models import ApiToken, DayNote, DensityMap, Study
from reports.studies.policies import Role
from tests.mobility.pages.access_rules import OF_EVENTS, QUESTIONS, READING
from tests.reports import map_factory
from tests.reports import report_factory as factory
from tests.reports.api.conftest import Program, check_answers
from tests.reports.exports.conftest import WHOLE, located_study, with_density
from tests.reports.map_factory import GRID

pytestmark = pytest.mark.django_db
FAIR = "studies/fair-2024"
GENDER = f"{FAIR}/indicators/gender"
PATHS = [
    "studies", FAIR, f"{FAIR}/visitors", f"{FAIR}/statement", f"{FAIR}/indicators", GENDER,
    f"{GENDER}/estimates", f"{GENDER}/days", f"{GENDER}/windows", f"{FAIR}/scenario", f"{GENDER}/scenario",
]  # fmt: skip
DAYS = range(1, 5)
ALL = [*PATHS, "openapi.json"]
CHANGES = {
    "publication": lambda fair: factory.publish(fair, factory.crowd(fair, n=50, seed=5), key=b"k" * 16),
    "voided day": lambda fair: factory.publish(fair, factory.crowd(fair, n=50, seed=6), voided_days=1),
    "small cells": lambda fair: Study.objects.filter(pk=fair.pk).update(small_cell=10_000_000),
    "name": lambda fair: Study.objects.filter(pk=fair.pk).update(name="Another"),
    "note": lambda fair: note_day(fair, day=fair.first_day, kind="outage", text="mast", by="olga"),
    "another note": lambda fair: note_day(fair, day=fair.first_day, kind="outage", text="power", by="olga"),
}
PLACES = f"{FAIR}/places"
SQUARES = f"{PLACES}/grid"


def report(study, slug, first, last):
    found = queries.window_report(study.indicators.get(slug=slug), Window(first, last))
    return json.loads(json.dumps(report_record(found)))


def refusal(answer, status):
    assert answer.status_code == status, answer.content
    assert answer["Content-Type"] == "application/problem+json"
    found = answer.json()
    assert (found["type"], found["status"]) == ("about:blank", status) and found["title"] and found["detail"]
    return found


def rows_of(study):
    columns = square_columns(select_places(study, WHOLE))
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


class TestNumbers:
    def test_an_estimate_is_that_of_the_exports_by_default_of_the_study_and_csv_too(self, program, fair):
        found = program.read(f"{GENDER}/estimates", from_="2024-05-31", to="2024-06-01")
        assert found == report(fair, "gender", 2, 3)
        assert found["estimates"][0]["ci_low"] < found["estimates"][0]["frequency"]
        assert program.read(f"{GENDER}/estimates") == report(fair, "gender", 1, 4)
        assert program.read(f"{GENDER}/estimates", from_="2024-06-01") == report(fair, "gender", 3, 3)
        assert program.read(f"{GENDER}/estimates", to="2024-05-31") == report(fair, "gender", 1, 2)
        answer = program.get(f"{GENDER}/estimates", {"format": "csv", "from": "2024-05-30"})
        assert answer["Content-Type"] == "text/csv; charset=utf-8"
        found = queries.window_report(fair.indicators.get(slug="gender"), Window(1, 1))
        assert answer.content.decode() == to_csv([found])
        rows = list(csv.DictReader(io.StringIO(answer.content.decode())))
        assert [row["category"] for row in rows] == ["F", "M", "NR"]

    def test_visitors_are_exact(self, program, fair):
        unions = queries.visitor_unions(fair)
        counts = [int(unions[each.first_day, each.last_day]) for each in queries.windows_of(fair)]
        assert [row["n_visitors"] for row in program.read(f"{FAIR}/visitors")["items"]] == counts
        between = program.read(f"{FAIR}/visitors", from_="2024-05-31", to="2024-06-01")
        assert [(row["first_day"], row["last_day"]) for row in between["items"]] == [
            ("2024-05-31", "2024-05-31"), ("2024-05-31", "2024-06-01"), ("2024-06-01", "2024-06-01"),
        ]  # fmt: skip

    def test_what_was_counted_has_its_status_and_is_the_same_everywhere(self, program):
        study = factory.create()
        factory.publish(study, factory.absent_on(factory.crowd(study), day=3))
        for day in (2, 3):
            DayNote.objects.create(study=study, day=day, kind="outage", text="mast down", by="olga")
        unions = queries.visitor_unions(study)
        counted = [(int(unions[day, day]), "ok" if day in (1, 4) else "outage") for day in DAYS]
        assert counted[2] == (0, "outage")
        coverage = program.read(FAIR)["coverage"]
        assert [day["first_time"] for day in coverage] == [int(unions[1, d] - unions[1, d - 1]) for d in DAYS]
        assert [day["notes"] for day in coverage[:2]] == [[], [{"kind": "outage", "text": "mast down"}]]
        visitors = program.read(f"{FAIR}/visitors")["items"]
        single = [row for row in visitors if row["first_day"] == row["last_day"]]
        for rows in (coverage, program.read(f"{GENDER}/days")["items"], single):
            assert [(row["n_visitors"], row["status"]) for row in rows] == counted

    def test_a_study_says_what_where_and_when_and_its_indicators_their_public_categories(self, program, fair):
        found, indicators = program.read(FAIR), program.read(f"{FAIR}/indicators")["items"]
        assert found["visitor"] == {"min_minutes": 60, "from": "06:00", "to": "23:59"}
        assert (found["days"], found["n_windows"], found["plan"]["mechanism"]) == (4, 10, "smp-grr")
        assert found["n_visitors"] == int(queries.visitor_unions(fair)[1, 4])
        assert program.read("studies")["items"][0]["n_visitors"] == found["n_visitors"]
        assert [row["indicator"] for row in indicators] == found["indicators"] == ["gender", "age", "stay"]
        assert indicators[1]["categories"] == ["<18", "18-24", "25 & older"]
        assert program.read(f"{FAIR}/indicators/age") == indicators[1]
        assert (indicators[0]["epsilon"], indicators[0]["unit"]) == (1.0, "profile")


class TestParts:
    def test_parts_of_a_list_join_to_the_whole(self, program, fair):
        whole = program.read(f"{GENDER}/windows")["items"]
        assert len(whole) == 10
        assert program.read_parts(f"{GENDER}/windows", limit=4) == whole
        # The part before ends where this one begins.
        for offset, first, end in ((3, 0, 3), (4, 0, 4), (9, 5, 9), (1000, 6, 10)):
            links = program.get(f"{GENDER}/windows", {"limit": 4, "offset": offset})["Link"]
            before = re.search(r'<http://testserver(/[^>]*)>; rel="prev"', links)[1]
            assert program.client.get(before, headers=program.headers).json()["items"] == whole[first:end]
        assert 'rel="prev"' not in program.get(f"{GENDER}/windows", {"limit": 4})["Link"]
        assert program.read(f"{GENDER}/windows", offset=1000)["items"] == []

    def test_a_part_of_many_categories_has_fewer_windows_and_leads_on(self, program, fair, monkeypatch):
        whole = program.read(f"{GENDER}/windows")["items"]
        monkeypatch.setattr(site, "ESTIMATES_MAX", 4 * len(whole[0]["estimates"]) + 1)
        assert program.read(f"{GENDER}/windows")["items"] == whole[:4]
        assert program.read_parts(f"{GENDER}/windows", limit=200) == whole
        monkeypatch.setattr(site, "ESTIMATES_MAX", 1)
        assert program.read(f"{GENDER}/windows")["items"] == whole[:1]


class TestDocument:
    def test_answers_are_as_the_document_says(self, program, fair):
        DayNote.objects.create(study=fair, day=2, kind="event", text="parade", by="olga")
        check_answers(program, *PATHS, f"{FAIR}/forecast")

    def test_the_document_lists_all_operations_and_how_they_may_be_answered(self, program):
        document = program.get("openapi.json").json()
        listed = {f"/api/v1{path}" for path in (*READING, *OF_EVENTS)}
        unlisted = {"/api/v1/openapi.json", "/api/v1/studies/{study}/features"}  # the latter with a slash
        assert set(document["paths"]) == listed - unlisted
        for path, methods in document["paths"].items():
            is_question, is_of_standard = path.removeprefix("/api/v1") in QUESTIONS, "/features/" in path
            (method,) = methods
            assert method == ("post" if is_question else "get")
            answers = {"200", "401", "404"} | ({"400"} if is_question or is_of_standard else set())
            answers |= (set() if is_question else {"304"}) | (set() if is_of_standard else {"422"})
            assert set(methods[method]["responses"]) == answers, path
            assert list(methods[method]["responses"]["404"]["content"]) == ["application/problem+json"]
        assert set(document["components"]["securitySchemes"]) == {"Token", "Session"}

    def test_head_answers_like_get_without_the_body_and_sessions_may_try(self, program, reader, fair):
        assert reader.get("/api/v1/studies").json()["count"] == 1
        answer = program.client.head(f"/api/v1/{FAIR}", headers=program.headers)
        assert (answer.status_code, answer.content, answer["ETag"]) == (200, b"", program.get(FAIR)["ETag"])


class TestEveryAddress:
    def test_only_reading_is_possible(self, program, fair):
        strict = Client(enforce_csrf_checks=True)
        for path in ALL:
            for method in (strict.post, strict.put, strict.patch, strict.delete):
                answer = method(f"/api/v1/{path}", headers=program.headers)
                refusal(answer, 405)
                assert answer["Allow"] == "GET, HEAD"
            # A misspelled parameter is refused, too.
            assert "'form'" in refusal(program.get(path, {"form": "2024-05-30"}), 422)["detail"]

    def test_an_answer_is_for_its_reader_and_not_sent_twice(self, program, fair):
        for path in ALL:
            first = program.get(path)
            assert first["Cache-Control"] == "private, no-store"
            assert {"Authorization", "Cookie", "Accept-Language"} <= set(first["Vary"].split(", "))
            again = program.get(path, **{"If-None-Match": f'W/"x", {first["ETag"]}'})
            assert (again.status_code, again.content, again["ETag"]) == (304, b"", first["ETag"])
            assert program.get(path, **{"If-None-Match": '"other"'}).content == first.content
        refusal(program.get(FAIR, **{"If-Match": '"old"'}), 412)


class TestTokens:
    def test_what_is_not_the_token_opens_nothing(self, program, reader):
        right = f"Bearer {program.token}"
        for header in ("Bearer", "Bearer ", "Bearer x", "Basic eDp5", right + "x", program.token, "Bearer ä"):
            answer = Client().get("/api/v1/studies", headers={"Authorization": header})
            refusal(answer, 401)
            assert answer["WWW-Authenticate"] == 'Bearer realm="mobility"'
        # Also with a session.
        refusal(reader.get("/api/v1/studies", headers={"Authorization": "Bearer x"}), 401)

    def test_expired_and_revoked_ones_open_nothing_and_others_end_with_the_role(self, program, analyst):
        now = timezone.now()
        assert program.get("studies").status_code == 200
        for state in ({"expires_at": now}, {"expires_at": now + timedelta(days=1), "revoked_at": now}):
            ApiToken.objects.update(**state)
            refusal(program.get("studies"), 401)
        ApiToken.objects.update(revoked_at=None)
        analyst.groups.clear()
        refusal(program.get("studies"), 401)
        analyst.groups.add(Group.objects.get(name=Role.OPERATOR))
        refusal(program.get("studies"), 401)
        analyst.groups.add(Group.objects.get(name=Role.ADMINISTRATOR))
        assert program.get("studies").status_code == 200
        User.objects.update(is_active=False)
        refusal(program.get("studies"), 401)

    def test_a_token_of_one_study_sees_no_other_and_goes_with_it(self, token, fair):
        other = factory.create(slug="market", name="The market")
        narrow, gone = Program(token(fair)), Program(token(other))
        assert [row["study"] for row in narrow.read("studies")["items"]] == ["fair-2024"]
        assert narrow.get(f"{FAIR}/visitors").status_code == 200
        for path in PATHS[1:]:
            hidden, unknown = (narrow.get(path.replace("fair-2024", slug)) for slug in ("market", "nothing"))
            assert refusal(hidden, 404) == refusal(unknown, 404)
        other.plans.all().delete()
        other.delete()
        refusal(gone.get("studies"), 401)

    def test_its_text_is_in_no_log(self, program, fair, caplog):
        with caplog.at_level(logging.DEBUG):
            program.get("studies")
            program.get("nowhere")
            program.get(f"{GENDER}/estimates", {"from": "x"})
            Client().get("/api/v1/studies", headers={"Authorization": f"Bearer {program.token}x"})
        assert program.token not in caplog.text

    def test_its_use_is_noted_to_the_minute(self, program):
        program.get("studies")
        first = ApiToken.objects.get().last_used_at
        program.get("studies")
        assert ApiToken.objects.get().last_used_at == first
        ApiToken.objects.update(last_used_at=first - timedelta(minutes=2))
        program.get("studies")
        assert ApiToken.objects.get().last_used_at > first


class TestRefusals:
    def test_what_is_not_there_and_a_window_that_the_study_does_not_have(self, program, fair):
        missing = ["nowhere", "studies/", "studies/nope", "studies/a%00b"]
        for path in [*missing, f"{FAIR}/nope", f"{FAIR}/indicators/nope"]:
            refusal(program.get(path), 404)
        for query in ({"from": "2030-01-01"}, {"to": "2024-05-01"}):
            found = refusal(program.get(f"{GENDER}/estimates", query), 422)
            assert "date range must lie between 2024-05-30 and 2024-06-02" in found["detail"]

    def test_days_in_any_order_are_the_window_between_them(self, program, fair):
        first, last = "2024-05-30", "2024-06-01"
        found = program.read(f"{GENDER}/estimates?from={last}&to={first}")
        assert found == program.read(f"{GENDER}/estimates?from={first}&to={last}")
        assert (found["first_day"], found["last_day"]) == (first, last)

    def test_a_parameter_that_means_nothing_is_named(self, program, fair):
        for parameter, value, said in (
            ("from", "31 May", "must be a date such as 2017-05-31"),
            ("from", "1717106400", "must be a date"),
            ("from", "20240530", "must be a date"),
            ("to", "2024-05-30T10:00", "must be a date"),
            ("format", "xml", "json"),
        ):
            found = refusal(program.get(f"{GENDER}/estimates", {parameter: value}), 422)
            assert [error["parameter"] for error in found["errors"]] == [parameter]
            assert said in found["errors"][0]["detail"]
        for parameter, value in (("limit", "0"), ("limit", "201"), ("offset", "-1"), ("limit", "x")):
            found = refusal(program.get(f"{GENDER}/windows", {parameter: value}), 422)
            assert found["errors"][0]["parameter"] == parameter

    def test_a_union_that_does_not_exist(self, program):
        map_factory.create_located(factory.HALF_STAY, location=replace(map_factory.LOCATION, max_values=2))
        assert "on only 2 of the study's days" in refusal(program.get(PLACES), 422)["detail"]
        assert program.get(PLACES, {"from": "2024-05-30"}).status_code == 200
        path = f"{FAIR}/indicators/stay"
        assert "must be a single day" in refusal(program.get(f"{path}/estimates"), 422)["detail"]
        assert program.read(path)["unions_of_days"] is False
        assert program.read(f"{path}/windows")["count"] == 4

    def test_a_fault_of_ours_is_a_problem_too_and_logged(self, program, fair, monkeypatch, caplog):
        def broken(*_):
            raise RuntimeError("row 7 of somebody")

        monkeypatch.setattr(site, "visitor_unions", broken)
        program.client.raise_request_exception = False
        assert "row 7" not in str(refusal(program.get(f"{FAIR}/visitors"), 500))
        levels = [record.levelname for record in caplog.records if record.name == "django.request"]
        assert levels == ["ERROR"]


class TestEtag:  # every input of an answer changes it
    @pytest.mark.parametrize("path", [f"{GENDER}/estimates", FAIR, "studies", f"{FAIR}/statement"])
    def test_it_follows(self, program, fair, path):
        before = program.get(path)
        for name, change in CHANGES.items():
            change(fair)
            after = program.get(path, **{"If-None-Match": before["ETag"]})
            assert (after.status_code, after["ETag"] == before["ETag"]) == (200, False), name
            before = after

    def test_language_and_question_have_their_own_and_another_study_leaves_it_alone(self, program, fair):
        def tags(path, query=None, **headers):
            return program.get(path, query, **headers)["ETag"]

        english, french = (tags(f"{FAIR}/statement", **{"Accept-Language": code}) for code in ("en", "fr"))
        assert english != french
        assert tags(f"{GENDER}/windows", {"limit": 1}) != tags(f"{GENDER}/windows", {"limit": 2})
        translation.activate("en")
        before = tags(FAIR)
        factory.create(slug="market")
        assert tags(FAIR) == before

    def test_nothing_is_computed_for_what_the_reader_has(self, program, fair, monkeypatch):
        tag = program.get(f"{GENDER}/windows")["ETag"]
        monkeypatch.setattr(site, "indicator_reports", None)
        assert program.get(f"{GENDER}/windows", **{"If-None-Match": tag}).status_code == 304


def test_queries_do_not_grow_with_windows(program, fair, django_assert_max_num_queries):
    program.get("studies")
    for query in ({"limit": 1}, {}):
        with django_assert_max_num_queries(18):  # 8 of them for the ledger
            program.get(f"{GENDER}/windows", query)


class TestPlaces:
    def test_zones_and_squares_are_those_of_the_file(self, program, computed):
        found = program.read(PLACES)
        assert found == json.loads(zones_to_json(select_places(computed, WHOLE)))
        assert found["density_status"] == "done"
        assert found["zones"][0]["ci_low"] < found["zones"][0]["ci_high"]
        day = program.read(PLACES, from_="2024-05-31")
        assert (day["first_day"], day["last_day"]) == ("2024-05-31", "2024-05-31")
        assert (day["density_status"], day["zones"][0]["subscribers"]) == ("not_computed", None)
        found = program.read(SQUARES, all="true")
        assert (found["count"], found["next"], found["items"]) == (GRID.n_cells, None, rows_of(computed))
        assert found["window"]["grid"] == GRID.to_json()
        assert found["window"]["projection"] == computed.area.projection
        assert found["window"]["n_reports"] == 3000

    def test_squares_with_nothing_are_left_out(self, program, computed):
        row = DensityMap.objects.get()
        layers = row.get_layers(GRID.shape).copy()
        empty = (select_places(computed, WHOLE).found.counts == 0).nonzero()
        assert empty[0].size >= 3
        layers[0][empty] = 0.0
        layers[0, empty[0][0], empty[1][0]] = 0.05
        layers[0, empty[0][1], empty[1][1]] = 0.0499
        row.set_layers(layers).save()
        listed = {each["square"] for each in program.read(SQUARES)["items"]}
        codes = (empty[0] * GRID.n_x + empty[1]).tolist()
        assert listed == set(range(GRID.n_cells)) - set(codes[1:])

    @pytest.mark.parametrize("path", [PLACES, SQUARES])
    def test_what_is_unchanged_is_not_sent_until_the_density_comes(self, program, located, path, monkeypatch):
        first = program.get(path)
        assert program.get(path, **{"If-None-Match": first["ETag"]}).status_code == 304
        monkeypatch.setattr("reports.maps.actions.send_on_commit", lambda *_: None)
        densities.ask_for_maps(located, [WHOLE])
        second = program.get(path, **{"If-None-Match": first["ETag"]})
        assert second.status_code == 200
        DensityMap.objects.update(state="failed")
        third = program.get(path, **{"If-None-Match": second["ETag"]})
        assert third.status_code == 200
        assert (third.json() if path == PLACES else third.json()["window"])["density_status"] == "failed"

    def test_answers_are_as_the_document_says_in_every_state(self, program, located):
        check_answers(program, PLACES, SQUARES)
        with_density(located)
        check_answers(program, PLACES, SQUARES)
        for day in range(1, 5):
            DayNote.objects.create(study=located, day=day, kind="outage", text="mast down", by="olga")
        check_answers(program, PLACES, SQUARES)
        Study.objects.update(small_cell=3001)
        check_answers(program, PLACES, SQUARES)

    def test_a_study_without_places_has_none(self, program, reader, fair):
        def tried():
            return {found["try_url"] for found in reader.get("/api/v1/docs/").context["operations"]}

        for path in (PLACES, SQUARES):
            answer = program.get(path)
            assert "people do not report places" in refusal(answer, 404)["detail"]
        assert "/places" not in "".join(tried())
        located_study(slug="located")
        assert {"/api/v1/studies/located/places", "/api/v1/studies/located/places/grid"} <= tried()
