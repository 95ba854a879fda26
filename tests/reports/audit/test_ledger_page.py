"""Pages of overseers: the ledger in plain words, and its chain; the budget, who caps it, who confirms."""

import json
import re
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.urls import reverse
from django.utils import timezone, translation

from reports.accounts import actions as people
from reports.api import door
from reports.audit import texts as wording_ledger
from reports.audit import views as page
from reports.ledger import actions as ledger
from reports.ledger.actions import record
from reports.ledger.check import check_lines, read_head
from reports.ledger.key import read_public_pem
from reports.models import BudgetCap, CapDecision, LedgerEntry, LedgerHead, LedgerKind
from reports.privacy.budget.actions import propose_cap
from reports.privacy.budget.spending import caps_in_force
from reports.transfer.studies import mark_closed
from tests.emptying import without_triggers
from tests.reports import report_factory as factory
from tests.reports.page_texts import words

pytestmark = pytest.mark.django_db
RECEIPT = {
    "batch": "b1", "kind": "extract", "state": "done", "key": "batch-b1", "rows_read": 12_345,
    "rows_accepted": 12_000, "rows_ignored": {"duplicate": 300}, "rows_rejected": {"bad_timestamp": 45},
    "reports": 777, "staged_bytes_left": 0, "key_left": False,
}  # fmt: skip
KINDS = LedgerKind
ONE_ROW = {"rows_read": 1, "rows_accepted": 0, "rows_ignored": {"opted_out": 1}, "rows_rejected": {}}
NEW_ACCOUNT = {"account": "eve", "change": "created", "roles": ["viewer"]}
TOKEN = {"token": "1", "sends": True, "until": "2026-04-01"}
ENGLISH = [
    (KINDS.BATCH_ENDED, {"state": "done", "counts_withheld": True}, "Counts are omitted"),
    (KINDS.BATCH_ENDED, {"staged_bytes_left": 9, "key_left": False}, "9 bytes of encrypted data"),
    (KINDS.BATCH_ENDED, {"staged_bytes_left": 1, "key_left": False}, "1 byte of encrypted data remains"),
    (KINDS.BATCH_ENDED, ONE_ROW, "1 row read: 0 accepted, 1 ignored, 0 rejected."),
    (KINDS.BATCH_ENDED, {"staged_bytes_left": 0, "key_left": True}, "could not be destroyed"),
    (KINDS.KEY_DESTROYED, {"key": "k", "key_left": True}, "k is still in the keystore"),
    (KINDS.STUDY_CLOSED, {"key_was_lost": True}, "had already been lost"),
    (KINDS.EXPORT_MADE, {"way": "api", "what": "days", "indicator": "age"}, "browser: days age."),
    (KINDS.EXPORT_MADE, {"way": "command", "from": "2026-03-01"}, "all indicators. 2026-03-01."),
    (KINDS.SHARE_CREATED, {"link": "1", "indicator": "age", "password": True}, "Password protected."),
    (KINDS.TOKEN_CREATED, TOKEN, "for sending files. Valid until 2026-04-01."),
    (KINDS.ACCESS_CHANGED, NEW_ACCOUNT, "Account eve was created. Roles: viewer."),
    (KINDS.BUDGET_CHANGED, {"what": "set", "population": "p", "epsilon": None}, "no cap"),
]
CERTIFIED = {"mechanism": "m", "epsilon_profile": "7.5", "epsilon_attribute": "1.5"}
MONTHLY = {"unit": "attribute", "period": "month", "epsilon": "0.5"}
FRENCH = [  # a name of a later version is shown unchanged
    (KINDS.BUDGET_CHANGED, MONTHLY, "attribut), chaque"),
    (KINDS.BUDGET_CHANGED, MONTHLY, "epsilon 0,5."),
    (KINDS.BUDGET_CHANGED, {"unit": "attribute", "period": "week", "epsilon": None}, ", week"),
    (KINDS.STUDY_CREATED, {"mechanism": "m", "epsilon": "1.5", "unit": "profile"}, "1,5 dans le fichier"),
    (KINDS.STUDY_CREATED, CERTIFIED, "7,5 par profil."),
    (KINDS.STUDY_CREATED, {"mechanism": "m", "epsilon": "1.5", "unit": "household"}, "pour household."),
    (KINDS.EXPORT_MADE, {"way": "api", "token": "1", "what": "days", "indicator": "age"}, "jours age."),
    (KINDS.EXPORT_MADE, {"way": "api", "token": "1", "what": "hours"}, "hours."),
]
PAGE = "/budget/"
YEARLY = {"unit": "profile", "period": "year"}


@pytest.fixture
def filled(officer, monkeypatch):
    def at(day):
        monkeypatch.setattr(ledger.timezone, "now", lambda: datetime(2026, 3, day, 12, tzinfo=UTC))

    at(1)
    record(LedgerKind.STUDY_CREATED, actor="adam", study="fair", facts={"plan_sha256": "c0ffee" * 10})
    at(2)
    record(LedgerKind.BATCH_ENDED, actor="olga", study="fair", facts=RECEIPT, event_id="batch.ended/b1")
    at(3)
    record(LedgerKind.BATCH_ENDED, actor="olga", study="market", facts=RECEIPT | {"state": "failed"})
    record(LedgerKind.SIGN_IN_FAILED, facts={"account_exists": False})
    monkeypatch.undo()
    return officer


def shown(client, address="/ledger/"):
    response = client.get(address)
    assert response.status_code == 200
    return words(response)


def told_of(kind, facts):
    return wording_ledger.entry_words(LedgerEntry(number=1, at=timezone.now(), kind=kind.value, facts=facts))


def cap(epsilon):
    propose_cap(population="subscribers", unit="profile", period="year", epsilon=Decimal(epsilon), by="adam")


class TestLedger:
    def test_filters(self, filled):
        for query, found in {
            "": [5, 4, 3, 2, 1],
            "?study=fair": [3, 2],
            "?kind=batch.ended": [4, 3],
            "?actor=adam": [2],
            "?kind=batch.ended&study=market": [4],
            "?from=2026-03-02&to=2026-03-02": [3],
            "?from=2026-03-03&study=market": [4],
            "?to=2026-03-01": [2],
            "?study=nothing": [],
            "?kind=nothing&from=soon&before=x": [5, 4, 3, 2, 1],
            "?before=3": [2, 1],
        }.items():
            html = filled.get(f"/ledger/{query}").content.decode()
            assert [int(number) for number in re.findall(r'id="entry-(\d+)"', html)] == found, query

    def test_pages_lead_on_and_keep_the_filter_and_what_was_typed_is_no_markup(self, filled, monkeypatch):
        monkeypatch.setattr(page, "PAGE", 1)
        assert 'href="?study=fair&amp;before=3"' in filled.get("/ledger/?study=fair").content.decode()
        second = filled.get("/ledger/?study=fair&before=3").content.decode()
        assert "Older entries" not in second and 'href="?study=fair"' in second
        record(LedgerKind.EXPORT_MADE, actor="<b>eve</b>", study="s", facts={"file": "<script>"})
        typed = filled.get("/ledger/?actor=<b>eve</b>").content.decode()
        assert "<script>" not in typed.replace("<script src", "")

    def test_the_page_says_when_the_chain_was_checked_and_what_is_wrong(self, filled):
        assert "Not checked yet" in shown(filled)
        assert "every hash and the signature match" in words(filled.post("/ledger/check/", follow=True))
        assert "The signature of the ledger and the hashes of all its 5 entries were correct" in shown(filled)
        with without_triggers(connection), connection.cursor() as cursor:
            cursor.execute("UPDATE reports_ledgerentry SET actor = 'eve' WHERE number = 3")
        filled.post("/ledger/check/")
        text = shown(filled)
        assert "Verification failed" in text
        assert "The first invalid entry is number 3. The check at 20" in text
        assert "UTC found: its hash does not match its content: it was changed. Someone changed" in text

    def test_files_can_be_checked_elsewhere_and_one_of_a_study_hides_the_others(self, filled):
        response = filled.get("/ledger/ledger.jsonl")
        assert response["Content-Disposition"] == 'attachment; filename="ledger.jsonl"'
        lines = b"".join(response.streaming_content).splitlines()
        key = read_public_pem(filled.get("/ledger/public-key.pem").content)
        kept = read_head(filled.get("/ledger/head.json").content)
        report = check_lines(lines, public_key=key, earlier=kept)
        assert (report.is_ok, report.entries) == (True, 6)
        last = json.loads(lines[-2])
        assert (last["kind"], last["actor"]) == ("export.made", "paula")
        assert last["facts"] == {"way": "page", "file": "ledger.jsonl"}
        assert "ledger.jsonl?study=fair" in filled.get("/ledger/?study=fair").content.decode()
        text = b"".join(filled.get("/ledger/ledger.jsonl?study=fair").streaming_content)
        assert b"market" not in text
        report = check_lines(text.splitlines())
        assert (report.is_ok, report.entries, report.left_out) == (True, 7, 4)
        assert filled.get("/ledger/ledger.jsonl?study=nope").status_code == 404

    def test_an_empty_ledger_has_no_head(self, filled):
        with without_triggers(connection), connection.cursor() as cursor:
            cursor.execute("DELETE FROM reports_ledgerentry")
        LedgerHead.objects.all().delete()
        assert "No entries yet." in shown(filled)
        assert filled.get("/ledger/head.json").status_code == 404
        assert filled.get("/ledger/public-key.pem").status_code == 404


class TestWords:
    def test_every_kind_and_every_question_to_the_api_that_is_noted_has_words(self):
        assert set(wording_ledger.KIND_WORDS) == set(LedgerKind)
        assert all(isinstance(told_of(kind, {}), str) for kind in LedgerKind)
        routes = door._resolver().url_patterns
        questions = {route.name for route in routes if "study" in route.pattern.converters}
        assert questions == set(wording_ledger.API_WORDS)

    def test_a_batch_without_a_file_speaks_of_none(self):
        facts = {"kind": "void_day", "state": "done", "staged_bytes_left": 0, "key_left": False}
        assert told_of(KINDS.BATCH_ENDED, facts) == "Undoing of a day. Done."
        undone = told_of(KINDS.BATCH_ENDED, facts | {"day": "2024-05-01"})
        assert undone == "Undoing of Wed 1 May 2024. Done."

    @pytest.mark.parametrize(("language", "cases"), [("en", ENGLISH), ("fr", FRENCH)])
    def test_units_and_numbers_are_those_of_the_reader(self, language, cases):
        with translation.override(language):
            for kind, facts, told in cases:
                assert told in told_of(kind, facts)


class TestBudget:
    def test_sums_caps_and_what_is_left_are_shown(self, boss):
        page = shown(boss, PAGE)
        for text in ("This population has no studies yet.", "no cap", "No changes yet."):
            assert text in page
        factory.create(factory.GENDER, slug="one", name="Fair one")
        factory.create(factory.GENDER, slug="two", name="Fair two", epsilon="0.5")
        empty = factory.create(factory.GENDER, slug="three", name="Never held")
        mark_closed(study_slug=empty.slug, closed_at=timezone.now())
        cap("1.6")
        row = re.search(r">2024</td>(.*?)</tr>", boss.get(PAGE).content.decode(), re.DOTALL)
        assert re.findall(r'class="number">\s*([^<]+?)\s*<', row[1]) == ["1.5", "1.6", "0.1"]
        page = shown(boss, PAGE)
        assert "94% spent" in page and "closed without data: not counted" in page
        assert page.index("Fair one") < page.index("Never held")
        cap("0.3")
        assert "over the cap" in shown(boss, PAGE)

    def test_a_cap_that_is_none_or_the_same_changes_nothing_and_is_shown_as_typed(self, boss):
        for epsilon in ("0", "-1", "x", "NaN", "1.123456789"):
            answer = boss.post(PAGE, YEARLY | {"epsilon": epsilon})
            assert answer.status_code == 422 and "errorlist" in answer.content.decode()
            assert "No cap was changed. Correct the fields marked below." in words(answer)
            assert "1E-8" not in words(answer)
        assert not BudgetCap.objects.exists()
        cap("3")
        answer = boss.post(PAGE, YEARLY | {"epsilon": "3"})
        assert answer.status_code == 422 and "must differ from the one in force, got 3" in words(answer)

    def test_a_larger_cap_waits_and_another_person_confirms_it(self, boss, officer):
        cap("3")
        assert "waiting for confirmation" in words(boss.post(PAGE, YEARLY | {"epsilon": "4"}, follow=True))
        decide = reverse("budget:decide", args=[BudgetCap.objects.latest("pk").pk])
        assert "Another person must confirm this request." in shown(boss, PAGE)
        assert ">Confirm<" not in boss.get(PAGE).content.decode()
        assert "someone other than adam" in words(boss.post(decide, {"answer": "confirm"}, follow=True))
        assert not CapDecision.objects.exists()
        assert ">Confirm<" in officer.get(PAGE).content.decode()
        officer.post(decide, {"answer": "confirm"})
        assert caps_in_force("subscribers")["profile", "year"].epsilon == 4
        assert "confirmed by paula" in shown(officer, PAGE)
        boss.post(PAGE, YEARLY | {"epsilon": "5"})
        people.replace_password(User.objects.get(username="paula"), by=User.objects.get(username="adam"))
        officer.force_login(User.objects.get(username="paula"))
        assert "adam reset the password of paula on" in shown(officer, PAGE)
        assert ">Confirm<" not in officer.get(PAGE).content.decode()
        # A privacy officer sees and confirms, but sets nothing.
        assert "Set a cap" not in shown(officer, PAGE)
        assert officer.post(PAGE, YEARLY | {"epsilon": "5"}).status_code == 404

    def test_each_population_has_its_page_where_a_first_cap_is_in_force_at_once(self, boss):
        factory.create(factory.GENDER, slug="one", name="Fair one")
        factory.create(factory.GENDER, slug="guests", name="Guests only", population="guests")
        page = shown(boss, PAGE + "?population=guests")
        assert "Guests only" in page and "Fair one" not in page
        assert boss.get(PAGE + "?population=nobody").status_code == 404
        first = {"unit": "attribute", "period": "ever", "epsilon": "3"}
        boss.post(PAGE + "?population=guests", first)
        assert caps_in_force("guests")["attribute", "ever"].epsilon == 3
        made = BudgetCap.objects.get()
        assert (made.population_id, made.set_by) == ("guests", "adam")
