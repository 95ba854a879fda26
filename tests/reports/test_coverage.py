"""The days of a study: what there is of each, and as a calendar."""

from datetime import date

import pytest

from reports import selectors
from reports.coverage import Coverage, coverage_of
from reports.models import DayNote, Study
from reports.services.notes import note_day
from reports.status import Status
from tests.reports import report_factory as factory

pytestmark = pytest.mark.django_db


def coverage(study: Study) -> Coverage:
    return coverage_of(study, visitors=selectors.visitor_unions(study), notes=study.day_notes.all())


def test_each_day_has_its_own_kind_of_blank() -> None:
    study = factory.create(small_cell=2000)
    factory.publish(study, factory.absent_on(factory.crowd(study), day=3))
    note_day(study, day=date(2024, 6, 2), kind=DayNote.Kind.OUTAGE, text="Power cut", by="adam")
    note_day(study, day=date(2024, 5, 30), kind=DayNote.Kind.EVENT, text="Opening", by="adam")
    found = coverage(study)
    assert [day.status for day in found.days] == [
        Status.OK, Status.OK, Status.NOT_COLLECTED, Status.OUTAGE
    ]  # fmt: skip
    assert [day.visitors is None for day in found.days] == [False, False, True, True]
    assert [note.text for note in found.days[0].notes] == ["Opening"]
    assert found.published == 2
    assert found.next_missing == found.days[2]
    assert found.counts == [(Status.OK, 2), (Status.NOT_COLLECTED, 1), (Status.OUTAGE, 1)]


def test_small_first_time_numbers_are_hidden_too() -> None:
    study = factory.create(small_cell=2000)
    factory.publish(study, factory.crowd(study))
    assert [day.first_time is None for day in coverage(study).days] == [False, True, True, True]


def test_weeks_start_on_monday_and_hold_every_day_once() -> None:
    study = factory.create(days=12)  # from Thursday 30 May
    weeks = coverage(study).weeks
    assert [len(week) for week in weeks] == [7, 7, 7]
    assert weeks[0][:3] == [None, None, None]
    assert weeks[0][3].date == date(2024, 5, 30)
    assert weeks[1][0].date == date(2024, 6, 3)
    assert weeks[2][0].day == 12
    assert weeks[2][1:] == [None] * 6


def test_study_without_data_misses_its_first_day_first() -> None:
    found = coverage(factory.create())
    assert (found.published, found.next_missing.day) == (0, 1)
