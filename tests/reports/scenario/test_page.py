"""The page of scenarios: questions by form and address, progress of long ones, and files."""

import io
import json
import re
import sys
import zipfile

import pytest
from django.core.management.base import CommandError
from django.db import connection
from django.test.utils import CaptureQueriesContext

from reports.exports import actions
from reports.models import LedgerEntry
from reports.pages import scenario as page
from reports.scenario import queries
from tests.reports import report_factory as factory
from tests.reports.page_texts import csv_rows, printed, shared, shown

pytestmark = pytest.mark.django_db
BASE = "/studies/fair-2024/"


def test_a_closed_form_reads_the_tally_once_and_does_not_load_scipy(reader, fair, monkeypatch) -> None:
    for name in ("scipy", "scipy.optimize", "scipy.sparse", "scipy.sparse.csgraph", "scipy.special"):
        monkeypatch.setitem(sys.modules, name, None)
    with CaptureQueriesContext(connection) as queries_of_page:
        assert "The best estimate is" in shown(reader, f"{BASE}scenario/")
    assert sum("visitortally" in each["sql"] for each in queries_of_page) == 1


def test_the_page_answers_with_a_sentence_a_bar_and_patterns(reader, fair) -> None:
    text = shown(reader, f"{BASE}scenario/")
    assert "Present on all 4 days" in text
    assert "people visited on all 4 days." in text and "The best estimate is" in text
    assert "Likely visit patterns" in text and "30 May to 2 Jun" in text
    body = reader.get(f"{BASE}scenario/").content.decode()
    assert body.count('class="scenario-bar"') == 16  # the answer, and the 15 patterns of 4 days
    assert f'href="{BASE}scenario.csv"' in body
    assert f'href="{BASE}scenario/"' in reader.get(BASE).content.decode()
    assert f'href="{BASE}age/scenario/"' in reader.get(f"{BASE}age/").content.decode()


def test_the_form_leads_to_an_address_that_names_the_question(reader, fair) -> None:
    chosen = "day-2024-05-30=present&day-2024-05-31=any&day-2024-06-01=absent&day-2024-06-02=present"
    response = reader.get(f"{BASE}age/scenario/?{chosen}")
    address = f"{BASE}age/scenario/?present=2024-05-30,2024-06-02&absent=2024-06-01"
    assert (response.status_code, response["Location"]) == (302, address)
    answered = shown(reader, f"{BASE}scenario/?present=2024-05-30,2024-06-02&absent=2024-06-01")
    assert "people visited on 30 May, 2 Jun but did not visit on 1 Jun" in answered
    nothing = reader.get(f"{BASE}scenario/?day-2024-05-30=any")
    text = shown(reader, nothing["Location"], status=400)
    assert "Mark at least one day" in text and "Present on all 4 days" in text


def test_what_takes_long_is_computed_by_a_worker_and_kept_till_the_tally_changes(reader, fair, monkeypatch):
    monkeypatch.setattr(queries, "AT_ONCE_S", -1)
    sent = []
    monkeypatch.setattr(actions, "_send", lambda row: sent.append(row.pk))
    address = f"{BASE}age/scenario/?in_a_row=2"
    text = shown(reader, address)
    assert "takes longer to answer" in text and "The best estimate is" not in text
    assert reader.head(address).status_code == 200
    assert len(sent) == 1
    actions.make_file(sent[0])
    body = reader.get(address, headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in body and "hx-get" not in body
    assert "visited on at least 2 days in a row" in body and "By category: Age" in body
    assert body.count('scope="row"') == 3 + 15
    assert "25 & older" in shown(reader, address)
    assert len(sent) == 1
    factory.publish(fair, factory.crowd(fair, n=50, seed=2), key=bytes(15) + b"\1")
    assert "takes longer to answer" in shown(reader, address)
    assert len(sent) == 2


def test_files_have_the_rows_of_the_page(reader, fair) -> None:
    found = queries.answer(page.question_of(reader.get("/").wsgi_request.GET, study=fair))
    address = f"{BASE}scenario"
    rows = csv_rows(reader.get(f"{address}.csv"))
    assert [row["figure"] for row in rows] == ["people"] + ["pattern"] * 15
    assert (float(rows[0]["least"]), float(rows[0]["most"])) == (found.people.least, found.people.most)
    is_known = {row["interval"]: row["least"] == row["most"] for row in rows}
    assert is_known == {"bounds": False, "count": True}
    whole = json.loads(reader.get(f"{address}.json?exactly=2").content)
    assert (whole["study"], whole["question"], whole["k"]) == ("fair-2024", "exactly", 2)
    assert whole["rows"][0]["status"] == "ok"
    book = zipfile.ZipFile(io.BytesIO(reader.get(f"{address}.xlsx").content))
    assert b"people visited on all 4 days" in b"".join(book.read(name) for name in book.namelist())
    by_age = json.loads(reader.get(f"{BASE}age/scenario.json").content)
    assert [row["category"] for row in by_age["rows"][1:4]] == ["<18", "18-24", "25 & older"]
    assert {row["interval"] for row in by_age["rows"][1:4]} == {"at_least"}


def test_the_command_prints_what_the_file_of_the_page_has(reader, fair) -> None:
    by_age = printed("scenario", "fair-2024", "--indicator", "age", "--nights", "1")
    assert json.loads(by_age) == json.loads(reader.get(f"{BASE}age/scenario.json?nights=1").content)
    rows = printed("scenario", "fair-2024", "--present", "2024-05-30,2024-05-31", "--format", "csv")
    of_page = reader.get(f"{BASE}scenario.csv?present=2024-05-30,2024-05-31").content.decode()
    assert rows.splitlines() == of_page.splitlines()
    for arguments, text in (
        (["fair-2024", "--exactly", "9"], "The number of days must be from 1 to 4, not “9”"),
        (["fair-2024", "--present", ""], "Mark at least one day"),
        (["fair-2024", "--indicator", "stay"], "from day to day"),
        (["fair-2024", "--indicator", "height"], "must be one of gender, age, stay, got height"),
    ):
        with pytest.raises(CommandError, match=text):
            printed("scenario", *arguments)
    by_command = LedgerEntry.objects.filter(facts__way="command").first()
    assert by_command.facts["question"] == "present=2024-05-30,2024-05-31"


def test_the_api_sends_the_rows_of_the_file_and_asks_to_come_back_for_long_ones(reader, fair, monkeypatch):
    api = "/api/v1/studies/fair-2024/"
    monkeypatch.setattr(queries, "AT_ONCE_S", 60)
    for where, of_page in (("", ""), ("indicators/age/", "age/")):
        answer = reader.get(f"{api}{where}scenario?nights=1").json()
        whole = json.loads(reader.get(f"{BASE}{of_page}scenario.json?nights=1").content)
        assert answer["rows"] == whole["rows"]
        assert answer["sentence"].startswith("Between ") and answer["k"] == 1
    for address, text in (
        ("scenario?exactly=9", "from 1 to 4"),
        ("scenario?night=1", "night"),
        ("scenario?present=", "Mark at least one day"),
        ("indicators/stay/scenario", "from day to day"),
    ):
        refused = reader.get(api + address)
        assert refused.status_code == 422
        assert text in refused.json()["detail"]
    monkeypatch.setattr(queries, "AT_ONCE_S", -1)
    monkeypatch.setattr(actions, "_send", lambda _row: None)
    waiting = reader.get(f"{api}scenario?nights=1")
    assert (waiting.status_code, waiting["Retry-After"]) == (503, "5")
    assert "Try again in a few seconds" in waiting.json()["detail"]


def test_a_share_link_shows_the_scenario_and_nothing_else(client, reader, fair, monkeypatch) -> None:
    monkeypatch.setattr(queries, "AT_ONCE_S", 60)
    for where, name, by_category in (("age/", "Age", 1), ("", "All people", 0)):
        link, html = shared(reader, f"{BASE}{where}scenario/?nights=1")
        assert f"<title>{name}, " in html and html.count("By category") == by_category
        assert "stayed at least 1 night (2 days in a row)" in html
    made = LedgerEntry.objects.filter(kind="share.created").order_by("pk")
    assert [entry.facts["indicator"] for entry in made] == ["age", ""]
    monkeypatch.setattr(queries, "AT_ONCE_S", -1)
    monkeypatch.setattr(actions, "_send", lambda _row: None)
    waiting = client.get(link).content.decode()
    assert 'http-equiv="refresh"' in waiting and "hx-get" not in waiting
    ask = "/access/shares/new/fair-2024/stay/?scenario=all&nights="
    assert reader.get(f"{ask}1").status_code == 200
    assert "from 1 to 3" in reader.get(f"{ask}9", follow=True).content.decode()


def test_a_share_link_says_why_it_has_no_answer_any_more(client, reader) -> None:
    study = factory.create_noisy(presence_days=2)
    people = factory.crowd(study, n=500)
    factory.close(study, people, first=1, last=2)
    address = f"/access/shares/new/{study.slug}/stay/?scenario=all&nights=1"
    made = reader.post(address, {"note": "", "days": "30", "password": ""}).content.decode()
    link = re.search(r"http://testserver(/[^<\s]+)</pre>", made)[1]
    assert "With 95% confidence" in shown(client, link)
    factory.close(study, people, first=3, last=3)
    assert "on at most 2 of them" in shown(client, link)
