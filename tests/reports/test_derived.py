"""Totals that follow from the tallies: equal to what counting people gives."""

from datetime import date

import numpy as np
import pytest

from reports.derived import KeyFigures, key_figures
from reports.models import Study
from reports.selectors import visitor_unions
from reports.status import Status
from tests.reports import report_factory as factory

pytestmark = pytest.mark.django_db


def test_key_figures_are_those_of_the_people(fair: Study) -> None:
    bitmaps = factory.crowd(fair).bitmaps
    presence = bitmaps[:, np.newaxis] >> np.arange(4, dtype=np.uint64) & np.uint64(1)
    daily = presence.sum(axis=0)
    found = key_figures(fair)
    assert found.n_visitors == found.first_visits == 4000
    assert found.n_visits == presence.sum()
    assert found.return_visits == presence.sum() - 4000
    assert found.return_share == pytest.approx(1 - 4000 / presence.sum())
    assert found.mean_days == pytest.approx(presence.sum(axis=1).mean())
    assert found.busiest_visitors == daily.max()
    assert found.busiest_day == fair.date_of(int(daily.argmax()) + 1)
    assert found.days_with_visitors == 4


def test_day_without_visitors_is_not_counted_as_one() -> None:
    study = factory.create()
    factory.publish(study, factory.absent_on(factory.crowd(study), day=3))
    assert key_figures(study).days_with_visitors == 3


def test_first_of_equally_busy_days_is_named() -> None:
    study = factory.create(days=3)
    everyone = np.full(50, 0b110, np.uint64)
    people = factory.crowd(study, n=50)
    factory.publish(study, factory.People(bitmaps=everyone, static=people.static, daily=people.daily))
    found = key_figures(study)
    assert (found.busiest_day, found.busiest_visitors) == (date(2024, 5, 31), 50)
    assert found.mean_days == 2


def test_study_without_data_has_no_figures() -> None:
    found = key_figures(factory.create())
    assert found == KeyFigures(status=Status.NOT_COLLECTED, days_with_visitors=0)
    assert found.return_visits is None
    assert found.return_share is None


def test_few_visitors_are_suppressed_by_the_small_cell_rule() -> None:
    study = factory.create(small_cell=60)
    people = factory.crowd(study, n=50)
    factory.publish(study, people)
    assert key_figures(study) == KeyFigures(status=Status.SUPPRESSED, days_with_visitors=4)
    Study.objects.update(small_cell=45)  # all of them are enough, those of each day are not
    found = key_figures(Study.objects.get())
    assert (found.n_visitors, found.busiest_day, found.busiest_visitors) == (50, None, None)


def test_totals_that_are_there_are_not_read_again(fair: Study, django_assert_num_queries) -> None:
    unions = visitor_unions(fair)
    with django_assert_num_queries(0):
        given = key_figures(fair, visitors=unions)
    with django_assert_num_queries(1):
        assert key_figures(fair) == given
