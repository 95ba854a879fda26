"""The page of the ledger: entries in plain words, the state of the chain, and files to check elsewhere."""

import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.utils import timezone, translation

from reports import wording_ledger
from reports.api import door
from reports.ledger_check import check_lines, read_head
from reports.ledger_key import read_public_pem
from reports.models import LedgerEntry, LedgerHead, LedgerKind
from reports.services import ledger
from reports.services.ledger import record
from reports.views import ledger as page
from tests.emptying import without_triggers

pytestmark = pytest.mark.django_db
RECEIPT = {
    "batch": "b1", "kind": "extract", "state": "done", "key": "batch-b1", "rows_read": 12_345,
    "rows_accepted": 12_000, "rows_ignored": {"duplicate": 300}, "rows_rejected": {"bad_timestamp": 45},
    "reports": 777, "staged_bytes_left": 0, "key_left": False,
}  # fmt: skip


@pytest.fixture
def officer(privacy_officer: User, client: Client) -> Client:
    client.force_login(privacy_officer)
    return client


def at(monkeypatch: pytest.MonkeyPatch, day: int) -> None:
    moment = datetime(2026, 3, day, 12, tzinfo=UTC)
    monkeypatch.setattr(ledger.timezone, "now", lambda: moment)


@pytest.fixture
def filled(officer: Client, monkeypatch: pytest.MonkeyPatch) -> Client:
    """Entries 2 to 5, after the sign-in."""
    at(monkeypatch, 1)
    record(LedgerKind.STUDY_CREATED, actor="adam", study="fair", facts={"plan_sha256": "c0ffee" * 10})
    at(monkeypatch, 2)
    record(LedgerKind.BATCH_ENDED, actor="olga", study="fair", facts=RECEIPT, event_id="batch.ended/b1")
    at(monkeypatch, 3)
    record(LedgerKind.BATCH_ENDED, actor="olga", study="market", facts=RECEIPT | {"state": "failed"})
    record(LedgerKind.SIGN_IN_FAILED, facts={"account_exists": False})
    monkeypatch.undo()
    return officer


def words(client: Client, query: str = "") -> str:
    response = client.get(f"/ledger/{query}")
    assert response.status_code == 200
    text = re.sub(r"<[^>]+>", " ", response.content.decode())
    return re.sub(r"[\s\u00a0\u202f]+", " ", text)


def numbers(client: Client, query: str = "") -> list[int]:
    return [int(n) for n in re.findall(r'id="entry-(\d+)"', client.get(f"/ledger/{query}").content.decode())]


def test_entries_are_told_in_plain_words_newest_first(filled: Client) -> None:
    assert numbers(filled) == [5, 4, 3, 2, 1]
    text = words(filled)
    assert "12 345 rows read: 12 000 accepted, 300 ignored, 45 rejected. 777 answers added." in text
    assert "Of the raw file 0 bytes are left, and its key is destroyed." in text
    assert "There is no such account; what was typed is not kept." in text
    assert "rows_rejected / bad_timestamp 45" in text
    assert LedgerEntry.objects.get(number=3).hash in text


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("?study=fair", [3, 2]),
        ("?kind=batch.ended", [4, 3]),
        ("?actor=adam", [2]),
        ("?kind=batch.ended&study=market", [4]),
        ("?from=2026-03-02&to=2026-03-02", [3]),
        ("?from=2026-03-03&study=market", [4]),
        ("?to=2026-03-01", [2]),
        ("?study=nothing", []),
        ("?kind=nothing&from=soon&before=x", [5, 4, 3, 2, 1]),
        ("?before=3", [2, 1]),
    ],
)
def test_filters(filled: Client, query: str, found: list[int]) -> None:
    assert numbers(filled, query) == found


def test_pages_lead_on_and_keep_the_filter(filled: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "PAGE", 1)
    first = filled.get("/ledger/?study=fair").content.decode()
    assert 'href="?study=fair&amp;before=3"' in first
    second = filled.get("/ledger/?study=fair&before=3").content.decode()
    assert "Older entries" not in second
    assert 'href="?study=fair"' in second


def test_what_was_typed_is_no_markup(filled: Client) -> None:
    record(LedgerKind.EXPORT_MADE, actor="<b>eve</b>", study="s", facts={"file": "<script>"})
    assert "<script>" not in filled.get("/ledger/?actor=<b>eve</b>").content.decode().replace(
        "<script src", ""
    )


def test_the_page_says_when_the_chain_was_checked(filled: Client) -> None:
    assert "Not checked yet" in words(filled)
    assert "every hash and the signature fit" in re.sub(
        r"\s+", " ", filled.post("/ledger/check/", follow=True).content.decode()
    )
    assert "every hash of its 5 entries fitted, and so did the signature" in words(filled)


def test_the_page_names_the_first_entry_that_is_wrong(filled: Client) -> None:
    with without_triggers(connection), connection.cursor() as cursor:
        cursor.execute("UPDATE reports_ledgerentry SET actor = 'eve' WHERE number = 3")
    filled.post("/ledger/check/")
    text = words(filled)
    assert "Broken" in text
    assert "The first entry that is wrong is number 3. The check on 20" in text
    assert "UTC says: its hash does not fit what it says: it was changed. Somebody has" in text


def test_files_can_be_checked_elsewhere(filled: Client) -> None:
    response: Any = filled.get("/ledger/ledger.jsonl")
    assert response["Content-Disposition"] == 'attachment; filename="ledger.jsonl"'
    lines = b"".join(response.streaming_content).splitlines()
    key = read_public_pem(filled.get("/ledger/public-key.pem").content)
    kept = read_head(filled.get("/ledger/head.json").content)
    report = check_lines(lines, public_key=key, earlier=kept)
    assert report.is_ok
    assert report.entries == 6
    last = json.loads(lines[-2])
    assert (last["kind"], last["actor"]) == ("export.made", "paula")
    assert last["facts"] == {"way": "page", "file": "ledger.jsonl"}


def test_a_file_of_one_study_hides_the_others(filled: Client) -> None:
    assert "ledger.jsonl?study=fair" in filled.get("/ledger/?study=fair").content.decode()
    response: Any = filled.get("/ledger/ledger.jsonl?study=fair")
    text = b"".join(response.streaming_content)
    assert b"market" not in text
    report = check_lines(text.splitlines())
    assert (report.is_ok, report.entries, report.left_out) == (True, 6, 3)
    assert filled.get("/ledger/ledger.jsonl?study=nope").status_code == 404


def test_an_empty_ledger_has_no_head(filled: Client) -> None:
    with without_triggers(connection), connection.cursor() as cursor:
        cursor.execute("DELETE FROM reports_ledgerentry")
    LedgerHead.objects.all().delete()
    assert "Nothing has happened yet." in words(filled)
    assert filled.get("/ledger/head.json").status_code == 404
    assert filled.get("/ledger/public-key.pem").status_code == 404


def test_few_queries_however_many_entries(filled: Client, django_assert_max_num_queries: Any) -> None:
    with django_assert_max_num_queries(10):
        filled.get("/ledger/")
    for _ in range(30):
        record(LedgerKind.SIGNED_OUT, actor="olga")
    with django_assert_max_num_queries(10):
        filled.get("/ledger/")


def test_every_kind_has_words() -> None:
    assert set(wording_ledger.KIND_WORDS) == set(LedgerKind)
    for kind in LedgerKind:
        entry = LedgerEntry(number=1, at=timezone.now(), kind=kind.value, facts={})
        assert isinstance(wording_ledger.entry_words(entry), str)


KINDS = LedgerKind
TOKEN = {"token": "1", "sends": True, "until": "2026-04-01"}
ONE_ROW = {"rows_read": 1, "rows_accepted": 0, "rows_ignored": {"opted_out": 1}, "rows_rejected": {}}
NEW_ACCOUNT = {"account": "eve", "change": "created", "roles": ["viewer"]}


@pytest.mark.parametrize(
    ("kind", "facts", "told"),
    [
        (KINDS.BATCH_ENDED, {"state": "done", "counts_withheld": True}, "totals are noisy"),
        (KINDS.BATCH_ENDED, {"staged_bytes_left": 9, "key_left": False}, "9 bytes of ciphertext"),
        (KINDS.BATCH_ENDED, {"staged_bytes_left": 1, "key_left": False}, "1 byte of ciphertext is left"),
        (KINDS.BATCH_ENDED, ONE_ROW, "1 row read: 0 accepted, 1 ignored, 0 rejected."),
        (KINDS.BATCH_ENDED, {"staged_bytes_left": 0, "key_left": True}, "could not be destroyed"),
        (KINDS.KEY_DESTROYED, {"key": "k", "key_left": True}, "k is still in the keystore"),
        (KINDS.STUDY_CLOSED, {"key_was_lost": True}, "was lost before"),
        (KINDS.EXPORT_MADE, {"way": "api", "what": "days", "indicator": "age"}, "browser: days age."),
        (KINDS.EXPORT_MADE, {"way": "command", "from": "2026-03-01"}, "all indicators. 2026-03-01."),
        (KINDS.SHARE_CREATED, {"link": "1", "indicator": "age", "password": True}, "Behind a password."),
        (KINDS.TOKEN_CREATED, TOKEN, "to send files. Until 2026-04-01."),
        (KINDS.ACCESS_CHANGED, NEW_ACCOUNT, "Account eve was made. Roles: viewer."),
        (KINDS.BUDGET_CHANGED, {"what": "set", "population": "p", "epsilon": None}, "no cap"),
    ],
)
def test_words(kind: LedgerKind, facts: dict[str, Any], told: str) -> None:
    entry = LedgerEntry(number=1, at=timezone.now(), kind=kind.value, facts=facts)
    assert told in wording_ledger.entry_words(entry)


@pytest.mark.parametrize(
    ("kind", "facts", "told"),
    [
        (
            KINDS.BUDGET_CHANGED,
            {"unit": "attribute", "period": "month", "epsilon": "0.5"},
            "attribut), chaque",
        ),
        (KINDS.BUDGET_CHANGED, {"unit": "attribute", "period": "month", "epsilon": "0.5"}, "epsilon 0,5."),
        (KINDS.BUDGET_CHANGED, {"unit": "attribute", "period": "week", "epsilon": None}, ", week"),
        (KINDS.STUDY_CREATED, {"mechanism": "m", "epsilon": "1.5", "unit": "profile"}, "1,5 pour toutes les"),
        (KINDS.STUDY_CREATED, {"mechanism": "m", "epsilon": "1.5", "unit": "household"}, "pour household."),
        (KINDS.EXPORT_MADE, {"way": "api", "token": "1", "what": "days", "indicator": "age"}, "jours age."),
        (KINDS.EXPORT_MADE, {"way": "api", "token": "1", "what": "hours"}, "hours."),
    ],
)
def test_units_and_numbers_are_those_of_the_reader(
    kind: LedgerKind, facts: dict[str, Any], told: str
) -> None:
    """And a name that only a later version knows stands as it is."""
    entry = LedgerEntry(number=1, at=timezone.now(), kind=kind.value, facts=facts)
    with translation.override("fr"):
        assert told in wording_ledger.entry_words(entry)


def test_every_question_to_the_api_that_is_noted_has_words() -> None:
    questions = {route.name for route in door._resolver().url_patterns if "study" in route.pattern.converters}
    assert questions == set(wording_ledger.API_WORDS)
