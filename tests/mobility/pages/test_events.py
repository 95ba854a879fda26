"""Pages and files of a study of events: periods are sums of days, and nothing is about people."""

import csv
import io
import json
import re
from copy import deepcopy
from datetime import date
from functools import partial
from html import unescape
from itertools import groupby, product
from operator import itemgetter

import pytest
from django.urls import reverse
from django.utils.translation import override
from jsonschema import Draft202012Validator

from mobility.batches.outcomes import notes_for_reader
from mobility.batches.pages.progress import batch_progress
from mobility.batches.queries import study_head
from mobility.extracts.profiles.definition import OPT_OUT
from mobility.extracts.profiles.errors import ProfileMissingError
from mobility.vault.profiles import find_profile
from reports.estimates.queries import Window, window_report
from reports.events import charts
from reports.models import Indicator, LedgerEntry, LedgerKind, Study
from reports.privacy.statement.document import privacy_statement
from reports.sharing.actions import create_token
from reports.studies.grant_models import StudyGrant
from reports.studies.policies import EXPORTERS, SEES_ALL, Role
from reports.urls import urlpatterns
from scripts.check_statement import check
from tests.mobility.event_study import (
    SLUG,
    TEXT,
    TEXT_OF_PEOPLE,
    as_changes,
    event_definition,
    in_area,
    rows_of,
    write_rows,
)
from tests.mobility.pages.access_rules import QUESTIONS, READING
from tests.mobility.pages.small_study import TUS
from tests.mobility.pipeline import pipelines
from tests.reports import report_factory
from tests.reports.page_texts import signed_in

pytestmark = pytest.mark.django_db(databases=["default", "vault"])
DAYS = (1, 2, 3, 40, 300)
PAGE = f"/studies/{SLUG}/"
ABOUT_PEOPLE = r"[^\n]*(?:visit|subscriber|person\b|people|abonné|personne)[^\n]*"
# Pages for events; every other page of a study is about people.
OF_BOTH = {  # of the API
    "/studies/{study}/statement",
    "/studies/{study}/indicators",
    "/studies/{study}/indicators/{indicator}",
}
OF_EVENTS = {
    "studies",
    "study",
    "boards",
    "board",
    "change_board",
    "remove_board",
    "indicator",
    "periods_file",
    "next_period_file",
    "statement",
    "statement_file",
}


@pytest.fixture(scope="module")
def filled(kept):
    with pipelines(event_definition()) as make:
        pipeline = make()
        pipeline.upload(write_rows(kept / "rows.csv", rows_of(*DAYS, each=150)))
        return pipeline


@pytest.fixture
def reader(client, person):
    client.force_login(person("vera", Role.ADMINISTRATOR))
    return client


def text_of(client, address, **query) -> str:
    found = client.get(address, query)
    assert found.status_code == 200, address
    return unescape(re.sub(r"<script.*?</script>", "", found.content.decode(), flags=re.DOTALL))


def rows(client, kind="month", indicator="zone", **query):
    found = client.get(f"{PAGE}{indicator}/periods.csv", {"period": kind, **query})
    return list(csv.DictReader(io.StringIO(found.content.decode())))


def main_of(client, address, **query) -> str:
    return text_of(client, address, **query).split("<main", 1)[1].split("</main>")[0]


def test_the_card_of_an_administrator_promises_nothing_about_people(filled, person):
    shown = signed_in(person("ada", Role.ADMINISTRATOR)).get("/administrator/").content.decode()
    assert "all values of an event together" in shown and "all of a person" not in shown


def test_no_day_of_it_waits_for_more_files(filled, person):
    olga = signed_in(person("olga", Role.OPERATOR))
    shown = olga.get(f"/operator/{SLUG}/").content.decode()
    assert re.search(
        r'<div class="field" hidden>\s*<label class="check"><input type="checkbox" id="upload-more"', shown
    )


def test_home_lists_it(filled, person):
    assert f'href="{PAGE}"' in signed_in(person("ann", Role.ANALYST)).get("/").content.decode()


def test_pages_show_events_and_no_visitors(filled, reader):
    pages = [(f"{PAGE}{end}", kind) for end, kind in product(("", "zone/"), ("day", "month", "nonsense"))]
    pages += [(f"{PAGE}{end}", "year") for end in ("reason/", "statement/")]
    for language, (address, kind) in product(("en", "fr"), pages):
        reader.cookies["django_language"] = language
        shown = re.sub(r"<[^>]*>", " ", main_of(reader, address, period=kind)).lower()
        found = [each for each in shown.split(".") if re.search("visitor|visiteur", each)]
        # of flows it is said that there are none
        assert [each for each in found if not re.search("flows|flux", each)] == [], (language, address, kind)
    assert SLUG in text_of(reader, "/studies/")


def test_every_other_page_of_a_study_says_that_it_counts_events(filled, reader):
    kwargs = {
        "slug": SLUG, "indicator_slug": "zone", "board_id": "1", "note_id": 1, "content": "zones",
        "ending": "md", "file_format": "csv",
    }  # fmt: skip
    for pattern in urlpatterns:
        if pattern.name in OF_EVENTS:
            continue
        names = pattern.pattern.converters.keys() or pattern.pattern.regex.groupindex.keys()
        address = reverse(f"reports:{pattern.name}", kwargs={name: kwargs[name] for name in names})
        found = reader.get(address)
        if found.status_code == 405:
            found = reader.post(address)
        said = "because that study counts events, not people" in found.content.decode()
        assert (found.status_code, said, f'href="{PAGE}"' in found.content.decode()) == (404, True, True), (
            address
        )


def test_links_of_the_pages_lead_somewhere(filled, reader):
    for address in (PAGE, f"{PAGE}zone/", f"{PAGE}statement/"):
        for link in set(
            re.findall(r'href="((?:/studies|\?)[^"#]*)"', text_of(reader, address).split("<main", 1)[1])
        ):
            assert reader.get(link if link.startswith("/") else address + link).status_code == 200, link


FIRST = {"day": "2023-12-20", "week": "2023-W51", "month": "2023-12", "quarter": "2023-Q4", "year": "2023"}


def test_the_axis_names_each_period_and_its_year():
    names = ("2023-12-20", "2023-12", "2023-W51", "2023-Q4", "2023")
    shown = ["20 Dec<br>2023", "Dec<br>2023", "W51<br>2023", "Q4<br>2023", "2023"]
    assert [charts._tick(name) for name in names] == shown


def test_a_period_is_the_estimate_of_the_sum_of_its_days(filled, reader):
    indicator = Indicator.objects.get(study__slug=SLUG, slug="zone")
    n_events = sum(int(row["n_events"]) for row in rows(reader, "year"))
    for kind, name in FIRST.items():
        found = rows(reader, kind)
        assert (found[0]["period"], found[0]["is_whole"]) == (name, "yes" if kind == "day" else "no")
        assert sum(int(row["n_events"]) for row in found) == n_events
        with_events = (row for row in found if int(row["n_events"]))
        for (*ends, n), of_period in groupby(with_events, itemgetter("first_day", "last_day", "n_events")):
            days = [indicator.study.day_of(date.fromisoformat(end)) for end in ends]
            report = window_report(indicator, Window(*days))
            estimates = {each.category: each for each in report.estimates}
            assert int(n) == report.n_visitors
            for row in of_period:
                estimate = estimates.pop(row["category"])
                assert (row["frequency"], row["events_ci_high"]) == (
                    ("", "")
                    if estimate.frequency is None
                    else (str(estimate.frequency), str(estimate.visitors_ci_high))
                )
            assert not estimates


def test_days_without_rows_have_no_events_and_are_not_missing(filled, reader):
    by_period = {row["period"]: row for row in rows(reader, "day")}
    assert len(by_period) == max(DAYS)
    empty = by_period["2023-12-30"]
    assert (empty["n_events"], empty["frequency"], empty["status"]) == ("0", "", "no_events")


def test_events_without_an_answer_have_no_share_and_say_so(make_pipeline, reader, tmp_path):
    pipeline = make_pipeline(**as_changes(event_definition()) | {"slug": "silent"})
    without = [f"{row.rsplit(',', 1)[0]}," for row in rows_of(1, each=60)]
    pipeline.upload(write_rows(tmp_path / "rows.csv", without))
    found = reader.get("/studies/silent/reason/periods.json", {"period": "day"}).json()["rows"]
    assert {(row["n_events"] > 0, row["n_reports"], row["frequency"]) for row in found} == {(True, 0, None)}
    assert {row["status"] for row in found} == {"no_answers"}
    asked = reader.get("/api/v1/studies/silent/indicators/reason/periods", {"period": "day"}).json()
    assert asked["items"][0]["estimates"][0]["status"] == "no_answers"


def test_files_have_the_same_figures_in_each_format(filled, reader):
    found = json.loads(reader.get(f"{PAGE}zone/periods.json?period=year").content)
    assert [row["n_events"] for row in found["rows"]] == [
        int(row["n_events"]) for row in rows(reader, "year")
    ]
    book = reader.get(f"{PAGE}zone/periods.xlsx?period=year")
    assert (book.status_code, book.content[:2]) == (200, b"PK")
    for wrong in ("periods.pdf", "periods.csv?period=decade"):
        assert reader.get(f"{PAGE}zone/{wrong}").status_code == 404


def test_there_are_no_files_before_the_first_upload(make_pipeline, reader):
    make_pipeline(**as_changes(event_definition()) | {"slug": "empty"})
    page = PAGE.replace(SLUG, "empty")
    found = reader.get(f"{page}zone/periods.csv")
    assert (found.status_code, b"no events have been published" in found.content) == (400, True)
    for address in (page, f"{page}zone/"):
        assert "No data yet" in text_of(reader, address)


def test_the_statement_is_about_an_event_and_the_script_agrees_and_finds_what_was_changed(filled):
    statement = json.loads(json.dumps(privacy_statement(Study.objects.get(slug=SLUG), with_names=True)))
    assert check(statement).texts == []
    said = {each["name"] for each in statement["not_protected"]}
    assert said == {"events", "several_events", "missing_values", "times", "key_holder"}
    assert statement["study"]["units"] == "events"
    assert "person" not in json.dumps(statement["guarantee"]["units"])
    for change, expected in (
        (lambda said: said["plan"]["spec"].pop("events"), "plan.spec, days"),
        (lambda said: said["plan"]["spec"].update(events=1), "plan.spec, events"),
        (lambda said: said["plan"]["spec"].update(tallies=["visits"]), "plan.spec, events"),
        (lambda said: said["study"].pop("units"), "study.units"),
        (lambda said: said["not_protected"].pop(0), "not_protected, events"),
    ):
        changed = deepcopy(statement)
        change(changed)
        assert any(expected in text for text in check(changed).texts), expected


def test_the_api_has_no_figures_of_people_for_it(filled, reader):
    assert SLUG not in reader.get("/api/v1/studies").content.decode()
    for path, is_of_study in READING.items():
        asked = path.format(study=SLUG, indicator="zone", collection="zone", feature="1")
        if is_of_study and path not in OF_BOTH:
            ask = partial(reader.post, content_type="application/json") if path in QUESTIONS else reader.get
            found = ask(f"/api/v1{asked}", QUESTIONS.get(path))
            assert (found.status_code, "counts events" in found.json()["detail"]) == (404, True), path


def test_the_api_answers_what_files_have_as_its_document_says(filled, reader):
    document = reader.get("/api/v1/openapi.json").json()

    def read(path, **query):
        found = reader.get(f"/api/v1{path}".replace("{study}", SLUG).replace("{indicator}", "zone"), query)
        schema = document["paths"][f"/api/v1{path}"]["get"]["responses"]["200"]["content"]["application/json"]
        Draft202012Validator(schema["schema"] | {"components": document["components"]}).validate(found.json())
        return found.json()["items"]

    (line,) = read("/events")
    assert (line["study"], line["n_events"]) == (SLUG, len(in_area(rows_of(*DAYS, each=150))))
    (record,) = [
        each for each in read("/studies/{study}/indicators") if each["indicator"] == line["indicators"][0]
    ]
    assert (record["unions_of_days"], record["n_windows"]) == (False, 0)
    for kind in FIRST:
        found = read("/studies/{study}/indicators/{indicator}/periods", period=kind, limit=200)
        file = json.loads(reader.get(f"{PAGE}zone/periods.json", {"period": kind}).content)
        of_api = [
            {**period, **estimate, "is_whole": "yes" if period["is_whole"] else "no", "estimates": None}
            for period in found
            for estimate in period["estimates"]
        ]
        expected = [
            {**{name: file[name] for name in of_api[0] if name in file}, **row, "estimates": None}
            for row in file["rows"]
        ]
        assert of_api == expected[: len(of_api)]
        counts = read("/studies/{study}/periods", period=kind, limit=200)
        names = ("n_events", "period")
        assert [[each[name] for name in names] for each in counts] == [
            [each[name] for name in names] for each in found
        ]
    assert sum(each["n_events"] for each in counts) == line["n_events"]  # of years


def test_periods_of_the_api_come_in_parts_and_months_are_the_default(filled, reader):
    address = f"/api/v1/studies/{SLUG}/indicators/zone/periods"
    found = reader.get(address, {"limit": 2, "offset": 1}).json()
    whole = reader.get(address).json()
    assert (found["items"], found["count"]) == (whole["items"][1:3], whole["count"])
    assert found["next"].endswith("limit=2&offset=3")
    assert whole["items"][0]["period"] == "2023-12"
    for query in ({"period": "decade"}, {"from": "2024-01-01"}):
        assert reader.get(address, query).status_code == 422
    assert reader.get(f"/api/v1/studies/{SLUG}/indicators/age/periods").status_code == 404


def test_the_ledger_notes_which_periods_the_api_gave(filled, reader):
    reader.get(f"/api/v1/studies/{SLUG}/indicators/zone/periods", {"period": "week"})
    facts = LedgerEntry.objects.filter(kind=LedgerKind.EXPORT_MADE).latest("pk").facts
    assert (facts["what"], facts["indicator"], facts["period"]) == ("series", "zone", "week")


def test_the_api_gives_events_to_those_who_may_export_the_study(filled, client, person):
    ways = (f"/api/v1/studies/{SLUG}/periods", f"/api/v1/studies/{SLUG}/indicators/zone/periods")
    for role in (*Role, None):
        somebody = person(f"one-{role}", *([role] if role else []), studies=[])
        client.force_login(somebody)
        asked = [client.get(way).status_code for way in ways]
        seen = SLUG in client.get("/api/v1/events").content.decode()
        sees = role in SEES_ALL & EXPORTERS
        assert (asked, seen) == ([200 if sees else 404] * 2, sees), role
        if role in EXPORTERS - SEES_ALL:
            StudyGrant.objects.create(user=somebody, study=Study.objects.get(slug=SLUG), granted_by="test")
            assert [client.get(way).status_code for way in ways] == [200, 200], role


def test_a_token_of_the_study_opens_it_and_no_other(filled, client, person):
    study = Study.objects.get(slug=SLUG)
    owner = person("ana", Role.ANALYST)
    StudyGrant.objects.create(user=owner, study=study, granted_by="test")
    client.force_login(owner)
    page = client.post("/access/tokens/", {"name": "nightly", "study": SLUG, "days": 3})
    assert page.status_code == 200
    token = owner.api_tokens.get()
    assert token.study == study
    client.logout()
    other = report_factory.published()
    StudyGrant.objects.create(user=owner, study=other, granted_by="test")
    _, text = create_token(name="x", days=1, study=other, by=owner)
    headers = {"Authorization": f"Bearer {text}"}
    assert client.get(f"/api/v1/studies/{SLUG}/periods", headers=headers).status_code == 404
    found = client.get(f"/api/v1/studies/{other.slug}/periods", headers=headers)
    assert (found.status_code, "counts visitors" in found.json()["detail"]) == (404, True)


def test_operators_and_administrators_read_of_events_and_nothing_about_people(
    make_pipeline, client, person, tmp_path
):
    client.force_login(person("olga", Role.OPERATOR, Role.ADMINISTRATOR))
    pipeline = make_pipeline(**as_changes(event_definition()) | {"slug": "calls"})
    files = (rows_of(*DAYS, each=150), rows_of(*DAYS, each=150)[:-1], rows_of(5, each=3))
    paths = [write_rows(tmp_path / f"{n}.csv", each) for n, each in enumerate(files)]
    batches = pipeline.upload(*paths)
    assert batches[1].rows_ignored["duplicate"] > 0
    assert client.get("/administrator/calls/close/").context["obstacles"].waiting_subscribers == 3
    of_batches = [f"/operator/batches/{each.pk}/" for each in batches]
    addresses = [f"/administrator/calls/{each}" for each in ("", "close/")]
    addresses += [*(f"/operator/calls/{each}" for each in ("", "coverage/")), *of_batches]
    texts = {}
    for language, address in product(("en", "fr"), addresses):
        client.cookies["django_language"] = language
        texts[language, address] = main_of(client, address)
        shown = re.sub(r'id="opt-outs">.*?</details>', ">", texts[language, address], flags=re.DOTALL)
        shown = re.sub(r"<[^>]*>", " ", shown).lower()
        assert re.findall(ABOUT_PEOPLE, shown) == [], address
    assert "New events" in texts["en", of_batches[0]]
    assert "This study counts events" in texts["en", addresses[0]]
    assert "Draft another version" not in texts["en", addresses[0]]
    assert "epsilon" not in texts["en", "/operator/calls/"].partition("void-title")[2]
    for language, waits in (
        ("en", "the pending changes cover 3 events,"),
        ("fr", "portent sur 3 événements,"),
    ):
        assert waits in texts[language, of_batches[2]]
    assert "changes for 3 events," in " ".join(notes_for_reader(batches[2]))


def test_events_that_are_enough_wait_for_others(make_pipeline, client, person, tmp_path):
    client.force_login(person("olga", Role.OPERATOR))
    pipeline = make_pipeline(**as_changes(event_definition()) | {"slug": "calls"})
    rows = rows_of(1, 2)
    pipeline.upload(write_rows(tmp_path / "all.csv", rows))
    pipeline.void_day(2)
    (batch,) = pipeline.upload(write_rows(tmp_path / "more.csv", [*rows, "2023-12-21T23:30:00,C1,fire"]))
    page = text_of(client, f"/operator/batches/{batch.pk}/")
    assert "They cover enough events (31), but" in page
    assert "how many events they cover" in page


def test_a_running_batch_says_nothing_about_people(filled):
    batch = filled.study.batches.get()
    for language, batch.state, batch.validate_only in product(
        ("en", "fr"), ("reading", "merging", "publishing"), (False, True)
    ):
        with override(language):
            found = batch_progress(batch, study_head(batch.study_id))
            assert re.findall(ABOUT_PEOPLE, f"{found.title} {found.sentence}".lower()) == []


def test_drafts_refuse_events(filled, client, person):
    client.force_login(person("ada", Role.ADMINISTRATOR))
    found = client.post(f"/administrator/{SLUG}/draft/", {"copy_to": "other"}, follow=True)
    assert "create a study of events with manage.py create_study" in unescape(found.content.decode())


def test_the_last_periods_come_first_and_earlier_ones_on_further_pages(filled, reader):
    def heads(**query):
        page = text_of(reader, f"{PAGE}zone/", period="day", **query)
        return re.findall(r'<th scope="col" class="number">([0-9]{4}-[0-9]{2}-[0-9]{2})', page)

    latest, earlier = heads(), heads(page=2)
    assert latest == sorted(latest)
    assert (latest[-1], len(latest)) == ("2024-10-14", 53)
    assert earlier[-1] < latest[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TEXT, "does not link them to people, so the events of a person cannot be found once a file"),
        (TEXT_OF_PEOPLE, "undo their days while these are open, and send these days again without the rows"),
    ],
)
def test_opt_out_lists_are_refused_with_the_reason(make_pipeline, client, person, text, said):
    changes = {"slug": "calls", "population": "calls"}
    pipeline = make_pipeline(**as_changes(event_definition(text)) | changes)
    client.force_login(person("olga", Role.OPERATOR))
    with pytest.raises(ProfileMissingError, match=said):
        find_profile(pipeline.study, OPT_OUT)
    for address in ("/operator/calls/", "/operator/calls/coverage/"):
        assert "This study takes no opt-out list: it counts events" in text_of(client, address), address
        assert said in text_of(client, address), address
        assert "/notes/" not in text_of(client, address)
    headers = TUS | {"Upload-Length": "1", "Upload-Metadata": "profile b3B0LW91dA=="}
    sent = client.post("/operator/calls/uploads/", headers=headers)
    assert (sent.status_code, said in sent.json()["detail"]) == (400, True)
