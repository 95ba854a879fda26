"""Figures of pages are made once for each state of a study, and again when it changes."""

from datetime import date
from itertools import product

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils.translation import override

from reports.estimates.fingerprints import MOST_KEPT, kept, slot_of
from reports.estimates.models import DayNote
from reports.estimates.notes import note_day
from reports.models import Area, Study
from tests.reports import report_factory as factory
from tests.reports.page_texts import signed_in

pytestmark = pytest.mark.django_db
STUDY, MOVEMENT = "/studies/fair-2024/", "/studies/fair-2024/home/movement/"
DAYS = "/studies/fair-2024/home/days/"
MAP = "/studies/fair-2024/home/map.json?measure=visitors"


class Made:
    """Counts how often a text is made."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> str:
        self.times += 1
        return f"text {self.times}"


def content(reader: Client, address: str) -> str:
    response = reader.get(address)
    assert response.status_code == 200
    text: str = response.content.decode()
    return text.split("<main", 1)[-1].split("</main>", maxsplit=1)[0]


def test_a_text_is_made_once_for_a_state_a_language_and_a_question(fair: Study) -> None:
    make = Made()
    assert [kept(fair, "a", make=make), kept(fair, "a", make=make)] == ["text 1"] * 2
    assert kept(fair, "b", make=make) == "text 2"
    with override("fr"):
        assert kept(fair, "a", make=make) == "text 3"
    other = factory.published(slug="other", n=100)
    assert kept(other, "a", make=make) == "text 4"
    assert kept(fair, "a", make=make) == "text 1"


def test_what_no_one_asks_for_is_forgotten(fair: Study) -> None:
    make = Made()
    for number in range(MOST_KEPT + 1):
        kept(fair, number, make=make)
    kept(fair, 0, make=make)
    assert make.times == MOST_KEPT + 2


def undone(study: Study) -> None:
    factory.void(study, day=1)


def noted(study: Study) -> None:
    note_day(study, day=date(2024, 5, 31), kind=DayNote.Kind.OUTAGE, text="Repairs", by="adam")


def scaled(study: Study) -> None:
    Study.objects.filter(pk=study.pk).update(market_share="0.5")


def layered(study: Study) -> None:
    Area.objects.filter(study=study).update(
        layers=[{"name": "river", "kind": "lines", "paths": [[[0, 0], [9, 9]]]}]
    )


@pytest.mark.parametrize(
    ("address", "change"),
    [
        *product(
            (STUDY, f"{STUDY}?from=2024-05-30&to=2024-05-31", MOVEMENT, DAYS, MAP), (undone, noted, scaled)
        ),
        (STUDY, layered),
    ],
)
def test_pages_follow_publications_notes_policies_and_layers(mapped: Study, reader: Client, address, change):
    before = content(reader, address)
    assert content(reader, address) == before
    change(mapped)
    after = content(reader, address)
    assert after != before
    slot_of.cache_clear()
    assert content(reader, address) == after


def test_readers_who_may_not_export_get_pages_of_their_own(mapped: Study, reader: Client, viewer: User):
    pages = [
        (client, address) for address in (STUDY, MOVEMENT, DAYS) for client in (reader, signed_in(viewer))
    ]
    kept_pages = [content(*page) for page in pages]
    assert ["Download" in text for text in kept_pages] == [True, False] * 3
    slot_of.cache_clear()
    assert [content(*page) for page in reversed(pages)] == kept_pages[::-1]
