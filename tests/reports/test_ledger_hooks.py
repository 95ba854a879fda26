"""What the analyst zone does is in the ledger: files, answers of the API, links, tokens and sign-ins."""

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from io import StringIO
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from reports import tasks
from reports.api import door
from reports.models import LedgerEntry, LedgerHead, LedgerKind, ShareLink, Study
from reports.selectors import Window
from reports.services import access
from reports.services.handouts import record_answer
from reports.services.ledger_checks import check_now_and_then
from tests.reports import map_factory
from tests.reports import report_factory as factory

pytestmark = pytest.mark.django_db
STUDY = "fair-2024"


def told(kind: LedgerKind) -> list[LedgerEntry]:
    return list(LedgerEntry.objects.filter(kind=kind.value).order_by("number"))


def exports() -> list[dict[str, Any]]:
    return [entry.facts for entry in told(LedgerKind.EXPORT_MADE)]


class TestFiles:
    @pytest.mark.parametrize(
        ("path", "facts"),
        [
            ("export.json", {"file": "fair-2024.json"}),
            ("statement.json", {"file": "fair-2024_statement.json"}),
            ("bundle.zip", {"file": "fair-2024_bundle.zip"}),
            ("gender/days.csv", {"file": "fair-2024_gender_days.csv"}),
            (
                "gender/export.csv?from=2024-05-30&to=2024-05-31",
                {
                    "file": "fair-2024_gender_2024-05-30_2024-05-31.csv",
                    "from": "2024-05-30",
                    "to": "2024-05-31",
                },
            ),
            (
                "gender/compare.csv?kind=windows&from=2024-05-30&to=2024-05-30&with_from=2024-05-31&with_to=2024-06-01",
                {
                    "file": "fair-2024_gender_compare_windows.csv",
                    "from": "2024-05-30",
                    "to": "2024-05-30",
                    "with_from": "2024-05-31",
                    "with_to": "2024-06-01",
                },
            ),
        ],
    )
    def test_a_file_is_in_the_ledger(
        self, reader: Client, fair: Study, path: str, facts: dict[str, str]
    ) -> None:
        assert reader.get(f"/studies/{STUDY}/{path}").status_code == 200
        (entry,) = told(LedgerKind.EXPORT_MADE)
        assert (entry.actor, entry.study) == ("anna", STUDY)
        assert entry.facts == {"way": "page"} | facts

    def test_what_is_refused_or_only_looked_at_is_not(self, reader: Client, fair: Study) -> None:
        assert reader.get(f"/studies/{STUDY}/gender/export.csv?from=2030-01-01&to=x").status_code == 400
        assert reader.get(f"/studies/{STUDY}/gender/").status_code == 200
        assert reader.head(f"/studies/{STUDY}/export.json").status_code == 200
        assert Client().get(f"/studies/{STUDY}/export.json").status_code == 302
        assert exports() == []

    def test_what_was_typed_into_the_address_is_not_kept(self, reader: Client, fair: Study) -> None:
        reader.get(f"/studies/{STUDY}/export.json?from=secret&with=secret&with_to=20240530")
        assert exports() == [{"way": "page", "file": "fair-2024.json"}]

    def test_files_of_places_are_in_the_ledger(
        self, reader: Client, monkeypatch: pytest.MonkeyPatch, analyst: User
    ) -> None:
        monkeypatch.setattr(tasks.compute_density, "delay_on_commit", lambda _: None)
        map_factory.create_located()
        assert reader.get(f"/studies/{STUDY}/maps/zones.csv").status_code == 200
        (facts,) = exports()
        assert facts["file"].startswith("fair-2024_zones_2024-")

    def test_every_file_of_the_zone_is_noted(self) -> None:
        """A new address of a file must not be forgotten."""
        from reports.urls import urlpatterns

        files = [pattern for pattern in urlpatterns if "." in str(pattern.pattern) and pattern.name]
        handed = [pattern for pattern in files if not pattern.name.endswith(("map_days", "maps_days"))]
        for pattern in handed:
            names = []
            view: Any = pattern.callback
            while view is not None:
                names.append(
                    view.__code__.co_qualname
                    if hasattr(view.__code__, "co_qualname")
                    else view.__code__.co_name
                )
                view = getattr(view, "__wrapped__", None)
            assert any("noting" in name for name in names), pattern.name
        assert len(handed) >= 8

    def test_the_command_is_in_the_ledger(self, fair: Study) -> None:
        call_command("export_report", STUDY, "--indicator", "age", stdout=StringIO())
        (entry,) = told(LedgerKind.EXPORT_MADE)
        assert entry.actor == "command line"
        assert entry.facts == {"way": "command", "format": "json", "indicator": "age"}


class TestApi:
    PATH = f"/api/v1/studies/{STUDY}/indicators/gender/estimates"
    QUERY = {"from": "2024-05-30", "to": "2024-05-31"}

    @pytest.fixture
    def ask(self, analyst: User, fair: Study) -> Callable[..., Any]:
        token, text = access.create_token(name="nightly", days=1, study=None, by=analyst)

        def get(path: str = self.PATH, **headers: str) -> Any:
            query = self.QUERY if path == self.PATH else {}
            response = Client().get(path, query, headers={"Authorization": f"Bearer {text}", **headers})
            return response, token

        return get

    def test_an_answer_is_in_the_ledger_with_window_and_token(self, ask: Callable[..., Any]) -> None:
        response, token = ask()
        assert response.status_code == 200
        (entry,) = told(LedgerKind.EXPORT_MADE)
        assert (entry.actor, entry.study) == ("anna", STUDY)
        assert entry.facts == {
            "way": "api",
            "what": "estimates",
            "indicator": "gender",
            "token": str(token.pk),
            **self.QUERY,
        }

    def test_the_same_again_is_noted_once_in_an_hour(
        self, ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for minute, noted in ((10, 1), (50, 1), (70, 2)):
            at = datetime(2026, 11, 22, 10, tzinfo=UTC) + timedelta(minutes=minute)
            monkeypatch.setattr(door, "timezone", SimpleNamespace(now=lambda at=at: at))
            assert ask()[0].status_code == 200
            assert len(exports()) == noted

    def test_what_did_not_leave_is_not_noted(self, ask: Callable[..., Any]) -> None:
        response, _ = ask()
        etag = response["ETag"]
        before = len(exports())
        assert ask(**{"If-None-Match": etag})[0].status_code == 304
        assert ask("/api/v1/studies/nope/statement")[0].status_code == 404
        assert ask("/api/v1/studies")[0].status_code == 200
        assert ask("/api/v1/openapi.json")[0].status_code == 200
        assert len(exports()) == before

    def test_a_person_in_a_browser_is_noted_without_a_token(self, reader: Client, fair: Study) -> None:
        assert reader.get(f"/api/v1/studies/{STUDY}/statement").status_code == 200
        assert exports() == [{"way": "api", "what": "statement"}]


class TestLinks:
    def test_a_link_is_made_opened_and_revoked(self, fair: Study, analyst: User, administrator: User) -> None:
        link, text = access.create_link(
            fair.indicators.get(slug="gender"),
            Window(1, 2),
            query="",
            days=30,
            note="for Eve",
            password="a long secret",
            by=analyst,
        )
        facts = {
            "link": str(link.pk),
            "indicator": "gender",
            "first_day": "2024-05-30",
            "last_day": "2024-05-31",
        }
        address = reverse("access:shared", args=[text])
        visitor = Client()
        visitor.get(address)
        assert told(LedgerKind.SHARE_OPENED) == []  # the password was asked for
        visitor.post(address, {"password": "a long secret"})
        visitor.get(address)
        for _ in range(2):
            access.revoke(ShareLink.objects.get(), by=administrator)
        (made,) = told(LedgerKind.SHARE_CREATED)
        (opened,) = told(LedgerKind.SHARE_OPENED)
        (revoked,) = told(LedgerKind.SHARE_REVOKED)
        until = link.expires_at.date().isoformat()
        assert made.facts == facts | {"until": until, "password": True}
        assert opened.facts == revoked.facts == facts
        assert [entry.actor for entry in (made, opened, revoked)] == ["anna", "", "adam"]
        assert {entry.study for entry in (made, opened, revoked)} == {STUDY}
        everything = str([[entry.content, entry.hash] for entry in LedgerEntry.objects.all()])
        for secret in (text, "a long secret", link.digest, "for Eve"):
            assert secret not in everything

    def test_a_token_is_made_and_revoked(self, fair: Study, analyst: User, administrator: User) -> None:
        token, text = access.create_token(name="nightly", days=10, study=fair, by=analyst)
        for _ in range(2):
            access.revoke(token, by=administrator)
        (made,) = told(LedgerKind.TOKEN_CREATED)
        (revoked,) = told(LedgerKind.TOKEN_REVOKED)
        assert (made.actor, made.study, made.facts["token"]) == ("anna", STUDY, str(token.pk))
        assert (revoked.actor, revoked.study, revoked.facts) == ("adam", STUDY, {"token": str(token.pk)})
        assert text not in str(made.facts)


class TestSignIns:
    def sign_in(self, client: Client, name: str, password: str) -> None:
        client.post(reverse("login"), {"login": name, "username": name, "password": password})

    def test_in_and_out(self, client: Client, analyst: User, password: str) -> None:
        self.sign_in(client, "anna", password)
        client.post(reverse("logout"))
        assert [entry.actor for entry in told(LedgerKind.SIGN_IN_SUCCEEDED)] == ["anna"]
        assert [entry.actor for entry in told(LedgerKind.SIGNED_OUT)] == ["anna"]
        assert told(LedgerKind.SIGN_IN_FAILED) == []

    def test_a_wrong_password_names_the_account(self, client: Client, analyst: User) -> None:
        self.sign_in(client, "anna", "wrong-and-long-enough")
        (entry,) = told(LedgerKind.SIGN_IN_FAILED)
        assert (entry.actor, entry.facts) == ("anna", {"account_exists": True})

    def test_a_name_that_is_no_account_is_not_kept(
        self, client: Client, analyst: User, caplog: pytest.LogCaptureFixture
    ) -> None:
        """It may be a password, typed into the wrong field."""
        with caplog.at_level(logging.DEBUG, logger="reports"):
            self.sign_in(client, "my-secret-password", "anna")
        (entry,) = told(LedgerKind.SIGN_IN_FAILED)
        assert (entry.actor, entry.facts) == ("", {"account_exists": False})
        assert "my-secret" not in caplog.text


def test_a_publication_is_in_the_ledger(db: None) -> None:
    study = factory.create()
    factory.publish(study, factory.crowd(study))
    (entry,) = told(LedgerKind.PUBLICATION_APPLIED)
    assert entry.study == STUDY
    assert entry.facts["plan_sha256"] == study.plans.get().spec_hash


def test_workers_check_the_ledger_now_and_then(fair: Study, caplog: pytest.LogCaptureFixture) -> None:
    check_now_and_then()
    first = LedgerHead.objects.get().checked_at
    assert first is not None
    check_now_and_then()
    assert LedgerHead.objects.get().checked_at == first
    LedgerHead.objects.update(checked_at=None, hash="0" * 64)
    check_now_and_then()
    assert "ledger_broken" in caplog.text


def test_readers_with_long_names_are_told_apart(db: None) -> None:
    asked = {"study": STUDY, "token_id": None, "facts": {"way": "api"}, "version": "0" * 64}
    for name in ("x" * 149 + "1", "x" * 149 + "2", "x" * 149 + "1"):
        record_answer(by=name, now=datetime(2026, 1, 1, tzinfo=UTC), **asked)
    assert [entry.actor[-1] for entry in told(LedgerKind.EXPORT_MADE)] == ["1", "2"]
