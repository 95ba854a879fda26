"""The ledger has the analyst zone's actions: files, answers of the API, links, tokens and sign-ins."""

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from reports.api import door
from reports.estimates.queries import Window
from reports.ledger.checks import check_now_and_then
from reports.ledger.handouts import record_answer
from reports.models import LedgerEntry, LedgerHead, LedgerKind, ShareLink
from reports.sharing import actions as access
from reports.sharing.revoking import revoke
from reports.urls import urlpatterns
from tests.reports import map_factory
from tests.reports import report_factory as factory
from tests.reports.page_texts import printed

pytestmark = pytest.mark.django_db
STUDY = "fair-2024"
TWO_DAYS = {"from": "2024-05-30", "to": "2024-05-31"}
COMPARED = {"from": "2024-05-30", "to": "2024-05-30", "with_from": "2024-05-31", "with_to": "2024-06-01"}


def told(kind: LedgerKind) -> list[LedgerEntry]:
    return list(LedgerEntry.objects.filter(kind=kind.value).order_by("number"))


def exports() -> list[dict[str, Any]]:
    return [entry.facts for entry in told(LedgerKind.EXPORT_MADE)]


def test_a_file_is_in_the_ledger_and_what_is_refused_or_looked_at_or_typed_is_not(reader, fair) -> None:
    for path, asked, file in (
        ("export.json", {}, "fair-2024.json"),
        ("statement.json", {}, "fair-2024_statement.json"),
        ("bundle.zip", {}, "fair-2024_bundle.zip"),
        ("gender/days.csv", {}, "fair-2024_gender_days.csv"),
        ("gender/export.csv", TWO_DAYS, "fair-2024_gender_2024-05-30_2024-05-31.csv"),
        ("gender/compare.csv", {"kind": "windows"} | COMPARED, "fair-2024_gender_compare_windows.csv"),
    ):
        assert reader.get(f"/studies/{STUDY}/{path}", asked).status_code == 200
        *_, entry = told(LedgerKind.EXPORT_MADE)
        assert (entry.actor, entry.study) == ("anna", STUDY)
        noted = {name: value for name, value in asked.items() if name != "kind"}
        assert entry.facts == {"way": "page", "file": file, **noted}
    before = len(exports())
    assert reader.get(f"/studies/{STUDY}/gender/export.csv?from=2030-01-01&to=x").status_code == 400
    assert reader.get(f"/studies/{STUDY}/gender/").status_code == 200
    assert reader.head(f"/studies/{STUDY}/export.json").status_code == 200
    assert Client().get(f"/studies/{STUDY}/export.json").status_code == 302
    assert len(exports()) == before == 6
    reader.get(f"/studies/{STUDY}/export.json?from=secret&with=secret&with_to=20240530")
    assert exports()[before:] == [{"way": "page", "file": "fair-2024.json"}]


def test_files_of_places_and_of_commands_are_in_the_ledger(reader) -> None:
    map_factory.create_located()
    assert reader.get(f"/studies/{STUDY}/maps/zones.csv").status_code == 200
    printed("export_report", STUDY, "--indicator", "gender")
    page, command = told(LedgerKind.EXPORT_MADE)
    assert page.facts["file"].startswith("fair-2024_zones_2024-")
    facts = {"way": "command", "format": "json", "indicator": "gender"}
    assert (command.actor, command.facts) == ("command line", facts)


def test_every_file_of_the_zone_is_noted() -> None:
    files = [pattern for pattern in urlpatterns if "." in str(pattern.pattern) and pattern.name]
    frames = ("map_days", "maps_days", "presence_frames")
    handed = [pattern for pattern in files if not pattern.name.endswith(frames)]
    for pattern in handed:
        names, view = [], pattern.callback
        while view is not None:
            names.append(view.__code__.co_qualname)
            view = getattr(view, "__wrapped__", None)
        assert any("noting" in name for name in names), pattern.name
    assert len(handed) >= 8


# --- answers of the API ---------------------------------------------------------------------------------
PATH = f"/api/v1/studies/{STUDY}/indicators/gender/estimates"


@pytest.fixture
def ask(analyst, fair) -> Callable[..., Any]:
    token, text = access.create_token(name="nightly", days=1, study=None, by=analyst)

    def get(path: str = PATH, **headers: str) -> Any:
        query = TWO_DAYS if path == PATH else {}
        return Client().get(path, query, headers={"Authorization": f"Bearer {text}", **headers}), token

    return get


def test_an_answer_is_in_the_ledger_with_window_and_token(ask) -> None:
    response, token = ask()
    (entry,) = told(LedgerKind.EXPORT_MADE)
    assert (entry.actor, entry.study) == ("anna", STUDY)
    facts = {"way": "api", "what": "estimates", "indicator": "gender", "token": str(token.pk)}
    assert entry.facts == facts | TWO_DAYS
    # Data that did not leave are not noted.
    for path, headers, status in (
        (PATH, {"If-None-Match": response["ETag"]}, 304),
        ("/api/v1/studies/nope/statement", {}, 404),
        ("/api/v1/studies", {}, 200),
        ("/api/v1/openapi.json", {}, 200),
    ):
        assert ask(path, **headers)[0].status_code == status
    assert len(exports()) == 1


def test_the_same_again_is_noted_once_in_an_hour(ask, monkeypatch) -> None:
    for minute, noted in ((10, 1), (50, 1), (70, 2)):
        at = datetime(2026, 11, 22, 10, tzinfo=UTC) + timedelta(minutes=minute)
        monkeypatch.setattr(door, "timezone", SimpleNamespace(now=lambda at=at: at))
        assert ask()[0].status_code == 200
        assert len(exports()) == noted


def test_a_person_in_a_browser_is_noted_without_a_token_and_long_names_are_told_apart(reader, fair) -> None:
    assert reader.get(f"/api/v1/studies/{STUDY}/statement").status_code == 200
    assert exports() == [{"way": "api", "what": "statement"}]
    asked = {"study": STUDY, "token_id": None, "facts": {"way": "api"}, "version": "0" * 64}
    for name in ("x" * 149 + "1", "x" * 149 + "2", "x" * 149 + "1"):
        record_answer(by=name, now=datetime(2026, 1, 1, tzinfo=UTC), **asked)
    assert [entry.actor[-1] for entry in told(LedgerKind.EXPORT_MADE)[1:]] == ["1", "2"]


# --- links, tokens, sign-ins, publications --------------------------------------------------------------
def test_a_link_is_made_opened_and_revoked(fair, analyst, administrator) -> None:
    given = {"query": "", "days": 30, "note": "for Eve", "password": "a long secret"}
    link, text = access.create_link(fair.indicators.get(slug="gender"), Window(1, 2), **given, by=analyst)
    days = {"first_day": "2024-05-30", "last_day": "2024-05-31"}
    facts = {"link": str(link.pk), "indicator": "gender", **days}
    visitor, address = Client(), reverse("access:shared", args=[text])
    visitor.get(address)
    assert told(LedgerKind.SHARE_OPENED) == []  # the password was asked for
    visitor.post(address, {"password": "a long secret"})
    visitor.get(address)
    for _ in range(2):
        revoke(ShareLink.objects.get(), actor=administrator.get_username())
    kinds = (LedgerKind.SHARE_CREATED, LedgerKind.SHARE_OPENED, LedgerKind.SHARE_REVOKED)
    ((made,), (opened,), (revoked,)) = map(told, kinds)
    assert made.facts == facts | {"until": link.expires_at.date().isoformat(), "password": True}
    assert opened.facts == revoked.facts == facts
    assert [entry.actor for entry in (made, opened, revoked)] == ["anna", "", "adam"]
    assert {entry.study for entry in (made, opened, revoked)} == {STUDY}
    everything = str([[entry.content, entry.hash] for entry in LedgerEntry.objects.all()])
    for secret in (text, "a long secret", link.digest, "for Eve"):
        assert secret not in everything


def test_a_token_is_made_and_revoked(fair, analyst, administrator) -> None:
    token, text = access.create_token(name="nightly", days=10, study=fair, by=analyst)
    for _ in range(2):
        revoke(token, actor=administrator.get_username())
    ((made,), (revoked,)) = map(told, (LedgerKind.TOKEN_CREATED, LedgerKind.TOKEN_REVOKED))
    assert (made.actor, made.study, made.facts["token"]) == ("anna", STUDY, str(token.pk))
    assert (revoked.actor, revoked.study, revoked.facts) == ("adam", STUDY, {"token": str(token.pk)})
    assert text not in str(made.facts)


def test_sign_ins_name_an_account_and_nothing_else_that_was_typed(client, analyst, password, caplog) -> None:
    def sign_in(name: str, password: str) -> None:
        client.post(reverse("login"), {"login": name, "username": name, "password": password})

    sign_in("anna", password)
    client.post(reverse("logout"))
    kinds = (LedgerKind.SIGN_IN_SUCCEEDED, LedgerKind.SIGNED_OUT, LedgerKind.SIGN_IN_FAILED)
    assert [[entry.actor for entry in told(kind)] for kind in kinds] == [["anna"], ["anna"], []]
    # An unknown account may be a password, typed into the wrong field.
    with caplog.at_level(logging.DEBUG, logger="reports"):
        sign_in("anna", "wrong-and-long-enough")
        sign_in("my-secret-password", "anna")
    found = [(entry.actor, entry.facts) for entry in told(LedgerKind.SIGN_IN_FAILED)]
    assert found == [("anna", {"account_exists": True}), ("", {"account_exists": False})]
    assert "my-secret" not in caplog.text


def test_a_publication_is_in_the_ledger_which_workers_check_now_and_then(caplog) -> None:
    study = factory.published()
    (entry,) = told(LedgerKind.PUBLICATION_APPLIED)
    assert (entry.study, entry.facts["plan_sha256"]) == (STUDY, study.plans.get().spec_hash)
    check_now_and_then()
    assert (first := LedgerHead.objects.get().checked_at) is not None
    check_now_and_then()
    assert LedgerHead.objects.get().checked_at == first
    LedgerHead.objects.update(checked_at=None, hash="0" * 64)
    check_now_and_then()
    assert "ledger_broken" in caplog.text
