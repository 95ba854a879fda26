"""Marking days: by command, on a page, and who may."""

import io
import json
from datetime import date

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import IntegrityError
from django.test import Client
from django.urls import reverse

from reports.models import DayNote, Study
from reports.services.notes import DayNoteError, note_day, remove_note
from tests.reports import report_factory as factory

pytestmark = pytest.mark.django_db

DAY = date(2024, 5, 31)
ADDRESS = "/studies/fair-2024/notes/"


def command(*args: str) -> str:
    out = io.StringIO()
    call_command("note_day", *args, stdout=out)
    return out.getvalue()


def form(**changes: str) -> dict[str, str]:
    return {"day": "2024-05-31", "kind": "outage", "text": "Power cut"} | changes


def test_command_keeps_a_note_and_prints_it() -> None:
    study = factory.create()
    printed = json.loads(command("fair-2024", "2024-05-31", "--event", " Fireworks at nine "))
    assert printed == {
        "study": "fair-2024", "day": "2024-05-31", "kind": "event", "text": "Fireworks at nine"
    }  # fmt: skip
    note = study.day_notes.get()
    assert (note.day, note.kind, note.text) == (2, "event", "Fireworks at nine")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            ["nope", "2024-05-31", "--event", "x"],
            r"STUDY must be the slug of a study \(fair-2024\), got nope",
        ),
        (["fair-2024", "2024-06-03", "--event", "x"], "2024-05-30 to 2024-06-02, got 2024-06-03"),
        (["fair-2024", "May", "--event", "x"], "must be a date such as"),
        (["fair-2024", "2024-05-31"], "--outage --event is required"),
        (["fair-2024", "2024-05-31", "--outage", "x", "--event", "y"], "not allowed with"),
        (["fair-2024", "2024-05-31", "--outage", " "], "one line of 1 to 200 characters, got 0"),
    ],
)
def test_command_says_what_is_wrong(args: list[str], message: str) -> None:
    factory.create()
    with pytest.raises(CommandError, match=message):
        command(*args)
    assert not DayNote.objects.exists()


def test_note_of_the_same_kind_is_replaced_and_the_other_kind_stays() -> None:
    study = factory.create()
    for kind, text in (("outage", "first"), ("event", "fair"), ("outage", "second")):
        note_day(study, day=DAY, kind=DayNote.Kind(kind), text=text, by="adam")
    assert sorted(study.day_notes.values_list("kind", "text")) == [("event", "fair"), ("outage", "second")]


@pytest.mark.parametrize("text", ["", " ", "x" * 201, "two\nlines"])
def test_text_is_one_line(text: str) -> None:
    with pytest.raises(DayNoteError, match="one line of 1 to 200"):
        note_day(factory.create(), day=DAY, kind=DayNote.Kind.EVENT, text=text, by="adam")


def test_database_refuses_a_kind_that_does_not_exist() -> None:
    with pytest.raises(IntegrityError, match="day_note_kind"):
        DayNote.objects.create(study=factory.create(), day=1, kind="rumour", text="x", by="adam")


def test_note_of_another_study_is_not_removed() -> None:
    study, other = factory.create(), factory.create(slug="other-2024")
    note = note_day(study, day=DAY, kind=DayNote.Kind.EVENT, text="x", by="adam")
    assert not remove_note(other, note_id=note.pk)
    assert remove_note(study, note_id=note.pk)
    assert not remove_note(study, note_id=note.pk)


def test_operator_and_administrator_write_notes(operator: User, administrator: User, fair: Study) -> None:
    for person in (operator, administrator):
        client = Client()
        client.force_login(person)
        answer = client.post(ADDRESS, form(), follow=True)
        assert "The note on Fri 31 May 2024 is kept" in answer.content.decode()
        note = fair.day_notes.get()
        assert (note.text, note.by, note.kind) == ("Power cut", person.username, "outage")
        answer = client.post(reverse("reports:remove_note", args=["fair-2024", note.pk]), follow=True)
        assert "The note is removed" in answer.content.decode()
        assert not fair.day_notes.exists()


def test_others_see_no_such_page(reader: Client, stranger: User, client: Client, fair: Study) -> None:
    assert reader.get(ADDRESS).status_code == 404
    assert reader.post(ADDRESS, form()).status_code == 404
    assert client.get(ADDRESS).status_code == 302
    client.force_login(stranger)
    assert client.post(ADDRESS, form()).status_code == 404
    assert not fair.day_notes.exists()


@pytest.mark.parametrize(
    "changes", [{"day": "2024-06-03"}, {"kind": "rumour"}, {"text": ""}, {"text": "x" * 201}]
)
def test_page_says_what_is_wrong(administrator: User, fair: Study, changes: dict[str, str]) -> None:
    client = Client()
    client.force_login(administrator)
    answer = client.post(ADDRESS, form(**changes))
    assert answer.status_code == 400
    assert 'class="errorlist"' in answer.content.decode()
    assert not fair.day_notes.exists()


@pytest.mark.parametrize("text", ["a\tb", "a\u200bb", "a\x07b", "one\u2028two"])
def test_page_refuses_characters_that_cannot_be_seen(administrator: User, fair: Study, text: str) -> None:
    client = Client()
    client.force_login(administrator)
    answer = client.post(ADDRESS, form(text=text))
    assert answer.status_code == 400
    assert "Write one line" in answer.content.decode()
    assert not fair.day_notes.exists()


def test_spaces_of_french_typography_are_text(administrator: User, fair: Study) -> None:
    client = Client()
    client.force_login(administrator)
    text = "Panne\u00a0: 3\u202f000 abonnés"
    assert client.post(ADDRESS, form(text=text)).status_code == 302
    assert fair.day_notes.get().text == text
