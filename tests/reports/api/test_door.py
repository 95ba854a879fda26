"""Who is let in, how refusals look, and what is not sent twice."""

import logging
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.utils import timezone, translation

from reports.models import ApiToken, DayNote, Study
from reports.policies import Role
from tests.reports import report_factory as factory
from tests.reports.api.conftest import Program
from tests.reports.api.test_reading import FAIR, GENDER, PATHS

pytestmark = pytest.mark.django_db
ALL = [*PATHS, "openapi.json"]


def refusal(answer: Any, status: int) -> dict[str, Any]:
    """The problem that an answer is."""
    assert answer.status_code == status, answer.content
    assert answer["Content-Type"] == "application/problem+json"
    found: dict[str, Any] = answer.json()
    assert (found["type"], found["status"]) == ("about:blank", status)
    assert found["title"]
    assert found["detail"]
    return found


@pytest.mark.parametrize("path", ALL)
class TestEveryAddress:
    def test_nobody_is_refused(self, client: Client, fair: Study, path: str) -> None:
        answer = client.get(f"/api/v1/{path}")
        refusal(answer, 401)
        assert answer["WWW-Authenticate"] == 'Bearer realm="mobility"'

    def test_readers_may_and_others_find_nothing(
        self, fair: Study, person: Callable[..., User], path: str
    ) -> None:
        for roles, status in (
            ((Role.ANALYST,), 200), ((Role.ADMINISTRATOR,), 200), ((Role.OPERATOR,), 404), ((), 404),
        ):  # fmt: skip
            client = Client()
            client.force_login(person(f"one-{'-'.join(roles)}", *roles))
            answer = client.get(f"/api/v1/{path}")
            assert answer.status_code == status
            if status == 404:
                refusal(answer, 404)

    def test_only_reading_is_possible(self, program: Program, fair: Study, path: str) -> None:
        for method in ("post", "put", "patch", "delete"):
            strict = Client(enforce_csrf_checks=True)
            answer = getattr(strict, method)(
                f"/api/v1/{path}", headers={"Authorization": f"Bearer {program.token}"}
            )
            refusal(answer, 405)
            assert answer["Allow"] == "GET, HEAD"

    def test_a_misspelled_parameter_is_refused(self, program: Program, fair: Study, path: str) -> None:
        found = refusal(program.get(path, {"form": "2024-05-30"}), 422)
        assert "'form'" in found["detail"]

    def test_an_answer_is_for_its_reader_and_not_sent_twice(
        self, program: Program, fair: Study, path: str
    ) -> None:
        first = program.get(path)
        assert first["Cache-Control"] == "private, no-cache"
        assert {"Authorization", "Cookie", "Accept-Language"} <= set(first["Vary"].split(", "))
        again = program.get(path, **{"If-None-Match": f'W/"x", {first["ETag"]}'})
        assert (again.status_code, again.content, again["ETag"]) == (304, b"", first["ETag"])
        assert program.get(path, **{"If-None-Match": '"other"'}).content == first.content


class TestTokens:
    @pytest.mark.parametrize(
        "header", ["Bearer", "Bearer ", "Bearer x", "Basic eDp5", "Bearer {token}x", "{token}", "Bearer ä"]
    )
    def test_what_is_not_the_token_opens_nothing(self, program: Program, fair: Study, header: str) -> None:
        text = header.format(token=program.token)
        refusal(Client().get("/api/v1/studies", headers={"Authorization": text}), 401)

    def test_a_wrong_token_is_refused_beside_a_session(self, reader: Client, fair: Study) -> None:
        refusal(reader.get("/api/v1/studies", headers={"Authorization": "Bearer x"}), 401)

    def test_expired_and_revoked_ones_open_nothing(self, program: Program, fair: Study) -> None:
        now = timezone.now()
        assert program.get("studies").status_code == 200
        ApiToken.objects.update(expires_at=now)
        refusal(program.get("studies"), 401)
        ApiToken.objects.update(expires_at=now + timedelta(days=1), revoked_at=now)
        refusal(program.get("studies"), 401)

    def test_it_ends_with_the_role_of_its_owner(self, program: Program, fair: Study, analyst: User) -> None:
        analyst.groups.clear()
        refusal(program.get("studies"), 401)
        analyst.groups.add(Group.objects.get(name=Role.OPERATOR))
        refusal(program.get("studies"), 401)
        analyst.groups.add(Group.objects.get(name=Role.ADMINISTRATOR))
        assert program.get("studies").status_code == 200
        User.objects.update(is_active=False)
        refusal(program.get("studies"), 401)

    def test_a_token_of_one_study_sees_no_other(self, token: Callable[..., str], fair: Study) -> None:
        other = factory.create(slug="market", name="The market")
        narrow, wide = Program(token(fair)), Program(token())
        assert [row["study"] for row in narrow.get("studies").json()["items"]] == ["fair-2024"]
        assert narrow.get(f"{FAIR}/visitors").status_code == 200
        for path in PATHS[1:]:
            hidden = path.replace("fair-2024", other.slug)
            unknown = path.replace("fair-2024", "nothing")
            assert refusal(narrow.get(hidden), 404) == refusal(narrow.get(unknown), 404)
            assert wide.get(hidden).status_code == 200

    def test_a_token_goes_with_its_study(self, token: Callable[..., str], fair: Study) -> None:
        other = factory.create(slug="market")
        narrow = Program(token(other))
        other.plans.all().delete()
        other.delete()
        refusal(narrow.get("studies"), 401)

    def test_its_text_is_in_no_log(
        self, program: Program, fair: Study, caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level(logging.DEBUG):
            program.get("studies")
            program.get("nowhere")
            program.get(f"{GENDER}/estimates", {"from": "x"})
            Client().get("/api/v1/studies", headers={"Authorization": f"Bearer {program.token}x"})
        assert program.token not in caplog.text


class TestRefusals:
    @pytest.mark.parametrize(
        "path",
        ["nowhere", "studies/", "studies/nope", f"{FAIR}/nope", f"{FAIR}/indicators/nope", "studies/a%00b"],
    )
    def test_what_is_not_there(self, program: Program, fair: Study, path: str) -> None:
        refusal(program.get(path), 404)

    @pytest.mark.parametrize(
        ("query", "parameter", "words"),
        [
            ({"from": "31 May"}, "from", "must be a date such as 2017-05-31"),
            ({"from": "1717106400"}, "from", "must be a date"),
            ({"from": "20240530"}, "from", "must be a date"),
            ({"to": "2024-05-30T10:00"}, "to", "must be a date"),
            ({"format": "xml"}, "format", "json"),
        ],
    )
    def test_a_parameter_that_means_nothing_is_named(
        self, program: Program, fair: Study, query: dict[str, str], parameter: str, words: str
    ) -> None:
        found = refusal(program.get(f"{GENDER}/estimates", query), 422)
        assert [error["parameter"] for error in found["errors"]] == [parameter]
        assert words in found["errors"][0]["detail"]

    @pytest.mark.parametrize("query", [{"limit": "0"}, {"limit": "201"}, {"offset": "-1"}, {"limit": "x"}])
    def test_parts_have_bounds(self, program: Program, fair: Study, query: dict[str, str]) -> None:
        found = refusal(program.get(f"{GENDER}/windows", query), 422)
        assert found["errors"][0]["parameter"] == next(iter(query))

    @pytest.mark.parametrize(
        "query",
        [{"from": "2030-01-01"}, {"from": "2024-06-01", "to": "2024-05-30"}, {"to": "2024-05-01"}],
    )
    def test_a_window_that_the_study_does_not_have(
        self, program: Program, fair: Study, query: dict[str, str]
    ) -> None:
        found = refusal(program.get(f"{GENDER}/estimates", query), 422)
        assert "window must lie within 2024-05-30 to 2024-06-02" in found["detail"]

    def test_a_union_that_does_not_exist(self, program: Program) -> None:
        from dataclasses import replace

        study = factory.create(replace(factory.STAY, max_values=2))
        factory.publish(study, factory.crowd(study))
        path = f"{FAIR}/indicators/stay"
        assert "must be a single day" in refusal(program.get(f"{path}/estimates"), 422)["detail"]
        assert program.get(path).json()["unions_of_days"] is False
        assert program.get(f"{path}/windows").json()["count"] == 4

    def test_a_fault_of_ours_is_a_problem_too_and_logged(
        self, program: Program, fair: Study, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        from reports.api import site

        def broken(*_: object) -> None:
            raise RuntimeError("row 7 of somebody")

        monkeypatch.setattr(site, "visitor_unions", broken)
        program.client.raise_request_exception = False
        found = refusal(program.get(f"{FAIR}/visitors"), 500)
        assert "row 7" not in str(found)
        assert [record.levelname for record in caplog.records if record.name == "django.request"] == ["ERROR"]

    def test_an_answer_that_has_changed_since(self, program: Program, fair: Study) -> None:
        refusal(program.get(FAIR, **{"If-Match": '"old"'}), 412)


class TestEtag:
    """Whatever an answer depends on changes its tag."""

    @pytest.mark.parametrize("path", [f"{GENDER}/estimates", FAIR, "studies", f"{FAIR}/statement"])
    @pytest.mark.parametrize(
        "change",
        [
            lambda study: factory.publish(study, factory.crowd(study, n=50, seed=5), key=bytes(range(16))),
            lambda study: factory.publish(study, factory.crowd(study, n=50, seed=6), voided_days=1),
            lambda study: Study.objects.filter(pk=study.pk).update(small_cell=10_000_000),
            lambda study: Study.objects.filter(pk=study.pk).update(name="Another"),
            lambda study: DayNote.objects.create(study=study, day=1, kind="outage", text="mast", by="olga"),
        ],
        ids=["publication", "voided day", "small cells", "name", "note"],
    )
    def test_it_follows(
        self, program: Program, fair: Study, path: str, change: Callable[[Study], object]
    ) -> None:
        before = program.get(path)
        change(fair)
        after = program.get(path, **{"If-None-Match": before["ETag"]})
        assert (after.status_code, after["ETag"] == before["ETag"]) == (200, False)

    def test_a_note_that_is_replaced_counts(self, program: Program, fair: Study) -> None:
        from reports.services.notes import note_day

        given: dict[str, Any] = {"day": fair.first_day, "kind": DayNote.Kind.OUTAGE, "by": "olga"}
        note_day(fair, text="mast", **given)
        before = program.get(FAIR)
        note_day(fair, text="mast and power", **given)
        assert program.get(FAIR)["ETag"] != before["ETag"]

    def test_another_study_leaves_it_alone(self, program: Program, fair: Study) -> None:
        before = program.get(FAIR)["ETag"]
        factory.create(slug="market")
        assert program.get(FAIR)["ETag"] == before

    def test_language_and_question_have_their_own(self, program: Program, fair: Study) -> None:
        tags = {
            program.get(f"{FAIR}/statement", **{"Accept-Language": code})["ETag"] for code in ("en", "fr")
        }
        assert len(tags) == 2
        windows = {program.get(f"{GENDER}/windows", {"limit": n})["ETag"] for n in (1, 2)}
        assert len(windows) == 2
        translation.activate("en")

    def test_nothing_is_computed_for_what_the_reader_has(
        self, program: Program, fair: Study, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from reports.api import site

        tag = program.get(f"{GENDER}/windows")["ETag"]

        def never(*_: object) -> None:
            raise AssertionError("computed")

        monkeypatch.setattr(site, "indicator_reports", never)
        assert program.get(f"{GENDER}/windows", **{"If-None-Match": tag}).status_code == 304


class TestUse:
    def test_it_is_noted_to_the_minute(self, program: Program, fair: Study) -> None:
        program.get("studies")
        first = ApiToken.objects.get().last_used_at
        assert first is not None
        program.get("studies")
        assert ApiToken.objects.get().last_used_at == first
        ApiToken.objects.update(last_used_at=first - timedelta(minutes=2))
        program.get("studies")
        assert ApiToken.objects.get().last_used_at > first

    def test_queries_do_not_grow_with_windows(
        self, program: Program, fair: Study, django_assert_max_num_queries: Any
    ) -> None:
        program.get("studies")
        with django_assert_max_num_queries(17):  # 7 of them for the ledger
            program.get(f"{GENDER}/windows", {"limit": 1})
        with django_assert_max_num_queries(17):
            program.get(f"{GENDER}/windows")


def test_the_framework_is_imported_by_the_first_question_only() -> None:
    code = (
        "import sys, django; django.setup(); import mobility.urls; from django.urls import reverse;"
        "reverse('reading:docs'); print([name for name in ('ninja', 'pydantic') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
