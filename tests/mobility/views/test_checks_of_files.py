"""Checks of real files, from the upload to the page and to the calendar."""

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from mobility.models import Batch, VaultStudy
from mobility.services import intake, outcomes, uploads
from mobility.services.studies import create_study
from reports.studyfile import parse_study
from tests.mobility.views.small_study import STUDY, page

pytestmark = pytest.mark.django_db(databases=["default", "vault"], transaction=True)
Run = Callable[[], None]
CELLS = b"cell_id,lon,lat\nFR-101,6.0,47.0\nFR-2000,6.0,47.0\n"
AREA = (
    STUDY.replace('timestamp = "time"\n', 'timestamp = "time"\ncell = "cell"\n')
    + '[area]\ncells = "cells.csv"\n'
)
HEADER = "msisdn,time,age,cell\n"
SWAPPED = "33699999999"  # an identifier in the column of the cells


@pytest.fixture
def study(data_dir: Path) -> VaultStudy:
    definition = parse_study(AREA.encode(), filename="study.toml", read=lambda _: CELLS)
    create_study(definition, by="adam")
    return VaultStudy.objects.get(slug="fair")


@pytest.fixture(autouse=True)
def _signed_in(client: Client, operator: User) -> None:
    client.force_login(operator)


def events(
    day: int, *, people: int = 30, hours: tuple[int, ...] = (8, 9, 10, 11), cell: str = "FR-101"
) -> str:
    return "".join(
        f"336{who:08},2024-05-0{day}T{hour:02}:{who % 60:02}:00,old,{cell}\n"
        for hour in hours
        for who in range(people)
    )


def take_in(study: VaultStudy, run: Run, *parts: str, **options: Any) -> Batch:
    body = (HEADER + "".join(parts)).encode()
    batch = uploads.receive(
        StringIOBytes(body), study=study, by="olga", bytes_total=len(body),
        **{"filename": "day.csv", "more_to_come": False, **options},
    )  # fmt: skip
    run()
    batch.refresh_from_db()
    return batch


class StringIOBytes:
    """A stream of bytes."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def read(self, size: int, /) -> bytes:
        part, self._body = self._body[:size], self._body[size:]
        return part


def coverage() -> dict[str, Any]:
    out = StringIO()
    call_command("coverage", "fair", stdout=out)
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def statuses() -> list[str]:
    (source,) = coverage()["sources"]
    return [day["status"] for day in source["days"]]


MIXED = (
    events(1, people=10),
    "1,2024-05-01T10:00:00,old,FR-101\n" * 3,  # two are duplicates
    "2,2024-05-01T10:00:00,,FR-999\n",
    "3,2024-05-01T10:00:00,,FR-999\n",
    f"4,2024-05-01T10:00:00,old,{SWAPPED}\n",
    "5,2024-05-01T23:59:59,old,\n",
    "6,never,ancient,FR-101\n",
    "too,few\n",
)


def test_the_page_says_what_the_file_holds(client: Client, study: VaultStudy, run_batches: Run) -> None:
    batch = take_in(study, run_batches, *MIXED)
    assert batch.state == Batch.State.DONE, batch.failure
    text = page(client, reverse("operator:batch", args=[batch.pk]))
    assert "Earliest event Wed 1 May 2024, 08:00:00 (UTC+02:00)" in text
    assert "Latest event Wed 1 May 2024, 23:59:59 (UTC+02:00)" in text
    # 40 + 3 in listed cells; the cells of five others are unknown, strange or empty
    assert "list 43 of 47 (91.5 %)" in text
    assert "Duplicates 2 of 43 (4.7 %)" in text
    assert "Subscribers 11" in text
    assert "age 2 of 48 (4.2 %) cell 1 of 48 (2.1 %) msisdn 0 of 48 (0.0 %) time 0 of 48 (0.0 %)" in text
    assert "something is wrong with 3 of 49 rows" in text
    assert "bad_timestamp 1 50 time" not in text
    assert "bad_timestamp 1 49 time" in text
    assert "wrong_columns 1 50" in text
    assert "FR-999 2" in text
    assert "1 row has a text there that does not look like a cell" in text


def test_an_identifier_in_the_wrong_column_is_kept_nowhere(
    client: Client, study: VaultStudy, run_batches: Run
) -> None:
    batch = take_in(study, run_batches, *MIXED)
    kept = json.dumps([str(value) for value in Batch.objects.filter(pk=batch.pk).values_list()])
    assert "FR-999" in kept
    assert SWAPPED not in kept
    assert SWAPPED not in page(client, reverse("operator:batch", args=[batch.pk]))


def test_a_refused_file_shows_its_checks_and_its_day(
    client: Client, study: VaultStudy, run_batches: Run
) -> None:
    batch = take_in(study, run_batches, events(2, people=1), "6,never,old,FR-101\n" * 9)
    assert batch.state == Batch.State.FAILED
    text = page(client, reverse("operator:batch", args=[batch.pk]))
    assert "something is wrong with 9 of 13 rows" in text
    assert "age 0 of 13 (0.0 %)" in text
    assert "Duplicates" not in text
    assert statuses() == ["missing", "failed", "missing"]


def test_a_file_that_cannot_be_read_is_named_apart(study: VaultStudy, run_batches: Run) -> None:
    take_in(study, run_batches, filename="empty.csv")
    (lost,) = coverage()["unattributed"]
    assert lost["filename"] == "empty.csv"
    assert "no rows" in lost["failure"]


def test_a_file_that_was_only_checked_covers_nothing_but_is_compared(
    client: Client, study: VaultStudy, run_batches: Run
) -> None:
    take_in(study, run_batches, events(1), events(3))
    batch = take_in(study, run_batches, events(2, people=5, hours=(8, 9, 11)), validate_only=True)
    assert batch.state == Batch.State.DONE, batch.failure
    assert statuses() == ["complete", "missing", "complete"]
    outage, rows, subscribers = [
        text.replace("\u202f", " ") for text in list(outcomes.notes_for_reader(batch))[-3:]
    ]
    assert outage.startswith("Thu 2 May 2024: no events between 10:00 and 11:00, where there are usually 30")
    assert rows.startswith("Thu 2 May 2024, Rows accepted: 15, usually 120 (median of 2 earlier days).")
    assert subscribers.startswith("Thu 2 May 2024, Subscribers: 5, usually 30 (median of 2 earlier days).")
    assert "Upload it for real" in page(client, reverse("operator:batch", args=[batch.pk]))


def test_days_go_through_their_states(study: VaultStudy, run_batches: Run) -> None:
    take_in(study, run_batches, events(1), more_to_come=True)
    assert statuses() == ["partial", "missing", "missing"]
    noon = (8, 9, 10, 11, 12)
    take_in(study, run_batches, events(1, hours=(12,)), events(2), filename="rest.csv")
    assert statuses() == ["complete", "complete", "missing"]
    take_in(study, run_batches, events(3, hours=noon), filename="third.csv")
    assert statuses() == ["complete", "partial", "complete"]  # two of three have rows at noon
    intake.request_void_day(study, day=3, by="olga")
    run_batches()
    assert statuses() == ["complete", "complete", "undone"]
